"""Keep the entries of a ledger in a store: a chain of hashes over all of them, the key, and what this process has seen."""

import hmac
import json
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from skdp.privacy.errors import LedgerError
from skdp.privacy.ledger._chain import VARIABLE, Chain
from skdp.privacy.ledger._postgres import Study, is_url
from skdp.privacy.ledger._sqlite import File, temporary_file
from skdp.privacy.ledger._store import Content, Store, damaged

FORMAT = "skdp-ledger-1"  # version of the format of facts and entries; those of another version are refused
# In place of the head: one of these, the new address, the name of the move, and a hash. The first stands at the new place until
# the second stands at the old one.
MOVING, MOVED = "moving to ", "moved to "

_seen: dict[str, tuple[int, str]] = {}  # by identity of the ledger: number of entries and last hash that this process has seen
_lock = threading.Lock()


def store_at(address: str | Path | None, study: str | None = None, owner: object = None) -> Store:
    """Return the store at an address: a study on a server, or a file; None takes a temporary file, deleted with its owner."""
    if is_url(address):
        return Study(str(address), study)
    if study is not None:
        raise ValueError(f"study={study!r}; expected a study only with the address of a server, not with a file.")
    return File(temporary_file(owner) if address is None else address)


class Book:
    """Read and append the entries of a ledger that exists.

    Every entry has a hash of itself and of all entries before it, and the last hash is stored beside the facts. So an entry that
    was changed, lost or half written is detected. Without a key everybody can compute these hashes: they detect accidents, not
    manipulation. With a key only its holders can compute them. Only a process that has seen later entries detects that the whole
    ledger was replaced by an older copy.

    Parameters
    ----------
    store : Store
        Where the ledger is.
    chain : Chain
        Hashes of the entries.
    leaving : bool, default=False
        Whether the ledger may have moved elsewhere.

    Raises
    ------
    LedgerError
        If there is no ledger, or it is damaged, or has another key.
    """

    def __init__(self, store: Store, chain: Chain, leaving: bool = False) -> None:
        self.store, self.chain, self._leaving = store, chain, leaving
        seen = _seen_so_far()
        with store.transaction(writing=False) as transaction:
            content = transaction.read()
        self.facts = self._facts(content)
        store.temporary = self.facts["temporary"]
        self._check_key()
        self._hashes(content, seen)

    @staticmethod
    def create(store: Store, facts: dict[str, Any], chain: Chain) -> None:
        """Write a new ledger, completely or not at all; an existing one is not changed.

        Parameters
        ----------
        store : Store
            Where to write.
        facts : dict
            Facts that never change.
        chain : Chain
            Hashes of the entries.
        """
        fingerprint = chain.fingerprint(facts["identity"])
        text = _text({"format": FORMAT, **facts, **({"key": fingerprint} if fingerprint else {})})
        store.create(Content(text, chain.seal(chain.link("", text)), []))

    @classmethod
    def move(cls, source: Store, target: Store, chain: Chain) -> None:
        """Write a ledger with its chain to another store, after which the first one refuses charges.

        The copy names this move, and refuses charges until the source, while nobody can charge it, names the same move. If this
        is interrupted, the ledger is at one place, or at none until the same move is repeated; never at two, even if the address
        of the target leads elsewhere by then.

        Parameters
        ----------
        source, target : Store
            Where the ledger is, and a place that has none.
        chain : Chain
            Hashes of the entries.

        Raises
        ------
        LedgerError
            If there is a ledger at the new place, or none at the old one, or if it was charged after an interrupted move.
        """
        words = cls._arriving(target)
        book, seen = cls(source, chain, leaving=words is not None), _seen_so_far()
        with source.transaction(writing=True) as leaving:
            content = leaving.read()
            last = book._hashes(content, seen)[-1]
            words = words or f"{target.address}\nfrom {source.address}, {uuid.uuid4().hex}"
            moved, moving = (_sealed(chain, last, word + words) for word in (MOVED, MOVING))
            if _same(content.head, chain.seal(last)):
                leaving.retire(moved)
            elif not _same(content.head, moved):
                raise _gone(source, content.head)
            copy = content._replace(head=moving)
            target.create(copy)
            with target.transaction(writing=False) as reading:
                if reading.read() != copy:
                    raise LedgerError(
                        f"The ledger {source.name!r} did not move: at {target.name!r} is what an earlier move left, or another "
                        "ledger; expected another place to move to."
                    )
        with target.transaction(writing=True) as arriving:
            if arriving.read() == copy:
                arriving.retire(chain.seal(last))

    @staticmethod
    def _arriving(target: Store) -> str | None:
        """Return by which words a move to a store began that did not end; None if nothing is there."""
        if not target.exists():
            return None
        with target.transaction(writing=False) as reading:
            words = _words(reading.read().head)
        if not words.startswith(MOVING):
            raise LedgerError(f"There is a ledger {target.name!r} already; expected another place to move to.")
        return words.removeprefix(MOVING)

    def entries(self) -> list[str]:
        """Check the chain and return all entries.

        Returns
        -------
        list of str
            Entries as JSON, in order.

        Raises
        ------
        LedgerError
            If an entry was changed, lost or half written, or if the whole ledger was replaced, for example by an older copy.
        """
        seen = _seen_so_far()
        with self.store.transaction(writing=False) as transaction:
            content = transaction.read()
        self._hashes(content, seen)
        return [entry for _, entry, _ in content.rows]

    def append(self, following: Callable[[list[str], str, str], str]) -> None:
        """Append an entry, which no other writer comes between.

        Parameters
        ----------
        following : callable
            Takes all entries as JSON, the time and the name of the user; returns the next entry as JSON, or raises an error.
        """
        with self.store.transaction(writing=True) as transaction:
            content = transaction.read()
            hashes = self._hashes(content, _seen_so_far())  # nobody appends until the end
            entry = following([entry for _, entry, _ in content.rows], *transaction.stamp())
            last = self.chain.link(hashes[-1], entry)
            transaction.append((len(hashes), entry, last), self.chain.seal(last))
        self._remember(len(hashes), last)

    def _facts(self, content: Content) -> dict[str, Any]:
        try:
            facts = json.loads(content.facts)
        except (TypeError, ValueError):
            raise damaged(self.store.address) from None
        if not isinstance(facts, dict) or facts.get("format") != FORMAT or "identity" not in facts:
            raise damaged(self.store.address)
        return facts

    def _hashes(self, content: Content, seen: dict[str, tuple[int, str]]) -> list[str]:
        """Return the hash of the facts and that of each row, which are right, and no fewer than were seen before reading."""
        facts = self._facts(content)
        if facts["identity"] != self.facts["identity"]:
            raise LedgerError(
                f"The ledger {self.store.address!r} was replaced by another one while it was in use. Nothing was charged."
            )
        hashes = [self.chain.link("", _text(facts))]
        for expected, (number, entry, chain) in enumerate(content.rows, start=1):
            hashes.append(self.chain.link(hashes[-1], entry))
            if number != expected or not _same(chain, hashes[-1]):
                raise damaged(self.store.address)
        if not _same(content.head, self.chain.seal(hashes[-1])):
            self._check_move(content.head, hashes[-1])
        self._compare_with_seen(hashes, seen)
        return hashes

    def _check_move(self, head: object, last: str) -> None:
        """Refuse a ledger that moved elsewhere, or did not completely move here, or whose head is wrong."""
        words = _words(head)
        if not words.startswith((MOVING, MOVED)) or not _same(head, _sealed(self.chain, last, words)):
            raise damaged(self.store.address)
        if words.startswith(MOVING):
            raise LedgerError(
                f"The ledger {self.store.address!r} did not move here completely, {words.partition(chr(10))[2]}; repeat the "
                "move. Nothing was charged."
            )
        if not self._leaving:
            raise _gone(self.store, head)

    def _compare_with_seen(self, hashes: list[str], seen: dict[str, tuple[int, str]]) -> None:
        number, head = seen.get(self.facts["identity"], (0, hashes[0]))
        if len(hashes) <= number or not _same(hashes[number], head):
            raise LedgerError(
                f"The ledger {self.store.address!r} lacks charges that this process has seen: it is an older copy, or one with "
                "charges of its own. Use the one that holds all charges. Nothing was charged."
            )
        self._remember(len(hashes) - 1, hashes[-1])

    def _remember(self, number: int, head: str) -> None:
        """Remember how many entries the ledger has, so that one with fewer entries is refused."""
        with _lock:
            if number >= _seen.get(self.facts["identity"], (0, ""))[0]:
                _seen[self.facts["identity"]] = (number, head)

    def _check_key(self) -> None:
        """Refuse a ledger with a key if none is given, one without a key if one is given, and one with another key."""
        known, mine = self.facts.get("key"), self.chain.fingerprint(self.facts["identity"])
        if known == mine:
            return
        expected = f"expected it as key= or in the environment variable {VARIABLE}"
        if mine is None:
            problem = f"was made with a key; {expected}"
        elif known is None:
            problem = (
                f"has no key, but one is given, by key= or the environment variable {VARIABLE}; expected none for this ledger"
            )
        else:
            problem = f"was made with another key; {expected}"
        raise LedgerError(f"The ledger {self.store.address!r} {problem}. Nothing was charged.")


def _seen_so_far() -> dict[str, tuple[int, str]]:
    with _lock:
        return dict(_seen)


def _sealed(chain: Chain, last: str, words: str) -> str:
    """Return words with a hash of them and of all entries; without the key nobody can make it."""
    return f"{words}\n{chain.link(last, words)}"


def _words(head: object) -> str:
    return str(head).rpartition("\n")[0]


def _gone(store: Store, head: object) -> LedgerError:
    return LedgerError(
        f"The ledger {store.address!r} was {_words(head).partition(chr(10))[0]}; use it there. Nothing was charged."
    )


def _same(first: object, second: str) -> bool:
    return isinstance(first, str) and hmac.compare_digest(first.encode(), second.encode())


def _text(content: dict[str, Any]) -> str:
    return json.dumps(content, sort_keys=True, allow_nan=False)
