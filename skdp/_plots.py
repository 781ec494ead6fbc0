"""Make the axes of plots; matplotlib is imported when a plot is drawn."""

from typing import Any


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``; ImportError that says how to install it if it is missing."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("A plot needs matplotlib, which is missing; pip install matplotlib brings it.") from None
    return plt


def axes_or_new(ax: Any, size: tuple[float, float]) -> Any:
    """Return axes to draw on.

    Parameters
    ----------
    ax : matplotlib.axes.Axes or None
        Axes that were given; None makes a figure.
    size : tuple of float
        Width and height of a new figure in inches.

    Returns
    -------
    matplotlib.axes.Axes
        The axes.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    """
    plt = pyplot()
    return plt.subplots(figsize=size, layout="constrained")[1] if ax is None else ax


def draw_bins(ax: Any, ends: Any, values: Any, lows: Any, highs: Any) -> None:
    """Draw values in bins between ends, with a band from low to high ones."""
    ax.stairs(values, ends, fill=True, alpha=0.6)
    ax.stairs(highs, ends, baseline=lows, fill=True, color="black", alpha=0.2)
    ax.set_ylim(bottom=0)
