"""The laws of every query: its definition, its sensitivity, null records, samples, weights, and the numbers in it.

A query is tested by its line in `CASES`: an instance, and what one record adds to the sum, written as in its docstring.
"""

import contextlib
import math
import os
from dataclasses import dataclass, fields, replace
from functools import cache
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import root
from scipy.special import expit, softmax

from skdp.constraints import L1Ball
from skdp.losses import BoundedProper, Huber, Logistic, Multinomial, Quantile, Squared, SquaredDistance
from skdp.minimax import AUCSaddle, Batch
from skdp.privacy import queries
from skdp.privacy.data import training_data
from skdp.privacy.data.binned_records import BinnedRecords
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.data.gradient_factors import CANCELLED
from skdp.privacy.data.persons import Persons
from skdp.privacy.data.scored_records import ScoredRecords
from skdp.privacy.data.summation import BLOCK
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import (
    BinCounts,
    BlockGradient,
    Bread,
    CellCounts,
    Centres,
    ClassCounts,
    ClassMoments,
    ClassSums,
    ClippedMoments,
    ClusterCounts,
    ClusterDistances,
    ClusterSteps,
    ColumnHistograms,
    CoordinateScores,
    Curvature,
    Deviations,
    Difference,
    DistanceHistogram,
    DualGradient,
    ErrorSums,
    EvenMoments,
    ExposedHistogram,
    ExposedLinkSums,
    FeatureSums,
    FeatureTargetSums,
    FewCountsSteps,
    FineHistograms,
    FirstAndSecondMoment,
    FirstMoment,
    FourthMoments,
    Gradient,
    HaarCounts,
    HalfVectorMoments,
    HatSums,
    JointGradient,
    JointHistogram,
    JointMoments,
    LabelSum,
    LeafSums,
    LimitedMoments,
    LinkSums,
    LossSums,
    Meat,
    Minimum,
    Moments,
    MomentSums,
    NewtonDirection,
    PrimalDifference,
    PrimalGradient,
    ProductMoments,
    Query,
    Ranks,
    RankScores,
    ResidualHistogram,
    ResidualSigns,
    ResidualSizes,
    ResidualSum,
    ScoreCounts,
    ScoreGradient,
    ScoreOctaves,
    Scores,
    ScoreTree,
    SecondMoment,
    ShortenedGradient,
    SingleCount,
    SlopeDerivatives,
    SmallestEigenvalue,
    Standardization,
    StandardizedGradient,
    TargetExponents,
    TargetHistogram,
    TargetSum,
    TotalWeight,
    TreeWeight,
    Vertex,
    Vertices,
    WeightedMoments,
    Whitening,
    half_vector,
)
from skdp.privacy.queries._strong_convexity import Minimization
from skdp.privacy.queries.score_counts import tree
from skdp.scorers import LinearScorer

R, K, D = 1.3, 0.7, 3  # bound on rows, constant of the intercept, features
ADJACENCIES = ("zero_out", "replace_one")
INTERFACES = {"Query", "SumQuery", "NonNegativeQuery", "CountQuery", "Scores"}
NEAR = 0.995  # an attained bound that were 1 % smaller, or larger, is seen
ROUNDING = 1 + 1e-9
NULL, N = np.array([0, 3, 17]), 40

# ------------------------------------------------------------------ tables, of records (x, y), (cells, y), or (bins, y, scores)


STORAGES = {"C": np.ascontiguousarray, "F": np.asfortranarray, "csr": sparse.csr_array, "csc": sparse.csc_array}


@dataclass(frozen=True)
class Rows:
    """Rows in `TrainingData`; records are pairs of a row and a target."""

    targets: tuple[Any, ...]  # hostile targets, or the number of classes
    constant: float = K
    class_weight: Any = None
    storages: Any = ("C", "F", "csr", "csc")

    def data(self, query, records, storage="C", weights=None, persons=None, by_row=False):
        X, y = (np.array(list(part)) for part in zip(*records, strict=True))
        how = {"by_row": query.by_row or by_row, "by_column": query.by_column, "intercept_scaling": self.constant}
        weight = None if self.class_weight is None else np.array(self.class_weight)
        y = y.astype(np.int8) if isinstance(self.targets, int) else y
        return TrainingData(
            STORAGES[storage](X), y, data_norm=R, class_weight=weight, sample_weight=weights, persons=persons, **how
        )

    def target(self, rng):
        if isinstance(self.targets, int):
            return int(rng.integers(self.targets))
        return rng.uniform(-1.2, 1.2, np.shape(self.targets[0])) if np.ndim(self.targets[0]) else float(rng.uniform(-1.2, 1.2))

    def usual(self, rng):
        X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.8)
        X[4], X[5], X[6] = [1e15, -1e15, 1e10], 0.0, 1e150
        return [(x, self.target(rng)) for x in X]

    def hostile(self, rng):
        targets = range(self.targets) if isinstance(self.targets, int) else self.targets
        directions = [*np.eye(D), *-np.eye(D), *rng.normal(size=(9, D)), *CORNERS]
        rows = [size * v / np.linalg.norm(v) for v in directions for size in (1e-9, 0.2, 1.0, R, 1e6, 1e200)]
        return [*product([np.zeros(D), *rows], targets)]


def shares(weights, persons, *between):
    """Return weights and the number of records, as holders of cells and bins take them."""
    return (weights, *between, None) if persons is None else (persons.weights, *between, persons.n_persons)


# Directions in a plane, among them pairs at 120 degrees, where sums of squares move the most.
CORNERS = [np.array([math.cos(a), math.sin(a), 0.0]) for a in np.radians(np.arange(15, 360, 30))]


class Cells:
    """Cells in `ColumnCells`: four columns, the last of them buckets, and a number to predict."""

    storages: ClassVar = ("C",)
    values = (math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e300, -1e300, 1.0, -1.0, 0.5, 3.0, 63.9999, 64.0, 7.25, -3.5)

    def data(self, query, records, storage="C", weights=None, persons=None):
        cells, targets = zip(*records, strict=True)
        return ColumnCells(np.array(cells), np.array(targets), *shares(weights, persons))

    def usual(self, rng):
        cells = np.where(rng.random((N, 4)) < 0.5, rng.normal(size=(N, 4)), rng.integers(-70, 300, (N, 4)))
        cells[rng.random(cells.shape) < 0.1] = math.nan
        return [*zip(cells, rng.normal(size=N), strict=True)]

    def hostile(self, rng):
        return [(rng.choice(self.values, 4), float(rng.choice(self.values[3:]))) for _ in range(150)] + [
            (np.array([0.3, 0.3, 0.55, 3.0]), 0.25),
            (np.array([7.0, -0.5, 0.51, 200.0]), -0.25),
        ]


@dataclass(frozen=True)
class OneBound(Cells):
    """Cells of which the first three are at the lower bound of -1."""

    def usual(self, rng):
        return [(np.full(4, -1.0), 0.0)] * 3 + super().usual(rng)[3:]


def of_cell(q, cells, y):
    """What a cell adds: its place between the bounds, how far from them it is, and whether it is missing, or is not."""
    cell, unit_, weighted = cells[q.column], 2**22, isinstance(q, WeightedMoments)
    if q.fill is not None:
        cell = min(max(cell, q.low), q.high) if math.isfinite(cell) else q.fill
        q = replace(q, low=min(q.low, q.fill), high=max(q.high, q.fill), fill=None)
    if not math.isfinite(cell):
        return [0, *[0] * q.spread, *[0 if weighted else unit_] * q.missing]
    t = round((min(max(cell, q.low), q.high) - (q.low + q.high) / 2) / (q.high - q.low) * 2 * unit_)
    return [t, *[(unit_**2 - t**2) // (2 * unit_)] * q.spread, *[unit_ if weighted else 0] * q.missing]


def deviation(q, cells, y):
    """What a cell adds to the power of its distance from a centre."""
    z = (min(max(cells[q.column], q.low), q.high) - (q.low + q.high) / 2) / (q.high - q.low) * 2
    return [
        0
        if math.isnan(z) or math.isinf(cells[q.column])
        else math.floor((abs(z - q.centre) / (1 + abs(q.centre))) ** q.power * 2**22)
    ]


def squares(q, cells, y):
    """A cell between the bounds, and its square; a missing one is at the centre."""
    z = (min(max(cells[q.column], q.low), q.high) - (q.low + q.high) / 2) / (q.high - q.low) * 2
    z = z if math.isfinite(cells[q.column]) else q.centre
    return [z, z**2]


def variance_of(q, total):
    return np.array([2**20 / (q.n_samples - 1) * (q.n_samples * total[1] - total[0] ** 2)])


def sign_of(cells):
    """Three bins; missing cells are in none."""
    return np.where(np.isnan(cells), 3, np.sign(np.nan_to_num(cells)) + 1).astype(int)


def in_grid(q, cells, y):
    places = [int(bins(np.where(np.isinf(cells[[c]]), np.nan, cells[[c]]))[0]) for c, bins in zip(q.columns, q.bins, strict=True)]
    inside = all(place < size for place, size in zip(places, q.sizes, strict=True))
    return q.unit * unit(np.ravel_multi_index(places, q.sizes) if inside else math.prod(q.sizes), q.size + 1)[: q.size]


@dataclass(frozen=True)
class Exposed(Rows):
    """Rows whose records have a third part, the exposure."""

    def data(self, query, records, storage="C", weights=None, persons=None, by_row=False):
        table = super().data(query, [record[:2] for record in records], storage, weights, persons, by_row)
        table._exposure = np.rint(np.clip(np.nan_to_num([record[2] for record in records]), 0, 1) * 2**22) / 2**22
        return table

    def usual(self, rng):
        return [(*record, rng.integers(65) / 64) for record in super().usual(rng)]

    def hostile(self, rng):
        exposures = (0.0, 1.0, 0.25, 7.0, -3.0, math.nan)
        return [(*record, exposures[i % 6]) for i, record in enumerate(super().hostile(rng))]


@dataclass(frozen=True)
class Binned:
    """Bins and scores in `BinnedRecords`; records are bins, a target, scores before all trees, and what trees have added."""

    loss: Any
    exposed: bool = False  # whether the exposure is the last part of a record
    storages: ClassVar = ("C",)
    extremes = (math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, 1e-300, 3e38, 100.0, -100.0, 0.3, -2.0)

    def data(self, query, records, storage="C", weights=None, persons=None):
        bins, targets, base, trees, *rest = (np.array(list(part)) for part in zip(*records, strict=True))
        with np.errstate(all="ignore"):
            base, trees = (scores.T.astype(np.float32) for scores in (base, trees))
            exposure = {"exposure": rest[0]} if rest else {}
            table = BinnedRecords(bins.astype(np.uint8).T, targets, base, *shares(weights, persons, BLOCK), **exposure)
            table._trees, table._scores = trees, base + trees
        return table

    def record(self, rng, values):
        k, numbers = self.loss.n_outputs, self.loss.targets == "numbers"
        y = float(values(1)[0]) if numbers else int(rng.integers(max(2, k)))
        exposure = [float(rng.choice([0.0, 1.0, 0.25, 0.7]))] if self.exposed else []
        return [int(rng.integers(size)) for size in SIZES], y, values(k), values(k), *exposure

    def usual(self, rng):
        return [self.record(rng, lambda size: rng.normal(size=size).astype(np.float32)) for _ in range(N)]

    def hostile(self, rng):
        k, numbers = self.loss.n_outputs, self.loss.targets == "numbers"
        far = 200.0 * np.eye(max(2, k))[:, :k]  # confident, and wrong for every class but one
        added = [10.0 * np.array([1.0, -1.0, 0.0][:k]), np.zeros(k)]
        targets = (-1e9, 1e9) if numbers else range(max(2, k))
        worst = product(([0, 0, 0], [1, 2, 4]), targets, [*far, -far[0]], added)
        exposures = [(w,) for w in (0.0, 1.0, 0.3)] if self.exposed else [()]
        worst = [(*record, *more) for record in worst for more in exposures]
        return [self.record(rng, lambda size: rng.choice(self.extremes, size)) for _ in range(120)] + worst


@dataclass(frozen=True)
class Scored:
    """Log-odds, a class and a group in `ScoredRecords`; or two scores, an absolute error and a group."""

    of_errors: bool = False
    storages: ClassVar = ("C",)
    extremes = (math.nan, math.inf, -math.inf, 1e300, -1e300, 0.0, -0.0, 5e-324, 1e-9, -1e-9, 0.5, -0.4, 1.0, -1.0, 1.02, -3.0)

    def data(self, query, records, storage="C", weights=None, persons=None):
        parts = (np.array(list(part)) for part in zip(*records, strict=True))
        return ScoredRecords(*parts, presence=weights).of_persons(persons)

    def usual(self, rng):
        scores, groups = rng.uniform(-1.2, 1.2, (N, 2)), rng.integers(3, size=N)
        if self.of_errors:
            return [*zip(scores, rng.exponential(size=N), groups, strict=True)]
        return [*zip(5 * scores[:, 0], rng.integers(2, size=N), groups, strict=True)]

    def hostile(self, rng):
        if self.of_errors:
            pairs = [np.array(pair) for pair in product(self.extremes, (0.5, -0.5, math.nan))]
            return [*product(pairs, (0.0, 0.3, 0.7, 1e300, math.nan, 5e-324), (0,))]
        return [*product(self.extremes, (0, 1), (0, 1, 2))]


# ------------------------------------------------------------------ words of the definitions


def short(v, bound):
    """Return a vector, scaled down to a norm."""
    length = np.linalg.norm(v)
    return v * (bound / length) if length > bound else v


def row(x):
    """Return the clipped row; one whose squared norm overflows is 0."""
    with np.errstate(over="ignore"):
        return short(x, R) if math.isfinite(np.linalg.norm(x)) else 0 * x


def ext(x):
    return np.append(row(x), K)


def std(x, g):
    """Return the standardised row without the constant."""
    return (row(x) - g.centre) @ (g.scale if g.scale.ndim == 2 else np.diag(g.scale))


def slope(loss, raw, y):
    """Return the derivative of a loss at one record."""
    return loss.derivative(np.atleast_2d(raw).astype(float), np.array([y]))[0]


def square(v):
    return half_vector(np.outer(v, v))


def unit(place, size):
    return np.eye(1, size, place)[0]


def place(value, edges):
    return unit(min(np.searchsorted(edges, value), len(edges) - 1), len(edges))


def gradient(q, z, y, weight=1.0):
    return short(np.outer(z, weight * slope(q.loss, z @ q.coef, y)), q.clip_norm).ravel()


def difference(q, x, y):
    here, there = (short(np.outer(ext(x), slope(q.loss, ext(x) @ w, y)), q.gradient_clip_norm) for w in (q.coef, q.snapshot))
    return short(here - there, q.clip_norm).ravel()


def by_coordinate(q, z, y, limit):
    return np.clip(np.outer(z, slope(q.loss, z @ q.coef, y)), -limit, limit).ravel()


def curvature(q, x, y):
    h = (q.loss.upper_curvature if q.upper_bound else q.loss.curvature)((ext(x) @ q.coef)[None], np.array([y]))[0, 0]
    return min(h, q.clip_norm / (ext(x) @ ext(x))) * np.outer(ext(x), ext(x))


def of_classes(q, x, y):
    v = short(std(x, q.geometry), 1.0)
    return np.outer(unit(y, 2), [0.5, *v, *square(v)]).ravel()


def first_and_second(q, x, y):
    v = short(std(x, q.geometry), 1.0)
    return np.array([*(0.35 * v), *square(v)])


def sums_of_classes(q, x, y):
    c = unit(y, q.n_classes)
    return np.append(q.count_weight * c, np.outer(c, np.maximum(row(x), 0) / R))


def shortened(q, x, y):
    z = np.append(std(x, q.geometry), 1.0)
    weight = min(1.0, q.clip_norm / (q.loss.lipschitz * q.largest_weight * np.linalg.norm(z))) ** q.power
    return weight * np.outer(z, slope(q.loss, q.offset + q.unit * (z @ q.coef), y)).ravel()


def sandwich(q, x, y, factor):
    z = np.append(std(x, q.geometry), 1.0)
    weight = min(1.0, (q.row_bound / np.linalg.norm(z)) ** 2)
    return factor(weight, (z @ q.coef)[None], np.array([y])) * square(z)


def score(x, coef):
    return round(float(np.clip(ext(x) @ coef, -3, 3)[0]) * 100) / 100


def of_scores(q, x, y):
    return np.outer(unit(y, 2), unit(np.searchsorted(np.array(q.cuts) / 100 - 1e-9, score(x, q.coef), side="right"), 4)).ravel()


def calibration(q, x, y):
    u = np.array([score(x, q.coef), 1.0])
    return short(u * slope(q.loss, q.point @ u, y), q.clip_norm)


def in_slope(q, raw, y):
    """Return first and second derivative of the log loss in the slope, over the length of the score."""
    k = q.n_outputs
    with np.errstate(all="ignore"):
        s = np.asarray(raw, dtype=float)
        s = s - s.mean() if k > 1 else s
        u = s / max(np.linalg.norm(s), q.reach)
        t = q.base + q.slope * s
        p = softmax(t) if k > 1 else expit(t)
    if not np.isfinite([*u, *p]).all():
        return np.zeros(2)
    return np.array([u @ (unit(y, k) if k > 1 else [y]) - u @ p, u @ (np.diag(p) - np.outer(p, p)) @ s / q.reach])


def of_slope(q, x, y):
    return short(in_slope(q, ext(x) @ q.scores, y), q.clip_norm)


def of_log_odds(q, z, y, group):
    half = 0.0 if math.isnan(z) else float(np.clip(z / 2 + 0.005, -3, 3))
    cell = unit(np.searchsorted(q.cuts, round(100 * half), side="right"), 4)
    return np.outer(unit(group if q.n_groups > 1 else 0, q.n_groups), np.outer(unit(y, 2), cell)).ravel()


def score_itself(scores, targets):
    return scores


def errors(q, scores, y, group):
    e, (u, s) = min(abs(np.nan_to_num(y)) / q.error_bound, 1.0), np.clip(np.nan_to_num(scores), -1, 1)
    s = np.sign(s)
    parts = [e - 0.5, e**2 - 0.5, (e**4 - 0.5) / 2, s / 2]
    return np.array([*parts, u, u**2 - 0.5, (u**4 - 0.5) / 2, (e**2 * u**2 - 0.5) / 2, u**3 / 2, e**2 * u / 2])


def losses(q, scores, y, group):
    z = np.rint(q.steps * np.clip(np.nan_to_num(scores), -1, 1))
    return np.array([z, math.floor(z**2 / (4 * q.steps)) - q.steps // 8])[: q.size]


def score_and_target(scores, targets):
    return np.stack([scores, targets])


def moments(q, scores, y, group):
    x = [min(max(np.nan_to_num(number), 0.0), 1.0) for number in (scores, y)]
    return np.array([x[0] - 0.5, x[1] - 0.5, *((a * b - 0.5) / 2 for a, b in ((x[0], x[0]), x, (x[1], x[1])))])


def saddle(q, x, y, *points):
    """Return the explicit gradients of one record at some points: of the primal, then of the dual side."""
    at = [q.saddle.at(q.saddle.read(Batch(row(x)[None], np.array([y]))), *point) for point in points or [(q.primal, q.dual)]]
    return [np.concatenate([part.total(np.ones(1)) for part in parts]) for a in at for parts in (a.primal(), a.dual())]


def joint(q, x, y):
    sides = zip(saddle(q, x, y), (0.7, 0.3), (q.primal_clip_norm, q.dual_clip_norm), strict=True)
    return np.concatenate([math.sqrt(share) * short(g, c) / c for g, share, c in sides])


def primal_difference(q, x, y):
    here, _, there, _ = saddle(q, x, y, (q.primal, q.dual), (q.previous_primal, q.previous_dual))
    return short(here - there, q.clip_norm)


def octave(v):
    """Return the place of a number in a histogram: by sign and binary exponent from -60 to 60."""
    if math.isnan(v) or math.isinf(v):
        return 243
    exponent = np.clip(math.frexp(v)[1], -60, 60) + 60
    return 121 if v == 0 else int(122 + exponent if v > 0 else 120 - exponent)


def octaves(q, cells, y):
    bucket = 256 if math.isnan(cells[3]) or math.isinf(cells[3]) else int(np.clip(cells[3], 0, 256))
    return np.concatenate([*(unit(octave(v), 244) for v in cells[:3]), unit(bucket, 257), 2 * unit(octave(y), 244)])


def fine(q, cells, y):
    parts = []
    for v, (low, high), weight in zip([*cells[:2], y], q.limits, (1, 1, 2), strict=True):
        whole = [] if weight == 2 or high - low > 128 else list(np.arange(math.ceil(low), math.floor(high) + 1))
        even = np.zeros(q.even_bins)
        if low <= v <= high and v not in whole:
            even[min(math.floor((v - low) / (high - low) * q.even_bins), q.even_bins - 1)] = weight
        parts += [even, [float(v == one) for one in whole]]
    return np.concatenate(parts)


def on_trees(q, cells, y):
    """Return the path of each cell through the tree over its leaves, and its category with the weight."""
    paths = []
    for v, edges in zip(cells[:2], q.edges, strict=True):
        there = min(max(v, edges[0]), edges[-1])
        leaf = 2 * sum(edges < there) + (there in edges) if math.isfinite(v) else 1023
        for level in range(10):
            node, place = divmod(leaf, 1024 >> level)
            paths.append(unit(node, 1 << level) * (1 if place < 512 >> level else -1))
    bucket = 4 - (not math.isfinite(cells[2])) if not math.isfinite(cells[3]) else int(np.clip(cells[3], 0, 2))
    return np.concatenate([*paths, math.sqrt(2.5) * unit(bucket, 5), [1.0] * q.weighted])


def in_limits(q, cells, y):
    u = [np.clip(2 * (v - low) / (high - low) - 1, -1, 1) for v, (low, high) in zip(cells[:2], q.limits, strict=True)]
    u = np.where(np.isfinite(cells[:2]), u, 0.0) * (1 - 2.0**-18)
    return np.stack([u, q.square_weight * u**2], axis=1).ravel()


AT_BOUNDS = tuple((np.array([*corner, 0.0]), 0.0) for corner in product((-2.0, 3.0), (0.0, 1.0), (-1.0, 7.0)))


def products_of(q, cells, y):
    u = [np.clip(2 * (v - low) / (high - low) - 1, -1, 1) for v, (low, high) in zip(cells[:3], q.bounds, strict=True)]
    v = np.rint(np.append(1.0, u) * 2**22) if np.isfinite(cells[:3]).all() else np.zeros(4)
    terms = np.outer(v, v) * np.where(np.eye(4), 0.5, 1.0) // 2**22
    return (terms * np.where(np.eye(4), 2 * q.diagonal, 1.0))[np.triu_indices(4)]


def ranks_of(q, cells, y):
    """Return the part of a record that is between the places of each choice, and below the ends of each candidate."""
    v = cells[q.column]
    if not math.isfinite(v):
        return np.zeros(2 * q.size + len(q.choices))
    v = np.clip(v, q.edges[0], q.edges[-1])
    number = sum(int(v > e) + int(v >= e) for e in q.edges) - 1
    before = lambda places: np.clip(np.asarray(places) - number, 0, 1)  # noqa: E731
    parts = [before([c.stop, *c.low, *c.high]) - before(c.start) for c in q.choices]
    return np.concatenate(parts)


def rank_scores(q, total):
    scores = []
    for c, part in zip(q.choices, np.split(total, np.cumsum([2 * c.low.size + 1 for c in q.choices])[:-1]), strict=True):
        target = c.share * part[0] + c.shift
        low, high = part[1 : 1 + c.low.size], part[1 + c.low.size :]
        scores.append(c.offset - np.maximum(0, np.maximum(low - target, target - high)) / max(c.share, 1 - c.share))
    return np.concatenate(scores)


def ranks(start, stop, share, shift=0.0, width=0.25):
    low = np.arange(start, stop - width + 1e-9, 0.25)
    return Ranks(start, stop, share, shift, low, low + width, np.sin(low))


def residuals(q, scores, y, bound):
    with np.errstate(all="ignore"):
        return short(-slope(q.loss, scores, y), bound)


def in_leaf(q, bins, y, base, trees):
    leaf = sum(int(side[bins[c]]) << d for d, (c, side) in enumerate(zip(q.columns, q.splits, strict=True)))
    return np.outer(residuals(q, base + trees, y, q.clip_norm), unit(leaf, 8)).ravel()


def weight_of_trees(q, bins, y, base, trees):
    h = short(trees.astype(float), q.limit)
    return np.array([h @ residuals(q, scores, y, 1.0) for scores in (base, base + trees)])


def distance(q, bins, y, base, trees):
    apart = abs(np.nan_to_num(float(base[0]) + q.weight * float(trees[0]) - q.centre))
    return unit(next((place for place in range(19) if apart < 2.0 ** (place - 18)), 19), 20)


def of_link(q, bins, y, base, trees, exposure=None):
    with np.errstate(all="ignore"):
        u = np.nan_to_num((float(base[0]) + q.weight * float(trees[0]) - q.centre) / q.width)
    u, share = np.clip(u, -1, 1), np.clip((y - q.zero) / q.span, 0, 1)
    more = [] if exposure is None else [exposure]
    cell = unit(min(math.floor(16 * (u + 1)), 31), 32) * (1.0 if exposure is None else exposure)
    return np.concatenate([cell, [share, share * u / math.sqrt(3)], more])


def in_cells(q, x, y):
    low, high, cell = -np.ones(2), np.ones(2), 0
    for axis in q.axes[: q.level + 1]:
        middle = (low[axis] + high[axis]) / 2
        upper = np.clip(ext(x) @ q.coef[:, axis], -1, 1) >= middle
        (low if upper else high)[axis] = middle
        cell = 2 * cell + upper
    return sum(unit(2 * i + cell % 2, q.size) * (parent == cell // 2) for i, parent in enumerate(q.parents))


def apart(q, x):
    """Return the number of the nearest centre and the difference from it."""
    differences = std(x, q.centres.geometry) - q.centres.points
    nearest = np.argmin(np.linalg.norm(differences, axis=1))
    return nearest, differences[nearest]


def of_clusters(q, x, y):
    nearest, difference = apart(q, x)
    step = short(difference, q.radius)
    return np.concatenate([q.count_weight * q.radius * unit(nearest, 3), np.outer(unit(nearest, 3), step).ravel()])


# ------------------------------------------------------------------ one line for each query


@dataclass(frozen=True)
class Case:
    """A query with its definition.

    ``term(query, *record)`` is what a record adds, and ``whole(query, total)`` the answer, given the sum; by default the sum.
    """

    query: Any
    kind: Any
    term: Any
    whole: Any = lambda q, total: total
    linear: bool = True  # the answer is the sum itself
    samples: bool = True
    extra: tuple[Any, ...] = ()  # records that attain the bound
    shared: int = 3  # records of the tables in which neighbours are searched for, beside the one that differs
    reached: tuple[float, float] = (
        NEAR,
        NEAR,
    )  # shares of the sensitivities that the search comes to; less if they are no maxima
    precision: float = 1e-6

    def definition(self, records, weights=None):
        weights = np.ones(len(records)) if weights is None else weights
        if self.term is None:
            return self.whole(self.query, records, weights)
        terms = (
            weight * np.asarray(self.term(self.query, *record), dtype=float)
            for record, weight in zip(records, weights, strict=True)
        )
        return self.whole(self.query, sum(terms))

    def answer(self, records, storage="C", without=(), some=None, **given):
        data = self.kind.data(self.query, records, storage, **given)
        data = data.without(np.array(without)) if len(without) else data
        with np.errstate(all="ignore"):
            return self.query.evaluate(data if some is None or not self.sampled else data.subset(some))

    @property
    def sampled(self):
        return self.samples and isinstance(self.kind, Rows)


CLASSES, NO_CONSTANT, NUMBERS = Rows(2), Rows(2, constant=0.0), Rows((0.0, -0.4, 1.0, -1.0, 1e150, -1e150))
VECTORS = Rows(((3.0, -4.0), (-3.0, 4.0), (0.1, 0.0), (1e150, 0.0)), storages=("C", "F", "csr"))
WEIGHTS, BY_ROW = (0.5, 2.0), ("C", "F", "csr")
WEIGHED = Rows(2, class_weight=WEIGHTS)
G = Standardization(np.array([0.2, -0.1, 0.05]), np.array([2.0, 4.0, 3.0]), True, R)
PLAIN = Standardization(np.zeros(D), G.scale, False, R)
# The constant of rows beside long z counts for little, so that opposite rows have nearly opposite gradients.
W = Whitening(G.centre, np.array([[3.0, 0.9, 0.0], [-0.9, 3.0, 0.0], [0.0, 0.0, 6.0]]), True, R)
COEF = np.array([[0.8], [-0.5], [0.3], [0.1]])
THREE = np.hstack([COEF, -COEF, COEF[::-1]])
OPPOSED = 300 * np.hstack([COEF, -COEF, 0 * COEF])
EDGES = np.array([0.3, 0.6, 1.2, 4.0])
BLOCK_OF = np.array([0, 2])
TREE_EDGES = np.stack([np.linspace(-255, 255, 511), np.append(np.linspace(0, 255, 256), [255.0] * 255)])
CENTRES = Centres(np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.5], [0.0, 0.0, -3.0]]) - G.scale * G.centre, G)
SIZES, SPLITS = (4, 3, 5), np.array([[0, 1, 1, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 1, 1]], dtype=bool)
TREE = (np.array([0, 2, 2]), SPLITS)
AUC = AUCSaddle(LinearScorer(D), 0.5)
SMALL, ONE = 1e-4 * np.ones(AUC.n_primal), np.ones(1)
FACTS = Minimization(N, D + 1, 0.9, 0.25 * (R**2 + K**2), 2.0, math.log(2), True)
VERTICES = Vertices(L1Ball(1.5).vertices(D))
JOINT = math.hypot(R, K), D + 1


def stationary(q, records, weights):
    """Return the minimum of the weighted clipped losses: where the sum of the gradients is zero."""

    def total(w):
        at = Gradient(q.loss, w[:, None], q.facts.clip_norm)
        return sum(v * gradient(at, ext(x), y) for (x, y), v in zip(records, weights, strict=True)) + q.facts.strength * w

    return root(total, np.zeros(D + 1)).x


# Rows whose z has the length 1.7, in opposite and in orthogonal directions.
OF_LENGTH = tuple(
    (G.centre + sign * math.sqrt(1.7**2 - 1) * v / G.scale, y)
    for v in np.eye(D)
    for sign in (1, -1)
    for y in (-1e150, 0.1, 1e150)
)

CASES = [
    Case(TotalWeight(), CLASSES, lambda q, x, y: [1.0], reached=(NEAR, 0.0)),  # two records differ by weights alone
    Case(LabelSum(), CLASSES, lambda q, x, y: [2 * y - 1]),
    Case(ClassCounts(3), Rows(3), lambda q, x, y: unit(y, 3)),
    Case(Moments(R, D), CLASSES, lambda q, x, y: [*row(x), *row(x) ** 2 / R]),
    Case(FeatureSums(R, D), CLASSES, lambda q, x, y: row(x) / R),
    Case(FeatureTargetSums(R, D), NUMBERS, lambda q, x, y: [*row(x) / R, np.clip(y, -1, 1)]),
    Case(TargetSum(), NUMBERS, lambda q, x, y: [np.clip(y, -1, 1)]),
    Case(TargetSum(2), VECTORS, lambda q, x, y: short(np.array(y), 1.0)),
    Case(TargetExponents(), NUMBERS, lambda q, x, y: unit(0 if y == 0 else math.frexp(y)[1] + 1074, 2099)),
    Case(TargetHistogram(EDGES - 1), NUMBERS, lambda q, x, y: unit(np.searchsorted(q.edges, y, side="right"), 5)),
    Case(SecondMoment(G), CLASSES, lambda q, x, y: square(short(std(x, q.geometry), 1.0))),
    Case(ClassMoments(G), CLASSES, of_classes),
    Case(FirstMoment(G), CLASSES, lambda q, x, y: short(std(x, q.geometry), 1.0)),
    Case(FirstAndSecondMoment(G), CLASSES, first_and_second),
    Case(
        FourthMoments(G, np.eye(D)[:2]),
        CLASSES,
        lambda q, x, y: (q.directions @ short(std(x, q.geometry), 1.0)) ** 4,
        extra=tuple((x, 0) for x, _ in OF_LENGTH),
    ),
    Case(ClassSums(R, D, 2), CLASSES, sums_of_classes),
    Case(ClassSums(R, D, 3), Rows(3, constant=0.0), sums_of_classes),
    Case(
        JointMoments(*JOINT), NUMBERS, lambda q, x, y: [*square(ext(x)), *math.sqrt(2) * q.row_norm * ext(x) * np.clip(y, -1, 1)]
    ),
    Case(
        SmallestEigenvalue(*JOINT),
        CLASSES,
        lambda q, x, y: np.outer(ext(x), ext(x)),
        lambda q, t: np.linalg.eigvalsh(t)[:1],
        linear=False,
        shared=30,
        reached=(0.1, 0.1),
    ),
    Case(Gradient(Logistic(), 0 * COEF, 0.3), CLASSES, lambda q, x, y: gradient(q, ext(x), y)),
    Case(Gradient(Logistic(), COEF, 0.3), WEIGHED, lambda q, x, y: gradient(q, ext(x), y, WEIGHTS[y]), reached=(NEAR, 0.9)),
    Case(Gradient(Multinomial(3), 9 * THREE, 0.3), Rows(3), lambda q, x, y: gradient(q, ext(x), y), reached=(NEAR, 0.9)),
    Case(
        BlockGradient(Logistic(), 0 * COEF, BLOCK_OF, 0.2),
        CLASSES,
        lambda q, x, y: short(ext(x)[q.block] * slope(q.loss, ext(x) @ q.coef, y), q.clip_norm),
    ),
    Case(
        CoordinateScores(Logistic(), 0 * COEF, np.array([0.2, 0.3, 0.2, 0.1]), np.ones(4)),
        CLASSES,
        lambda q, x, y: by_coordinate(q, ext(x), y, q.clip_norms[:, None]),
        lambda q, t: abs(t + q.offset) / q.clip_norms,
        linear=False,
    ),
    Case(
        Vertex(Logistic(), np.zeros((D, 1)), 0.2, VERTICES, np.ones((D, 1))),
        NO_CONSTANT,
        lambda q, x, y: by_coordinate(q, row(x), y, q.clip_norm),
        lambda q, t: -q.vertices.products(t + 1.0),
        linear=False,
    ),
    Case(Difference(Logistic(), 9 * COEF, -9 * COEF, 0.5, 0.01), CLASSES, difference, reached=(NEAR, 0.9)),
    Case(Curvature(Logistic(), 0 * COEF, 0.2), CLASSES, curvature, lambda q, t: half_vector(t), reached=(NEAR, 0.9)),
    Case(Curvature(Logistic(), COEF, 0.2, False), CLASSES, curvature, lambda q, t: half_vector(t), reached=(NEAR, 0.9)),
    Case(
        NewtonDirection(Curvature(Logistic(), 0 * COEF, 0.5), np.array([[1.0], [0.0], [0.0], [0.5]]), np.full(4, 0.7), N),
        CLASSES,
        lambda q, x, y: curvature(q.curvature, x, y),
        lambda q, t: np.linalg.solve(t + np.diag(q.ridge), q.gradient)[:, 0],
        linear=False,
        reached=(0.3, 0.3),
    ),
    Case(StandardizedGradient(Logistic(), 0 * COEF, 0.3, G), CLASSES, lambda q, x, y: gradient(q, [*std(x, q.geometry), 1.0], y)),
    Case(
        StandardizedGradient(Logistic(), COEF, 0.3, G, class_weight=(0.03, 1.0)),
        WEIGHED,
        lambda q, x, y: gradient(q, [*std(x, q.geometry), 1.0], y, WEIGHTS[y] * q.class_weight[y]),
        reached=(NEAR, 0.9),
    ),
    Case(
        StandardizedGradient(Squared(), COEF, 0.3, W),
        replace(NUMBERS, storages=BY_ROW),
        lambda q, x, y: gradient(q, [*std(x, q.geometry), 1.0], y),
    ),
    Case(
        ShortenedGradient(BoundedProper(), 99 * COEF, 0.3, W), replace(CLASSES, storages=BY_ROW), shortened, reached=(0.98, 0.95)
    ),
    Case(ShortenedGradient(Quantile(0.9), COEF, 0.3, G, offset=1.0, unit=2.0, power=1.5), NUMBERS, shortened, reached=(0.5, 0.3)),
    Case(ResidualSigns(COEF), NUMBERS, lambda q, x, y: np.sign(ext(x) @ q.coef - y)),
    Case(DistanceHistogram(G, EDGES), CLASSES, lambda q, x, y: place(np.linalg.norm(std(x, q.geometry)), q.edges)),
    Case(
        ResidualHistogram(G, EDGES, 0.2),
        NUMBERS,
        lambda q, x, y: place(abs(0.2 - y) * np.linalg.norm([*std(x, q.geometry), 1.0]), q.edges),
    ),
    Case(
        ResidualSizes(COEF, EDGES, G), NUMBERS, lambda q, x, y: place(abs([*std(x, q.geometry), 1.0] @ q.coef[:, 0] - y), q.edges)
    ),
    Case(
        Bread(Huber(0.4), COEF, 1.7, G),
        NUMBERS,
        lambda q, x, y: sandwich(q, x, y, lambda w, raw, y: w * q.loss.information(raw, y)[0, 0]),
        reached=(NEAR, 0.95),
        extra=OF_LENGTH,
    ),
    Case(
        Meat(Huber(0.4), COEF, 1.7, G),
        NUMBERS,
        lambda q, x, y: sandwich(q, x, y, lambda w, raw, y: (w * q.loss.derivative(raw, y)[0, 0]) ** 2),
        reached=(NEAR, 0.95),
        extra=OF_LENGTH,
    ),
    Case(CellCounts(np.hstack([COEF, COEF[::-1]]), (0, 1, 0, 1), 2, np.array([0, 2, 3])), CLASSES, in_cells),
    Case(ClusterCounts(CENTRES), CLASSES, lambda q, x, y: unit(apart(q, x)[0], 3)),
    Case(ClusterDistances(CENTRES, EDGES), CLASSES, lambda q, x, y: place(np.linalg.norm(apart(q, x)[1]), q.edges)),
    Case(ClusterSteps(CENTRES, 0.3), CLASSES, of_clusters),
    Case(FewCountsSteps(CENTRES, 0.3), CLASSES, of_clusters),
    Case(HatSums(BLOCK_OF), CLASSES, lambda q, x, y: short(np.maximum(row(x)[q.columns], 0.0), 1.0)),
    Case(ScoreGradient(Logistic(), COEF, np.array([1.2, -0.3]), 0.5), CLASSES, calibration, reached=(NEAR, 0.9)),
    # Descents of confident scores are negative, or nearly 0: so two records come near c, and not 2c.
    Case(SlopeDerivatives(300 * COEF, 1, 1.2), CLASSES, of_slope, reached=(NEAR, 0.5)),
    Case(SlopeDerivatives(OPPOSED, 3, 0.7), Rows(3), of_slope, reached=(NEAR, 0.5)),
    Case(SlopeDerivatives(OPPOSED, 3, 0.7, base=np.array([1.0, -2.0, 0.5]), reach=0.3), Rows(3), of_slope, reached=(NEAR, 0.5)),
    Case(
        SlopeDerivatives(300 * COEF, 1, 1.2, 2.0),
        WEIGHED,
        lambda q, x, y: short(WEIGHTS[y] * in_slope(q, ext(x) @ q.scores, y), q.clip_norm),
        reached=(NEAR, 0.5),
    ),
    Case(ScoreCounts(COEF, (-50, 0, 50)), CLASSES, of_scores),
    Case(ScoreCounts(None, (-50, 1, 50), n_groups=3), Scored(), of_log_odds),
    Case(ScoreTree(None, (-50, 1, 50)), Scored(), of_log_odds, lambda q, t: (t.reshape(2, 4) @ tree(4).T).ravel()),
    Case(ErrorSums(0.7, True), Scored(of_errors=True), errors, reached=(0.98, 0.85)),
    Case(ErrorSums(0.7, False), Scored(of_errors=True), lambda q, *record: errors(q, *record)[:4], reached=(NEAR, 0.85)),
    Case(MomentSums(score_and_target, 2), Scored(), moments),
    Case(LossSums(score_itself, 64, squared=True), Scored(), losses, reached=(NEAR, 0.99)),
    Case(LossSums(score_itself, 1), Scored(), losses),
    Case(
        PrimalGradient(AUC, SMALL, 0 * ONE, 1e-6),
        CLASSES,
        lambda q, x, y: short(saddle(q, x, y)[0], q.clip_norm),
        reached=(NEAR, 0.99),
    ),
    Case(DualGradient(AUC, SMALL, 0 * ONE, 1e-6), CLASSES, lambda q, x, y: short(saddle(q, x, y)[1], q.clip_norm)),
    Case(JointGradient(AUC, SMALL, 0 * ONE, 1e-6, 7e-7, 0.3), CLASSES, joint, reached=(NEAR, 0.99)),
    Case(
        PrimalDifference(AUC, SMALL, 0 * ONE, SMALL, ONE, 1e30, 0.0, 1e-6),
        CLASSES,
        primal_difference,
        reached=(NEAR, 0.99),
        precision=CANCELLED,
    ),
    Case(Minimum(Logistic(), FACTS), CLASSES, None, stationary, linear=False, samples=False, shared=N - 1, reached=(0.1, 0.1)),
    Case(ColumnHistograms((False, False, False, True), target=True), Cells(), octaves),
    Case(
        TargetHistogram(2.0 ** np.array([-3, -3]) * [-1, 1]),
        Cells(),
        lambda q, cells, y: unit(np.searchsorted(q.edges, y, side="right"), 3),
    ),
    Case(FineHistograms((0, 1), np.array([[0.0, 64.0], [-1.0, 1.0], [-0.5, 0.5]]), target=True, even_bins=64), Cells(), fine),
    Case(HaarCounts((0, 1), TREE_EDGES, ((3, 2),), (3,)), Cells(), on_trees, reached=(NEAR, 0.99)),
    Case(HaarCounts((0, 1), TREE_EDGES, ((3, 2),), (3,), weighted=True), Cells(), on_trees, reached=(NEAR, 0.95)),
    Case(LimitedMoments((0, 1), np.array([[-2.0, 3.0], [0.0, 1.0]])), Cells(), in_limits),
    Case(EvenMoments((0, 1), np.array([[-2.0, 3.0], [0.0, 1.0]])), Cells(), in_limits),
    Case(SecondMoment(PLAIN), NO_CONSTANT, lambda q, x, y: square(short(std(x, q.geometry), 1.0))),
    Case(ClassMoments(PLAIN), NO_CONSTANT, of_classes),
    Case(FirstAndSecondMoment(PLAIN), NO_CONSTANT, first_and_second),
    Case(
        StandardizedGradient(Logistic(), 0 * COEF[:D], 0.3, PLAIN),
        NO_CONSTANT,
        lambda q, x, y: gradient(q, std(x, q.geometry), y),
    ),
    Case(
        StandardizedGradient(SquaredDistance(2), COEF @ [[1.0, -0.5]], 0.3, W),
        VECTORS,
        lambda q, x, y: gradient(q, np.append(std(x, q.geometry), 1.0), y),
    ),
    Case(
        ResidualHistogram(W, EDGES, np.array([-0.3, 0.1])),
        VECTORS,
        lambda q, x, y: place(np.linalg.norm(q.prediction - y) * math.hypot(np.linalg.norm(std(x, q.geometry)), 1.0), q.edges),
    ),
    Case(FeatureTargetSums(R, D, 2), VECTORS, lambda q, x, y: [*row(x) / R, *short(np.array(y), 1.0)]),
    Case(
        BinCounts(SIZES),
        Binned(Logistic()),
        lambda q, bins, *rest: np.concatenate([unit(b, n) for b, n in zip(bins, SIZES, strict=True)]),
    ),
]
for kind, attained in ((ProductMoments, (0.93, NEAR)), (HalfVectorMoments, (NEAR, NEAR))):
    query = kind((0, 1, 2), np.array([[-2.0, 3.0], [0.0, 1.0], [-1.0, 7.0]]))
    CASES += [Case(query, Cells(), products_of, extra=AT_BOUNDS, reached=attained)]
CASES += [
    Case(ScoreOctaves(0.7, 0.1), Binned(Squared()), distance),
    Case(LinkSums(0.7, 0.1, 0.8, -1.0, 0.5), Binned(Squared()), of_link),
    Case(ExposedLinkSums(0.7, 0.1, 0.8, -1.0, 0.5), Binned(Squared(), exposed=True), of_link),
    Case(
        ExposedHistogram(EDGES - 1),
        Exposed(NUMBERS.targets),
        lambda q, x, y, w: [*unit(np.searchsorted(q.edges, y, side="right"), 5), np.clip(np.nan_to_num(w), 0, 1)],
    ),
]
for query in (ClippedMoments(-1.0, 3.0), ClippedMoments(-1.0, 3.0, False, False, 3), WeightedMoments(-1.0, 3.0)):
    CASES += [Case(query, Cells(), of_cell)]
for query in (JointHistogram((0, 3), (sign_of, sign_of), (3, 3)), JointHistogram((0,), (sign_of,), (3,), True)):
    CASES += [Case(query, Cells(), in_grid)]
CASES += [
    Case(ClippedMoments(1.0, 8.0, missing=False, fill=0.0), Cells(), of_cell),
    Case(JointHistogram((0,), (sign_of,), (2,), rest=True), Cells(), in_grid),
    Case(Deviations(-1.0, 3.0, -0.5), Cells(), deviation),
    Case(Deviations(-1.0, 3.0, 1.0, 4, column=1), Cells(), deviation),
    # About the mean, three others are at the other bound, as far from the null record as they can be.
    Case(
        Deviations(-1.0, 3.0, 0.25, about_mean=True, n_samples=4),
        OneBound(),
        squares,
        variance_of,
        linear=False,
        reached=(0.74, NEAR),
    ),
]
CASES += [Case(SingleCount((0,), (lambda cells: np.isnan(cells).astype(int),), (1,)), Cells(), in_grid)]
for loss in (Logistic(), Multinomial(3)):
    CASES += [
        Case(
            SlopeDerivatives(0.7, loss.n_outputs, 1.2),
            Binned(loss),
            lambda q, b, y, base, trees: in_slope(q, base.astype(np.float32) + 0.7 * trees.astype(np.float32), y),
            reached=(NEAR, 0.5) if loss.n_outputs == 1 else (0.85, 0.4),
        )
    ]
CELL_EDGES = np.array([-3.5, -1.0, 0.0, 0.5, 1.0, 7.25])
for choices, attained in (
    ((ranks(0.0, 11.0, 0.5, width=1.0),), (NEAR, NEAR)),
    ((ranks(0.0, 9.0, 0.3, -0.75, width=0.0),), (0.4, 0.4)),
    ((ranks(0.0, 3.0, 0.5), ranks(3.0, 4.75, 0.2, 0.5), ranks(4.75, 11.0, 0.75)), (0.7, 0.7)),
):
    CASES.append(Case(RankScores(2, CELL_EDGES, choices), Cells(), ranks_of, rank_scores, False, reached=attained))
for loss in (Logistic(), Multinomial(3), Squared()):
    CASES += [
        Case(LeafSums(loss, *TREE, 0.5), Binned(loss), in_leaf),
        Case(TreeWeight(loss, 3.0), Binned(loss), weight_of_trees),
        Case(ResidualSum(loss, 0.7, 0.5), Binned(loss), lambda q, b, y, base, trees: residuals(q, base + 0.7 * trees, y, 0.5)),
    ]

IDS = [f"{number} {type(case.query).__name__}" for number, case in enumerate(CASES)]
every_query = pytest.mark.parametrize("case", CASES, ids=IDS)
every_adjacency = pytest.mark.parametrize("adjacency", ADJACENCIES)


def test_every_query_has_a_line():
    kinds = [getattr(queries, name) for name in queries.__all__]
    kinds = {kind for kind in kinds if isinstance(kind, type) and issubclass(kind, Query)}
    assert {kind.__name__ for kind in kinds - {type(case.query) for case in CASES}} == INTERFACES


# ------------------------------------------------------------------ the answer


@every_query
def test_the_answer_is_that_of_the_definition(case, rng):
    """In every storage; without null records, whatever is in their place; and of a sample."""
    records = case.kind.usual(rng)
    others = [case.kind.usual(rng)[i] if i in NULL else record for i, record in enumerate(records)]
    kept = [record for i, record in enumerate(records) if i not in NULL]
    close = {"rtol": case.precision, "atol": case.precision}
    for storage in case.kind.storages:
        answer = case.answer(records, storage)
        assert answer.shape == (case.query.size,) and answer.dtype == np.float64
        np.testing.assert_allclose(answer, case.definition(records), **close)
        present = case.answer(records, storage, NULL)
        np.testing.assert_allclose(present, case.definition(kept), **close)
        np.testing.assert_array_equal(present, case.answer(others, storage, NULL))
        if case.sampled and storage in ("C", "csr"):
            some = np.arange(0, N, 3)
            sample = case.query.evaluate(case.kind.data(case.query, records, storage, by_row=True).subset(some))
            np.testing.assert_allclose(sample, case.definition([records[i] for i in some]), **close)


@every_query
def test_null_records_alone_give_what_no_record_gives(case, rng):
    answer = case.answer(case.kind.usual(rng), without=np.arange(N))
    np.testing.assert_array_equal(answer, case.answer(case.kind.usual(rng), without=np.arange(N)))
    assert not (case.linear and answer.any())


@every_query
def test_a_weight_multiplies_the_clipped_term_of_its_record(case, rng):
    """In every storage; a record of weight 0 is a null record."""
    records, weights = case.kind.usual(rng), rng.integers(5, size=N) / 4
    null = np.flatnonzero(weights == 0)
    for storage in case.kind.storages:
        weighted = case.answer(records, storage, weights=weights)
        np.testing.assert_allclose(weighted, case.definition(records, weights), rtol=case.precision, atol=case.precision)
        assert np.abs(weighted - case.answer(records, storage)).max() > 1e-7  # weights do something
        absent = case.answer(records, storage, weights=np.ceil(weights))
        np.testing.assert_array_equal(absent, case.answer(records, storage, null))
        np.testing.assert_array_equal(absent, case.answer(records, storage, null, weights=np.ones(N)))


# ------------------------------------------------------------------ the sensitivity


def changes(case, storage, query=None):
    """Return the answers for tables that differ in the last record, and that in which it is null."""
    rng = np.random.default_rng(0)
    shared, case = case.kind.usual(rng)[: case.shared], case if query is None else replace(case, query=query)
    candidates = [*case.kind.hostile(rng), *case.extra][:: 1 if storage == "C" else 4]
    null = case.answer([*shared, candidates[0]], storage, [len(shared)])
    np.testing.assert_array_equal(null, case.answer([*shared, candidates[-1]], storage, [len(shared)]))
    return np.array([case.answer([*shared, record], storage) for record in candidates]), null


def furthest(case, storage, norm, query=None):
    """Return the largest changes under both adjacencies."""
    answers, null = changes(case, storage, query)
    assert np.isfinite(answers).all() and np.isfinite(null).all()
    answers = np.unique(answers - null, axis=0)
    if norm is euclidean:
        squares = np.square(answers).sum(axis=1)
        apart = math.sqrt((squares[:, None] + squares - 2 * answers @ answers.T).max())
    else:
        apart = max(norm(answers - one).max() for one in answers)
    return {"zero_out": norm(answers).max(), "replace_one": apart}


def euclidean(rows):
    return np.linalg.norm(rows, axis=-1)


def absolute(rows):
    return np.abs(rows).sum(axis=-1)


def norm_of(query):
    """Return the norm in which the sensitivity is stated: for scores, the sum over their groups of the largest change."""
    if not isinstance(query, Scores):
        return euclidean
    return lambda rows: sum(np.abs(rows[..., group]).max(axis=-1) for group in query.groups(np.arange(query.size)))


@cache
def found(place, storage):
    return furthest(CASES[place], storage, norm_of(CASES[place].query))


@pytest.mark.parametrize("place", range(len(CASES)), ids=IDS)
@every_adjacency
def test_no_neighbour_moves_the_answer_further_than_the_sensitivity_and_some_attain_it(place, adjacency):
    """Under hostile rows, targets and scores; the bound is attained where the case does not say less."""
    case = CASES[place]
    bound = case.query.sensitivity(adjacency)
    if not isinstance(case.query, Vertex | RankScores):
        assert bound == pytest.approx(case.query.relative_sensitivity[adjacency] * case.query.clip_norm, rel=1e-15)
    assert case.query.sensitivity("zero_out") <= case.query.sensitivity("replace_one")
    for storage in {"C", "csr"} & {*case.kind.storages}:
        moved = found(place, storage)[adjacency]
        least = case.reached[ADJACENCIES.index(adjacency)] if storage == "C" else 0.0  # for the others, fewer are searched
        assert least * bound <= moved <= ROUNDING * bound


COUNTING = [case for case in CASES if type(case.query).l1_sensitivity is not Query.l1_sensitivity]


@pytest.mark.parametrize("case", COUNTING, ids=lambda case: f"{type(case.query).__name__}{case.query.size}")
def test_integers_move_no_further_than_their_l1_sensitivity(case):
    for adjacency, moved in furthest(case, "C", absolute).items():
        assert 0.99 <= moved / case.query.l1_sensitivity(adjacency) <= 1
    answers, _ = changes(case, "C")
    np.testing.assert_array_equal(answers, np.rint(answers))


# ------------------------------------------------------------------ persons

ROWS = (1, 2, 3, 7, 500)  # numbers of rows of a person


def persons_of(sizes):
    """Return persons with these numbers of rows, one after another."""
    return Persons(np.repeat(np.arange(len(sizes)), sizes), len(sizes))


def furthest_person(case, persons=persons_of, trials=60):
    """Return the largest change by a person with extreme rows, as a share of the sensitivity, under both adjacencies."""
    rng, query = np.random.default_rng(1), case.query
    shared, hostile = case.kind.usual(rng)[: case.shared], [*case.kind.hostile(rng), *case.extra]
    norm = norm_of(query)
    moved = dict.fromkeys(ADJACENCIES, 0.0)
    for trial in range(trials):
        answers, some = [], np.array([0, len(shared)]) if trial % 2 else None  # of a sample with her, and of all persons
        for k in rng.choice(ROWS, 2).tolist():
            rows = [hostile[i] for i in rng.integers(len(hostile), size=k if rng.random() < 0.5 else 1)]
            rows *= k // len(rows)
            group = persons([1] * len(shared) + [k])
            answers.append(case.answer([*shared, *rows], persons=group, some=some))
            null = case.answer([*shared, *rows], without=range(len(shared), len(shared) + k), persons=group, some=some)
            moved["zero_out"] = max(moved["zero_out"], norm(answers[-1] - null))
        moved["replace_one"] = max(moved["replace_one"], norm(answers[0] - answers[1]))
    return {adjacency: far / query.sensitivity(adjacency) for adjacency, far in moved.items()}


@every_query
def test_no_person_moves_the_answer_further_than_the_sensitivity_of_a_record(case):
    """Persons of 1 to 500 extreme rows, all the same or different ones; in the table, and in samples of persons."""
    shares = furthest_person(case, trials=10 if isinstance(case.query, Minimum) else 60)
    assert 0 < shares["zero_out"] <= ROUNDING and shares["replace_one"] <= ROUNDING


@every_query
def test_a_person_is_the_mean_of_her_rows(case, rng):
    """Also in a sample of persons. The meat and the losses of persons are other sums, which have tests of their own."""
    records, sizes = case.kind.usual(rng), [1] * 10 + [2, 3, 7] + [1] * 5 + [13]
    if isinstance(case.query, LossSums | Meat | Minimum):
        return
    group = persons_of(sizes)
    shares = np.repeat(1 / np.array(sizes), sizes)
    np.testing.assert_allclose(case.answer(records, persons=group), case.definition(records, shares), rtol=2e-6, atol=2e-6)
    if case.sampled:
        some = np.array([0, 5, 10, 12, 14, 18])
        present = np.flatnonzero(np.isin(group.numbers, some))
        expected = case.definition([records[i] for i in present], shares[present])
        np.testing.assert_allclose(case.answer(records, persons=group, some=some), expected, rtol=2e-6, atol=2e-6)


def test_the_meat_of_persons_is_that_of_their_mean_gradients(rng, monkeypatch):
    """Also where the rows of a person are in several chunks."""
    monkeypatch.setattr(training_data, "chunk_rows", lambda d: 4)
    case = next(case for case in CASES if type(case.query) is Meat)
    q, records, sizes = case.query, case.kind.usual(rng), [2, 3, 1, 7, 1, 20, 6]

    def gradient_of(x, y):
        z = np.append(std(x, q.geometry), 1.0)
        weight = min(1.0, (q.row_bound / np.linalg.norm(z)) ** 2)
        return weight * slope(q.loss, z @ q.coef, y) * z

    means = [
        np.mean([gradient_of(*record) for record in rows], axis=0)
        for rows in np.split(np.array(records, dtype=object), np.cumsum(sizes)[:-1])
    ]
    for some in (np.arange(len(sizes)), np.array([1, 3, 6])):
        expected = sum(square(means[person]) for person in some)
        answer = case.answer(records, persons=persons_of(sizes), some=some)
        np.testing.assert_allclose(answer, expected, rtol=2e-6, atol=2e-6)


def test_a_loss_of_a_person_is_the_mean_of_those_of_her_rows():
    rows = ScoredRecords(np.array([0.5, -1.0, 0.25, 0.0, -0.5]), np.zeros(5)).of_persons(Persons(np.array([1, 0, 1, 1, 2]), 3))
    means, query = np.array([-1.0, 0.25, -0.5]), LossSums(score_itself, 64, squared=True)
    expected = [64 * means.sum(), (16 * means**2 - 8).sum()]
    np.testing.assert_array_equal(query.partial(rows), expected)
    np.testing.assert_array_equal(query.partial(rows.without([1])), np.subtract(expected, [-64, 8]))


# ------------------------------------------------------------------ the numbers in it

INFINITE = {"Difference": {"gradient_clip_norm", "smoothness"}, "PrimalDifference": {"slope", "offset", "largest"}}


@every_query
def test_a_number_that_is_not_finite_is_refused_before_the_table_is_read(case):
    """In any field, but for public constants of which the clip norm is the smallest."""
    oracle = Oracle.__new__(Oracle)
    oracle._process = os.getpid()
    for field in fields(case.query):
        value = getattr(case.query, field.name)
        if field.name in INFINITE.get(type(case.query).__name__, ()):
            continue
        for wrong in broken(value):
            with pytest.raises((PrivacyAccountingError, ValueError)), np.errstate(all="ignore"):
                oracle.ask(replace(case.query, **{field.name: wrong}))


def broken(value):
    """Yield copies of a value with a number that is not finite, in each part of it; some parts refuse to have one."""
    if isinstance(value, float):
        yield math.nan
    elif isinstance(value, np.ndarray) and value.dtype.kind == "f":
        yield np.where(np.arange(value.size).reshape(value.shape) == value.size - 1, math.nan, value)
    elif isinstance(value, tuple) and value and isinstance(value[0], float):
        yield (math.inf, *value[1:])
    elif isinstance(value, (Standardization, Query)):
        for field in fields(value):
            for wrong in broken(getattr(value, field.name)):
                with contextlib.suppress(ValueError):
                    yield replace(value, **{field.name: wrong})


# ------------------------------------------------------------------ the laws can fail


class Unclipped(Gradient):
    """A gradient that is not clipped."""

    def residuals(self, raw, records):
        return self.loss.derivative(raw, records.targets)


class WeighedAfterwards(StandardizedGradient):
    """Weights of the classes after the clip."""

    def _residuals(self, raw, records):
        weights = np.array(self.class_weight)[records.targets, None]
        return weights * StandardizedGradient._residuals(replace(self, class_weight=None), raw, records)


class Signed(HatSums):
    """Entries of both signs."""

    def _sums(self, batch):
        part = batch.rows[:, self.columns]
        part = part.toarray() if sparse.issparse(part) else part
        return part.T @ (1 / np.maximum(np.linalg.norm(part, axis=1), 1.0))


class Unweighted(Persons):
    """Rows that all weigh 1."""

    weights = property(lambda self: np.ones(len(self.numbers)))


class Nearest(Persons):
    """Weights rounded to the nearest multiple of the grain."""

    weights = property(lambda self: np.rint(2.0**22 / np.bincount(self.numbers))[self.numbers] * 2.0**-22)


@pytest.mark.parametrize("broken, least", ((Unweighted, 100.0), (Nearest, 1 + 1e-6)))
def test_the_search_finds_broken_weights_of_persons(broken, least):
    case = next(case for case in CASES if type(case.query) is Moments)
    shares = furthest_person(case, lambda sizes: broken(np.repeat(np.arange(len(sizes)), sizes), len(sizes)))
    assert shares["zero_out"] > least


def first(kind):
    return next(case for case in CASES if type(case.query) is kind)


@every_adjacency
@pytest.mark.parametrize("broken", (Unclipped, WeighedAfterwards, Signed))
def test_the_search_finds_broken_queries(broken, adjacency):
    kind = broken.__mro__[1]
    case = first(kind)
    given = {field.name: getattr(case.query, field.name) for field in fields(case.query)}
    given |= {"class_weight": (0.03, 2.0)} if broken is WeighedAfterwards else {}
    query = broken(**given)
    moved = furthest(case, "C", euclidean, query)[adjacency] / query.sensitivity(adjacency)
    assert moved > (1.01 if broken is not Signed or adjacency == "replace_one" else 0.99)


def test_a_sensitivity_that_is_one_percent_off_is_seen():
    """Wherever the bound is attained; where it is not, the case says how near the search comes."""
    exact = [case for case in CASES if min(case.reached) >= NEAR]
    assert NEAR > 1 / 1.01 and len(exact) > 0.6 * len(CASES)
