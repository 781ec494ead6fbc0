"""Select what the command line shows of errors and warnings.

Messages of other libraries may quote records, so they are not shown.
"""

import dis
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType, TracebackType

from skdp.privacy.errors import printable

PACKAGE = Path(__file__).parents[1]
HIDDEN = "--debug shows the message, which may quote records"


def of_error(error: BaseException) -> str:
    """Return the message of an error of skdp or of the operating system; of any other error, its type and place.

    Parameters
    ----------
    error : Exception
        An error that was caught.

    Returns
    -------
    str
        One line.
    """
    frames = list(_frames(error.__traceback__))
    if frames and _is_raised_here(frames[-1]):
        return printable(error)
    if isinstance(error, OSError) and error.strerror:
        return printable(error.strerror if error.filename is None else f"{error.strerror}: {error.filename}")
    ours = [place.tb_frame.f_code.co_name for place in frames if _is_ours(place.tb_frame.f_code)]
    return f"{type(error).__name__} in {ours[-1] if ours else 'another library'}; is a file damaged? ({HIDDEN})"


def of_warning(message: Warning | str, category: type[Warning]) -> str:
    """Return the message of a warning of skdp; of any other warning, its type.

    Parameters
    ----------
    message, category : Warning, type
        Arguments of `warnings.showwarning`, which calls this function.

    Returns
    -------
    str
        One line.
    """
    frame: FrameType | None = sys._getframe()
    while frame is not None and not _is_module(frame, "warnings"):
        frame = frame.f_back
    while frame is not None and _is_module(frame, "warnings"):
        frame = frame.f_back
    ours = frame is not None and _is_ours(frame.f_code)
    return printable(message) if ours else f"{category.__name__} ({HIDDEN})"


def _frames(place: TracebackType | None) -> Iterator[TracebackType]:
    while place is not None:
        yield place
        place = place.tb_next


def _is_raised_here(place: TracebackType) -> bool:
    """Return whether an error comes from a ``raise`` statement of this package, not from a call that failed."""
    code = place.tb_frame.f_code
    return _is_ours(code) and dis.opname[code.co_code[place.tb_lasti]] == "RAISE_VARARGS"


def _is_ours(code: CodeType) -> bool:
    return PACKAGE in Path(code.co_filename).parents


def _is_module(frame: FrameType, name: str) -> bool:
    return frame.f_globals.get("__name__", "").removeprefix("_py_") == name
