"""Check a guarantee empirically: attack real fits, and compute lower bounds on the epsilon that they spend."""

from skdp.audit._audit import audit
from skdp.audit._one_run import OneRunResult, audit_one_run
from skdp.audit._result import AuditResult, Bound

__all__ = ["AuditResult", "Bound", "OneRunResult", "audit", "audit_one_run"]
