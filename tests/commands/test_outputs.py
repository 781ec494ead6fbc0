"""Outputs of the command line: never over an input, whole or not at all, and no model is lost once its budget is spent."""

import errno
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import skdp
from skdp import DPLogisticRegression, PrivacyLedger, load_model, save_model
from skdp.__main__ import main
from skdp._files._outputs import Output, check_outputs

FACTS = {
    "columns": {"age": {"kind": "number", "bounds": [0, 100]}},
    "target": "ill",
    "classes": [0, 1],
}
FIT = ["fit", "table.csv", "--schema", "facts.json", "--epsilon", "1", "--delta", "1e-6", "--quiet"]


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A directory with a table, its schema, a ledger and a place for what is rescued."""
    (tmp_path / "work").mkdir()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "elsewhere"))
    age = rng.integers(0, 100, 500)
    pd.DataFrame({"age": age, "ill": (age > 50).astype(int)}).to_csv("table.csv", index=False)
    Path("facts.json").write_text(json.dumps(FACTS))
    PrivacyLedger("book.json", epsilon=10.0, delta=1e-5)
    return tmp_path


def contents():
    return {path.name: path.read_bytes() for path in Path().iterdir() if path.is_file()}


def charges():
    return len(PrivacyLedger("book.json").entries)


@pytest.mark.parametrize("link", (None, os.link, os.symlink), ids=("same", "hard", "symbolic"))
@pytest.mark.parametrize(
    "words, output",
    (
        ([*FIT, "--model", "m.skops", "--ledger", "book.json", "--report"], "book.json"),
        ([*FIT, "--model", "m.skops", "--report"], "facts.json"),
        (["predict", "old.skops", "table.csv", "--out"], "table.csv"),
        (["ledger", "book.json", "--out"], "book.json"),
        (["plan", "--n-samples", "9", "--schema", "facts.json", "--epsilon", "1", "--report"], "facts.json"),
    ),
    ids=lambda given: given if isinstance(given, str) else given[0],
)
def test_no_output_is_an_input(words, output, link, folder, capsys):
    save_model(DPLogisticRegression(), "old.skops")
    if link is not None:
        link(output, f"other{Path(output).suffix}")
        output = f"other{Path(output).suffix}"
    before = contents()
    assert main([*words, output]) == 2
    assert re.search("is also .*; expected another name|ledger .* has more than one name", capsys.readouterr().err)
    assert contents() == before
    Path(output).unlink()
    assert link is None or charges() == 0


def test_two_outputs_are_two_files(folder):
    Path("one.json").touch()
    os.link("one.json", "two.json")
    kinds = (".json",)
    with pytest.raises(ValueError, match=r"two.json is also written"):
        check_outputs([(Path("one.json"), kinds), (Path("two.json"), kinds)])
    with pytest.raises(ValueError, match=r"new.json is also written"):
        check_outputs([(Path("new.json"), kinds), (Path("../work/new.json"), kinds)])
    check_outputs([(Path("one.json"), kinds), (Path("new.json"), kinds), (None, kinds)], [Path("two.txt"), None])


@pytest.mark.parametrize("name", (".html", ".json", ".txt"))
def test_a_name_that_is_only_a_suffix_is_refused_before_the_charge(name, folder, capsys):
    assert main([*FIT, "--model", "m.skops", "--ledger", "book.json", "--report", name]) == 2
    assert f"The output is {name}; expected a name that ends in" in capsys.readouterr().err
    assert charges() == 0 and not Path("m.skops").exists()


def test_an_output_is_whole_or_not_there(folder):
    with pytest.raises(KeyError), Output(Path("new.txt"), room=1000) as output:
        assert not Path("new.txt").exists()
        raise KeyError
    Path("old.txt").write_text("old")
    Path("name.txt").symlink_to("old.txt")
    with pytest.raises(TypeError), Output(Path("name.txt")) as output:
        output.write("no bytes")
    assert Path("old.txt").read_text() == "old"
    with Output(Path("name.txt"), room=1000) as output:
        output.write(b"new")
    assert Path("name.txt").is_symlink() and Path("old.txt").read_text() == "new"
    assert {*contents()} == {"table.csv", "facts.json", "book.json", "old.txt", "name.txt"}


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_an_output_has_the_permissions_of_what_it_replaces(folder):
    Path("old.txt").touch(mode=0o600)
    with Output(Path("old.txt"), room=1000) as output:
        (part,) = Path().glob(".skdp-*")
        assert part.stat().st_mode & 0o777 == 0o600
        output.write(b"new")
    assert Path("old.txt").read_bytes() == b"new" and Path("old.txt").stat().st_mode & 0o777 == 0o600


class FullDisk:
    """Every synchronisation of a file below a directory fails, as on a full disk, from a moment on."""

    def __init__(self, monkeypatch):
        self.full, self._synchronise = [], os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, descriptor):
        place = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if any(place.is_relative_to(directory) for directory in self.full):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._synchronise(descriptor)


@pytest.fixture
def disk(monkeypatch):
    if not Path("/proc/self/fd").exists():
        pytest.skip("tells files by /proc")
    return FullDisk(monkeypatch)


def fill_after_the_fit(disk, monkeypatch, *directories):
    run = DPLogisticRegression._task_class.run

    def full(*given):
        disk.full.extend(directories)
        return run(*given)

    monkeypatch.setattr(DPLogisticRegression._task_class, "run", full)


@pytest.mark.parametrize("suffix", (".skops", ".joblib"))
def test_a_model_is_saved_elsewhere_when_the_disk_is_full(suffix, folder, disk, monkeypatch, capsys):
    fill_after_the_fit(disk, monkeypatch, folder / "work")
    assert main([*FIT, "--model", f"m{suffix}", "--ledger", "book.json"]) == 2
    error = capsys.readouterr().err
    assert "No space left on device" in error and "The budget of the fit is spent" in error and error.count("\n") == 1
    (saved,) = (folder / "elsewhere").iterdir()
    assert str(saved) in error and saved.suffix == suffix and charges() == 1
    assert load_model(saved, trust=True)[-1].classes_.tolist() == [0, 1]
    assert {*contents()} == {"table.csv", "facts.json", "book.json"}


@pytest.mark.slow
def test_a_terminal_is_asked_for_another_place(folder, disk, monkeypatch, capsys):
    fill_after_the_fit(disk, monkeypatch, folder / "work")
    answers = iter(["table.csv", "still-full.skops", str(folder / "elsewhere" / "mine")])
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    before = Path("table.csv").read_bytes()
    assert main([*FIT, "--model", "m.skops", "--ledger", "book.json"]) == 2
    assert f"The model is saved as {folder / 'elsewhere' / 'mine.skops'}" in capsys.readouterr().err
    assert load_model(folder / "elsewhere" / "mine.skops")[-1].classes_.tolist() == [0, 1]
    assert Path("table.csv").read_bytes() == before and next(answers, None) is None


@pytest.mark.slow
def test_a_model_for_which_no_place_is_left_is_said_to_be_lost(folder, disk, monkeypatch, capsys):
    fill_after_the_fit(disk, monkeypatch, Path("/"))
    assert main([*FIT, "--model", "m.skops"]) == 2
    assert "the model is lost" in capsys.readouterr().err
    assert {*contents()} == {"table.csv", "facts.json", "book.json"} and not [*(folder / "elsewhere").iterdir()]


def test_a_disk_that_is_full_before_the_fit_costs_nothing(folder, disk, capsys):
    disk.full.append(folder / "work")
    assert main([*FIT, "--model", "m.skops", "--ledger", "book.json"]) == 2
    error = capsys.readouterr().err
    assert "No space left on device" in error and "spent" not in error and charges() == 0
    assert {*contents()} == {"table.csv", "facts.json", "book.json"}


def test_a_report_that_cannot_be_written_costs_no_model(folder, monkeypatch, capsys):
    def fails(*given):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("skdp._commands._fit.report_content", fails)
    assert main([*FIT, "--model", "m.skops", "--report", "r.html"]) == 2
    error = capsys.readouterr().err
    assert "r.html could not be written (No space left on device). The budget of the fit is spent; m.skops is written" in error
    assert load_model("m.skops")[-1].privacy_report_ is not None and not Path("r.html").exists()


@pytest.mark.slow
def test_predictions_replace_an_older_file_as_a_whole(folder, disk, monkeypatch, capsys):
    assert main([*FIT, "--model", "m.skops"]) == 0
    for name in ("out.csv", "out.csv.gz"):
        Path(name).write_bytes(b"old")
        assert main(["predict", "m.skops", "table.csv", "--out", name]) == 0
    assert gzip.decompress(Path("out.csv.gz").read_bytes()) == Path("out.csv").read_bytes()
    np.testing.assert_array_equal(pd.read_csv("out.csv").shape, (500, 3))
    Path("out.csv").write_bytes(b"old")
    disk.full.append(folder)
    assert main(["predict", "m.skops", "table.csv", "--out", "out.csv"]) == 2
    assert Path("out.csv").read_bytes() == b"old"


LIMITED = """
import resource, signal, sys
from skdp import _commands
from skdp.__main__ import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "limit"),
    (
        (["ledger", "new.sqlite", "--epsilon", "1", "--delta", "1e-6"], 0),
        ([*FIT, "--model", "m.skops", "--ledger", "book.json"], 2048),
    ),
    ids=("ledger", "fit"),
)
def test_a_ledger_on_a_full_disk_is_one_line_and_no_model(words, limit, folder):
    """No file may grow beyond a limit, in a process of its own: SQLite's writes fail as on a full disk."""
    pytest.importorskip("resource")
    environment, before = {**os.environ, "PYTHONPATH": str(Path(skdp.__file__).parents[1])}, contents()
    command = [sys.executable, "-c", LIMITED, str(limit), *words]
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 2 and run.stderr.count("\n") == 1 and re.match("error: (The ledger|File too large)", run.stderr)
    assert contents() == before and charges() == 0
