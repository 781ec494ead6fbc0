r"""Excess risk and test scores with many features, in the l1 and in the Euclidean geometry, beside what theory predicts.

With :math:`s = \mu n / k` (k is 2 under ``replace_one``), rows of norm up to R and entries up to B, a loss of slope up to G and
smoothness b, and coefficients of l1 norm r and Euclidean norm D, the excess training loss is at most about

- "accmd" over the l1 ball: :math:`2.4 \, \frac{G R}{s} \, \omega_1 \cdot r \sqrt{\log 2p}`, with the Gaussian width
  :math:`\omega_1 = \sqrt{2 \log 2p}` of the unit ball (docs/proofs/accmd.md; Wang, Ye, Xu 2017, section 5, up to logarithms);
- "frank_wolfe": :math:`\min_T 2 \Gamma / T + c \sqrt T = 1.5 \, (4 \Gamma c^2)^{1/3}` with the curvature
  :math:`\Gamma = b (2 B r)^2` and the mean error :math:`c = G B r \log(2p) / s` of one choice (Talwar, Thakurta, Zhang 2015;
  `skdp.solvers.FrankWolfe`);
- "gd", whatever the set: :math:`2.4 \, \frac{G R}{s} \, \omega_2 \cdot D / \sqrt 2`, which is the first bound in the Euclidean
  geometry, with the width :math:`\omega_2 \approx \sqrt p` (the rate of Bassily, Smith, Thakurta 2014), or
  :math:`\min_K D^2 / (2K) + \frac b2 (K G R^2 / s)^2 = \frac34 (2b)^{1/3} (D^2 G R^2 / s)^{2/3}`, whichever is less: a
  path of length K adds noise of standard deviation :math:`K G R^2 / s` to a raw prediction, whatever the number of features (what
  Arora, Bassily, Guzmán, Menart, Ullah 2022 prove for generalised linear models is of this order).

Rows of signs have B = 1 and R = :math:`\sqrt p`, rows of words R = 1. Excess is the mean training loss less the least one in the
set of the solver; without a set, in the l2 ball. Radii are the norms of the coefficients that made the table. Those of Reuters
follow from no record: a word whose entry is 1/10 adds 1 to the log-odds by 10 of the radius, so they leave room for 3, 10 or 30
such words, and all three are shown. Nothing was tuned. By default "accmd" and "gd" take fewer steps on large tables, as if all
cells were stored; of sparse tables there are fits with 200 steps also, the most that the defaults take on small ones. Dense
tables have up to 2e8 numbers, for the sake of time.
"""

import itertools
import math
import time
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import r2_score, roc_auc_score

from benchmarks.high_dimensional_page import CONTESTANTS, ZERO, draw, markdown
from benchmarks.noise import noise_of
from benchmarks.wide_tables import Wide, draw_table, mean_loss, minimum, product, reuters
from skdp import DPConstrainedClassifier, DPConstrainedRegression, DPLinearRegression, DPLogisticRegression
from skdp.constraints import L1Ball, L2Ball
from skdp.privacy.accounting.gaussian_dp import gaussian_mu

__all__ = ["draw", "markdown", "measure"]

SIZES, WIDTHS, RADII = (2000, 5000, 10_000, 20_000, 50_000), (200, 640, 2000, 6400, 20_000), (30.0, 100.0, 300.0)
N_SAMPLES, N_FEATURES, EPSILON = 10_000, 2000, 1.0  # fixed values while another one grows
EPSILONS, ADJACENCY, REPEATS = (0.5, 1.0, 5.0), "replace_one", 3
LARGE = 5 * 10**6  # cells of a dense table above which there is one fit only
MOST = 2 * 10**8  # largest number of cells of a dense table
GAP, MOST_STEPS = 3e-4, 3000  # accuracy of the minimum over a set, and most steps to find it
REPLACED = 2  # sensitivity of a sum of clipped gradients under replace_one, over the clip norm
SLOPES = {"classification": (1.0, 0.25), "regression": (2.0, 1.0)}  # largest slope, smoothness
SPARSE = ("words", "reuters")
BALLS = {"l1": L1Ball, "l2": L2Ball}
CEILINGS = {"l1": "l1 ball, not private", "l2": "l2 ball, not private"}


@dataclass(frozen=True)
class Place:
    """Name a table and its shape; and its radius, if the true coefficients do not determine it."""

    population: str
    n_samples: int
    n_features: int
    radius: float | None = None


def measure(quick: bool, jobs: int | None) -> dict[str, Any]:
    """Measure excess training loss and test scores.

    Parameters
    ----------
    quick : bool
        Whether two minutes are all there is: small tables, one fit each, no news.
    jobs : int or None
        Processes.

    Returns
    -------
    dict
        A record per table, epsilon and contestant; the ceilings have no epsilon.
    """
    repeats, cells = (1, grid(quick)) if quick else (REPEATS, grid(quick) + news())
    cells = sorted(cells, key=lambda cell: -cell[0].n_samples * cell[0].n_features)
    places = list(dict.fromkeys(place for place, _ in cells))
    tasks = [delayed(ceilings)(place) for place in places]
    for (place, epsilon), contestant in itertools.product(cells, CONTESTANTS):
        _, ball, sparse_only = CONTESTANTS[contestant]
        if (ball or place.radius in (None, RADII[0])) and (place.population in SPARSE or not sparse_only):
            tasks.append(delayed(fitted)(place, contestant, epsilon, repeats))
    found = Parallel(jobs, verbose=5)(tasks)
    best = dict(zip(places, found, strict=False))
    records = [record for place in places for record in best[place]["records"]]
    for record in found[len(places) :]:
        place, ball = record.pop("place"), CONTESTANTS[record["contestant"]].ball or "l2"
        losses = np.array(record.pop("losses")) - best[place]["least"][ball]
        records.append({**about(place), **record, "excess": quartiles(losses)})
    fixed = {"n_samples": N_SAMPLES, "n_features": N_FEATURES, "epsilon": EPSILON, "largest_epsilon": EPSILONS[-1]}
    run = {"adjacency": ADJACENCY, "delta": "max(1 / n**2, 1e-11)", "repeats": repeats, "several fits up to": LARGE}
    return {"settings": {**run, **fixed, "gap": GAP, "radii of Reuters": RADII}, "records": records}


def grid(quick: bool) -> list[tuple[Place, float]]:
    """Return generated tables and epsilons; fewer widths where all columns count, or where numbers are predicted."""
    sizes, widths, epsilons = (SIZES[:2], WIDTHS[:2], (EPSILON,)) if quick else (SIZES, WIDTHS, EPSILONS)
    cells = []
    for name in ("signs", "words"):
        cells += [(Place(name, N_SAMPLES, width), EPSILON) for width in widths]
        cells += [(Place(name, size, N_FEATURES), EPSILON) for size in sizes]
        cells += [(Place(name, N_SAMPLES, N_FEATURES), epsilon) for epsilon in epsilons]
    cells += [(Place("spread", N_SAMPLES, width), EPSILONS[-1]) for width in widths[:2]]
    cells += [(Place("lasso", N_SAMPLES, width), EPSILON) for width in widths[:2]]
    affordable = [cell for cell in cells if cell[0].population in SPARSE or cell[0].n_samples * cell[0].n_features <= MOST]
    return list(dict.fromkeys(affordable))


def news() -> list[tuple[Place, float]]:
    """Reuters with every radius and epsilon; nothing where the data set is not there."""
    try:
        shape = reuters(1.0).X.shape
    except FileNotFoundError as error:
        print(f"No Reuters: {error}", flush=True)
        return []
    return [(Place("reuters", *shape, radius), epsilon) for radius, epsilon in itertools.product(RADII, EPSILONS)]


@lru_cache(maxsize=1)
def table_of(place: Place) -> Wide:
    """Return a table; the last one is cached, because tasks are ordered by table."""
    if place.radius is not None:
        return reuters(place.radius)
    return draw_table(place.population, place.n_samples, place.n_features)


def ceilings(place: Place) -> dict[str, Any]:
    """The least loss in both balls, and records of it and of coefficients of 0."""
    table, least, records = table_of(place), {}, []
    zero = mean_loss(np.zeros(len(table.y)), table.y, table.task)
    for ball, name in CEILINGS.items():
        coef, gap = minimum(table, BALLS[ball](table.radii[ball]), GAP, MOST_STEPS)
        least[ball] = mean_loss(product(table.X, coef), table.y, table.task)
        test = [score(table, product(table.X_test, coef))] * 3
        records.append({**about(place), "contestant": name, "epsilon": None, "excess": [0.0] * 3, "test": test, "gap": gap})
    none = {"test": [0.0 if table.task == "regression" else 0.5] * 3, "excess": [zero - least["l1"]] * 3}
    return {"least": least, "records": [*records, {**about(place), "contestant": ZERO, "epsilon": None, **none}]}


def fitted(place: Place, contestant: str, epsilon: float, repeats: int) -> dict[str, Any]:
    """Training losses and test scores of private fits, which differ in their noise."""
    table, start = table_of(place), time.perf_counter()
    repeats = 1 if isinstance(table.X, np.ndarray) and table.X.size > LARGE else repeats
    models = [one_fit(table, contestant, epsilon, seed) for seed in range(repeats)]
    seconds = (time.perf_counter() - start) / repeats
    losses, tests = [], []
    for model in models:
        coef, intercept = np.ravel(model.coef_), np.ravel(model.intercept_)[0]
        losses.append(mean_loss(product(table.X, coef) + intercept, table.y, table.task))
        tests.append(score(table, product(table.X_test, coef) + intercept))
    n = place.n_samples
    bound = predicted(table, contestant, gaussian_mu(epsilon, max(1 / n**2, 1e-11)) * n / REPLACED)
    cost = {"n_iter": models[0].n_iter_, "seconds": round(seconds, 2)}
    cell = {"place": place, "contestant": contestant, "epsilon": epsilon}
    return {**cell, "losses": losses, "test": quartiles(tests), "predicted": bound, **cost}


def one_fit(table: Wide, contestant: str, epsilon: float, seed: int) -> Any:
    """A private model; the default is left as it comes, with its intercept."""
    solver, ball, _ = CONTESTANTS[contestant]
    given: dict[str, Any] = {"solver": solver, "feature_bounds": table.feature_bound, "data_norm": table.data_norm}
    given |= {} if solver == "auto" else {"fit_intercept": False, "alpha": 0.0}
    given |= {"constraint": ball, "radius": table.radii[ball]} if ball else {}
    if table.task == "regression":
        kind: Any = DPConstrainedRegression if ball else DPLinearRegression
        given["target_bounds"] = (-1, 1)
    else:
        kind = DPConstrainedClassifier if ball else DPLogisticRegression
        given["classes"] = [0, 1]
    with warnings.catch_warnings(), noise_of(seed):
        warnings.simplefilter("ignore")
        return kind(epsilon, adjacency=ADJACENCY, **given).fit(table.X, table.y)


def predicted(table: Wide, contestant: str, s: float) -> float | None:
    """Return the bound of the docstring; None for the default, whose steps are on standardised features.

    Parameters
    ----------
    table : Wide
        Bounds, radii, number of features and task.
    contestant : str
        Out of ``CONTESTANTS``.
    s : float
        Largest sum of clipped gradients over the noise of the whole budget.

    Returns
    -------
    float or None
        Excess of the mean training loss.
    """
    chosen, p, (slope, smoothness) = CONTESTANTS[contestant].solver, table.X.shape[1], SLOPES[table.task]
    solver = chosen if isinstance(chosen, str) else chosen.name
    r, euclidean, largest, norm = table.radii["l1"], table.radii["l2"], table.feature_bound, table.data_norm
    if solver == "accmd":
        return 2.4 * slope * norm / s * L1Ball().gaussian_width(p) * r * math.sqrt(math.log(2 * p))
    if solver == "frank_wolfe":
        error = slope * largest * r * math.log(2 * p) / s
        return 1.5 * (4 * smoothness * (2 * largest * r) ** 2 * error**2) ** (1 / 3)
    if solver == "gd":
        width = 2.4 * slope * norm / s * L2Ball().gaussian_width(p) * euclidean / math.sqrt(2)
        return min(width, 0.75 * (2 * smoothness) ** (1 / 3) * (euclidean**2 * slope * norm**2 / s) ** (2 / 3))
    return None


def score(table: Wide, raw: np.ndarray) -> float:
    """AUC, or R2, of raw predictions for the test records."""
    return float(r2_score(table.y_test, raw) if table.task == "regression" else roc_auc_score(table.y_test, raw))


def about(place: Place) -> dict[str, Any]:
    """Return the part of a record that describes its table."""
    shape = {"n_samples": place.n_samples, "n_features": place.n_features}
    return {"population": place.population, **shape, "radius": place.radius}


def quartiles(values: Any) -> list[float]:
    """Lower quartile, median, upper quartile."""
    return np.quantile(np.array(values), (0.25, 0.5, 0.75)).tolist()
