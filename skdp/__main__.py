"""Command line: ``python -m skdp demo``."""

import argparse
from pathlib import Path

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run a command of the command line.

    Parameters
    ----------
    arguments : list of str or None, default=None
        Words after ``python -m skdp``; None takes those of the process.
    """
    parser = argparse.ArgumentParser(prog="python -m skdp", description="Differentially private machine learning.")
    commands = parser.add_subparsers(dest="command", required=True)
    demo = commands.add_parser("demo", help="private against non-private accuracy on scikit-learn's breast cancer table")
    demo.add_argument("--out", type=Path, default=Path("skdp-demo"), help="directory for the plot and the report")
    demo.add_argument("--repeats", type=_positive, default=20, help="private fits per epsilon")
    given = parser.parse_args(arguments)
    from skdp._demo import run

    run(given.out, given.repeats)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not a positive number")
    return number


if __name__ == "__main__":
    main()
