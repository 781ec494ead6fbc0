"""Detect the scikit-learn meta-estimators that copy an estimator before they fit, and warn about or refuse some.

scikit-learn clones an estimator in the process and thread that called ``fit``, before it hands copies to workers. So this module
inspects the callers of `clone`, once per copy and only in scikit-learn's own frames: the meta-estimator and its public
parameters.
"""

import math
import sys
from collections.abc import Iterator
from numbers import Integral, Real
from types import FrameType
from typing import Any

from sklearn import model_selection
from sklearn.base import is_classifier

from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import LARGEST_EPSILON, default_delta
from skdp.privacy.errors import BudgetExceededError, OutsideGuaranteeWarning, shown, warn
from skdp.privacy.ledger.active import active
from skdp.privacy.ledger.ledger import PrivacyLedger

__all__ = ["callers", "is_one", "is_private", "is_stratified", "look_around"]

SEARCHES = (model_selection.GridSearchCV, model_selection.RandomizedSearchCV)
HALVING = "sklearn.model_selection._search_successive_halving", ("HalvingGridSearchCV", "HalvingRandomSearchCV")
BAGS = "sklearn.ensemble", ("BaggingClassifier", "BaggingRegressor")
STACKS = "sklearn.ensemble", ("StackingClassifier", "StackingRegressor")
LEARNERS = {  # of something from the training records, with what to do instead
    ("sklearn.calibration", ("CalibratedClassifierCV",)): ("probabilities", "predict_proba of the private classifier"),
    ("sklearn.model_selection", ("TunedThresholdClassifierCV",)): ("a threshold", "FixedThresholdClassifier"),
    ("sklearn.linear_model", ("RANSACRegressor",)): ("which records are inliers, and keeps it,", "DPRobustRegressor"),
    ("sklearn.semi_supervised", ("SelfTrainingClassifier",)): (
        "labels of records, and keeps them,",
        "a fit on the labelled ones",
    ),
    ("sklearn.feature_selection", ("RFECV", "SequentialFeatureSelector")): (
        "which columns to keep, by exact scores,",
        "columns that are named from public knowledge",
    ),
    ("sklearn.multiclass", ("OneVsOneClassifier",)): (
        "the number of records of each class, which the reports of its fits show,",
        "DPLogisticRegression alone, which takes several classes",
    ),
}
CHAINS = "sklearn.multioutput", ("ClassifierChain", "RegressorChain")  # whose cv=None is no folds
FUNCTIONS = ("cross_validate", "cross_val_predict", "learning_curve", "permutation_test_score", "validation_curve")
STRATIFIED = (
    model_selection.StratifiedKFold,
    model_selection.StratifiedShuffleSplit,
    model_selection.StratifiedGroupKFold,
    model_selection.RepeatedStratifiedKFold,
)
ROUNDED = 1.001  # factor that allows for rounding: a ledger rounds the epsilon that is left down to four digits


def look_around(estimator: Any) -> None:
    """Warn or refuse before an estimator is copied for fits that its guarantee or an active ledger does not cover.

    Parameters
    ----------
    estimator : DPEstimator
        The estimator that is copied.

    Raises
    ------
    BudgetExceededError
        If a search has more fits than an active ledger can pay for.
    """
    stratified = ""
    for frame, name, owner in callers():
        if is_one(owner, *STACKS) and not is_private(owner.final_estimator):
            _warn(f"{name} learns its final_estimator from the training records without privacy. Expected a private one")
        for kind, (what, instead) in LEARNERS.items():
            if is_one(owner, *kind):
                _warn(f"{name} learns {what} from the training records without privacy. Expected {instead}")
        if is_one(owner, *BAGS) and _weighs(frame):
            _warn(f"{name} draws records by sample_weight, which moves others and their number. Expected no sample_weight")
        if is_one(owner, *BAGS) and owner.bootstrap:
            _warn(f"{name} draws records with replacement, so that one counts more than once. Expected bootstrap=False")
        if active():
            given = frame.f_locals.get("cv") if owner is None else getattr(owner, "cv", None)
            stratified = f"cv={shown(given)} of {name}" if is_stratified(owner, given) else stratified
            if (isinstance(owner, SEARCHES) or _is_halving(owner)) and _holds(owner.estimator, estimator):
                _check_search(owner, frame)
    if stratified:  # in the outermost caller
        warn(
            f"{stratified} is stratified: which rows are in a fold depends on their labels, so that one changed label moves "
            "other rows, and the charges of the ledger do not cover that. Expected cv=KFold(...).",
            OutsideGuaranteeWarning,
        )


def callers() -> Iterator[tuple[FrameType, str, Any]]:
    """Yield scikit-learn's frames, innermost first, each with the name of its function or class and the object it belongs to."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if str(frame.f_globals.get("__name__")).startswith("sklearn."):
            if code.co_varnames[:1] == ("self",):
                owner = frame.f_locals["self"]
                yield frame, type(owner).__name__, owner
            elif code.co_name in FUNCTIONS:
                yield frame, code.co_name, None
        frame = frame.f_back


def is_one(owner: Any, module: str, names: tuple[str, ...]) -> bool:
    """Return whether an object is an instance of public classes of scikit-learn, without importing them."""
    return module in sys.modules and isinstance(owner, tuple(getattr(sys.modules[module], name) for name in names))


def _warn(message: str) -> None:
    warn(f"{message}; neither epsilon nor a ledger covers that.", OutsideGuaranteeWarning)


def is_private(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, belongs to skdp."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return any(kind.__module__.startswith("skdp.") for kind in type(last).__mro__)


def _weighs(frame: FrameType) -> bool:
    """Return whether a method, or the function that called it, got sample weights; a bag's members are made one call deeper."""
    return any(given is not None and given.f_locals.get("sample_weight") is not None for given in (frame, frame.f_back))


def _is_halving(owner: Any) -> bool:
    """Return whether an object is a successive-halving search whose resource is the number of records."""
    return is_one(owner, *HALVING) and owner.resource == "n_samples"


def _holds(outer: Any, estimator: Any) -> bool:
    """Return whether an estimator is this object or holds it as a parameter; later copies are not counted again."""
    return outer is estimator or any(value is estimator for value in outer.get_params(deep=True).values())


def is_stratified(owner: Any, cv: Any) -> bool:
    """Return whether a function of scikit-learn (None), or a meta-estimator, makes folds from the labels with this ``cv``."""
    counted = hasattr(owner, "cv") and ((cv is None and not is_one(owner, *CHAINS)) or isinstance(cv, Integral))
    return isinstance(cv, STRATIFIED) or (counted and is_classifier(owner))


def _check_search(search: Any, frame: FrameType) -> None:
    """Refuse a search that exceeds a ledger's budget, by the cost of full-data fits with epsilon and delta of each candidate.

    The refit counts with the largest cost. For successive halving only the first round counts, which fits every candidate.
    """
    X: Any = frame.f_locals.get("X")
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X) if hasattr(X, "__len__") else 0
    spenders = [list(_spenders(search.estimator, given)) for given in _candidates(search)] if n_samples > 1 else []
    costs = [math.fsum(_cost(epsilon, delta, n_samples) for _, epsilon, delta in spent) for spent in spenders]
    if not any(costs):
        return
    n_splits, refit, counts = _n_splits(search), bool(search.refit), [len(spent) for spent in spenders]
    n_fits, needed = n_splits * sum(counts) + refit * max(counts), n_splits * math.fsum(costs) + refit * max(costs)
    for account in active():
        if isinstance(account, PrivacyLedger):
            left = account.epsilon_left(n_fits=n_fits)
            if needed > (n_fits * gaussian_mu(left * ROUNDED, account.delta) ** 2 if left else 0.0):
                refit_too = ", 1 refit" if refit else ""
                times = f"{'at least ' if _is_halving(search) else ''}{n_fits} times"
                kinds = dict.fromkeys(kind for spent in spenders for kind, *_ in spent)
                raise BudgetExceededError(
                    f"{type(search).__name__} would fit {' or '.join(kinds)} {times} ({len(costs)} candidates, "
                    f"{n_splits} folds{refit_too}). The ledger {str(account.path)!r} has room for {n_fits} fits of "
                    f"epsilon={left!r} each, at the ledger's delta={account.delta!r}. Expected a smaller epsilon or delta, or "
                    "fewer candidates or folds. Nothing was charged.",
                    left,
                )


def _candidates(search: Any) -> Any:
    """Return the parameters of each candidate; none if a budget, or an estimator that may have one, is drawn at random."""
    if hasattr(search, "param_grid"):
        return model_selection.ParameterGrid(search.param_grid)
    given = search.param_distributions
    drawn = [item for part in (given if isinstance(given, list) else [given]) for item in part.items()]
    n_drawn = search.n_candidates if _is_halving(search) else search.n_iter
    decides = any(
        name.rpartition("__")[2] in ("epsilon", "delta")
        or any(hasattr(value, "get_params") for value in (() if hasattr(values, "rvs") else values))
        for name, values in drawn
    )
    return [{}] * len(model_selection.ParameterSampler(given, n_drawn)) if isinstance(n_drawn, Integral) and not decides else []


def _spenders(estimator: Any, given: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield class, epsilon and delta of each private estimator that a candidate fits, from its parameters alone."""
    held = _parts("", estimator)
    for name, value in sorted(given.items()):  # a step before its parameters
        held = {other: part for other, part in held.items() if not f"{other}__".startswith(f"{name}__")} | _parts(name, value)
    private = [name for name in held if is_private(held[name]) and _join(name, "epsilon") in held]
    for name in private:
        if not any(name != other and f"{name}__".startswith(_join(other, "")) for other in private):  # it is no part of another
            yield type(held[name]).__name__, held[_join(name, "epsilon")], held.get(_join(name, "delta"))


def _parts(name: str, value: Any) -> dict[str, Any]:
    """Return a parameter and all that it holds, by their names."""
    inner = value.get_params(deep=True) if hasattr(value, "get_params") and not isinstance(value, type) else {}
    return {name: value, **{_join(name, each): part for each, part in inner.items()}}


def _join(name: str, inner: str) -> str:
    return f"{name}__{inner}" if name else inner


def _n_splits(search: Any) -> int:
    """Return the number of folds; 1 if it depends on the table or is not known in advance."""
    cv: Any = 5 if search.cv is None else search.cv
    if isinstance(cv, Integral):
        return int(cv)
    try:
        return int(cv.get_n_splits()) if hasattr(cv, "get_n_splits") else len(cv)
    except (TypeError, ValueError):
        return 1


def _cost(epsilon: Any, delta: Any, n_samples: int) -> float:
    """Return the squared Gaussian-DP parameter of epsilon and delta; 0 if they are unknown or not a valid budget."""
    delta = default_delta(n_samples) if delta is None else delta
    if not (isinstance(epsilon, Real) and isinstance(delta, Real)):
        return 0.0
    epsilon, delta = float(epsilon), float(delta)
    return gaussian_mu(epsilon, delta) ** 2 if 0 < epsilon <= LARGEST_EPSILON and 0 < delta < 1 else 0.0
