"""What is released: one version everywhere, and archives from which the demonstration runs in an environment of its own."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib import import_module
from pathlib import Path

import pytest
import sklearn
from packaging.version import Version

import skdp

pytestmark = pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.8"), reason="the environment of a release is its own: once is enough"
)
ROOT = Path(__file__).parents[2]
# An environment of its own: nothing of this one's paths
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def run(*command, cwd):
    done = subprocess.run([*map(str, command)], cwd=cwd, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def released():
    """Version and date of the newest release in the changelog, which begins with what is not released."""
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    return re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", headings[1]).groups()


def test_package_changelog_and_citation_state_one_version():
    citation = dict(re.findall(r"^([\w-]+): (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE))
    version, date = released()
    assert version == skdp.__version__
    assert (citation["version"], citation["date-released"]) == (version, date)


@pytest.mark.parametrize("name", ("CHANGELOG.md", "SECURITY.md", "CONTRIBUTING.md"))
def test_pages_of_the_release_link_to_files_that_exist(name):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A copy of what the repository holds, without what builds and tests left in the working directory."""
    if not (ROOT / ".git").exists():
        pytest.skip("releases are made from a clone of the repository")
    copy = tmp_path_factory.mktemp("source")
    for name in run("git", "ls-files", "-z", cwd=ROOT).split("\0"):
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name)
    return copy


@pytest.fixture(scope="module")
def archives(source, tmp_path_factory):
    """Sdist and wheel, in this order; the wheel is built from the sdist."""
    out = tmp_path_factory.mktemp("dist")
    held = files(source)
    run(sys.executable, "-m", "build", "--outdir", out, source, cwd=out)
    run(sys.executable, "-m", "twine", "check", "--strict", *out.iterdir(), cwd=out)
    (sdist,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    return held, sdist, wheel


def files(directory):
    return {path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_sdist_holds_the_repository(archives):
    held, sdist, _ = archives
    top = f"skdp-{skdp.__version__}/"
    with tarfile.open(sdist) as archive:
        found = {member.name.removeprefix(top) for member in archive.getmembers() if member.isfile()}
    made = {name for name in found if name == "PKG-INFO" or name.startswith("skdp.egg-info/")}
    assert found - made == held


@pytest.mark.slow
def test_wheel_holds_the_package_alone(archives):
    held, _, wheel = archives
    with zipfile.ZipFile(wheel) as archive:
        found = set(archive.namelist())
        information = f"skdp-{skdp.__version__}.dist-info/"
        metadata = archive.read(information + "METADATA").decode()
        scripts = archive.read(information + "entry_points.txt").decode()
    assert {name for name in found if not name.startswith(information)} == {name for name in held if name.startswith("skdp/")}
    assert {"skdp/py.typed", information + "licenses/LICENSE"} <= found
    assert scripts == "[console_scripts]\nskdp = skdp.__main__:main\n"
    assert f"\nVersion: {skdp.__version__}\n" in metadata
    assert "\nLicense-Expression: BSD-3-Clause\n" in metadata


def test_the_command_skdp_calls_the_command_line(monkeypatch, capsys):
    """What pyproject.toml names as its function, under the name of the script."""
    declared = re.search(r'^\[project\.scripts\]\nskdp = "([\w.]+):(\w+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    module, function = declared.groups()
    monkeypatch.setattr(sys, "argv", ["/usr/bin/skdp", "fit", "--help"])
    with pytest.raises(SystemExit) as ended:
        getattr(import_module(module), function)()
    assert ended.value.code == 0 and capsys.readouterr().out.startswith("usage: skdp fit ")


@pytest.mark.exhaustive
@pytest.mark.slow
def test_demo_runs_from_the_wheel_in_an_environment_of_its_own(archives, tmp_path):
    *_, wheel = archives
    environment, empty = tmp_path / "environment", tmp_path / "empty"
    empty.mkdir()
    run(sys.executable, "-m", "venv", environment, cwd=empty)
    python = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", f"{wheel}[demo]", cwd=empty)
    run(python, "-m", "pip", "check", cwd=empty)
    for command in ([python, "-m", "skdp"], [python.with_stem("skdp")]):
        assert run(*command, "--version", cwd=empty).strip() == f"skdp {skdp.__version__}"
    place = run(python, "-c", "import skdp; print(skdp.__file__)", cwd=empty).strip()
    assert environment.resolve() in Path(place).resolve().parents
    assert "not private" in run(python, "-m", "skdp", "demo", "--repeats", "2", cwd=empty)
    assert files(empty) == {"skdp-demo/privacy_utility.png", "skdp-demo/report.html"}
