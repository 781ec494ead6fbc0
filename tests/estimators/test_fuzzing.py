"""Hostile parameters and tables: a clean error that quotes no data, or a fit within its budget; nothing else.

Deterministic: hypothesis draws the same examples in every run.
"""

import linecache
import math
import warnings
from fractions import Fraction
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest
from hostile import LABELS, NAN, NUMBERS, OTHERS, SECRET, SECRETS, TABLES, X, y
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from products import KINDS, estimator_of, fitting, labels_of
from scipy import sparse
from seeded import fitted
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning

import skdp
from skdp import DPLogisticRegression
from skdp import _data_validation as _tables
from skdp.constraints import L2Ball
from skdp.estimators._raw_predictions import LARGEST_RAW, raw_predictions
from skdp.estimators._regressor import ROBUST
from skdp.estimators._svm import LOSSES
from skdp.privacy import errors
from skdp.privacy.errors import (
    LowSignalWarning,
    NotPrivateWarning,
    OutsideGuaranteeWarning,
    PrivacyAccountingError,
    TableWarning,
    WeakPrivacyWarning,
)
from skdp.solvers import (
    SGD,
    SGDA,
    SOLVERS,
    GradientDescent,
    RescaledGradientDescent,
    StandardizedGradientDescent,
    WhitenedGradientDescent,
)

CLEAN = (FileNotFoundError, TypeError, ValueError, PrivacyAccountingError)
OURS = (LowSignalWarning, NotPrivateWarning, OutsideGuaranteeWarning, TableWarning, WeakPrivacyWarning, DataConversionWarning)
BEGINNINGS = (  # of our other warnings
    *("The releases", "X has rows that are more than", "X is a data frame whose columns have no strings"),
    *(
        "feature_bounds=",
        "groups=None",
        "target_bounds is not given",
        "Neither threshold nor target_bounds",
        "threshold=",
        "y has more than",
        "X has a column",
    ),
)
PACKAGE = str(Path(skdp.__file__).parent)
FUZZ = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck), "database": None}


def check(call):
    """Call; a failure must be clean, and no message or warning may have data in it. Returns what the call returns, or None."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
        except CLEAN as error:
            result = None
            assert_clean(error)
    for warning in caught:
        assert issubclass(warning.category, OURS) or str(warning.message).startswith(BEGINNINGS), str(warning.message)
        assert not SECRETS.search(str(warning.message)), warning
    return result


def assert_clean(error):
    """The error is raised by the package, in words of ours, and neither it nor what led to it quotes data."""
    link = error.__traceback__
    while link.tb_next is not None:
        link = link.tb_next
    raised_in = link.tb_frame.f_code.co_filename
    line = linecache.getline(raised_in, link.tb_lineno).strip()
    assert raised_in.startswith(PACKAGE) and line.startswith("raise "), f"{raised_in}: {line}: {error!r}"
    seen = []
    while error is not None:
        seen.append(f"{error} {error.args}")
        error = error.__cause__ or error.__context__
    assert not SECRETS.search(" ".join(seen)), seen


def check_fit(estimator, X, y):
    before = dict(vars(estimator))
    model = check(lambda: fitted(estimator, X, y))
    if model is None:
        after = vars(estimator)
        assert after.keys() == before.keys() and all(after[name] is before[name] for name in before)
        return
    for array in numbers_of(model):
        assert array.dtype == np.float64 and np.isfinite(array).all()
    assert_finite_predictions(model)
    assert 0 < model.privacy_spent_.epsilon <= model.epsilon
    assert 0 <= model.privacy_spent_.delta < 1
    assert model.privacy_spent_.delta > 0 or SOLVERS[model.privacy_report_.solver].pure
    n_classes = getattr(model, "classes_", np.empty(0)).size
    if hasattr(model, "coef_"):
        several = hasattr(model, "target_bounds_") and model.coef_.ndim == 2  # a row for each of several targets
        assert several or model.coef_.shape == (*{0: (), 2: (1,)}.get(n_classes, (n_classes,)), width_of(model))
        assert model.coef_.shape[-1] == width_of(model)
    assert not SECRETS.search(model.privacy_report_.to_json())


def width_of(model):
    """Number of coefficients of an output."""
    if hasattr(model, "basis_"):
        return model.basis_.n_features
    return len(model.prepared_features_) if hasattr(model, "schema_") else model.n_features_in_


def numbers_of(model):
    """All released numbers."""
    if hasattr(model, "coefs_"):
        return [*model.coefs_, *model.intercepts_]
    return (model.primal_, model.dual_) if hasattr(model, "primal_") else (model.coef_, model.intercept_)


def assert_finite_predictions(model):
    """A regressor predicts within its bounds, with intervals that are in order, infinite ones for coefficients at worst."""
    if not hasattr(model, "uncertainty_"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about column names
        predictions, intervals = model.predict(np.ones((2, model.n_features_in_)), return_interval=0.9)
    low, high = model.target_bounds_
    assert ((low <= predictions) & (predictions <= high)).all()
    assert ((low <= intervals[:, 0]) & (intervals[:, 0] <= intervals[:, 1]) & (intervals[:, 1] <= high)).all()
    assert (np.diff(model.coef_interval(), axis=1) >= 0).all()


BIG = 1.7e308
FINITE = {  # rows of finite numbers whose products overflow, cancel or vanish
    "float64": np.array(
        [[BIG, -BIG, BIG], [BIG] * 3, [-BIG] * 3, [BIG, 0, -BIG], [5e-324, -5e-324, BIG], [1e200, -1e200, 1.0], [0.0] * 3]
    ),
    "float32": np.array([[3e38, -3e38, 3e38], [3e38] * 3, [-3e38, 1e-45, 0]], dtype=np.float32),
    "int64": np.array([[2**63 - 1, -(2**63), 2**63 - 1], [-(2**63)] * 3]),
}
METHODS = ("decision_function", "predict", "predict_proba", "predict_log_proba", "predict_interval", "explain")
METHODS += ("staged_decision_function", "staged_predict", "staged_predict_proba")


def outputs(model, X):
    """What each method of a fitted model returns for a table, by name."""
    found = {}
    for name in METHODS:
        if hasattr(model, name) and not (name == "predict_interval" and not hasattr(model, "inference_")):
            result = getattr(model, name)(X)
            found[name] = list(result) if name.startswith("staged") else [result]
    if hasattr(model, "uncertainty_"):
        found["return_interval"] = list(model.predict(X, return_interval=0.9))
    return found


@pytest.mark.each_value
@pytest.mark.parametrize(
    "kind, given",
    [(kind, {}) for kinds in KINDS.values() for kind in kinds] + [("binary", {"inference": True, "data_norm": 2.0})],
)
@pytest.mark.filterwarnings("ignore")
def test_predictions_for_finite_rows_are_finite(kind, given):
    """No number is nan or infinite, no row changes the prediction for another one, and NumPy has no reason to warn."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(600, 3))
    numbers = rows.sum(axis=1)
    cuts = {"binary": [0.0], "multinomial": [-0.7, 0.7]}.get(labels_of(kind))
    groups = {"groups": np.arange(600) % 2} if "grouped" in kind else {}
    model = fitted(
        estimator_of(kind, epsilon=50.0, **given), rows, numbers if cuts is None else np.digitize(numbers, cuts), **groups
    )
    if hasattr(model, "coef_") and not hasattr(model, "basis_"):
        model.coef_ *= 1e3
    sparse_ones = {"CSR": sparse.csr_array(FINITE["float64"]), "CSC": sparse.csc_array(FINITE["float32"])}
    for name, table in (FINITE | ({} if hasattr(model, "basis_") else sparse_ones)).items():
        with np.errstate(all="raise", under="ignore"):
            found = outputs(model, table)
        for method, results in found.items():
            for result in results:
                assert np.asarray(result).dtype.kind != "f" or np.isfinite(result).all(), (name, method)
        for place in range(table.shape[0]):
            for method, results in outputs(model, table[[place]]).items():
                for alone, result in zip(results, found[method], strict=True):
                    if result.dtype.kind == "f":
                        np.testing.assert_allclose(result[[place]], alone, rtol=1e-6)
                    else:
                        np.testing.assert_array_equal(result[[place]], alone)


@given(
    hnp.arrays(np.float64, (4, 3), elements=st.floats(allow_nan=False, allow_infinity=False)),
    hnp.arrays(np.float64, (3, 2), elements=st.floats(-1e300, 1e300)),
    st.sampled_from([np.asarray, np.asfortranarray, sparse.csr_array, sparse.csc_array]),
)
@settings(max_examples=40, **FUZZ)
@example(np.full((4, 3), BIG) * [1, -1, 0.5], np.full((3, 2), 6.0), np.asarray)
@example(np.full((4, 3), BIG), np.array([[1 / 3, 6.1], [60.3, 0.7], [-1.1, 6.0]]), np.asarray)
@example(np.full((4, 3), 5e-324), np.full((3, 2), 1e300), np.asarray)
@example(np.full((4, 3), BIG), np.array([[1e300, 5e-324]] * 3), sparse.csr_array)
def test_raw_predictions_are_the_exact_ones(rows, coef, storage):
    """As far as float64 can represent them, of many columns, too: the sign is right also where infinite terms cancel."""
    with np.errstate(all="raise", under="ignore"):
        found = np.stack([raw_predictions(storage(rows), np.tile(coef, n), np.zeros(2 * n))[:, -2:] for n in (1, 3)])
    for n, i, j in np.ndindex(2, 4, 2):
        terms = [Fraction(x) * Fraction(w) for x, w in zip(rows[i].tolist(), coef[:, j].tolist(), strict=True)]
        exact, slack = sum(terms), Fraction(4, 2**52) * sum(map(abs, terms)) + Fraction(1, 10**323)
        low, high = (max(min(end, LARGEST_RAW), -LARGEST_RAW) for end in (exact - slack, exact + slack))
        assert low <= Fraction(found[n, i, j]) <= high


VALUES = [*NUMBERS, *OTHERS]
SENSIBLE = {
    "adjacency": ["replace_one", "zero_out"],
    "privacy_unit": ["record", "person"],
    "solver": ["gd", GradientDescent(2), SGD(2, batch_size=5)],
    "random_state": [0],
    "loss": sorted({"absolute", "squared", *ROBUST, *LOSSES}),
    "link": ["log", "log_count"],
    "scorer": ["linear", "mlp"],
    "interactions": [[(0, 1)], [(0, 0)], [("x0", "x1")], [(0, 9)]],
    "feature_bounds": [{"x0": (0, 1), "x1": (0, 1), "x2": (0, 1)}],
    "hidden_layer_sizes": [(4,), [4, 2]],
    "constraint": ["box", "l1", "l2", "simplex", L2Ball(0.5), L2Ball],
}
NAMES = {kind: list(estimator_of(kind).get_params(deep=False)) for kinds in KINDS.values() for kind in kinds}
FEW = {"n_steps": 2, "n_rounds": 2, "n_epochs": 2, "n_inner": 2, "batch_size": 5}
PAIRS = [
    (name, value)
    for name in dict.fromkeys(name for names in NAMES.values() for name in names)
    for value in [*SENSIBLE.get(name, []), *VALUES]
]
SOLVERS_OF_FEW_STEPS = [
    kind(**{name: value for name, value in FEW.items() if name in kind().get_params()}) for kind in SOLVERS.values()
]


def kind_of(solver):
    """The first kind of problem that a solver fits."""
    kinds = ("binary", "numbers", "constrained numbers", "quantile numbers", "saddle numbers", "ranking binary")
    return next(kind for kind in kinds if fitting(kind, solver))


@pytest.fixture(autouse=True)
def no_output(capsys):
    """Progress lines of verbose=1 are dropped, after a look for data."""
    yield
    assert not SECRETS.search(capsys.readouterr().out)


def fit_of(solver, kind=None, /, **parameters):
    kind = kind or kind_of(solver)
    enough = (
        {"epsilon": 100.0} if kind in ("numbers", "quantile numbers") else {}
    )  # for more than a mean to be estimated from 24 records
    return estimator_of(kind, **{"solver": solver, **enough, **parameters})


def in_turn(solver):
    """A part of the parameters of the estimator that goes with a solver, so that each parameter is tried with one of them."""
    kind = kind_of(solver)
    alike = [other for other in SOLVERS_OF_FEW_STEPS if kind_of(other) == kind]
    return NAMES[kind][alike.index(solver) :: len(alike)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver, name",
    [pytest.param(solver, name, id=f"{solver.name}-{name}") for solver in SOLVERS_OF_FEW_STEPS for name in in_turn(solver)],
)
def test_every_value_of_every_parameter(name, solver):
    """Every parameter of an estimator with one of its solvers: most are checked before a solver is asked."""
    for value in [*SENSIBLE.get(name, []), *VALUES]:
        check_fit(fit_of(solver, **{name: value}), X, y)
        check_plan(fit_of(solver, **{name: value}))


FIRST = (GradientDescent(2), StandardizedGradientDescent(2), WhitenedGradientDescent(2), SGDA(2))
OTHER_KINDS = [
    (next(solver for solver in FIRST if fitting(kind, solver)), kind)
    for kind in NAMES
    if kind not in ("binary", "multinomial", "numbers")
]
OWN = (
    "loss",
    "link",
    "threshold",
    "target_bounds",
    "constraint",
    "radius",
    "fit_intercept",
)  # seen by the estimator, not by the solver
OWN += ("feature_bounds", "interactions", "knots")
OWN += ("saddle", "scorer", "hidden_layer_sizes", "positive_rate", "class_balance")
OWN_OF_OTHERS = [(*other, name) for other in OTHER_KINDS for name in OWN if name in NAMES[other[1]]]


@pytest.mark.each_value
@pytest.mark.parametrize("solver, kind, name", OWN_OF_OTHERS, ids=lambda value: getattr(value, "name", value))
def test_every_value_of_the_parameters_of_other_estimators(solver, kind, name):
    for value in [*SENSIBLE.get(name, []), *VALUES]:
        check_fit(fit_of(solver, kind, **{name: value}), X, y)
        check_plan(fit_of(solver, kind, **{name: value}))


@pytest.mark.exhaustive
@pytest.mark.slow
@settings(max_examples=500, **FUZZ)
@given(
    st.lists(st.sampled_from(PAIRS), max_size=4),
    st.sampled_from([(solver, kind_of(solver)) for solver in SOLVERS_OF_FEW_STEPS] + OTHER_KINDS),
    st.sampled_from([y, y > 0, np.arange(24) % 3]),
)
def test_parameters_together(pairs, problem, labels):
    solver, kind = problem
    check_fit(fit_of(solver, kind, **{name: value for name, value in pairs if name in NAMES[kind]}), X, labels)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS_OF_FEW_STEPS, ids=lambda solver: solver.name)
def test_every_value_of_every_parameter_of_a_solver(solver):
    for name in solver.get_params():
        for value in VALUES:
            check_fit(fit_of(clone(solver).set_params(**{name: value})), X, y)


@pytest.mark.exhaustive
@settings(max_examples=200, **FUZZ)
@given(
    st.sampled_from(SOLVERS_OF_FEW_STEPS),
    st.dictionaries(
        st.sampled_from(
            ["n_steps", "n_inner", "step_size", "momentum", "tail_average", "output", "batch_size", "difference_clip"]
        ),
        st.sampled_from(VALUES),
    ),
    st.sampled_from([1e-50, 1.0, 1e50]),
)
@example(GradientDescent(), {"n_steps": 1, "step_size": 1e250}, 1e50)  # finite but for the intercept's constant
def test_parameters_of_a_solver_together(solver, chosen, scale):
    chosen = {name: value for name, value in chosen.items() if name in solver.get_params()}
    given = {"intercept_scaling": scale} if "intercept_scaling" in NAMES[kind_of(solver)] else {}
    check_fit(fit_of(clone(solver).set_params(**chosen), **given), X, y)


def check_plan(estimator, *shape):
    report = check(lambda: estimator.plan(*(shape or (1000, 3))))
    if report is not None:
        assert 0 < report.spent.epsilon <= estimator.epsilon
        assert 0 <= report.spent.delta <= 0.5
        assert report.spent.delta > 0 or SOLVERS[report.solver].pure
        assert all(line.in_words or 0 <= line.noise_multiplier < math.inf for line in report.releases)


any_budget = given(
    epsilon=st.floats() | st.sampled_from([1e-320, 1e-12, 1e-6, 1e-3, 1.0, 5.0, 11.0, 100.0, 1e6, math.inf]),
    delta=st.floats() | st.sampled_from([None, 5e-324, 1e-300, 1e-100, 1e-12, 1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0]),
    adjacency=st.sampled_from(["replace_one", "zero_out"]),
    solver=st.sampled_from(SOLVERS_OF_FEW_STEPS),
)


@pytest.mark.exhaustive
@settings(max_examples=60, **FUZZ)
@any_budget
def test_budgets(epsilon, delta, adjacency, solver):
    check_plan(fit_of(solver, epsilon=epsilon, delta=delta, adjacency=adjacency))


@pytest.mark.exhaustive
@pytest.mark.slow
@settings(max_examples=500, **FUZZ)
@any_budget
def test_many_budgets(epsilon, delta, adjacency, solver):
    check_plan(fit_of(solver, epsilon=epsilon, delta=delta, adjacency=adjacency))


COUNTS = [-1, 0, 1, 2, 3, 10**6, 2**53, 2**53 + 1, 10**400, NAN, 2.0, True, "2", None, np.int8(3), np.uint64(2**64 - 1), X]


@pytest.mark.slow
@settings(max_examples=200, **FUZZ)
@given(*[st.sampled_from([*COUNTS, 2**22, 2**22 + 1])] * 2, st.sampled_from([2, 2, 2, *COUNTS]))
def test_shapes_of_a_plan(n_samples, n_features, n_classes):
    check_plan(fit_of(GradientDescent(2)), n_samples, n_features, n_classes)


@pytest.mark.slow
@pytest.mark.parametrize(
    "solver, given",
    [
        pytest.param(solver, given, id=f"{solver.name}-{given}")
        for solver, classes in zip(SOLVERS_OF_FEW_STEPS, cycle([{}, {"classes": [0, 1]}, {"classes": ["a", "b"]}]))
        for given in [classes if labels_of(kind_of(solver)) == "binary" else {}]
    ],
)
def test_every_table_and_every_label(solver, given):
    codes = np.array(["a", "b"])[y] if "a" in given.get("classes", ()) else y
    for table in TABLES.values():
        shape = getattr(table, "shape", None) or (24,)
        check_fit(fit_of(solver, **given), table, codes[: shape[0]] if shape[0] < 24 else codes)
    for labels in LABELS.values():
        check_fit(fit_of(solver, **given), X, labels)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ("huber", "welsch", "tukey", "cauchy"))
def test_every_target_without_bounds(loss):
    """Targets of 1e300 are behind the oracle as the largest that float64 can square."""
    for labels in LABELS.values():
        check_fit(fit_of(GradientDescent(2), "robust numbers", loss=loss, threshold=1e-30), X, labels)


@pytest.mark.slow
@pytest.mark.parametrize("bounds", (None, (0, 1)))
def test_every_target_of_a_quantile(bounds):
    for labels in LABELS.values():
        check_fit(fit_of(RescaledGradientDescent(2), target_bounds=bounds), X, labels)


@pytest.mark.exhaustive
@settings(max_examples=200, **FUZZ)
@given(st.sampled_from(list(TABLES)), st.sampled_from(list(LABELS)), st.sampled_from([None, [0, 1], [0, "a"], [False, True]]))
def test_tables_with_labels(table, labels, classes):
    check_fit(fit_of(GradientDescent(2), classes=classes), TABLES[table], LABELS[labels])


@pytest.mark.exhaustive
@settings(max_examples=200, **FUZZ)
@given(
    hnp.arrays(hnp.scalar_dtypes() | st.just(np.dtype(object)), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)),
    hnp.arrays(hnp.scalar_dtypes(), st.integers(0, 6)),
)
def test_arrays_of_any_kind(table, labels):
    check_fit(fit_of(GradientDescent(2)), table, labels)


@pytest.mark.parametrize("fails", (lambda: X @ X, lambda: int("31415"[:2] + "x"), lambda: np.zeros(3)[7:].max()))
def test_a_foreign_error_is_no_clean_one(fails):
    """The twin of the check: other libraries' words, and our own with data in them, are seen."""
    with pytest.raises(AssertionError):
        check(fails)


@pytest.mark.parametrize("spoil", ("coef", "epsilon", "attribute", "message", "warning", "context"))
def test_an_unclean_fit_is_seen(spoil, monkeypatch):
    """The twin: a model that is not finite or over its budget, a trace of a failed fit, data in a message, a warning, a cause."""
    model = fit_of(GradientDescent(2))
    fit = DPLogisticRegression.fit

    def spoilt(self, X, y):
        if spoil == "attribute":
            self.half_done_ = 1
            return fit(self, X[:1], y)
        if spoil == "warning":
            errors.warn(f"a value of {SECRET}", WeakPrivacyWarning)
        if spoil == "message":
            return _tables.quoting_no_data(X, lambda: int("secret")) or fit(self, X, y)
        if spoil == "context":
            try:
                raise KeyError("secret")
            except KeyError:
                return fit(self, X[:1], y)
        fit(self, X, y)
        if spoil == "coef":
            self.coef_[0, 0] = NAN
        if spoil == "epsilon":
            self.privacy_spent_ = self.privacy_spent_._replace(epsilon=1.01)
        return self

    monkeypatch.setattr(DPLogisticRegression, "fit", spoilt)
    if spoil == "message":
        monkeypatch.setattr(_tables, "_safe", lambda error, X: ValueError(str(error)))
    with pytest.raises(AssertionError):
        check_fit(model, X, y)
