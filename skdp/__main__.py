"""Parse the command line ``python -m skdp fit | predict | plan | schema | ledger | demo``, and run the command."""

import argparse
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

from skdp import __version__
from skdp._commands import _messages
from skdp._files._suffixes import Forgiving

__all__ = ["main"]

TABLE = "records: .csv, .csv.gz or .parquet, with column names, or a folder of .parquet files, which may exceed the memory"


def main(arguments: list[str] | None = None) -> int:
    """Run a command of the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Words after ``python -m skdp``; None takes those of the current process.

    Returns
    -------
    int
        0, or 2 after an error, or 130 after an interrupt.
    """
    given = vars(_parser().parse_args(arguments))
    command, debug = given.pop("command"), given.pop("debug")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # do not fail for a label that the terminal cannot show
    try:
        with warnings.catch_warnings():
            if not debug:
                warnings.showwarning = _Shown()  # type: ignore[assignment]
            if command == "demo":
                from skdp import _demo

                _demo.run(**given)
            else:
                from skdp import _commands

                getattr(_commands, command)(**given)
    except BrokenPipeError:  # the reader of the output closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        _tell("Interrupted: only files that were announced as written are complete; a fit that had begun has spent its budget.")
        return 130
    except Exception as error:
        if debug:
            traceback.print_exception(error, file=Forgiving(sys.stderr))
        _tell(f"error: {_messages.of_error(error)}")
        return 2
    return 0


class _Shown(set[str]):
    """Shows each warning once; a command may ask a model several times."""

    def __call__(self, message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        text = f"warning: {_messages.of_warning(message, category)}"
        if text not in self:
            self.add(text)
            _tell(text)


def _tell(text: str) -> None:
    print(text, file=Forgiving(sys.stderr))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m skdp", description="Differentially private machine learning on tables.")
    parser.add_argument("--version", action="version", version=f"skdp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_fit(commands.add_parser("fit", help="fit a private model to a table and save it with its privacy report"))
    _add_predict(commands.add_parser("predict", help="predict for the records of a table"))
    _add_plan(commands.add_parser("plan", help="print the guarantee of a fit before any data is touched"))
    _add_schema(
        commands.add_parser("schema", help="write a schema of a table: a template to fill in, or what --learn learns privately")
    )
    _add_ledger(commands.add_parser("ledger", help="show or create the ledger of a data set"))
    _add_demo(commands.add_parser("demo", help="compare private and non-private accuracy on scikit-learn's breast cancer table"))
    for command in commands.choices.values():
        command.add_argument("--debug", action="store_true", help="show the traceback of an error, which may quote records")
    return parser


def _add_fit(parser: argparse.ArgumentParser) -> None:
    _add_table(parser)
    _add_estimator(parser)
    parser.add_argument("--model", type=Path, required=True, metavar="OUT", help="write model and report: .skops or .joblib")
    parser.add_argument("--report", type=Path, metavar="R", help="write the privacy report: .html, .json or .txt")
    parser.add_argument(
        "--test",
        metavar="PART",
        help="keep records out of the fit and print their (not private) scores: a share such as 0.2, or column=value",
    )
    parser.add_argument("--ledger", type=Path, metavar="L", help="charge the fit to this ledger, created by the command ledger")
    parser.add_argument(
        "--groups", metavar="COLUMN", help="for group_dro: the column of public groups; their sizes are published"
    )
    parser.add_argument("--quiet", dest="verbose", action="store_const", const=0, default=1, help="show no progress")
    parser.add_argument("-v", "--verbose", dest="show_report", action="store_true", help="print the privacy report")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="file written by fit; a .joblib file needs --trust")
    _add_table(parser)
    parser.add_argument("--out", type=Path, help="CSV file to write (default: print); for a folder, .parquet")
    parser.add_argument("--trust", action="store_true", help="read a .joblib MODEL, although it can run arbitrary code")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--n-samples", type=int, required=True, help="number of records, which must be public")
    _add_estimator(parser)
    parser.add_argument(
        "--names", type=Path, metavar="TABLE", help="read the column names of TABLE: to learn, or for patterns in the schema"
    )
    _add_sep(parser)
    parser.add_argument("--report", type=Path, metavar="R", help="write the plan: .html, .json or .txt")


def _add_schema(parser: argparse.ArgumentParser) -> None:
    _add_table(parser)
    _add_target(parser)
    parser.add_argument("--out", type=Path, help="JSON file to write (default: print)")
    parser.add_argument(
        "--learn", action="store_true", help="learn bounds and categories from the records, with a privacy budget"
    )
    parser.add_argument("--epsilon", type=float, help="for --learn: the privacy budget that the schema alone spends")
    parser.add_argument("--delta", type=float, help="for --learn: privacy parameter (default: 1/n**2, at least 1e-11)")
    parser.add_argument("--adjacency", help="for --learn: replace_one (default) or zero_out")
    parser.add_argument("--schema", dest="known", type=Path, metavar="S", help="for --learn: JSON file of what is known already")
    parser.add_argument("--ledger", type=Path, metavar="L", help="for --learn: charge this ledger")
    parser.add_argument("--report", type=Path, metavar="R", help="for --learn: write the privacy report: .html, .json or .txt")


def _add_target(parser: Any) -> None:
    parser.add_argument("--target", metavar="NAME", help="the column to predict; a complete schema names it")
    parser.add_argument("--classes", metavar="A,B", help="its labels, which are public (default: those that the table has)")
    parser.add_argument(
        "--task", choices=("classification", "regression"), help="whether the target has labels (default), or numbers"
    )


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="LEDGER", help="SQLite file; --epsilon and --delta create it")
    parser.add_argument("--epsilon", type=float, help="ceiling of epsilon for all fits on the data set together")
    parser.add_argument("--delta", type=float, help="ceiling of delta")
    parser.add_argument("--adjacency", help="replace_one or zero_out (default: that of the first fit)")
    parser.add_argument("--out", type=Path, help="write the ledger as .json, or its timeline as .png")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", type=Path, help="your own table instead; every fit spends budget")
    parser.add_argument("--schema", type=Path, help="its schema")
    _add_sep(parser)
    parser.add_argument("--out", type=Path, default=Path("skdp-demo"), help="directory for the plot and the report")
    parser.add_argument("--repeats", type=_positive, default=20, help="private fits per epsilon")


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=Path, metavar="TABLE", help=TABLE)
    _add_sep(parser)


def _add_sep(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sep", type=_separator, default=",", help="separator of the fields of a CSV: , (default) ';' tab or '|'"
    )


def _separator(text: str) -> str:
    return {"tab": "\t", "\\t": "\t"}.get(text, text)


def _add_estimator(parser: Any) -> None:
    parser.add_argument(
        "--schema",
        type=Path,
        metavar="S",
        help='JSON file of public facts. One of some columns, such as {"id": "ignore"}, leaves the others to learn; one with the '
        'key "columns" is complete, and columns that it leaves out are dropped, unless it says "learn" for a column',
    )
    _add_target(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="privacy parameter: smaller is more private, 1 is usual")
    parser.add_argument("--delta", type=float, help="privacy parameter (default: 1/n**2, at least 1e-11)")
    parser.add_argument("--adjacency", default="replace_one", help="replace_one (default) or zero_out")
    parser.add_argument(
        "--estimator",
        metavar="NAME",
        help="tabular (labels or numbers; the one to start with), boosting, additive, constrained; "
        "for labels: logistic (default), svm, auc, group_dro; for numbers: linear (default), quantile, robust",
    )
    parser.add_argument("--solver", default="auto", help="auto (default) or the name of a solver, such as gd or sgd")
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another parameter of the estimator, or of the solver as solver__NAME; the value is JSON or text; may be repeated",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


if __name__ == "__main__":
    sys.exit(main())
