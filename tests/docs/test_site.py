"""The site has a page for every public name, a line for every solver, and every page of the documentation in its contents."""

import ast
import importlib.util
import re
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

import pytest

import skdp
from skdp.solvers import SOLVERS
from skdp.solvers._registry import AUTO

DOCS = Path(__file__).resolve().parents[2] / "docs"
README = DOCS.parent / "README.md"


def load(name):
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


@pytest.fixture(scope="module")
def generated():
    return load("generated")


def test_every_public_name_has_a_page(generated):
    """Each class and function of each public module is listed once, in one module that exports it."""
    listed = [name for module in generated.MODULES for name in generated.public_names(module)]
    assert len(listed) == len(set(listed))
    for module in (import_module(f"skdp.{name}") for name in set(dir(skdp)) - set(skdp.__all__)):
        exported = {
            name for name in module.__all__ if callable(getattr(module, name)) and hasattr(getattr(module, name), "__name__")
        }
        assert exported - {"Ask"} <= set(listed), module.__name__


@pytest.mark.slow
def test_the_tables_of_solvers_are_those_of_the_registry(generated):
    table = generated.solver_tables().partition("## All solvers")
    assert re.findall(r'^\| `"(.+?)"` \|', table[0], re.MULTILINE) == [choice.solver for choice in AUTO]
    assert re.findall(r'^\| \[`"(.+?)"`\]', table[2], re.MULTILINE) == sorted(SOLVERS)
    taken = {name: generated.partitions(name) for name in SOLVERS}
    assert {name for name in taken if taken[name] == "no"} == {"skgd", "objective", "output"}
    assert {name for name in taken if taken[name] == "with a kept copy"} == {"sgd", "svrg", "svrg++"}


def test_every_solver_has_a_proof_and_a_measured_audit(generated):
    """What is written for each solver by hand, or by a command that takes hours."""
    assert set(SOLVERS) <= set(generated.proofs())
    audited = re.findall(r"^\| (\S+)", (DOCS / "audit.md").read_text(), re.MULTILINE)
    assert set(SOLVERS) <= set(audited)


def test_the_table_of_estimators_names_the_solvers_that_refusals_name(generated):
    assert set().union(*map(generated.fitting, generated.ESTIMATOR_KINDS)) == set(SOLVERS)
    with pytest.raises(ValueError, match="Solvers that fit: ") as refusal:
        skdp.DPLogisticRegression(solver="ssp").plan(1000, 5, 2)
    assert str(refusal.value).rpartition(": ")[2] == ", ".join(generated.fitting(skdp.DPLogisticRegression)) + "."


def test_every_page_is_in_the_contents():
    """A page that no table of contents names cannot be found; `make docs` says so, too, but late."""
    contents = "\n".join(page.read_text() for page in DOCS.rglob("index.md"))
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^(\.\./|.* <)?{page.stem}>?$", contents, re.MULTILINE), page.name


def test_task_pages_are_short_and_begin_with_a_result():
    """At most 120 lines, a picture or an output in the first 30, and none of what belongs to details and measurements."""
    tasks = (
        re.search(r":caption: Tasks\n:hidden:\n(.*?)```", (DOCS / "user_guide" / "index.md").read_text(), re.DOTALL)
        .group(1)
        .split()
    )
    start = (DOCS / "index.md").read_text()
    assert len(tasks) == 8
    for text in ((DOCS / "user_guide" / f"{task}.md").read_text() for task in tasks):
        lines = text.splitlines()
        assert len(lines) <= 120
        assert re.search(r"^!\[|^>>> (?!.* = |import|from|for|with).*\n(?!>>>|\.\.\.|```)\S", "\n".join(lines[:30]), re.MULTILINE)
        assert not re.search(r"\bmu\b|python -m benchmarks|\bseeds?\b|reproducible_noise|\bs [=<>]", text)
        assert "../guarantees/" in text or "../benchmarks/" in text or "../privacy.md" in text  # where the figures are
    assert all(f":link: user_guide/{task}\n" in start for task in tasks)


def test_figures_of_task_pages_are_those_of_the_results_they_link_to():
    """Decimals of a paragraph that names its file of results."""
    told = [
        (page, figure, results)
        for page in (DOCS / "user_guide").glob("*.md")
        for part in page.read_text().split("\n\n")
        for results in re.findall(r"\[the results\]\(([^)]+)\)", part)
        for figure in re.findall(r"(?<![\d.])0?(\.\d+)", part)
    ]
    assert told
    assert not [(page.stem, figure) for page, figure, results in told if figure not in (page.parent / results).read_text()]


def test_the_readme_is_short_and_names_only_what_exists():
    """At most 130 lines; links and paths lead to files, `make` to targets, and each estimator is in its table."""
    text, makefile = README.read_text(), (DOCS.parent / "Makefile").read_text()
    assert len(text.splitlines()) <= 130
    paths = re.findall(r"\]\(([^)#]+)", text) + re.findall(r"`(skdp/[\w./]+)`", text)
    assert len(paths) > 15 and not [path for path in paths if not (DOCS.parent / path).exists()]
    targets = set(re.findall(r"`make (\S+?)`", text))
    assert {"demo", "test", "docs"} <= targets <= set(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[0].split())
    assert set(re.findall(r"`(DP\w+)`", text)) == {name for name in skdp.__all__ if name.startswith("DP")}


def test_links_of_markdown_pages_lead_to_files():
    """Those that are relative, to files of the repository; `make docs` checks the rest, and anchors."""
    link = re.compile(r"\]\(((?:\.\./)*\w[\w/]*\.\w+)[)#]")  # one that begins with a slash may be of a generated page
    pages = [page for page in DOCS.rglob("*.md") if "_build" not in page.parts]
    for page in (README, DOCS.parent / "CONTRIBUTING.md", *pages):
        paths = [path for path in link.findall(page.read_text()) if "auto_examples" not in path]
        assert not [path for path in paths if not (page.parent / path).exists()], page


def test_the_scores_of_the_readme_are_those_of_the_results(generated):
    """Which the page of benchmarks has from the same files."""
    rows = re.findall(r"^\| (adult|bank), (.*?): .*?\| (.*) \|$", README.read_text(), re.MULTILINE)
    assert len(rows) == 4
    for name, kind, cells in rows:
        linear = kind == "linear"
        found = generated.accuracy_cells(name, "replace_one") if linear else generated.tabular_cells(name)
        assert [cell for cell in re.split(r" *\| *", cells) if cell] == found, (name, kind)


def test_pages_are_written_once_and_stale_ones_removed(generated, tmp_path):
    docs = tmp_path / "docs"
    stale = docs / "api" / "generated" / "skdp.NoLongerThere.rst"
    stale.parent.mkdir(parents=True)
    stale.touch()
    generated.write(docs)
    page = docs / "api" / "generated" / "skdp.rst"
    before = page.stat().st_mtime_ns
    generated.write(docs)
    assert not stale.exists() and page.stat().st_mtime_ns == before
    assert "DPLogisticRegression" in page.read_text()


@pytest.mark.parametrize(
    ("row", "pieces"),
    [
        ("<mi>a</mi><mo>=</mo><mi>b</mi><mo>+</mo><mi>c</mi>", ["a=", "b+", "c"]),
        ("<mo>-</mo><mi>a</mi><mo>&lt;</mo><mo>-</mo><mi>b</mi>", ["-a<", "-b"]),
        ("<mo>|</mo><mi>a</mi><mo>-</mo><mi>b</mi><mo>|</mo><mo>+</mo><mn>1</mn>", ["|a-b|+", "1"]),
        ("<mi>f</mi><mo>(</mo><mi>a</mi><mo>+</mo><msup><mo>)</mo><mn>2</mn></msup><mo>=</mo><mn>1</mn>", ["f(a+)2=", "1"]),
        (
            "<mi>f</mi><mo>(</mo><mi>long enough for a line of its own</mi><mo>-</mo><mi>a</mi><mo>)</mo>",
            ["f(long enough for a line of its own-", "a)"],
        ),
    ],
)
def test_formulas_break_after_relations_and_signs_outside_of_brackets(row, pieces):
    """No sign is lost, a sign that is no operation is not cut off, and what is in brackets stays together."""
    head = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline"><mrow>'
    broken = load("formulas").breakable(f"{head}{row}</mrow></math>").split("<wbr>")
    assert ["".join(ElementTree.fromstring(piece).itertext()) for piece in broken] == pieces


def test_every_example_has_a_place_in_the_gallery(generated):
    """Its own, a figure, and an assertion at its end."""
    examples = sorted((DOCS.parent / "examples").glob("plot_*.py"))
    assert {path.stem.removeprefix("plot_") for path in examples} == set(generated.EXAMPLES)
    places = sorted(examples, key=lambda path: generated.example_place(path.name))
    assert [path.stem.removeprefix("plot_") for path in places] == list(generated.EXAMPLES)
    for text in (path.read_text() for path in examples):
        assert "plt.show()" in text and isinstance(ast.parse(text).body[-1], ast.Assert)
        assert not re.search(r"^# \.\. math::.*\n# \S", text, re.MULTILINE)  # the next line would be part of the formula
