"""The hashes over a ledger's file: they catch accidents, and with a key also changes by anyone who does not hold it."""

import hashlib
import hmac
import os

__all__ = ["SHORTEST_KEY", "VARIABLE", "Chain", "key_bytes"]

VARIABLE = "SKDP_LEDGER_KEY"  # environment variable that holds the key, where none is given
SHORTEST_KEY = 16  # bytes: 128 bits, if they are random


class Chain:
    """Hash of every entry and of all before it: SHA-256, or HMAC-SHA-256 with a key.

    Parameters
    ----------
    key : bytes or None
        From `key_bytes`.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    def link(self, head: str, content: str) -> str:
        """Return the hash of an entry on top of the hash of all before it.

        Parameters
        ----------
        head : str
            Hash of all before; empty at the start.
        content : str
            The entry.

        Returns
        -------
        str
            Hexadecimal.
        """
        return self._hashed(f"{head}\n{content}")

    def seal(self, head: str) -> str:
        """Return what stands beside the facts for the last hash of the chain.

        Without a key it is that hash. With a key it is one more HMAC, because the hashes of earlier entries stand in the file and
        each would pass for the last one after a deletion.

        Parameters
        ----------
        head : str
            The last hash.

        Returns
        -------
        str
            Hexadecimal.
        """
        return head if self._key is None else self._hashed(f"head\n{head}")

    def fingerprint(self, identity: str) -> str | None:
        """Return what tells the right key from a wrong one, and nothing else about it.

        Parameters
        ----------
        identity : str
            Of the ledger.

        Returns
        -------
        str or None
            Hexadecimal; None without a key.
        """
        return None if self._key is None else self._hashed(f"key\n{identity}")

    def found_by_workers(self) -> bool:
        """Return whether a process that has our environment can go on with the chain.

        Returns
        -------
        bool
            True without a key, or if the environment variable holds it.
        """
        return self._key == key_bytes(None)

    def _hashed(self, text: str) -> str:
        if self._key is None:
            return hashlib.sha256(text.encode()).hexdigest()
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def key_bytes(key: object) -> bytes | None:
    """Return a key as bytes, by default from the environment; messages never quote it.

    Parameters
    ----------
    key : bytes, str or None
        As given.

    Returns
    -------
    bytes or None
        None where none is given and the environment variable is not set.
    """
    name = "key"
    if key is None:
        name, key = VARIABLE, os.environ.get(VARIABLE)
    if key is None:
        return None
    if not isinstance(key, (str, bytes)):
        raise TypeError(f"{name} is of type {type(key).__name__}; expected bytes, str or None.")
    content = key.encode("utf-8", "surrogateescape") if isinstance(key, str) else key
    if len(content) < SHORTEST_KEY:
        raise ValueError(f"{name} has {len(content)} bytes; expected at least {SHORTEST_KEY}: secrets.token_hex() makes a key.")
    return content
