"""Files that are written as a whole or not at all, and never over a file that is read."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from skdp._files._suffixes import check_suffix, imported

__all__ = ["ROOM", "Output", "check_outputs", "write_whole"]

# Bytes that a fit reserves on the disk for a model and for a report before it is charged; larger ones may still fail.
ROOM = 2**20


def check_outputs(
    outputs: Sequence[tuple[Path | None, tuple[str, ...]]], inputs: Sequence[Path | None] = (), *, overwrite: bool = True
) -> None:
    """Raise unless each output can be written, has an allowed suffix, and is neither an input nor another output.

    Parameters
    ----------
    outputs : sequence of (Path or None, tuple of str)
        Where to write, and the allowed ends of the name.
    inputs : sequence of Path or None
        What is read.
    overwrite : bool, default=True
        Whether the outputs may exist.

    Raises
    ------
    ImportError, ValueError
        If an output cannot be written.
    """
    taken = [(path, "read") for path in inputs if path is not None]
    for path, suffixes in outputs:
        if path is None:
            continue
        check_suffix("The output", path, suffixes)
        if uses := [use for other, use in taken if _same(path, other)]:
            raise ValueError(f"{path} is {uses[0]}, too; expected another name for the output.")
        if not overwrite and os.path.lexists(path):
            raise ValueError(f"{path} exists already; expected another name, so that nothing is lost.")
        if (path.exists() and not path.is_file()) or not _writable(path):
            raise ValueError(f"{path} cannot be written; expected a file in a directory that exists.")
        if path.suffix == ".skops":
            imported("skops.io")
        taken.append((path, "written"))


class Output:
    """A file that gets its name when it is complete; leaving the context before that leaves nothing behind.

    It has the permissions of the file that it replaces.

    Parameters
    ----------
    path : Path
        Where to write.
    room : int, default=0
        Bytes to reserve on the disk from the start.

    Raises
    ------
    OSError
        If nothing can be written there, or there is no room.
    """

    def __init__(self, path: Path, room: int = 0) -> None:
        self.path = path.resolve()  # a symbolic link stays one
        self._part = self.path.with_name(f".skdp-{secrets.token_hex(8)}")
        self._file = open(self._part, "xb")
        try:
            with contextlib.suppress(OSError):  # nothing is there, or nobody's permissions can be changed
                shutil.copymode(self.path, self._part)
            self._file.write(bytes(room))
            self._sync()
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()

    def write(self, content: bytes) -> None:
        """Write everything, and give the file its name.

        Parameters
        ----------
        content : bytes
            All of the file.
        """
        self._file.seek(0)
        self._file.write(content)
        self._file.truncate()
        self._sync()
        self._file.close()
        os.replace(self._part, self.path)
        with contextlib.suppress(OSError):  # the name survives a power failure, where directories can be synchronised
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def discard(self) -> None:
        """Leave nothing behind, unless the file has its name already."""
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as a whole, or leave what is there."""
    with Output(path) as output:
        output.write(content)


def _same(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file: also by hard and symbolic links, and before it is made."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one.resolve() == other.resolve()


def _writable(path: Path) -> bool:
    """Whether the directory takes new files, and an old one may be replaced."""
    path = path.resolve()
    return os.access(path.parent, os.W_OK) and (not path.exists() or os.access(path, os.W_OK))
