"""The gallery runs, and its assertions hold."""

import os
import runpy
from pathlib import Path

import matplotlib
import pytest
import sklearn
from matplotlib import pyplot
from packaging.version import Version

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"), reason="scripts that run with the newest libraries: once is enough"
)

matplotlib.use("agg")

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("plot_*.py"))
WITH_DATA = [example for example in EXAMPLES if "SKDP_DATA" in example.read_text()]  # others need no data set
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
DATA = Path(os.environ.get("SKDP_DATA", BESIDE))


QUICK = (
    "plot_confidence_bands",
    "plot_cost_of_privacy",
    "plot_mixture",
    "plot_rare_class",
)  # less than a second; `make docs` runs all
BY_LENGTH = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] * (path.stem not in QUICK)) for path in EXAMPLES]


def test_the_quick_examples_are_there():
    assert {path.stem for path in EXAMPLES} > set(QUICK)


@pytest.mark.slow
@pytest.mark.parametrize("example", BY_LENGTH)
def test_examples_end_with_what_they_assert(example, monkeypatch):
    """Noise is seeded."""
    if example in WITH_DATA and not DATA.is_dir():
        pytest.skip(f"no data sets in {DATA}; SKDP_DATA names the directory that has them")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    assert example.read_text().rstrip().splitlines()[-1].startswith("assert ")
    pyplot.close("all")
    runpy.run_path(str(example))
    assert len(pyplot.get_fignums()) == example.read_text().count("plt.show()")
    pyplot.close("all")


@pytest.mark.parametrize("example", WITH_DATA, ids=lambda path: path.stem)
def test_examples_say_what_is_missing(example, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("SKDP_DATA", str(tmp_path))
    with pytest.raises(SystemExit) as stopped:
        runpy.run_path(str(example))
    assert not stopped.value.code
    assert capsys.readouterr().out.endswith("is missing; set SKDP_DATA to the directory that holds the data sets.\n")
