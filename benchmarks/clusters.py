"""Compare private k-means with diffprivlib's and with scikit-learn's, on mixtures and public tables, and measure its time."""

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans

from benchmarks.frames import load_frame
from benchmarks.noise import noise_of
from benchmarks.resources import IN_TURN, in_turn
from benchmarks.tables import data_directory, existing
from benchmarks.writing import made_with, row, write_json
from skdp import DPKMeans
from skdp.preprocessing import from_schema
from skdp.privacy.budget import ADJACENCIES

__all__ = ["CASES", "compare"]

EPSILONS = (0.1, 0.5, 1.0, 3.0)
DEVELOPED = "development"  # cases on which constants of DPKMeans were set
COUNTED = (500, 5000, 50_000)
TIMED = ((50_000, 20, 8), (100_000, 20, 8), (300_000, 14, 10))
ABOUT = """\
# Clusters

Sum of squared distances from the nearest centre over that of scikit-learn's `KMeans(n_init=3)`; "one centre" is the same of the
exact mean. Columns are scaled to [-1, 1] by public bounds. Medians of {repeats} fits; delta = 1 / n**2, diffprivlib has pure
epsilon and gets the same bounds. Mixtures have centres uniform in [-.8, .8], weights by a Dirichlet law with parameter 5,
and spherical normal noise, such that one centre has the ratio that the table says, but for clipped rows. Cases marked
"development" set constants of `DPKMeans`; the others were looked at once. "LSH" is Google's clustering of
[differential-privacy](https://github.com/google/differential-privacy), measured elsewhere on other mixtures of the same shape and
ratio (add/remove neighbours). `python -m benchmarks clusters` writes this page.
"""
MIXED = """
## Mixed columns

Sum of squares within the clusters of the records, in the rows that the public schema prepares, over that of clusters
of scikit-learn in these rows, with given and with learned columns, which have units of their own. "One centre" is the mean.
"""
TIMES = """
## Time

`DPKMeans` at epsilon 1, and scikit-learn's `KMeans(n_init=1)`, on mixtures.
"""
COUNTS = """
## Counts

Share of {counts} noisy counts, of {fits} fits per cell with four clusters, that are within 1.96 of their standard deviations from
the number of the records that are nearest to the published centre.
"""
LSH = {
    "mixture 0": (17.7, 10.8, 10.5, 7.5),
    "mixture 1": (29.8, 9.2, 4.7, 3.0),
    "mixture 2": (10.2, 3.3, 2.8, 2.9),
    "mixture 3": (15.9, 6.4, 5.3, 2.2),
    "mixture 4": (5.6, 2.7, 1.8, 1.6),
    "mixture 5": (5.2, 3.3, 2.7, 1.7),
    "mixture 6": (2.8, 1.8, 1.5, 1.4),
    "mixture 7": (4.8, 2.5, 2.1, 1.5),
    "adult": (2.2, 1.4, 1.3, 1.3),
}


@dataclass(frozen=True)
class Case:
    """A table with rows in [-1, 1], and a number of clusters."""

    rows: Callable[[], np.ndarray]
    n_clusters: int
    status: str = ""


def mixture(n: int, d: int, k: int, ratio: float, seed: int) -> np.ndarray:
    """Return a mixture in which one centre has a ratio of the sum of squares of k centres.

    Parameters
    ----------
    n, d, k : int
        Numbers of rows, columns and clusters.
    ratio : float
        The ratio, above 1, but for rows that are clipped to [-1, 1].
    seed : int
        Of all random numbers.

    Returns
    -------
    ndarray of shape (n, d)
        Rows in [-1, 1].
    """
    rng = np.random.default_rng(seed)
    centres, weights = rng.uniform(-0.8, 0.8, (k, d)), rng.dirichlet(np.full(k, 5.0))
    rows = centres[rng.choice(k, n, p=weights)]
    between = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
    return np.clip(rows + np.sqrt(between / (ratio - 1) / d) * rng.normal(size=(n, d)), -1, 1)


def _scaled(X: np.ndarray, bounds: Any) -> np.ndarray:
    low, high = np.broadcast_to(np.array(bounds, dtype=float), (X.shape[1], 2)).T
    return (np.clip(X, low, high) - (low + high) / 2) / ((high - low) / 2)


def _of_frame(name: str, bounds: dict[str, tuple[float, float]], **read: Any) -> np.ndarray:
    frame = pd.read_csv(existing(data_directory() / name), **read)[list(bounds)].dropna()
    return _scaled(frame.to_numpy(float), list(bounds.values()))


def _of_arrays(name: str, bounds: Any, n_rows: int | None = None, n_columns: int | None = None) -> np.ndarray:
    with np.load(existing(data_directory() / f"{name}.npz")) as stored:
        return _scaled(stored["X"][:n_rows, :n_columns].astype(float), bounds)


ADULT = {"age": (0, 120), "fnlwgt": (0, 2e6), "education-num": (1, 16), "capital-gain": (0, 1e5), "capital-loss": (0, 1e4)}
ADULT |= {"hours-per-week": (0, 100)}
BANK = {"age": (0, 120), "balance": (-1e4, 1.2e5), "day": (1, 31), "duration": (0, 5000), "campaign": (0, 100)}
BANK |= {"pdays": (-1, 1000), "previous": (0, 300)}
CALIFORNIA = {"longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 60), "total_rooms": (0, 5e4)}
CALIFORNIA |= {"total_bedrooms": (0, 1e4), "population": (0, 5e4), "households": (0, 1e4), "median_income": (0, 20)}
BIKE = {"mnth": (1, 12), "hr": (0, 23), "weekday": (0, 6), "temp": (0, 1), "atemp": (0, 1), "hum": (0, 1), "windspeed": (0, 1)}
COVERTYPE = [(0, 4000), (0, 360), (0, 90), (0, 1500), (-300, 700), (0, 7500), (0, 255), (0, 255), (0, 255), (0, 7500)]
MIXTURES = {
    "mixture 0": (1000, 2, 3, 13.1),
    "mixture 1": (10_000, 2, 8, 48.0),
    "mixture 2": (100_000, 2, 20, 128.0),
    "mixture 3": (1000, 10, 5, 5.9),
    "mixture 4": (10_000, 10, 5, 5.8),
    "mixture 5": (10_000, 10, 20, 7.2),
    "mixture 6": (100_000, 10, 20, 7.2),
    "mixture 7": (10_000, 50, 10, 4.4),
    "mixture 8": (100_000, 50, 10, 4.4),
    "mixture 9": (100_000, 50, 20, 2.7),
    "small mixture": (300, 3, 3, 8.0),
    "large mixture": (300_000, 20, 10, 5.0),
}
SET = ("mixture 0", "mixture 1", "mixture 3", "mixture 4", "mixture 5", "mixture 7")
#: All cases by name.
CASES: dict[str, Case] = {
    name: Case(partial(mixture, n, d, k, ratio, 1000 + 10 * place), k, DEVELOPED if name in SET else "")
    for place, (name, (n, d, k, ratio)) in enumerate(MIXTURES.items())
}
CASES |= {
    "adult": Case(partial(_of_frame, "adult.csv.gz", ADULT), 5, DEVELOPED),
    "bank": Case(partial(_of_frame, "bank_full.csv.gz", BANK), 5),
    "california": Case(partial(_of_frame, "california_housing.csv.gz", CALIFORNIA), 5),
    "covertype": Case(partial(_of_arrays, "covertype_subset", COVERTYPE, None, 10), 8),
    "mammography": Case(partial(_of_arrays, "mammography", (-20, 20)), 5),
    "mnist10k": Case(partial(_of_arrays, "mnist_train", (0, 255), 10_000), 10),
    "bike": Case(partial(_of_frame, "bike_sharing_hour.csv.gz", BIKE), 6),
    "ijcnn1": Case(partial(_of_arrays, "ijcnn1", (-1, 1)), 6),
}


def squares(rows: np.ndarray, centres: np.ndarray) -> float:
    """Return the sum of squared distances from the nearest centre.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Rows.
    centres : ndarray of shape (k, d)
        Centres.

    Returns
    -------
    float
        The sum.
    """
    total = 0.0
    for start in range(0, len(rows), 20_000):
        block = rows[start : start + 20_000]
        apart = np.square(block).sum(axis=1) - 2 * centres @ block.T + np.square(centres).sum(axis=1)[:, None]
        total += float(np.maximum(apart.min(axis=0), 0).sum())
    return total


def _ours(rows: np.ndarray, k: int, epsilon: float, seed: int, adjacency: str) -> np.ndarray:
    with noise_of(seed):
        model = DPKMeans(k, epsilon=epsilon, adjacency=adjacency, feature_bounds=1.0, random_state=seed).fit(rows)
    return np.asarray(model.cluster_centers_)


def _theirs(rows: np.ndarray, k: int, epsilon: float, seed: int) -> np.ndarray:
    from diffprivlib import models

    bounds = (-np.ones(rows.shape[1]), np.ones(rows.shape[1]))
    return np.asarray(models.KMeans(k, epsilon=epsilon, bounds=bounds, random_state=seed).fit(rows).cluster_centers_)


def _lines(name: str, repeats: int, results: list[dict[str, Any]]) -> list[str]:
    case = CASES[name]
    rows, k = case.rows(), case.n_clusters
    best = KMeans(k, n_init=3, random_state=0).fit(rows).inertia_
    one = squares(rows, rows.mean(axis=0)[None]) / best
    fits: dict[str, Callable[..., np.ndarray]] = {f"DPKMeans, {a}": partial(_ours, adjacency=a) for a in ADJACENCIES}
    if importlib.util.find_spec("diffprivlib"):
        fits["diffprivlib"] = _theirs
    lines, head = [], [name, case.status, f"{len(rows)} x {rows.shape[1]}", str(k), f"{one:.1f}"]
    for model, fit in fits.items():
        ratios = [median(squares(rows, fit(rows, k, e, seed)) / best for seed in range(repeats)) for e in EPSILONS]
        lines.append(row([*head, model, *(f"{ratio:.2f}" for ratio in ratios)]))
        results.append({"case": name, "model": model, "one": one, "ratios": dict(zip(map(str, EPSILONS), ratios, strict=True))})
        print(lines[-1], flush=True)
    return lines + ([row([*head, "LSH", *map(str, LSH[name])])] if name in LSH else [])


def _within(rows: np.ndarray, labels: np.ndarray) -> float:
    centres = np.array([rows[labels == label].mean(axis=0) for label in np.unique(labels)])
    return float(np.square(rows - centres[np.unique(labels, return_inverse=True)[1]]).sum())


def _mixed(name: str, repeats: int, k: int = 5) -> list[str]:
    found = load_frame(name)
    frame = pd.concat([found.table.X_train, found.table.X_test])
    rows = np.asarray(from_schema(found.schema).set_output(transform="default").fit_transform(frame))
    best = _within(rows, KMeans(k, n_init=3, random_state=0).fit(rows).labels_)
    one, lines = _within(rows, np.zeros(len(rows))) / best, []
    for columns, schema in {"given": found.schema, "learned": "learn"}.items():
        for adjacency in ADJACENCIES:
            ratios = []
            for epsilon in EPSILONS:
                fits = []
                for seed in range(repeats):
                    with noise_of(seed):
                        model = DPKMeans(k, epsilon=epsilon, adjacency=adjacency, schema=schema, random_state=seed).fit(frame)
                    fits.append(_within(rows, model.predict(frame)) / best)
                ratios.append(median(fits))
            shape = f"{len(rows)} x {frame.shape[1]}"
            lines.append(row([name, shape, f"{one:.2f}", columns, adjacency, *(f"{ratio:.2f}" for ratio in ratios)]))
            print(lines[-1], flush=True)
    return lines


def _times() -> list[str]:
    lines = []
    for n, d, k in TIMED:
        models = DPKMeans(k, feature_bounds=1.0), KMeans(k, n_init=1, random_state=0)
        seconds = in_turn(models, mixture(n, d, k, 3.0, 0))
        lines.append(row([f"{n} x {d}", str(k), f"{seconds[0]:.2f}", f"{seconds[1]:.2f}", f"{seconds[0] / seconds[1]:.1f}"]))
        print(lines[-1], flush=True)
    return lines


def _coverage(repeats: int) -> list[str]:
    lines = []
    for n in COUNTED:
        heavy = np.clip(np.random.default_rng(0).standard_t(1.5, (n, 3)) / 50, -1, 1)
        for name, rows in {"mixture": mixture(n, 3, 4, 4.0, 1), "heavy tails": heavy}.items():
            for adjacency in ADJACENCIES:
                shares = []
                for epsilon in EPSILONS:
                    within = []
                    for seed in range(repeats):
                        with noise_of(seed):
                            model = DPKMeans(4, epsilon=epsilon, adjacency=adjacency, feature_bounds=1.0, random_state=seed)
                            errors = model.fit(rows).cluster_counts_ - np.bincount(model.predict(rows), minlength=4)
                        within.append(np.mean(np.abs(errors) < 1.96 * model.cluster_counts_std_))
                    shares.append(float(np.mean(within)))
                lines.append(row([name, str(n), adjacency, *(f"{share:.3f}" for share in shares)]))
                print(lines[-1], flush=True)
    return lines


def compare(cases: list[str], frames: list[str], repeats: int, out: Path) -> None:
    """Measure all cells; write clusters.json and clusters.md.

    Parameters
    ----------
    cases : list of str
        Names in `CASES`.
    frames : list of str
        Names of frames with mixed columns.
    repeats : int
        Fits per cell.
    out : Path
        Directory.
    """
    results: list[dict[str, Any]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        head = ["case", "status", "n x d", "k", "one centre", "model", *map(str, EPSILONS)]
        lines = [ABOUT.format(repeats=repeats), row(head), row(["---"] * len(head))]
        for name in cases:
            lines += _lines(name, repeats, results)
        head = ["table", "n x columns", "one centre", "columns", "adjacency", *map(str, EPSILONS)]
        lines += [MIXED, row(head), row(["---"] * len(head))]
        for name in frames:
            lines += _mixed(name, repeats)
        head = ["table", "n", "adjacency", *map(str, EPSILONS)]
        lines += [COUNTS.format(counts=40 * repeats, fits=10 * repeats), row(head), row(["---"] * len(head))]
        lines += _coverage(10 * repeats)
        head = ["n x d", "k", "DPKMeans", "KMeans", "ratio"]
        lines += [TIMES, IN_TURN, "", row(head), row(["---"] * len(head)), *_times()]
    out.mkdir(parents=True, exist_ok=True)
    write_json({**made_with(), "repeats": repeats, "results": results}, out / "clusters.json")
    (out / "clusters.md").write_text("\n".join(lines) + "\n")
