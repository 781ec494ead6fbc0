"""What a saddle problem is, for those who bring their own."""

from abc import ABC, abstractmethod

import numpy as np

from skdp.privacy.data.kernels import Batch
from skdp.privacy.queries import SaddlePoint

__all__ = ["SaddleProblem"]


class SaddleProblem(ABC):
    r"""A saddle problem :math:`\min_w \max_v \frac1n \sum_i f(w, v; z_i) + g(w, v)`, with primal variables w and dual ones v.

    A derived class says what the gradients of f are, record by record, and overrides what it has better defaults for. All of it
    is public: it must be made of public facts and earlier releases only.

    Attributes
    ----------
    name : str
        As reports give it.
    n_primal, n_dual : int
        Numbers of entries of w and v.
    primal_clip_norm, dual_clip_norm : float
        Bounds on the norms of one record's gradients for clip norms that are left out.
    difference_slope : float
        How far one record's primal gradient may change, over the sum of the distances that w and v move: what "privatediff" clips
        differences to.
    batch_size : float or None
        Expected number of records in a sample for one that is left out; None takes all records.
    divisor : float
        What sums of gradients are divided by beside n, such as the mean weight of a record: the steps refer to that.
    dual_weights : float or ndarray of shape (n_dual,)
        Public weights of the dual variables' gradients where records have none of them: sums are multiplied by them after the
        noise, so that records are clipped, and noise is added, without them.

    See Also
    --------
    check_saddle : What to run before a fit, on made-up records.
    skdp.DPMinimax : The estimator.

    Notes
    -----
    A method ``value(batch, primal, dual)`` that gives f of every record, in an array of shape (m,), is not needed for a fit;
    `check_saddle` compares the gradients with finite differences of it, and cannot find a wrong sign without.

    **Privacy.** The guarantee rests on what a problem must keep to: `read` and `at` work out a record's factors from that record
    alone (see `skdp.minimax.SaddlePoint`), keep nothing of it, and raise an error for no record, since that a fit fails is seen:
    a record without a gradient gets factors that are not finite, and is left out. Norms, clipping, sums and noise are the
    queries' own.
    """

    name: str = "saddle problem"
    n_primal: int
    n_dual: int
    primal_clip_norm: float = 1.0
    dual_clip_norm: float = 1.0
    difference_slope: float = 1.0
    batch_size: float | None = None
    divisor: float = 1.0
    dual_weights: "float | np.ndarray" = 1.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @abstractmethod
    def at(self, batch: Batch, primal: np.ndarray, dual: np.ndarray) -> SaddlePoint:
        """Return the gradients of ``f(w, v; z)`` of the records of a batch, as factors.

        Parameters
        ----------
        batch : Batch
            As `read` returned it.
        primal : ndarray of shape (n_primal,)
            w.
        dual : ndarray of shape (n_dual,)
            v.

        Returns
        -------
        SaddlePoint
            ``primal()`` and ``dual()`` give sequences of `Factors`.
        """

    def read(self, batch: Batch) -> Batch:
        """Return the batch as `at` wants it, such as with scaled rows; what two points of a difference share.

        Parameters
        ----------
        batch : Batch
            Rows clipped to the data norm.

        Returns
        -------
        Batch
            The same.
        """
        return batch

    def start(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Return the variables to start from.

        Parameters
        ----------
        rng : Generator
            For public choices.

        Returns
        -------
        primal : ndarray of shape (n_primal,)
            Zeros.
        dual : ndarray of shape (n_dual,)
            Zeros.
        """
        return np.zeros(self.n_primal), np.zeros(self.n_dual)

    def project(self, primal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest variables within public sets.

        Parameters
        ----------
        primal : ndarray of shape (n_primal,)
            w.
        dual : ndarray of shape (n_dual,)
            v.

        Returns
        -------
        primal : ndarray of shape (n_primal,)
            The same: no set.
        dual : ndarray of shape (n_dual,)
            The same.
        """
        return primal, dual

    def public_gradient(self, primal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of g, the part of the objective that no record enters, over the divisor.

        Parameters
        ----------
        primal : ndarray of shape (n_primal,)
            w.
        dual : ndarray of shape (n_dual,)
            v.

        Returns
        -------
        primal : ndarray of shape (n_primal,)
            Zeros.
        dual : ndarray of shape (n_dual,)
            Zeros.
        """
        return np.zeros(self.n_primal), np.zeros(self.n_dual)

    def penalized(self, primal: np.ndarray) -> np.ndarray:
        """Return the primal variables that an L2 penalty is on, zeros for the others: the gradient of half their squared norm.

        Parameters
        ----------
        primal : ndarray of shape (n_primal,)
            w.

        Returns
        -------
        ndarray of shape (n_primal,)
            All of them.
        """
        return primal

    def primal_reach(self, dual: np.ndarray) -> float:
        """Return how long primal gradients of a record may be at given dual variables, over the primal clip norm.

        Where that is known to be less than 1, the clip norm, and with it the noise, is as much smaller, and the step of the
        descent is that of a signal as much larger. A clip norm that the solver was given is taken as it is.

        Parameters
        ----------
        dual : ndarray of shape (n_dual,)
            v, an earlier release.

        Returns
        -------
        float
            1; positive.
        """
        return 1.0

    def step_sizes(self, signal: float, n_steps: int) -> tuple[float, float]:
        """Return the steps of both sides, from public facts.

        Parameters
        ----------
        signal : float
            Signal-to-noise ratio of the primal releases together, ``mu n / k``: the noise of the average of the primal gradients
            of all steps has a standard deviation of ``primal_clip_norm / (divisor * signal)`` per coordinate. ``inf`` without
            noise.
        n_steps : int
            Number of primal steps.

        Returns
        -------
        primal : float
            Step of the descent.
        dual : float
            Step of the ascent.
        """
        return 0.1, 0.1
