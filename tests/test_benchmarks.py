"""The benchmark tables, the comparison of methods on a made-up table, and its command line."""

import json
import sys

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from benchmarks import report, resources
from benchmarks.__main__ import main
from benchmarks.methods import METHODS, Method
from benchmarks.tables import TABLES, Table, data_directory, load

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
    """Remembers what it was built with, gets as many test labels right as it has predecessors, and ranks the wrong way round."""

    fitted = ()

    def __init__(self, epsilon, delta, adjacency):
        self.epsilon, self.delta, self.adjacency = epsilon, delta, adjacency

    def fit(self, X, y):
        self.right_ = len(Counting.fitted)
        Counting.fitted = (*Counting.fitted, (self.epsilon, self.delta, self.adjacency))
        return self

    def predict(self, X):
        return np.where(np.arange(len(X)) < self.right_, X[:, 0], 1 - X[:, 0]).astype(int)

    def decision_function(self, X):
        return 0.5 - self.predict(X)


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
    monkeypatch.setitem(METHODS, "counting", Method("counts", Counting))
    monkeypatch.setitem(METHODS, "replacing", Method("counts", Counting, adjacencies=("replace_one",), pure=True))
    monkeypatch.setitem(METHODS, "halving", Method("halves", lambda *budget: Halving(), task="regression"))


def run(out, *words):
    """Run the command line, and read what it wrote."""
    main(["run", "--out", str(out), *words])
    return json.loads((out / "accuracy.json").read_text()), (out / "accuracy.md").read_text()


def test_every_table_is_checked_here():
    assert list(EXPECTED) == list(TABLES)


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


def test_private_methods_get_what_was_asked(made_up, tmp_path):
    words = ("--tables", "tiny", "--methods", "counting", "--epsilons", "3,0.5", "--repeats", "2")
    results, _ = run(tmp_path, *words, "--adjacency", "zero_out")
    asked = [(epsilon, 1e-4, "zero_out") for epsilon in (0.5, 3.0)]
    assert list(Counting.fitted) == [cell for cell in asked for _ in range(2)]
    assert [(record["epsilon"], record["delta"], record["adjacency"]) for record in results["records"]] == asked
    Counting.fitted = ()
    run(tmp_path, *words, "--adjacency", "both")
    assert {fit[2] for fit in Counting.fitted} == {"replace_one", "zero_out"}


def test_delta_has_a_floor(made_up, monkeypatch, tmp_path):
    y = np.tile([0, 1], 250_000)
    monkeypatch.setitem(TABLES, "tiny", lambda directory: Table(y[:, None], y, y[:10, None], y[:10]))
    run(tmp_path, "--tables", "tiny", "--methods", "counting", "--epsilons", "1", "--repeats", "1")
    assert {delta for _, delta, _ in Counting.fitted} == {1e-11}


def test_scores_are_quartiles_of_the_repeats(made_up, tmp_path):
    words = ("--tables", "tiny", "--methods", "counting,majority", "--adjacency", "zero_out", "--epsilons", "1", "--repeats", "6")
    private, majority = run(tmp_path, *words)[0]["records"]
    assert private["accuracy"] == [0.125, 0.25, 0.375]  # of 0, 0.1, ..., 0.5
    assert private["auc"] == [0.625, 0.75, 0.875]  # the classes are as large as each other, so it is 1 less the accuracy
    assert (private["repeats"], private["n_train"], private["n_features"], private["task"]) == (6, 100, 2, "classification")
    assert (majority["repeats"], majority["delta"], majority["epsilon"], majority["adjacency"]) == (1, None, None, None)
    assert majority["accuracy"] == majority["auc"] == [0.5, 0.5, 0.5]


def test_markdown_has_the_medians_of_the_json(made_up, tmp_path):
    words = ("--tables", "tiny,numbers", "--methods", "counting,skdp,sklearn,halving", "--epsilons", "0.5,3", "--repeats", "2")
    results, text = run(tmp_path, *words)
    lines = [line for line in text.splitlines() if line.startswith("|") and not line.startswith(("| ---", "| method"))]
    cells = {tuple(line[2:-2].split(" | ")[:2]): line[2:-2].split(" | ")[2:] for line in lines}
    for record in results["records"]:
        medians = [record[score][1] for score in ("accuracy", "auc", "r2") if score in record]
        shown = cells[record["method"], record["adjacency"] or "not private"]
        assert len(shown) == 2
        columns = [shown[(0.5, 3.0).index(record["epsilon"])]] if record["private"] else shown
        assert set(columns) == {" / ".join(f"{median:.3f}" for median in medians)}
    assert len(results["records"]) == 2 * 4 + 1 + 4
    assert len(lines) == 2 * 2 + 1 + 2
    assert (tmp_path / "accuracy_tiny.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "accuracy_numbers.png").exists()


def test_json_names_versions_and_settings(made_up, tmp_path):
    results, _ = run(tmp_path, "--tables", "tiny", "--methods", "majority")
    assert {"skdp", "scikit-learn", "numpy"} <= set(results["versions"])
    assert results["python"] == sys.version.split()[0]
    settings = results["settings"]
    assert (settings["tables"], settings["methods"], settings["repeats"]) == (["tiny"], ["majority"], 5)
    assert (settings["epsilons"], settings["adjacencies"]) == ([0.1, 0.5, 1.0, 3.0], ["replace_one", "zero_out"])


def test_methods_run_on_tables_of_their_task(made_up, tmp_path, capsys):
    words = ("--epsilons", "1", "--repeats", "1", "--adjacency", "zero_out")
    results, text = run(tmp_path, "--tables", "tiny,numbers", "--methods", "halving", *words)
    assert [(record["table"], record["r2"][1]) for record in results["records"]] == [("numbers", 0.75)]
    assert "tiny is skipped: none of the methods that can run is for classification" in capsys.readouterr().out
    assert "tiny was skipped" in text


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
    results, text = run(tmp_path, "--tables", "tiny", "--methods", "diffprivlib,majority")
    assert [record["method"] for record in results["records"]] == ["majority"]
    assert "diffprivlib is skipped: its library is not installed" in capsys.readouterr().out
    assert "not installed" in results["skipped"]["diffprivlib"]
    assert "diffprivlib was skipped" in text


@pytest.mark.parametrize(("name", "solver"), [("skdp", "auto"), ("skdp-gd", "gd"), ("skdp-sgd", "sgd")])
def test_our_methods_spend_what_was_asked(name, solver, made_up):
    table = load("tiny")
    model = METHODS[name].build(0.5, 1e-5, "zero_out").fit(table.X_train, table.y_train)
    assert (model.epsilon, model.delta, model.adjacency, model.data_norm) == (0.5, 1e-5, "zero_out", 1.0)
    assert (model.solver, model.random_state) == (solver, None)


def test_diffprivlib_gets_epsilon_and_norm(made_up):
    pytest.importorskip("diffprivlib.models", exc_type=ImportError)
    table = load("tiny")
    model = METHODS["diffprivlib"].build(0.5, 1e-5, "replace_one").fit(table.X_train, table.y_train)
    assert (model.epsilon, model.data_norm, model.C) == (0.5, 1.0, 1.0)
    assert METHODS["diffprivlib"].adjacencies == ("replace_one",) and METHODS["diffprivlib"].pure


@pytest.mark.parametrize("words", WRONG.values(), ids=WRONG)
def test_wrong_words_are_explained(words, made_up, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["run", "--out", str(tmp_path / "none"), "--tables", "tiny", "--methods", "majority", *words])
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


def test_all_means_every_name(made_up, tmp_path, monkeypatch):
    for name in EXPECTED:
        monkeypatch.delitem(TABLES, name)
    for name in set(METHODS) - {"counting", "majority"}:
        monkeypatch.delitem(METHODS, name)
    results, _ = run(tmp_path, "--tables", "all", "--methods", "all", "--epsilons", "1", "--repeats", "1")
    assert results["settings"]["tables"] == ["tiny", "numbers"]
    assert sorted(results["settings"]["methods"]) == ["counting", "majority"]


def test_plot_shows_curves_and_lines_without_being_stretched_by_chance():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    axes = figure.subplots()
    private = {"method": "skdp", "adjacency": "zero_out", "private": True}
    curve = [private | {"epsilon": epsilon, "auc": [0.8, 0.85, 0.9]} for epsilon in (0.5, 1.0)]
    flat = [{"method": name, "auc": [score] * 3} for name, score in (("majority", 0.5), ("sklearn", 0.95))]
    report.draw_curves(axes, curve, "auc")
    report.draw_lines(axes, flat, "auc")
    assert axes.get_legend_handles_labels()[1] == ["skdp, zero_out", "sklearn, not private", "majority, not private"]
    assert axes.lines[0].get_xydata().tolist() == [[0.5, 0.85], [1.0, 0.85]]
    assert axes.get_xscale() == "log"
    assert axes.get_ylim()[0] > 0.7 and axes.get_ylim()[1] > 0.95


def test_resources_are_a_command(monkeypatch):
    called = []
    monkeypatch.setattr(resources, "main", lambda: called.append("resources"))
    main(["resources"])
    assert called == ["resources"]
