"""Every estimator and solver on tables in partitions: the same bits as in memory, or a refusal before the table is read."""

import numpy as np
import pandas as pd
import pytest
from pairwise import pairwise
from products import GIVEN, brief, fitting, kinds_of, labels_of, of_kind, released_by
from scipy.sparse import csr_array

import skdp.estimators
from skdp._data_validation import Facts
from skdp.data import chunks
from skdp.estimators._plan import solvers_in_partitions
from skdp.estimators.additive._base import ColumnModel
from skdp.privacy.data import summation
from skdp.solvers import SOLVERS
from skdp.testing import reproducible_noise

N, D, GROUPS = 9000, 3, {"grouped binary"}
RNG = np.random.default_rng(0)
X = RNG.uniform(-1.5, 1.5, size=(N, D))
SCORE = X @ np.array([1.0, -1.0, 0.5])
Y = {
    "binary": np.array(["no", "yes"])[(SCORE > 0).astype(int)],
    "multinomial": np.digitize(SCORE, [-0.5, 0.5]),
    "numbers": SCORE.clip(-3, 3),
}
MEMBERS = np.repeat(["c", "a", "b"], [N // 2, N // 3, N // 6])  # groups come in another order than they are sorted in
TABLES = {"dense": np.asarray, "float32": lambda X: X.astype(np.float32), "frame": lambda X: pd.DataFrame(X, columns=list("abc"))}
TABLES["csr"] = lambda X: csr_array(np.where(X > 0, X, 0))
REASONS = {"skgd": "keeps a raw prediction of each record"} | dict.fromkeys(("objective", "output"), "as often as they decide")
ADDITIVE = {
    name for name in skdp.estimators.__all__ if issubclass(getattr(skdp.estimators, name), ColumnModel)
}  # have tests of their own


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch):
    """Chunks of one block, so that the table has three."""
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)


def estimators():
    """Estimator, solver and kind of problem, by name: all that go together."""
    for name in sorted(set(skdp.estimators.__all__) - ADDITIVE):
        if "solver" not in getattr(skdp.estimators, name)._get_param_names():
            continue  # which have one algorithm, and tests of their own
        for kind in kinds_of(name):
            for solver in SOLVERS:
                if fitting(kind, SOLVERS[solver]):
                    yield name, solver, kind


def made(name, solver, kind, **more):
    """An estimator with a solver of few steps."""
    return of_kind(getattr(skdp.estimators, name)(**{"solver": brief(SOLVERS[solver]), **GIVEN.get(name, {}), **more}), kind)


ESTIMATORS = list(estimators())
REFUSED = [case for case in ESTIMATORS if case[1] in REASONS]
TAKEN = [case for case in ESTIMATORS if case[1] not in REASONS]


def kept(case, cache):
    """Where the copy is kept: samples need one."""
    labels = labels_of(case[2])
    facts = Facts(N, D, classes=None if labels == "numbers" else np.unique(Y[labels]))
    return "disk" if made(*case)._task().plan_of(facts).schedule.samples else cache


def columns_of(kind):
    return [Y[labels_of(kind)], *([MEMBERS] if kind in GROUPS else [])]


def table_of(stored, kind, length=1000, **given):
    """The table in chunks of another length than those of the fit."""
    columns = columns_of(kind)

    def parts():
        for start in range(0, N, length):
            run = slice(start, start + length)
            yield stored[run], *(column[run] for column in columns)

    return chunks(parts, **given)


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize(
    "name, solver, kind, adjacency, storage, cache",
    pairwise(
        (*case, adjacency, storage, cache)
        for case in TAKEN
        for adjacency in ("replace_one", "zero_out")
        for storage in TABLES
        for cache in ("disk", None)
    ),
)
def test_the_same_bits_as_in_memory(name, solver, kind, adjacency, storage, cache):
    case, stored = (name, solver, kind), TABLES[storage](X)
    in_memory = dict(zip(("y", "groups"), columns_of(kind), strict=False))
    given = {"adjacency": adjacency, "data_norm": 2.0}  # without a norm, the columns of a frame would be learned
    with reproducible_noise(0):
        memory = made(*case, **given).fit(stored, **in_memory)
    with reproducible_noise(0):
        model = made(*case, **given).fit(table_of(stored, kind, cache=kept(case, cache)))
    assert np.array_equal(released_by(model), released_by(memory))
    for attribute in ("intercept_", "dual_", "group_weights_", "groups_", "group_sizes_", "feature_names_in_", "classes_"):
        assert np.array_equal(getattr(model, attribute, None), getattr(memory, attribute, None))
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(memory, method):
            assert np.array_equal(getattr(model, method)(table_of(stored, kind)), getattr(memory, method)(stored))


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: "-".join(case[:2]))
def test_others_are_refused_before_the_table_is_read(case):
    reads, (name, solver, kind) = [], case
    given = {} if labels_of(kind) == "numbers" else {"classes": np.unique(Y[labels_of(kind)])}
    unknown, table = (chunks(lambda: reads.append(1) or iter([]), n_features=number) for number in (None, D))
    with pytest.raises(ValueError) as refusal:
        made(*case, **given).fit(unknown)
    needed, named = str(refusal.value).split(f" Solvers of {name} that fit a table in partitions: ")
    assert not reads and needed.startswith(f"solver={solver!r} ") and needed.endswith("; it needs a table in memory.")
    assert REASONS[solver] in needed
    for other in fitting(kind):
        reads.clear()
        with pytest.raises(ValueError):  # the table has no records
            made(*case, **given).set_params(solver=other).fit(table)
        assert len(reads) == (repr(other) in named)


def test_a_list_of_solvers_is_that_of_the_problem():
    model = made("DPConstrainedRegression", "accmd", "constrained numbers")
    plan = model._task().plan_of(Facts(N, D))
    assert solvers_in_partitions(plan.problem) == [
        "accmd",
        "frank_wolfe",
        "gd",
        "sgd",
        "svrg",
        "svrg++",
    ]
    pure = made("DPConstrainedRegression", "frank_wolfe", "constrained numbers", delta=0)
    assert solvers_in_partitions(pure._task().plan_of(Facts(N, D)).problem) == ["frank_wolfe"]
