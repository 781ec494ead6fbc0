"""Populations that generate tables with any number of records, always from the same distribution."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from benchmarks.tables import Table

__all__ = ["FEATURES", "Population"]

CALIBRATION = 20_000  # number of draws that determine the intercept of a population


@dataclass(frozen=True)
class Population:
    """A population of records.

    Parameters
    ----------
    features : str
        One of ``FEATURES``.
    n_features : int
        Number of columns.
    task : {"classification", "regression"}, default="classification"
        Labels of a logistic model, or targets in [-1, 1] of a linear one.
    positive_rate : float, default=0.5
        Share of the label 1.
    signal : float, default=2.0
        Standard deviation of the log-odds; of a regression, that of its linear part over that of the rest.
    middle : float, default=0.0
        Mean of the targets of a regression.
    spread : float, default=0.3
        Standard deviation of the targets of a regression, before they are clipped to [-1, 1].
    bounded : bool, default=True
        Whether rows longer than 1 are scaled down, so that ``data_norm=1`` clips nothing.
    seed : int, default=0
        Draws the coefficients.
    """

    features: str
    n_features: int
    task: str = "classification"
    positive_rate: float = 0.5
    signal: float = 2.0
    middle: float = 0.0
    spread: float = 0.3
    bounded: bool = True
    seed: int = 0

    def draw(self, n_samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return records and targets.

        Parameters
        ----------
        n_samples : int
            Number of records.
        seed : int
            Of the draw.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Records.
        y : ndarray of shape (n_samples,)
            Labels 0 and 1, or targets in [-1, 1].
        """
        rng = np.random.default_rng((self.seed, 1, seed))
        X, score = self._scored(n_samples, rng)
        if self.task == "regression":
            part = self.signal / np.hypot(1.0, self.signal)
            rest = np.sqrt(1 - part**2) * rng.standard_normal(n_samples)
            return X, (self.middle + self.spread * (part * score + rest)).clip(-1, 1)
        return X, (self.signal * score + rng.logistic(size=n_samples) > self._threshold()).astype(int)

    def table(self, n_train: int, n_test: int, seed: int = 0) -> Table:
        """Return a training and a test part.

        Parameters
        ----------
        n_train, n_test : int
            Numbers of records.
        seed : int, default=0
            Of the draw.

        Returns
        -------
        Table
            As those of the data sets.
        """
        X, y = self.draw(n_train + n_test, seed)
        return Table(X[:n_train], y[:n_train], X[n_train:], y[n_train:], self.task)

    def _scored(self, n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Records, and their linear score, whose standard deviation is 1."""
        fixed = np.random.default_rng((self.seed, 0))
        latent = rng.standard_normal((n_samples, self.n_features))
        X = FEATURES[self.features](latent, rng, fixed)
        if self.bounded:
            X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        direction = np.random.default_rng((self.seed, 2)).standard_normal(self.n_features)
        score = latent @ (direction / np.linalg.norm(direction))
        return X, score

    def _threshold(self) -> float:
        """The threshold above which a noisy score has the label 1."""
        rng = np.random.default_rng((self.seed, 3))
        noisy = self.signal * rng.standard_normal(CALIBRATION) + rng.logistic(size=CALIBRATION)
        return float(np.quantile(noisy, 1 - self.positive_rate))


def normal(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Independent normals; a usual row has the norm 1/2."""
    return latent / (2 * np.sqrt(latent.shape[1]))


def wild(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Columns whose scales span six orders of magnitude; the longest has the size of the rows."""
    scales = 10.0 ** fixed.uniform(-6, 0, latent.shape[1])
    return latent * (scales / (2 * np.linalg.norm(scales)))


def long(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Columns whose scales span six orders of magnitude around 1: rows far longer than 1, unless they are bounded."""
    return latent * 10.0 ** fixed.uniform(-3, 3, latent.shape[1])


def short(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Rows a thousand times shorter than the norm that is stated for them."""
    return latent / (1000 * np.sqrt(latent.shape[1]))


def offset(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Rows that differ little from a mean of norm 0.8."""
    mean = fixed.standard_normal(latent.shape[1])
    return 0.8 * mean / np.linalg.norm(mean) + latent / (20 * np.sqrt(latent.shape[1]))


def correlated(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Standard deviations that fall as 1/j, in a turned basis; a usual row has the norm 1/4."""
    scales = 1.0 / np.arange(1, latent.shape[1] + 1)
    axis = fixed.standard_normal(latent.shape[1])
    axis /= np.linalg.norm(axis)
    X = latent * (scales / (4 * np.linalg.norm(scales)))
    return X - 2 * np.outer(X @ axis, axis)  # a reflection mixes all columns at little cost


def heavy(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Student's t with 2 degrees of freedom, so that some rows are much longer than the usual ones."""
    stretch = np.sqrt(2 / rng.chisquare(2, size=(len(latent), 1)))
    return latent * stretch / (4 * np.sqrt(latent.shape[1]))


def binary(latent: np.ndarray, rng: np.random.Generator, fixed: np.random.Generator) -> np.ndarray:
    """Zeros and ones; the ones are rare in most columns."""
    rates = fixed.uniform(0, 1, latent.shape[1]) ** 3 / 2
    thresholds = np.array([-NormalDist().inv_cdf(min(max(rate, 1e-6), 0.5)) for rate in rates])
    return (latent > thresholds) / (1.5 * np.sqrt(max(rates.sum(), 0.5)))


MAKERS = (normal, wild, long, short, offset, correlated, heavy, binary)
FEATURES: dict[str, Callable[[np.ndarray, np.random.Generator, np.random.Generator], np.ndarray]] = {
    make.__name__: make for make in MAKERS
}
