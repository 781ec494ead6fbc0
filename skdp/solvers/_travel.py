"""How far iterative solvers go by default: as far as the noise that a fit gathers on the way is bearable."""

from skdp.solvers._base import Problem

__all__ = ["bearable_noise"]

TRAVEL = 3.0  # noise of a raw prediction that a fit may gather, before contraction
FAINT = 50.0  # signal-to-noise below which a fit travels less: there even the larger class is hard to tell


def bearable_noise(problem: Problem) -> float:
    """Return the standard deviation of the noise that one raw prediction may gather on the way to a model.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    float
        3 for log-odds; less where the signal is faint.
    """
    return TRAVEL * min(1.0, problem.signal_to_noise / FAINT)
