"""Test that the report names all foreign code that sees the data or makes the noise, whatever its name is."""

import inspect
import pickle
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPConstrainedClassifier, DPLogisticRegression, DPMinimax, losses
from skdp.constraints import Box, L1Ball, L2Ball, LpBall, Simplex
from skdp.estimators._foreign_classes import refuse_foreign_parts
from skdp.losses import Logistic
from skdp.minimax import AUCSaddle, GroupDROSaddle
from skdp.mirror_maps import Entropy, Euclidean, PNorm, SignedEntropy
from skdp.penalties import ElasticNet
from skdp.privacy.errors import PrivacyAccountingError
from skdp.privacy.queries import Gradient, Standardization, StandardizedGradient
from skdp.privacy.schedule import Curve, Gaussian, Laplace, PoissonGaussian, Release, Schedule, Selection, SinglePass
from skdp.samplings import Blocks, Full, Importance, Nice, Uniform
from skdp.scorers import LinearScorer, MLPScorer
from skdp.solvers import SGDA, SOLVERS, AcceleratedMirrorDescent, BlockCoordinateDescent, Solver, SolverResult


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

    class _task_class(DPLogisticRegression._task_class):
        def _problem(self, n_samples, n_features, loss, *args, **fields):
            return super()._problem(n_samples, n_features, Faked(), *args, **fields)


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
    assert named(OwnLoss(solver="gd").fit(*table).privacy_report_) == ["Faked", "OwnLoss"]

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
            refuse_foreign_parts(asked.append, plan)(query)
        assert len(asked) == expected


@pytest.mark.slow
def test_nothing_of_the_package_is_named():
    for name in sorted(SOLVERS):
        for estimator in (DPLogisticRegression(solver=name), DPConstrainedClassifier(solver=name)):
            try:
                report = estimator.plan(500, 3)
            except ValueError:  # not for this problem
                continue
            assert named(report) == []


PARTS = (
    *(
        kind(*[1 if name == "n_outputs" else 1.0 for name in inspect.signature(kind).parameters])
        for kind in (getattr(losses, name) for name in losses.__all__)
        if isinstance(kind, type) and not inspect.isabstract(kind)
    ),
    *(L1Ball(), L2Ball(), LpBall(), Box(), Simplex(), ElasticNet(0.1, 0.5)),
    *(Entropy(1.0, 2), Euclidean(np.copy, 2, 1.0), PNorm(1.0, 1.5, 2), SignedEntropy(1.0, 2)),
    *(Nice(2, 1), Uniform(2), Full(2), Importance((1.0, 2.0)), Blocks(2, ((0,), (1,)))),
    *(LinearScorer(2), MLPScorer(2), AUCSaddle(LinearScorer(2), 0.5), GroupDROSaddle(LinearScorer(2), (5, 5))),
    *(Gaussian(), PoissonGaussian(0.5), SinglePass(2), Selection(), Laplace(), Curve("curve")),
    Gradient(Logistic(), np.zeros((3, 1)), 1.0),
    Standardization(np.zeros(2), np.ones(2), True, 1.0),
    *(kind() for kind in SOLVERS.values()),
)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_no_part_of_the_package_takes_a_method_on_an_instance(part):
    methods = [name for name, _ in inspect.getmembers(type(part), callable) if not name.startswith("_")]
    for name in methods:
        with pytest.raises(AttributeError, match=r"is a method; expected a derived class|cannot assign to field"):
            setattr(part, name, print)
    assert pickle.loads(pickle.dumps(part)).__dict__.keys() == part.__dict__.keys()
    if isinstance(part, Solver):
        clone(part).set_params(**part.get_params(deep=False))


def hide(owner, name, seen):
    """Put a method that looks at the records on an instance, as code can that goes around `__setattr__`."""
    method = getattr(owner, name)

    def look(*given):
        seen.append(given)
        return method(*given)

    vars(owner)[name] = look
    return owner


@pytest.mark.parametrize(("part", "name"), (("problem", "read"), ("problem", "project"), ("scorer", "read"), ("scorer", "at")))
def test_methods_on_a_problem_and_its_scorer_are_named(part, name, table):
    scorer, seen = LinearScorer(2), []
    problem = AUCSaddle(scorer, 0.5)
    owner = hide({"problem": problem, "scorer": scorer}[part], name, seen)
    model = DPMinimax(problem, data_norm=3.0, solver=SGDA(2)).fit(*table)
    assert seen and named(model.privacy_report_) == [f"{type(owner).__name__}.{name}"]


@pytest.mark.slow
def test_what_else_is_no_number_in_a_part_is_named(table):
    class Seeing(np.ndarray):
        """An array that would see what it is multiplied by."""

    def problem(**attributes):
        made = AUCSaddle(LinearScorer(2), 0.5)
        vars(made).update(attributes)
        return made

    for attributes, expected in (
        ({"class_weights": np.array([1.0, 1.0], dtype=object)}, ["AUCSaddle.class_weights"]),
        ({"notes": np.ones(1).view(Seeing)}, [Seeing.__qualname__]),
        ({"notes": [print]}, ["list"]),
        ({"itself": LinearScorer(1), "noise": 1.0}, []),
    ):
        assert named(DPMinimax(problem(**attributes)).plan(60, 2)) == expected
    own = problem()
    vars(own)["me"] = own
    assert named(DPMinimax(own).plan(60, 2)) == []


@pytest.mark.parametrize("loss", (True, False))
def test_methods_on_a_loss_and_on_a_mechanism_are_named(loss, table):
    seen = []

    class Own(DPLogisticRegression):
        class _task_class(DPLogisticRegression._task_class):
            def _problem(self, n_samples, n_features, given, *args, **fields):
                return super()._problem(n_samples, n_features, hide(given, "derivative", seen), *args, **fields)

    mechanism = Gaussian()
    if not loss:
        vars(mechanism)["answer"] = print
    model = (Own if loss else DPLogisticRegression)(solver=Asking(mechanism=mechanism)).fit(*table)
    assert named(model.privacy_report_) == (["Logistic.derivative", Own.__qualname__] if loss else ["Gaussian.answer"])


@pytest.mark.parametrize("where", ("problem", "scorer", "scale"))
def test_a_solver_that_changes_a_reviewed_part_during_the_fit_is_refused(where, table):
    """The report was made before; nothing is evaluated."""
    seen = []

    class Changing(SGDA):
        def solve(self, problem, ask, rng):
            if where == "scale":

                class Seeing(np.ndarray):
                    def __array_ufunc__(self, *given, **options):
                        seen.append(given)

                vars(problem.saddle.scorer)["scale"] = np.ones(2).view(Seeing)
            else:
                hide({"problem": problem.saddle, "scorer": problem.saddle.scorer}[where], "read", seen)
            return super().solve(problem, ask, rng)

    with pytest.raises(
        PrivacyAccountingError, match=r"JointGradient was asked with saddle of class AUCSaddle, but .* is not part"
    ):
        DPMinimax(AUCSaddle(LinearScorer(2), 0.5), data_norm=3.0, solver=Changing(2)).fit(*table)
    assert not seen


@pytest.mark.parametrize(
    ("part", "name", "solver"),
    (
        (L1Ball(), "project", "gd"),
        (L2Ball(), "mirror_map", AcceleratedMirrorDescent()),
        (L1Ball(), "mirror_map", AcceleratedMirrorDescent()),
        (Uniform(2), "sample", BlockCoordinateDescent()),
    ),
)
def test_parts_that_no_query_holds_see_no_record(part, name, solver, table):
    """Constraints, mirror maps and samplings see releases and public numbers, whatever is put on them."""
    X, y = table
    X[7] = [0.1234567, 0.7654321]
    seen, own = [], hide(pickle.loads(pickle.dumps(part)), name, [])
    hide(own, name, seen)
    if isinstance(part, Uniform):
        model = DPLogisticRegression(solver=solver.set_params(sampling=own), fit_intercept=False, data_norm=3.0).fit(X, y)
    else:
        model = DPConstrainedClassifier(constraint=own, solver=solver, fit_intercept=False, data_norm=3.0).fit(X, y)
    numbers = [value for given in seen for value in given if isinstance(value, np.ndarray)]
    assert seen and not np.isin(X[7], [each for value in numbers for each in value.ravel()]).any()
    assert named(model.privacy_report_) == []
