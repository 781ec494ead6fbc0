"""Where code is in the package, for tests that watch its frames."""

from functools import cache
from pathlib import Path

import skdp

__all__ = ["place_of"]

PACKAGE = Path(skdp.__file__).parent


@cache
def place_of(path):
    """Where a file is in the package; None if it is not in it. A watch asks at every call of a function."""
    path = Path(path)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None
