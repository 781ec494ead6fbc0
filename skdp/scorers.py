"""Provide scorers: one raw score per row, and its gradients in the scorer's parameters, as factors."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse

from skdp._validation import refuse_hiding
from skdp.privacy.data.exact_products import products
from skdp.privacy.data.gradient_factors import Factors
from skdp.privacy.data.storage import dense

__all__ = ["LinearScorer", "MLPScorer", "Scored", "Scorer"]


class Scored(ABC):
    """Scores of a batch of rows, and the factors of their gradients.

    Attributes
    ----------
    scores : ndarray of shape (m,)
        One raw score per row.
    """

    scores: np.ndarray

    @abstractmethod
    def gradients(self, residuals: np.ndarray) -> tuple[Factors, ...]:
        """Return the gradients of functions of the scores, in the parameters.

        Parameters
        ----------
        residuals : ndarray of shape (m,)
            Derivative of each row's function in its score.

        Returns
        -------
        tuple of Factors
            One per layer, with the parameters in the order that ``Scorer.n_parameters`` describes.
        """


class Scorer(ABC):
    """A function of a row and of public parameters, whose value does not depend on other rows, to the last bit.

    Rows may be centred and scaled first, by public numbers or earlier releases.

    Parameters
    ----------
    n_features : int
        Number of features.
    centre, scale : ndarray of shape (n_features,) or None, default=None
        The scorer sees ``scale * (x - centre)``. Without centre a sparse table stays sparse.

    Attributes
    ----------
    n_parameters : int
        Number of parameters: per layer the matrix (outputs x inputs, C order), then the biases.
    """

    n_parameters: int

    def __init__(self, n_features: int, centre: np.ndarray | None = None, scale: np.ndarray | None = None) -> None:
        self.n_features, self.centre, self.scale = n_features, _fixed(centre), _fixed(scale)

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_hiding(self, name)
        super().__setattr__(name, value)

    def read(self, rows: Any) -> Any:
        """Return rows as the scorer sees them.

        Parameters
        ----------
        rows : ndarray or CSR of shape (m, n_features)
            Rows in the user's units; they are not changed.

        Returns
        -------
        ndarray or CSR of shape (m, n_features)
            The same object if the scorer has neither centre nor scale; an array if it has a centre.
        """
        if self.centre is not None:
            read = dense(rows) - self.centre
            return read if self.scale is None else np.multiply(read, self.scale, out=read)
        if self.scale is None or not sparse.issparse(rows):
            return rows if self.scale is None else rows * self.scale
        return type(rows)((rows.data * self.scale[rows.indices], rows.indices, rows.indptr), shape=rows.shape)

    @abstractmethod
    def at(self, rows: Any, parameters: np.ndarray) -> Scored:
        """Return the scores of rows.

        Parameters
        ----------
        rows : ndarray or CSR of shape (m, n_features)
            As `read` returned them.
        parameters : ndarray of shape (n_parameters,)
            Parameters at which gradients are taken.

        Returns
        -------
        Scored
            Scores, and their gradients.
        """

    @abstractmethod
    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Return parameters to start from, of shape (n_parameters,).

        Parameters
        ----------
        rng : Generator
            Generator of public choices.

        Returns
        -------
        ndarray of shape (n_parameters,)
            Public numbers.
        """

    @abstractmethod
    def for_rows(self, parameters: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Return parameters of the scorer without centre and scale, with the same scores plus a shift.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            Parameters of this scorer.
        shift : float, default=0.0
            Added to every score.

        Returns
        -------
        ndarray
            Parameters; for a linear scorer, one more entry at the end, the intercept.
        """


class LinearScorer(Scorer):
    """Linear scores ``w^T x``, without intercept, because rankings need none.

    Parameters
    ----------
    n_features : int
        Number of features, and of parameters.
    centre, scale : ndarray of shape (n_features,) or None, default=None
        The scorer sees ``scale * (x - centre)``. Without centre a sparse table stays sparse.
    """

    def __init__(self, n_features: int, centre: np.ndarray | None = None, scale: np.ndarray | None = None) -> None:
        super().__init__(n_features, centre, scale)
        self.n_parameters = n_features

    def at(self, rows: Any, parameters: np.ndarray) -> Scored:
        """Return the scores of rows; see `Scorer.at`."""
        return _Linear(rows, products(rows, parameters[:, None])[:, 0])

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Return zeros of shape (n_parameters,)."""
        return np.zeros(self.n_parameters)

    def for_rows(self, parameters: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Return coefficients for rows in the user's units, then the intercept; see `Scorer.for_rows`."""
        weights = parameters if self.scale is None else parameters * self.scale
        moved = shift if self.centre is None else shift - float(self.centre @ weights)
        return np.append(weights, moved)


class MLPScorer(Scorer):
    """Scores of a network: dense layers with rectified linear units, and one linear output.

    It computes in float64, because the noise must cover the rounding of sums over records, which would be much larger in float32.
    Products of matrices are rounded to a grid, so that they do not depend on the batch (`skdp.minimax.products`).

    Parameters
    ----------
    n_features : int
        Number of inputs.
    hidden_layer_sizes : sequence of int, default=(256, 128)
        Numbers of units, from the first layer on; an empty sequence is a linear scorer with a bias.
    centre, scale : ndarray of shape (n_features,) or None, default=None
        The scorer sees ``scale * (x - centre)``. Without centre a sparse table stays sparse.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Delving Deep into Rectifiers", ICCV 2015, section 2.2: the start.
    """

    def __init__(
        self,
        n_features: int,
        hidden_layer_sizes: Sequence[int] = (256, 128),
        centre: np.ndarray | None = None,
        scale: np.ndarray | None = None,
    ) -> None:
        super().__init__(n_features, centre, scale)
        sizes = (n_features, *hidden_layer_sizes, 1)
        self.shapes = tuple((outputs, inputs) for inputs, outputs in pairwise(sizes))
        self.n_parameters = sum(outputs * (inputs + 1) for outputs, inputs in self.shapes)

    def layers(self, parameters: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return weights and biases of each layer, as views.

        Parameters
        ----------
        parameters : ndarray of shape (n_parameters,)
            All parameters.

        Returns
        -------
        list of (ndarray of shape (outputs, inputs), ndarray of shape (outputs,))
            Weights and biases, from the first layer on.
        """
        layers, first = [], 0
        for outputs, inputs in self.shapes:
            middle, last = first + outputs * inputs, first + outputs * (inputs + 1)
            layers.append((parameters[first:middle].reshape(outputs, inputs), parameters[middle:last]))
            first = last
        return layers

    def at(self, rows: Any, parameters: np.ndarray) -> Scored:
        """Return the scores of rows; see `Scorer.at`."""
        layers, inputs = self.layers(parameters), [rows]
        for weights, biases in layers[:-1]:
            units = products(inputs[-1], weights.T)
            units += biases
            inputs.append(np.maximum(units, 0.0, out=units))
        weights, biases = layers[-1]
        return _Network(inputs, layers, products(inputs[-1], weights.T)[:, 0] + biases[0])

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """Return normal weights of variance 2 over the number of inputs (1 for the output), and biases of zero."""
        parameters = np.zeros(self.n_parameters)
        for number, (weights, _) in enumerate(self.layers(parameters), start=1):
            gain = 2.0 if number < len(self.shapes) else 1.0
            weights[:] = math.sqrt(gain / weights.shape[1]) * rng.standard_normal(weights.shape)
        return parameters

    def for_rows(self, parameters: np.ndarray, shift: float = 0.0) -> np.ndarray:
        """Return parameters of the network for rows in the user's units; see `Scorer.for_rows`."""
        moved = parameters.copy()
        weights, biases = self.layers(moved)[0]
        if self.scale is not None:
            weights *= self.scale
        if self.centre is not None:
            biases -= weights @ self.centre
        moved[-1] += shift
        return moved


@dataclass(frozen=True)
class _Linear(Scored):
    rows: Any
    scores: np.ndarray

    def gradients(self, residuals: np.ndarray) -> tuple[Factors, ...]:
        return (Factors(residuals[:, None], self.rows),)


@dataclass(frozen=True)
class _Network(Scored):
    inputs: list[Any]
    layers: list[tuple[np.ndarray, np.ndarray]]
    scores: np.ndarray

    def gradients(self, residuals: np.ndarray) -> tuple[Factors, ...]:
        # Back-propagation from the output: the gradient of a layer is the error behind it times its inputs; the error before it
        # passes through the weights where its units are active.
        errors, parts = residuals[:, None], []
        for number in range(len(self.layers) - 1, -1, -1):
            parts.append(Factors(errors, self.inputs[number], 1.0))
            if number:
                weights = self.layers[number][0]
                behind = errors * weights if len(weights) == 1 else products(errors, weights)  # with one unit there is no sum
                errors = np.multiply(behind, self.inputs[number] > 0, out=behind)
        return tuple(reversed(parts))


def _fixed(numbers: np.ndarray | None) -> np.ndarray | None:
    """A read-only copy."""
    if numbers is None:
        return None
    own = np.array(numbers, dtype=np.float64)
    own.setflags(write=False)
    return own
