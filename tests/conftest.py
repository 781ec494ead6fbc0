"""Shared fixtures; seeds are fixed, and every statistical test states its false-alarm rate."""

import gc
import re
from collections import defaultdict
from types import FunctionType

import numpy as np
import pytest
import sklearn
from packaging.version import Version
from pairwise import covering, pairs_of, values_of
from sklearn.base import BaseEstimator

from skdp.privacy import budget

OLD = Version(sklearn.__version__) < Version("1.8")
OWN = re.compile("partitioned_(estimators|report)|in_partitions|boosting_re|additive_tables")  # files of tests
REASON = "NumPy and SciPy alone, which are the newest beside every scikit-learn: once is enough"


@pytest.fixture
def rng():
    return np.random.default_rng(20261120)


@pytest.fixture(autouse=True, scope="session")
def small_tables():
    """Let tests fit tables of a few records with the default delta, which is refused there; tests of that turn it on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budget, "LARGEST_DEFAULT", 1.0)
        yield


def knows_scikit_learn(module):
    """Whether a test module imports an estimator, or anything of scikit-learn's or of the package's top level."""
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, BaseEstimator):
            return True
        name = getattr(thing, "__module__", None) if isinstance(thing, (type, FunctionType)) else getattr(thing, "__name__", None)
        if isinstance(name, str) and (name == "skdp" or name.split(".")[0] == "sklearn"):
            return True
    return False


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without garbage collection, which took a quarter of the time, and spare it the objects, which stay, for good."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# Tests that take more than half a minute each: with them, the slow tier took 16 minutes, and all of the checks nearly 30. Cheaper
# attacks on the same solvers stay in it.
LONGEST = re.compile(r"audits_of_all_solvers.*\[(inference|standardized_gd|frank_wolfe|rescaled_gd|svrg)|many_million")


COVERING = {"each_value": values_of, "each_pair": pairs_of}  # marks of tests with many cases, and what their quick cases cover
PLAIN = (str, int, float, tuple, type(None))  # values that are the same if they are written the same


def slow_cases(items):
    """Cases that their tests do not need for each value, or each pair of values, of the parameters."""
    tests = defaultdict(dict)
    for item in items:
        for mark in COVERING.keys() & {mark.name for mark in item.iter_markers()}:
            values = tuple(repr(value) if isinstance(value, PLAIN) else id(value) for value in item.callspec.params.values())
            tests[mark, item.nodeid.split("[")[0]][values] = item
    for (mark, _), cases in tests.items():
        quick = set(covering(cases, COVERING[mark]))
        yield from (item for values, item in cases.items() if values not in quick)


@pytest.hookimpl(tryfirst=True)  # before cases are deselected by their marks
def pytest_collection_modifyitems(items):
    """What rests on NumPy and SciPy alone is tested once; so are solvers, to which estimators only bring the tables, and tables
    in partitions and trees, which scikit-learn has no part in.

    The longest slow tests are left to the exhaustive tier.
    """
    for item in slow_cases(items):
        item.add_marker(pytest.mark.slow)
    for item in items:
        if item.get_closest_marker("slow") is not None and LONGEST.search(item.nodeid):
            item.add_marker(pytest.mark.exhaustive)
    for item in items:
        place = item.path.as_posix()
        alone = "tests/solvers" in place or ("tests/privacy" in place and not knows_scikit_learn(item.module))
        if OLD and (alone or OWN.search(item.path.name)):
            item.add_marker(pytest.mark.skip(reason=REASON))
