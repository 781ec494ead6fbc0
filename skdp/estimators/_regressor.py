"""Define the base of the private linear regressors: the units of the targets and the range of predictions."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Facts, SeveralTargets, TargetReader, number_of_targets, quoting_no_data
from skdp._extra_facts import NO_EXTRA
from skdp._progress import with_callbacks
from skdp._table_types import is_lazy
from skdp._validation import LARGEST, SMALLEST, check_bounds, check_option, check_scale, shown
from skdp.data._predictions import scored, takes_tables
from skdp.estimators._base import DPEstimator
from skdp.estimators._link import (
    LEAST_MEAN,
    LEAST_SIGNAL,
    LINKS,
    LONG_EXPOSURE,
    OF_TARGETS,
    BentLine,
    Linking,
    LogCalibration,
    LogLink,
    share_of_fit,
)
from skdp.estimators._plan import Plan
from skdp.estimators._raw_predictions import raw_predictions
from skdp.estimators._task import Task
from skdp.estimators._two_stages import LOSSES_OF_A_UNIT, learning_of
from skdp.losses import Absolute, Cauchy, EpsilonInsensitive, Huber, Squared, SquaredDistance, Tukey, Welsch
from skdp.privacy.budget import Budget
from skdp.privacy.errors import silent, warn
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Loss
from skdp.solvers import Problem, SolverResult, signal_to_noise

# Norm of a row divided by data_norm up to which predictions follow the line if y has no public range. The fit scales rows to this
# norm; a larger value lets predictions for longer rows go farther.
REACH = 1.0
# Range of y, in its units, for a loss that needs one if none is given. A public choice that is most likely wrong, so it warns.
USUAL_RANGE = -1.0, 1.0
ROBUST = {loss.name: loss for loss in (Cauchy, EpsilonInsensitive, Huber, Tukey, Welsch)}
# Threshold over half the width of the range of y below which a fit with a loss that is flat far away may see hardly any record. A
# choice: a wide range with most targets in its middle is usual at .2, and .1 was useless where they are at its end.
SHORT_THRESHOLD = 0.15
# Threshold over half the width of the range of y, if none is given.
USUAL_THRESHOLD = 0.5


class RegressionTask(Task):
    """Task of a linear regressor: the range and the unit of the targets."""

    target_bounds: Any

    link: Any = "identity"
    loss: Any = "squared"
    threshold: Any = None
    losses: ClassVar[tuple[str, ...]] = ("squared",)
    stays_in_reach: ClassVar[bool] = False  # whether predictions have a range even without target_bounds

    def check_parameters(self) -> None:
        super().check_parameters()
        check_option("loss", self.loss, sorted(self.losses))
        check_option("link", self.link, LINKS)
        if self.linked:
            self._check_link()
        if self.threshold is not None:
            check_scale("threshold", self.threshold)
        given = self.given_bounds()
        if given is None:
            self._warn_without_bounds()
        else:
            self._checked_bounds(given)
        if self._bounds() is None and self.l1_ratio and self._automatic and self.loss not in ROBUST:
            raise ValueError(
                f"l1_ratio={shown(self.l1_ratio)} with target_bounds=None: the solvers that take it do not learn the unit of "
                "y; give target_bounds, or a solver such as 'gd' where y is of size 1."
            )
        if self.loss in ROBUST and not SMALLEST <= self._threshold() <= LARGEST:
            bounds = shown(given)
            raise ValueError(f"threshold={shown(self.threshold)}; expected a number comparable to target_bounds={bounds}.")
        if given is not None:
            self._warn_of_short_threshold()

    @property
    def linked(self) -> bool:
        """Whether the model is one of the logarithm of the mean, where the signal suffices."""
        return self.link != "identity"

    def _check_link(self) -> None:
        """Raise ValueError for what does not go with a log link."""
        why = f"link={shown(self.link)}"
        reasons = {
            "inference=True": (self.inference, "the coefficients are those of a fitted logarithm, which has no tests"),
            "max_sample_weight": (self.max_sample_weight is not None, "its releases count records without weights"),
            "several targets": (bool(self._bounds_of_each(self.target_bounds)), "one target is calibrated"),
            "delta=0": (self.delta == 0, "its releases have Gaussian noise"),
            "fit_intercept=False": (not self.fit_intercept, "the level is an intercept"),
            "knots='private'": (getattr(self, "knots", None) == "private", "two first releases would divide the budget"),
        }
        for what, (given, reason) in reasons.items():
            if given:
                raise ValueError(f"{why} with {what}: {reason}; expected link='identity', or a fit without it.")
        bounds = self._bounds()
        if self.target_bounds is not None and (bounds[0] < 0 or (self.link == "log_count" and bounds[1] < 1)):
            least = "high at least 1" if self.link == "log_count" else "high positive"
            raise ValueError(
                f"{why} with target_bounds={shown(self.target_bounds)}; expected (low, high), low not negative, {least}."
            )

    @property
    def _automatic(self) -> bool:
        """Whether public facts choose the solver."""
        return isinstance(self.solver, str) and self.solver == "auto"

    def _warn_without_bounds(self) -> None:
        """Warn about what the fit assumes about y if no range is given."""
        if self.linked:
            raise ValueError(
                f"link={shown(self.link)} without target_bounds; expected target_bounds=(0, high) from public knowledge, or a "
                "data frame whose columns, and y with them, are learned."
            )
        if self.loss == "squared":
            warn(
                f"target_bounds is not given: y is taken to lie in {list(USUAL_RANGE)}, and what lies outside to be at the "
                "nearer end. Use target_bounds=(low, high), from public knowledge; (-1, 1) says so without this warning. "
                "The range of the records themselves would leak.",
                UserWarning,
            )
        elif self.loss in LOSSES_OF_A_UNIT and self.threshold is None and self._automatic:
            warn(
                "Neither threshold nor target_bounds: y is taken to lie within a few units of 0, and records farther away have "
                "little influence. Use target_bounds=(low, high) from public knowledge, or a threshold in the units of a y "
                "around 0.",
                UserWarning,
            )

    def _warn_of_short_threshold(self) -> None:
        """Warn of a threshold with which a fit that starts in the middle of the range sees hardly any record."""
        if self.threshold is None or self._loss().convex or self._threshold() >= SHORT_THRESHOLD:
            return
        (low, high), threshold = self._bounds(), float(self.threshold)
        warn(
            f"threshold={threshold:g} is small for a range of y from {low:g} to {high:g}. The fit starts in its middle, where "
            f"targets more than about {3 * threshold:g} away have hardly any influence. Use target_bounds around most "
            f"targets, threshold=None, which is {USUAL_THRESHOLD * (high - low) / 2:g}, or loss='huber'.",
            UserWarning,
        )

    def check_several(self, X: Any, y: Any) -> None:
        """Raise TypeError or ValueError if several targets do not go with the parameters or with X."""
        n_pairs = len(self._bounds_of_each(self.target_bounds))
        if n_pairs and is_lazy(X):
            raise ValueError("target_bounds for several targets, and a table in partitions; expected a table in memory.")
        n_targets = number_of_targets(y) if self.user_model._task_class.takes_several else None
        if n_targets is not None and self.linked:
            raise ValueError(f"link={shown(self.link)} takes one target, a vector y; for several, expected link='identity'.")
        if n_pairs and n_targets != n_pairs:
            raise ValueError(f"target_bounds has {n_pairs} pairs; expected a y with as many columns, or one pair (low, high).")
        if n_targets is None:
            return
        if sparse.issparse(y):
            raise TypeError("y is a sparse table; expected an array or a data frame of numbers.")
        if not n_pairs and learning_of(self, X) is not None:
            raise ValueError(
                "Columns of X are learned, and y has two dimensions; expected target_bounds=[(low, high), ...] with a pair for "
                "each column of y, a vector y, or public facts of all columns of X."
            )

    def taken_exposure(self, exposure: Any) -> dict[str, Any]:
        """Return the exposures in a list from which the table takes them; raise TypeError or ValueError where none are taken."""
        if exposure is None:
            return {}
        if "max_exposure" not in vars(self):
            raise TypeError(f"{self.kind}.fit does not take exposure, which models of counts with link='log_count' take.")
        if self.link != "log_count":
            raise ValueError(
                f"exposure is given with link={shown(self.link)}; expected link='log_count', which models the rate of counts, or "
                "no exposure."
            )
        check_scale("max_exposure", self.max_exposure)
        return {"exposure": [exposure]}

    def _bounds_of_each(self, given: Any) -> list[Any]:
        """Return the pairs of a range of y that has one for each of several targets; none if it has not."""
        kinds = (list, tuple, np.ndarray)
        listed = self.user_model._task_class.takes_several and isinstance(given, kinds) and getattr(given, "ndim", 1) > 0
        return list(given) if listed and all(isinstance(pair, kinds) for pair in given) else []

    def _checked_bounds(self, given: Any) -> Any:
        """Return a given range of y, a pair, or an array of pairs for several targets; raise TypeError or ValueError."""
        if pairs := self._bounds_of_each(given):
            return np.array([_checked_pair(place, pair) for place, pair in enumerate(pairs)])
        return check_bounds("target_bounds", given)

    def _bounds(self) -> Any:
        """Return the public range of y, or None; the squared loss, whose slope is unbounded, always has one."""
        given = self.given_bounds()
        if given is None:
            return USUAL_RANGE if self.loss == "squared" else None
        bounds = self._checked_bounds(given)
        if self.linked and self.target_bounds is None:  # a learned range, which noise may put anywhere
            high = max(bounds[1], -bounds[0])
            return max(bounds[0], 0.0) if bounds[1] > 0 else 0.0, max(high, 1.0) if self.link == "log_count" else high
        return bounds

    def given_bounds(self) -> Any:
        """Return the range of y that the user gave, perhaps in the schema, or None."""
        facts = self.input_schema if self.target_bounds is None else None
        return self.target_bounds if facts is None else facts.target_bounds

    def units(self, n_targets: int | None = None) -> tuple[Any, Any]:
        """Return the centre and the unit of the targets; without an intercept the centre is 0.

        Those of several targets are arrays. The vector of targets has norm at most 1 in these units, because each of q is in
        [-1 / sqrt(q), 1 / sqrt(q)].
        """
        bounds = self._bounds()
        if bounds is None:
            return 0.0, 1.0 if self.threshold is None else float(self.threshold)
        if n_targets is not None or np.ndim(bounds) == 2:
            low, high = np.broadcast_to(bounds, (len(bounds) if n_targets is None else n_targets, 2)).T
            root = math.sqrt(len(low))
            if self.fit_intercept:
                return low / 2 + high / 2, root * (high / 2 - low / 2)
            return np.zeros(len(low)), root * np.maximum(np.abs(low), np.abs(high))
        low, high = bounds
        return (low / 2 + high / 2, high / 2 - low / 2) if self.fit_intercept else (0.0, max(abs(low), abs(high)))

    def _n_targets(self, facts: Facts) -> int | None:
        """Return the number of several targets, from the table or from the parameters; None for a vector of one target."""
        bounds = self._bounds()
        return len(bounds) if np.ndim(bounds) == 2 else SeveralTargets.of(facts).n_targets

    def _threshold(self) -> float:
        """Return the threshold in the solver's unit of y."""
        if self.threshold is None:
            return 1.0 if self._bounds() is None else USUAL_THRESHOLD
        return float(self.threshold) / self.units()[1]

    def _loss(self) -> Loss:
        if self.loss in ROBUST:
            return ROBUST[self.loss](self._threshold())
        return Absolute() if self.loss == "absolute" else Squared()

    def read(self, scratch: Any, X: Any, y: Any) -> tuple[Facts, Any, np.ndarray]:
        n_targets = number_of_targets(y) if self.user_model._task_class.takes_several else None
        return self.target_reader(n_targets)(X, y, scratch)

    def target_reader(self, n_targets: int | None = None) -> TargetReader:
        return TargetReader(*self.units(n_targets), bounded=self._bounds() is not None)

    def problem_of(self, facts: Facts) -> Problem:
        bound, n_targets = math.inf if self._bounds() is None else 1.0, self._n_targets(facts)
        own = Squared() if self.faintness >= 1 else self._loss()  # the mean is all that is fitted
        loss = own if n_targets is None else SquaredDistance(n_targets)
        if n_targets is not None and self.inference:
            raise ValueError("inference=True takes one target, a vector y; for several, expected inference=False.")
        signal, around = signal_to_noise(self.known_budget(facts.n_samples), facts.n_samples), NO_EXTRA
        if self.linked and (signal >= LEAST_SIGNAL or self.exposed):
            public = {"link": self.link, "bounds": self._bounds(), "units": self.units()}
            around = LogLink.planned(signal, self.exposed, **public)
        return self._problem(facts.n_samples, facts.n_features, loss, target_bound=bound, around=around)

    def signal(self, budget: Budget, n_samples: int) -> float:
        signal = super().signal(budget, n_samples)
        return signal * math.sqrt(share_of_fit(signal)) if self.linked else signal

    def answered(self, plan: Plan, oracle: Oracle, rng: np.random.Generator) -> SolverResult:
        if plan.problem.around is NO_EXTRA:
            return super().answered(plan, oracle, rng)
        linking, around = Linking(plan, oracle), plan.problem.around
        if around.back is None and isinstance(around, LogLink):
            around = replace(around, exposure=linking.mean_exposure())
            return replace(super().answered(plan, oracle, rng), around=around)
        linking.map_targets()
        return linking.calibrated(super().answered(plan, oracle, rng))

    def described(self, plan: Plan) -> dict[str, Any]:
        several = {"n_targets": plan.problem.loss.n_outputs} if isinstance(plan.problem.loss, SquaredDistance) else {}
        return {**super().described(plan), **several, **self._described_link(plan)}

    def _described_link(self, plan: Plan) -> dict[str, str]:
        """Return how predictions follow from scores, for the report; nothing for the identity link that is asked for."""
        if not self.linked:
            return {}
        if faint := self._faint_link(plan):
            return {"link": f"identity, because {faint}"}
        after = 1 - OF_TARGETS - plan.problem.around.share
        return {"link": f"{self.link}, with {OF_TARGETS:.0%} of the squared budget before the fit and {after:.0%} after it"}

    def _faint_link(self, plan: Plan) -> str:
        """Return why a fit with a log link has the identity instead; "" if it has not."""
        if not self.linked or plan.problem.around.back is not None:
            return ""
        signal = signal_to_noise(plan.problem.budget, plan.problem.n_samples)
        records = float(f"{plan.problem.n_samples * LEAST_SIGNAL / signal:.2g}")
        return (
            f"the signal-to-noise ratio is {signal:.3g}, and a log link needs {LEAST_SIGNAL:g}: about {records:,.0f} records at "
            "this epsilon"
        )

    def left_out(self, plan: Plan) -> str:
        faint = self._faint_link(plan)
        link = (
            f"The link will be the identity instead of {self.link!r}: {faint}. Effects add up then, and exponentials of "
            "coefficients and curves are no factors; predictions stay positive. plan tells you this before a fit."
        )
        return " ".join(filter(None, (super().left_out(plan), link if faint else "")))

    def fitted(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        if not self.linked:
            return super().fitted(plan, result, facts)
        around, bounds = result.around, self._bounds()
        if isinstance(around, LogLink) and around.targets is not None and around.calibration is not None:
            model = self.replaced(link="identity", target_bounds=around.targets.ends).model(plan, result, facts)
            calibration = around.calibration
            if self.exposed:
                calibration, bounds = calibration.per(float(self.max_exposure)), (0.0, bounds[1] / float(self.max_exposure))
            return {**calibration.scaled(model), "target_bounds_": bounds, "link_": self.link}
        centre, unit = self.units()
        known = None if result.moments is None else result.moments.target
        mean = float(np.ravel(self.coefficients(plan, result.coef)[1])[0] if known is None else centre + unit * known)
        mean = min(max(mean, LEAST_MEAN * bounds[1]), bounds[1])
        exposure = None
        if isinstance(around, LogLink) and around.exposure is not None:
            exposure = around.exposure * float(self.max_exposure)
        return {**self.model(plan, result, facts), "link_": "identity", "calibration_": BentLine(mean, exposure)}

    def contradictions(self, plan: Plan, result: SolverResult, facts: Facts) -> Iterator[str | Warning]:
        yield from super().contradictions(plan, result, facts)
        around = result.around
        if isinstance(around, LogLink):
            share = around.exposure if around.calibration is None else around.calibration.exposure
            if share is not None and share >= LONG_EXPOSURE:
                yield (
                    f"The released mean of the exposures is {share:.0%} of max_exposure={self.max_exposure:g}: nearly all are as "
                    "long, or longer, and count as this. If they have another unit, such as days, state the largest one in this "
                    "unit as max_exposure; if all are as long, leave exposure out."
                )

    def model(self, plan: Plan, result: SolverResult, facts: Facts) -> dict[str, Any]:
        bounds = self._bounds()
        if (n_targets := self._n_targets(facts)) is not None:
            coef, intercepts = self.coefficients(plan, result.coef)
            return {"coef_": coef, "intercept_": intercepts, "target_bounds_": np.array(np.broadcast_to(bounds, (n_targets, 2)))}
        (coef,), (intercept,) = self.coefficients(plan, result.coef)
        if bounds is None and self.stays_in_reach:
            bounds = self._reach(plan, result.coef)
        return {"coef_": coef, "intercept_": np.float64(intercept), "target_bounds_": bounds}

    def _reach(self, plan: Plan, coef: np.ndarray) -> tuple[float, float]:
        """Return the range of predictions for rows of norm up to `REACH * data_norm`, from public facts and releases."""
        (weights,), (middle,) = plan.problem.unpack(coef)
        centre, unit = self.units()
        width = unit * REACH * plan.problem.data_norm * math.hypot(*weights.tolist())
        return centre + unit * float(middle) - width, centre + unit * float(middle) + width

    def assumed_of_y(self) -> str:
        if self._bounds() is None:
            return "every target is a finite number"
        text = "every target is a finite number, and what lies outside of target_bounds is clipped to them"
        return f"{text}; every exposure is a positive number, and counts up to max_exposure" if self.exposed else text


class DPRegressor(RegressorMixin, DPEstimator):
    """Base of the linear regressors: one raw prediction, in a unit that public facts set.

    The solver's unit of y is half the width of ``target_bounds``, around their middle; without bounds it is the threshold of the
    loss. Subclasses declare the parameter ``target_bounds`` in addition to those of `DPEstimator`, and some ``loss`` and
    ``threshold``.

    Parameters
    ----------
    fit_intercept : bool, default=True
        Whether to fit an intercept. Without one, y is not centred.
    link : {"identity", "log", "log_count"}, default="identity"
        How the mean of y follows from the raw prediction. "log" is for amounts that are not negative, such as prices and costs,
        and "log_count" for counts: effects of columns multiply, and predictions are positive. The fit is least squares on a
        logarithm of y, after a release of octaves of y with 3 % of the squared budget; then two releases with 8 to 35 % set the
        level and the slope of the logarithm of the mean, so that predictions add up to the sum of y. They are means of y, not
        medians. Where the signal-to-noise ratio is below 150, the link is the identity, with the whole budget, and predictions
        below the mean are bent so that they stay positive; the report says so. "identity" suits targets that are sums of
        effects.
    max_exposure : float, default=1.0
        Public bound on the exposures of records, where ``fit`` takes some. It must not be computed from the data.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Released coefficients. With a log link, those of the logarithm of the mean: ``exp(coef_)`` are factors.
    intercept_ : float
        Released intercept; zero if ``fit_intercept=False``. With a log link, the logarithm of the mean where features are 0.
    link_ : str
        The link that the signal allows. Present only if one other than "identity" is asked for.
    calibration_ : LogCalibration or BentLine
        What was released of level and slope: ``slope``, ``expected_slope``, ``slope_noise``, ``mean``, ``mean_noise``, ``clip``.
        For the identity link, the released ``mean`` alone. Present only with ``link_``.
    """

    @abstractmethod
    def __init__(self) -> None: ...

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: the score on scikit-learn's small test tables is poor because of the noise alone."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = self._is_noisy()
        tags.target_tags.multi_output = self._task_class.takes_several and not getattr(self, "inference", False)
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any = None, *, persons: Any = None, exposure: Any = None, **unsupported: Any) -> Any:
        """Fit the model, spending the budget once.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            {records}
        y : array-like of shape (n_samples,)
            Targets, finite numbers. `DPLinearRegression` also takes the shape (n_samples, n_targets).
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, with ``privacy_unit="person"``: an id per row, integers or texts, or the name of a column of a data
            frame or a table in partitions, which is no feature then; or a Dask series beside a Dask frame. Ids are private, and
            nothing keeps them.
        exposure : array-like of shape (n_samples,) or None, default=None
            With ``link="log_count"``, how long or how far each record counted, such as years of insurance: positive numbers,
            private parts of the records. More than ``max_exposure`` counts as that. `predict` then returns means per unit of
            exposure.
        **unsupported : dict
            ``sample_weight``, array-like of shape (n_samples,), where ``max_sample_weight`` is given: weights of the records,
            which are private. Refused else, as all other arguments: they raise a TypeError with the reason.

        Returns
        -------
        self
            The fitted estimator. An interrupted fit leaves it unchanged.
        """
        with silent():
            task = self._task()
            task.check_several(X, y)
            return self._fit(X, y, unsupported, persons=persons, **task.taken_exposure(exposure))

    @takes_tables
    def predict(self, X: Any) -> np.ndarray:
        """Return the predicted target of each record, clipped to ``target_bounds_`` unless that is None.

        With a log link it is the mean of the target, and not a logarithm; after a fit with exposures, per unit of exposure.

        Parameters
        ----------
        X : {table} of shape (n_samples, n_features)
            Records, used as given: rows are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted targets, in the units of y.
        """
        check_is_fitted(self)
        return self._in_bounds(self._raw(X))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R squared of the predictions, without noise; a table in partitions may name y."""
        X, y = scored(X, y)
        numbers = quoting_no_data(y, lambda: np.asarray(y, dtype=np.float64))
        return float(super().score(X, numbers, sample_weight))

    def _raw(self, X: Any) -> np.ndarray:
        """Return the predictions for a table before they are clipped."""
        return self._raw_of(self._rows_of(X))

    def _raw_of(self, rows: Any) -> np.ndarray:
        """Return the predictions for prepared rows before they are clipped."""
        return raw_predictions(rows, self.coef_.T, self.intercept_)

    def _in_bounds(self, predictions: np.ndarray) -> np.ndarray:
        """Return the means for raw predictions, within the range of y."""
        calibration, bounds = getattr(self, "calibration_", None), self.target_bounds_
        if isinstance(calibration, LogCalibration):
            return np.clip(calibration.means(predictions), *bounds)
        predictions = predictions if bounds is None else np.clip(predictions, *np.transpose(bounds))
        return predictions if calibration is None else calibration.means(predictions)


def _checked_pair(place: int, pair: Any) -> Any:
    """Return the range of one of several targets; an error tells its place only, because targets may be given by mistake."""
    try:
        return check_bounds("target_bounds", pair)
    except (TypeError, ValueError):
        pass
    raise ValueError(f"target_bounds[{place}]: expected (low, high) with low < high, numbers up to {LARGEST:g}.")
