"""One fit under attack: an adversary who knows all records but the canaries sees every release and the model.

An estimator of a derived class hands its own `_run` the rows of either table and a solver that records; nothing else changes.
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
from skdp.privacy.errors import LowSignalWarning, OutsideGuaranteeWarning, WeakPrivacyWarning
from skdp.privacy.noise.source import reproducible_noise
from skdp.privacy.queries import Query, Vertex
from skdp.privacy.schedule import Release, Selection
from skdp.solvers import Ask, Problem, Solver, SolverResult

__all__ = ["VIEWS", "Attack", "planned", "warnings_said_once"]

VIEWS = ("transcript", "final")


class Planned(Exception):
    """Carries the plan out of a fit that ends before its first release."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan


def planned(estimator: DPEstimator, X: Any, y: Any) -> Plan:
    """Return the plan of a fit, without a release.

    Parameters
    ----------
    estimator : DPEstimator
        The estimator, which stays as it is.
    X, y : array-like
        Records; what is wrong with them raises as in ``fit``.

    Returns
    -------
    Plan
        Public facts, solver, schedule and noise.
    """

    def stop(self: Any, plan: Plan, *arguments: Any) -> None:
        raise Planned(plan)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LowSignalWarning)  # an audit asks for no good model
        try:
            _derived(estimator, stop).fit(X, y)
        except Planned as end:
            return end.plan
    raise TypeError(f"{type(estimator).__name__} fits without a run through the oracle; expected an estimator that plans one.")


class Attack:
    """Fits of one estimator on tables with and without canaries, and what an adversary makes of each.

    Parameters
    ----------
    estimator : DPEstimator
        Fitted in a copy.
    canaries : Canaries
        Both tables.
    views : tuple of str
        What the adversary sees, out of `VIEWS`.
    """

    def __init__(self, estimator: DPEstimator, canaries: Canaries, views: tuple[str, ...]) -> None:
        def run(model: Any, *arguments: Any) -> SolverResult:
            return self._run(partial(type(estimator)._run, model), *arguments)

        self._model, self._canaries, self._views = _derived(estimator, run), canaries, views
        self._knowledge: Knowledge | None = None

    def scores(self, absent: np.ndarray, seed: int | None) -> np.ndarray:
        """Fit the table in which some canaries are replaced, and score each of them.

        Parameters
        ----------
        absent : ndarray of int
            Which canaries are replaced.
        seed : int or None
            Of the noise; None draws it as in earnest.

        Returns
        -------
        ndarray of shape (n_views, n_canaries)
            Larger where the releases speak for the presence of the canary.
        """
        self._absent = absent
        with nullcontext() if seed is None else reproducible_noise(seed):
            self._model.fit(self._canaries.X, self._canaries.labels(absent))
        return self._scores

    def _run(self, run: Callable[..., SolverResult], plan: Plan, rows: TrainingData, *rest: Any) -> SolverResult:
        """Hand the estimator's own run the rows of the table in question and a solver that records."""
        if self._knowledge is None and "transcript" in self._views:
            self._knowledge = Knowledge.of(self._canaries, rows, plan.row_bounds)
        adversary = Adversary(plan, self._canaries, self._knowledge)
        table = rows.without(self._absent) if self._canaries.null else rows
        result = run(replace(plan, solver=Recorder(plan.solver, adversary)), table, *rest)
        self._scores = np.stack([adversary.scores(view, result.coef) for view in self._views])
        return result


class Recorder(Solver):
    """A solver whose every release an adversary sees, too.

    Parameters
    ----------
    solver : Solver
        Does the work.
    adversary : Adversary
        Sees questions and answers.
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
    """What the adversary knows of the records, in the form in which queries read them; the same for every fit.

    Parameters
    ----------
    others : TrainingData
        The table without its canaries.
    records : tuple of list of Rows
        Each canary as a table of one record, with either label; a null record has none.
    """

    others: TrainingData
    records: tuple[list[TrainingData], ...]

    @classmethod
    def of(cls, canaries: Canaries, rows: TrainingData, bounds: dict[str, Any]) -> "Knowledge":
        """Return what follows from a table of which only the other records are used."""
        number = len(canaries.rows)

        def single(code: float) -> list[TrainingData]:
            table = TrainingData(canaries.rows, np.full(number, code), **bounds)
            return [table.subset(np.array([i])) for i in range(number)]

        codes = canaries.codes[:1] if canaries.null else canaries.codes
        return cls(rows.without(np.arange(number)), tuple(single(code) for code in codes))


class Adversary:
    r"""Sums, over the releases, the log-likelihood ratio of each canary against what replaces it.

    An answer a less the share p S of the other records leaves v, a normal vector around 0 or, with the sampling rate p as
    probability, around the canary's contribution h:

    .. math:: \log(1 - p + p \exp((v^\top h - \|h\|^2 / 2) / \sigma^2)).

    That is exact for releases of all records, and for samples to which the others contribute nothing. The ratio of a selection
    is exact, too: it compares the probabilities of the chosen candidate by scores with and without the canary's share. Where the
    answer is a model, not a sum over records, it is scored by its loss on the canary.

    Parameters
    ----------
    plan : Plan
        Stated releases and noise. What is asked beyond them is scored like another release of the same query.
    canaries : Canaries
        Records to tell apart.
    knowledge : Knowledge or None
        None for an adversary who has the final model only.
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
        """The stated release that was asked for, or one that was stated for the same query."""
        if self._releases and self._releases[0].query is type(query):
            return self._releases.pop(0)
        return self._kinds[type(query)]

    def _score(self, query: Query, answer: np.ndarray, release: Release, known: Knowledge) -> None:
        if not getattr(query, "additive", True):
            self._total += self._by_loss(answer.reshape(self._plan.problem.shape))
            return
        if isinstance(release.mechanism, Selection):
            self._total += self._by_choice(query, int(answer[0]), release.mechanism, known)
            return
        noise = noise_multiplier(release, self._plan.scale, self._plan.problem.budget.adjacency) * query.clip_norm
        if noise == 0:  # a clip norm of 0 releases zeros
            return
        rate = getattr(release.mechanism, "sampling_rate", 1.0)
        named = getattr(query, "records", None)  # of a single pass: public
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
        """Return the score of each canary, by the releases or by the loss of the final model."""
        if view == "transcript":
            return self._total
        return self._by_loss(coef)

    def _by_loss(self, coef: np.ndarray) -> np.ndarray:
        """How much better a model fits the canaries than what replaces them."""
        scaling = self._plan.problem.intercept_scaling
        rows = self._canaries.rows
        extended = np.column_stack([rows, np.full(len(rows), scaling)]) if scaling else rows
        canary, other = (self._plan.problem.loss.value(extended @ coef, np.full(len(rows), c)) for c in self._canaries.codes)
        return -canary if self._canaries.null else other - canary


def _log_ratio(exponents: np.ndarray, rate: float) -> np.ndarray:
    return exponents if rate == 1 else np.logaddexp(np.log1p(-rate), np.log(rate) + exponents)


@contextmanager
def warnings_said_once() -> Iterator[None]:
    """Silence what the plan has warned of, for the fits that follow."""
    with warnings.catch_warnings():
        for category in (LowSignalWarning, OutsideGuaranteeWarning, WeakPrivacyWarning):
            warnings.simplefilter("ignore", category)
        yield


def _derived(estimator: DPEstimator, run: Any) -> Any:
    """A silent copy, of a class with another way to run a plan."""
    kind, params = type(estimator), clone(estimator).get_params(deep=False)
    return type(kind.__name__, (kind,), {"_run": run})(**params | {"verbose": 0})
