"""Which file may import what."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

PACKAGE = Path(skdp.__file__).parent

ALLOWED = {  # who may import whom inside the package; privacy is open to all
    "privacy": {"_version"},
    "losses": set(),
    "penalties": set(),
    "_projections": set(),
    "mirror_maps": {"_projections"},
    "constraints": {"_projections", "_validation", "mirror_maps"},
    "_label_types": set(),
    "_validation": {"_label_types"},
    "_extra_facts": set(),
    "_first_use": set(),
    "_exported": {"export"},  # inside the methods
    "export": {
        "_scikit_learn",
        "_exported",
        "_files",
        "_first_use",
        "_validation",
        "_version",
        "estimators",
        "model_selection",
        "pipeline",
        "preprocessing",
    },
    "_persons": {
        *("_data_validation", "_scikit_learn", "_table_types", "_validation"),
        "data",  # inside the function that takes the ids of a table in partitions
    },
    "samplings": {"_validation"},
    "_table_types": {"_files"},
    "_data_validation": {"_label_types", "_table_types", "_validation", "_extra_facts"},
    "scorers": {"_validation"},
    "data": {"_files", "_label_types", "_persons", "_table_types", "_validation", "_data_validation", "preprocessing"},
    "minimax": {"scorers", "_projections", "_validation"},
    "preprocessing": {
        *("_validation", "_data_validation", "_exported", "_files", "_first_use", "_persons", "_projections", "_table_types"),
        "_scikit_learn",  # of the transformer that spends a budget
        "data",  # inside the function that learns from a table in partitions
        "estimators",  # for two public names of additive models, on first use
    },
    "_files": set(),
    "_model_files": {"_files", "_scikit_learn", "_validation", "estimators", "preprocessing", "solvers"},
    "_model_card": {"_scikit_learn", "_validation", "inspection", "metrics"},
    "_commands": {
        *("_files", "_model_card", "_model_files", "_persons", "_scikit_learn", "_table_types"),
        *("data", "estimators", "inspection", "metrics", "preprocessing", "solvers", "stats"),
    },
    "_progress": set(),
    "_version": set(),
    "_scikit_learn": set(),
    "inspection": {"_label_types", "_plots", "_scikit_learn", "_validation"},
    "pipeline": {
        *("estimators", "_data_validation", "_exported", "_persons", "_scikit_learn", "_table_types", "_validation"),
    },
    "model_selection": {
        *("_docstrings", "_exported"),
        *("_data_validation", "_persons", "_scikit_learn", "_table_types", "_validation"),
        *("data", "estimators", "inspection", "metrics", "preprocessing"),
    },
    "stats": {
        *("_data_validation", "_docstrings", "_files", "_persons", "_plots", "_table_types", "_validation"),
        *("data", "preprocessing"),
    },
    "audit": {"estimators", "solvers", "inspection", "_label_types", "_persons", "_table_types", "_validation"},
    "solvers": {
        "losses",
        "penalties",
        "constraints",
        "mirror_maps",
        "samplings",
        "minimax",
        "scorers",
        "_validation",
        "_extra_facts",
    },
    "estimators": {
        "_docstrings",
        *("solvers", "losses", "penalties", "constraints", "minimax", "scorers"),
        *(
            "data",
            "preprocessing",
            "_validation",
            "_data_validation",
            "_extra_facts",
            "_first_use",
            "_persons",
            "_progress",
            "_exported",
        ),
        *("_label_types", "_scikit_learn", "_projections", "_table_types"),
        "_files",  # inside functions that return a data frame
    },
}
LAZY = ("random", "onnx", "pandas", "polars", "pyarrow", "skops", "matplotlib", "dask", "distributed", "psycopg")
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way_and_nowhere_private(path):
    assert list(violations(path, path.read_text())) == []


def violations(path, source):
    """Names of modules that a file of the package imports and must not."""
    unit = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(source)):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in getattr(node, "names", [])] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        module = names[0] if names else ""
        if module.startswith("skdp.") and unit in ALLOWED:
            target = module.split(".")[1]
            if target not in ALLOWED[unit] | {unit, "privacy"}:
                yield module
        elif isinstance(node, ast.Import) and module == "skdp":
            yield module
        elif module and not module.startswith("skdp"):
            parts = [part for name in names for part in name.split(".")]
            if any(re.match(r"_(?!_)", part) for part in parts) or (
                module.split(".")[0] in LAZY and unit not in ("_demo", "_plots", "inspection")
            ):
                yield module


@pytest.mark.parametrize(
    "unit, source",
    (
        ("privacy/noise/gaussian.py", "from skdp.solvers import SGD"),
        ("solvers/first_order/sgd.py", "from skdp._data_validation import Facts"),
        ("estimators/_report.py", "import skdp"),
        ("losses/_numbers.py", "from skdp._validation import shown"),
        ("solvers/first_order/sgd.py", "from sklearn.linear_model._base import LinearModel"),
        ("privacy/data/training_data.py", "from numpy import _core"),
        ("privacy/noise/gaussian.py", "import random"),
        ("_data_validation.py", "def f():\n    import pandas"),
    ),
)
def test_a_forbidden_import_is_seen(unit, source):
    """The twin."""
    assert list(violations(PACKAGE / unit, source))


@pytest.mark.slow
def test_import_is_light():
    """Nothing heavy is imported before it is used, by the package or by all its public names."""
    heavy = (
        "skdp.audit",
        "matplotlib",
        "dp_accounting",
        "sklearn.linear_model",
        "sklearn.datasets",
        "sklearn.compose",
        "skops",
        "psycopg",
    )
    code = f"import sys, skdp; first = 'numpy' in sys.modules; from skdp import *; print(first, *{set(heavy)} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
