"""Plan, report, charge and run the releases of a statistic.

A function of this package is added in five steps:

1. Read: ``with reading(x, (column,), persons=persons, ...) as table:``; ``table.facts`` is public, and ``table.rows`` is for the
   oracle alone. All errors about the input come from here, or before.
2. Plan: ``budget = budget_of(table, epsilon, delta, adjacency)``, and a `StatisticsPlan`: by ``StatisticsPlan.of_queries``, from
   queries and the shares of their releases, or with a schedule of its own (``StatisticsPlan(statement, schedule=..., budget=...,
   n_samples=..., scale=calibrate(schedule, budget))``). A query that follows from earlier releases has a prototype of the same
   type, clip norm and size. ``plan.stds`` has the noise of each release.
3. Run: ``found, report = plan.run(table, lambda ask: ..., random_state)`` warns of low signal, charges the ledgers, makes the
   releases by ``ask(query)`` and checks that all of them were made. Nothing after it may fail, warn or be nan because of a record
   or of noise.
4. Return a `Statistic`, whose interval covers noise and sampling.
5. Add the name to ``__init__.py``, to `FUNCTIONS` of tests/stats/test_statistics.py (which tests all functions alike), and to the
   guide.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from skdp._validation import check_level, check_random_state, shown
from skdp.privacy.budget import Budget
from skdp.privacy.errors import LowSignalWarning, told_when_interrupted, warn
from skdp.privacy.ledger.charging import pay, tokens_along
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.queries import Query
from skdp.privacy.release_plan import ReleasePlan
from skdp.privacy.report.statement import OTHER_FITS, PrivacyReport, assumed_of
from skdp.stats._reading import Reading, reading

Ask = Callable[[Query], np.ndarray]
Found = TypeVar("Found")


@dataclass(frozen=True)
class Statement:
    """Hold what a report says of a statistic, beside its releases.

    Parameters
    ----------
    function : str
        Name of the function, such as "mean".
    title, reason : str
        What is released, and why in this way.
    parameters : dict
        Public parameters of the function, as text.
    noise_size : str
        The noise in words, in the unit of the statistic.
    hidden : str or None, default=None
        What noise is likely to hide, as the end of a sentence, from public facts; None if the signal is enough.
    assumptions : tuple of str, default=()
        What the guarantee assumes beside the usual.
    public : dict, default={}
        Further public facts.
    """

    function: str
    title: str
    reason: str
    parameters: Mapping[str, str]
    noise_size: str = ""
    hidden: str | None = None
    assumptions: tuple[str, ...] = ()
    public: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StatisticsPlan(ReleasePlan):
    """Hold the releases of a statistic, from public facts.

    Parameters
    ----------
    statement : Statement
        What the report says.
    """

    statement: Statement

    def report(self, table: Reading | None = None, noise: NoiseSource | None = None) -> PrivacyReport:
        """Return the report; it is that of a plan without a source of noise."""
        stated, partitions = self.statement, None if table is None else table.partitions
        return self.cost.report(
            stated.function,
            planned=noise is None,
            reproducible_noise=noise is not None and not noise.secure,
            solver=stated.function,
            solver_title=stated.title,
            solver_reason=stated.reason,
            noise_size=stated.noise_size,
            public={
                self.budget.number: self.n_samples,
                **({} if partitions is None else partitions.stated(self.schedule.passes)),
                **stated.public,
                "parameters": dict(stated.parameters),
                "n_releases": len(self.schedule),
                "passes": self.schedule.passes,
            },
            assumptions=(
                *(() if table is None else table.facts.assumptions),
                *stated.assumptions,
                OTHER_FITS,
                *assumed_of(self.budget.unit),
                *([] if partitions is None else [partitions.trusted]),
            ),
        )

    def run(self, table: Reading, release: Callable[[Ask], Found], random_state: Any = None) -> tuple[Found, PrivacyReport]:
        """Warn of low signal, charge the active ledgers, make the releases, and return what was found with the report.

        Parameters
        ----------
        table : Reading
            The records.
        release : callable
            Asks for all releases in turn, and returns what follows from the answers.
        random_state : int, Generator, RandomState or None, default=None
            Seed of the noise in tests.

        Returns
        -------
        tuple
            What ``release`` returned, and the report.
        """
        self.rounding_allowances  # noqa: B018 - raises an error for noise that random bits cannot resolve
        if self.statement.hidden is not None:
            warn(
                f"Noise is likely to hide {self.statement.hidden} at epsilon={self.budget.epsilon:g} and "
                f"{self.budget.number}={self.n_samples}, and the budget is spent all the same. Use more records, narrower bounds "
                "from public knowledge, or a larger epsilon.",
                LowSignalWarning,
            )
        noise = NoiseSource(random_state)
        report = self.report(table, noise)
        pay(self.cost.spending(report.estimator, report.public["parameters"], noise), tokens_along())
        oracle = self.oracle(table.rows, noise)
        with told_when_interrupted():
            found = release(oracle.ask)
            oracle.finish()
        return found, report


def budget_of(table: Reading, epsilon: Any, delta: Any, adjacency: Any) -> Budget:
    """Check the privacy parameters of a statistic; ``delta=None`` means ``max(1 / n_samples**2, 1e-11)``, 0 pure epsilon."""
    return Budget.from_parameters(epsilon, delta, adjacency, table.n_samples, table.unit)


@contextmanager
def column_of(
    x: Any,
    random_state: Any,
    *,
    epsilon: float,
    delta: float | None = 0.0,
    column: str | tuple[str, ...] | None = None,
    adjacency: str = "replace_one",
    confidence: float = 0.95,
    several: bool = False,
    **given: Any,
) -> Iterator[tuple[Reading, Budget, float]]:
    """Read the columns of a statistic, by default a pure one, and check the parameters that all have.

    Parameters
    ----------
    x : array-like, Series, DataFrame, or table in partitions
        A column, or a table.
    random_state : object
        Seed of the noise in tests.
    epsilon, delta : float
        Budget; ``delta=None`` for the default of `budget_of`.
    column : str, tuple of str or None, default=None
        Columns of a table.
    adjacency : str, default="replace_one"
        Which tables are neighbours.
    confidence : float, default=0.95
        Coverage of intervals.
    several : bool, default=False
        Whether there may be more than one column.
    **given : Any
        Further parameters of `reading`.

    Yields
    ------
    tuple of (Reading, Budget, float)
        What is public, and the cells; the budget; the coverage.
    """
    check_level(confidence, "confidence")
    check_random_state(random_state)
    columns = (column,) if isinstance(column, str) else column
    named = isinstance(columns, (tuple, list)) and len(columns) > 0 and all(isinstance(name, str) for name in columns)
    if columns is not None and not named:
        expected = "the name of a column, or several names" if several else "the name of a column"
        raise TypeError(f"column={shown(column)}; expected {expected}, or None for all of x.")
    if len({*(columns or ())}) < len(columns or ()):
        raise ValueError(f"column={shown(columns)} has a name twice; expected different columns.")
    with reading(x, None if columns is None else tuple(columns), **given) as table:
        del x, given
        if len(table.names) > 1 and not several:
            raise ValueError(f"x has {len(table.names)} columns; expected a single one, or column with the name of one of them.")
        yield table, budget_of(table, epsilon, delta, adjacency), float(confidence)


def as_text(parameters: Mapping[str, Any]) -> dict[str, str]:
    """Return public parameters as text for reports and ledgers."""
    return {name: shown(value) for name, value in parameters.items()}
