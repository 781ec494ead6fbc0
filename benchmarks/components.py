"""Measure principal components, beside PCA without privacy and diffprivlib's PCA."""

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA

from benchmarks.frames import load_frame
from benchmarks.noise import noise_of
from benchmarks.resources import IN_TURN, in_turn
from benchmarks.tables import data_directory, existing, read_npz
from benchmarks.writing import made_with, row, write_json
from skdp import DPPCA
from skdp.estimators._prepared_rows import prepared
from skdp.privacy.budget import ADJACENCIES

__all__ = ["TABLES", "compare"]

EPSILONS = (0.1, 0.5, 1.0, 3.0)
FEW = 3  # fits of diffprivlib per cell
THEIR_FEATURES = 60  # up to which diffprivlib needs less than a minute for a fit
SIZES = ((50_000, 20), (300_000, 20), (50_000, 100))  # records and features of the tables that are timed
ABOUT = """\
# Principal components

Variance that k private components catch over that of the best k, on the records of the fit, in units of public bounds that
were written down before looking. Medians of {repeats} fits; delta = 1 / n**2. diffprivlib's PCA has pure epsilon; it was run with
up to {most} features, {few} times, and the better of `centered=True` and `centered=False` in each cell is shown.
"found" is the mean number of components above the noise; an exclamation mark means that the fit warned before the charge. Tables
with a star set no constant; numbers in their names are those of records, drawn at random. "schema" and "learned" have all columns
of the table, numbers and categories, prepared by a public schema, or by one that is learned within the budget; the best
components are those of the same features. `python -m benchmarks components` writes this page.
"""

Bounds = dict[str, tuple[float, float]]
ADULT: Bounds = {
    **{"age": (0, 120), "fnlwgt": (0, 1.5e6), "education-num": (0, 16)},
    **{"capital-gain": (0, 1e5), "capital-loss": (0, 5000), "hours-per-week": (0, 100)},
}
BANK: Bounds = {
    **{"age": (0, 120), "balance": (-10_000, 110_000), "day": (1, 31), "duration": (0, 5000), "campaign": (0, 64)},
    **{"pdays": (-1, 900), "previous": (0, 300)},
}
CALIFORNIA: Bounds = {
    **{"longitude": (-125, -114), "latitude": (32, 42), "housing_median_age": (0, 60), "total_rooms": (0, 40_000)},
    **{"total_bedrooms": (0, 7000), "population": (0, 40_000), "households": (0, 7000), "median_income": (0, 20)},
}
BIKE: Bounds = {
    **{"hr": (0, 23), "mnth": (1, 12), "weekday": (0, 6), "temp": (0, 1), "atemp": (0, 1), "hum": (0, 1)},
    **{"windspeed": (0, 1), "casual": (0, 400), "registered": (0, 1000)},
}
COVERTYPE = [(0, 5000), (0, 360), (0, 90), (0, 2000), (-1000, 1000), (0, 10_000), (0, 255), (0, 255), (0, 255), (0, 10_000)]
SPAMBASE = [*[(0, 100)] * 54, *[(0, 10_000)] * 2, (0, 100_000)]


def of_frame(file: str, bounds: Bounds) -> tuple[np.ndarray, np.ndarray]:
    """Return columns of a file, and their bounds."""
    frame = pd.read_csv(existing(data_directory() / file))[list(bounds)].dropna()
    return frame.to_numpy(dtype=float), np.array(list(bounds.values()), dtype=float)


def of_arrays(name: str, bounds: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a table of numbers, and the bounds of its first columns, or those of all."""
    X = np.asarray(read_npz(data_directory() / f"{name}.npz")[0], dtype=float)
    X = X.reshape(len(X), -1)
    pairs = np.array(bounds, dtype=float)
    return (X, np.broadcast_to(pairs, (X.shape[1], 2))) if pairs.ndim == 1 else (X[:, : len(pairs)], pairs)


def part(read: Callable[[], tuple[np.ndarray, np.ndarray]], n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return some records of a table, drawn at random, and its bounds."""
    X, bounds = read()
    return X[np.random.default_rng(0).permutation(len(X))[:n]], bounds


def mixture() -> tuple[np.ndarray, np.ndarray]:
    """Return 300 000 records with heavy tails in 20 features, and their bounds."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, size=(300_000, 20)) * np.geomspace(1, 0.1, 20) @ np.linalg.qr(rng.normal(size=(20, 20)))[0].T
    return X, np.full((20, 2), [-10.0, 10.0])


#: X and bounds of each table, and the numbers of components that are judged; a star means that it set no constant.
TABLES: dict[str, tuple[Callable[[], tuple[np.ndarray, np.ndarray]], tuple[int, ...]]] = {
    "adult": (partial(of_frame, "adult.csv.gz", ADULT), (1, 3)),
    "bank": (partial(of_frame, "bank_full.csv.gz", BANK), (1, 3)),
    "california": (partial(of_frame, "california_housing.csv.gz", CALIFORNIA), (2, 4)),
    "mammography": (partial(of_arrays, "mammography", (-20, 20)), (2,)),
    "covertype": (partial(of_arrays, "covertype_subset", COVERTYPE), (2,)),
    "spambase": (partial(of_arrays, "spambase", SPAMBASE), (1, 5)),
    "madelon": (partial(of_arrays, "madelon", (0, 1000)), (5,)),
    "mnist10k": (partial(of_arrays, "mnist_test", (0, 255)), (2, 10)),
    "bike *": (partial(of_frame, "bike_sharing_hour.csv.gz", BIKE), (2, 4)),
    "ijcnn1 *": (partial(of_arrays, "ijcnn1", (-1, 1)), (2, 5)),
    "a9a *": (partial(of_arrays, "a9a", (0, 1)), (2, 5)),
    "bike 300 *": (partial(part, partial(of_frame, "bike_sharing_hour.csv.gz", BIKE), 300), (2, 4)),
    "bike 1000 *": (partial(part, partial(of_frame, "bike_sharing_hour.csv.gz", BIKE), 1000), (2, 4)),
    "ijcnn1 3000 *": (partial(part, partial(of_arrays, "ijcnn1", (-1, 1)), 3000), (2, 5)),
    "heavy tails *": (mixture, (2, 5)),
}
FRAMES = ("adult", "bank", "covertype", "bike")
MIXED = {f"{name} {how} *": (name, how) for name in FRAMES for how in ("schema", "learned")}


class Judge:
    """The share of the variance of rows that components catch; the best ones of as many catch 1."""

    def __init__(self, rows: np.ndarray) -> None:
        self.products = np.cov(rows, rowvar=False)
        self.values = np.linalg.eigvalsh(self.products)[::-1]

    def __call__(self, components: np.ndarray) -> float:
        return float(np.trace(components @ self.products @ components.T) / self.values[: len(components)].sum())


def ours(table: Any, judge: Judge | None, numbers: Sequence[int], given: dict[str, Any], seed: int) -> dict[str, Any]:
    """Return the shares of the variance, the number of components above the noise, and whether the fit warned early."""
    with noise_of(seed), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        model = DPPCA(max(numbers), random_state=seed, **given).fit(table)
    judge = judge or Judge(np.asarray(prepared(model.schema_, table), dtype=float))
    warned = any("plan(n_samples" in str(warning.message) for warning in said)
    return {"caught": [judge(model.components_[:k]) for k in numbers], "found": model.n_above_noise_, "warned": warned}


def theirs(rows: np.ndarray, judge: Judge, k: int, epsilon: float, centered: bool, seed: int) -> float:
    """Return the share of the variance that diffprivlib's components catch."""
    from diffprivlib.models import PCA as Theirs

    d = rows.shape[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = (-np.ones(d), np.ones(d))
        model = Theirs(k, epsilon=epsilon, bounds=bounds, data_norm=d**0.5, centered=centered, random_state=seed).fit(rows)
    return judge(model.components_)


def cells(name: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield what is measured on a table."""
    rows = judge = None
    if name in MIXED:
        frame, how = MIXED[name]
        loaded, numbers = load_frame(frame), (2, 5)
        table = loaded.table.X_train
        given: dict[str, Any] = {"schema": "learn" if how == "learned" else loaded.schema}
    else:
        read, numbers = TABLES[name]
        table, bounds = read()
        given = {"feature_bounds": bounds}
        rows = (np.clip(table, *bounds.T) - bounds.mean(axis=1)) * 2 / (bounds[:, 1] - bounds[:, 0])
        judge = Judge(rows)
    facts = {"table": name, "shape": table.shape}
    for adjacency in ADJACENCIES:
        made = [
            [ours(table, judge, numbers, {**given, "epsilon": epsilon, "adjacency": adjacency}, seed) for seed in range(repeats)]
            for epsilon in EPSILONS
        ]
        noticed = {
            "found": [round(float(np.mean([fit["found"] for fit in fits])), 1) for fits in made],
            "warned": [fits[0]["warned"] for fits in made],
        }
        for place, k in enumerate(numbers):
            shares = [median(fit["caught"][place] for fit in fits) for fits in made]
            yield {**facts, "k": k, "method": adjacency, "caught": shares, **noticed}
    if rows is None or judge is None or rows.shape[1] > THEIR_FEATURES or not importlib.util.find_spec("diffprivlib"):
        return
    repeats = min(FEW, repeats)
    for k in numbers:
        both = [
            [median(theirs(rows, judge, k, epsilon, centered, seed) for seed in range(repeats)) for epsilon in EPSILONS]
            for centered in (True, False)
        ]
        yield {**facts, "k": k, "method": "diffprivlib", "caught": np.max(both, axis=0).tolist()}


def times() -> Iterator[dict[str, Any]]:
    """Yield seconds of our fits and of scikit-learn's, which take turns."""
    for n, d in SIZES:
        X = np.random.default_rng(0).uniform(-1, 1, size=(n, d))
        taken = in_turn((DPPCA(5, feature_bounds=1.0), PCA(5, svd_solver="covariance_eigh")), X)
        yield {"shape": (n, d), "DPPCA": taken[0], "PCA": taken[1]}


def compare(tables: list[str], repeats: int, out: Path) -> None:
    """Measure all cells; write components.json and components.md.

    Parameters
    ----------
    tables : list of str
        Names in `TABLES` and `MIXED`.
    repeats : int
        Fits per cell.
    out : Path
        Directory.
    """
    head = ["table", "n x d", "k", "method", *map(str, EPSILONS), "found"]
    lines, results = [row(head), row(["---"] * len(head))], []
    for name in tables:
        for cell in cells(name, repeats):
            results.append(cell)
            warned = cell.get("warned", [False] * len(EPSILONS))
            shares = [f"{share:.3f}{'!' * early}" for share, early in zip(cell["caught"], warned, strict=True)]
            found = " ".join(f"{number:g}" for number in cell.get("found", []))
            shape = "{} x {}".format(*cell["shape"])
            lines.append(row([name, shape, str(cell["k"]), cell["method"], *shares, found]))
            print(lines[-1], flush=True)
    timed = list(times())
    seconds = [row(["n x d", "DPPCA, seconds", "PCA(svd_solver='covariance_eigh')", "ratio"]), row(["---"] * 4)]
    for line in timed:
        ratio = line["DPPCA"] / line["PCA"]
        seconds.append(row(["{} x {}".format(*line["shape"]), f"{line['DPPCA']:.4f}", f"{line['PCA']:.4f}", f"{ratio:.2f}"]))
    out.mkdir(parents=True, exist_ok=True)
    write_json({**made_with(), "repeats": repeats, "results": results, "times": timed}, out / "components.json")
    page = [
        ABOUT.format(repeats=repeats, few=FEW, most=THEIR_FEATURES),
        *lines,
        "",
        IN_TURN,
        "",
        *seconds,
    ]
    (out / "components.md").write_text("\n".join(page) + "\n")
