"""Hash the entries of a ledger: find accidental damage, and with a key also changes by anyone without the key."""

import hashlib
import hmac
import os

# Environment variable that holds the key if none is passed.
VARIABLE = "SKDP_LEDGER_KEY"

# Smallest length of a key, in bytes. A choice: 128 bits if they are random. Shorter keys could be guessed.
SHORTEST_KEY = 16


class Chain:
    """Hash every entry together with all before it: by SHA-256, or by HMAC-SHA-256 with a key.

    Parameters
    ----------
    key : bytes or None
        Key from `key_bytes`.
    """

    def __init__(self, key: bytes | None) -> None:
        self._key = key

    def link(self, head: str, content: str) -> str:
        """Return the hash of an entry and of the hash of all entries before it.

        Parameters
        ----------
        head : str
            Hash of all entries before it; empty at the start.
        content : str
            The entry.

        Returns
        -------
        str
            Hexadecimal hash.
        """
        return self._hashed(f"{head}\n{content}")

    def seal(self, head: str) -> str:
        """Return the value that the file stores beside the facts to authenticate the last hash of the chain.

        Without a key it is that hash. With a key it is one more HMAC of it: the file contains the hashes of earlier entries, and
        after a deletion each of them would pass for the last one.

        Parameters
        ----------
        head : str
            The last hash.

        Returns
        -------
        str
            Hexadecimal hash.
        """
        return head if self._key is None else self._hashed(f"head\n{head}")

    def fingerprint(self, identity: str) -> str | None:
        """Return a hash that tells the right key from a wrong one and reveals nothing else about the key.

        Parameters
        ----------
        identity : str
            Identity of the ledger.

        Returns
        -------
        str or None
            Hexadecimal hash; None without a key.
        """
        return None if self._key is None else self._hashed(f"key\n{identity}")

    def found_by_workers(self) -> bool:
        """Return whether a process with the same environment can continue the chain.

        Returns
        -------
        bool
            True without a key, or if the environment variable holds the key.
        """
        return self._key == key_bytes(None)

    def _hashed(self, text: str) -> str:
        if self._key is None:
            return hashlib.sha256(text.encode()).hexdigest()
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()


def key_bytes(key: object) -> bytes | None:
    """Return a key as bytes, by default from the environment; error messages never quote it.

    Parameters
    ----------
    key : bytes, str or None
        Key as the user passed it.

    Returns
    -------
    bytes or None
        The key; None if none is passed and the environment variable is not set.
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
        raise ValueError(
            f"{name} has {len(content)} bytes; expected at least {SHORTEST_KEY}, such as a key from secrets.token_hex()."
        )
    return content
