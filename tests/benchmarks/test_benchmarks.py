"""The benchmark tables, the comparison of methods on a made-up table, and its command line."""

import json
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from benchmarks import plots, resources, speed
from benchmarks.__main__ import main
from benchmarks.methods import METHODS, TASKS, Method
from benchmarks.run import FINALISTS
from benchmarks.scores import SCORES
from benchmarks.tables import TABLES, Table, data_directory, load
from skdp.solvers import SOLVERS

# Training rows, test rows, features, mean target in both parts, mean entry of the training rows
EXPECTED = {
    "adult": (32561, 16281, 107, 0.2408, 0.2362, 0.02966333),
    "bank": (36169, 9042, 48, 0.1173, 0.1159, 0.06616039),
    "adult_schema": (32561, 16281, 112, 0.2408, 0.2362, 0.01606375),
    "bank_schema": (36169, 9042, 59, 0.1173, 0.1159, 0.03287673),
    "mammography": (8946, 2237, 6, 0.0216, 0.0300, -0.005486029),
    "mnist10k": (10000, 10000, 784, 0.5070, 0.5074, 0.01381209),
    "covertype": (74370, 18592, 54, 0.4876, 0.4875, 0.05479676),
    "ijcnn1": (49990, 91701, 22, 0.0971, 0.0950, 0.04589571),
    "spambase": (3681, 920, 57, 0.3907, 0.4076, 0.01862951),
    "california": (16512, 4128, 13, -0.1709, -0.1791, 0.1388148),
    "bike": (13903, 3476, 58, -0.6212, -0.6204, 0.03984718),
    "scale": (200000, 50000, 50, 0.4998, 0.4992, 3.914059e-05),
}
WRONG = {
    "unknown table": ["--tables", "adult,nothing"],
    "unknown method": ["--methods", "nothing"],
    "epsilon zero": ["--epsilons", "0,1"],
    "epsilon infinite": ["--epsilons", "inf"],
    "epsilon no number": ["--epsilons", "1,,2"],
    "unknown adjacency": ["--adjacency", "some"],
    "no repeats": ["--repeats", "0"],
    "half a repeat": ["--repeats", "1.5"],
}


class Counting(ClassifierMixin, BaseEstimator):
    """Remembers what it was built with, gets as many test labels right as its seed says, and ranks the wrong way round."""

    fitted = ()

    def __init__(self, epsilon, delta, adjacency, seed, more=0):
        self.epsilon, self.delta, self.adjacency, self.seed, self.more = epsilon, delta, adjacency, seed, more

    def fit(self, X, y):
        self.right_ = (self.seed or 0) + self.more
        Counting.fitted = (*Counting.fitted, (self.epsilon, self.delta, self.adjacency, self.seed))
        return self

    def predict(self, X):
        return np.where(np.arange(len(X)) < self.right_, X[:, 0], 1 - X[:, 0]).astype(int)

    def decision_function(self, X):
        return 0.5 - self.predict(X)

    def predict_proba(self, X):
        return np.tile([0.25, 0.75], (len(X), 1))


class Halving(RegressorMixin, BaseEstimator):
    """Predicts half of the first column."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return X[:, 0] / 2


@pytest.fixture
def made_up(monkeypatch):
    """Tables "tiny" and "numbers", whose target is the first column; methods "counting", "replacing" and "halving"."""
    Counting.fitted = ()
    y, t = np.tile([0, 1], 50), np.tile([-1.0, 0.0, 1.0], 20)
    X, T = np.column_stack([y, 1 - y]).astype(float), t[:, None]
    monkeypatch.setitem(TABLES, "tiny", lambda directory: Table(X, y, X[:10], y[:10]))
    monkeypatch.setitem(TABLES, "numbers", lambda directory: Table(T, t, T[:6], t[:6], "regression"))
    counting = {"classification": (Counting,)}
    several = {"classification": tuple(partial(Counting, more=more) for more in range(8))}
    monkeypatch.setitem(METHODS, "counting", Method("counts", counting))
    monkeypatch.setitem(METHODS, "replacing", Method("counts", counting, adjacencies=("replace_one",), pure=True))
    monkeypatch.setitem(METHODS, "halving", Method("halves", {"regression": (lambda *budget: Halving(),)}))
    monkeypatch.setitem(METHODS, "tuned*", Method("counts more", several))


def run(out, *words):
    """Run the command line, and read what it wrote."""
    main(["run", "--out", str(out), *words])
    return json.loads((out / "accuracy.json").read_text()), (out / "accuracy.md").read_text()


def test_every_table_is_checked_here():
    assert list(EXPECTED) == list(TABLES)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("name", EXPECTED)
def test_tables_have_their_shapes_targets_and_values(name):
    if name != "scale" and not data_directory().exists():
        pytest.skip("no data sets: SKDP_DATA names no directory")
    table = load(name)
    n_train, n_test, n_features, *means = EXPECTED[name]
    assert (table.X_train.shape, table.X_test.shape) == ((n_train, n_features), (n_test, n_features))
    assert (table.y_train.shape, table.y_test.shape) == ((n_train,), (n_test,))
    np.testing.assert_allclose([table.y_train.mean(), table.y_test.mean()], means[:2], atol=1e-4)
    assert table.X_train.mean() == pytest.approx(means[2], rel=1e-6)
    X, y = np.vstack([table.X_train, table.X_test]), np.concatenate([table.y_train, table.y_test])
    assert np.linalg.norm(X, axis=1).max() <= 1 + 1e-12
    if table.task == "classification":
        assert y.dtype.kind == "i" and set(y) == {0, 1}
    else:
        assert y.dtype == np.float64 and -1 <= y.min() < y.max() <= 1


def test_unknown_table_lists_the_known():
    with pytest.raises(ValueError, match=r"'nothing'; expected one of adult, bank, .*scale"):
        load("nothing")


@pytest.mark.parametrize("name", [name for name in EXPECTED if name != "scale"])
def test_missing_file_names_the_variable(name, monkeypatch, tmp_path):
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="SKDP_DATA"):
        load(name)


def test_missing_file_is_an_error_of_the_command_line(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        run(tmp_path, "--tables", "adult")
    assert stopped.value.code == 2
    assert "SKDP_DATA" in capsys.readouterr().err


@pytest.mark.slow
def test_private_methods_get_what_was_asked(made_up, tmp_path):
    words = ("--tables", "tiny", "--methods", "counting", "--epsilons", "3,0.5", "--repeats", "2")
    results, _ = run(tmp_path, *words, "--adjacency", "zero_out")
    asked = [(epsilon, 1e-4, "zero_out") for epsilon in (0.5, 3.0)]
    first, again, memory, *others = Counting.fitted
    assert (first, again) == ((*asked[0], 0), (*asked[0], 1))
    assert memory == first  # in a fit of its own, which is not timed, once for all budgets
    assert others == [(*asked[1], 0), (*asked[1], 1)]
    assert [(record["epsilon"], record["delta"], record["adjacency"]) for record in results["records"]] == asked
    assert results["settings"]["seeds"] == [0, 1]
    Counting.fitted = ()
    run(tmp_path, *words, "--adjacency", "both")
    assert {fit[2] for fit in Counting.fitted} == {"replace_one", "zero_out"}


@pytest.mark.slow
def test_noise_is_reproducible_unless_it_is_to_be_secure(made_up, tmp_path):
    words = ("--tables", "tiny", "--methods", "skdp", "--epsilons", "1", "--repeats", "2", "--adjacency", "zero_out")
    seeded, again = (run(tmp_path, *words)[0] for _ in range(2))
    assert scores_of(seeded) == scores_of(again)
    assert "protects nobody" in seeded["settings"]["noise"]
    Counting.fitted = ()
    fresh, _ = run(tmp_path, *words[:2], "--methods", "counting", *words[4:], "--secure")
    assert {fit[3] for fit in Counting.fitted} == {None}
    assert (fresh["settings"]["noise"], fresh["settings"]["seeds"]) == ("secure", [None, None])


def scores_of(results):
    """What does not depend on the machine."""
    return [[record[score] for score in SCORES[record["task"]]] for record in results["records"]]


@pytest.mark.slow
def test_tuned_method_shows_what_is_best_on_the_test_set(made_up, tmp_path):
    words = ("--tables", "tiny", "--methods", "tuned*", "--epsilons", "1", "--repeats", "3", "--adjacency", "zero_out")
    (record,) = run(tmp_path, *words)[0]["records"]
    assert record["auc"] == [0.85, 0.9, 0.95]  # it ranks the wrong way round, so fewest right is best: 0, 1 and 2 of 10
    assert "more=0" not in record["configuration"] and "Counting" in record["configuration"]
    assert len(Counting.fitted) == 8 + 3 * FINALISTS + 1
    Counting.fitted = ()
    run(tmp_path, *words, "--quick")
    assert len(Counting.fitted) == 2 * 2 + 1  # one configuration, two epsilons and seeds, and memory


@pytest.mark.slow
def test_delta_has_a_floor(made_up, monkeypatch, tmp_path):
    y = np.tile([0, 1], 250_000)
    monkeypatch.setitem(TABLES, "tiny", lambda directory: Table(y[:, None], y, y[:10, None], y[:10]))
    run(tmp_path, "--tables", "tiny", "--methods", "counting", "--epsilons", "1", "--repeats", "1")
    assert {delta for _, delta, *_ in Counting.fitted} == {1e-11}


@pytest.mark.slow
def test_scores_are_quartiles_of_the_repeats(made_up, tmp_path):
    words = ("--tables", "tiny", "--methods", "counting,constant", "--adjacency", "zero_out", "--epsilons", "1", "--repeats", "6")
    private, constant = run(tmp_path, *words)[0]["records"]
    assert private["accuracy"] == [0.125, 0.25, 0.375]  # of 0, 0.1, ..., 0.5
    assert private["auc"] == [0.625, 0.75, 0.875]  # the classes are as large as each other, so it is 1 less the accuracy
    assert (private["repeats"], private["n_train"], private["n_features"], private["task"]) == (6, 100, 2, "classification")
    assert private["calibration_error"] == [0.25] * 3  # 0.75 for all, of which half have the label
    assert private["log_loss"] == pytest.approx([-np.log(0.75 * 0.25) / 2] * 3, abs=1e-5)
    assert all(private["fit_seconds"][0] <= second for second in private["fit_seconds"]) and private["megabytes"] >= 0
    assert (constant["repeats"], constant["delta"], constant["epsilon"], constant["adjacency"]) == (1, None, None, None)
    assert constant["accuracy"] == constant["auc"] == [0.5, 0.5, 0.5]


@pytest.mark.slow
def test_markdown_has_the_quartiles_of_the_json(made_up, tmp_path):
    words = ("--tables", "tiny,numbers", "--methods", "counting,tuned*,sklearn,halving", "--epsilons", "0.5,3", "--repeats", "2")
    results, text = run(tmp_path, *words)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    for record in results["records"]:
        name, guarantee = record["method"].replace("*", r"\*"), record["adjacency"] or "not private"
        low, middle, high = record["auc" if record["task"] == "classification" else "r2"]
        digits = 4 if record["task"] == "classification" else 3
        cell = f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]" if record["private"] else f"{middle:.{digits}f}"
        assert any(line.startswith(f"| {name} | {guarantee} |") and cell in line for line in lines)
    assert sum(line.startswith("| counting |") for line in lines) == 2 * 2  # the score of choice, and the others
    assert "optimistic" in text and "| tiny |" not in text  # ours did not run, so there is nothing to compare
    assert (tmp_path / "accuracy_tiny.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "accuracy_numbers.png").exists() and not (tmp_path / "accuracy.png").exists()


@pytest.mark.slow
def test_markdown_compares_ours_with_the_best_of_the_others(made_up, monkeypatch, tmp_path):
    monkeypatch.setitem(METHODS, "worse", Method("counts", {"classification": (partial(Counting, more=5),)}))
    words = ("--tables", "tiny", "--methods", "skdp,counting,worse,sklearn", "--epsilons", "100", "--repeats", "1")
    results, text = run(tmp_path, *words, "--adjacency", "zero_out")
    (line,) = [line for line in text.splitlines() if line.startswith("| tiny |")]
    own, *others = (record["auc"][1] for record in results["records"][:3])
    assert others == [1.0, 0.5] and "(counting)" in line
    assert line.split(" | ")[1] == "1.0000"  # scikit-learn's
    assert f"{own:.4f}" in line and f"{max(others):.4f}" in line and "**" in line


def test_json_names_versions_and_settings(made_up, tmp_path):
    results, _ = run(tmp_path, "--tables", "tiny", "--methods", "constant")
    assert {"skdp", "scikit-learn", "numpy"} <= set(results["versions"])
    assert results["python"] == sys.version.split()[0]
    settings = results["settings"]
    assert (settings["tables"], settings["methods"], settings["repeats"]) == (["tiny"], ["constant"], 10)
    assert (settings["epsilons"], settings["adjacencies"]) == ([0.1, 0.5, 1.0, 3.0], ["replace_one", "zero_out"])


def test_methods_run_on_tables_of_their_task(made_up, tmp_path, capsys):
    words = ("--epsilons", "1", "--repeats", "1", "--adjacency", "zero_out")
    results, text = run(tmp_path, "--tables", "tiny,numbers", "--methods", "halving", *words)
    assert [(record["table"], record["r2"][1]) for record in results["records"]] == [("numbers", 0.75)]
    assert "tiny is skipped: none of the methods that can run is for classification" in capsys.readouterr().out
    assert "tiny was skipped" in text


@pytest.mark.slow
def test_methods_run_for_neighbours_of_their_guarantee(made_up, tmp_path, capsys):
    words = ("--tables", "tiny", "--methods", "replacing", "--epsilons", "1", "--repeats", "1")
    results, text = run(tmp_path, *words, "--adjacency", "both")
    assert [(record["adjacency"], record["delta"]) for record in results["records"]] == [("replace_one", 0.0)]
    assert "| replacing | replace_one, delta 0 |" in text
    results, _ = run(tmp_path, *words, "--adjacency", "zero_out")
    assert results["records"] == []
    assert "replacing is skipped: its guarantee is for replace_one only" in capsys.readouterr().out


def test_missing_library_skips_its_method_and_says_so(made_up, monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    monkeypatch.setitem(sys.modules, "diffprivlib.models", None)
    results, text = run(tmp_path, "--tables", "tiny", "--methods", "diffprivlib,constant")
    assert [record["method"] for record in results["records"]] == ["constant"]
    assert "diffprivlib is skipped: its library is not installed" in capsys.readouterr().out
    assert "not installed" in results["skipped"]["diffprivlib"]
    assert "diffprivlib was skipped" in text


def test_every_solver_is_a_method_on_the_tables_that_it_fits():
    assert {f"skdp-{name}" for name in SOLVERS} < set(METHODS)
    unlike = {"kinked", "mirror", "ranking", "saddle", "vertices"}  # losses, constraints and aims that no table has
    for_tables = {name for name, solver in SOLVERS.items() if not solver.needs & unlike}
    assert {name for name in SOLVERS if METHODS[f"skdp-{name}"].builds} == for_tables
    assert "classification" in METHODS["skdp-gd"].builds and set(METHODS["skdp"].builds) == set(TASKS)


@pytest.mark.parametrize("name", ["skdp", "skdp-gd", "skdp-sgd"])
def test_our_methods_spend_what_was_asked(name, made_up):
    table = load("tiny")
    model = METHODS[name].builds["classification"][0](0.5, 1e-5, "zero_out", None).fit(table.X_train, table.y_train)
    assert (model.epsilon, model.delta, model.adjacency, model.data_norm) == (0.5, 1e-5, "zero_out", 1.0)
    assert model.solver == (name[5:] or "auto")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dp-gd*", "dp-sgd*"])
def test_tuned_peers_differ_in_their_parameters_and_spend_the_same(name):
    models = [build(0.5, 1e-9, "zero_out", 3) for build in METHODS[name].builds["classification"]]
    assert len({repr(model) for model in models}) == len(models) > 20
    assert {(model.epsilon, model.delta, model.adjacency) for model in models} == {(0.5, 1e-9, "zero_out")}
    assert all(model.plan(5_000, 10).spent.epsilon <= 0.5 for model in models[:: len(models) - 1])


def test_diffprivlib_gets_epsilon_and_norm(made_up):
    pytest.importorskip("diffprivlib.models", exc_type=ImportError)
    table = load("tiny")
    model = METHODS["diffprivlib"].builds["classification"][0](0.5, 1e-5, "replace_one", 0).fit(table.X_train, table.y_train)
    assert (model.epsilon, model.data_norm, model.C) == (0.5, 1.0, 1.0)
    assert METHODS["diffprivlib"].adjacencies == ("replace_one",) and METHODS["diffprivlib"].pure


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_words_are_explained(words, made_up, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--out", str(tmp_path / "none"), "--tables", "tiny", "--methods", "constant", *words])
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert f"argument {words[0]}" in message
    assert "expected" in message or "choose from" in message
    known = {"--tables": TABLES, "--methods": METHODS, "--adjacency": ("replace_one", "zero_out", "both")}.get(words[0], ())
    assert all(name in message.split("error:")[1] for name in known)
    assert not (tmp_path / "none").exists()


def test_list_names_everything_and_does_nothing(made_up, tmp_path, capsys, monkeypatch):
    monkeypatch.delitem(TABLES, "tiny")
    monkeypatch.delitem(TABLES, "numbers")
    main(["run", "--list", "--out", str(tmp_path / "none")])
    printed = capsys.readouterr().out
    assert all(f"  {name} " in printed for name in (*TABLES, *METHODS))
    assert "None" not in printed
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_all_means_every_name(made_up, tmp_path, monkeypatch):
    for name in EXPECTED:
        monkeypatch.delitem(TABLES, name)
    for name in set(METHODS) - {"counting", "constant"}:
        monkeypatch.delitem(METHODS, name)
    results, _ = run(tmp_path, "--tables", "all", "--methods", "all", "--epsilons", "1", "--repeats", "1")
    assert results["settings"]["tables"] == ["tiny", "numbers"]
    assert sorted(results["settings"]["methods"]) == ["constant", "counting"]


def test_plot_shows_curves_and_lines_without_being_stretched_by_chance():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    private = {"method": "skdp", "adjacency": "zero_out", "private": True}
    curve = [private | {"epsilon": epsilon, "auc": [0.8, 0.85, 0.9]} for epsilon in (0.5, 1.0)]
    flat = [{"method": name, "auc": [score] * 3} for name, score in (("constant", 0.5), ("sklearn", 0.95))]
    plots.draw_curves(axes, curve, "auc")
    plots.draw_lines(axes, flat, "auc")
    assert axes.get_legend_handles_labels()[1] == ["skdp, zero_out", "sklearn, not private", "constant, not private"]
    assert axes.lines[0].get_xydata().tolist() == [[0.5, 0.85], [1.0, 0.85]]
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] > 0.7 and axes.get_ylim()[1] > 0.95


def test_one_terrible_method_does_not_hide_the_others():
    axes = pytest.importorskip("matplotlib.figure").Figure().subplots()
    shared = {"adjacency": "replace_one", "private": True}
    good = [shared | {"method": "skdp", "epsilon": epsilon, "r2": [0.5, 0.6, 0.7]} for epsilon in (0.5, 1.0)]
    bad = [shared | {"method": "diffprivlib", "epsilon": epsilon, "r2": [-1e12, -1e11, -1e10]} for epsilon in (0.5, 1.0)]
    plots.draw(axes, [*good, *bad], "r2")
    low, high = axes.get_ylim()
    assert -0.3 < low < 0.5 and 0.7 < high < 0.8


def test_no_method_has_the_colour_of_ours():
    colours = {name: plots.colour_of(name) for name in METHODS}
    peers = [name for name, method in METHODS.items() if method.private and not name.startswith("skdp")]
    assert [name for name, colour in colours.items() if colour == colours["skdp"]] == ["skdp"]
    assert len({colours[name] for name in peers}) == len(peers)


def test_resources_are_a_command(monkeypatch):
    called = []
    monkeypatch.setattr(resources, "main", lambda: called.append("resources"))
    main(["resources"])
    assert called == ["resources"]


def test_speed_compares_with_the_fastest_other_and_with_an_older_checkout(tmp_path, monkeypatch, capsys):
    measured = {"skdp": [6.0, 8.0, 9.0], "lbfgs": [5.0, 5.0, 5.0], "newton-cholesky": [4.0] * 3, "older skdp": [16.0] * 3}
    asked = []
    monkeypatch.setattr(speed, "turns", lambda *given: asked.append(given) or measured)
    main(["speed", "--cases", "logistic 1000 x 10", "--beside", str(tmp_path), "--out", str(tmp_path)])
    ((case, checkouts, repeats),) = asked
    assert (case, checkouts["older skdp"], repeats) == ("logistic 1000 x 10", tmp_path, 9)
    assert "| 2.00 | 0.50 |" in capsys.readouterr().out
    written = json.loads((tmp_path / "speed.json").read_text())["cases"]["logistic 1000 x 10"]
    assert written["ratios"] == {"of the fastest other": 2.0, "of the older": 0.5} and written["turns"] == 3
