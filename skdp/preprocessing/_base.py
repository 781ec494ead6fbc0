"""Define the base class of stateless transformers."""

from abc import abstractmethod
from typing import Any

from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin

from skdp._data_validation import read_features
from skdp.preprocessing._lazily import lazily, public_row


@lazily
class StatelessTransformer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of transformers that map each row separately, with public parameters; ``fit`` only checks and stores column names."""

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: ``transform`` works without ``fit``."""
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:
        """Check the parameters and the table, and store the number and the names of the columns.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records.
        y : object, default=None
            Ignored.

        Returns
        -------
        self
            The transformer.
        """
        self._check(self._read(X, reset=True))
        return self

    def transform(self, X: Any) -> Any:
        """Map each row separately.

        Parameters
        ----------
        X : array-like, CSR or CSC of shape (n_samples, n_features)
            Records; not changed.

        Returns
        -------
        ndarray, CSR or CSC of shape (n_samples, n_features)
            The mapped records.
        """
        X = self._read(X, reset=False)
        self._check(X)
        return self._transformed(X)

    def _public_row(self, X: Any) -> Any:
        return public_row(X)

    def _read(self, X: Any, reset: bool) -> Any:
        return read_features(self, X, reset)

    @abstractmethod
    def _check(self, X: Any) -> None:
        """Raise TypeError or ValueError unless the parameters are valid for the table."""

    @abstractmethod
    def _transformed(self, X: Any) -> Any:
        """Return the mapped rows of a checked table."""
