"""Submodules and public names are there without an import of their own, and loaded when they are used."""

import ast
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import skdp

PUBLIC = sorted(
    path.stem
    for path in Path(skdp.__file__).parent.iterdir()
    if not path.name.startswith("_") and (path.suffix == ".py" or (path / "__init__.py").exists())
)


def printed(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.slow
def test_every_public_module_is_an_attribute():
    assert "inspection" in PUBLIC and "testing" in PUBLIC
    code = f"import skdp; print(all(getattr(skdp, name).__name__ == 'skdp.' + name for name in {PUBLIC}))"
    assert printed(code) == "True"
    assert set(PUBLIC) <= set(dir(skdp)) and set(skdp.__all__) <= set(dir(skdp))


@pytest.mark.slow
def test_a_class_of_a_submodule_is_reached():
    assert printed("import skdp; print(skdp.inspection.AdditiveDisplay.__name__)") == "AdditiveDisplay"


@pytest.mark.parametrize("name", ("inspection", "audit", "testing"))
def test_none_is_loaded_before_it_is_used(name):
    assert printed(f"import sys, skdp; dir(skdp); print('skdp.{name}' in sys.modules)") == "False"


@pytest.mark.parametrize("package", ("skdp", "skdp.estimators", "skdp.preprocessing"))
def test_every_public_name_is_there_and_a_class_of_it_is_pickled_by_name(package):
    module, starred = importlib.import_module(package), {}
    exec(f"from {package} import *", starred)
    assert sorted(starred.keys() - {"__builtins__"}) == sorted(module.__all__) and set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        thing = getattr(module, name)
        assert starred[name] is thing and pickle.loads(pickle.dumps(thing)) == thing


@pytest.mark.parametrize("package", ("skdp", "skdp.estimators", "skdp.preprocessing"))
def test_each_name_for_type_checkers_is_marked_as_exported(package):
    """Without ``as``, or a star, type checkers take an import for a private one."""
    block = next(node for node in ast.parse(inspect.getsource(importlib.import_module(package))).body if isinstance(node, ast.If))
    aliases = [alias for statement in block.body for alias in statement.names]
    assert aliases and all(alias.name in ("*", alias.asname) for alias in aliases)


@pytest.mark.slow
def test_an_estimator_brings_none_of_the_others():
    code = "import sys; from skdp import DPLinearSVC; print(*(f'skdp.estimators.{name}' in sys.modules for name in {names}))"
    assert printed(code.replace("{names}", "('_svm', '_logistic', 'boosting', '_tabular')")) == "True False False False"


def test_what_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'skdp' has no attribute 'models'"):
        skdp.models  # noqa: B018
