"""Import the public names of a package when they are first used."""

import ast
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    Its names are those that it imports under ``if TYPE_CHECKING``, where type checkers and editors read them: one list for all.

    Parameters
    ----------
    package : str
        Name of the package, which calls this under ``else``.

    Returns
    -------
    getter : callable
        Imports a name.
    lister : callable
        Returns all names, those of submodules included.
    exported : list of str
        All names but those of submodules.
    """
    names = vars(sys.modules[package])
    origins = dict(_origins(names["__spec__"].loader.get_source(package)))

    def getter(name: str) -> Any:
        if name not in origins:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        origin = origins[name]
        names[name] = import_module(f"{package}.{name}") if origin == package else getattr(import_module(origin), name)
        return names[name]

    return getter, lambda: sorted(origins), sorted(name for name, origin in origins.items() if origin != package)


def _origins(source: str) -> Iterator[tuple[str, str]]:
    """Yield each name that a source imports under its ``if``, and the module that it is imported from."""
    block = next(statement for statement in ast.parse(source).body if isinstance(statement, ast.If))
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names:
            for name in import_module(statement.module).__all__ if alias.name == "*" else (alias.name,):
                yield name, statement.module
