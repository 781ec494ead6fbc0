"""Detect the scikit-learn meta-estimators that copy an estimator before they fit, and warn about or refuse some.

scikit-learn clones an estimator in the process and thread that called ``fit``, before it hands copies to workers. So this module
inspects the callers of `clone`, once per copy and only in scikit-learn's own frames: the meta-estimator and its public
parameters.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Integral, Real
from types import FrameType
from typing import Any
from weakref import WeakKeyDictionary

from sklearn import model_selection
from sklearn.base import is_classifier

from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import LARGEST_EPSILON, default_delta
from skdp.privacy.errors import BudgetExceededError, OutsideGuaranteeWarning, shown, warn
from skdp.privacy.ledger.active import active
from skdp.privacy.ledger.ledger import PrivacyLedger

__all__ = [
    "callers",
    "check_callers",
    "is_one",
    "is_private",
    "is_stratified",
    "join",
    "learned_around",
    "nested",
    "one_run",
    "parameters_of",
    "warn_outside",
]

# Names of public classes of scikit-learn. Classes are compared by name, so that none is imported.
SEARCHES = ("GridSearchCV", "RandomizedSearchCV", "HalvingGridSearchCV", "HalvingRandomSearchCV")
BAGS = ("BaggingClassifier", "BaggingRegressor")
STACKS = ("StackingClassifier", "StackingRegressor")
LEARNERS = {  # of something from the training records, with what to use instead
    ("AdaBoostClassifier", "AdaBoostRegressor"): (
        "a weight of each fit, by its exact errors, and keeps these,",
        "DPGradientBoostingClassifier or DPGradientBoostingRegressor",
    ),
    ("CalibratedClassifierCV",): ("probabilities", "predict_proba of the private classifier"),
    ("IterativeImputer",): (
        "means and ranges of columns, and keeps them,",
        "constants for what is missing: a schema with fills, or SimpleImputer(strategy='constant', keep_empty_features=True)",
    ),
    ("TunedThresholdClassifierCV",): ("a threshold", "FixedThresholdClassifier"),
    ("RANSACRegressor",): ("which records are inliers, and keeps it,", "DPRobustRegressor"),
    ("SelfTrainingClassifier",): ("labels of records, and keeps them,", "a fit on the labelled ones"),
    ("RFECV", "SequentialFeatureSelector"): (
        "which columns to keep, by exact scores,",
        "columns that are named from public knowledge",
    ),
    ("OneVsOneClassifier",): (
        "the number of records of each class, which the reports of its fits show,",
        "DPLogisticRegression alone, which takes several classes",
    ),
}
# Classes that number the labels that occur in y, before the estimators that they hold see them.
NUMBER_LABELS = ("VotingClassifier", "BaggingClassifier", "StackingClassifier")
CHAINS = ("ClassifierChain", "RegressorChain")  # whose cv=None is no folds
FROZEN = ("FrozenEstimator",)
OF_TARGETS = ("TransformedTargetRegressor",)
PARTS = ("steps", "transformers", "transformer_list")  # of pipelines, column transformers and unions
CONTAINERS = ("Pipeline", "ColumnTransformer", "FeatureUnion")
HELD = ("estimator", "base_estimator", "regressor", "classifier", "final_estimator", "transformer")  # parameters of what is held
FUNCTIONS = ("cross_validate", "cross_val_predict", "learning_curve", "permutation_test_score", "validation_curve")
STRATIFIED = (
    model_selection.StratifiedKFold,
    model_selection.StratifiedShuffleSplit,
    model_selection.StratifiedGroupKFold,
    model_selection.RepeatedStratifiedKFold,
)
OF_GROUPS = (model_selection.GroupShuffleSplit, model_selection.LeaveOneGroupOut, model_selection.LeavePGroupsOut)
ROUNDED = 1.001  # factor that allows for rounding: a ledger rounds the epsilon that is left down to four digits
UNCOVERED = "neither epsilon nor a ledger covers that."
RUN: ContextVar[Any] = ContextVar("run", default=None)
WARNED: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()  # what was said of the fits of an object


def check_callers(estimator: Any) -> None:
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
    stratified, of_persons = "", protects_persons(estimator)
    for frame, name, owner in callers():
        for what, instead in learned_around(owner):
            warn_outside(f"{name} {what}. Use {instead}; {UNCOVERED}")
        if is_one(owner, *BAGS) and _weighs(frame):
            warn_outside(
                f"{name} draws records by sample_weight, which moves others and their number. Use no sample_weight; {UNCOVERED}"
            )
        given = _splitter(frame, owner)
        if of_persons:
            _warn_of_rows(name, owner, given)
        if active():
            stratified = f"cv={shown(given)} of {name}" if is_stratified(owner, given) else stratified
            if (is_one(owner, *SEARCHES[:2]) or _is_halving(owner)) and _holds(owner.estimator, estimator):
                _check_search(owner, frame)
    if stratified:  # in the outermost caller
        warn_outside(
            f"{stratified} is stratified: which rows are in a fold depends on their labels, so that one changed label moves "
            "other rows, and the charges of the ledger do not cover that. Use cv=KFold(...)."
        )


def protects_persons(estimator: Any) -> bool:
    """Return whether an estimator, or one that it holds, protects persons."""
    parameters = estimator.get_params(deep=True) if hasattr(estimator, "get_params") else {}
    return any(
        name.split("__")[-1] == "privacy_unit" and isinstance(value, str) and value == "person"
        for name, value in parameters.items()
    )


def check_splits() -> None:
    """Warn of splits of rows at a fit or a score of persons: a search may have set ``privacy_unit="person"`` after the copy."""
    for frame, name, owner in callers():
        _warn_of_rows(name, owner, _splitter(frame, owner))
        _warn_of_groups(frame, name)


def _splitter(frame: FrameType, owner: Any) -> Any:
    """Return the ``cv`` of a function of scikit-learn (None) or of a meta-estimator; None without one."""
    return frame.f_locals.get("cv") if owner is None else getattr(owner, "cv", None)


def _warn_of_rows(name: str, owner: Any, cv: Any) -> None:
    """Warn if a function of scikit-learn (None), or a meta-estimator, splits or draws rows of persons by their numbers."""
    folds = owner is None or (hasattr(owner, "cv") and not (cv is None and is_one(owner, *CHAINS)))
    counts = name == "learning_curve" or is_one(owner, *BAGS) or _is_halving(owner)
    if counts or (folds and not _splits_persons(cv)):
        how = name if counts else f"cv={shown(cv)} of {name}"
        warn_outside(
            f"{how} splits or draws rows by their number, not persons: one more row of one person can move rows of others to "
            "another part. Use GroupShuffleSplit() or GroupKFold(5, shuffle=True) as cv of a search or a cross-validation, with "
            f"the ids of the persons as groups; {UNCOVERED}"
        )


def _warn_of_groups(frame: FrameType, name: str) -> None:
    """Warn if a function or a search splits by other groups than the persons; which array is given is a fact of the call."""
    given = frame.f_locals.get("params")
    if not isinstance(given, dict):
        return
    groups = given.get("groups", frame.f_locals.get("groups"))
    others = [value for key, value in given.items() if key.split("__")[-1] == "persons" and value is not None]
    if groups is not None and not all(_is_same(groups, value) for value in others):
        warn_outside(
            f"{name} splits by groups that are another array than persons: rows of a person may be in several folds, so that "
            "folds depend on those of others. Give one array as groups, and pass it on with set_fit_request(persons='groups') "
            f"and set_score_request(persons='groups'); {UNCOVERED}"
        )


def _is_same(array: Any, other: Any) -> bool:
    """Return whether two arrays, or columns, are one in memory; no value is read."""
    arrays = [part.to_numpy() if hasattr(part, "to_numpy") else part for part in (array, other)]
    first, second = (getattr(part, "__array_interface__", {}).get("data", id(part)) for part in arrays)
    return array is other or bool(first == second)


def learned_around(owner: Any) -> Iterator[tuple[str, str]]:
    """Yield what a meta-estimator learns from the training records beside the fits of what it holds, and what to use instead."""
    if is_one(owner, *STACKS) and not is_private(owner.final_estimator):
        yield "learns its final_estimator from the training records without privacy", "a private one"
    for names, (what, instead) in LEARNERS.items():
        if is_one(owner, *names):
            yield f"learns {what} from the training records without privacy", instead
    if is_one(owner, *BAGS) and owner.bootstrap:
        yield "draws records with replacement, so that one counts more than once", "bootstrap=False"
    parameters = owner.get_params(deep=True) if is_one(owner, *NUMBER_LABELS) else {}
    if any(name.endswith("__classes") and value is not None for name, value in parameters.items()):  # of what it holds
        yield (
            "numbers the labels that occur, so that one rare label changes those of other records, whatever classes= says",
            "classes=None, for which the set of labels is public, or the private classifier alone",
        )


def _splits_persons(cv: Any) -> bool:
    """Return whether folds are made of the sorted ids of persons alone, whatever their numbers of rows are."""
    return isinstance(cv, OF_GROUPS) or (isinstance(cv, model_selection.GroupKFold) and bool(getattr(cv, "shuffle", False)))


def warn_outside(message: str) -> None:
    """Warn of what the guarantee does not cover: once, whatever the number of fits that a meta-estimator or a function makes."""
    if (run := _run()) is not None:
        said = WARNED.setdefault(run, set())
        if message in said:
            return
        said.add(message)
    warn(message, OutsideGuaranteeWarning)


@contextmanager
def one_run() -> Iterator[None]:
    """Count all fits inside as one run of something that makes several."""
    token = RUN.set(Run())
    try:
        yield
    finally:
        RUN.reset(token)


class Run:
    """Stands for a run of something that makes several fits."""


def _run() -> Any:
    """Return the outermost object that makes several fits; of a function, that is its `Parallel`; None for a single fit."""
    if (run := RUN.get()) is not None:
        return run
    owners = [owner for _, _, owner in callers() if owner is not None and not is_one(owner, *CONTAINERS, *OF_TARGETS)]
    return owners[-1] if owners else None


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


def is_one(owner: Any, *names: str) -> bool:
    """Return whether an object is an instance of classes of scikit-learn, by their names."""
    return any(kind.__name__ in names and kind.__module__.startswith("sklearn.") for kind in type(owner).__mro__)


def join(name: str, inner: str) -> str:
    """Return the name of a part, or of a parameter of it, as `set_params` takes it."""
    return f"{name}__{inner}" if name else inner


def nested(name: str, whole: Any) -> Iterator[tuple[str, Any]]:
    """Yield an estimator or a preparation, and all that it holds and fits, with their places."""
    yield name, whole
    passes_on = is_one(whole, "Pipeline") and not hasattr(whole, "epsilon")  # also one of skdp: users may add steps to it
    if is_one(whole, *FROZEN) or (type(whole).__module__.startswith("skdp.") and not passes_on):  # a frozen one shows its parts
        return
    if is_one(whole, *CONTAINERS):
        held = [entry[:2] for part in PARTS for entry in getattr(whole, part, ())]
        held += [("remainder", whole.remainder)] if hasattr(whole, "remainder") else []
    else:
        held = [*(getattr(whole, "estimators", None) or ())]
        parts = [(parameter, getattr(whole, parameter, None)) for parameter in HELD]
        held += [(parameter, part) for parameter, part in parts if hasattr(part, "fit") or hasattr(part, "transform")]
    for inner, part in held:
        yield from nested(join(name, inner), part)


def parameters_of(name: str, value: Any) -> dict[str, Any]:
    """Return a parameter and all that it holds, by their names."""
    inner = value.get_params(deep=True) if hasattr(value, "get_params") and not isinstance(value, type) else {}
    return {name: value, **{join(name, each): part for each, part in inner.items()}}


def is_private(estimator: Any) -> bool:
    """Return whether an estimator, or the last step of a pipeline, belongs to skdp."""
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    return any(kind.__module__.startswith("skdp.") for kind in type(last).__mro__)


def _weighs(frame: FrameType) -> bool:
    """Return whether a method, or the function that called it, got sample weights; a bag's members are made one call deeper."""
    return any(given is not None and given.f_locals.get("sample_weight") is not None for given in (frame, frame.f_back))


def _is_halving(owner: Any) -> bool:
    """Return whether an object is a successive-halving search whose resource is the number of records."""
    return is_one(owner, *SEARCHES[2:]) and owner.resource == "n_samples"


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
    if protects_persons(search.estimator):
        return  # the number of persons is not known here, and that of rows is private
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
                    f"{n_splits} folds{refit_too}). The ledger {account.address!r} has room for {n_fits} fits of "
                    f"epsilon={left!r} each, at the ledger's delta={account.delta!r}. Use a smaller epsilon or delta, or "
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
    held = parameters_of("", estimator)
    for name, value in sorted(given.items()):  # a step before its parameters
        held = {other: part for other, part in held.items() if not f"{other}__".startswith(f"{name}__")} | parameters_of(
            name, value
        )
    private = [name for name in held if is_private(held[name]) and join(name, "epsilon") in held]
    for name in private:
        if not any(name != other and f"{name}__".startswith(join(other, "")) for other in private):  # it is no part of another
            yield type(held[name]).__name__, held[join(name, "epsilon")], held.get(join(name, "delta"))


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
