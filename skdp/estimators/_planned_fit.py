"""Plan a fit: the plan, its report, and everything else that it needs except the records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np

from skdp._data_validation import Facts
from skdp._progress import Progress
from skdp._validation import check_feature_bounds, column_labels, warn_of_two_numbers
from skdp.estimators._plan import Plan
from skdp.estimators._report import report
from skdp.estimators._signal import warn_of_low_signal
from skdp.privacy.errors import warn
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import PrivacyReport

# Of a target whose labels are not stated: more numbers than these are probably no labels, more texts are probably names. Choices.
MOST_NUMBERS, MOST_TEXTS = 20, 50


@dataclass(frozen=True)
class PlannedFit:
    """Hold a fit that is planned and not yet charged.

    Parameters
    ----------
    facts : Facts
        What is public about the table.
    plan : Plan
        Problem, solver, releases and noise scale.
    noise : NoiseSource
        Source of the noise.
    rng : Generator
        Generator for choices that need no secrecy: initial weights, public blocks and the order of a single pass.
    statement : PrivacyReport
        The privacy report: guarantee, releases, noise and assumptions.
    progress : Progress
        Counts the releases.
    columns : dict or None, default=None
        Attributes of the fitted estimator that state the columns of the table; None for those of the facts.
    """

    facts: Facts
    plan: Plan
    noise: NoiseSource
    rng: np.random.Generator
    statement: PrivacyReport
    progress: Progress
    columns: dict[str, Any] | None = None

    @classmethod
    def of(cls, task: Any, facts: Facts, of_stage: NoiseSource | None = None) -> "PlannedFit":
        """Plan a fit from public facts, and warn if noise is likely to drown the signal.

        ``of_stage`` is the source of noise of an earlier stage of the fit, if there was one.
        """
        plan = _plan(task, facts)
        noise = NoiseSource(task.random_state) if of_stage is None else of_stage
        if isinstance(task.random_state, Integral):  # of choices that need no secrecy
            rng = np.random.default_rng(int(task.random_state))
        else:
            read = noise.read if task.random_state is None else task.random_state.bytes
            rng = np.random.default_rng(int.from_bytes(read(16), "little"))
        statement = report(task, plan, noise, facts, as_given=of_stage is None)
        progress = Progress(task.user_model, len(plan.schedule), task.verbose)
        if facts.classes is not None and of_stage is None and task.label_set() is None:
            warn_of_many_labels(facts.classes)
        if task.warns_of_noise:
            warn_of_low_signal(task, facts, plan)
        return cls(facts, plan, noise, rng, statement, progress)

    @property
    def spending(self) -> Spending:
        """What the fit will spend, as the ledgers record it."""
        return self.plan.cost.spending(self.statement.estimator, self.statement.public["parameters"], self.noise)

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the fitted estimator that state its columns and its privacy."""
        attributes = {**(self.facts.attributes if self.columns is None else self.columns)}
        attributes |= {"privacy_report_": self.statement, "privacy_spent_": self.statement.spent}
        if len(self.statement.releases) == 1 and self.statement.releases[0].noise_multiplier is not None:
            attributes["noise_multiplier_"] = self.statement.releases[0].noise_multiplier
        return attributes


def most_labels(labels: Iterable[Any]) -> int:
    """Return how many different labels a target may have that is probably neither a number nor a name."""
    try:
        [float(label) for label in labels]
    except (TypeError, ValueError):  # such as dates
        return MOST_TEXTS
    return MOST_NUMBERS


def warn_of_many_labels(labels: np.ndarray) -> None:
    """Warn, before anything is charged, if labels that are read from y, and so are public, are probably numbers or names."""
    if labels.size > (most := most_labels(labels)):
        warn(
            f"y has more than {most} different labels. With classes=None they are read from y and are public: the fitted "
            "model and its report show them. Use a regressor if y is a number; no target that tells records apart, such as "
            "a name; or classes=[...], which takes no label from y.",
            UserWarning,
        )


def _plan(task: Any, facts: Facts) -> Plan:
    """Return the plan for a table; put bounds that are given by name in the order of its columns."""
    bounds = task.feature_bounds
    warn_of_two_numbers(bounds, facts.n_features)
    if isinstance(bounds, Mapping):
        names = column_labels(facts.feature_names, facts.n_features)
        task = task.replaced(feature_bounds=check_feature_bounds(bounds, facts.n_features, names))
    plan = task.plan_of(facts)
    if facts.partitions is not None:
        plan.refuse_partitions(task.kind, facts.partitions.kept is not None)
    return replace(plan, scaling=task.scaling(facts.n_features, facts.feature_names))
