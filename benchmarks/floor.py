"""Search for generated problems on which the defaults are worse than a constant prediction.

The mean accuracy of a fit has to reach that of the best constant prediction minus ``0.01 + 3 / (n epsilon)``; the mean R2 has
to reach ``-0.05 - c / (n epsilon)**2``. Every seed draws a table and noise.

The mean of the targets has to be released, too. With half of the squared Gaussian-DP parameter mu of the budget it has the
variance ``2 (k Y / (n mu))**2`` for targets in [-Y, Y], where k is 1 under ``zero_out``, 2 under
``replace_one``. Divided by the variance s**2 of the targets, that is a loss of R2 of ``c / (n epsilon)**2`` with
``c = 2 (k (Y / s) (epsilon / mu))**2``; epsilon / mu lies between 2 and 7 for ``delta = 1 / n**2``. The other half is for the
rest of the fit, and for chance: if all of the budget were spent on the mean, the mean over 20 seeds would be below this floor in
0.5 % of the problems (20 squared normals add up to more than 40).
"""

import math
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.utils.parallel import Parallel, delayed

from benchmarks.methods import ours
from benchmarks.noise import noise_of
from benchmarks.synthetic import FEATURES, Population
from benchmarks.writing import made_with, write_json
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.budget import ADJACENCIES

__all__ = ["Cell", "sample", "search"]

EPSILONS = (0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
SIZES = (200, 500, 1000, 3000, 10_000, 50_000, 500_000)
WIDTHS = (2, 5, 20, 100, 500, 2000, 5000)
RATES = (0.005, 0.02, 0.1, 0.3, 0.5)
SIGNALS = (0.0, 1.0, 4.0)
MIDDLES = (0.0, 0.5, 0.9)
SPREADS = (0.02, 0.1, 0.3)
TEST_CELLS, FEWEST_TESTS, MOST_TESTS = 4_000_000, 1000, 20_000
K = {"zero_out": 1, "replace_one": 2}


@dataclass(frozen=True)
class Cell:
    """One problem of the search.

    Parameters
    ----------
    population : Population
        Where records come from.
    n_samples : int
        Training records.
    epsilon : float
        Privacy parameter; delta is its default.
    adjacency : str
        Neighbours.
    """

    population: Population
    n_samples: int
    epsilon: float
    adjacency: str

    @property
    def delta(self) -> float:
        """The default of the estimators."""
        return max(1 / self.n_samples**2, 1e-11)

    def allowance(self, spread: float) -> float:
        """Return by how much a mean may be below the best constant prediction.

        Parameters
        ----------
        spread : float
            Standard deviation of the targets of a regression.

        Returns
        -------
        float
            In units of accuracy, or of R2.
        """
        if self.population.task == "classification":
            return 0.01 + 3 / (self.n_samples * self.epsilon)
        mu = gaussian_mu(self.epsilon, self.delta)
        return 0.05 + 2 * (K[self.adjacency] / (spread * mu * self.n_samples)) ** 2


def search(
    task: str, count: int, repeats: int, largest: float, jobs: int | None, out: Path, seed: int = 0
) -> list[dict[str, Any]]:
    """Fit the default on problems of a random part of the grid; write the results, and return the counter-examples.

    Parameters
    ----------
    task : {"classification", "regression"}
        Of the problems.
    count : int
        Number of problems.
    repeats : int
        Fits per problem.
    largest : float
        Most numbers in a training table.
    jobs : int or None
        Processes, as joblib has it.
    out : Path
        Directory of ``floor_<task>.json`` and ``floor_<task>.md``.
    seed : int, default=0
        Of the choice of problems.

    Returns
    -------
    list of dict
        Problems below their floor, the worst first.
    """
    problems = sample(task, count, largest, seed)
    records: list[dict[str, Any]] = []
    for record in Parallel(n_jobs=jobs, return_as="generator")(delayed(measure)(cell, repeats) for cell in problems):
        records.append(record)
        if record["short"] > 0:
            print(describe(record), flush=True)
    found = sorted((record for record in records if record["short"] > 0), key=lambda record: -record["short"])
    settings = {"task": task, "problems": count, "repeats": repeats, "largest table": largest, "seed": seed}
    contents = {**made_with(), "settings": settings, "records": records}
    write_json(contents, out / f"floor_{task}.json")
    (out / f"floor_{task}.md").write_text(markdown(contents, found), encoding="utf-8")
    print(f"{len(found)} of {len(records)} problems are below the floor.")
    return found


def sample(task: str, count: int, largest: float, seed: int) -> list[Cell]:
    """Return problems drawn from the grid, each factor independently.

    Parameters
    ----------
    task : {"classification", "regression"}
        Of the problems.
    count : int
        How many.
    largest : float
        Most numbers in a training table; larger draws are drawn again.
    seed : int
        Of the draw.

    Returns
    -------
    list of Cell
        No two with the same population seed.
    """
    rng = np.random.default_rng(seed)
    cells: list[Cell] = []
    while len(cells) < count:
        n, d = int(rng.choice(SIZES)), int(rng.choice(WIDTHS))
        features = str(rng.choice(list(FEATURES)))
        population = Population(
            features, d, task, signal=float(rng.choice(SIGNALS)), bounded=features != "long", seed=1000 * seed + len(cells)
        )
        if task == "classification":
            population = replace(population, positive_rate=float(rng.choice(RATES)))
        else:
            population = replace(population, middle=float(rng.choice(MIDDLES)), spread=float(rng.choice(SPREADS)))
        if n * d <= largest:
            cells.append(Cell(population, n, float(rng.choice(EPSILONS)), str(rng.choice(list(ADJACENCIES)))))
    return cells


def measure(cell: Cell, repeats: int) -> dict[str, Any]:
    """Return the mean score over the seeds, and the floor."""
    population, start = cell.population, time.perf_counter()
    n_test = int(np.clip(TEST_CELLS / population.n_features, FEWEST_TESTS, MOST_TESTS))
    X, y = population.draw(n_test, 10**6)
    scores = [score(cell, seed, X, y) for seed in range(repeats)]
    constant = max(y.mean(), 1 - y.mean()) if population.task == "classification" else 0.0
    mean, error = float(np.mean(scores)), float(np.std(scores, ddof=1) / math.sqrt(repeats)) if repeats > 1 else math.nan
    floor = float(constant - cell.allowance(float(y.std())))
    facts = {**asdict(population), "n_samples": cell.n_samples, "epsilon": cell.epsilon, "adjacency": cell.adjacency}
    scored = {"mean": mean, "standard_error": error, "worst": float(np.min(scores)), "constant": float(constant), "floor": floor}
    return facts | scored | {"short": floor - mean, "seconds": (time.perf_counter() - start) / repeats}


def score(cell: Cell, seed: int, X: np.ndarray, y: np.ndarray) -> float:
    """Return accuracy or R2 of one fit; each seed draws its own table."""
    model = ours(cell.epsilon, cell.delta, cell.adjacency, task=cell.population.task, classes=[0, 1])
    with noise_of(seed):
        predicted = model.fit(*cell.population.draw(cell.n_samples, seed)).predict(X)
    return float(np.mean(predicted == y)) if cell.population.task == "classification" else float(r2_score(y, predicted))


def describe(record: dict[str, Any]) -> str:
    """One line about a problem."""
    aim = (
        f"positive rate {record['positive_rate']:g}"
        if record["task"] == "classification"
        else f"middle {record['middle']:g}, spread {record['spread']:g}"
    )
    return (
        f"{record['features']} n={record['n_samples']} d={record['n_features']} epsilon={record['epsilon']:g} "
        f"{record['adjacency']}, {aim}, signal {record['signal']:g} (seed {record['seed']}): mean {record['mean']:.4f} "
        f"+- {record['standard_error']:.4f}, worst {record['worst']:.4f}, best constant {record['constant']:.4f}, "
        f"floor {record['floor']:.4f}, short by {record['short']:.4f}"
    )


def markdown(contents: dict[str, Any], found: list[dict[str, Any]]) -> str:
    """Return the counter-examples as Markdown."""
    settings, records = contents["settings"], contents["records"]
    closest = sorted(records, key=lambda record: -record["short"])[:10]
    lines = [f"# Never much worse than a constant: {settings['task']}", ""]
    lines += [
        f"{len(records)} problems drawn from the grid, {settings['repeats']} tables and fits of each; {len(found)} below it."
    ]
    for title, group in (("Below the floor", found), ("Closest to the floor", closest)):
        lines += ["", f"## {title}", "", *(f"- {describe(record)}" for record in group)]
    return "\n".join(lines) + "\n"
