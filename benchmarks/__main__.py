"""Command line of the benchmarks.

``python -m benchmarks run`` compares methods, ``merge`` joins such runs, ``curve`` measures fits on growing tables,
``constants`` varies the constants of the defaults, ``defaults`` compares the default for two classes with other ways to bound
gradients, ``inference`` measures the coverage of confidence intervals, ``refits`` what intervals cover over fits of one table,
``floor`` searches for problems on which a constant prediction is better,
``margins`` compares hinges with the logistic loss, ``additive`` compares additive models with linear ones, ``raw`` compares
columns that are learned with public schemas, ``boosting`` compares boosted models with additive ones, ``resources`` measures time
and memory of parts of fits, ``speed`` whole fits beside scikit-learn's and an older checkout's, ``scale`` tables in partitions,
``classes`` measures probabilities of several classes, ``counts`` compares links of regressors on counts and amounts,
``components`` measures principal components,
``clusters`` private k-means with other libraries,
``text`` compares naive Bayes with logistic regression on sparse rows, ``statistics`` compares `skdp.stats` with diffprivlib,
``ledgers`` measures charges a second in a file and on a server,
``search`` compares private searches with the untuned default and the best candidate, ``metrics`` measures the intervals of
private evaluations,
``audit`` attacks the guarantee, and each of ``PAPERS`` repeats the experiment of a paper.
"""

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from benchmarks import (
    additive,
    audit,
    bands,
    boosting,
    classes,
    clusters,
    components,
    constants,
    counts,
    curve,
    defaults,
    exports,
    floor,
    inference,
    ledgers,
    margins,
    metrics,
    raw,
    refits,
    resources,
    scale,
    search,
    speed,
    statistics,
    text,
)
from benchmarks.frames import FRAMES
from benchmarks.merge import Unlike, merge
from benchmarks.methods import METHODS, TASKS
from benchmarks.papers import PAPERS, reproduce, title
from benchmarks.run import QUICK, QUICK_TABLES, Settings, run
from benchmarks.tables import TABLES
from skdp.privacy.budget import ADJACENCIES
from skdp.solvers import SOLVERS

__all__ = ["main"]

LARGEST_EPSILON = 1e6


def main(arguments: list[str] | None = None) -> None:
    """Run a command of the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Words after ``python -m benchmarks``; None takes those of the process.
    """
    parser = whole_parser()
    given = parser.parse_args(arguments)
    try:
        given.action(given)
    except (OSError, Unlike) as error:
        parser.error(str(error))


def whole_parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Comparisons and measurements.")
    commands = parser.add_subparsers(dest="command", required=True)
    additions = (
        add_run,
        add_merge,
        add_curve,
        add_constants,
        add_defaults,
        add_inference,
        add_bands,
        add_refits,
        add_floor,
        add_papers,
        add_margins,
        add_additive,
        add_raw,
        add_boosting,
        add_counts,
        add_exports,
        add_classes,
        add_text,
        add_clusters,
        add_components,
        add_statistics,
        add_search,
        add_ledgers,
        add_metrics,
    )
    for add in (*additions, add_resources, add_speed, add_scale, add_audit):
        add(commands)
    return parser


def add_run(commands: Any) -> None:
    """Command that compares methods."""
    command = commands.add_parser("run", help="test scores of methods on tables; writes accuracy.json, accuracy.md and plots")
    command.add_argument("--list", action="store_true", help="print tables and methods, and do nothing else")
    command.add_argument(
        "--tables", type=names(TABLES), help="names with commas between, or all; default: adult, or four if quick"
    )
    command.add_argument("--methods", type=names(METHODS), help="default: skdp,sklearn,constant, or all if quick")
    command.add_argument("--epsilons", type=epsilons, default="0.1,0.5,1,3", help="default: %(default)s; 0.1,1 if quick")
    command.add_argument(
        "--adjacency", choices=[*ADJACENCIES, "both"], default="both", help="default: %(default)s; zero_out if quick"
    )
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell of a private method; default: %(default)s")
    command.add_argument(
        "--secure", action="store_true", help="fresh noise; otherwise that of the seeds 0, 1, ..., the same every time"
    )
    command.add_argument(
        "--quick",
        action="store_true",
        help="two minutes: 1500 records of each of four tables, 2 epsilons, 2 repeats, whatever else is given",
    )
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_run)


def start_run(given: argparse.Namespace) -> None:
    """Compare methods, or list what there is."""
    if given.list:
        print(listing())
        return
    adjacencies = list(ADJACENCIES) if given.adjacency == "both" else [given.adjacency]
    tables, methods = (list(QUICK_TABLES), list(METHODS)) if given.quick else (["adult"], ["skdp", "sklearn", "constant"])
    wanted = {"adjacencies": adjacencies, "epsilons": given.epsilons, "repeats": given.repeats} | (QUICK if given.quick else {})
    run(Settings(given.tables or tables, given.methods or methods, **wanted, secure=given.secure, quick=given.quick), given.out)


def add_merge(commands: Any) -> None:
    """Command that joins runs."""
    command = commands.add_parser("merge", help="join the accuracy.json of several runs; writes what run writes")
    command.add_argument("sources", type=Path, nargs="+", help="directories of runs; of a cell in two, the later one is taken")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: merge(given.sources, given.out))


def add_curve(commands: Any) -> None:
    """Command that lets tables grow."""
    command = commands.add_parser("curve", help="excess test loss as the table grows; writes curve.json, curve.md and curve.png")
    command.add_argument(
        "--populations",
        type=names(curve.POPULATIONS),
        default="all",
        help=f"default: all, which are {', '.join(curve.POPULATIONS)}",
    )
    command.add_argument("--solvers", type=names(("auto", *SOLVERS)), default="auto", help="default: %(default)s")
    command.add_argument("--repeats", type=positive, default=10, help="tables and fits per size; default: %(default)s")
    command.add_argument(
        "--largest", type=positive, default=10**6, help=f"most records, {min(curve.SIZES)} or more; default: %(default)s"
    )
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(
        action=lambda given: curve.grow(given.populations, given.solvers, given.repeats, given.largest, given.out)
    )


def add_constants(commands: Any) -> None:
    """Command that varies the constants of the defaults."""
    command = commands.add_parser(
        "constants", help="each constant of the defaults times 1/4 to 4; writes constants.json, .md and plots"
    )
    command.add_argument(
        "--tables", type=names((*TABLES, *constants.FAMILIES)), default="all", help="default: all, and made-up ones"
    )
    command.add_argument("--epsilons", type=epsilons, default="0.1,1,3", help="default: %(default)s")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: constants.vary(given.tables, given.epsilons, given.repeats, given.out))


def add_defaults(commands: Any) -> None:
    """Command that compares the default for two classes with other ways to bound gradients."""
    command = commands.add_parser("defaults", help="the default for two classes and others; writes defaults.json and .md")
    command.add_argument("--tables", type=names(defaults.NAMES), default="all", help="default: all, and made-up ones")
    command.add_argument("--epsilons", type=epsilons, default="0.1,0.5,1,3", help="default: %(default)s")
    command.add_argument("--adjacencies", type=names(ADJACENCIES), default="zero_out", help="default: %(default)s")
    command.add_argument("--ways", type=names(defaults.DEFAULTS), default="all", help="default: all")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--jobs", type=positive, help="processes; default: 1")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(
        action=lambda given: defaults.compare(
            given.tables, given.epsilons, given.adjacencies, given.ways, given.repeats, given.jobs, given.out
        )
    )


def add_inference(commands: Any) -> None:
    """Command that measures the coverage of confidence intervals."""
    command = commands.add_parser("inference", help="coverage of confidence intervals; writes inference.json and .md")
    command.add_argument("--families", type=names(inference.FAMILIES), default="all", help="default: all")
    command.add_argument("--designs", type=names(inference.DESIGNS), default="all", help="default: all")
    command.add_argument("--n-samples", type=positive, default=5000, help="records of a sample; default: %(default)s")
    command.add_argument("--columns", type=numbers, default="5,20", help="numbers of features; default: %(default)s")
    command.add_argument("--epsilons", type=epsilons, default="0.5,1,3", help="default: %(default)s")
    command.add_argument("--adjacency", choices=ADJACENCIES, default="replace_one", help="default: %(default)s")
    command.add_argument("--repeats", type=positive, default=400, help="samples and fits per cell; default: %(default)s")
    command.add_argument("--seed", type=int, default=0, help="of truths and samples; default: %(default)s")
    command.add_argument("--robust", action="store_true", help="release the meat, too")
    command.add_argument("--jobs", type=positive, help="processes; default: 1")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_inference)


def start_inference(given: argparse.Namespace) -> None:
    """Measure the coverage of confidence intervals."""
    sizes = {"n": given.n_samples, "columns": given.columns, "epsilons": given.epsilons}
    sizes |= {"adjacency": given.adjacency, "seed": given.seed}
    inference.measure(given.families, given.designs, sizes, given.repeats, given.robust, given.jobs, given.out)


def add_text(commands: Any) -> None:
    """Command that measures naive Bayes on sparse rows."""
    command = commands.add_parser("text", help="naive Bayes and logistic regression on sparse rows; writes text.json and .md")
    command.add_argument("--tables", type=names(text.TABLES), default="all", help="default: all")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: text.compare(given.tables, given.repeats, given.out))


def add_components(commands: Any) -> None:
    """Command that measures principal components."""
    command = commands.add_parser("components", help="variance that components catch; writes components.json and .md")
    every = (*components.TABLES, *components.MIXED)
    command.add_argument("--tables", type=names(every), default="all", help="default: all")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: components.compare(given.tables, given.repeats, given.out))


def add_clusters(commands: Any) -> None:
    """Command that measures private k-means."""
    command = commands.add_parser("clusters", help="k-means, beside diffprivlib and scikit-learn; writes clusters.json and .md")
    command.add_argument("--cases", type=names(clusters.CASES), default="all", help="default: all")
    command.add_argument("--frames", type=names(FRAMES), default="adult,bank", help="default: %(default)s")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: clusters.compare(given.cases, given.frames, given.repeats, given.out))


def add_ledgers(commands: Any) -> None:
    """Command that measures charges to one ledger by many processes."""
    command = commands.add_parser("ledgers", help="charges a second, and that no more are granted; writes ledgers.json and .md")
    command.add_argument("places", nargs="+", help="a folder for files, or postgresql://USER@HOST/DATABASE; they take turns")
    command.add_argument("--processes", type=positive, default=8, help="default: %(default)s")
    command.add_argument("--threads", type=positive, default=2, help="of each process; default: %(default)s")
    command.add_argument("--charges", type=positive, default=20, help="of each thread; default: %(default)s")
    command.add_argument("--repeats", type=positive, default=3, help="default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("ledgers"), help="default: %(default)s")
    command.set_defaults(
        action=lambda given: ledgers.measure(
            given.places, given.processes, given.threads, given.charges, given.repeats, given.out
        )
    )


def add_search(commands: Any) -> None:
    """Command that compares private searches with defaults."""
    command = commands.add_parser("search", help="test AUC of searches, defaults and best candidates; writes search.json and .md")
    command.add_argument("--tables", type=names(search.SEARCHED), default="all", help="default: all")
    command.add_argument("--candidates", type=names(search.CANDIDATES), default="all", help="default: all")
    command.add_argument("--epsilons", type=epsilons, default="0.5,1,3", help="default: %(default)s")
    command.add_argument("--adjacency", choices=ADJACENCIES, default="replace_one", help="default: %(default)s")
    command.add_argument("--n-records", type=positive, help="most training records of a table; default: all")
    command.add_argument("--repeats", type=positive, default=20, help="searches per cell; default: %(default)s")
    command.add_argument("--seed", type=int, default=0, help="of the divisions of records; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_search)


def start_search(given: argparse.Namespace) -> None:
    """Compare private searches with defaults."""
    kept = {name: getattr(given, name) for name in ("epsilons", "adjacency", "n_records", "seed")}
    search.measure(given.tables, given.candidates, kept, given.repeats, given.out)


def add_metrics(commands: Any) -> None:
    """Command that measures the intervals of private evaluations."""
    command = commands.add_parser("metrics", help="coverage, width and error of private metrics; writes metrics.json and .md")
    command.add_argument("--quick", action="store_true", help="few cells, in less than two minutes")
    command.add_argument("--repeats", type=positive, help="evaluations per cell; default: 400, or 40 if quick")
    command.add_argument("--seed", type=int, default=0, help="of records and noise; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_metrics)


def start_metrics(given: argparse.Namespace) -> None:
    """Measure the intervals of private evaluations."""
    metrics.measure(given.quick, given.repeats or (40 if given.quick else 400), given.seed, given.out)


def add_bands(commands: Any) -> None:
    """Command that measures the noise bands of additive and boosted models."""
    command = commands.add_parser("bands", help="coverage and width of the noise bands of curves; writes bands.json and .md")
    command.add_argument("--models", type=names(bands.MODELS), default="all", help="default: all")
    command.add_argument("--n-samples", type=numbers, default="5000,30000", help="numbers of records; default: %(default)s")
    command.add_argument("--epsilons", type=epsilons, default="0.5,1,3", help="default: %(default)s")
    command.add_argument("--adjacency", choices=ADJACENCIES, default="replace_one", help="default: %(default)s")
    command.add_argument("--correlation", type=float, default=0.9, help="of the first two columns; default: %(default)s")
    command.add_argument("--repeats", type=positive, default=60, help="fits per cell; default: %(default)s")
    command.add_argument("--seed", type=int, default=0, help="of the tables; default: %(default)s")
    command.add_argument("--jobs", type=positive, help="processes; default: 1")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_bands)


def start_bands(given: argparse.Namespace) -> None:
    """Measure the noise bands of curves."""
    sizes = {"n": given.n_samples, "epsilons": given.epsilons, "adjacency": given.adjacency, "seed": given.seed}
    sizes["correlation"] = given.correlation
    bands.measure(given.models, sizes, given.repeats, given.jobs, given.out)


def add_refits(commands: Any) -> None:
    """Command that measures intervals over fits of the same records."""
    command = commands.add_parser("refits", help="what intervals cover over fits of one table; writes refits.json and .md")
    command.add_argument("--tables", type=names(refits.REFITTED), default="all", help="default: all")
    command.add_argument("--ways", type=names(refits.WAYS), default="all", help="default: all")
    command.add_argument("--epsilons", type=epsilons, default="0.5,1,3", help="default: %(default)s")
    command.add_argument("--adjacency", choices=ADJACENCIES, default="replace_one", help="default: %(default)s")
    command.add_argument("--repeats", type=positive, default=100, help="fits per cell; default: %(default)s")
    command.add_argument("--jobs", type=positive, help="processes; default: 1")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_refits)


def start_refits(given: argparse.Namespace) -> None:
    """Measure intervals over fits of the same records."""
    sizes = {"epsilons": given.epsilons, "adjacency": given.adjacency}
    refits.measure(given.tables, given.ways, sizes, given.repeats, given.jobs, given.out)


def add_floor(commands: Any) -> None:
    """Command that searches for problems on which a constant is better."""
    command = commands.add_parser("floor", help="problems on which a constant predicts better; writes floor_<task>.json and .md")
    command.add_argument("--task", choices=TASKS, default=TASKS[0], help="default: %(default)s")
    command.add_argument("--problems", type=positive, default=200, help="how many of the grid; default: %(default)s")
    command.add_argument("--repeats", type=positive, default=20, help="tables and fits of each; default: %(default)s")
    command.add_argument("--largest", type=positive, default=2 * 10**6, help="most numbers in a table; default: %(default)s")
    command.add_argument("--seed", type=int, default=0, help="which part of the grid; default: %(default)s")
    command.add_argument("--jobs", type=int, help="processes; default: as joblib has it")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_floor)


def start_floor(given: argparse.Namespace) -> None:
    """Search, and fail if there is a counter-example."""
    if floor.search(given.task, given.problems, given.repeats, given.largest, given.jobs, given.out, given.seed):
        raise SystemExit("Some problems are below the floor.")


def add_papers(commands: Any) -> None:
    """Add the commands that repeat the experiments of papers."""
    for name in PAPERS:
        stem = name.replace("-", "_")
        about = f"{title(name)[0].lower()}{title(name)[1:]}; writes {stem}.json, .md and .png".replace("%", "%%")
        command = commands.add_parser(name, help=about)
        command.add_argument("--quick", action="store_true", help="a small part, in less than two minutes")
        command.add_argument("--jobs", type=int, help="processes; default: as joblib has it")
        command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
        command.set_defaults(action=lambda given: reproduce(given.command, given.quick, given.jobs, given.out))


def add_margins(commands: Any) -> None:
    """Command that compares losses of support vector machines with the logistic one."""
    command = commands.add_parser("margins", help="hinges against the logistic loss; writes margins.json, .md and .png")
    command.add_argument("--tables", type=names(margins.TABLES), default="all", help="default: all")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: margins.compare(given.tables, given.repeats, given.out))


def add_additive(commands: Any) -> None:
    """Command that compares additive models with linear ones."""
    command = commands.add_parser("additive", help="additive models beside linear ones; writes additive.json, .md and .png")
    command.add_argument("--tables", type=names(FRAMES), default="all", help="default: all")
    command.add_argument("--repeats", type=positive, default=20, help="fits per cell of whole tables; default: %(default)s")
    command.add_argument("--subset-repeats", type=positive, default=12, help="of small parts; default: %(default)s")
    command.add_argument("--jobs", type=int, help="processes; default: as joblib has it")
    command.add_argument(
        "--quick", action="store_true", help="two minutes: three tables, 2 fits per cell, whatever else is given"
    )
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_additive)


def start_additive(given: argparse.Namespace) -> None:
    """Compare additive models with linear ones."""
    tables, repeats, parts = (given.tables, given.repeats, given.subset_repeats)
    if given.quick:
        tables, repeats, parts = ["mammography", "spambase", "california"], 2, 2
    additive.compare(tables, repeats, parts, given.jobs, given.out)


def add_raw(commands: Any) -> None:
    """Command that compares columns that are learned with public schemas."""
    command = commands.add_parser(
        "raw", help="raw tables, whose columns are learned, beside public schemas; writes raw.json and .md"
    )
    halves = f"development ({', '.join(raw.DEVELOPMENT)}), validation ({', '.join(raw.VALIDATION)})"
    command.add_argument("--tables", default="all", help=f"names with commas between, {halves} or all; default: all")
    command.add_argument("--models", type=names(raw.MODELS), default="all", help="default: all")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--parts", type=names(raw.OTHERS), help="also changed tables, other types, small parts, made-up tables")
    command.add_argument("--jobs", type=int, default=1, help="processes; default: %(default)s")
    command.add_argument("--quick", action="store_true", help="a minute: spambase, 2 fits per cell, whatever else is given")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_raw)


def start_raw(given: argparse.Namespace) -> None:
    """Compare columns that are learned with public schemas."""
    halves = {"development": list(raw.DEVELOPMENT), "validation": list(raw.VALIDATION)}
    tables = ["spambase"] if given.quick else halves.get(given.tables) or names(FRAMES)(given.tables)
    raw.compare(tables, given.models, 2 if given.quick else given.repeats, given.jobs, given.out, given.parts or ())


def add_boosting(commands: Any) -> None:
    """Command that compares boosted models with additive ones."""
    command = commands.add_parser("boosting", help="boosted models, and those to start with; writes boosting.json and .md")
    halves = f"development ({', '.join(boosting.DEVELOPMENT)}), validation ({', '.join(boosting.VALIDATION)})"
    command.add_argument("--tables", default="all", help=f"names with commas between, {halves} or all; default: all")
    command.add_argument("--repeats", type=positive, default=10, help="fits per cell; default: %(default)s")
    command.add_argument("--jobs", type=int, default=1, help="processes; default: %(default)s")
    command.add_argument("--quick", action="store_true", help="a minute: spambase, 2 fits per cell, whatever else is given")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_boosting)


def start_boosting(given: argparse.Namespace) -> None:
    """Compare boosted models with additive ones."""
    halves = {"development": list(boosting.DEVELOPMENT), "validation": list(boosting.VALIDATION)}
    tables = ["spambase"] if given.quick else halves.get(given.tables) or names(FRAMES)(given.tables)
    boosting.compare(tables, 2 if given.quick else given.repeats, given.jobs, given.out)


def add_counts(commands: Any) -> None:
    """Command that compares links."""
    command = commands.add_parser("counts", help="log and identity link on counts and amounts; writes counts.json and .md")
    command.add_argument("--models", type=names(counts.MODELS), default=[*counts.MODELS], help="with commas; default: all")
    command.add_argument("--repeats", type=positive, default=3, help="fits per cell; default: %(default)s")
    command.add_argument("--jobs", type=int, default=1, help="processes; default: %(default)s")
    command.add_argument("--quick", action="store_true", help="seconds: one made-up table, linear, 1 fit per cell")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_counts)


def start_counts(given: argparse.Namespace) -> None:
    """Compare links."""
    if given.quick:
        counts.compare(["Poisson 50"], ["linear"], 1, given.jobs, given.out)
    else:
        counts.compare([*counts.TABLES], given.models, given.repeats, given.jobs, given.out)


def add_exports(commands: Any) -> None:
    """Command that compares exported models with the models."""
    command = commands.add_parser("exports", help="ONNX files and plain objects beside our models; writes exports.json and .md")
    command.add_argument("--tables", type=names(exports.TABLES), default=[*exports.TABLES], help="with commas; default: all")
    command.add_argument("--also", help="a Python with an older onnxruntime")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: exports.compare(given.tables, given.out, given.also))


def add_statistics(commands: Any) -> None:
    """Command that compares statistics, and measures what their intervals cover."""
    command = commands.add_parser("statistics", help="statistics beside diffprivlib's; writes statistics.json and .md")
    command.add_argument(
        "--tables", type=names(statistics.TABLES), default=[*statistics.TABLES], help="with commas; default: all"
    )
    command.add_argument("--repeats", type=int, default=10, help="seeds per cell; default: %(default)s")
    command.add_argument("--coverage", type=int, default=400, help="tables per cell of the coverage; default: %(default)s")
    command.add_argument("--quick", action="store_true", help="seconds: one table, few cells")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_statistics)


def start_statistics(given: argparse.Namespace) -> None:
    """Compare statistics."""
    if given.quick:
        statistics.measure(["mammography"], 1, 2, given.out, quick=True)
    else:
        statistics.measure(given.tables, given.repeats, given.coverage, given.out)


def add_classes(commands: Any) -> None:
    """Command that measures probabilities of several classes."""
    command = commands.add_parser("classes", help="probabilities of several classes; writes classes.json and .md")
    command.add_argument("--tables", type=names(classes.TABLES), default=[*classes.TABLES], help="with commas; default: all")
    command.add_argument("--models", type=names(classes.MODELS), default=[*classes.MODELS], help="with commas; default: all")
    command.add_argument("--repeats", type=positive, default=3, help="fits per cell; default: %(default)s")
    command.add_argument("--jobs", type=int, default=1, help="processes; default: %(default)s")
    command.add_argument("--quick", action="store_true", help="seconds: 3000 records, linear, 1 fit per cell")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=start_classes)


def start_classes(given: argparse.Namespace) -> None:
    """Measure probabilities of several classes."""
    if given.quick:
        classes.compare(["adult, marital status, 3000"], ["linear"], 1, given.jobs, given.out)
    else:
        classes.compare(given.tables, given.models, given.repeats, given.jobs, given.out)


def add_resources(commands: Any) -> None:
    """Command that measures time and memory."""
    command = commands.add_parser("resources", help="time and memory as ratios; writes resources.json into benchmarks/results")
    command.set_defaults(action=lambda given: resources.main())


def add_speed(commands: Any) -> None:
    """Command that measures whole fits beside scikit-learn's, and beside those of an older checkout."""
    command = commands.add_parser("speed", help="fits beside scikit-learn's and an older checkout's; writes speed.json")
    command.add_argument("--cases", type=names(speed.CASES), default=[*speed.CASES], help="with commas; default: all")
    command.add_argument("--repeats", type=positive, default=9, help="fewest fits of each; default: %(default)s")
    command.add_argument("--beside", type=Path, metavar="CHECKOUT", help="an older checkout, whose fits take turns with ours")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: speed.compare(given.cases, given.repeats, given.beside, given.out))


def add_scale(commands: Any) -> None:
    """Command that measures tables in partitions."""
    command = commands.add_parser("scale", help="tables in partitions beside memory; writes scale.json and scale.md")
    command.add_argument("--quick", action="store_true", help="small tables, in a minute")
    command.add_argument("--n-samples", type=positive, help="of the generated table; default: 10000000, or 1000000 if quick")
    command.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    command.set_defaults(action=lambda given: scale.measure(given.quick, given.n_samples, given.out))


def add_audit(commands: Any) -> None:
    """Command that attacks the guarantee."""
    command = commands.add_parser("audit", help="attacks on every solver and on broken twins; writes Markdown and JSON")
    command.add_argument("--out", type=Path, default=Path("docs/audit.md"), help="Markdown file; default: docs/audit.md")
    command.add_argument("--n-runs", type=positive, default=10_000, help="fits of each of the two tables; default: %(default)s")
    command.add_argument("--jobs", type=int, help="processes; default: as joblib has it")
    command.set_defaults(action=start_audit)


def start_audit(given: argparse.Namespace) -> None:
    """Attack, and fail if a bound is where it must not be."""
    if not audit.write_table(given.out, given.n_runs, given.jobs):
        raise SystemExit("A bound is on the wrong side of the claim.")


def names(known: Collection[str]) -> Callable[[str], list[str]]:
    """Reader of a list of known names."""

    def read(text: str) -> list[str]:
        chosen = list(known) if text == "all" else list(dict.fromkeys(word.strip() for word in text.split(",")))
        if unknown := [name for name in chosen if name not in known]:
            listed = ", ".join(known)
            raise argparse.ArgumentTypeError(f"unknown: {', '.join(map(repr, unknown))}; expected all, or some of {listed}")
        return chosen

    return read


def epsilons(text: str) -> list[float]:
    """Read a list of privacy parameters; the smallest comes first."""
    try:
        values = sorted({float(word) for word in text.split(",")})
    except ValueError:
        values = []
    if not values or not all(0 < value <= LARGEST_EPSILON for value in values):
        raise argparse.ArgumentTypeError(f"{text!r}; expected positive numbers up to 1e6 with commas between")
    return values


def numbers(text: str) -> list[int]:
    """Read a list of positive whole numbers."""
    return [positive(word.strip()) for word in text.split(",")]


def positive(text: str) -> int:
    """Read a positive whole number."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a positive whole number")
    return int(text)


def listing() -> str:
    """Tables and methods, a line each."""
    tables = [f"  {name:12} {prepare.__doc__}" for name, prepare in TABLES.items()]
    methods = [f"  {name:12} {method.description}; {neighbours(name)}" for name, method in METHODS.items()]
    return "\n".join(["Tables", *tables, "", "Methods", *methods])


def neighbours(name: str) -> str:
    """What the guarantee of a method is for."""
    method = METHODS[name]
    return f"{' and '.join(method.builds)}, {' and '.join(method.adjacencies) if method.private else 'not private'}"


if __name__ == "__main__":
    main()
