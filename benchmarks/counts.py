"""Compare links of regressors on counts and on positive amounts, beside models without privacy."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import GammaRegressor, PoissonRegressor
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.noise import noise_of
from benchmarks.tables import data_directory, existing
from benchmarks.writing import made_with, row, write_json
from skdp import DPAdditiveRegressor, DPGradientBoostingRegressor, DPLinearRegression

__all__ = ["TABLES", "CountTable", "compare"]

MOST, TEST = 20_000, 20_000  # records of the training part at most, and those of the test part of made-up tables
CELLS = (("zero_out", 0.1), ("zero_out", 0.3), ("zero_out", 1.0), ("zero_out", 3.0), ("replace_one", 1.0))
# Cells of each model: more time per fit, fewer of them.
MODELS = {
    "linear": (DPLinearRegression, CELLS),
    "additive": (DPAdditiveRegressor, CELLS[2:3]),
    "boosted": (DPGradientBoostingRegressor, CELLS[2:3]),
}
# Levels of a column of whole numbers that the model without privacy has as categories, at most: 24 hours and 31 days are some.
LEVELS = 32
BOOSTED = ("bike, all", "bike, casual", "california, value")  # tables of boosted models, which take longest
FLOOR = 0.1  # least prediction of all models, over the mean of the training part: the identity link predicts 0 and less
ABOUT = """\
Held-out D2, the explained share of the deviance of a constant, with the identity link > with the log link: Poisson for counts
(`link="log_count"`), and for costs that may be 0, gamma for other amounts (`link="log"`). Medians over {repeats} fits with the
same seeds; delta = {delta}; columns are learned inside the budget, ranges of targets are public; at most {most} training records.
Predictions are at least a tenth of the mean here, as D2 of the identity link would else have no lower end, and at most the upper
end of the range. "GLM" is PoissonRegressor or GammaRegressor on one-hot and numeric columns, "HGB" is
HistGradientBoostingRegressor with the same loss, both without privacy. Where records have an exposure, the log link has
`fit(..., exposure=w)`, and the identity link does not know it: its predictions are divided by the mean exposure. "r1" is epsilon
1 with `replace_one`; all others are `zero_out`. `python -m benchmarks counts` writes this page.
"""


@dataclass(frozen=True)
class CountTable:
    """Hold a table whose targets are counts or positive amounts.

    Parameters
    ----------
    X : DataFrame
        Columns in their own units and types.
    y : ndarray
        Targets.
    bounds : tuple of float
        Their public range.
    counts : bool
        Whether they are counts (True) or amounts.
    exposure : ndarray or None, default=None
        Exposure of each record, at most 1.
    n_train : int, default=MOST
        Records of the training part, which come first.
    """

    X: pd.DataFrame
    y: np.ndarray
    bounds: tuple[float, float]
    counts: bool
    exposure: np.ndarray | None = None
    n_train: int = MOST

    @property
    def link(self) -> str:
        """Log link of the targets."""
        return "log_count" if self.counts else "log"

    @property
    def loss(self) -> str:
        """Deviance by which models are scored; that of gamma numbers is infinite where targets are 0."""
        return "poisson" if self.bounds[0] == 0 else "gamma"

    def train(self) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
        """Return the training part."""
        return self._part(slice(None, self.n_train))

    def scores(self, rates: Callable[[pd.DataFrame], np.ndarray]) -> dict[str, float]:
        """Return the test scores of predictions per unit of exposure: D2, R2, and the sum of predictions over that of targets."""
        (_, before, _), (X, y, w) = self.train(), self._part(slice(self.n_train, None))
        w = np.ones(len(y)) if w is None else w
        expected = np.clip(np.asarray(rates(X), dtype=float), FLOOR * before.mean(), self.bounds[1])
        d2 = d2_tweedie_score(y / w, expected, sample_weight=w, power=1 if self.loss == "poisson" else 2)
        r2 = r2_score(y, w * expected)
        return {"d2": round(float(d2), 5), "r2": round(float(r2), 5), "balance": round(float((w @ expected) / y.sum()), 5)}

    def _part(self, part: slice) -> tuple[pd.DataFrame, np.ndarray, np.ndarray | None]:
        return self.X[part], self.y[part], None if self.exposure is None else self.exposure[part]


def read(file: str, target: str, bounds: tuple[float, float], counts: bool, without: tuple[str, ...] = ()) -> CountTable:
    """Return a public table in an order of a seed; three quarters of it are for training, and at most `MOST` records."""
    frame = pd.read_csv(existing(data_directory() / file)).sample(frac=1.0, random_state=0).reset_index(drop=True)
    y = np.clip(frame[target].to_numpy(dtype=float), *bounds)
    return CountTable(frame.drop(columns=[target, *without]), y, bounds, counts, n_train=min(MOST, 3 * len(y) // 4))


def made_up(kind: str, mean: float, n_train: int = MOST) -> CountTable:
    """Return made-up records of eight columns, three of which matter.

    Parameters
    ----------
    kind : str
        "poisson", "negative binomial" (with the variance m + m^2), "zeros" (half of the records are none), "gamma" (a variation
        of 0.7), "costs" (the same, where 0.3 of the records have some), "sums" (amounts to which columns add, with a variation of
        0.3), or "exposure" (which falls with the column that raises the rate).
    mean : float
        Mean where no column matters.
    n_train : int, default=MOST
        Records for training.

    Returns
    -------
    CountTable
        The table.
    """
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(n_train + TEST, 8))
    m, w = mean * np.exp(0.5 * Z[:, 0] - 0.4 * Z[:, 1] + 0.3 * (Z[:, 2] > 0)), None
    if kind == "sums":
        Z[:, 1:4] = Z[:, 1:4] > 0
        m = mean * (1 + 0.3 * np.clip(Z[:, 0], -2, 2) + Z[:, 1:4] @ [4.0, 2.0, 0.5])
    if amounts := kind in ("gamma", "costs", "sums"):
        shape = 10.0 if kind == "sums" else 2.0
        y, high = m * rng.gamma(shape, 1 / shape, len(Z)), 50 * mean
        if kind == "costs":
            y *= (rng.random(len(Z)) < 0.3) / 0.3
    else:
        if kind == "exposure":
            w = 1 / (1 + np.exp(1.5 * Z[:, 0] + rng.normal(size=len(Z))))
        spread = rng.gamma(1.0, 1.0, len(Z)) if kind == "negative binomial" else 2.0 * (rng.random(len(Z)) < 0.5)
        y = rng.poisson(m * (w if w is not None else spread if kind in ("negative binomial", "zeros") else 1.0)).astype(float)
        high = float(np.ceil(12 * mean + 8))
    low = mean / 1000 if kind in ("gamma", "sums") else 0.0
    frame = pd.DataFrame(Z, columns=[f"x{place}" for place in range(8)])
    return CountTable(frame, np.clip(y, low, high), (low, high), not amounts, w, n_train)


BIKE, BANK = "bike_sharing_hour.csv.gz", "bank_full.csv.gz"
TABLES: dict[str, Callable[[], CountTable]] = {
    "bike, all": lambda: read(BIKE, "cnt", (0.0, 1000.0), True, ("casual", "registered", "dteday")),
    "bike, casual": lambda: read(BIKE, "casual", (0.0, 400.0), True, ("cnt", "registered", "dteday")),
    "bank, contacts": lambda: read(BANK, "campaign", (0.0, 64.0), True),
    "bank, duration": lambda: read(BANK, "duration", (1.0, 5000.0), False),
    "adult, hours": lambda: read("adult.csv.gz", "hours-per-week", (0.0, 100.0), True, ("split",)),
    "california, value": lambda: read("california_housing.csv.gz", "median_house_value", (10_000.0, 510_000.0), False),
    "Poisson 0.1": lambda: made_up("poisson", 0.1),
    "Poisson 2": lambda: made_up("poisson", 2.0),
    "Poisson 50": lambda: made_up("poisson", 50.0, 5000),
    "negative binomial 5": lambda: made_up("negative binomial", 5.0),
    "half zeros, 2": lambda: made_up("zeros", 1.0),
    "gamma": lambda: made_up("gamma", 1000.0, 10_000),
    "costs, 0.7 are 0": lambda: made_up("costs", 1000.0),
    "charges that add up": lambda: made_up("sums", 5000.0, 10_000),
    "exposure, rate 0.15": lambda: made_up("exposure", 0.15),
    "exposure, rate 4": lambda: made_up("exposure", 4.0),
}


def private(table: CountTable, model: str, link: str, adjacency: str, epsilon: float, seed: int) -> dict[str, float]:
    """Return the test scores of a fit; the seed is that of our noise."""
    X, y, w = table.train()
    made = MODELS[model][0](
        epsilon,
        delta=1 / len(y) ** 2,
        adjacency=adjacency,
        target_bounds=table.bounds,
        schema="learn",
        link=link,
        random_state=seed,
    )
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        if w is None or link == "identity":
            unit = 1.0 if w is None else float(w.mean())
            made.fit(X, y)
            return table.scores(lambda rows: made.predict(rows) / unit)
        made.fit(X, y, exposure=w)
        return table.scores(made.predict)


def exact(table: CountTable) -> dict[str, dict[str, float]]:
    """Return the test scores of both models without privacy."""
    X, y, w = table.train()
    few = [name for name in X if X[name].dtype.kind not in "biuf" or (X[name].dtype.kind == "i" and X[name].nunique() <= LEVELS)]
    columns = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), few), remainder=StandardScaler(), sparse_threshold=0.0
    )
    glm = make_pipeline(columns, (PoissonRegressor if table.loss == "poisson" else GammaRegressor)(alpha=1e-4, max_iter=1000))
    rows = X.fillna(X.median(numeric_only=True))
    trees = HistGradientBoostingRegressor(loss=table.loss, random_state=0)
    weight, target = (None, y) if w is None else (w, y / w)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        glm.fit(rows, target, **{f"{glm.steps[-1][0]}__sample_weight": weight})
        trees.fit(categories(X), target, sample_weight=weight)
        return {
            "GLM": table.scores(lambda part: glm.predict(part.fillna(X.median(numeric_only=True)))),
            "HGB": table.scores(lambda part: trees.predict(categories(part))),
        }


def categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Return columns of text as categories, which trees take."""
    return frame.astype({name: "category" for name in frame.columns if frame[name].dtype.kind not in "biuf"})


def compare(tables: list[str], models: list[str], repeats: int, jobs: int | None, out: Path) -> None:
    """Measure; write ``counts.json`` and ``counts.md`` after each table. Boosted models have few tables.

    Parameters
    ----------
    tables : list of str
        Out of ``TABLES``.
    models : list of str
        Out of ``MODELS``.
    repeats : int
        Fits per cell. Both links have the seeds 0, 1, and so on.
    jobs : int or None
        Processes.
    out : Path
        Directory.
    """
    settings = {"delta": "1 / n_train**2", "repeats": repeats, "most": MOST}
    results: dict[str, Any] = {**made_with(), "settings": settings, "records": []}
    made = {name: TABLES[name]() for name in tables}
    free = {name: exact(table) for name, table in made.items()}
    for model in models:
        for name, table in made.items():
            if model == "boosted" and name not in BOOSTED:
                continue
            cells = []
            for adjacency, epsilon in MODELS[model][1]:
                found = Parallel(jobs)(
                    delayed(private)(table, model, link, adjacency, epsilon, seed)
                    for link in ("identity", table.link)
                    for seed in range(repeats)
                )
                cells.append({"adjacency": adjacency, "epsilon": epsilon, "identity": found[:repeats], "log": found[repeats:]})
            about = {"table": name, "n_train": table.n_train, "mean": float(np.mean(table.train()[1])), **free[name]}
            results["records"].append({**about, "model": model, "cells": cells})
            write_json(results, out / "counts.json")
            (out / "counts.md").write_text(markdown(results), encoding="utf-8")
            print(f"{model}, {name}: done", flush=True)


def markdown(results: dict[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    results : dict
        What the JSON holds.

    Returns
    -------
    str
        Markdown.
    """
    lines = ["# Counts and amounts", "", ABOUT.format(**results["settings"])]
    pairs = [(cell, record) for record in results["records"] for cell in record["cells"]]
    gains = np.array([median_of(cell["log"], "d2") - median_of(cell["identity"], "d2") for cell, _ in pairs])
    worst = {link: min(one["d2"] for cell, _ in pairs for one in cell[link]) for link in ("identity", "log")}
    lines += [
        f"Of {len(pairs)} cells, {int((gains > 0.005).sum())} are better by more than 0.005 with the log link, and "
        f"{int((gains < -0.005).sum())} worse, at most by {max(-float(gains.min()), 0.0):.3f}. The worst single fit has a D2 of "
        f"{worst['log']:.3f}, with the identity link of {worst['identity']:.3f}.",
        "",
    ]
    for score, title in (("d2", "D2"), ("balance", "Balance: sum of predictions over that of targets"), ("r2", "R2")):
        lines += [f"## {title}", ""]
        heads = [
            "table",
            "n",
            "mean",
            "model",
            *(f"{'r1 ' * (a == 'replace_one')}{epsilon:g}" for a, epsilon in CELLS),
            "GLM",
            "HGB",
        ]
        lines += [row(heads), row(["---"] * len(heads))]
        for record in results["records"]:
            found = {(cell["adjacency"], cell["epsilon"]): cell for cell in record["cells"]}
            cells = [_cell(found[key], score) if key in found else "" for key in CELLS]
            free = [f"{record[name][score]:.3f}" for name in ("GLM", "HGB")]
            lines.append(row([record["table"], str(record["n_train"]), f"{record['mean']:.3g}", record["model"], *cells, *free]))
        lines.append("")
    return "\n".join(lines)


def median_of(fits: list[dict[str, float]], score: str) -> float:
    """Return the median score of some fits."""
    return median(one[score] for one in fits)


def _cell(cell: dict[str, Any], score: str) -> str:
    return f"{median_of(cell['identity'], score):.3f} > {median_of(cell['log'], score):.3f}"
