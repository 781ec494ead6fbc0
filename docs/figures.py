"""Draws the figures of the pages from the examples: ``python docs/figures.py``, into ``docs/images``."""

import runpy
from contextlib import suppress
from pathlib import Path

import matplotlib
from matplotlib import pyplot

DOCS = Path(__file__).resolve().parent


def main() -> None:
    """Run the examples and keep their figures, numbered as they come."""
    matplotlib.use("agg")
    pyplot.show = lambda: None
    for example in sorted((DOCS.parent / "examples").glob("plot_*.py")):
        pyplot.close("all")
        with suppress(SystemExit):  # of those whose data sets are missing
            runpy.run_path(str(example))
        for number in pyplot.get_fignums():
            pyplot.figure(number).savefig(DOCS / "images" / f"{example.stem.removeprefix('plot_')}_{number}.png", dpi=72)


if __name__ == "__main__":
    main()
