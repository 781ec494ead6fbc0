"""Define solvers: they plan releases from public facts, then compute with the answers, and never see data or noise."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from skdp._extra_facts import NO_EXTRA, ExtraFacts
from skdp._validation import refuse_hiding
from skdp.constraints import Box, Constraint
from skdp.losses import Logistic, Squared
from skdp.penalties import ElasticNet
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import Budget
from skdp.privacy.queries import ClassLoss, CurvedLoss, Gradient, Loss, Query
from skdp.privacy.schedule import Schedule
from skdp.solvers._coefficient_noise import CoefficientNoise
from skdp.solvers._inference import Inference
from skdp.solvers._released import ReleasedMoments
from skdp.solvers._uncertainty import Uncertainty

Ask = Callable[[Query], np.ndarray]

# Share of the total weight of the records: (TOTAL_SCALE / signal-to-noise ratio)**2, at least LEAST_FOR_TOTAL and at most
# MOST_FOR_TOTAL. With the scale 30 the total has an error of 5 % if the mean weight is a third of the bound. Choices: an error of
# the total scales steps and shrinkage by that factor, and where only a mean is fitted, that mean.
TOTAL_SCALE, LEAST_FOR_TOTAL, MOST_FOR_TOTAL = 30.0, 0.01, 0.2


def signal_to_noise(budget: Budget, n_samples: int) -> float:
    """Return `Problem.signal_to_noise` for a given budget and number of records."""
    return gaussian_mu(budget.epsilon, budget.delta) * n_samples / Gradient.relative_sensitivity[budget.adjacency]


@dataclass(frozen=True)
class Problem:
    """Hold the public facts of one fit: ``min_w (1/n) sum_i loss(x_i^T w, y_i) + penalty(w)``, perhaps over a constraint set.

    Parameters
    ----------
    n_samples, n_features : int
        Shape of the table; the number of records may be a released total weight (see `weighing`), which need not be an integer.
    loss : Loss
        Pointwise loss.
    budget : Budget
        epsilon, delta and adjacency.
    data_norm : float
        Bound on the norm of a row, enforced by clipping.
    intercept_scaling : float
        Constant appended to each row, whose coefficient is the intercept (see `shape`); 0 without intercept.
    class_weight : tuple of float or None, default=None
        Weight per class, by which a record's loss is multiplied.
    alpha : float, default=0.0
        Strength of the penalty.
    clip_norm : float, default=inf
        Bound on the norm of one record's gradient, enforced by clipping.
    l1_ratio : float, default=0.0
        Share of the l1 norm in the penalty: 0 is ridge, 1 is lasso.
    constraint : Constraint or None, default=None
        Set of allowed coefficients of the features, flattened; the intercept is free.
    feature_bounds : float, tuple of float or None, default=None
        Bound on the absolute value of all features, or one bound per feature; None if only ``data_norm`` is known. It sets clip
        norms of coordinates; rows are not clipped to it.
    target_bound : float, default=inf
        Bound on the absolute value of the targets, or on their norm if there are several: 1 if y has a public range, else inf.
    max_sample_weight : float or None, default=None
        Public bound on the weights of records; None if records have none. Then every sum over records, over the bound, is that of
        terms times weights in [0, 1].
    n_records : int or None, default=None
        Public number of records, if ``n_samples`` is a released total weight (see `weighing`); None if it is that number.
    n_stored : int or None, default=None
        Upper bound on the number of nonzero entries of a row, if it is public; it sets the cost of a pass over a sparse table.
    faintness : float, default=0.0
        Noise of the whole fit over the largest at which anything is learned about the columns; from 1 on, solvers that can fit a
        constant alone do.
    extra : ExtraFacts, default=NO_EXTRA
        Public facts of one kind of fit.
    around : ExtraFacts, default=NO_EXTRA
        The releases before and after all others, such as those of a link.
    """

    n_samples: int
    n_features: int
    loss: Loss
    budget: Budget
    data_norm: float
    intercept_scaling: float
    class_weight: tuple[float, ...] | None = None
    alpha: float = 0.0
    clip_norm: float = math.inf
    l1_ratio: float = 0.0
    constraint: Constraint | None = None
    feature_bounds: float | tuple[float, ...] | None = None
    target_bound: float = math.inf
    max_sample_weight: float | None = None
    n_records: int | None = None
    n_stored: int | None = None
    faintness: float = 0.0
    extra: ExtraFacts = NO_EXTRA
    around: ExtraFacts = NO_EXTRA

    @property
    def offers(self) -> frozenset[str]:
        """Properties of the problem that solvers may need, by their names in ``NEEDS``."""
        facts = {
            "smooth": self.loss.smoothness < math.inf,
            "kinked": self.loss.smoothness == math.inf and self.loss.bounded,
            "convex": self.loss.convex,
            "bounded": self.loss.bounded,
            "curved": self._curved and self.loss.n_outputs == 1,
            "separable": self.constraint is None or isinstance(self.constraint, Box),
            "plain": self.constraint is None and not self.l1_ratio,
            "mirror": not self.intercept_scaling and hasattr(self.constraint, "mirror_map"),
            "vertices": not self.intercept_scaling and hasattr(self.constraint, "vertices"),
            "classes": self.loss.targets == "classes",
            "binary": self.loss.targets == "classes" and self.loss.n_outputs == 1,
            "numbers": self.loss.targets == "numbers",
            "squared": getattr(self.loss, "quadratic", False),
            "least_squares": getattr(self.loss, "least_squares", False),
            "inference": self._has_inference,
            "pointwise": True,
        }
        return frozenset(name for name, holds in facts.items() if holds)

    @cached_property
    def _curved(self) -> bool:
        """Whether the loss has second derivatives; to look for the methods of a protocol is slow."""
        return isinstance(self.loss, CurvedLoss)

    @property
    def _has_inference(self) -> bool:
        """Whether there is a loss of bounded slope with the same minimiser in the population."""
        return type(self.loss) in (Logistic, Squared) and self.class_weight is None

    @property
    def n_columns(self) -> int:
        """Number of columns of the table that the estimator got."""
        return self.extra.n_columns or self.n_features

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the coefficients inside solvers: one row per feature, then one for the intercept; one column per output.

        An intercept is the coefficient of one more feature, the constant ``intercept_scaling`` that is appended to every row of
        the table. It stands in row ``n_features``, the last one, of every array that solvers and queries call ``coef``, and its
        value there is ``intercept_ / intercept_scaling``. Algorithms treat it as any other coefficient. Penalty and constraint
        exclude it: `penalty_gradient`, `prox` and `project` act on the rows before it (``Solver.penalizes_intercept`` marks the
        exceptions). `unpack` splits it off at the end of a fit. With ``intercept_scaling=0`` there is neither a constant nor a
        row.
        """
        return self.n_features + bool(self.intercept_scaling), self.loss.n_outputs

    @property
    def row_norm(self) -> float:
        """Bound on the norm of a row with the intercept's constant."""
        return float(np.hypot(self.data_norm, self.intercept_scaling))

    @property
    def max_weight(self) -> float:
        """Largest factor of a record's loss."""
        return max(self.class_weight or (1.0,))

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of one record's gradient, clipped or not."""
        return self.max_weight * self.loss.lipschitz * self.row_norm

    @property
    def smoothness(self) -> float:
        """Lipschitz constant of one record's gradient."""
        return self.max_weight * self.loss.smoothness * self.row_norm**2

    @cached_property
    def signal_to_noise(self) -> float:
        """Largest sum of clipped gradients divided by the noise of the solver's budget, ``mu n / k``; ``inf`` without noise.

        mu is the Gaussian-DP parameter of the budget that a release before the solver leaves; k is 2 under ``replace_one`` and 1
        under ``zero_out``.
        """
        share = self.around.share * self.extra.share * (1 - self.total_share)
        return signal_to_noise(self.budget, self.n_samples) * math.sqrt(share)

    @cached_property
    def total_share(self) -> float:
        """Share of the squared Gaussian-DP parameter for the total weight of the records; 0 without sample weights."""
        if self.max_sample_weight is None:
            return 0.0
        signal = signal_to_noise(self.budget, self.planned.n_samples)
        return min(max((TOTAL_SCALE / signal) ** 2, LEAST_FOR_TOTAL), MOST_FOR_TOTAL)

    @cached_property
    def planned(self) -> "Problem":
        """The problem with the public number of records, which decides what is released."""
        return self if self.n_records is None else replace(self, n_samples=self.n_records, n_records=None)

    def weighing(self, total: float) -> "Problem":
        """Return the problem of the weighted records, from their released total weight over the bound.

        Their number is the total: each record counts as a part of one. Answers over this number are means over the weighted
        records, and `signal_to_noise` has their noise. What depends on the total is post-processing; the schedule follows
        from `planned`.

        Parameters
        ----------
        total : float
            The noisy total. It counts as at least its standard deviation, and at least 1, and as at most the number of records.

        Returns
        -------
        Problem
            The problem for the solver.
        """
        # Standard deviation of the noise of the total with the whole budget, then with its share of it.
        deviation = self.n_samples / (
            signal_to_noise(self.budget, self.n_samples) * Gradient.relative_sensitivity[self.budget.adjacency]
        )
        least = max(deviation / math.sqrt(self.total_share), 1.0)
        number = min(max(total, least), self.n_samples)
        return replace(self, n_samples=number, n_records=self.n_samples)  # type: ignore[arg-type]  # what weighs need be no integer

    @property
    def start(self) -> np.ndarray:
        """Coefficients to start from, of shape `shape`: the best constant model if all classes were equally frequent.

        This is zero. With class weights and the logistic loss, the intercept is the logarithm of the ratio of the weights.
        """
        start = np.zeros(self.shape)
        if self.class_weight is not None and self.intercept_scaling:
            start[-1] = cast(ClassLoss, self.loss).constant(np.array(self.class_weight)) / self.intercept_scaling
        return self.project(start)

    @property
    def penalty(self) -> ElasticNet:
        """Penalty on all coefficients but the intercept."""
        return ElasticNet(self.alpha, self.l1_ratio)

    def penalty_gradient(self, coef: np.ndarray) -> np.ndarray:
        """Return the gradient of the penalty's smooth part at coefficients of the shape `shape`; zero for the intercept."""
        gradient = self.penalty.gradient(coef)
        gradient[self.n_features :] = 0.0
        return gradient

    def prox(self, coef: np.ndarray, step_size: float) -> np.ndarray:
        """Return the proximal step of the whole penalty and the constraint, from coefficients of the shape `shape`.

        Exact for a penalty without l1 part under any constraint, and for any penalty without constraint.
        """
        moved = coef.copy()
        moved[: self.n_features] = self.penalty.prox(coef[: self.n_features], step_size)
        return self.project(moved)

    def l1_prox(self, coef: np.ndarray, step_size: float) -> np.ndarray:
        """Return the proximal step of the l1 part of the penalty and of the constraint, which `penalty_gradient` leaves out."""
        moved = coef.copy()
        moved[: self.n_features] = self.penalty.l1_prox(coef[: self.n_features], step_size)
        return self.project(moved)

    def project(self, coef: np.ndarray) -> np.ndarray:
        """Return the nearest coefficients of the shape `shape` that satisfy the constraint."""
        if self.constraint is None:
            return coef
        inside = coef.copy()
        weights = coef[: self.n_features]
        inside[: self.n_features] = self.constraint.project(weights.ravel()).reshape(weights.shape)
        return inside

    def unpack(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Split coefficients of the shape `shape` into ``coef_``, (n_outputs, n_features), and ``intercept_``, (n_outputs,)."""
        weights = np.ascontiguousarray(coef[: self.n_features].T)
        if not self.intercept_scaling:
            return weights, np.zeros(self.loss.n_outputs)
        with np.errstate(over="ignore"):
            intercept = self.intercept_scaling * coef[self.n_features]
        if not np.isfinite(intercept).all():
            raise ValueError(
                "The intercept is beyond the range of float64: the iteration diverged; expected a smaller step size."
            )
        return weights, intercept


@dataclass(frozen=True)
class SolverResult:
    """Hold what a solver returns, computed from releases and public facts only.

    Parameters
    ----------
    coef : ndarray of shape ``problem.shape``
        The released model, its intercept in the last row (see `Problem.shape`).
    n_iter : int or None
        Number of steps, which is public; None if there is no such number.
    uncertainty : Uncertainty or None, default=None
        Data from which intervals are computed.
    dual : ndarray of shape (n_dual,) or None, default=None
        Dual variables of a saddle problem.
    noise : CoefficientNoise or None, default=None
        Noise of the coefficients, if it is known.
    moments : ReleasedMoments or None, default=None
        Moments of the features and targets, if they were released.
    kept : ReleasedMoments or None, default=None
        All moments of the features that were released, also by solvers that leave ``moments`` out.
    inference : Inference or None, default=None
        Covariance of the coefficients, if the solver releases it.
    residual_scale : float or None, default=None
        Estimate of the standard deviation of what the model leaves of the targets, if the releases tell it.
    extra : ExtraFacts, default=NO_EXTRA
        Facts of one kind of fit, which its estimator adds.
    around : ExtraFacts, default=NO_EXTRA
        The same of what was released before and after all else.
    """

    coef: np.ndarray
    n_iter: int | None
    uncertainty: Uncertainty | None = None
    dual: np.ndarray | None = None
    noise: CoefficientNoise | None = None
    moments: ReleasedMoments | None = None
    kept: ReleasedMoments | None = None
    inference: Inference | None = None
    residual_scale: float | None = None
    extra: ExtraFacts = NO_EXTRA
    around: ExtraFacts = NO_EXTRA

    def scaled(self, factor: float, variance: float) -> "SolverResult":
        """Return the model whose coefficients are multiplied by a factor with a relative variance."""
        noise = None if self.noise is None else self.noise.scaled(factor, variance)
        return replace(self, coef=factor * self.coef, noise=noise)


class Solver(BaseEstimator, ABC):
    """Base of all solvers: one published algorithm, its parameters and their public defaults.

    Attributes
    ----------
    name : str
        Value of ``solver=`` that selects it.
    title : str
        One-line description for the report.
    needs : frozenset of str
        Properties that the algorithm needs, from `Problem.offers`.
    pure : bool
        Whether it supports ``delta=0``.
    penalizes_intercept : bool
        Whether the penalty includes the intercept.
    takes_weights : bool
        Whether it supports sample weights: all its answers are linear in sums over the records, and it divides them by
        ``problem.n_samples``, which then is a released number, and plans with ``problem.planned``.
    uses_bounds : bool
        Whether the algorithm uses the bounds of single features; otherwise estimators scale the columns by them.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset({"pointwise"})
    pure: ClassVar[bool] = False
    penalizes_intercept: ClassVar[bool] = False
    takes_weights: ClassVar[bool] = False
    uses_bounds: ClassVar[bool] = False

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_hiding(self, name)
        super().__setattr__(name, value)

    def default_alpha(self, problem: Problem) -> float:
        """Return the strength of the penalty for ``alpha=None``: ``1 / n_samples``, scikit-learn's ``C=1``."""
        return 1 / problem.n_samples

    def default_clip_norm(self, problem: Problem) -> float:
        """Return the clip norm for ``clip_norm=None``: the largest norm that a gradient can have, so nothing is clipped."""
        return problem.lipschitz

    def remark(self, problem: Problem) -> str:
        """Return a remark for the report, from public facts; usually empty."""
        return ""

    def outlook(self, problem: Problem) -> tuple[float, str]:
        """Return 1 or more if public facts tell that few coefficients have an interval, and what they tell; usually empty."""
        return 0.0, ""

    def noise_level(self, problem: Problem) -> float | None:
        """Return the noise divided by the level at which it drowns the signal; None to take that of the gradients."""
        return None

    def title_for(self, problem: Problem) -> str:
        """Return the line for the report of a fit: ``title`` without the stages that these public facts skip."""
        return self.title

    @abstractmethod
    def schedule(self, problem: Problem) -> Schedule:
        """Return all releases of the fit, from public facts only."""

    @abstractmethod
    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the algorithm; ``ask`` answers queries with noise, ``rng`` is for public choices only."""
