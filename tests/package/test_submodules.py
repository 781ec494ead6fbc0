"""Submodules are there without an import of their own, and loaded when they are used."""

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


def test_every_public_module_is_an_attribute():
    assert "inspection" in PUBLIC and "testing" in PUBLIC
    code = f"import skdp; print(all(getattr(skdp, name).__name__ == 'skdp.' + name for name in {PUBLIC}))"
    assert printed(code) == "True"
    assert set(PUBLIC) <= set(dir(skdp)) and set(skdp.__all__) <= set(dir(skdp))


def test_a_class_of_a_submodule_is_reached():
    assert printed("import skdp; print(skdp.inspection.AdditiveDisplay.__name__)") == "AdditiveDisplay"


@pytest.mark.parametrize("name", ("inspection", "audit", "testing"))
def test_none_is_loaded_before_it_is_used(name):
    assert printed(f"import sys, skdp; dir(skdp); print('skdp.{name}' in sys.modules)") == "False"


def test_what_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'skdp' has no attribute 'models'"):
        skdp.models  # noqa: B018
