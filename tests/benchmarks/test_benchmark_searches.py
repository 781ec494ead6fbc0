"""The commands that make their tables up: growing tables, varied constants, problems on which a constant is better; scores."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier

from benchmarks import constants, curve, floor
from benchmarks.__main__ import main, whole_parser
from benchmarks.curve import LOSSES, POPULATIONS, excess, exponent, rate
from benchmarks.floor import Cell, sample
from benchmarks.scores import calibration_error, fit_and_score, megabytes
from benchmarks.synthetic import FEATURES, Population
from skdp.privacy.accounting.gaussian_dp import gaussian_mu

N = 4000


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("features", FEATURES)
def test_populations_have_the_stated_rows_and_targets(features, task):
    population = Population(features, 7, task, positive_rate=0.1, middle=0.3, spread=0.1, seed=4)
    X, y = population.draw(N, 1)
    assert X.shape == (N, 7) and np.isfinite(X).all() and np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    if task == "classification":
        assert set(y) == {0, 1}
        assert y.mean() == pytest.approx(0.1, abs=5 * math.sqrt(0.09 * (1 / N + 1 / 20_000)))  # five standard errors
    else:
        assert -1 <= y.min() < y.max() <= 1
        assert y.mean() == pytest.approx(0.3, abs=5 * 0.1 / math.sqrt(N))
        assert y.std() == pytest.approx(0.1, rel=5 / math.sqrt(2 * N))


@pytest.mark.parametrize("features", FEATURES)
def test_draws_repeat_and_share_what_is_to_be_learned(features):
    """The half of the draw that fits best predicts another draw: its score is the same function of the latent record."""
    population = Population(features, 5, "regression", signal=10.0, bounded=False, seed=1)
    (X, y), (again, _), (Z, t) = (population.draw(N, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(X, again)
    assert not np.array_equal(X, Z)
    scale = X.std(axis=0) + 1e-12
    A, B = (np.column_stack([np.ones(N), table / scale]) for table in (X, Z))
    solution = np.linalg.lstsq(A, y, rcond=None)[0]
    assert np.corrcoef(B @ solution, t)[0, 1] > (0.5 if features in ("binary", "heavy") else 0.95)


def test_signal_sets_how_much_can_be_predicted():
    for signal in (0.0, 3.0):
        X, y = Population("normal", 3, "regression", signal=signal).draw(N, 0)
        explained = np.corrcoef(np.column_stack([X, y]).T)[-1, :-1]
        assert (explained @ explained) == pytest.approx(signal**2 / (1 + signal**2), abs=0.05)


def test_grid_is_within_its_bounds_and_the_same_every_time():
    cells = sample("classification", 300, 1e6, 3)
    assert cells == sample("classification", 300, 1e6, 3)
    assert cells != sample("classification", 300, 1e6, 4)
    assert all(cell.n_samples * cell.population.n_features <= 1e6 for cell in cells)
    assert {cell.epsilon for cell in cells} == set(floor.EPSILONS)
    assert {cell.population.positive_rate for cell in cells} == set(floor.RATES)
    assert {cell.population.features for cell in cells} == set(FEATURES)
    assert {cell.adjacency for cell in cells} == {"replace_one", "zero_out"}
    assert {cell.population.n_features for cell in cells} == set(floor.WIDTHS)


@pytest.mark.parametrize("adjacency", ["replace_one", "zero_out"])
def test_allowance_of_a_regression_is_what_half_of_the_budget_costs(adjacency):
    """A mean of numbers in [-1, 1], released with half of mu squared: its squared error over their variance."""
    cell = Cell(Population("normal", 2, "regression"), 1000, 0.1, adjacency)
    moved = {"zero_out": 1, "replace_one": 2}[adjacency]  # by which one record can change the sum
    noise = moved / (gaussian_mu(0.1, 1e-6) / math.sqrt(2)) / 1000
    assert cell.allowance(0.2) == pytest.approx(0.05 + noise**2 / 0.2**2)
    again = replace(cell, n_samples=10_000)
    ratio = (cell.allowance(0.2) - 0.05) / (again.allowance(0.2) - 0.05)
    assert 50 < ratio < 100  # a hundred, but for the logarithm in mu


def test_allowance_of_a_classification_is_the_stated_one():
    assert Cell(Population("normal", 2), 300, 0.1, "zero_out").allowance(0.5) == pytest.approx(0.11)


class Rarer(DummyClassifier):
    """Predicts the rarer class."""

    def __init__(self):
        super().__init__(strategy="constant", constant=1)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "found"), [(DummyClassifier, False), (Rarer, True)])
def test_what_is_worse_than_a_constant_is_found(model, found, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(floor, "ours", lambda *budget, **parameters: model())
    monkeypatch.setattr(floor, "RATES", (0.2,))
    monkeypatch.setattr(floor, "SIZES", (1000,))
    monkeypatch.setattr(floor, "EPSILONS", (1.0,))
    words = ["floor", "--problems", "3", "--repeats", "2", "--largest", "20000", "--jobs", "1", "--out", str(tmp_path)]
    if found:
        with pytest.raises(SystemExit, match="below"):
            main(words)
    else:
        main(words)
    records = json.loads((tmp_path / "floor_classification.json").read_text())["records"]
    text, printed = (tmp_path / "floor_classification.md").read_text(), capsys.readouterr().out
    assert len(records) == 3
    for record in records:
        assert (record["short"] > 0) == found
        assert record["constant"] == pytest.approx(0.8, abs=0.02)
        assert record["floor"] == pytest.approx(record["constant"] - 0.013)
        assert record["mean"] == pytest.approx(1 - record["constant"] if found else record["constant"])
    assert printed.count("short by") == 3 * found
    assert f"{3 * found} below" in text


def test_excess_without_its_first_order_part_is_the_distance():
    rng = np.random.default_rng(0)
    private, plain, y = rng.standard_normal((3, 500))
    curved, whole = excess(LOSSES["regression"], private, plain, y)
    assert curved == pytest.approx(np.mean((private - plain) ** 2) / 2)
    assert whole == pytest.approx(np.mean((private - y) ** 2 - (plain - y) ** 2) / 2)
    labels = (y > 0).astype(int)
    for scale in (1e-3, 1.0, 100.0):
        assert excess(LOSSES["classification"], plain + scale * private, plain, labels)[0] > 0
    loss, step = LOSSES["classification"], 1e-6
    numerical = (loss.value(plain + step, labels) - loss.value(plain - step, labels)) / (2 * step)
    np.testing.assert_allclose(loss.slope(plain, labels), numerical, atol=1e-8)


def test_power_tells_the_rate_from_levelling_off():
    sizes = np.array(curve.SIZES)
    for factor, power in ((3 * rate(sizes), 1.0), (np.ones(len(sizes)), 0.0)):
        group = [{"n_samples": int(n), "excess": [0, value, 1]} for n, value in zip(sizes, factor, strict=True)]
        assert exponent(group) == pytest.approx(power, abs=1e-6)
    exact = rate(np.array([1000, 10_000]))
    assert exact[0] == pytest.approx((1000 * gaussian_mu(1.0, 1e-6)) ** -2)
    assert 50 < exact[0] / exact[1] < 100


@pytest.mark.parametrize("words", [("--largest", "10"), ("--populations", "linear", "--solvers", "newton")])
def test_curve_with_nothing_to_measure_says_so(words, monkeypatch, tmp_path):
    monkeypatch.setattr(curve, "N_TEST", 20)
    with pytest.raises(SystemExit, match="Nothing to measure"):
        main(["curve", *words, "--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_every_population_can_be_named_on_the_command_line():
    given = whole_parser().parse_args(["curve", "--populations", ",".join(POPULATIONS)])
    assert given.populations == list(POPULATIONS)


@pytest.mark.slow
def test_curve_falls_and_is_written(monkeypatch, tmp_path):
    monkeypatch.setattr(curve, "N_TEST", 2000)
    monkeypatch.setattr(curve, "SIZES", (1000, 10_000))
    main(["curve", "--populations", "logistic", "--solvers", "auto,gd", "--repeats", "2", "--out", str(tmp_path)])
    contents = json.loads((tmp_path / "curve.json").read_text())
    assert [(record["solver"], record["n_samples"]) for record in contents["records"]] == [
        ("auto", 1000), ("gd", 1000), ("auto", 10_000), ("gd", 10_000)
    ]  # fmt: skip
    small, large = (record["excess"][1] for record in contents["records"] if record["solver"] == "auto")
    assert 0 < large < small / 5
    assert "| logistic | auto |" in (tmp_path / "curve.md").read_text()
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_populations_of_the_curve_need_no_clipping():
    """A row that is shortened is no record of the linear model."""
    for population in POPULATIONS.values():
        X, _ = replace(population, bounded=False).draw(N, 0)
        assert np.mean(np.linalg.norm(X, axis=1) > 1) < 1e-3


def test_every_number_of_a_solver_is_varied():
    solver = constants.varied("standardized_gd")
    changed = list(constants.choices(solver, 60))
    numbers = {name for name, value in solver.get_params().items() if isinstance(value, float | int)}
    assert {choice for choice, *_ in changed} == numbers | {"n_steps"}
    values = {(choice, factor): getattr(other, choice) for choice, factor, other in changed}
    assert [values["clip", factor] for factor in constants.FACTORS] == [0.0625, 0.125, 0.5, 1.0]
    assert [values["n_steps", factor] for factor in constants.FACTORS] == [15, 30, 120, 240]
    assert [values["momentum", factor] for factor in constants.FACTORS] == pytest.approx([0.2, 0.6, 0.9, 0.95])
    assert values["tail_average", 2.0] == 1.0
    assert [values["ridge", factor] for factor in constants.FACTORS] == [0.25, 0.5, 2.0, 4.0]
    usual = solver.get_params()
    for choice, _, other in changed:
        assert {name for name, value in other.get_params().items() if value != usual[name]} == {choice}


@pytest.mark.slow
def test_constants_are_varied_and_written(monkeypatch, tmp_path):
    monkeypatch.setitem(constants.FAMILIES, "made-up normal", (Population("normal", 4), 500))
    monkeypatch.setattr(constants, "N_TEST", 500)
    monkeypatch.setattr(constants, "FACTORS", (0.5,))
    main(["constants", "--tables", "made-up normal", "--epsilons", "1", "--repeats", "2", "--out", str(tmp_path)])
    records = json.loads((tmp_path / "constants.json").read_text())["records"]
    choices = {record["choice"] for record in records}
    assert {"clip", "noise", "n_steps", "momentum", "tail_average", "moments_share", "calibration_share"} <= choices
    text = (tmp_path / "constants.md").read_text()
    for record in records:
        assert record["difference"] != 0 or record["choice"] in ("calibration_share", "n_calibration_steps")  # AUC: order alone
        assert f"| {record['choice']} | {record['factor']:g} | {record['difference']:+.4f} " in text
    assert all((tmp_path / f"constants_standardized_gd_{choice}.png").exists() for choice in choices)


def test_mean_over_tables_has_the_error_of_a_mean():
    records = [{"epsilon": 1.0, "difference": value, "standard_error": 0.003} for value in (0.01, 0.02, 0.03)]
    others = [{"epsilon": 3.0, "difference": 0.5, "standard_error": None}]
    text = constants.over_tables([*records, *others], 1.0)
    assert text == f"+0.0200 +- {0.003 / math.sqrt(3):.4f} [+0.010, +0.030]"
    assert constants.over_tables([*records, *others], 3.0) == "+0.5000 [+0.500, +0.500]"
    assert constants.over_tables(records, 3.0) == ""


def test_calibration_error_is_that_of_the_bins():
    assert calibration_error(np.array([0, 1]), np.array([0.0, 1.0])) == 0
    assert calibration_error(np.array([1, 1, 0, 0]), np.array([0.5, 0.5, 0.5, 0.5])) == 0
    assert calibration_error(np.array([1, 1, 1, 0]), np.array([0.5, 0.51, 0.49, 0.5])) == pytest.approx(0.25)
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p**2).astype(int)
    bins = [(low / 15 <= p) & (p < (low + 1) / 15) for low in range(15)]
    by_hand = sum(chosen.mean() * abs(p[chosen].mean() - y[chosen].mean()) for chosen in bins if chosen.any())
    assert calibration_error(y, p) == pytest.approx(by_hand)


def test_scores_are_those_of_the_probability_of_the_label_1():
    table = Population("normal", 2, positive_rate=0.2).table(500, 500)
    scores = fit_and_score(DummyClassifier(strategy="prior"), table)
    rate, share = table.y_train.mean(), table.y_test.mean()
    assert scores["log_loss"] == pytest.approx(-share * np.log(rate) - (1 - share) * np.log(1 - rate))
    assert scores["calibration_error"] == pytest.approx(abs(rate - share))
    assert (scores["accuracy"], scores["auc"]) == (pytest.approx(1 - share), 0.5)
    certain = fit_and_score(Rarer(), table)  # a probability of 0 costs much, and no infinity
    assert 20 < certain["log_loss"] < 40 and certain["accuracy"] == pytest.approx(share)


class Wasteful(BaseEstimator):
    """Holds ten million bytes for a while."""

    def fit(self, X, y):
        np.ones(10_000_000, dtype=np.int8)
        return self


def test_memory_is_the_peak_of_a_fit():
    assert megabytes(Wasteful(), Population("normal", 2).table(100, 10)) == pytest.approx(10, abs=0.1)
