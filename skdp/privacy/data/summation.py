"""Add up the terms of a table in an order that public facts alone decide, with few additions per term."""

import copy

import numpy as np

# Rows that are read and summed at a time. A matrix product may add them in any order, so each takes part in at most BLOCK
# additions. More rows need more memory per block and a larger allowance for rounding, fewer rows more calls.
BLOCK = 4096
# Largest number of rows of a chunk. A choice: longer chunks add more blocks one after the other, shorter ones make more chunks.
LONGEST = 2**17
# Bytes of a chunk of float64 rows, from 64 columns on. A choice: a chunk is small beside the memory of one machine.
CHUNK_BYTES = 2**26
# Number of chunks, or of nodes of the level below, that a node of the tree adds from left to right. A choice: a larger number
# makes fewer levels with more additions each.
FAN_IN = 16
# Number of levels of the tree that the bound allows for. 16**8 chunks have at least 2**44 rows, more than any table has.
LEVELS = 8
# Largest number of additions in which the term of one record takes part: within its block, over the blocks of its chunk, on all
# levels of the tree, and 8 more if a block is summed in parts. It holds for every number of rows. The noise has an allowance in
# proportion to it.
ADDITIONS = BLOCK + LONGEST // BLOCK + (FAN_IN - 1) * LEVELS + 8


def chunk_rows(n_features: int) -> int:
    """Return the number of rows of a chunk, a public power of two.

    Parameters
    ----------
    n_features : int
        Number of columns of the table as it was given.

    Returns
    -------
    int
        Between 4096 and 2**17; as many as fit into 64 MiB of float64 in between.
    """
    fitting = CHUNK_BYTES // (8 * max(1, n_features))
    return min(LONGEST, max(BLOCK, 1 << (max(1, fitting).bit_length() - 1)))


def summation_error(n_samples: int, by_column: bool) -> float:
    """Return the bound on the float64 error of a sum over the rows, over the largest norm of a term.

    The standard bound for a sum in any order: the number of additions in which a term takes part, times the unit roundoff,
    times the number of terms (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd ed., section 4.2).

    Parameters
    ----------
    n_samples : int
        Number of rows.
    by_column : bool
        Whether columns may be summed whole, as those of CSC are, not by blocks of rows only.

    Returns
    -------
    float
        The bound.
    """
    additions = max(n_samples + 8, ADDITIONS) if by_column else ADDITIONS
    return additions * 2.0**-53 * n_samples


class TreeSum:
    """The sum of terms that come block by block: blocks of a chunk from left to right, chunks by a tree of fan-in 16.

    The order follows from the number of rows and the length of a chunk, which are public. So the sum is the same to the last
    bit whoever works out the chunks, as long as the chunks are the same. A sum may begin at any chunk of a table; `extend` joins
    the sums of neighbouring runs of chunks.

    Parameters
    ----------
    length : int
        Number of rows of a chunk.
    first : int, default=0
        Number of chunks of the table that come before the first one of this sum.
    """

    def __init__(self, length: int, first: int = 0) -> None:
        #  level 1            node                  ..    of 16 nodes of level 0, and so on
        #  level 0     node        node        node ..    of 16 chunks; one open node per level, which closes with its 16th child
        #  chunks    c c .. c    c c .. c    c c    ..    from left to right; a chunk is a sum of blocks
        self._length, self._rows = length, 0
        self._chunk: np.ndarray | None = None
        # per level, from the chunks up: the open node, and which child of its parent comes next
        self._nodes: list[np.ndarray | None] = [None] * LEVELS
        self._places = [-(-first // FAN_IN**level) % FAN_IN for level in range(LEVELS)]
        self._loose: list[tuple[int, np.ndarray]] = []  # nodes, by level, whose parent begins before the first chunk

    def add(self, term: np.ndarray, n_rows: int) -> None:
        """Add the term of some rows, the next ones of the table.

        Parameters
        ----------
        term : ndarray
            Of the same shape each time; kept, and overwritten.
        n_rows : int
            Number of rows that it is the sum of.
        """
        self._chunk = term if self._chunk is None else np.add(self._chunk, term, out=self._chunk)
        self._rows += n_rows
        if self._rows >= self._length:
            self.add_chunk(self._chunk)
            self._chunk, self._rows = None, 0

    def add_chunk(self, term: np.ndarray, level: int = 0) -> None:
        """Add the sum of the next chunk, or of the next node of a level.

        Parameters
        ----------
        term : ndarray
            The sum; kept, and overwritten.
        level : int, default=0
            0 for a chunk.
        """
        node, place = self._nodes[level], self._places[level]
        self._places[level] = (place + 1) % FAN_IN
        if node is None and place:
            # The parent began before this run of chunks: `extend` adds the node to it.
            self._loose.append((level, term))
            return
        node = term if node is None else np.add(node, term, out=node)
        self._nodes[level] = None if place + 1 == FAN_IN else node
        if place + 1 == FAN_IN:
            self.add_chunk(node, level + 1)

    def extend(self, later: "TreeSum") -> None:
        """Add the sum of the chunks that follow, as if they had been added one by one.

        Parameters
        ----------
        later : TreeSum
            A sum over whole chunks that begins where this one ends; not changed.
        """
        for level, term in later._loose:
            self.add_chunk(term.copy(), level)
        for level, node in enumerate(later._nodes):
            if node is not None:
                self._nodes[level], self._places[level] = node.copy(), later._places[level]

    def copy(self) -> "TreeSum":
        """Return the same sum, which shares no array with this one."""
        return copy.deepcopy(self)

    def total(self) -> np.ndarray:
        """Return the sum of all terms of a table, and close the tree.

        Returns
        -------
        ndarray
            Of the shape of a term; at least one must have been added.
        """
        above = self._chunk
        for node in self._nodes:  # an open node ends with what is left of the level below
            above = node if above is None else above if node is None else np.add(node, above, out=node)
        return np.asarray(above)
