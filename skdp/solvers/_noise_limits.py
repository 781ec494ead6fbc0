"""Compute the defaults that the noise sets: total step length of iterative solvers, and clip norm."""

from skdp.solvers._base import Problem

# Noise that a raw prediction may gather before contraction, in log-odds for classes, and in half the range of the targets (or
# the threshold of the loss) for numbers. Choices; in "standardized_gd", 1.5 or 6 in place of 3 moved the mean AUC of eight
# tables by at most .01. A larger value means longer paths: less bias and more noise.
TRAVEL = {"classes": 3.0, "numbers": 1.0}
# Signal-to-noise ratio below which the path is shorter, in proportion to it: there noise hides even which class is larger. A
# choice; a larger value shortens the path on more small tables.
FAINT = 50.0
# Clip norm over the norm of a gradient of the usual slope, while noise limits the fit. A choice; a smaller value has less noise
# and more bias.
LEAST = 0.5
# Signal-to-noise ratio from which on the clip norm grows in proportion to the ratio; choices. A larger value clips larger tables.
OPENING = {"classes": 1500.0, "numbers": 3000.0}


def largest_prediction(problem: Problem) -> float:
    """Return the usual size of raw predictions.

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
    """Return the standard deviation of the noise that one raw prediction may gather over all steps.

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
    """Return a clip norm whose bias costs less than the noise that it saves, and which grows as the noise becomes small.

    Parameters
    ----------
    problem : Problem
        Public facts.

    Returns
    -------
    float
        Half the norm of a gradient of the usual slope: for class labels the largest slope, for numbers that of a residual of one
        unit. (The largest slope of squared errors is twice that, between a prediction and a target at opposite ends of the
        range; a loss with a kink has its largest slope at every residual.) The clip norm grows in proportion to the
        signal-to-noise ratio, from 1500 on, or 3000 for numbers, until nothing is clipped.
    """
    loss = problem.loss
    # A residual of one unit has the slope `smoothness` of a smooth loss, and the largest slope of one with a kink.
    usual = min(1.0, loss.smoothness / loss.lipschitz) if loss.targets == "numbers" else 1.0
    opening = max(problem.signal_to_noise / OPENING[loss.targets], 1.0)
    return min(LEAST * usual * opening, 1.0) * problem.lipschitz
