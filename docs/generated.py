"""Parts of the site that follow from the package: a page per public module, the tables of solvers, pages of benchmark results."""

import contextlib
import inspect
import json
import re
from functools import lru_cache
from importlib import import_module
from operator import itemgetter
from pathlib import Path
from statistics import median
from types import ModuleType

from sklearn.base import is_classifier

from skdp import DPLogisticRegression, estimators
from skdp._commands._estimator_names import ESTIMATORS
from skdp.estimators._plan import Plan
from skdp.minimax import AUCSaddle
from skdp.scorers import LinearScorer
from skdp.solvers import SOLVERS
from skdp.solvers._registry import AUTO, NEEDS

DOCS = Path(__file__).resolve().parent
ESTIMATOR_KINDS = [  # those that take a solver
    kind for kind in (getattr(estimators, name) for name in estimators.__all__) if "solver" in inspect.signature(kind).parameters
]
GROUPS = {  # of the reference
    "Estimators": ("skdp",),
    "Tools": (
        *("skdp.preprocessing", "skdp.stats", "skdp.metrics", "skdp.inspection", "skdp.data", "skdp.pipeline"),
        *("skdp.model_selection", "skdp.export"),
    ),
    "For developers": (
        *("skdp.privacy", "skdp.solvers", "skdp.losses", "skdp.penalties", "skdp.constraints", "skdp.mirror_maps"),
        *("skdp.samplings", "skdp.minimax", "skdp.scorers", "skdp.audit", "skdp.testing", "skdp.privacy.queries"),
    ),
}
MODULES = tuple(module for modules in GROUPS.values() for module in modules)  # every name of skdp.estimators is one of skdp

RESULTS = Path(__file__).resolve().parents[1] / "benchmarks" / "results"
EXAMPLES = (  # in the order of the gallery: what everybody needs, kinds of models, problems of one's own, the guarantee
    *(
        "privacy_utility",
        "cost_of_privacy",
        "how_many_records",
        "bounds",
        "ledger",
        "complete_study",
        "several_rows_per_person",
        "odds_ratios",
        "confidence_bands",
        "publish_score",
        "additive_adult",
        "additive_bike",
    ),
    *(
        "boosting_bike",
        "claims",
        "outliers",
        "quantiles",
        "mixture",
        "rare_class",
        "group_dro",
        "wasserstein_digits",
        "td_learning",
        "dask_cluster",
        "audit",
    ),
)


def write(docs: Path) -> None:
    """Write all generated pages; those that did not change keep their date, so that they are not built again."""
    pages = {docs / "api" / "generated" / f"{name}.rst": module_page(name) for name in MODULES}
    pages[docs / "api" / "modules.txt"] = modules_page()
    guide = docs / "user_guide"
    pages |= {guide / "solver_tables.txt": solver_tables(), guide / "enough_table.txt": enough_table()}
    pages[guide / "estimators_table.txt"] = estimators_table()
    pages[docs / "benchmarks" / "accuracy_table.txt"] = accuracy_table()
    for results in sorted((docs.parent / "benchmarks" / "results").glob("*.md")):
        pages[docs / "benchmarks" / results.name] = results_page(results)
    current = {f"{module}.{name}" for module in MODULES for name in public_names(module)} | set(MODULES)
    for page in (docs / "api" / "generated").glob("*.rst"):
        if page.stem not in current:
            page.unlink()  # of a name that is no longer public
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def public_names(module_name: str) -> list[str]:
    """Classes and functions of a module, without those that a module further up in `MODULES` has."""
    module, before = import_module(module_name), MODULES[: MODULES.index(module_name)]
    things = {name: getattr(module, name) for name in module.__all__}
    names = [name for name, thing in things.items() if inspect.isclass(thing) or inspect.isfunction(thing)]
    return sorted((name for name in names if not any(name in import_module(other).__all__ for other in before)), key=str.lower)


def module_page(name: str) -> str:
    """Return the page of a module: its docstring and a table of its names."""
    kinds = {"Estimators": [], "Classes": [], "Functions": [], "Errors and warnings": []}
    for member in public_names(name):
        thing = getattr(import_module(name), member)
        if inspect.isfunction(thing):
            kinds["Functions"].append(member)
        elif issubclass(thing, Exception):
            kinds["Errors and warnings"].append(member)
        else:
            kinds["Estimators" if member.startswith("DP") else "Classes"].append(member)
    tables = [
        f".. rubric:: {kind}\n\n.. autosummary::\n   :toctree: .\n\n" + "".join(f"   {member}\n" for member in members)
        for kind, members in kinds.items()
        if members
    ]
    if "SOLVERS" in import_module(name).__all__:
        tables += [".. rubric:: Registry\n", ".. autodata:: SOLVERS\n   :no-value:\n"]
    return f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n\n.. currentmodule:: {name}\n\n" + "\n".join(tables)


def modules_page() -> str:
    """Return the contents of the reference: the estimators, and a line per module, in groups."""
    names = sorted((name for name in estimators.__all__ if name.startswith("DP")), key=lambda name: ("Tabular" not in name, name))
    kinds = [getattr(estimators, name) for name in names]
    page = f"## Estimators\n\n{table(['estimator', 'what it is'], [[link(kind), summary(kind)] for kind in kinds])}\n"
    for group, modules in GROUPS.items():
        lines = [[f"[{name}](/api/generated/{name}.rst)", summary(import_module(name))] for name in modules]
        page += f"## {group}\n\n" * (group != "Estimators") + table(["module", "what it has"], lines) + "\n"
        page += f"```{{toctree}}\n:caption: {group}\n:hidden:\n" + "".join(f"generated/{name}\n" for name in modules) + "```\n\n"
    return page


def accuracy_cells(name: str, adjacency: str) -> list[str]:
    """Return medians of accuracy / AUC on a table with a schema: at each epsilon, without privacy, and of the larger class."""
    records = [one for one in json.loads((RESULTS / "accuracy.json").read_text())["records"] if one["table"] == f"{name}_schema"]
    private = [one for one in records if one["method"] == "skdp" and one["adjacency"] == adjacency]
    peers = [next(one for one in records if one["method"] == method) for method in ("sklearn", "constant")]
    cells = [
        [f"{one[score][1]:.3f}" for score in ("accuracy", "auc")] for one in [*sorted(private, key=itemgetter("epsilon")), *peers]
    ]
    return [*(" / ".join(pair) for pair in cells[:-1]), cells[-1][0]]


def tabular_cells(name: str) -> list[str]:
    """Return median AUCs of `DPTabularClassifier` on a raw table at each epsilon, and that of boosting without privacy."""
    found = json.loads((RESULTS / "boosting.json").read_text())
    cells = [one for one in found["raw"] if one["table"] == name and one["adjacency"] == "replace_one"]
    without = next(one["not private"] for one in found["schema"] if one["table"] == name)
    scores = [median(one["tabular"]) for one in sorted(cells, key=itemgetter("epsilon"))]
    return [f"{score:.3f}" for score in (*scores, without)]


def accuracy_table() -> str:
    """Return the accuracy and AUC of linear models by default, from the file of results."""
    heads = ["epsilon", "0.1", "0.5", "1", "3", "without privacy", "larger class"]
    pairs = [(name, adjacency) for name in ("adult", "bank") for adjacency in ("replace_one", "zero_out")]
    return table(heads, [[f"{name}, `{kind}`", *accuracy_cells(name, kind)] for name, kind in pairs])


def example_place(file_name: str) -> tuple[int, str]:
    """Return a key that sorts examples as in `EXAMPLES`, and others after them."""
    name = Path(file_name).stem.removeprefix("plot_")
    return EXAMPLES.index(name) if name in EXAMPLES else len(EXAMPLES), name


def solver_tables() -> str:
    """Return what the registry says: the choice of "auto", and what each solver is and needs."""
    auto = [[f'`"{choice.solver}"`', needed(choice.solver), choice.reason] for choice in AUTO]
    solvers = [
        [
            f'[`"{name}"`](/api/generated/skdp.solvers.{solver.__name__}.rst)',
            summary(solver),
            needed(name),
            "yes" if solver.pure else "no",
            partitions(name),
            f"[proof](/proofs/{proofs()[name]}.md)",
        ]
        for name, solver in sorted(SOLVERS.items())
    ]
    first = table(["solver", "needs", "why"], auto)
    heads = ["`solver=`", "what it is", "needs", "`delta=0`", "tables in partitions", "proof"]
    kinds = [[link(kind), ", ".join(f'`"{name}"`' for name in fitting(kind))] for kind in ESTIMATOR_KINDS]
    return (
        '## What "auto" takes\n\nThe first line whose needs are met. The lines of `"objective"` and `"frank_wolfe"` are for '
        f'`delta=0` only, and rankings by linear scores skip `"sgda"`.\n\n{first}\n'
        f"## All solvers\n\n{table(heads, solvers)}\n"
        "## The solvers of each estimator\n\nFor two classes, with the default loss and scorer and without an l1 penalty. Others "
        f"are refused, with the names of those that fit.\n\n{table(['estimator', 'solvers'], kinds)}"
    )


def proofs() -> dict[str, str]:
    """Return the page of the proof of each solver: the title of a page names its solvers, before a bracket."""
    titles = {page.stem: page.read_text().partition("\n")[0] for page in (DOCS / "proofs").glob("*.md")}
    heads = {stem: re.match(r"# Proof: (.*?)(?: \(|$)", title) for stem, title in titles.items()}
    return {name: stem for stem, head in heads.items() if head for name in head[1].split(" and ")}


def fitting(kind: type) -> list[str]:
    """Return the names of the solvers that an estimator takes."""
    return list(plans(kind))


def partitions(name: str) -> str:
    """Return whether a solver fits tables in partitions, by the rule that refuses the others."""
    schedules = [plans(kind)[name].schedule for kind in ESTIMATOR_KINDS if name in plans(kind)]
    if any(schedule.need_of_memory("record") for schedule in schedules):
        return "no"
    return "with a kept copy" if all(schedule.samples for schedule in schedules) else "yes"


@lru_cache
def plans(kind: type) -> dict[str, Plan]:
    """Return the plan of an estimator with each solver that it takes."""
    given = {
        "feature_bounds": 1.0,
        "target_bounds": (-1, 1),
        "scorer": "linear",
        "saddle": lambda p: AUCSaddle(LinearScorer(p), 0.5),
    }
    chosen = {name: value for name, value in given.items() if name in inspect.signature(kind).parameters}
    found = {}
    for name in sorted(SOLVERS):
        model = kind(solver=name, **chosen)
        with contextlib.suppress(ValueError):
            facts, _ = model._task().planned_facts(1000, 5, 2 if is_classifier(model) else None)
            found[name] = model._task().plan_of(facts)
    return found


def needed(name: str) -> str:
    """Return what a solver needs of the problem, in words."""
    return (
        "; ".join(re.split(r" \(|, which|, such", NEEDS[need])[0] for need in sorted(SOLVERS[name].needs))
        or "nothing in particular"
    )


def summary(thing: type | ModuleType) -> str:
    """Return the first line of a docstring as Markdown."""
    line = (inspect.getdoc(thing) or "").partition("\n")[0].rstrip(".")
    return re.sub(r"``(.*?)``", r"`\1`", re.sub(r":math:`(.*?)`", r"$\1$", line))


def enough_table() -> str:
    """Return from how many records on noise is unlikely to drown the signal, as plans say."""
    epsilons, lines = (0.1, 0.3, 1.0, 3.0), []
    for n_features in (5, 20, 100, 1000):
        models = [DPLogisticRegression(epsilon=epsilon, delta=1e-8, data_norm=1.0, classes=[0, 1]) for epsilon in epsilons]
        needs = [model.plan(n_samples=10, n_features=n_features).needed for model in models]
        lines.append([str(n_features), *(f"{need.n_samples:,}" for need in needs if need)])
    return table(["features", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)


def estimators_table() -> str:
    """Return which estimators the command line has."""
    lines = [
        [f"`{name}`", *(link(kinds[labels]) if labels in kinds else "" for labels in (True, False))]
        for name, kinds in ESTIMATORS.items()
    ]
    return table(["`--estimator`", "for labels", "for numbers"], lines)


def link(estimator: type) -> str:
    """Return a link to the page of an estimator."""
    return f"[{estimator.__name__}](/api/generated/skdp.{estimator.__name__}.rst)"


def table(head: list[str], lines: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "".join("| " + " | ".join(cells) + " |\n" for cells in (head, ["---"] * len(head), *lines))


def results_page(results: Path) -> str:
    """Return a page that shows a file of benchmark results."""
    return f"```{{include}} ../../benchmarks/results/{results.name}\n:relative-images:\n:relative-docs: ../..\n```\n"
