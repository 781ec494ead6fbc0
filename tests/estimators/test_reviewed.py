"""Test that the report names all foreign code that sees the data or makes the noise, whatever its name is."""

from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

from skdp import DPConstrainedClassifier, DPLogisticRegression, DPMinimax
from skdp.estimators._reviewed import checked
from skdp.losses import Logistic
from skdp.minimax import AUCSaddle
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Gradient, Standardization, StandardizedGradient
from skdp.privacy.schedule import Curve, Gaussian, Release, Schedule
from skdp.scorers import LinearScorer
from skdp.solvers import SOLVERS, Solver, SolverResult


@dataclass(frozen=True)
class Open(Curve):
    """States a guarantee, and returns the sum without noise."""

    def scale(self, budget):
        return 1.0

    def epsilon(self, scale, budget):
        return budget.epsilon

    def deltas(self, scale, epsilons, budget):
        return np.full(len(epsilons), budget.delta)

    def answer(self, query, scale, budget, source, evaluate):
        return evaluate(query)


@dataclass(frozen=True)
class Quiet(Gaussian):
    """A mechanism of the package, changed."""


class Faked(Logistic):
    """A loss that claims to be the package's."""


Faked.__module__ = "skdp.losses"
Renamed = type("Gradient", (Gradient,), {"__module__": "skdp.privacy.queries.gradient"})


class Asking(Solver):
    """One release of a given kind, asked with a given loss."""

    name, title = "asking", "Asks once"

    def __init__(self, query=Gradient, mechanism=Gaussian(), loss=None):  # noqa: B008
        self.query, self.mechanism, self.loss = query, mechanism, loss

    def schedule(self, problem):
        return Schedule(((1, Release(self.query, self.mechanism, problem.clip_norm, problem.start.size)),))

    def solve(self, problem, ask, rng):
        query = self.query(self.loss or problem.loss, problem.start, problem.clip_norm)
        return SolverResult(-ask(query).reshape(problem.shape), 1)


class OwnLoss(DPLogisticRegression):
    """An estimator with a loss of its own."""

    def _problem(self, n_samples, n_features, loss, *args, **particular):
        return super()._problem(n_samples, n_features, Faked(), *args, **particular)


@pytest.fixture
def table(rng):
    return rng.normal(size=(60, 2)), np.arange(60) % 2


def named(report):
    return [line.split(" is unreviewed")[0] for line in report.assumptions if "unreviewed" in line]


@pytest.mark.parametrize(
    ("solver", "expected"),
    (
        (Asking(mechanism=Open("sum")), ["Open"]),
        (Asking(mechanism=Quiet()), ["Quiet"]),
        (Asking(query=Renamed), ["Gradient"]),
        (Asking(query=Renamed, mechanism=Quiet()), ["Gradient", "Quiet"]),
        (Asking(), []),
    ),
)
def test_mechanisms_and_queries_from_elsewhere_are_named(solver, expected, table):
    model = DPLogisticRegression(solver=solver).fit(*table)
    assert named(model.privacy_report_) == named(DPLogisticRegression(solver=solver).plan(60, 2)) == expected


def test_a_module_name_is_not_believed(table):
    assert named(OwnLoss(solver="gd").fit(*table).privacy_report_) == ["Faked"]

    class Own(LinearScorer):
        pass

    Own.__module__ = AUCSaddle.__module__
    (name,) = named(DPMinimax(AUCSaddle(Own(3), 0.5)).plan(400, 3))
    assert name.endswith("Own")


def test_a_loss_that_only_the_solver_knows_is_refused_before_it_sees_the_data(table):
    seen = []

    class Seeing(Logistic):
        def derivative(self, raw, labels):
            seen.append(raw)
            return super().derivative(raw, labels)

    with pytest.raises(PrivacyAccountingError, match="Gradient was asked with loss of class Seeing"):
        DPLogisticRegression(solver=Asking(loss=Seeing())).fit(*table)
    assert not seen


def test_numbers_in_tuples_and_no_others_are_asked_with():
    class Weighing(float):
        """A number that would see what it is multiplied by."""

    for weights, expected in (
        ((0.5, 1.0), True),
        ((Weighing(0.5), 1.0), False),
        (np.array([Weighing(0.5), 1.0], dtype=object), False),
        (np.array([0.5, 1.0]), True),
    ):
        geometry = Standardization(np.zeros(2), np.ones(2), True, 1.0)
        query = StandardizedGradient(Logistic(), np.zeros((3, 1)), 1.0, geometry, class_weight=weights)
        asked = []
        plan = SimpleNamespace(problem=SimpleNamespace(loss=Logistic()), schedule=SimpleNamespace(entries=()))
        with nullcontext() if expected else pytest.raises(PrivacyAccountingError, match="class_weight of class"):
            checked(asked.append, plan)(query)
        assert len(asked) == expected


def test_nothing_of_the_package_is_named():
    for name in sorted(SOLVERS):
        for estimator in (DPLogisticRegression(solver=name), DPConstrainedClassifier(solver=name)):
            try:
                report = estimator.plan(500, 3)
            except ValueError:  # not for this problem
                continue
            assert named(report) == []
