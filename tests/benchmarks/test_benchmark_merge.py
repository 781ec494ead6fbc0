"""Runs of several environments are joined: every cell once, the later run's where there are two, and never across settings."""

import json
import shutil

import pytest

from benchmarks.__main__ import main
from benchmarks.report import line
from benchmarks.synthetic import Population
from benchmarks.tables import TABLES

WORDS = ("--tables", "small", "--repeats", "1", "--adjacency", "zero_out")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Directory with three runs on one made-up table, written by the command itself; and their JSON."""
    table, out = Population("normal", 2).table(200, 50), tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(TABLES, "small", lambda directory: table)
        first = run(out / "first", "--methods", "skdp,constant", "--epsilons", "1,3")
        more = run(out / "more", "--methods", "skdp-gd", "--epsilons", "0.5,3", "--repeats", "2")
        again = run(out / "again", "--methods", "skdp", "--epsilons", "3", "--repeats", "3")
    return out, {"first": first, "more": more, "again": again}


@pytest.fixture
def runs(made, tmp_path):
    """Copies of the runs in ``tmp_path``; and their JSON."""
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return made[1]


def run(out, *words):
    """Run, and read the JSON."""
    main(["run", "--out", str(out), *WORDS, *words])
    return json.loads((out / "accuracy.json").read_text())


def merged(tmp_path, *names):
    """Join runs by the command line, and read what it wrote."""
    main(["merge", *(str(tmp_path / name) for name in names), "--out", str(tmp_path / "all")])
    return json.loads((tmp_path / "all" / "accuracy.json").read_text()), (tmp_path / "all" / "accuracy.md").read_text()


@pytest.mark.slow
def test_every_cell_is_there_once_and_the_later_run_wins(runs, tmp_path):
    results, _ = merged(tmp_path, "first", "more", "again")
    cells = [(record["method"], record["epsilon"], record["repeats"]) for record in results["records"]]
    expected = [("skdp", 1.0, 1), ("skdp", 3.0, 3), ("skdp-gd", 0.5, 2), ("skdp-gd", 3.0, 2), ("constant", None, 1)]
    assert sorted(cells, key=str) == sorted(expected, key=str)
    assert [cell for cell in cells if cell[0] == "skdp-gd"] == expected[2:4]  # smaller epsilons first, as the plots need it
    for record in results["records"]:
        assert record in [other for contents in runs.values() for other in contents["records"]]
    assert results["settings"]["methods"] == ["skdp", "constant", "skdp-gd"]
    assert results["settings"]["epsilons"] == [0.5, 1.0, 3.0]
    assert results["settings"]["repeats"] == 3 and results["settings"]["seeds"] == [0, 1, 2]


@pytest.mark.slow
def test_one_run_is_joined_to_itself(runs, tmp_path):
    results, text = merged(tmp_path, "more", "more")
    assert results == runs["more"]
    assert text == (tmp_path / "more" / "accuracy.md").read_text()
    assert (tmp_path / "all" / "accuracy_small.png").read_bytes() == (tmp_path / "more" / "accuracy_small.png").read_bytes()


@pytest.mark.slow
def test_versions_of_all_environments_are_named_and_what_ran_elsewhere_is_not_skipped(runs, tmp_path):
    other = runs["again"] | {"python": "3.0", "versions": {"skdp": "9"}, "skipped": {"constant": "it", "dp-ebm": "missing"}}
    (tmp_path / "again" / "accuracy.json").write_text(json.dumps(other))
    results, text = merged(tmp_path, "first", "again")
    assert results["skipped"] == {"dp-ebm": "missing"}  # the first run has the constant
    assert results["python"] == f"{runs['first']['python']} and 3.0"
    assert f"skdp {runs['first']['versions']['skdp']} and 9" in text


@pytest.mark.slow
def test_cells_that_no_run_has_leave_their_column_empty(runs, tmp_path):
    _, text = merged(tmp_path, "first", "more")
    lines = [[part.strip() for part in found.split("|")[1:-1]] for found in text.splitlines() if found.startswith("| skdp")]
    assert lines
    for found in lines:
        method, fits = found[0], found[5]
        assert [bool(part) for part in found[2:5]] == ([False, True, True] if method == "skdp" else [True, False, True])
        assert fits == ("1" if method == "skdp" else "2")


def test_line_names_every_number_of_fits():
    cells = [{"epsilon": epsilon, "repeats": repeats} for epsilon, repeats in ((1.0, 5), (3.0, 10))]
    cells = [cell | {"fit_seconds": [0, 1, 2], "megabytes": 3} for cell in cells]
    assert line("skdp", "zero_out", 1e-6, cells, [1.0, 3.0], lambda record: "x").split("|")[5].strip() == "5 to 10"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("delta", "other"), ("noise", "secure"), ("quick", True), ("data_norm", 2.0)])
def test_unlike_runs_are_not_joined(name, value, runs, tmp_path, capsys):
    other = runs["again"] | {"settings": runs["again"]["settings"] | {name: value}}
    (tmp_path / "again" / "accuracy.json").write_text(json.dumps(other))
    with pytest.raises(SystemExit) as stopped:
        merged(tmp_path, "first", "again")
    assert stopped.value.code == 2
    message = capsys.readouterr().err
    assert f"different {name}" in message and repr(value) in message
    assert not (tmp_path / "all").exists()


def test_missing_run_is_an_error_of_the_command_line(tmp_path, capsys):
    with pytest.raises(SystemExit):
        merged(tmp_path, "none")
    assert "none" in capsys.readouterr().err
