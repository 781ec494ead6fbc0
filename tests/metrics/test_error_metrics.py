"""Private evaluation of regressors: metrics from noisy sums of errors, intervals, the learned bound, and what is refused."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    d2_tweedie_score,
    mean_absolute_error,
    mean_gamma_deviance,
    mean_poisson_deviance,
    mean_squared_error,
    r2_score,
)
from sklearn.pipeline import make_pipeline

from skdp import PrivacyLedger
from skdp.metrics import (
    RocCurveDisplay,
    dp_mean_absolute_error,
    dp_mean_gamma_deviance,
    dp_mean_poisson_deviance,
    dp_r2_score,
    dp_root_mean_squared_error,
    dp_scorer,
    evaluate,
    plan_evaluation,
)
from skdp.metrics._deviances import Constant, unit_deviance
from skdp.metrics._error_kind import EDGES, DevianceMoments, _occupied, kind_of_errors
from skdp.metrics._metrics import REGRESSION
from skdp.metrics._noisy_errors import NoisyDeviances, NoisyErrors
from skdp.privacy.budget import Budget
from skdp.privacy.oracle import Oracle
from skdp.testing import reproducible_noise

EVERY = tuple(name for name, metric in REGRESSION.items() if not metric.deviance)
OF_DEVIANCE = {kind: (f"{kind}_deviance", f"d2_{kind}") for kind in ("poisson", "gamma")}
EXACT = {"poisson": mean_poisson_deviance, "gamma": mean_gamma_deviance}
BOUNDS = (-3.0, 5.0)


class Column:
    """A model that predicts the first column."""

    def predict(self, X):
        return np.asarray(X)[:, 0]


def records(n, spread=0.4, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 2, n)
    return x[:, None], np.clip(x + 0.1 + spread * rng.normal(size=n), *BOUNDS)


def amounts(kind, n, seed=0, scale=2.0):
    """Counts or positive amounts, and the predictions of a model that is a tenth too high."""
    rng = np.random.default_rng(seed)
    mean = scale * np.exp(0.6 * rng.normal(size=n))
    return 1.1 * mean[:, None], rng.poisson(mean) if kind == "poisson" else mean * rng.gamma(2.0, 0.5, size=n)


def exact(X, y, bound):
    errors = np.minimum(np.abs(y - X[:, 0]), bound)
    return {
        "mae": errors.mean(),
        "rmse": math.sqrt(np.mean(errors**2)),
        "r2": 1 - np.mean(errors**2) / y.var(),
        "coverage": np.mean(y <= X[:, 0]),
    }


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_the_metrics_are_those_of_scikit_learn():
    X, y = records(5000)
    found = evaluate(Column(), X, y, metrics=EVERY, epsilon=math.inf, error_bound=10.0, target_bounds=BOUNDS)
    assert found["mae"].value == pytest.approx(mean_absolute_error(y, X[:, 0]))
    assert found["rmse"].value == pytest.approx(math.sqrt(mean_squared_error(y, X[:, 0])))
    assert found["r2"].value == pytest.approx(r2_score(y, X[:, 0]))
    assert found["coverage"].value == pytest.approx(np.mean(y <= X[:, 0]))
    for metric in found.values():
        assert metric.low < metric.value < metric.high
    clipped = evaluate(Column(), X, y, metrics=EVERY, epsilon=math.inf, error_bound=0.5, target_bounds=BOUNDS)
    for name, value in exact(X, y, 0.5).items():
        assert clipped[name].value == pytest.approx(value), name


@pytest.mark.slow
@pytest.mark.parametrize("given", (2.0, None))
def test_intervals_cover_noise_and_sampling(given):
    X, y = records(400_000, seed=10**6)
    covered, repeats = dict.fromkeys(EVERY, 0), 100
    for seed in range(repeats):
        with reproducible_noise(seed):
            found = evaluate(
                *(Column(), *records(3000, seed=seed)),
                metrics=EVERY,
                epsilon=1.0,
                adjacency="zero_out",
                error_bound=given,
                target_bounds=BOUNDS,
            )
        truth = exact(X, y, found.table.error_bound)
        for name in EVERY:
            covered[name] += found[name].low <= truth[name] <= found[name].high
    assert min(covered.values()) >= 86  # 95 on average; fewer than 86 in one of 7000, for each metric
    assert min(covered.values()) < 100


def test_the_interval_of_r2_covers_where_noise_dominates(rng):
    """Of known means with noise, without sampling errors."""
    u, n = rng.uniform(-0.2, 0.9, 200_000), 10**9
    e, half_range, bound = np.minimum(np.abs(0.3 * rng.normal(size=u.size)), 1.0), 2.0, 2.0
    means = np.mean([e, e**2, e**4, 0 * e, u, u**2, u**4, e**2 * u**2, u**3, e**2 * u], axis=1)
    truth = 1 - means[1] * (bound / half_range) ** 2 / u.var()
    noise, inside = np.full(10, 0.01), 0
    for _ in range(1000):
        low, high = NoisyErrors(means + noise * rng.normal(size=10), noise, bound, half_range, n).r2(0.95)[1:]
        inside += low <= truth <= high
    assert 925 <= inside <= 975  # 950 on average; beyond it in three of 10 000


@pytest.mark.parametrize("unit", (1e-6, 1.0, 1e6))
def test_the_bound_that_is_found_suits_the_errors(unit):
    found = []
    for seed in range(20):
        X, y = records(3000, seed=seed)
        with reproducible_noise(seed):
            found.append(evaluate(Column(), unit * X, unit * y, epsilon=1.0).table.error_bound / unit)
    assert min(found) > 0.9 and max(found) < 3.2  # four standard deviations and the bias are 1.7
    assert set(np.array(found) * unit) <= set(EDGES)


def test_noise_alone_does_not_look_like_errors(rng):
    """In .6 of 10 000 releases. It did in 39, where 4 standard deviations were enough; one range of doubt is not counted."""
    draws = rng.normal(size=(10_000, EDGES.size + 1))
    draws[:, 60:64] += 40
    found = [_occupied(counts, 1.0, 1000)[0][[0, -1]] for counts in draws]
    assert sum(low < 58 or high > 65 for low, high in found) <= 5  # more in one of 40 000


@pytest.mark.parametrize("ranges, count", ((1, 5.1), (2, 4.6), (3, 4.1)))
def test_ranges_apart_from_the_others_are_found(ranges, count):
    counts = np.zeros(EDGES.size + 1)
    counts[40:44], counts[90 : 90 + ranges] = 40, count
    assert _occupied(counts, 1.0, 1000)[0].tolist() == [*range(40, 44), *range(90, 90 + ranges)]
    counts[90 : 90 + ranges] = 3.9
    assert _occupied(counts, 1.0, 1000)[0].tolist() == [*range(40, 44)]


@pytest.mark.parametrize("given", ({"error_bound": 1.0}, {}, {"target_bounds": BOUNDS}))
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_plan_is_the_report_and_a_ledger_pays_once(given, adjacency):
    shared = {"metrics": ["mae", "rmse"], "epsilon": 0.8, "adjacency": adjacency, **given}
    with PrivacyLedger(epsilon=1.0, delta=1e-4, adjacency=adjacency) as ledger, reproducible_noise(0):
        found = evaluate(Column(), *records(3000), **shared)
        assert len(ledger.entries) == 1
    planned, report = plan_evaluation(3000, **shared), found.privacy_report
    assert [str(line) for line in planned.releases] == [str(line) for line in report.releases]
    assert len(report.releases) == (1 if "error_bound" in given else 2)
    assert 0.7999 < report.spent.epsilon == planned.spent.epsilon <= 0.8
    assert f"errors clipped to {found.table.error_bound:.4g}" in str(found)
    assert found.table.noise[0] * 3000 == pytest.approx(
        report.releases[-1].noise_multiplier * math.sqrt(43 / 16 if "target_bounds" in given else 13 / 16)
    )
    assert list(evaluate(Column(), *records(3000), epsilon=1.0, adjacency=adjacency, **given)) == [
        *("mae", "rmse"),
        *(["r2"] if "target_bounds" in given else []),
    ]


def test_few_records_have_no_value():
    with reproducible_noise(0):
        found = evaluate(Column(), *records(60), metrics=EVERY, epsilon=0.1, error_bound=2.0, target_bounds=BOUNDS)
    assert (found["mae"].low, found["mae"].high, found["r2"].low, found["r2"].high) == (0.0, 2.0, -math.inf, 1.0)
    assert all(math.isnan(metric.value) for metric in found.values())


def test_a_constant_target_has_no_r2():
    X = np.zeros((500, 1))
    with reproducible_noise(0):
        found = evaluate(Column(), X, np.zeros(500), metrics="r2", epsilon=1.0, error_bound=1.0, target_bounds=(-1, 1))
    assert math.isnan(found["r2"].value)


@pytest.mark.parametrize(
    "changes, message",
    (
        ({"metrics": ["accuracy"]}, "expected some of mae"),
        ({"metrics": ["r2"]}, r"expected target_bounds="),
        ({"error_bound": 0.0}, "expected a finite number > 0"),
        ({"error_bound": math.nan}, "expected a finite number > 0"),
        ({"error_bound": math.inf}, "expected a finite number > 0"),
        ({"error_bound": 1e200, "metrics": ["r2"], "target_bounds": (-1, 1)}, "expected a finite number >= 1e-50 and <= 1e"),
        ({"error_bound": 1e-200}, "expected a finite number >= 1e-50 and <= 1e"),
        ({"target_bounds": (1, 0)}, "low < high"),
        ({"target_bounds": (0, 5e-324), "error_bound": 1.0}, "low < high"),
        ({"target_bounds": (-1e308, 1e308), "error_bound": 1.0}, "low < high"),
        ({"target_bounds": 3}, r"\(low, high\)"),
        ({"metrics": "d2_poisson", "target_bounds": (-1, 5)}, "lower end >= 0 for 'd2_poisson'"),
        ({"metrics": ["poisson_deviance", "d2_gamma"]}, "follow from different releases"),
        ({"metrics": ["r2", "d2_gamma"], "target_bounds": (1, 5)}, "'r2' and 'd2_gamma' follow from different releases"),
        ({"metrics": "d2_poisson", "epsilon": 0.01}, "do not tell a bound of the errors.* Use a larger"),
        ({"epsilon": 0.01}, "do not tell a bound"),
        ({"delta": 0}, "delta=0"),
        ({"y": np.append(np.zeros(499), math.inf)}, "expected finite numbers"),
        ({"y": np.zeros(499)}, "not one prediction per target"),
        ({"y": np.array(["secret"] * 500)}, "y"),
        ({"X": np.zeros((20, 1)), "y": np.zeros(20)}, "fewer than 50"),
        ({"model": LinearRegression()}, "not fitted"),
        ({"model": object()}, "expected a fitted classifier"),
    ),
)
def test_wrong_input_is_refused_before_anything_is_paid(changes, message):
    X, y = records(500)
    given = {"model": Column(), "X": X, "y": y, "epsilon": 1.0, "adjacency": "zero_out", **changes}
    with PrivacyLedger(epsilon=10.0, delta=1e-4, adjacency="zero_out") as ledger:
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            evaluate(given.pop("model"), given.pop("X"), given.pop("y"), **given)
        assert not ledger.entries and "secret" not in str(caught.value)


@pytest.mark.parametrize("first", (np.timedelta64(5, "ns"), np.datetime64("2031-04-15T00:00:00.000000005")))
def test_dates_and_durations_are_no_targets(first, tmp_path):
    """One of a finer unit would change the numbers of all others."""
    moments = [first] + [np.timedelta64(k, "s") + (first - first) + first for k in range(99)]
    with (
        PrivacyLedger(tmp_path / "a.sqlite", epsilon=1.0, delta=1e-6) as ledger,
        pytest.raises(TypeError, match="whose unit may"),
    ):
        dp_mean_absolute_error(moments, np.zeros(100), epsilon=0.5)
    assert not ledger.entries


def test_bounds_are_for_regressors_and_curves_for_classifiers():
    from made_scores import Scores
    from made_scores import records as of_classes

    with pytest.raises(ValueError, match="for regressors"):
        evaluate(Scores(), *of_classes(500), error_bound=1.0)
    X, y = records(500)
    with reproducible_noise(0):
        found = evaluate(make_pipeline(LinearRegression()).fit(X, y), X, y, epsilon=1.0, error_bound=2.0)
    assert found["mae"].low < mean_absolute_error(y, X[:, 0]) < found["mae"].high
    with pytest.raises(TypeError, match="for a classifier of two"):
        RocCurveDisplay.from_evaluation(found)
    with pytest.raises(ValueError, match="expected some of mae"):
        plan_evaluation(500, metrics=["mae", "accuracy"])


@pytest.mark.parametrize(
    "function, name, scoring, sign",
    (
        (dp_mean_absolute_error, "mae", "neg_mean_absolute_error", -1),
        (dp_root_mean_squared_error, "rmse", "neg_root_mean_squared_error", -1),
        (dp_r2_score, "r2", "r2", 1),
        (dp_mean_poisson_deviance, "poisson_deviance", "neg_mean_poisson_deviance", -1),
        (dp_mean_gamma_deviance, "gamma_deviance", "neg_mean_gamma_deviance", -1),
    ),
)
def test_functions_and_scorers_are_evaluations(function, name, scoring, sign):
    X, y = records(3000)
    bounds = {"epsilon": 0.7, "error_bound": 2.0, "target_bounds": (0.1, 5.0) if "deviance" in name else BOUNDS}
    with reproducible_noise(1):
        expected = evaluate(Column(), X, y, metrics=name, **bounds)[name]
    with reproducible_noise(1), PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        assert function(y, X[:, 0], **bounds) == expected
        assert len(ledger.entries) == 1
    with reproducible_noise(1):
        assert dp_scorer(scoring, **bounds)(Column(), X, y) == sign * expected.value
    with pytest.raises(ValueError, match="expected a finite number > 0"):
        dp_scorer(scoring, error_bound=-1.0)
    with pytest.raises(ValueError, match="not one prediction per target"):
        function(y, X[1:, 0], **bounds)


def test_scorers_refuse_what_their_score_does_not_take():
    with pytest.raises(ValueError, match="expected target_bounds"):
        dp_scorer("r2")
    with pytest.raises(ValueError, match="for regressors"):
        dp_scorer("accuracy", error_bound=1.0)


def test_what_one_target_is_shows_in_no_warning():
    """Also where a program makes errors of underflow."""
    y = np.linspace(0.0, 1.0, 100)
    y[0] = 5e-324
    with np.errstate(all="raise"):
        dp_mean_absolute_error(y, y + 0.1, epsilon=5.0, error_bound=1.0)
        dp_r2_score(y, y + 0.1, epsilon=5.0, target_bounds=(-10, 10), error_bound=1.0)


@pytest.mark.parametrize("error_bound", (1e-50, 1e-9, 1.0, 1e9, 1e50))
@pytest.mark.parametrize("half", (5e-51, 1e-9, 1.0, 1e9, 1e50))
def test_no_public_bounds_end_an_evaluation_after_its_charge(error_bound, half):
    """Squares of their ratio overflow."""
    X, y = records(500)
    with reproducible_noise(0), PrivacyLedger(epsilon=10.0, delta=1e-3) as ledger:
        found = evaluate(Column(), X, y, metrics=EVERY, epsilon=1.0, error_bound=error_bound, target_bounds=(-half, half))
        assert len(ledger.entries) == 1
    assert not any(math.isnan(end) for metric in found.values() for end in (metric.low, metric.high))


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
@pytest.mark.parametrize("value, covered", ((math.nan, 0), (math.inf, 1), (-math.inf, 0), (1e308, 1), (None, 0)))
def test_a_record_without_prediction_has_the_largest_error(value, covered):
    """Of neighbours, one of which has such a record; None is a model that raises an error for it."""

    class Failing(Column):
        def predict(self, X):
            found = np.array(super().predict(X))
            if value is None and (found == 77.0).any():
                raise RuntimeError(f"secret {X}")
            return np.where(found == 77.0, np.nan if value is None else value, found)

    X, y = records(500)
    other, others = X.copy(), np.arange(500) != 123
    other[123] = 77.0
    given = {"metrics": EVERY, "epsilon": math.inf, "error_bound": 2.0, "target_bounds": BOUNDS}
    with np.errstate(all="raise"):
        found = evaluate(Failing(), other, y, **given)
    expected = exact(X[others], y[others], 2.0)
    assert found["mae"].value == pytest.approx((499 * expected["mae"] + 2.0) / 500)
    assert found["rmse"].value == pytest.approx(math.sqrt((499 * expected["rmse"] ** 2 + 4.0) / 500))
    assert found["coverage"].value == pytest.approx((499 * expected["coverage"] + covered) / 500)
    if value is not None:  # the functions of predictions do the same
        error = dp_mean_absolute_error(y, Failing().predict(other), epsilon=math.inf, error_bound=2.0)
        assert error.value == pytest.approx(found["mae"].value)


# ------------------------------------------------------------------ deviances


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
@pytest.mark.parametrize("scale", (0.05, 2.0, 1e6))
@pytest.mark.parametrize("kind", OF_DEVIANCE)
def test_without_noise_deviances_are_those_of_scikit_learn(kind, scale):
    X, y = amounts(kind, 3000, scale=scale)
    mean, d2 = OF_DEVIANCE[kind]
    bound = 100 * (1 + scale) if kind == "poisson" else 100.0
    found = evaluate(Column(), X, y, metrics=[mean, d2], epsilon=math.inf, error_bound=bound)
    assert found[mean].value == pytest.approx(EXACT[kind](y, X[:, 0]))
    assert found[d2].value == pytest.approx(d2_tweedie_score(y, X[:, 0], power=1 if kind == "poisson" else 2), rel=1e-6)
    for metric in found.values():
        assert metric.low < metric.value < metric.high
    bound = float(np.quantile(unit_deviance(kind, y, X[:, 0]), 0.9))
    clipped = evaluate(Column(), X, y, metrics=[mean], epsilon=math.inf, error_bound=bound)
    assert clipped[mean].value == pytest.approx(np.minimum(unit_deviance(kind, y, X[:, 0]), bound).mean())
    assert f"deviances clipped to {bound:.4g}" in str(clipped)


def of_clipped(kind, X, y, table):
    """The exact metrics at the bounds of a release: of the constant that is best for the clipped targets."""
    deviance, within = np.minimum(unit_deviance(kind, y, X[:, 0]), table.error_bound).mean(), table.constant
    y = np.clip(y, within.low, within.high)
    return deviance, 1 - deviance / unit_deviance(kind, y, np.full(y.size, y.mean())).mean()


def released(plan, X, y, rng):
    """What a plan releases, without the source of noise."""
    stds, rows = iter(plan.stds), plan.kind.records(y, X[:, 0])
    return plan.kind.release(lambda query: query.evaluate(rows) + next(stds) * rng.normal(size=query.size), plan)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind, scale, adjacency", (("poisson", 0.1, "zero_out"), ("poisson", 50.0, "replace_one"), ("gamma", 50.0, "zero_out"))
)
def test_intervals_of_deviances_cover_noise_and_sampling(kind, scale, adjacency):
    metrics, whole = [REGRESSION[name] for name in OF_DEVIANCE[kind]], amounts(kind, 200_000, 10**6, scale)
    moments, (rng, covered, known) = kind_of_errors(metrics, None, None), (np.random.default_rng(0), np.zeros(2), {})
    plan = moments.plan(3000, Budget.from_parameters(1.0, None, adjacency, 3000), "gaussian")
    for seed in range(100):
        table = released(plan, *amounts(kind, 3000, seed, scale), rng)
        bounds = table.error_bound, table.constant.low, table.constant.high
        truth = known[bounds] = known.get(bounds) or of_clipped(kind, *whole, table)
        found = [metric.metric(table, 0.95) for metric in metrics]
        covered += [one.low <= value <= one.high for one, value in zip(found, truth, strict=True)]
    assert min(covered) >= 86  # 95 on average; fewer than 86 in one of 7000, for each metric


@pytest.mark.parametrize("rough", (0.8, 1.3))
@pytest.mark.parametrize("kind", OF_DEVIANCE)
def test_the_interval_of_d2_covers_where_noise_dominates(kind, rough, rng):
    """Of known moments with noise, without sampling errors; the constant is a rough mean."""
    X, y = amounts(kind, 100_000)
    moments = DevianceMoments(None, None, kind, True)
    constant = Constant(kind, 0.01, 20.0, rough * y.mean())
    exact = moments._moments(9.0, constant).evaluate(moments.records(y, X[:, 0])) / y.size
    truth, noise, inside = of_clipped(kind, X, y, NoisyDeviances.from_sums(exact, 0.0, 9.0, constant, 1))[1], 0.004, 0
    for _ in range(500):
        table = NoisyDeviances.from_sums(10**9 * (exact + noise * rng.normal(size=9)), 10**9 * noise, 9.0, constant, 10**9)
        low, high = table.d2(0.95)[1:]
        inside += low <= truth <= high
    assert 457 <= inside <= 492  # 475 on average; beyond it in four of 10 000


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
@pytest.mark.parametrize("kind", OF_DEVIANCE)
@pytest.mark.parametrize("value", (math.nan, math.inf, -math.inf, 0.0, -1.0))
def test_a_record_without_a_positive_prediction_has_the_largest_deviance(kind, value):
    X, y = amounts(kind, 500)
    y[123] = 3.0
    X[123] = value
    error = {"poisson": dp_mean_poisson_deviance, "gamma": dp_mean_gamma_deviance}[kind]
    with np.errstate(all="raise"):
        found = error(y, X[:, 0], epsilon=math.inf, error_bound=2.0)
    others = np.delete(np.minimum(unit_deviance(kind, y, X[:, 0]), 2.0), 123)
    assert found.value == pytest.approx((others.sum() + 2.0) / 500)


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_targets_that_have_no_deviance_count_as_the_nearest():
    """A negative number counts as no event, whose deviance from 0 is 0; an amount of 0 has the largest deviance."""
    X, y = amounts("poisson", 500)
    other, none = y.astype(float), y.copy()
    other[:9], none[:9] = [-1.0, -math.inf, -5e-324, *np.full(6, -1e300)], 0
    other[1] = -1e308
    X[:3] = 0.0
    found, expected = (dp_mean_poisson_deviance(t, X[:, 0], epsilon=math.inf, error_bound=5.0) for t in (other, none))
    assert found == expected
    assert unit_deviance("poisson", np.zeros(3), X[:3, 0]).tolist() == [0.0, 0.0, 0.0]
    X, y = amounts("gamma", 500)
    y[0] = 0.0
    found = dp_mean_gamma_deviance(y, X[:, 0], epsilon=math.inf, error_bound=5.0)
    assert found.value == pytest.approx((np.minimum(unit_deviance("gamma", y[1:], X[1:, 0]), 5.0).sum() + 5.0) / 500)


@pytest.mark.parametrize("kind", OF_DEVIANCE)
@pytest.mark.parametrize("given", ({}, {"error_bound": 1e-50}, {"error_bound": 1e50}))
@pytest.mark.parametrize("bounds", (None, np.array([0.0, 1e-50]), (1e-50, 1e50), (1e-50, 3e-50), (1e49, 1e50), (1.0, 1.1)))
@pytest.mark.parametrize("scale", (0.0, 1e-300, 1e300))
def test_no_numbers_end_an_evaluation_of_deviances_after_its_charge(kind, given, bounds, scale):
    X, y = amounts(kind, 300)
    with reproducible_noise(0), PrivacyLedger(epsilon=10.0, delta=1e-3) as ledger, np.errstate(all="raise"):
        found = evaluate(Column(), X, scale * y, metrics=OF_DEVIANCE[kind], epsilon=4.0, target_bounds=bounds, **given)
        assert len(ledger.entries) == 1
    assert not any(math.isnan(end) for metric in found.values() for end in (metric.low, metric.high))


@pytest.mark.parametrize(
    "metrics, given", (("d2_poisson", {}), ("poisson_deviance", {}), ("poisson_deviance", {"error_bound": 9.0}))
)
@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_the_plan_of_deviances_is_the_report_and_a_ledger_pays_once(metrics, given, adjacency):
    shared = {"metrics": metrics, "epsilon": 0.8, "adjacency": adjacency, **given}
    with PrivacyLedger(epsilon=1.0, delta=1e-4, adjacency=adjacency) as ledger, reproducible_noise(0):
        found = evaluate(Column(), *amounts("poisson", 3000), **shared)
        assert len(ledger.entries) == 1
    planned, report = plan_evaluation(3000, **shared), found.privacy_report
    assert [str(line) for line in planned.releases] == [str(line) for line in report.releases]
    assert len(report.releases) == (1 if given else 2)
    assert 0.7999 < report.spent.epsilon == planned.spent.epsilon <= 0.8
    norm = math.sqrt(9 / 8 if metrics == "d2_poisson" else 5 / 16)
    assert found.table.noise * 3000 == pytest.approx(report.releases[-1].noise_multiplier * norm)


def test_a_constant_count_has_no_d2():
    with reproducible_noise(0):
        found = evaluate(Column(), np.ones((500, 1)), np.zeros(500), metrics="d2_poisson", epsilon=3.0)
    assert math.isnan(found["d2_poisson"].value)


@pytest.mark.parametrize("bounds", (None, (0, 50)))
@pytest.mark.parametrize("kind, low", (("poisson", 0.0), ("gamma", EDGES[0])))
def test_targets_of_0_have_a_range_of_their_own(kind, low, bounds):
    X, y = amounts(kind, 3000)
    with reproducible_noise(0):
        y = np.where(np.arange(3000) < 900, 0, y)
        table = evaluate(Column(), X, y, metrics=f"d2_{kind}", epsilon=3.0, target_bounds=bounds).table
    assert table.constant.low == low and table.constant.bound < 100


@pytest.mark.parametrize("kind", OF_DEVIANCE)
def test_slopes_and_curvatures_of_a_constant_are_derivatives(kind):
    constant, step = Constant(kind, 0.5, 4.5, 1.5), 1e-4
    for place in (0.1, 0.25, 0.7):
        before, after = (constant.below(place + sign * step)[0] for sign in (-1, 1))
        assert constant.below(place)[1] == pytest.approx((after - before) / (2 * step), abs=1e-6)
    bends = constant.below(0.25 - step)[0] + constant.below(0.25 + step)[0]  # 1.5 is at the place 1/4
    assert constant.below(0.25)[2] == pytest.approx(bends / (2 * step**2), rel=1e-5)


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_amounts_beyond_all_ranges_have_a_d2_in_given_bounds():
    X, y = amounts("gamma", 500, scale=1e12)
    found = evaluate(Column(), X, y, metrics="d2_gamma", epsilon=math.inf, target_bounds=(1e10, 1e14), error_bound=100.0)
    assert found["d2_gamma"].value == pytest.approx(d2_tweedie_score(np.clip(y, 1e10, 1e14), X[:, 0], power=2))


@pytest.mark.parametrize("kind", OF_DEVIANCE)
def test_noise_in_the_mean_of_the_targets_does_not_lower_the_deviance_of_a_constant(kind):
    """On average: that of the mean is the least one."""
    X, y = amounts(kind, 5000)
    moments, constant = DevianceMoments(None, None, kind, True), Constant(kind, 0.01, 20.0, y.mean())
    exact = NoisyDeviances.from_sums(
        moments._moments(9.0, constant).evaluate(moments.records(y, X[:, 0])), 0.0, 9.0, constant, y.size
    )

    def spread(shift):
        table = replace(exact, first=exact.first + shift * np.eye(3)[2], noise=abs(shift))
        return 1 / (1 - table.d2(0.95)[0])

    correction = constant.below(float(exact.first[2]) + 0.005)[0] / exact.first[0] * constant.bound / 9.0
    assert abs((spread(0.005) + spread(-0.005)) / 2 - spread(0.0)) < 0.2 * correction


@pytest.mark.parametrize("names", (EVERY, *OF_DEVIANCE.values(), ("poisson_deviance",)))
@pytest.mark.parametrize("given", ({}, {"error_bound": 4.0}))
def test_other_records_with_the_same_answers_leave_the_same_result(names, given, monkeypatch):
    """Also where records are hostile, and warnings of these would be told."""
    answers, ask = [], Oracle.ask
    hostile = (
        np.resize([0.0, -1.0, 5e-324, 1e300, -1e308], 500),
        np.resize([np.nan, 0.0, np.inf, -np.inf, 1e-300, 1e308, 1.0], 500),
    )
    given = {"metrics": names, "target_bounds": (0.1, 9.0), "epsilon": 3.0, **given}

    def kept(oracle, query):
        answers.append(ask(oracle, query))
        return answers[-1]

    left = []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for seed, (X, y) in enumerate((amounts("gamma", 500), (hostile[1][:, None], hostile[0]))):
            replay = iter(answers)
            answer = (lambda oracle, query, replay=replay: (ask(oracle, query), next(replay))[1]) if seed else kept
            monkeypatch.setattr(Oracle, "ask", answer)
            with reproducible_noise(seed), np.errstate(all="raise"):
                found = evaluate(Column(), X, y, **given)
            left.append([repr(vars(found.table)), str(found), str(found.privacy_report), found.privacy_report.to_dict()])
        assert left[0] == left[1] and not said
