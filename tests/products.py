"""Which estimators and solvers fit which problem, for tests that build cross products."""

import skdp.estimators
from skdp.losses import Logistic, Multinomial, Squared
from skdp.privacy.budget import Budget
from skdp.solvers import SOLVERS, Problem

__all__ = ["GIVEN", "LOSSES", "estimator_of", "fitting", "kinds_of"]

LOSSES = {"binary": Logistic(), "multinomial": Multinomial(3), "numbers": Squared()}
GIVEN = {"DPLinearRegression": {"target_bounds": (-4.0, 4.0)}}  # what an estimator cannot fit without, by its name
KINDS = {"DPLogisticRegression": ("binary", "multinomial"), "DPLinearRegression": ("numbers",)}


def fitting(kind, solver=None):
    """Names of the solvers that fit a kind of problem, or whether a given one does."""
    problem = Problem(100, 3, LOSSES[kind], Budget(1.0, 1e-6, "replace_one"), data_norm=1.0, intercept_scaling=1.0)
    names = [name for name, known in SOLVERS.items() if known.needs <= problem.offers]
    return names if solver is None else solver.name in names


def kinds_of(name):
    """Kinds of problem of an estimator, by its name."""
    return KINDS[name]


def estimator_of(kind, **parameters):
    """An estimator of a kind of problem, with what it cannot fit without."""
    (name,) = (name for name, kinds in KINDS.items() if kind in kinds)
    return getattr(skdp.estimators, name)(**{**GIVEN.get(name, {}), **parameters})
