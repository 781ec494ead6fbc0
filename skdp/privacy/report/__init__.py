"""State the guarantee of a fit as an object, text, JSON and HTML."""

from skdp.privacy.report.statement import PrivacyReport, PrivacySpent

__all__ = ["PrivacyReport", "PrivacySpent"]
