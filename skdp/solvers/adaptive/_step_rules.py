"""Two rules for gradient steps on standardised rows: clipped ones, and ones whose bound needs no clip. Public facts choose."""

import math
from dataclasses import dataclass

from skdp.losses import BoundedProper
from skdp.privacy.queries import Loss

# Signal-to-noise ratio per coefficient, mu n / (k (d + 1)), from which two classes have weighted steps. A bounded unbiased slope
# has a third of the curvature per unit of noise that clipped logistic slopes have where the log-odds are large. On spambase at a
# ratio of 5 to 9 it lost .02 to .03 of AUC. From 50 on, AUC changed by -.0004 to +.0092 in 57 made-up cells (docs/defaults.md).
LEAST_PER_COEFFICIENT = 50.0
# The ratio from which on the clip norm has grown so far that clipped gradients have hardly any bias, and less noise: on five
# made-up families their log loss was .0000 to .0001 lower from 2300 on, and .0000 to .0006 higher at 570 and 810.
MOST_PER_COEFFICIENT = 2000.0
# Smoothness that the mean of a loss with kinks is taken to have. A choice; a larger one makes the steps of hinges shorter.
KINK = 1.0


@dataclass(frozen=True)
class StepRule:
    """Hold the constants of the steps and of the calibration after them.

    Parameters
    ----------
    weighted : bool
        Whether slopes are those of the bounded proper loss, and long rows weigh less; else logistic gradients are clipped.
    clip : float
        Clip norm over the usual norm of a gradient, or largest norm of a row over the usual one from which on it weighs less.
    noise : float
        Noise of a raw prediction that sets the total step length.
    balance : float
        Power of the factor of that noise for unbalanced classes. A rare class has less curvature, so that it needs the path.
    longest_path, longest_step : float
        Largest total step length, and largest step on average.
    calibration_share : float
        Share of the squared Gaussian-DP parameter for slope and offset.
    calibration_noise : float
        Noise of slope and offset that sets the step length of the calibration.
    """

    weighted: bool
    clip: float
    noise: float
    balance: float
    longest_path: float
    longest_step: float
    calibration_share: float
    calibration_noise: float

    def loss_of_steps(self, loss: Loss) -> Loss:
        """Return the loss whose slopes the steps sum."""
        return BoundedProper() if self.weighted else loss


def sharpness(loss: Loss) -> float:
    """Return the smoothness of the mean loss: the kinks of many records, at different margins, add up to a round corner."""
    return loss.smoothness if loss.smoothness < math.inf else KINK


# Half or twice a longest path moved the mean AUC by at most .001, in either rule. A longest step is about the path over 60 steps.
# In order: weighted, clip, noise, balance, longest path and longest step.
CLIPPED = StepRule(False, 0.25, 3.0, 1.0, 1600.0, 27.0, calibration_share=0.05, calibration_noise=0.5)
# Chosen on adult, ijcnn1, mammography and made-up tables; `noise` with bank and covertype in view (docs/defaults.md).
WEIGHTED = StepRule(True, 0.7, 2.0, 0.25, 3400.0, 57.0, calibration_share=0.02, calibration_noise=0.25)
