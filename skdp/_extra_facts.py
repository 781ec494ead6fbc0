"""Define the extra public facts that only one kind of estimator has."""

from dataclasses import dataclass
from typing import Protocol, TypeVar

from skdp.privacy.schedule import Release, Schedule

P = TypeVar("P", bound="ExtraFacts")


class Holder(Protocol):
    """Object with a field ``extra``: `Facts`, `Problem` and `SolverResult`."""

    @property
    def extra(self) -> "ExtraFacts":
        """The extra facts."""
        ...


@dataclass(frozen=True, kw_only=True)
class ExtraFacts:
    """Hold extra public facts of one kind of fit. An estimator that has such facts derives a class; other fits have this one.

    `Facts`, `Problem` and `SolverResult` each have a field ``extra``: what an estimator reads reaches its plan, and what it
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
    def of_front(self) -> float:
        """Part of the squared Gaussian-DP parameter that ``front`` gets."""
        return 0.0 if self.front is None else 1 - self.share

    @property
    def n_columns(self) -> int | None:
        """Number of columns of the table as the estimator was given it; None where rows behind the oracle have as many."""
        return None

    @property
    def correlation_factor(self) -> float:
        """Factor by which correlated features raise the noise level above which coefficients cannot be identified."""
        return 1.0

    @classmethod
    def of(cls: type[P], holder: Holder) -> P:
        """Return the extra facts of a holder if they are of this class, and the defaults of this class otherwise."""
        found = holder.extra
        return found if isinstance(found, cls) else cls()

    def resized(self, n_samples: int) -> "ExtraFacts":
        """Return the facts of such a fit to another number of records, as a plan without a table has them."""
        return NO_EXTRA


NO_EXTRA = ExtraFacts()
