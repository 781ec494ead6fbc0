"""Attack one fit: an adversary who knows all records except the canaries sees every release and the model.

The attack fits an estimator of a derived class. Its `_run` receives the rows of one of the two tables and a solver that records
the releases. Nothing else changes.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import log_softmax
from sklearn.base import clone

from skdp.audit._canary import Canaries
from skdp.estimators._base import DPEstimator
from skdp.estimators._plan import Plan
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.errors import OutsideGuaranteeWarning, TableWarning, WeakPrivacyWarning
from skdp.privacy.noise.source import reproducible_noise
from skdp.privacy.queries import Query, Vertex
from skdp.privacy.schedule import Release, Selection
from skdp.solvers import Ask, Problem, Solver, SolverResult

VIEWS = ("transcript", "final")


class Planned(Exception):
    """Carry the plan out of a fit that ends before its first release."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan


def planned(estimator: DPEstimator, X: Any, y: Any, **given: Any) -> Plan:
    """Return the plan of a fit without making a release.

    Parameters
    ----------
    estimator : DPEstimator
        The estimator, which is not changed.
    X, y : array-like
        Records; invalid records raise the same errors as in ``fit``. A data frame is taken as an array: its columns are
        not learned.
    **given : dict
        Further arguments of ``fit``.

    Returns
    -------
    Plan
        Public facts, solver, schedule and noise.
    """

    def stop(self: Any, plan: Plan, *arguments: Any) -> None:
        raise Planned(plan)

    X = X.to_numpy() if hasattr(X, "columns") and getattr(estimator, "schema", None) is None else X
    try:
        _derived(estimator, stop).fit(X, y, **given)  # which does not warn of noise: an audit does not need an accurate model
    except Planned as end:
        return end.plan
    raise TypeError(f"{type(estimator).__name__} fits without a run through the oracle; expected an estimator that plans one.")


class Attack:
    """Fit one estimator on tables with and without canaries, and score each fit as an adversary.

    Parameters
    ----------
    estimator : DPEstimator
        The estimator; a copy of it is fitted.
    canaries : Canaries
        The two tables.
    views : tuple of str
        What the adversary sees, out of `VIEWS`.
    """

    def __init__(self, estimator: DPEstimator, canaries: Canaries, views: tuple[str, ...]) -> None:
        def run(task: Any, *arguments: Any) -> SolverResult:
            return self._run(partial(estimator._task_class.run, task), *arguments)

        self._model, self._canaries, self._views = _derived(estimator, run), canaries, views
        self._knowledge: Knowledge | None = None
        self._stated: tuple[Any, bool] | None = None  # what the first plan says, and whether its table has the canary

    def scores(self, absent: np.ndarray, seed: int | None) -> np.ndarray:
        """Fit the table in which some canaries are replaced, and score each of them.

        Parameters
        ----------
        absent : ndarray of int
            Indices of the canaries that are replaced.
        seed : int or None
            Seed of the noise; None draws the noise as in a real fit.

        Returns
        -------
        ndarray of shape (n_views, n_canaries)
            Larger scores mean that the canary is more likely in the table.
        """
        self._absent = absent
        with nullcontext() if seed is None else reproducible_noise(seed):
            X, y, given = self._canaries.table(absent)
            self._model.fit(X, y, **given)
        return self._scores

    def _run(self, run: Callable[..., SolverResult], plan: Plan, rows: TrainingData, *rest: Any) -> SolverResult:
        """Call the estimator's own run with the rows of the current table and a solver that records."""
        number = self._canaries.n_rows(self._absent)
        if self._knowledge is None and "transcript" in self._views:
            self._knowledge = Knowledge.of(self._canaries, rows, plan.row_bounds, number)
        adversary = Adversary(plan, self._canaries, self._knowledge)
        absent = self._absent if self._canaries.persons is None else np.arange(number if len(self._absent) else 0)
        table = rows.without(absent) if self._canaries.null else rows
        result = run(replace(plan, solver=Recorder(plan.solver, adversary)), table, *rest)
        self._scores = np.stack([adversary.scores(view, result.coef) for view in self._views]) + self._by_report(plan)
        return result

    def _by_report(self, plan: Plan) -> float:
        """Return what a report says of the canary: infinity, or minus infinity, if it is not that of the other table."""
        told, present = (plan.schedule, plan.scale, plan.problem.budget, plan.problem.n_samples), not len(self._absent)
        if self._stated is None:
            self._stated = told, present
        return 0.0 if self._stated[0] == told or self._stated[1] == present else np.inf if present else -np.inf


class Recorder(Solver):
    """Run a solver, and show all its releases to an adversary.

    Parameters
    ----------
    solver : Solver
        The solver that is run.
    adversary : Adversary
        Receives the queries and the answers.
    """

    def __init__(self, solver: Solver, adversary: "Adversary") -> None:
        self.solver, self.adversary = solver, adversary

    def schedule(self, problem: Problem) -> Any:
        """Return the releases of the solver."""
        return self.solver.schedule(problem)

    def solve(self, problem: Problem, ask: Ask, rng: np.random.Generator) -> SolverResult:
        """Run the solver."""

        def watched(query: Query) -> np.ndarray:
            answer = ask(query)
            self.adversary.see(query, answer)
            return answer

        return self.solver.solve(problem, watched, rng)


@dataclass(frozen=True)
class Knowledge:
    """Hold what the adversary knows about the records, in the form in which queries read them; it is the same for every fit.

    Parameters
    ----------
    others : TrainingData
        The table without its canaries.
    records : tuple of list of Rows
        Each canary as a table of one record, with each of the two labels; a null record has no table.
    """

    others: TrainingData
    records: tuple[list[TrainingData], ...]

    @classmethod
    def of(cls, canaries: Canaries, rows: TrainingData, bounds: dict[str, Any], n_rows: int | None = None) -> "Knowledge":
        """Return the knowledge that follows from a table; only its other records, those after the first, are used."""
        number = len(canaries.rows)

        def single(code: float) -> list[TrainingData]:
            table = TrainingData(canaries.rows, np.full(number, code), **bounds)
            return [table.subset(np.array([i])) for i in range(number)]

        codes = canaries.codes[:1] if canaries.null else canaries.codes
        return cls(rows.without(np.arange(n_rows or number)), tuple(single(code) for code in codes))


class Adversary:
    r"""Sum, over the releases, the log-likelihood ratio of each canary against what replaces it.

    Subtracting the share p S of the other records from an answer a leaves a vector v. It is normal around 0 or, with the sampling
    rate p as probability, around the canary's contribution h:

    .. math:: \log(1 - p + p \exp((v^\top h - \|h\|^2 / 2) / \sigma^2)).

    This ratio is exact for releases of all records, and for samples to which the other records contribute nothing. The ratio of a
    selection is exact, too: it compares the probabilities of the chosen candidate by scores with and without the canary's share.
    If the answer is a model and not a sum over records, its score is its loss on the canary.

    Parameters
    ----------
    plan : Plan
        Stated releases and noise. A query beyond them is scored like another release of the same query.
    canaries : Canaries
        Records to tell apart.
    knowledge : Knowledge or None
        None for an adversary who sees only the final model.
    """

    def __init__(self, plan: Plan, canaries: Canaries, knowledge: Knowledge | None) -> None:
        self._plan, self._canaries, self._knowledge = plan, canaries, knowledge
        self._total = np.zeros(len(canaries.rows))
        self._releases = list(plan.schedule)
        self._kinds = {release.query: release for _, release in plan.schedule.entries}

    def see(self, query: Query, answer: np.ndarray) -> None:
        """Take one release into account."""
        if self._knowledge is None:
            return
        with np.errstate(all="ignore"):
            self._score(query, answer, self._release(query), self._knowledge)

    def _release(self, query: Query) -> Release:
        """Return the stated release for a query, or one that was stated for the same kind of query."""
        if self._releases and self._releases[0].query is type(query):
            return self._releases.pop(0)
        return self._kinds[type(query)]

    def _score(self, query: Query, answer: np.ndarray, release: Release, known: Knowledge) -> None:
        if not query.additive:
            self._total += self._by_loss(answer.reshape(self._plan.problem.shape))
            return
        if isinstance(release.mechanism, Selection):
            self._total += self._by_choice(query, int(answer[0]), release.mechanism, known)
            return
        noise = noise_multiplier(release, self._plan.scale, self._plan.problem.budget.adjacency) * query.clip_norm
        if noise == 0:  # a clip norm of 0 releases zeros
            return
        rate = getattr(release.mechanism, "sampling_rate", 1.0)
        named = query.records  # public indices of a single pass
        others = known.others if named is None else known.others.subset(named)
        used = np.ones(len(self._total)) if named is None else np.isin(np.arange(len(self._total)), named)
        rest = (answer - rate * query.evaluate(others)) / noise
        for sign, records in zip((1, -1), known.records, strict=False):
            contributions = np.stack([query.evaluate(record) for record in records]) * used[:, None] / noise
            self._total += sign * _log_ratio(contributions @ rest - np.square(contributions).sum(axis=1) / 2, rate)

    def _by_choice(self, query: Query, chosen: int, mechanism: Selection, known: Knowledge) -> np.ndarray:
        """Log-likelihood ratios of a selection."""
        noise = mechanism.weight * self._plan.scale * query.sensitivity(self._plan.problem.budget.adjacency)
        if noise == 0:  # nothing depends on a record
            return np.zeros_like(self._total)
        alone = replace(query, offset=np.zeros_like(query.offset)) if isinstance(query, Vertex) else query
        rest = query.evaluate(known.others)
        shares = [np.stack([alone.evaluate(record) for record in records]) for records in known.records]
        present, absent = (log_softmax((rest + share) / noise, axis=1)[:, chosen] for share in (*shares, 0 * shares[0])[:2])
        return present - absent

    def scores(self, view: str, coef: np.ndarray) -> np.ndarray:
        """Return the score of each canary, computed from the releases or from the loss of the final model."""
        if view == "transcript":
            return self._total
        return self._by_loss(coef)

    def _by_loss(self, coef: np.ndarray) -> np.ndarray:
        """Return how much smaller the loss of a model is on the canaries than on what replaces them."""
        scaling = self._plan.problem.intercept_scaling
        rows = self._canaries.rows
        extended = np.column_stack([rows, np.full(len(rows), scaling)]) if scaling else rows
        canary, other = (self._plan.problem.loss.value(extended @ coef, np.full(len(rows), c)) for c in self._canaries.codes)
        return -canary if self._canaries.null else other - canary


def _log_ratio(exponents: np.ndarray, rate: float) -> np.ndarray:
    return exponents if rate == 1 else np.logaddexp(np.log1p(-rate), np.log(rate) + exponents)


@contextmanager
def warnings_said_once() -> Iterator[None]:
    """Silence, for the following fits, the warnings that the plan has already emitted."""
    with warnings.catch_warnings():
        for category in (OutsideGuaranteeWarning, TableWarning, WeakPrivacyWarning):
            warnings.simplefilter("ignore", category)
        yield


def _derived(estimator: DPEstimator, run: Any) -> Any:
    """Return a copy of the estimator, of a class that runs a plan differently, without progress and warnings of noise."""
    kind, params = type(estimator), clone(estimator).get_params(deep=False)
    task = type(kind._task_class.__name__, (kind._task_class,), {"run": run, "warns_of_noise": False})
    return type(kind.__name__, (kind,), {"_task_class": task})(**params | {"verbose": 0})
