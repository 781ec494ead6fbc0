"""State the versions of the software of a fit, for its report."""

import platform
from importlib import metadata

import numpy as np
import scipy
import sklearn

from skdp._version import __version__


def versions(sampled: bool = False) -> dict[str, str]:
    """Return the versions of the package and of what it rests on; of ``dp_accounting`` if releases read samples."""
    accounting = {"dp_accounting": metadata.version("dp_accounting")} if sampled else {}
    return {
        "skdp": __version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        **accounting,
        "python": platform.python_version(),
    }
