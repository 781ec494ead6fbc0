"""Exceptions and warnings about the guarantee itself."""


class PrivacyAccountingError(RuntimeError):
    """A release was asked for that the schedule does not cover, or that cannot be accounted for.

    Raised before any noise is drawn and before the un-noised value can be seen.
    """


class NotPrivateWarning(UserWarning):
    """The model is fitted without noise (``epsilon=inf``) and carries no guarantee."""


class WeakPrivacyWarning(UserWarning):
    """The guarantee holds but promises little: ``epsilon > 10`` or ``delta >= 1 / n_samples``."""


class OutsideGuaranteeWarning(UserWarning):
    """Something that the user attached to the fit reads the training data without noise."""
