"""Which estimators and solvers fit which problem, for tests that build cross products."""

from inspect import signature

from saddles import Regression
from sklearn.base import ClassifierMixin, clone

import skdp.estimators
from skdp.constraints import L1Ball
from skdp.estimators._unsupervised import DPUnlabelled
from skdp.losses import HuberHinge, Logistic, Multinomial, Quantile, Squared, Welsch
from skdp.privacy.budget import Budget
from skdp.solvers import SOLVERS, AUCProblem, GroupDROProblem, MinimaxProblem, NoLoss, Problem

__all__ = [
    "GIVEN",
    "KINDS",
    "LOSSES",
    "UNLABELLED",
    "brief",
    "estimator_of",
    "fitting",
    "kinds_of",
    "labels_of",
    "needs_of",
    "of_kind",
    "released_by",
]

PLAIN = {"binary": Logistic(), "multinomial": Multinomial(3), "numbers": Squared()}
RANKED = {"ranking binary": Logistic(), "network binary": Logistic()}
SADDLES = {"saddle numbers": NoLoss("regression")}
GROUPED = {"grouped binary": Logistic()}
ADDITIVE = {f"additive {kind}": loss for kind, loss in PLAIN.items()}
CONSTRAINED = {f"constrained {kind}": loss for kind, loss in PLAIN.items()}
MARGINS = {"margin binary": HuberHinge(), "margin multinomial": HuberHinge(3)}
LOSSES = {
    **PLAIN,
    **CONSTRAINED,
    **MARGINS,
    "robust numbers": Welsch(1.0),
    "quantile numbers": Quantile(0.5),
    **RANKED,
    **SADDLES,
    **GROUPED,
    **ADDITIVE,
}
BOUNDED = {"target_bounds": (-4.0, 4.0)}
# behind the functions of the columns there is a plain problem: one solver stands for all
ONLY = {"additive binary": "standardized_gd", "additive multinomial": "standardized_gd", "additive numbers": "whitened_gd"}
GIVEN = {  # what an estimator cannot fit without, by its name
    "DPLinearRegression": BOUNDED,
    "DPConstrainedRegression": BOUNDED,
    "DPAdditiveClassifier": {"feature_bounds": 1.0},
    "DPAdditiveRegressor": {**BOUNDED, "feature_bounds": 1.0},
    "DPMinimax": {"saddle": Regression},
}
OF_KIND = {"network binary": {"scorer": "mlp", "hidden_layer_sizes": (4, 3)}}  # what makes the kind of problem
KINDS = {
    "DPLogisticRegression": ("binary", "multinomial"),
    "DPLinearRegression": ("numbers",),
    "DPRobustRegressor": ("robust numbers",),
    "DPLinearSVC": tuple(MARGINS),
    "DPQuantileRegressor": ("quantile numbers",),
    "DPAUCMaximizer": tuple(RANKED),
    "DPMinimax": tuple(SADDLES),
    "DPGroupDROClassifier": tuple(GROUPED),
    "DPAdditiveClassifier": ("additive binary", "additive multinomial"),
    "DPAdditiveRegressor": ("additive numbers",),
    "DPConstrainedRegression": ("constrained numbers",),
    "DPConstrainedClassifier": ("constrained binary", "constrained multinomial"),
}
UNLABELLED = []  # estimators without y, which choose their solver themselves
for name in sorted(set(skdp.estimators.__all__) - set(KINDS)):  # an estimator without a line above
    estimator = getattr(skdp.estimators, name)
    if issubclass(estimator, DPUnlabelled):
        UNLABELLED.append(name)
    of_targets = ("binary", "multinomial") if issubclass(estimator, ClassifierMixin) else ("numbers",)
    KINDS[name] = () if name in UNLABELLED else of_targets
    if "target_bounds" in signature(estimator).parameters:
        GIVEN[name] = BOUNDED


def fitting(kind, solver=None):
    """Names of the solvers that fit a kind of problem, or whether a given one does."""
    constraint = L1Ball() if kind in CONSTRAINED else None
    constant = 0.0 if constraint else 1.0
    budget = Budget(1.0, 1e-6, "replace_one")
    facts = {"loss": LOSSES[kind], "budget": budget, "data_norm": 1.0, "intercept_scaling": constant, "constraint": constraint}
    if kind in SADDLES:
        problem = MinimaxProblem(100, 3, **facts, saddle=Regression(3))
    elif kind in GROUPED:
        problem = GroupDROProblem(100, 3, **facts, group_sizes=(60, 40))
    elif kind in RANKED:
        layers = OF_KIND.get(kind, {}).get("hidden_layer_sizes", ())
        problem = AUCProblem(100, 3, **facts, hidden_layer_sizes=layers)
    else:
        problem = Problem(100, 3, **facts)
    names = [name for name, known in SOLVERS.items() if known.needs <= problem.offers and ONLY.get(kind, name) == name]
    return names if solver is None else solver.name in names


def brief(solver):
    """A solver of few steps, where it has such a parameter."""
    wanted = {"n_steps": 5, "n_rounds": 3, "n_epochs": 2, "n_inner": 3, "batch_size": 50}
    return solver(**{name: value for name, value in wanted.items() if name in solver().get_params()})


def kinds_of(name):
    """Kinds of problem of an estimator, by its name."""
    return KINDS[name]


def needs_of(solver):
    """What an estimator needs with a solver, by its name or as an object."""
    name = getattr(solver, "name", solver)
    return {"data_norm": 3.7} if isinstance(name, str) and name == "inference" else {}


def labels_of(kind):
    """Kind of labels of a kind of problem: "binary", "multinomial" or "numbers"."""
    return kind.split()[-1]


def estimator_of(kind, **parameters):
    """An estimator of a kind of problem, with what it cannot fit without."""
    name = next(name for name, kinds in KINDS.items() if kind in kinds)
    needed = needs_of(parameters.get("solver"))
    return getattr(skdp.estimators, name)(**{**GIVEN.get(name, {}), **OF_KIND.get(kind, {}), **needed, **parameters})


def of_kind(estimator, kind):
    """A copy of an estimator, for a kind of problem out of its own."""
    return clone(estimator).set_params(**OF_KIND.get(kind, {}))


def released_by(model):
    """An array of released numbers that a fitted model has."""
    if hasattr(model, "coefs_"):
        return model.coefs_[0]
    return model.primal_ if hasattr(model, "primal_") else model.coef_
