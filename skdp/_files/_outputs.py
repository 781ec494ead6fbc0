"""Write files completely or not at all, and never over an input."""

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from skdp._files._suffixes import check_suffix, imported

# Bytes that a fit reserves on the disk for a model and for a report before it is charged. Larger files may still fail to be
# written.
ROOM = 2**20


def check_outputs(
    outputs: Sequence[tuple[Path | None, tuple[str, ...]]], inputs: Sequence[Path | None] = (), *, overwrite: bool = True
) -> None:
    """Raise an error unless each output can be written, has an allowed suffix, and is neither an input nor another output.

    Parameters
    ----------
    outputs : sequence of (Path or None, tuple of str)
        Where to write, and the allowed suffixes.
    inputs : sequence of Path or None
        Files that are read.
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
            raise ValueError(f"{path} is also {uses[0]}; expected another name for the output.")
        if not overwrite and os.path.lexists(path):
            raise ValueError(f"{path} exists already; expected another name, so that nothing is lost.")
        place = path.resolve()
        writable = os.access(place.parent, os.W_OK) and (not place.exists() or os.access(place, os.W_OK))
        if (path.exists() and not path.is_file()) or not writable:
            raise ValueError(f"{path} cannot be written; expected a file in a directory that exists.")
        if path.suffix == ".skops":
            imported("skops.io")
        taken.append((path, "written"))


class Output:
    """Write a file that gets its name when it is complete; if the context ends before that, no file remains.

    The file has the permissions of the file that it replaces.

    Parameters
    ----------
    path : Path
        Where to write.
    room : int, default=0
        Bytes to reserve on the disk from the start.

    Attributes
    ----------
    file : binary file
        Where a file is written piece by piece, before `complete`.

    Raises
    ------
    OSError
        If the file cannot be written, or there is no room.
    """

    def __init__(self, path: Path, room: int = 0) -> None:
        self.path = path.resolve()  # writes to the target of a symbolic link, and keeps the link
        self._part = self.path.with_name(f".skdp-{secrets.token_hex(8)}")
        self.file = open(self._part, "xb")
        try:
            with contextlib.suppress(OSError):  # there is no such file, or the file system has no permissions
                shutil.copymode(self.path, self._part)
            self.file.write(bytes(room))
            self._sync()
        except BaseException:
            self.discard()
            raise

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()

    def write(self, content: bytes) -> None:
        """Write the content, and give the file its name.

        Parameters
        ----------
        content : bytes
            The whole content of the file.
        """
        self.file.seek(0)
        self.file.write(content)
        self.complete()

    def complete(self) -> None:
        """Give the file its name; it ends where the last piece ended."""
        self.file.truncate()
        self._sync()
        self.file.close()
        os.replace(self._part, self.path)
        with contextlib.suppress(OSError):  # so that the name survives a power failure; not all systems support it
            directory = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)

    def discard(self) -> None:
        """Remove the file, unless it already has its name."""
        with contextlib.suppress(OSError):
            self.file.close()
        with contextlib.suppress(OSError):
            self._part.unlink(missing_ok=True)

    def _sync(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())


@contextlib.contextmanager
def whole_folder(path: Path) -> Iterator[Path]:
    """Make a folder that gets its name when the context ends without an error; otherwise nothing remains.

    Parameters
    ----------
    path : Path
        Where to write; there must be nothing.

    Yields
    ------
    Path
        The folder to write to.
    """
    part = path.resolve().with_name(f".skdp-{secrets.token_hex(8)}")
    part.mkdir()
    try:
        yield part
        os.rename(part, path.resolve())
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise


def write_whole(path: Path, content: bytes) -> None:
    """Write a file completely, or leave the existing file unchanged."""
    with Output(path) as output:
        output.write(content)


def _same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, including hard and symbolic links and files that do not exist yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return one.resolve() == other.resolve()
