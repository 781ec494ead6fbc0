"""The gallery runs, and its assertions hold."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).resolve().parents[1] / "examples").glob("plot_*.py"))
BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"
DATA = Path(os.environ.get("SKDP_DATA", BESIDE))


def run(example, data, directory):
    quiet = ("ignore:FigureCanvasAgg:UserWarning", "ignore:scipy.optimize:DeprecationWarning")
    command = [sys.executable, "-W", "error", *(part for warning in quiet for part in ("-W", warning)), str(example)]
    environment = {**os.environ, "SKDP_DATA": str(data), "MPLBACKEND": "agg", "PYTHONPATH": str(EXAMPLES[0].parents[1])}
    return subprocess.run(command, capture_output=True, text=True, cwd=directory, env=environment)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_end_with_what_they_assert(example, tmp_path):
    """Noise is seeded."""
    if not (DATA / "adult.csv.gz").exists():
        pytest.skip("no data sets: SKDP_DATA names no directory that has them")
    assert example.read_text().rstrip().splitlines()[-1].startswith("assert ")
    done = run(example, DATA, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_examples_say_what_is_missing(example, tmp_path):
    done = run(example, tmp_path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("is missing; set SKDP_DATA to the directory that holds the data sets.\n")
