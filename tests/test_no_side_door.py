"""No path from the data around the gate: frames, pickles, and which file may import what."""

import ast
import gc
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import skdp
from skdp import DPLogisticRegression
from skdp.privacy.rows import Rows
from skdp.solvers import SGD, GradientDescent

PACKAGE = Path(skdp.__file__).parent
TRUSTED = ("privacy/rows.py", "privacy/oracle.py", "privacy/queries/", "losses.py", "scorers.py")
ESTIMATORS = [
    DPLogisticRegression(solver=GradientDescent(5), random_state=0),
    DPLogisticRegression(solver=SGD(5, batch_size=50), random_state=0),
]
STORAGES = (np.ascontiguousarray, np.asfortranarray, sparse.csr_matrix, sparse.csc_matrix)


def stored_arrays(X):
    return (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,)


def frames_with_data(estimator, X, y):
    """Files and functions of the package that are entered after validation and hold the table, its labels or their codes."""
    guarded = [*stored_arrays(X), y]
    found, validated = set(), []

    def watch(frame, event, argument):
        path = frame.f_code.co_filename
        if not path.startswith(str(PACKAGE)):
            return
        name = Path(path).relative_to(PACKAGE).as_posix()
        if name == "privacy/rows.py" and frame.f_code.co_name == "__init__" and event == "return":
            guarded.append(frame.f_locals["y"])
            validated.append(True)
        if not validated or name.startswith(TRUSTED) or event not in ("call", "return"):
            return
        if event == "return" and frame.f_code.co_name == "fit":
            return  # entered with X and y, before validation
        held = [*frame.f_locals.values(), argument]
        arrays = [part for value in held for part in (stored_arrays(value) if sparse.issparse(value) else (value,))]
        if any(isinstance(a, np.ndarray) and any(np.shares_memory(a, g) for g in guarded) for a in arrays):
            found.add((name, frame.f_code.co_name))

    sys.setprofile(watch)
    try:
        estimator.fit(X, y)
    finally:
        sys.setprofile(None)
    assert validated
    return found


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.__name__)
def test_no_frame_but_the_gates_holds_the_data(estimator, storage, rng):
    X, y = storage(rng.normal(size=(300, 4))), rng.integers(0, 2, 300)
    assert frames_with_data(estimator, X, y) == set()


def test_the_watch_sees_a_side_door(rng, monkeypatch):
    """The twin: a solver that was handed the table is caught."""
    X, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    solve = GradientDescent.solve

    def peeking(self, problem, ask, rng):
        self._path_of_the_table(X)
        return solve(self, problem, ask, rng)

    code = compile("def leak(self, table):\n    return table.mean()\n", str(PACKAGE / "solvers" / "gradient_descent.py"), "exec")
    scope: dict = {}
    exec(code, scope)
    monkeypatch.setattr(GradientDescent, "_path_of_the_table", scope["leak"], raising=False)
    monkeypatch.setattr(GradientDescent, "solve", peeking)
    assert ("solvers/gradient_descent.py", "leak") in frames_with_data(ESTIMATORS[0], X, y)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("dtype", (np.float64, np.float32))
def test_a_pickle_holds_no_training_value(estimator, dtype, rng):
    X, y = rng.normal(size=(400, 5)).astype(dtype), rng.integers(0, 2, 400)
    content = pickle.dumps(estimator.fit(X, y))
    assert any(value.tobytes() in content for value in estimator.coef_[0])  # the search finds what is there
    values = [cast(value).tobytes() for value in X.ravel() for cast in (np.float64, np.float32)]
    assert not any(value in content for value in values)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_a_fitted_estimator_keeps_no_rows_and_no_generator(estimator, rng):
    estimator.fit(rng.normal(size=(50, 2)), np.arange(50) % 2)
    gc.collect()
    assert not [thing for thing in gc.get_objects() if isinstance(thing, Rows)]
    kinds = {type(value).__name__ for value in vars(estimator).values()}
    assert not kinds & {"Oracle", "NoiseSource", "Generator", "RandomState", "Rows"}


ALLOWED = {  # who may import whom inside the package; privacy is open to all
    "privacy": set(),
    "losses": set(),
    "penalties": set(),
    "_validation": set(),
    "_tables": {"_validation"},
    "preprocessing": {"_validation", "_tables", "_files"},
    "_files": set(),
    "_commands": {"_files", "estimators", "preprocessing"},
    "_progress": set(),
    "solvers": {"losses", "penalties", "_validation"},
    "estimators": {"solvers", "losses", "penalties", "_validation", "_tables", "_progress"},
    "inspection": set(),
    "audit": {"estimators", "solvers", "inspection", "_validation"},
}
FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.relative_to(PACKAGE).as_posix())
def test_imports_point_one_way_and_nowhere_private(path):
    unit = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in getattr(node, "names", [])] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        module = names[0] if names else ""
        if module.startswith("skdp.") and unit in ALLOWED:
            target = module.split(".")[1]
            assert target in ALLOWED[unit] | {unit, "privacy"}, f"{path} imports {module}"
        elif module and not module.startswith("skdp"):
            parts = [part for name in names for part in name.split(".")]
            assert not [part for part in parts if re.match(r"_(?!_)", part)], f"{path} imports a private name of {module}"
            library = module.split(".")[0]
            assert (
                library not in ("random", "pandas", "polars", "pyarrow", "skops", "matplotlib")
                or unit == "_demo"
                or (
                    unit == "inspection" and library == "matplotlib" and node.col_offset > 0  # when it draws, not before
                )
            )


def test_import_is_light():
    """Nothing heavy is imported before it is used."""
    heavy = ("skdp.audit", "matplotlib", "dp_accounting", "sklearn.linear_model", "sklearn.datasets", "sklearn.compose", "skops")
    code = f"import sys, skdp; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
