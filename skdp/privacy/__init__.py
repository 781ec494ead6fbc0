"""Make fits private: budgets, schedules, queries, noise, accounting, ledgers and reports.

Nothing here imports from the rest of the package.
"""

from skdp.privacy.budget import Budget
from skdp.privacy.errors import (
    BudgetExceededError,
    LedgerError,
    LowSignalWarning,
    NotPrivateWarning,
    OutsideGuaranteeWarning,
    PrivacyAccountingError,
    SourceError,
    TableWarning,
    WeakPrivacyWarning,
)
from skdp.privacy.ledger.diffprivlib import charge_accountant
from skdp.privacy.ledger.ledger import PrivacyLedger
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent
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
    "SourceError",
    "TableWarning",
    "WeakPrivacyWarning",
    "charge_accountant",
]
