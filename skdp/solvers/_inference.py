"""Compute confidence intervals and tests for linear combinations of released coefficients, from releases alone."""

import importlib
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy import stats

from skdp.privacy.queries import Standardization

# Factor of all standard errors, for what a linear recursion leaves out. Measured on generated tables of 5000 records; a larger
# one makes intervals wider.
GUARD = 1.05
# Degrees of freedom of the computed noise: 1 where all of it is in directions that noise hides, and VISIBLE more where none is.
# Measured on the same tables; fewer make intervals wider.
VISIBLE = 19.0
# Number of draws of the largest deviation of many combinations: its 95 % quantile has an error of about 1 %.
DRAWS = 4000
# Largest number of degrees of freedom: a normal law in place of a t law.
MOST_FREEDOM = 1e6
# Number of combinations that are worked out at a time. A choice: 200 000 rows of 50 features take 60 MB beside their own.
BLOCK = 4096
# Share of a variance from hidden directions beyond which a combination counts as not identified. A choice.
MOST_HIDDEN = 0.5
# The same share of its squared length in the geometry. What a hidden direction adds to a combination is not known, so that the
# variance may say too little of it. Chosen where all levels of a category are features (20 columns, 5000 records, epsilon 1, 60
# samples): intervals of what is estimable by the variance alone held .89, with .2, .1 and .05 .89, .91 and .96.
MOST_ASIDE = 0.05
# Largest share of a variance from hidden directions and from what they may add to others. A choice: with more, intervals may be
# twice too wide.
MOST_FLAT = 0.75


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Estimates of m linear combinations of coefficients, with intervals and tests of the value 0.

    Parameters
    ----------
    names : ndarray of str of shape (m,)
        Name of each combination.
    estimate, standard_error : ndarray of shape (m,)
        Values and standard errors, in the units of X and y; nan and infinite where a combination is not estimable.
    noise_share : ndarray of shape (m,)
        Share of the variance that is due to the privacy noise, in [0, 1].
    df : ndarray of shape (m,)
        Degrees of freedom of the t law.
    statistic, pvalue : ndarray of shape (m,)
        Estimates over standard errors, and two-sided p-values; nan where a combination is not estimable.
    lower, upper : ndarray of shape (m,)
        Ends of the intervals; infinite where a combination is not estimable.
    estimable : ndarray of bool of shape (m,)
        False where the budget does not identify a combination.
    event : object, default=None
        Of a classifier: the class with the odds.
    """

    names: np.ndarray
    estimate: np.ndarray
    standard_error: np.ndarray
    noise_share: np.ndarray
    df: np.ndarray
    statistic: np.ndarray
    pvalue: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    estimable: np.ndarray
    event: Any = None

    def of_event(self, event: Any, negated: bool) -> "Contrasts":
        """Return the same for the log-odds of a named class, which are negated if the coefficients are those of the other one."""
        if not negated:
            return replace(self, event=event)
        values = {"estimate": -self.estimate, "statistic": -self.statistic, "lower": -self.upper, "upper": -self.lower}
        return replace(self, event=event, **values)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, one row per combination, with the fields as columns."""
        left_out = ("names", "event") if self.event is None else ("names",)
        columns = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in left_out}
        return importlib.import_module("pandas").DataFrame(columns, index=self.names)


@dataclass(frozen=True)
class WaldTest:
    """Test that several linear combinations of coefficients are 0 at once, by an F law.

    Parameters
    ----------
    statistic : float
        F statistic; nan if a combination is not estimable.
    df : tuple of float
        Degrees of freedom of numerator and denominator.
    pvalue : float
        Probability of a larger statistic under the hypothesis.
    estimable : bool
        Whether the budget identifies all combinations.
    """

    statistic: float
    df: tuple[float, float]
    pvalue: float
    estimable: bool


@dataclass(frozen=True, eq=False)
class Inference:
    """Coefficients in a geometry of earlier releases, with the parts of their covariance.

    The covariance of a linear combination has three parts: the noise of the steps, which replicates of them show; the noise of
    what came before them, which the replicates share; and the sampling of the records.

    Parameters
    ----------
    geometry : Standardization
        Map from rows to coordinates.
    estimates : ndarray of shape (k,)
        Mean of the replicates.
    replicates : ndarray of shape (n_replicates, k)
        Results of descents with fresh noise.
    directions : ndarray of shape (k, k)
        Orthonormal directions in which errors count as independent, one per column.
    shown : ndarray of bool of shape (k,)
        Directions whose curvature stands out from the noise.
    own, common, flat : ndarray of shape (k,)
        Variance of the mean of the replicates; of what they share; and of what a direction that may be flat adds to one that
        shows, because noise turns eigenvectors.
    step_noise : ndarray of shape (k, k)
        Covariance from the noise of the Newton step.
    sampling : ndarray of shape (k, k)
        Covariance from the sampling of the records.
    unlearned : Unlearned
        What the steps leave undone of a linear combination.
    identified : bool
        Whether anything is: False where, for example, noise hides whether there are records of both classes.
    offset, unit : float, default=0.0, 1.0
        A raw prediction t means ``offset + unit * t`` in the units of the targets.
    centre_noise : float, default=0.0
        Standard deviation of the noise of each coordinate of the centre of the geometry.
    """

    geometry: Standardization
    estimates: np.ndarray
    replicates: np.ndarray
    directions: np.ndarray
    shown: np.ndarray
    own: np.ndarray
    common: np.ndarray
    flat: np.ndarray
    step_noise: np.ndarray
    sampling: np.ndarray
    unlearned: Any
    identified: bool = True
    offset: float = 0.0
    unit: float = 1.0
    centre_noise: float = 0.0

    def with_noise(self, factor: float) -> "Inference":
        """Return the same estimates with standard deviations of the computed noise times a factor."""
        squared = factor**2
        parts = {name: squared * getattr(self, name) for name in ("own", "common", "flat", "step_noise")}
        return replace(self, **parts)

    def contrasts(
        self, rows: np.ndarray, constant: np.ndarray, names: np.ndarray, level: float, kind: str, beside: Any = 0.0
    ) -> Contrasts:
        """Return estimates, intervals and tests of linear combinations of the coefficients.

        Parameters
        ----------
        rows : ndarray of shape (m, n_features)
            Factors of the coefficients of the features, in the user's units.
        constant : ndarray of shape (m,)
            Factors of the intercept.
        names : ndarray of str of shape (m,)
            Names of the combinations.
        level : float
            Probability that an interval holds its combination, in (0, 1).
        kind : {"confidence", "noise"}
            "noise" leaves out the sampling of the records.
        beside : ndarray of shape (m,) or float, default=0.0
            Squares of what else an estimate may be off by, in the units of y or log-odds.

        Returns
        -------
        Contrasts
            One entry per combination.
        """
        beside = np.broadcast_to(beside, len(rows))
        if len(rows) > BLOCK:
            blocks = (slice(start, start + BLOCK) for start in range(0, len(rows), BLOCK))
            found = [self.contrasts(rows[b], constant[b], names[b], level, kind, beside[b]) for b in blocks]
            arrays = [field.name for field in fields(Contrasts) if field.name != "event"]
            return Contrasts(*(np.concatenate([getattr(each, name) for each in found]) for name in arrays))
        sizes = np.maximum(np.abs(rows).max(axis=1, initial=0.0), np.abs(constant))
        sizes[sizes == 0] = 1.0  # squares of rows of this length neither overflow nor vanish
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            rows, constant = rows / sizes[:, None], constant / sizes
            inner = self._inner(rows, constant)
            noise, sampling, df, estimable = self._parts(inner)
            # Variances are for scaled rows in the geometry; `sizes` and `unit` take them back to the user's units.
            total = noise + sampling * (kind == "confidence") + np.square(np.sqrt(beside) / (self._guard * self.unit * sizes))
            errors = sizes * (self._guard * self.unit * np.sqrt(total))
            estimate = sizes * (self.unit * (inner @ self.estimates) + self.offset * constant)
            freedom = _of_total(df, noise, total)
            # A combination without a finite interval is unknown, as one that is not estimable.
            reach = stats.t.isf((1 - level) / 2, freedom) * errors
            known = estimable & np.isfinite(np.abs(estimate) + reach)
        statistic = np.divide(estimate, errors, where=known & (errors > 0), out=np.full(len(errors), np.nan))
        half = np.where(known, reach, np.inf)
        share = np.divide(noise, total, where=total > 0, out=np.zeros(len(noise)))
        return Contrasts(
            names,
            np.where(known, estimate, np.nan),
            np.where(known, errors, np.inf),
            np.where(known, share, 1.0),
            freedom,
            statistic,
            2 * stats.t.sf(np.abs(statistic), freedom),
            np.where(known, estimate, 0.0) - half,
            np.where(known, estimate, 0.0) + half,
            known,
        )

    def wald(self, rows: np.ndarray, constant: np.ndarray) -> WaldTest:
        """Return the test that all of some independent linear combinations are 0; arguments as for `contrasts`."""
        if not len(rows):
            return WaldTest(np.nan, (0.0, np.inf), np.nan, False)
        inner = self._inner(rows, constant)
        covariance, freedom, estimable = self._jointly(inner, "confidence")
        degrees = (float(len(rows)), freedom)
        if not estimable.all():
            return WaldTest(np.nan, degrees, np.nan, False)
        values = inner @ self.estimates + self.offset / self.unit * constant
        # F = v' S^-1 v / m for m values v with the covariance S.
        statistic = float(values @ np.linalg.solve(covariance, values)) / len(rows)
        return WaldTest(statistic, degrees, float(stats.f.sf(statistic, *degrees)), True)

    def joint_quantile(self, rows: np.ndarray, level: float, kind: str) -> float:
        """Return how many standard errors hold all of some linear combinations at once; arguments as for `contrasts`.

        The law is a t law of many dimensions, by simulation; combinations that are not estimable are left out.
        """
        inner = self._inner(rows, np.zeros(len(rows)))
        covariance, freedom, estimable = self._jointly(inner, kind)
        varies = estimable & (np.diag(covariance) > 0)
        if not varies.any():
            return float(stats.norm.ppf((1 + level) / 2))
        covariance = covariance[np.ix_(varies, varies)]
        # Draws of the largest |t| of many dimensions: correlated normals over the root of one chi-squared number per draw.
        values, directions = np.linalg.eigh(covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))))
        rng = np.random.default_rng(0)  # no privacy noise: a simulation of it
        roots = directions * np.sqrt(np.maximum(values, 0.0))
        draws = np.abs(roots @ rng.normal(size=(len(values), DRAWS))).max(axis=0, initial=0.0)
        return float(np.quantile(draws / np.sqrt(rng.chisquare(freedom, DRAWS) / freedom), level))

    def _jointly(self, inner: np.ndarray, kind: str) -> tuple[np.ndarray, float, np.ndarray]:
        """Return the covariance of linear combinations, degrees of freedom of all, and which are estimable."""
        noise, sampling, df, estimable = self._parts(inner)
        sampling = sampling * (kind == "confidence")
        # The computed covariance, scaled so that its diagonal is that of `_parts`, where replicates have a say.
        turned = inner @ self.directions
        computed = (turned * (self.own + self.common + self.flat)) @ turned.T + inner @ self.step_noise @ inner.T
        covariance = computed + (kind == "confidence") * inner @ self.sampling @ inner.T
        stated = (noise + sampling) / np.maximum(np.diag(covariance), 1e-300)  # with what replicates add
        covariance = self._guard**2 * covariance * np.sqrt(np.outer(stated, stated))
        return covariance, float(_of_total(df, noise, noise + sampling).min()), estimable

    @property
    def _guard(self) -> float:
        """Factor of standard errors: 1 without noise."""
        return GUARD if self.own.any() else 1.0

    def _inner(self, rows: np.ndarray, constant: np.ndarray) -> np.ndarray:
        """Return the factors of the coefficients in the geometry."""
        scale, centre = self.geometry.scale, self.geometry.centre
        moved = rows - constant[:, None] * centre
        inner = moved @ scale if scale.ndim > 1 else moved * scale
        return np.column_stack([inner, constant]) if self.geometry.intercept else inner

    def _parts(self, inner: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return the variances from noise and from sampling, degrees of freedom of the former, and what is estimable."""
        # 1. Noise of the descents: as computed, and as the replicates show it; both estimates weigh by their degrees of freedom.
        squares = np.square(inner @ self.directions)
        own, count = squares @ self.own, len(self.replicates)
        shown = (squares[:, self.shown] @ self.own[self.shown]) / np.maximum(own, 1e-300)
        freedom = 1 + VISIBLE * np.square(shown)
        pooled = own
        if count > 1:
            spread = np.var(self.replicates @ inner.T, axis=0, ddof=1) / count
            pooled, freedom = (freedom * own + (count - 1) * spread) / (freedom + count - 1), freedom + count - 1
        # 2. Before the descents: the largest of what the pilot leaves, what the noise of the bread does, and what is left undone.
        undone = self.unlearned.along(inner, self.estimates)
        before = np.max([squares @ self.common, ((inner @ self.step_noise) * inner).sum(axis=1), undone], axis=0)
        # 3. Sampling. It counts more where the replicates differ by more than computed.
        sampling = ((inner @ self.sampling) * inner).sum(axis=1)
        sampling = sampling * np.sqrt(np.maximum(1.0, pooled / np.maximum(own, 1e-300)))
        flat = squares @ self.flat
        noise = pooled + before + flat
        # 4. What is estimable: of length and variance, hidden directions have a small part only.
        hidden = squares[:, ~self.shown] @ (self.own + self.common)[~self.shown] + undone
        aside = squares[:, ~self.shown].sum(axis=1) <= MOST_ASIDE * squares.sum(axis=1)
        narrow = (hidden <= MOST_HIDDEN * (noise + sampling)) & (hidden + flat <= MOST_FLAT * (noise + sampling))
        estimable = aside & narrow & self.identified
        # Degrees of freedom of the whole noise, of which only the pooled part is estimated (Welch and Satterthwaite).
        share = np.divide(pooled, noise, where=noise > 0, out=np.ones(len(noise)))
        return noise, sampling, freedom / np.maximum(np.square(share), 1 / MOST_FREEDOM), estimable


def _of_total(freedom: np.ndarray, part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Return the degrees of freedom of a total variance of which a part is estimated (Welch and Satterthwaite)."""
    share = np.divide(part, total, where=total > 0, out=np.ones(len(part)))
    return np.clip(freedom / np.maximum(np.square(share), 1 / MOST_FREEDOM), 1, MOST_FREEDOM)
