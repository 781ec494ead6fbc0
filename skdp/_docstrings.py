"""Fill docstrings: names that follow from the package, and the texts of parameters and attributes that classes share."""

import re
import sys
import textwrap
from collections import ChainMap
from collections.abc import Callable, Iterable
from functools import cache, update_wrapper
from inspect import getattr_static, signature
from types import FunctionType
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])
Kind = TypeVar("Kind", bound=type)
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


def complete_methods(kind: type, **texts: str) -> None:
    """Give a class its own copies of the methods whose docstrings have a ``{name}``, filled by `fill_docstring`.

    Parameters
    ----------
    kind : type
        The class, which inherits most of these methods.
    **texts : str
        The text for each name.
    """
    for name in dir(kind):
        method = getattr_static(kind, name)
        if isinstance(method, FunctionType) and any(f"{{{text}}}" in (method.__doc__ or "") for text in texts):
            copied = FunctionType(method.__code__, method.__globals__, name, method.__defaults__, method.__closure__)
            copied.__kwdefaults__ = method.__kwdefaults__
            setattr(kind, name, fill_docstring(**texts)(update_wrapper(copied, method)))


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


def complete_docstring(kind: Kind) -> Kind:
    """Add the texts that a class shares with others, each of which the docstring of one of its bases has.

    *Parameters* gets an entry for each parameter of the constructor, *Attributes* one for each name that stands without a type,
    such as ``n_iter_, schema_``.

    Parameters
    ----------
    kind : type
        The class. Its docstring has attributes.

    Returns
    -------
    type
        The same class.
    """
    if kind.__doc__:  # Python may leave docstrings out
        summary, own = _sections(kind)
        names = {"Parameters": [*signature(kind).parameters], "Attributes": ", ".join(_entries(own["Attributes"])).split(", ")}
        described = {section: ChainMap(*(_described(base, section) for base in kind.__mro__)) for section in names}
        filled = {section: "\n".join(described[section].get(name, name) for name in names[section]) for section in names}
        sections = {**filled, **own, **filled}
        kind.__doc__ = (
            "\n\n".join([summary, *(f"{title}\n{'-' * len(title)}\n{body}" for title, body in sections.items())]) + "\n"
        )
    return kind


@cache
def _described(kind: type, section: str) -> dict[str, str]:
    """Return the entries of the docstring of a class that have a type."""
    return {name: entry for name, entry in _entries(_sections(kind)[1].get(section, "")).items() if " : " in entry}


def _sections(kind: type) -> tuple[str, dict[str, str]]:
    """Return what the docstring of a class has before its sections, and each of these by title."""
    text = (kind.__doc__ or "").rstrip()
    before, *parts = re.split(r"\n\n(\w[\w ]*)\n-+\n", text if sys.version_info >= (3, 13) else text.replace("\n    ", "\n"))
    return before, dict(zip(parts[::2], parts[1::2], strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return the entries of a section by name."""
    return {entry.split(" : ")[0]: entry for entry in re.split(r"\n(?=\S)", section)}
