"""Keep the budget of a data set over many fits."""

from skdp.privacy.ledger.ledger import PrivacyLedger

__all__ = ["PrivacyLedger"]
