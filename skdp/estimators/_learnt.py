"""Fit in two stages under one budget: learn the columns of a data frame, then fit the rows that the learnt schema prepares."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from skdp._data_validation import Facts, TargetReader, check_label_set, quoting_no_data
from skdp._progress import asks_for_data
from skdp._validation import shown
from skdp.estimators._interrupted import told_when_interrupted
from skdp.estimators._partitioned import in_partitions
from skdp.estimators._plan import Plan
from skdp.estimators._planned_fit import PlannedFit
from skdp.estimators._report import brief, report
from skdp.estimators._signal import needed, warn_of_low_signal
from skdp.preprocessing._frame_facts import TYPES, FrameFacts, framed, leaves_to_learn
from skdp.preprocessing._learning import LearningPlan, Learnt, in_words, learn
from skdp.preprocessing._pipeline import from_schema
from skdp.preprocessing._schema import Schema
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.errors import LowSignalWarning, NotPrivateWarning, PrivacyAccountingError, WeakPrivacyWarning
from skdp.privacy.ledger.charging import pay
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms
from skdp.privacy.queries.column_histograms import contribution
from skdp.privacy.report.statement import PrivacyReport, PrivacySpent, describe_releases

__all__ = ["Learning", "learning_of"]

# Noise of a bin, as a share of the records, that the share of the budget for the columns aims at, and the limits of this share.
# Choices: on tables of 10 to 60 columns, shares from .02 to .1 gave the same models, and smaller ones lost integers.
AIM, LEAST_SHARE, LARGEST_SHARE = 0.004 * math.sqrt(0.5), 0.02, 0.1
# Numbers of common categories of a column of text for which the second stage is planned before anything is charged. What is
# learnt may have another number; a fit that a plan refuses for either is refused.
LIKELY, MANY = 2, 20
SLACK = 1e-12  # relative amount by which the first stage spends less than what is left, above the rounding of a difference


def learning_of(estimator: Any, X: Any) -> "Learning | None":
    """Return the first stage of a fit; None if nothing is to be learnt about the columns of X.

    Columns are learnt if the schema leaves some to learn. They are also learnt if X is a data frame of which nothing is stated,
    and the solver of the fit can share its budget.
    """
    if leaves_to_learn(estimator.schema):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit and the report plan it once more
            return replace(Learning.of(estimator, framed(X)), named=framed(X) is X)
    unstated = all(getattr(estimator, name) is None for name in ("schema", "feature_bounds", "data_norm"))
    if not (unstated and estimator._learns_by_default and {"columns", "dtypes"} <= set(dir(type(X)))) or in_partitions(X):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return Learning.of(estimator, X)
    except (TypeError, ValueError, PrivacyAccountingError):  # the usual fit states what is wrong, or needs no schema
        return None


@dataclass(frozen=True)
class Learning:
    r"""Hold what is public about a fit that learns the columns first.

    *Proof of the budget.* The budget is equivalent to :math:`\mu`-GDP for Gaussian releases. The fit of the second stage is
    calibrated to an epsilon that :math:`\mu_2`-GDP implies, :math:`\mu_2 < \mu`, which is fixed before any data is read. Its
    releases are full-data Gaussian, so that they are :math:`\mu_2`-GDP whatever the number of features that was learnt. The first
    stage is :math:`\mu_1`-GDP with :math:`\mu_1^2 = \mu^2 - \mu_2^2`. Adaptive composition of both is :math:`\mu`-GDP. The map of
    the rows depends on the releases of the first stage alone, and maps each record by itself.

    Parameters
    ----------
    estimator : estimator
        As the user made it.
    facts : FrameFacts
        What is public about the frame.
    budget : Budget
        What both stages spend together.
    plan : LearningPlan
        The first stage.
    rest : Budget
        What the second stage spends.
    named : bool
        Whether the names of the columns are those of a data frame.
    """

    estimator: Any
    facts: FrameFacts
    budget: Budget
    plan: LearningPlan
    rest: Budget
    named: bool = True

    @classmethod
    def of(cls, estimator: Any, X: Any) -> "Learning":
        """Plan both stages; raise an error if the second one cannot be planned for what may be learnt."""
        facts = FrameFacts.of(X, estimator.schema)
        learning = cls.planned(estimator, facts)
        for of_text in (LIKELY, MANY):
            learning.second_plan(None, of_text)
        return learning

    @classmethod
    def planned(cls, estimator: Any, facts: FrameFacts) -> "Learning":
        """Split the budget between the stages."""
        budget = estimator._budget(facts.n_samples)
        if budget.delta == 0:
            raise ValueError("delta=0: columns are learnt with Gaussian noise; expected a positive delta, or a full schema.")
        target = getattr(estimator, "target_bounds", 0) is None and estimator.loss == "squared"
        target = target and not facts.of_target.get("target_bounds")
        mu = gaussian_mu(budget.epsilon, budget.delta)
        share = _share(facts, target, mu, budget.adjacency)
        rest = Budget(gaussian_epsilon(mu * math.sqrt(1 - share), budget.delta), budget.delta, budget.adjacency)
        left = math.sqrt(mu**2 - gaussian_mu(rest.epsilon, rest.delta) ** 2) * (1 - SLACK) if budget.private else math.inf
        return cls(estimator, facts, budget, LearningPlan.make(facts.n_samples, facts.are_text, target, budget, left), rest)

    def second(self, schema: Schema) -> Any:
        """Return the estimator of the second stage."""
        inner = self.estimator._scratch()
        inner.schema, inner.epsilon, inner.delta = inner._usable(schema), self.rest.epsilon, self.rest.delta
        return inner

    def second_plan(self, classes: np.ndarray | None, of_text: int = LIKELY, n_classes: Any = None) -> tuple[Any, Facts, Plan]:
        """Plan the second stage for a schema as it might be learnt; return its estimator, its facts and the plan."""
        likely = self.facts.likely(of_text)
        inner = self.second(replace(likely, target_bounds=(-1.0, 1.0)) if self.plan.target else likely)
        with _of_second_stage():
            inner._check_parameters()
            return self._second_plan(inner, classes, n_classes)

    def _second_plan(self, inner: Any, classes: np.ndarray | None, n_classes: Any) -> tuple[Any, Facts, Plan]:
        classes = inner._planned_classes(n_classes)[0] if classes is None else classes
        facts = inner._of_prepared(Facts(self.facts.n_samples, inner._n_columns(None), classes=classes))
        return inner, facts, _gaussian(inner._plan_of(facts))

    def fit(self, X: Any, y: Any, **beside: Any) -> Any:
        """Read the table, pay for both stages, run them, and set all attributes at once."""
        estimator, given = self.estimator, (X, y) if asks_for_data(self.estimator) else (None, None)
        X = framed(X)
        estimator._budget(self.facts.n_samples)  # which warns if it is weak
        targets, classes = self._checked(X, y)
        estimator._check_beside(self.facts.n_samples, **beside)
        cells = self.facts.rows(X, targets)
        warn_of_low_signal(*self.second_plan(classes))
        noise = NoiseSource(estimator.random_state)
        pay(self._spending(noise), estimator._ledgers)
        with told_when_interrupted():
            learnt = self._learnt(cells, noise)
            del cells, targets
            inner = self.second(self.facts.schema(learnt))
            with _of_second_stage(), inner._table(X, y, **beside) as table:
                del X, y
                fit = PlannedFit.of(inner, table.facts, noise, estimator)
                _gaussian(fit.plan)
                fit = replace(fit, statement=self.statement(fit.statement, learnt))
                result = inner._released(fit, table)
            found = {"schema_": inner.schema, "learnt_": learnt.described(), "n_features_in_": len(self.facts.names)}
            attributes = {**inner._attributes(fit, result, given), **found}
            del attributes["feature_names_in_"]
            if self.named:
                attributes["feature_names_in_"] = np.array(self.facts.names, dtype=object)
        return estimator._attributed(attributes, inner._contradictions(fit.plan, result, fit.facts))

    def report(self, n_classes: Any) -> PrivacyReport:
        """Return the report of a fit that is planned."""
        self.estimator._budget(self.facts.n_samples)
        inner, facts, plan = self.second_plan(None, n_classes=n_classes)
        statement = report(inner, plan, NoiseSource(), facts, planned=True)
        return replace(self.statement(statement), needed=needed(inner, facts, plan))

    def statement(self, of_fit: PrivacyReport, learnt: Learnt | None = None) -> PrivacyReport:
        """Return the report of both stages from that of the second one."""
        plan, public = self.plan, of_fit.public
        lines = describe_releases(plan.schedule, plan.scale, self.budget, plan.rounding_allowances)
        mu = math.hypot(plan.mu, gaussian_mu(self.rest.epsilon, self.rest.delta))
        parameters = {name: brief(value) for name, value in self._parameters().items()}
        passes = public["passes"]  # a text where it follows from the records
        found = {} if learnt is None else {"learnt": in_words(learnt.described())}
        both = {
            "n_columns": len(self.facts.names),
            "read_as": self.facts.read_as,
            **found,
            "parameters": parameters,
            "n_releases": len(plan.schedule) + public["n_releases"],
            "passes": passes if isinstance(passes, str) else (plan.schedule.passes or 0) + passes,
        }
        return replace(
            of_fit,
            budget=self.budget,
            spent=PrivacySpent(gaussian_epsilon(mu, self.budget.delta), self.budget.delta),
            releases=(*lines, *of_fit.releases),
            noise_size=f"columns: {plan.outlook}; then {of_fit.noise_size}",
            public={**public, **both},
            assumptions=(TYPES, *of_fit.assumptions),
        )

    def _parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.estimator.get_params(deep=False).items() if name != "random_state"}

    def _checked(self, X: Any, y: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Check y, and the columns that the user describes; return the targets whose range is learnt, and the classes."""
        raw = TargetReader(0.0, 1.0, bounded=False)
        read = raw if self.plan.target else self.second(self.facts.likely())._target_reader()
        part = read(np.zeros((self.facts.n_samples, 1)), y)
        if part.facts.classes is not None:
            check_label_set(part.facts.classes)
        if stated := self.facts.stated.columns:
            quoting_no_data(X, lambda: from_schema(Schema(stated, None, None)).fit_transform(X))
        return part.y if self.plan.target else None, part.facts.classes

    def _spending(self, noise: NoiseSource) -> Spending:
        """Return what both stages will spend, as the ledgers record it."""
        plan, budget, mu = self.plan, self.budget, gaussian_mu(self.rest.epsilon, self.rest.delta)
        lines = describe_releases(plan.schedule, plan.scale, budget, plan.rounding_allowances)
        rest = f"then full-data Gaussian releases of the fit on the learnt columns, mu = {mu:.6g} together"
        total = plan.mu**2 + mu**2
        seeded = {} if noise.secure else {"noise": "from a seed: not private"}
        return Spending(
            estimator=type(self.estimator).__name__,
            parameters={**{name: brief(value) for name, value in self._parameters().items()}, **seeded},
            schedule=(*map(str, lines), rest),
            adjacency=budget.adjacency,
            epsilon=gaussian_epsilon(math.sqrt(total), budget.delta),
            delta=budget.delta,
            composition=Composition(budget.adjacency, (), (), total) if budget.private else None,
        )

    def _learnt(self, cells: ColumnCells, noise: NoiseSource) -> Learnt:
        """Make the releases of the first stage."""
        oracle = Oracle(cells, self.plan.schedule, self.budget, self.plan.scale, noise)  # type: ignore[arg-type]
        learnt = learn(oracle.ask, self.plan)
        oracle.finish()
        return learnt


@contextmanager
def _of_second_stage() -> Iterator[None]:
    """Silence warnings about the budget and the signal: what the first stage leaves is not what the user asked for."""
    with warnings.catch_warnings():
        for kind in (LowSignalWarning, NotPrivateWarning, WeakPrivacyWarning):
            warnings.simplefilter("ignore", kind)
        yield


def _share(facts: FrameFacts, target: bool, mu: float, adjacency: str) -> float:
    """Return the part of the squared Gaussian-DP parameter that the columns get, from public facts."""
    noise = ColumnHistograms.relative_sensitivity[adjacency] * contribution(len(facts.are_text), target) / (mu * facts.n_samples)
    return min(max((noise / AIM) ** 2, LEAST_SHARE), LARGEST_SHARE)


def _gaussian(plan: Plan) -> Plan:
    """Return the plan; raise an error unless all releases are full-data Gaussian."""
    if not plan.schedule.full_gaussian:
        raise ValueError(
            f"solver={shown(plan.solver)} uses releases that are not full-data Gaussian, which cannot share a budget with the "
            "histograms of the columns; expected a solver of full-data Gaussian releases, as 'auto' chooses where there is one, "
            "a schema that leaves nothing to learn, or LearnedSchema, which has a budget of its own, before it in a pipeline."
        )
    return plan
