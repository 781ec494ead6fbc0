"""Command line of the benchmarks.

``python -m benchmarks run`` compares methods, ``resources`` measures time and memory, ``audit`` attacks the guarantee.
"""

import argparse
from collections.abc import Callable, Collection
from pathlib import Path

from benchmarks import audit, resources
from benchmarks.methods import METHODS
from benchmarks.run import Settings, run
from benchmarks.tables import TABLES
from skdp.privacy.budget import ADJACENCIES

__all__ = ["main"]

LARGEST_EPSILON = 1e6


def main(arguments: list[str] | None = None) -> None:
    """Run a command of the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Words after ``python -m benchmarks``; None takes those of the process.
    """
    parser, runner = parsers()
    given = parser.parse_args(arguments)
    if given.command == "resources":
        resources.main()
    elif given.command == "audit":
        if not audit.write_table(given.out, given.n_runs, given.jobs):
            raise SystemExit("A bound is on the wrong side of the claim.")
    elif given.list:
        print(listing())
    else:
        adjacencies = list(ADJACENCIES) if given.adjacency == "both" else [given.adjacency]
        try:
            run(Settings(given.tables, given.methods, adjacencies, given.epsilons, given.repeats), given.out)
        except OSError as error:
            runner.error(str(error))


def parsers() -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Parser of the whole command line, and of the command run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Comparisons and measurements.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("resources", help="time and memory as ratios; writes resources.json into benchmarks/results")
    runner = commands.add_parser("run", help="test accuracy and AUC; writes accuracy.json, accuracy.md and a plot per table")
    auditor = commands.add_parser("audit", help="attacks on every solver and on broken twins; writes Markdown and JSON")
    auditor.add_argument("--out", type=Path, default=Path("docs/audit.md"), help="Markdown file; default: docs/audit.md")
    auditor.add_argument("--n-runs", type=positive, default=10_000, help="fits of each of the two tables; default: %(default)s")
    auditor.add_argument("--jobs", type=int, help="processes; default: as joblib has it")
    runner.add_argument("--list", action="store_true", help="print tables and methods, and do nothing else")
    runner.add_argument("--tables", type=names(TABLES), default="adult", help="names with commas between, or all; default: adult")
    runner.add_argument("--methods", type=names(METHODS), default="skdp,sklearn,majority", help="default: %(default)s")
    runner.add_argument("--epsilons", type=epsilons, default="0.1,0.5,1,3", help="default: %(default)s")
    runner.add_argument("--adjacency", choices=[*ADJACENCIES, "both"], default="both", help="default: %(default)s")
    runner.add_argument("--repeats", type=positive, default=5, help="fits per cell of a private method; default: %(default)s")
    runner.add_argument("--out", type=Path, default=Path("scores"), help="directory; default: scores")
    return parser, runner


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
    return f"{method.task}, {' and '.join(method.adjacencies) if method.private else 'not private'}"


if __name__ == "__main__":
    main()
