"""State the versions of the software of an evaluation."""

from skdp.privacy.report.versions import versions

__all__ = ["versions"]
