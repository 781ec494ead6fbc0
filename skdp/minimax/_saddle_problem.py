"""Defines the base class of saddle problems, for the package and for your own."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from skdp._validation import refuse_hiding
from skdp.privacy.data.kernels import Batch
from skdp.privacy.queries import SaddlePoint


class SaddleProblem(ABC):
    r"""A saddle problem :math:`\min_w \max_v \frac1n \sum_i f(w, v; z_i) + g(w, v)`, with primal variables w and dual ones v.

    A subclass implements the gradients of f for each record, and overrides the defaults below where it has better ones. It must
    be made of public facts and earlier releases only.

    Attributes
    ----------
    name : str
        Name in reports.
    n_primal, n_dual : int
        Numbers of entries of w and v.
    primal_clip_norm, dual_clip_norm : float
        Default bounds on the norms of one record's gradients.
    difference_slope : float
        Default bound on the change of one record's primal gradient, over the sum of the distances that w and v move: the clip
        norm of differences in "privatediff".
    batch_size : float or None
        Default expected number of records in a sample; None takes all records.
    divisor : float
        Divisor of the sums of gradients besides n, such as the mean weight of a record; step sizes refer to the quotient.
    dual_weights : float or ndarray of shape (n_dual,)
        Public weights of the dual variables' gradients, which multiply the sums after the noise. So clip norms and noise refer to
        gradients without weights.

    See Also
    --------
    check_saddle : Checks a problem on generated records, before a fit.
    skdp.DPMinimax : Estimator for any saddle problem.

    Notes
    -----
    A fit needs no method ``value(batch, primal, dual)``, which returns f of every record as an array of shape (m,). But
    `check_saddle` compares the gradients with finite differences of it, and cannot find a wrong sign without it.

    **Privacy.** The guarantee needs three things from a problem. `read` and `at` compute a record's factors from that record
    alone (see `skdp.minimax.SaddlePoint`). They keep nothing of it. They never raise for an individual record, because a failing
    fit is observable: a record without a gradient gets factors that are not finite, and is left out. The queries compute norms,
    clips, sums and noise.
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

    def __setattr__(self, name: str, value: Any) -> None:
        refuse_hiding(self, name)
        super().__setattr__(name, value)

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
        """Return the batch in the form that `at` takes, such as with scaled rows; both points of a difference share it.

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
            Generator of public choices.

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
            The same: the default has no set.
        dual : ndarray of shape (n_dual,)
            The same.
        """
        return primal, dual

    def public_gradient(self, primal: np.ndarray, dual: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradients of g, the public part of the objective, over the divisor.

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
        """Return the gradient of the L2 penalty at strength 1: the penalised primal variables, and zeros for the others.

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
        """Return a bound on the norm of a record's primal gradient at given dual variables, over the primal clip norm.

        If it is less than 1, the clip norm and the noise shrink by this factor, and the step of the descent is that of a signal
        larger by its reciprocal. A clip norm that the user gave to the solver does not shrink.

        Parameters
        ----------
        dual : ndarray of shape (n_dual,)
            v, an earlier release.

        Returns
        -------
        float
            Positive; 1 by default.
        """
        return 1.0

    def step_sizes(self, signal: float, n_steps: int) -> tuple[float, float]:
        """Return the step sizes of both sides, from public facts.

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
