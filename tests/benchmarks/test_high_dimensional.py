"""The benchmark of many features: populations, least losses in balls, bounds, and what is written."""

import json
import math

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize_scalar
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks import high_dimensional as wide
from benchmarks import wide_tables
from benchmarks.__main__ import main
from benchmarks.high_dimensional_page import CONTESTANTS, ZERO, powers
from benchmarks.wide_tables import POPULATIONS, Wide, draw_table, mean_loss, minimum, product
from skdp.constraints import L1Ball, L2Ball

BALLS = {"l1": L1Ball, "l2": L2Ball}


@pytest.fixture(autouse=True)
def few_test_records(monkeypatch):
    monkeypatch.setattr(wide_tables, "N_TEST", 300)


@pytest.mark.parametrize("name", POPULATIONS)
def test_rows_keep_within_their_bounds_and_reach_them(name):
    table = draw_table(name, 50, 200)
    rows = table.X.toarray() if sparse.issparse(table.X) else table.X.astype(float)
    assert np.abs(rows).max() == table.feature_bound
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.full(50, table.data_norm))
    assert set(np.unique(table.y)) == {0, 1} if table.task == "classification" else np.abs(table.y).max() <= 1


@pytest.mark.each_value
@pytest.mark.parametrize("n_features", [200, 2000])
@pytest.mark.parametrize("name", ["signs", "words", "spread"])
def test_log_odds_vary_alike(name, n_features):
    """The variance is 2.5, so that tables differ by their geometry alone; false alarm: far beyond 8 standard errors."""
    coef = POPULATIONS[name].coef(n_features)
    X = POPULATIONS[name].rows(20_000, n_features, np.random.default_rng(0))
    scores = product(X, coef)
    assert scores.mean() == pytest.approx(0, abs=8 * math.sqrt(2.5 / 20_000))
    assert scores.var() == pytest.approx(2.5, rel=8 * math.sqrt(2 / 20_000))
    radii = draw_table(name, 10, n_features).radii
    assert radii == pytest.approx({"l1": np.linalg.norm(coef, 1), "l2": np.linalg.norm(coef)})


@pytest.mark.parametrize("ball", BALLS)
@pytest.mark.parametrize("name", POPULATIONS)
def test_no_coefficients_in_the_ball_are_better_than_the_gap_allows(name, ball):
    table = draw_table(name, 400, 200)
    within = BALLS[ball](table.radii[ball] / 2)
    coef, gap = minimum(table, within, 1e-4, 2000)
    found = mean_loss(product(table.X, coef), table.y, table.task)
    assert within.contains(coef, 1e-6) and 0 <= gap <= 1e-4
    rng = np.random.default_rng(0)
    true = POPULATIONS[name].coef(200)
    others = [within.project(point) for point in (true, 10 * true, *(coef + rng.normal(scale=0.1, size=(20, 200))))]
    assert all(mean_loss(product(table.X, other), table.y, table.task) >= found - gap - 1e-6 for other in others)


@pytest.mark.slow
def test_minimum_has_known_values():
    """A ball that holds the best coefficients of all; and orthogonal columns, where projecting is minimising."""
    table = draw_table("signs", 600, 40)
    best = LogisticRegression(C=1e8, fit_intercept=False, tol=1e-8).fit(table.X, table.y).coef_.ravel()
    coef, _ = minimum(table, L2Ball(10.0), 1e-7, 5000)
    assert coef == pytest.approx(best, abs=0.01)
    lasso = draw_table("lasso", 600, 40)
    coef, _ = minimum(lasso, L1Ball(100.0), 1e-7, 5000)
    assert coef == pytest.approx(LinearRegression(fit_intercept=False).fit(lasso.X, lasso.y).coef_, abs=1e-3)
    X, y = np.eye(30) * math.sqrt(30), np.random.default_rng(0).normal(size=30)
    orthogonal = Wide(X, y, X, y, "regression", 1.0, 1.0, {})
    for ball in (L1Ball(0.7), L2Ball(0.7)):
        assert minimum(orthogonal, ball, 1e-9, 500)[0] == pytest.approx(ball.project(y / math.sqrt(30)), abs=1e-3)


@pytest.fixture(scope="module")
def bounded():
    """Tables without records: bounds need widths, norms and radii only."""

    def table(n_features, norm, task="classification"):
        X = sparse.csr_array((1, n_features))
        return Wide(X, np.zeros(1), X, np.zeros(1), task, 1.0, norm, {"l1": 5.0, "l2": 1.5})

    return table


def bound(table, solver, s):
    return wide.predicted(table, next(name for name, other in CONTESTANTS.items() if other.solver == solver), s)


@pytest.mark.parametrize("task", wide.SLOPES)
def test_bounds_have_the_powers_of_the_theorems(bounded, task):
    """Of s: -1, -2/3, and -1 after -2/3; of p in rows of signs: 1/2, 0, and 2/3 before 1, but for logarithms."""

    def power_of_s(solver, s):
        return math.log2(bound(bounded(1000, 1.0, task), solver, 2 * s) / bound(bounded(1000, 1.0, task), solver, s))

    assert [power_of_s(solver, 1e3) for solver in ("accmd", "frank_wolfe")] == pytest.approx([-1, -2 / 3])
    assert [power_of_s("gd", s) for s in (1.0, 1e9)] == pytest.approx([-2 / 3, -1])

    def ratio(solver, s):
        return bound(bounded(40_000, 200.0, task), solver, s) / bound(bounded(10_000, 100.0, task), solver, s)

    logarithms = math.log(80_000) / math.log(20_000)
    assert ratio("accmd", 1e3) == pytest.approx(2 * logarithms)
    assert ratio("frank_wolfe", 1e3) == pytest.approx(logarithms ** (2 / 3))
    assert [ratio("gd", s) for s in (1.0, 1e12)] == pytest.approx([4 ** (2 / 3), 4], rel=1e-3)
    assert bound(bounded(40_000, 1.0, task), "gd", 10.0) == bound(bounded(10_000, 1.0, task), "gd", 10.0)
    assert bound(bounded(1000, 1.0, task), "auto", 1e3) is None


@pytest.mark.parametrize("task", wide.SLOPES)
def test_bounds_are_the_least_of_their_sums(bounded, task):
    """Those of steps towards vertices, and of a path, are minimised numerically, from the two terms that are in balance."""
    table, s, (slope, smoothness) = bounded(1000, 3.0, task), 100.0, wide.SLOPES[task]
    curvature, error = smoothness * (2 * 5.0) ** 2, slope * 5.0 * math.log(2000) / s
    least = minimize_scalar(lambda t: 2 * curvature / math.exp(t) + error * math.exp(t / 2))
    assert bound(table, "frank_wolfe", s) == pytest.approx(least.fun)
    noise = slope * 9.0 / s
    least = minimize_scalar(lambda k: 1.5**2 / (2 * math.exp(k)) + smoothness / 2 * (math.exp(k) * noise) ** 2)
    assert bound(table, "gd", s) == pytest.approx(least.fun)


def test_powers_leave_out_what_is_no_better_than_nothing():
    def line(values, bounds):
        return {
            10.0**k: {"excess": [0, value, 0], "predicted": b} for k, (value, b) in enumerate(zip(values, bounds, strict=True))
        }

    lines = {ZERO: line([1, 1, 1, 1], [None] * 4), "a": line([0.9, 0.4, 0.04, 0.004], [9, 7, 0.7, 0.07]), "b": line([0.1], [1])}
    assert powers(lines, "a") == pytest.approx((-1, -1))
    assert all(math.isnan(power) for power in powers(lines, "b"))


@pytest.mark.slow
def test_the_reference_of_a_solver_is_the_least_loss_of_its_own_set():
    """Without noise "gd" comes as close as the gap to it, in either ball."""
    place = wide.Place("signs", 300, 80)
    best = wide.ceilings(place)["least"]
    assert best["l1"] > best["l2"] + 0.01
    for name, ball in (("gd, l1 ball", "l1"), ("gd, l2 ball", "l2")):
        losses = wide.fitted(place, name, math.inf, 1)["losses"]
        assert losses[0] - best[ball] == pytest.approx(0, abs=2 * wide.GAP)


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_is_written(tmp_path, monkeypatch):
    for name, value in {"SIZES": (100, 200), "WIDTHS": (80, 120), "N_SAMPLES": 200, "N_FEATURES": 120}.items():
        monkeypatch.setattr(wide, name, value)
    main(["high-dimensional", "--quick", "--jobs", "1", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "high_dimensional.json").read_text())
    text = (tmp_path / "high_dimensional.md").read_text()
    places = {(r["population"], r["n_samples"], r["n_features"]) for r in contents["records"]}
    everywhere = [name for name, contestant in CONTESTANTS.items() if not contestant.sparse]
    assert len(places) == 3 + 3 + 2 + 2
    assert len(contents["records"]) == len(places) * (3 + len(everywhere)) + 3 * (len(CONTESTANTS) - len(everywhere))
    assert text.count("\n## ") == 9
    for name in CONTESTANTS:
        assert text.count(f"| {name} |") == (8 if name in everywhere else 3) + (not name.startswith("default"))
    assert (tmp_path / "high_dimensional.png").stat().st_size > 10_000
