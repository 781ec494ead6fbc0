"""Parse the command line ``skdp fit | predict | evaluate | ...``, which is ``python -m skdp fit | ...``, and run the command."""

import argparse
import os
import sys
import traceback
import warnings
from dataclasses import fields
from pathlib import Path
from typing import Any

from skdp import __version__
from skdp._commands import _messages
from skdp._files._suffixes import Forgiving
from skdp._files._tables import TextFormat

__all__ = ["main"]

TABLE = (
    "records with column names: text (.csv, .tsv, .txt, .data, .dat; .gz, .zip, .bz2 or .xz of it), .parquet, or a folder of "
    ".parquet files, which may exceed the memory"
)


def main(arguments: list[str] | None = None) -> int:
    """Run a command of the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Words after ``skdp`` or ``python -m skdp``; None takes those of the current process.

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
            _set_format(given)
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


def _set_format(given: dict[str, Any]) -> None:
    """Replace the options of how a text is written by one ``form``, for commands that read a table."""
    if "skip" in given:
        given["form"] = TextFormat(**{field.name: given.pop(field.name) for field in fields(TextFormat)})


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
    name = "skdp" if Path(sys.argv[0]).stem == "skdp" else "python -m skdp"
    parser = argparse.ArgumentParser(prog=name, description="Differentially private machine learning on tables.")
    parser.add_argument("--version", action="version", version=f"skdp {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    _add_fit(commands.add_parser("fit", help="fit a private model to a table and save it with its privacy report"))
    _add_predict(commands.add_parser("predict", help="predict for the records of a table"))
    _add_evaluate(commands.add_parser("evaluate", help="print scores of a model on test records that may be published"))
    _add_card(commands.add_parser("card", help="write the model card of a model: purpose, guarantee, scores, limits"))
    _add_describe(commands.add_parser("describe", help="print statistics of a table that may be published, with intervals"))
    _add_plan(commands.add_parser("plan", help="print the guarantee of a fit before any data is touched"))
    _add_schema(
        commands.add_parser("schema", help="write a schema of a table: a template to fill in, or what --learn learns privately")
    )
    _add_ledger(commands.add_parser("ledger", help="show, create or move the ledger of a data set"))
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
    _add_drop(parser)
    parser.add_argument("--ledger", metavar="L", help="charge the fit to this ledger, created by the command ledger")
    parser.add_argument(
        "--groups", metavar="COLUMN", help="for group_dro: the column of public groups; their sizes are published"
    )
    parser.add_argument(
        "--exposure",
        metavar="COLUMN",
        help="with --set link=log_count: how long each record counted; predictions are per unit. --set max_exposure=1 bounds it",
    )
    _add_persons(parser)
    parser.add_argument("--quiet", dest="verbose", action="store_const", const=0, help="show no progress bar")
    parser.add_argument("-v", "--verbose", dest="show_report", action="store_true", help="print the privacy report")


def _add_predict(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="file written by fit; a .joblib file needs --trust")
    _add_table(parser)
    parser.add_argument("--out", type=Path, help="CSV file to write (default: print); for a folder, .parquet")
    parser.add_argument("--trust", action="store_true", help="read a .joblib MODEL, although it can run arbitrary code")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="file written by fit; a .joblib file needs --trust")
    _add_table(parser)
    parser.add_argument("--target", metavar="NAME", help="the column of the true labels or numbers (default: that of the fit)")
    parser.add_argument("--epsilon", type=float, required=True, help="privacy budget that the scores spend")
    parser.add_argument("--delta", type=float, help="privacy parameter (default: 1/n**2, at least 1e-11; 0: Laplace noise)")
    parser.add_argument("--adjacency", default="replace_one", help="replace_one (default) or zero_out")
    parser.add_argument(
        "--metrics", metavar="A,B", help="such as accuracy,roc_auc, mae,r2 or d2_poisson (default: the usual ones)"
    )
    parser.add_argument("--target-bounds", metavar="LOW,HIGH", help="public range of a number to predict (default: the model's)")
    parser.add_argument("--error-bound", type=float, help="public bound of the errors of numbers (default: it is learned)")
    parser.add_argument("--level", type=float, default=0.95, help="coverage of the intervals (default: 0.95)")
    parser.add_argument("--test", metavar="PART", help="evaluate on the records that fit --test PART kept out of the fit")
    _add_drop(parser)
    _add_persons(parser)
    parser.add_argument("--disjoint", action="store_true", help="nobody in these records is in the training records")
    parser.add_argument("--ledger", metavar="L", help="charge the evaluation to this ledger")
    parser.add_argument("--out", type=Path, help="write the scores: .json or .csv")
    parser.add_argument("--report", type=Path, metavar="R", help="write the privacy report: .html, .json or .txt")
    parser.add_argument("--trust", action="store_true", help="read a .joblib MODEL, although it can run arbitrary code")


def _add_card(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="file written by fit; a .joblib file needs --trust")
    parser.add_argument("--scores", type=Path, metavar="S", help="scores that evaluate --out S.json wrote")
    parser.add_argument("--purpose", metavar="TEXT", help="what the model is for")
    parser.add_argument("--out", type=Path, help="write the card: .md or .html (default: print Markdown)")
    parser.add_argument("--trust", action="store_true", help="read a .joblib MODEL, although it can run arbitrary code")


def _add_describe(parser: argparse.ArgumentParser) -> None:
    _add_table(parser)
    parser.add_argument("--epsilon", type=float, required=True, help="privacy budget of the whole description")
    parser.add_argument("--delta", type=float, help="privacy parameter (default: 1/n**2, at least 1e-11)")
    parser.add_argument("--adjacency", default="replace_one", help="replace_one (default) or zero_out")
    parser.add_argument("--schema", type=Path, metavar="S", help="JSON file of known bounds and categories; others are learned")
    parser.add_argument("--confidence", type=float, default=0.95, help="coverage of the intervals (default: 0.95)")
    parser.add_argument(
        "--clip", default="auto", help="auto (default), or bounds: means of columns with bounds are never clipped"
    )
    _add_persons(parser)
    parser.add_argument("--ledger", metavar="L", help="charge the description to this ledger")
    parser.add_argument("--out", type=Path, help="write a page with small pictures: .html")
    parser.add_argument("--report", type=Path, metavar="R", help="write the privacy report: .html, .json or .txt")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "table", type=Path, nargs="?", metavar="TABLE", help="read the number of records and the column names of this table"
    )
    _add_format(parser)
    parser.add_argument(
        "--n-samples", type=int, help="number of records or persons, which must be public (default: that of TABLE)"
    )
    _add_estimator(parser)
    _add_persons(parser)
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
    _add_drop(parser)
    _add_persons(parser)
    parser.add_argument("--schema", dest="known", type=Path, metavar="S", help="for --learn: JSON file of what is known already")
    parser.add_argument("--ledger", metavar="L", help="for --learn: charge this ledger")
    parser.add_argument("--report", type=Path, metavar="R", help="for --learn: write the privacy report: .html, .json or .txt")


def _add_drop(parser: Any) -> None:
    parser.add_argument(
        "--drop-missing-target",
        action="store_true",
        default=None,
        help="leave records without target out; the number that remains is public",
    )


def _add_persons(parser: Any) -> None:
    parser.add_argument(
        "--persons", metavar="COLUMN", help="protect persons with all their records: the column of their ids, which is no feature"
    )


def _add_target(parser: Any) -> None:
    parser.add_argument("--target", metavar="NAME", help="the column to predict; a complete schema names it")
    parser.add_argument("--classes", metavar="A,B", help="its labels, which are public (default: those that the table has)")
    parser.add_argument(
        "--task", choices=("classification", "regression"), help="whether the target has labels (default), or numbers"
    )


def _add_ledger(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        nargs="+",
        metavar="LEDGER",
        help="SQLite file, or postgresql://USER@HOST/DATABASE?study=NAME; --epsilon and --delta create it. "
        "move LEDGER NEW moves a ledger with its charges",
    )
    parser.add_argument("--epsilon", type=float, help="ceiling of epsilon for all fits on the data set together")
    parser.add_argument("--delta", type=float, help="ceiling of delta")
    parser.add_argument("--adjacency", help="replace_one or zero_out (default: that of the first fit)")
    parser.add_argument("--unit", help="person refuses what protects single records; record (default: that of the first fit)")
    parser.add_argument("--out", type=Path, help="write the ledger as .json, or its timeline as .png")
    parser.add_argument("--html", type=Path, metavar="PAGE", help="write a page: who spent what, and what is left")


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", type=Path, help="your own table instead; every fit spends budget")
    parser.add_argument("--schema", type=Path, help="its schema")
    _add_format(parser)
    parser.add_argument("--out", type=Path, default=Path("skdp-demo"), help="directory for the plot and the report")
    parser.add_argument("--repeats", type=_positive, default=20, help="private fits per epsilon")


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", type=Path, metavar="TABLE", help=TABLE)
    _add_format(parser)


def _add_format(parser: Any) -> None:
    text = parser.add_argument_group("how a text is written")
    text.add_argument("--sep", type=_mark, help="separator of the fields: , (default; tab in .tsv) ';' tab '|' or space")
    text.add_argument("--skip", type=int, default=0, metavar="N", help="leave out N lines before the column names")
    text.add_argument("--encoding", default="utf-8", help="such as latin-1, cp1252 or utf-16 (default: utf-8)")
    text.add_argument("--decimal", type=_mark, default=".", metavar="MARK", help="decimal sign: . (default) or ,")
    text.add_argument("--thousands", type=_mark, metavar="MARK", help="separator of thousands: , . ' or space (default: none)")
    text.add_argument("--no-quotes", dest="quotes", action="store_false", help="quotation marks surround no cells")
    text.add_argument("--header", type=_names, metavar="A,B", help="column names of a table that has none in its first line")


def _mark(text: str) -> str:
    return {"tab": "\t", "\\t": "\t", "space": " "}.get(text, text)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


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
        help="tabular (default; labels or numbers), boosting, additive, constrained; for labels: logistic, svm, auc, group_dro; "
        "for numbers: linear, quantile, robust",
    )
    parser.add_argument("--solver", default="auto", help="for logistic, linear and others: auto (default), gd, sgd, ...")
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
