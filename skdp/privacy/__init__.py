"""Everything that makes a fit private; imports nothing from the rest of the package."""

from skdp.privacy.accountants import charge_accountant
from skdp.privacy.budget import Budget
from skdp.privacy.errors import (
    BudgetExceededError,
    LedgerError,
    LowSignalWarning,
    NotPrivateWarning,
    OutsideGuaranteeWarning,
    PrivacyAccountingError,
    WeakPrivacyWarning,
)
from skdp.privacy.ledger import PrivacyLedger
from skdp.privacy.report import PrivacyReport, PrivacySpent
from skdp.privacy.schedule import Schedule

__all__ = [
    "Budget",
    "BudgetExceededError",
    "LedgerError",
    "LowSignalWarning",
    "NotPrivateWarning",
    "OutsideGuaranteeWarning",
    "PrivacyAccountingError",
    "PrivacyLedger",
    "PrivacyReport",
    "PrivacySpent",
    "Schedule",
    "WeakPrivacyWarning",
    "charge_accountant",
]
