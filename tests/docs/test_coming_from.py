"""Each line of the tables for users of other libraries runs, on their side where the library imports."""

import inspect
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import skdp
from skdp import stats
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler, LearnedSchema

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "user_guide"


def codes(library, side):
    """Code of one side of the table of a page."""
    page = (GUIDE / f"from_{library}.md").read_text()
    lines = (
        re.search(rf"\| {library} \| `skdp` \|\n\|---\|---\|\n(.*?)\n\n", page, re.DOTALL | re.IGNORECASE).group(1).splitlines()
    )
    cells = [line.strip("|").split(" | ")[side] for line in lines]
    return [code for cell in cells for code in re.findall(r"`([^`]+(?:\([^`]*\)|\.\w+)(?:\[[^`]*\])*)`", cell)]


RNG = np.random.default_rng(0)
X, x = RNG.uniform(-1, 1, size=(300, 2)), RNG.integers(0, 10, 300).astype(float)
GIVEN = {"X": X, "x": x, "y": (X[:, 0] > 0).astype(int), "frame": pd.DataFrame({"a": x, "b": X[:, 0]})}
NAMES = {name: getattr(skdp, name) for name in skdp.__all__} | {"stats": stats, "make_pipeline": make_pipeline}
NAMES |= {"DPPipeline": DPPipeline, "BoundedScaler": BoundedScaler, "LearnedSchema": LearnedSchema, **GIVEN}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("code", codes("diffprivlib", 1) + codes("opendp", 1))
def test_our_side_runs(code):
    assert eval(code, NAMES) is not None


@pytest.mark.filterwarnings("ignore")
def test_diffprivlib_runs_and_all_its_public_names_are_on_the_page():
    diffprivlib = pytest.importorskip("diffprivlib", exc_type=ImportError)
    from diffprivlib import BudgetAccountant, models, tools

    given = {"models": models, "tools": tools, "BudgetAccountant": BudgetAccountant, "make_pipeline": make_pipeline}
    for code in codes("diffprivlib", 0):
        assert eval(code, given | GIVEN) is not None, code
    public = {
        f"{module.__name__.split('.')[-1]}.{name}"
        for module in (models, tools)
        for name, found in vars(module).items()
        if not name.startswith("_") and (inspect.isclass(found) or inspect.isfunction(found))
    }
    assert diffprivlib.__version__ >= "0.6.6"
    assert public <= {name for code in codes("diffprivlib", 0) for name in re.findall(r"(?:tools|models)\.\w+", code)}


def test_opendp_runs():
    dp = pytest.importorskip("opendp.prelude", exc_type=ImportError)
    dp.enable_features("contrib")
    given = {"dp": dp, "x": x.tolist(), "domain": dp.vector_domain(dp.atom_domain(T=float, nan=False))}
    first, *others = codes("opendp", 0)
    given["context"] = lambda: eval(first, given)
    for code in (first, *others):
        assert eval(code, given) is not None, code


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_statsmodels_and_our_fits_agree():
    """Both sides run; estimates differ by at most five standard errors of either, which has a probability below 1e-6."""
    formulas = pytest.importorskip("statsmodels.formula.api")
    import statsmodels.api as statsmodels
    from statsmodels.gam.api import BSplines

    rng, n = np.random.default_rng(0), 20_000
    frame = pd.DataFrame({"age": rng.uniform(30, 80, n), "stage": rng.choice(["I", "II", "III"], n)})
    log_odds = 0.05 * frame["age"] - 4 + 0.7 * (frame["stage"] == "III")
    frame["ill"] = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(int)
    frame["cost"] = 10 * frame["age"] + 100 * rng.normal(size=n)
    frame["visits"] = rng.poisson(np.exp(0.01 * frame["age"]))
    columns = {"age": {"kind": "number", "bounds": [30, 80]}, "stage": {"kind": "category", "categories": ["I", "II", "III"]}}
    ours = {"given": {"epsilon": 2.0, "schema": {"columns": columns}, "inference": True}, "schema": {"columns": columns}}
    both = {"X": frame[["age", "stage"]], "frame": frame, "numpy": np}
    ours, theirs = {**NAMES, **ours, **both}, {**vars(formulas), **both, "binomial": statsmodels.families.Binomial()}
    theirs["splines"] = BSplines(frame[["age"]], df=[6], degree=[3])
    for side, names in ((0, theirs), (1, ours)):
        first, *others = codes("statsmodels", side)
        names[("theirs", "ours")[side]] = eval(first, names)
        for code in others:
            assert eval(code, names) is not None, code
    fitted, table = theirs["theirs"], ours["ours"].summary().to_frame()
    for known, name in (("age", "age"), ("stage[T.III]", "stage_III")):
        assert abs(fitted.params[known] - table["coef"][name]) < 5 * (fitted.bse[known] + table["se"][name])
