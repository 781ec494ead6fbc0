"""Draw Poisson samples chunk by chunk, as functions of a secret key and of the number of the chunk, and secret orders."""

import hashlib
import math

import numpy as np


def sample_of(key: bytes, chunk: int, n_rows: int, rate: float) -> np.ndarray:
    """Return the rows of a chunk that enter the Poisson sample of a key: each enters independently with the same probability.

    A record enters if its random 53-bit integer is below ``floor(rate * 2**53)``. Its first 8 bits nearly always decide, so the
    other 45 are computed only if they are needed. All bits are those of SHAKE-256, at ``key | chunk | 0`` for the first bits and
    at ``key | chunk | 1`` for the others. Key and chunk have a fixed length, so two chunks, or two keys, never share an input.

    *Proof of the probability.* Let the bits be uniform and independent, and ``floor(rate * 2**53) = first * 2**45 + rest``. A
    record enters if its first byte is below ``first``, or if it is ``first`` and the next 45 bits are below ``rest``. The
    probability is ``first / 2**8 + 2**-8 * rest / 2**45``, which is the rate rounded down to a multiple of 2**-53. Which records
    need more bits depends on the first bits alone, so the others are uniform given them, and no two records share a bit. For a
    secret uniform key, the bits of SHAKE-256 can be told apart from uniform ones only by whoever breaks it. The guarantee makes
    an assumption of the same kind on the generator of the operating system, which draws the key.

    Parameters
    ----------
    key : bytes
        32 random bytes, drawn for one release and used for no other.
    chunk : int
        Number of the chunk in the whole table.
    n_rows : int
        Number of records, or of persons, of the chunk.
    rate : float
        Probability in (0, 1], rounded down to a multiple of 2**-53.

    Returns
    -------
    ndarray of int
        Sorted numbers within the chunk; the same for every call with the same arguments.
    """
    if rate == 1:
        return np.arange(n_rows)
    first, rest = divmod(math.floor(rate * 2**53), 2**45)
    words = np.frombuffer(_stream(key, chunk, 0, n_rows), dtype=np.uint8)
    likely = np.flatnonzero(words <= first)
    undecided = np.flatnonzero(words[likely] == first)
    more = np.frombuffer(_stream(key, chunk, 1, 8 * undecided.size), dtype="<u8").astype(np.uint64, copy=False)
    enters = np.ones(likely.size, dtype=bool)
    enters[undecided] = more >> np.uint64(19) < rest
    return likely[enters]


def order_of(key: bytes, n_persons: int) -> np.ndarray:
    """Return the secret order of persons of a key: each order has the same probability.

    Persons are numbered in the order of their ids, so that another id of one of them would move the numbers of others. A
    single pass draws numbers in public, and must not depend on that. Here persons are sorted by 256 bits of SHAKE-256 each.
    Unless two are equal, which has a probability below ``n_persons**2 * 2**-257``, all orders are equally likely.

    Parameters
    ----------
    key : bytes
        32 random bytes, drawn for one fit and used for nothing else.
    n_persons : int
        Number of persons.

    Returns
    -------
    ndarray of int of shape (n_persons,)
        A permutation of their numbers.
    """
    words = np.frombuffer(_stream(key, 0, 0, 32 * n_persons), dtype="<u8")
    return np.lexsort(words.reshape(4, n_persons))


def _stream(key: bytes, chunk: int, part: int, size: int) -> bytes:
    """Return the first bytes of one of the streams of a chunk."""
    return hashlib.shake_256(key + chunk.to_bytes(8, "little") + bytes([part])).digest(size)
