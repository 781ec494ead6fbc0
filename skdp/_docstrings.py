"""Fill names that follow from the package into docstrings."""

import textwrap
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

__all__ = ["fill_docstring", "quoted"]

Documented = TypeVar("Documented", bound=Callable[..., Any])
WIDTH = 130  # of a line, as in the code


def fill_docstring(**texts: str) -> Callable[[Documented], Documented]:
    """Make a decorator that replaces ``{name}`` in the docstring of a function or class by a text.

    Parameters
    ----------
    **texts : str
        The text for each name. A line that becomes too long is wrapped.

    Returns
    -------
    callable
        The decorator.
    """

    def filled(line: str) -> str:
        new = line
        for name, text in texts.items():
            new = new.replace(f"{{{name}}}", text)
        if new == line:
            return line
        indent = line[: len(line) - len(line.lstrip())]
        return textwrap.fill(new.strip(), WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)

    def decorate(documented: Documented) -> Documented:
        documented.__doc__ = "\n".join(map(filled, (documented.__doc__ or "").split("\n")))
        return documented

    return decorate


def quoted(names: Iterable[str]) -> str:
    """Return names as text, such as ``"a", "b" and "c"``.

    Parameters
    ----------
    names : iterable of str
        One name at least.

    Returns
    -------
    str
        The names in quotes.
    """
    *most, last = (f'"{name}"' for name in names)
    return f"{', '.join(most)} and {last}" if most else last
