"""What rests on NumPy and SciPy alone is tested once, with the newest scikit-learn."""

from types import FunctionType

import pytest
import sklearn
from packaging.version import Version
from sklearn.base import BaseEstimator

OLD = Version(sklearn.__version__) < Version("1.8")
REASON = "NumPy and SciPy alone, which are the newest beside every scikit-learn: once is enough"


def knows_scikit_learn(module):
    """Whether a test module imports an estimator, or anything of scikit-learn's or of the package's top level."""
    for thing in vars(module).values():
        if isinstance(thing, type) and issubclass(thing, BaseEstimator):
            return True
        name = getattr(thing, "__module__", None) if isinstance(thing, (type, FunctionType)) else getattr(thing, "__name__", None)
        if isinstance(name, str) and (name == "skdp" or name.split(".")[0] == "sklearn"):
            return True
    return False


def pytest_collection_modifyitems(items):
    for item in items:
        if OLD and "tests/privacy" in item.path.as_posix() and not knows_scikit_learn(item.module):
            item.add_marker(pytest.mark.skip(reason=REASON))
