"""Each line of the table for users of diffprivlib runs, on their side where that library imports, and has all its names."""

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

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "from_diffprivlib.md").read_text()
TABLE = re.search(r"\| diffprivlib \| `skdp` \|\n\|---\|---\|\n(.*?)\n\n", PAGE, re.DOTALL).group(1).splitlines()
CELLS = [line.strip("|").split(" | ") for line in TABLE]
THEIRS, OURS = ([code for pair in CELLS for code in re.findall(r"`([^`]+\([^`]*\))`", pair[place])] for place in (0, 1))
RNG = np.random.default_rng(0)
X, x = RNG.uniform(-1, 1, size=(300, 2)), RNG.integers(0, 10, 300).astype(float)
GIVEN = {"X": X, "x": x, "y": (X[:, 0] > 0).astype(int), "frame": pd.DataFrame({"a": x, "b": X[:, 0]})}
NAMES = {"stats": stats, "make_pipeline": make_pipeline, "DPPipeline": DPPipeline}
NAMES |= {"BoundedScaler": BoundedScaler, "LearnedSchema": LearnedSchema}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("code", OURS)
def test_our_side_runs(code):
    assert eval(code, {**{name: getattr(skdp, name) for name in skdp.__all__}, **NAMES, **GIVEN}) is not None


@pytest.mark.filterwarnings("ignore")
def test_their_side_runs_and_has_all_public_names():
    diffprivlib = pytest.importorskip("diffprivlib", exc_type=ImportError)
    from diffprivlib import BudgetAccountant, models, tools

    for code in THEIRS:
        given = {"models": models, "tools": tools, "BudgetAccountant": BudgetAccountant, "make_pipeline": make_pipeline}
        assert eval(code, given | GIVEN) is not None, code
    public = {
        f"{module.__name__.split('.')[-1]}.{name}"
        for module in (models, tools)
        for name, found in vars(module).items()
        if not name.startswith("_") and (inspect.isclass(found) or inspect.isfunction(found))
    }
    assert diffprivlib.__version__ >= "0.6.6"
    assert public <= {name for code in THEIRS for name in re.findall(r"(?:tools|models)\.\w+", code)}
