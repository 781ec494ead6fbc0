"""Defaults that the noise sets: how far iterative solvers go, and where they clip."""

from skdp.solvers._base import Problem

__all__ = ["bearable_noise", "largest_prediction", "noise_limited_clip_norm"]

# noise of a raw prediction that a fit may gather, before contraction: log-odds, or half the range of what is predicted
TRAVEL = {"classes": 3.0, "numbers": 1.0}
FAINT = 50.0  # signal-to-noise below which a fit travels less: there even the larger class is hard to tell
LEAST = 0.5  # clip norm, over the norm of a gradient of the slope that is usual at most, while noise limits the fit
OPENING = {"classes": 1500.0, "numbers": 3000.0}  # signal-to-noise from which on the clip opens


def largest_prediction(problem: Problem) -> float:
    """Return the size that raw predictions usually get.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    float
        3 for classes, 1 for numbers, in units of half their range, or of the threshold of their loss.
    """
    return TRAVEL[problem.loss.targets]


def bearable_noise(problem: Problem) -> float:
    """Return the standard deviation of the noise that one raw prediction may gather on the way to a model.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    float
        3 for log-odds, 1 for numbers, in units of half their range, or of the threshold of their loss; less where the signal is
        faint.
    """
    return largest_prediction(problem) * min(1.0, problem.signal_to_noise / FAINT)


def noise_limited_clip_norm(problem: Problem) -> float:
    """Return a clip norm that costs less by its bias than it saves in noise, and opens as the noise becomes small.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    float
        Half the norm of a gradient of a certain slope: for class labels the largest, for numbers that of a residual of one unit
        (squared errors have twice as much between a prediction and a target at opposite ends of the range; a loss with a kink has
        the largest at every residual). It grows in
        proportion to the signal-to-noise ratio, from 1500 on, or 3000 for numbers, until nothing is clipped.
    """
    loss = problem.loss
    usual = min(1.0, loss.smoothness / loss.lipschitz) if loss.targets == "numbers" else 1.0
    opening = max(problem.signal_to_noise / OPENING[loss.targets], 1.0)
    return min(LEAST * usual * opening, 1.0) * problem.lipschitz
