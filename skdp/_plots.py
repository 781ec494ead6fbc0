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
