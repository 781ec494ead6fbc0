"""Empirical checks of a guarantee: attacks on real fits, and the epsilon that they prove to be spent at least."""

from skdp.audit._audit import audit
from skdp.audit._one_run import OneRunResult, audit_one_run
from skdp.audit._result import AuditResult, Bound

__all__ = ["AuditResult", "Bound", "OneRunResult", "audit", "audit_one_run"]
