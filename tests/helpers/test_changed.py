"""Which test files `make check` takes for a file that changed."""

import pytest
from changed import MOST, ROOT, files_for


@pytest.mark.parametrize(
    "path, expected",
    (
        ("tests/losses/test_losses.py", ["tests/losses/test_losses.py"]),
        ("tests/helpers/seeded.py", []),
        ("skdp/penalties.py", ["tests/test_penalties.py"]),
        ("skdp/solvers/first_order/sgd.py", ["tests/solvers/first_order/test_sgd.py"]),
        ("skdp/estimators/_constrained.py", ["tests/estimators/test_constrained.py"]),
        ("Makefile", []),
        ("docs/proofs/index.md", []),
        ("README.md", ["README.md"]),
    ),
)
def test_a_file_is_tested_by_the_one_that_mirrors_it(path, expected):
    """Doctests come on top."""
    assert [str(file) for file in files_for(path) if str(file) != path or path in expected] == expected


def test_without_such_a_file_by_those_that_name_it_or_what_it_exports(tmp_path):
    """At most five, the mirrored folder first, and the module itself where it has doctests."""
    for name, text in {
        "skdp/a/_b.py": "class Thing: ...\n",
        "tests/test_1.py": "from skdp.a import Thing",
        "tests/test_2.py": "from skdp.a import Things, a_Thing",
        "tests/a/test_3.py": "import skdp.a._b",
        "tests/a/test_4.py": "import skdp.a._bc",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [str(file) for file in files_for("skdp/a/_b.py", tmp_path)] == ["tests/a/test_3.py", "tests/test_1.py"]
    for number in range(10, 20):
        (tmp_path / f"tests/test_{number}.py").write_text("Thing")
    (tmp_path / "skdp/a/_b.py").write_text("class Thing: ...  # >>> 1\n")
    assert len(files_for("skdp/a/_b.py", tmp_path)) == MOST + 1
    (tmp_path / "tests/a/test_b.py").touch()
    assert [str(file) for file in files_for("skdp/a/_b.py", tmp_path)] == ["tests/a/test_b.py", "skdp/a/_b.py"]


@pytest.mark.exhaustive
def test_nearly_every_module_has_a_test_file():
    """Those that have none export nothing that a test names, and are run by the tests of others."""
    modules = [path.relative_to(ROOT) for path in (ROOT / "skdp").rglob("*.py") if path.name != "__init__.py"]
    some = sorted(modules)[::5]
    without = [module for module in some if not [file for file in files_for(module) if file.parts[0] == "tests"]]
    assert len(modules) > 150 and len(without) < len(some) / 4, without
