"""Take sample weights for a fit, with a public bound, or refuse them."""

from typing import Any, ClassVar

from skdp._validation import shown

__all__ = ["ASSUMED", "WeightedMixin", "refuse_weighted_partitions", "taken_weights"]

ASSUMED = (
    "the weights of the records are private parts of them: every one is a finite number that is not negative and follows from "
    "its record and public facts alone, and what exceeds max_sample_weight counts as max_sample_weight"
)


class WeightedMixin:
    """Mark the estimators that have the parameter ``max_sample_weight``.

    ``sample_weight`` is no named parameter of ``fit``: without a bound it is refused, and scikit-learn's meta-estimators take
    the name for a promise. AdaBoost, for one, computes weights of a record from all others. Metadata routing passes it on.

    Parameters
    ----------
    max_sample_weight : float or None, default=None
        Public bound on the weights of records, which ``fit`` then takes as ``sample_weight``. Each weight is a private part of
        its record; a larger one counts as the bound. The bound must not be computed from the data. None takes no weights.
    """

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"sample_weight": None}


def taken_weights(task: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Take the weights out of further arguments of ``fit``, in a list from which the table takes them.

    Raises TypeError for weights without a public bound, and ValueError for a bound without weights.
    """
    if not task.takes_weights:
        return {}
    name, weights, largest = task.kind, given.pop("sample_weight", None), task.max_sample_weight
    if weights is None and largest is None:
        return {}
    if largest is None:
        raise TypeError(
            f"{name} does not take sample_weight: a weight is part of a record, and the noise needs a public bound on it; "
            "expected max_sample_weight=..., a number that is not computed from the records."
        )
    if weights is None:
        raise ValueError(
            f"max_sample_weight={shown(largest)} without sample_weight; expected fit(X, y, sample_weight=...) with one weight "
            f"per record, or max_sample_weight=None. Searches and cross-validation pass weights on if metadata routing is on and "
            f"{name}.set_fit_request(sample_weight=True) asks for them."
        )
    return {"sample_weight": [weights]}


def refuse_weighted_partitions(task: Any) -> None:
    """Raise TypeError if weights would go with a table in partitions."""
    if task.max_sample_weight is not None:
        raise TypeError(
            f"max_sample_weight={shown(task.max_sample_weight)} with a table in partitions, which has no weights; expected "
            "a table in memory, or None."
        )
