"""The slot for what is public about one kind of fit alone."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from skdp.privacy.schedule import Release, Schedule

__all__ = ["NOTHING", "Particular"]

P = TypeVar("P", bound="Particular")


class Holder(Protocol):
    """Whatever has the slot: `Facts`, `Problem` and `SolverResult`."""

    @property
    def particular(self) -> "Particular":
        """The slot."""
        ...


@dataclass(frozen=True, kw_only=True)
class Particular:
    """Public facts of one kind of fit. An estimator that has such facts derives a class; other fits have this one in the slot.

    `Facts`, `Problem` and `SolverResult` each have a field ``particular``: what an estimator reads reaches its plan, and what it
    releases beside the solver reaches its model. The code that all estimators share asks for nothing but what this class has.

    Parameters
    ----------
    front : Release or None, default=None
        The release that the estimator asks for before the solver starts.
    back : Schedule or None, default=None
        Releases that the estimator asks for after the solver has ended; their weights say how they divide their budget.
    share : float, default=1.0
        Part of the squared Gaussian-DP parameter that ``front`` and ``back`` leave for the solver.
    blocks : tuple of slice, default=()
        Places of the indicators of each category, where they are those of all its levels but one.
    """

    front: Release | None = None
    back: Schedule | None = None
    share: float = 1.0
    blocks: tuple[slice, ...] = ()

    @property
    def n_columns(self) -> int | None:
        """Number of columns of the table as the estimator was given it; None where rows behind the oracle have as many."""
        return None

    @property
    def alike(self) -> float:
        """How many times more noise hides coefficients than for features in general, because features are alike by design."""
        return 1.0

    @classmethod
    def of(cls: type[P], holder: Holder) -> P:
        """Return the slot of a holder where it is of this class, and the defaults of this class where it is not."""
        found = holder.particular
        return found if isinstance(found, cls) else cls()

    def resized(self, n_samples: int) -> "Particular":
        """Return the facts of such a fit to another number of records, as a plan without a table has them."""
        return NOTHING


NOTHING = Particular()
