"""What a fit leaves behind does not give its noise again: no seed, no token of a ledger, no state of a generator."""

import gc
import pickle
import sys
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path

import joblib
import numpy as np
import pytest
from places import place_of
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor, StackingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdp
from skdp import DPLinearRegression, DPLogisticRegression, PrivacyLedger
from skdp.data import chunks
from skdp.estimators._base import DPEstimator
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.solvers import SGD, SVRG, GradientDescent

PACKAGE = Path(skdp.__file__).parent
FOLDS = KFold(2)
SOLVERS = {"auto": "auto", "gd": GradientDescent(3), "sgd": SGD(3), "single pass": SGD(2, sampling="single_pass")}


def member(solver="gd", **given):
    return DPLogisticRegression(2.0, delta=1e-6, classes=[0, 1], solver=SOLVERS[solver], **given)


META = {
    "alone": lambda jobs: member(random_state=3),
    "sgd": lambda jobs: member("sgd", random_state=3),
    "single pass": lambda jobs: member("single pass", random_state=3),
    "default": lambda jobs: member("auto", random_state=3),
    "generator": lambda jobs: member(random_state=np.random.default_rng(3)),
    "random state": lambda jobs: member(random_state=np.random.RandomState(3)),
    "pipeline": lambda jobs: make_pipeline(FunctionTransformer(), member(random_state=3)),
    "bagging": lambda jobs: BaggingClassifier(member(), 2, bootstrap=False, n_jobs=jobs, random_state=3),
    "voting": lambda jobs: VotingClassifier([("a", member(random_state=3)), ("b", member("sgd", random_state=3))], n_jobs=jobs),
    "stacking": lambda jobs: StackingClassifier([("a", member(random_state=3))], member(random_state=3), cv=FOLDS, n_jobs=jobs),
    "calibration": lambda jobs: CalibratedClassifierCV(member(random_state=3), cv=FOLDS, n_jobs=jobs),
    "one against the rest": lambda jobs: OneVsRestClassifier(member(random_state=3), n_jobs=jobs),
    "grid search": lambda jobs: GridSearchCV(member(random_state=3), {"alpha": [0.1, 0.2]}, cv=FOLDS, n_jobs=jobs),
    "random search": lambda jobs: RandomizedSearchCV(
        member(random_state=3), {"alpha": [0.1, 0.2, 0.3]}, n_iter=2, cv=FOLDS, n_jobs=jobs, random_state=3
    ),
    "regressors": lambda jobs: BaggingRegressor(
        DPLinearRegression(2.0, delta=1e-6, target_bounds=(0, 1)), 2, bootstrap=False, n_jobs=jobs, random_state=3
    ),
}


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, size=(200, 3))
    return X, (X[:, 0] + 0.3 * rng.normal(size=200) > 0).astype(int)


def parts(thing, seen):
    """Every object that can be reached from one."""
    if id(thing) in seen:
        return
    seen[id(thing)] = thing
    inside = list(vars(thing).values()) if hasattr(thing, "__dict__") and not isinstance(thing, type) else []
    if isinstance(thing, dict):
        inside += [*thing, *thing.values()]
    elif isinstance(thing, (list, tuple, set, frozenset)) or (isinstance(thing, np.ndarray) and thing.dtype.kind in "OiuV"):
        inside += list(np.ravel(thing)) if isinstance(thing, np.ndarray) else list(thing)
    for part in inside:
        parts(part, seen)


def left_behind(model):
    """Every object of a pickle of the model."""
    seen = {}
    parts(pickle.loads(pickle.dumps(model)), seen)
    return list(seen.values())


def fitted_quietly(model, X, y, ledger):
    with warnings.catch_warnings(), ledger:
        warnings.simplefilter("ignore")
        return model.fit(X, y)


@pytest.mark.parametrize("paid, jobs", ((False, 1), (True, 2)), ids=("alone", "ledger and workers"))
@pytest.mark.parametrize("name", META)
def test_nothing_left_behind_reproduces_the_noise(name, paid, jobs, table, tmp_path):
    X, y = table
    ledger = PrivacyLedger(tmp_path / "secret-name.sqlite", epsilon=100.0, delta=1e-3)
    model = fitted_quietly(META[name](jobs), X, y, ledger if paid else nullcontext())
    pickled = pickle.dumps(model)
    for word in (b"secret-name", ledger.token[1].encode()):
        assert word not in pickled
    things = left_behind(model)
    models = [thing for thing in things if isinstance(thing, DPEstimator) and hasattr(thing, "coef_")]
    assert models
    known = [found.coef_ for found in models]
    states = [thing for thing in things if isinstance(thing, (np.random.Generator, np.random.RandomState))]
    seeds = {int(thing) for thing in things if isinstance(thing, (int, np.integer)) and 0 <= thing < 2**32}
    assert name in ("generator", "random state") or 3 in seeds  # the search does find seeds
    for found in models:
        for state in (found.random_state, *sorted(seeds)[:10], *states):
            again = fitted_quietly(clone(found).set_params(random_state=state), X, y, nullcontext())
            assert not any(np.array_equal(again.coef_, coef) for coef in known)


@pytest.mark.parametrize("solver", SOLVERS)
def test_neither_seeds_nor_global_state_repeat_noise(solver, table):
    fits = []
    for state in (0, 0, None, None):
        np.random.seed(0)  # noqa: NPY002
        fits.append(member(solver, random_state=state).fit(*table).coef_)
    assert not any(np.array_equal(one, other) for i, one in enumerate(fits) for other in fits[:i])


def held_in(frame, argument):
    """Values of the variables of a frame, and of what hangs on them if they are things of the package."""
    for value in (*frame.f_locals.values(), argument):
        yield value
        if type(value).__module__.startswith("skdp.") and hasattr(value, "__dict__"):
            yield from vars(value).values()
        elif isinstance(value, (tuple, list)):
            yield from value


def frames_with(keys, fit):
    """Functions of the package that hold one of the keys while a fit runs, in any thread."""
    found = set()

    def watch(frame, event, argument):
        place = place_of(frame.f_code.co_filename) if event in ("call", "return") else None
        if place is not None and any(key in keys for key in held_in(frame, argument) if isinstance(key, bytes)):
            found.add((place, frame.f_code.co_name))

    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        fit()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found


KEYED = {
    "memory": {"privacy/data/training_data.py", "privacy/noise/sampling.py"},
    "partitions": {"privacy/data/", "privacy/noise/", "privacy/engines/", "privacy/queries/", "privacy/oracle.py"},
}


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("where", KEYED)
@pytest.mark.parametrize("solver", (SGD(3), SVRG(n_epochs=1, n_inner=4)), ids=lambda s: s.name)
def test_keys_of_samples_stay_where_samples_are_drawn(solver, where, table, monkeypatch):
    """No other frame holds one, neither of a solver nor of a ledger; what is left behind has none, in any form."""
    keys, draw = [], NoiseSource.key
    monkeypatch.setattr(NoiseSource, "key", lambda source: keys.append(draw(source)) or keys[-1])
    model = DPLogisticRegression(2.0, delta=1e-6, classes=[0, 1], solver=solver)
    given = table if where == "memory" else (chunks(lambda: [table]),)
    found = frames_with(keys, lambda: model.fit(*given))
    assert len(keys) == 3 == len(set(keys))  # none for all records, and none for a difference from the point itself
    assert ("privacy/data/training_data.py", "sampled") in found
    assert {name for name, _ in found if not name.startswith(tuple(KEYED[where]))} == set()
    gc.unfreeze()  # so that caches of modules, which are older, are looked through
    assert [thing for key in keys for thing in gc.get_referrers(key) if thing is not keys] == []
    gc.freeze()
    pickled, report = pickle.dumps(model), model.privacy_report_.to_json()
    assert not any(key in pickled or key.hex() in report or str(key) in report for key in keys)
    model.kept_ = {"deep": [keys[1]]}
    assert keys[1] in pickle.dumps(model)  # the twin: the search does find keys


def test_a_key_that_a_solver_holds_is_seen(table, monkeypatch):
    """The twin: in a variable, or as part of a sample."""
    keys, draw, ask = [], NoiseSource.key, Oracle.ask
    monkeypatch.setattr(NoiseSource, "key", lambda source: keys.append(draw(source)) or keys[-1])
    code = compile("def peek(thing):\n    return thing\n", str(PACKAGE / "solvers" / "_base.py"), "exec")
    scope = {}
    exec(code, scope)
    for wrapped in (lambda rows: keys[-1], lambda rows: rows.sampled(keys[-1], 0.5)):

        def asking(oracle, query, wrapped=wrapped):
            answer = ask(oracle, query)
            scope["peek"](wrapped(oracle._rows))
            return answer

        monkeypatch.setattr(Oracle, "ask", asking)
        found = frames_with(keys, lambda: member("sgd").fit(chunks(lambda: [table])))
        assert ("solvers/_base.py", "peek") in found


def fit_in_worker(model, X, y):
    return model.fit(X, y)


def test_models_that_workers_return_name_no_ledger(table, tmp_path):
    ledger = PrivacyLedger(tmp_path / "secret-name.sqlite", epsilon=100.0, delta=1e-3)
    with ledger:
        models = joblib.Parallel(2)(joblib.delayed(fit_in_worker)(member(), *table) for _ in range(2))
    assert len(ledger.entries) == 2  # and yet they were charged
    assert all(b"secret-name" not in pickle.dumps(model) for model in models)


def test_a_refit_in_the_same_worker_is_charged_too(table, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=100.0, delta=1e-3)
    with ledger:
        joblib.Parallel(2)(joblib.delayed(fit_twice)(member(), *table) for _ in range(2))
    assert len(ledger.entries) == 4


def fit_twice(model, X, y):
    return model.fit(X, y).fit(X, y)


def test_what_is_fitted_already_is_charged_when_it_is_sent_to_be_fitted_again(table, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=100.0, delta=1e-3)
    model = member().fit(*table)
    with ledger:
        joblib.Parallel(2)(joblib.delayed(fit_in_worker)(model, *table) for _ in range(2))
    assert len(ledger.entries) == 2


def test_ledgers_keep_no_seed(table, tmp_path):
    ledger = PrivacyLedger(tmp_path / "ledger.sqlite", epsilon=100.0, delta=1e-3)
    with ledger:
        member(random_state=918273645).fit(*table)
    assert b"918273645" not in (tmp_path / "ledger.sqlite").read_bytes()
