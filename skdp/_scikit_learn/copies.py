"""Keep copies, clones and pickles of what spends a budget bound to ledgers, and set the results of a fit all at once."""

from copy import deepcopy
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from skdp._scikit_learn.callers import check_callers
from skdp.privacy.ledger.active import active, carried

__all__ = ["BoundToLedgers"]


class OfFit:
    """Attribute that a fit sets on the object; before, reading it raises NotFittedError."""

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return the descriptor itself for the class; an attribute of the object comes before it."""
        if instance is None:
            return self
        raise NotFittedError(f"This {owner.__name__} instance is not fitted yet. Call 'fit' with appropriate arguments first.")


class BoundToLedgers(BaseEstimator):
    """Base of all that spends a budget; pickles carry the ledgers that are active at that moment, also into worker processes."""

    privacy_report_: Any = OfFit()
    privacy_spent_: Any = OfFit()
    _ledgers: tuple[tuple[str, str], ...] = ()  # tokens of the ledgers that fits of this copy are charged to
    _paid = False  # whether a fit of this very object was charged to them

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles: with the active ledgers, and with its own unless its fit was charged to them."""
        state = {name: value for name, value in super().__getstate__().items() if name not in ("_ledgers", "_paid")}
        bound = dict.fromkeys((*(() if self._paid else self._ledgers), *carried()))
        return {**state, "_ledgers": tuple(bound)} if bound else state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Set the state of a copy; ledgers that are active here are charged anyway and are not kept."""
        paying = {account.token for account in active()}
        bound = tuple(token for token in state.get("_ledgers", ()) if token not in paying)
        state = {name: value for name, value in state.items() if name != "_ledgers"}
        super().__setstate__({**state, "_ledgers": bound} if bound else state)

    def __copy__(self) -> Any:
        """Return a copy with the same bound ledgers: copies stay in the process."""
        return self._rebuilt(self.__getstate__(), object.__new__(type(self)))

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Return a deep copy with the same bound ledgers."""
        memo[id(self)] = copied = object.__new__(type(self))
        return self._rebuilt(deepcopy(self.__getstate__(), memo), copied)

    def _rebuilt(self, state: dict[str, Any], copied: Any) -> Any:
        """Return a copy with this state and the ledgers of this estimator."""
        copied.__setstate__(state)
        if self._ledgers:
            copied._ledgers, copied._paid = tuple(dict.fromkeys((*copied._ledgers, *self._ledgers))), self._paid
        return copied

    def __sklearn_clone__(self) -> Any:
        """Return an unfitted copy; in a worker process it is bound to the ledgers of the original."""
        check_callers(self)
        copied = super().__sklearn_clone__()
        if self._ledgers:
            copied._ledgers = self._ledgers
        return copied

    def _commit(self, attributes: dict[str, Any]) -> None:
        """Replace all fitted attributes at once, so that an interrupted fit leaves the estimator as it was."""
        self.__dict__ = {**vars(self._scratch()), **attributes, **({"_paid": True} if self._ledgers else {})}

    def _scratch(self) -> Any:
        """Return a copy without fitted attributes, which scikit-learn's validation writes to."""
        scratch = object.__new__(type(self))
        given = {name: value for name, value in vars(self).items() if name.startswith("_") or not name.endswith("_")}
        scratch.__dict__ = given  # without what a fit sets, by scikit-learn's rule for its names
        return scratch
