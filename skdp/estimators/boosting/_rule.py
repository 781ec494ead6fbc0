"""Decide from public facts whether trees are worth their noise, how deep they are, and how the budget is shared."""

import math
from dataclasses import dataclass, replace

from skdp.privacy.queries import BinCounts, LeafSums, Loss, ResidualSum, TreeWeight
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.solvers._slope_steps import SlopeSteps

# Signal-to-noise ratio, mu n over the sensitivity, per column (of numbers and of classes) and in all for classes, below which
# there are no trees. On bike, trees lost .11 of R2 between 40 and 100 per column and gained .14 above. Between 40 and 100 they
# gained .02 of AUC on ijcnn1 and .005 on covertype, and lost .002 on adult; at 25 they lost .003 on covertype. In all, they lost
# .017 at 900 on mammography and .0045 +- .0009 at 1522 on adult.
LEAST_OF_NUMBERS, LEAST_PER_COLUMN, LEAST_OF_CLASSES = 100.0, 40.0, 1600.0
# Ratio for each leaf of a tree, and limits of the depth. On covertype, deeper trees gained nothing at this ratio.
PER_LEAF, SHALLOWEST, DEEPEST = 60.0, 2, 10
# Number of trees, and number of records above which there are half as many. At epsilon 1 and 3, 1000 trees in place of 500 gained
# .007 and .002 on bike and .002 and .001 on ijcnn1 for 1.4 times the time, and changed nothing on adult. 2000 gained as much
# again, but the time of predictions is in proportion.
N_TREES, LARGE = 1000, 100_000
# Shares of the squared Gaussian-DP parameter: of counts of bins, of the weight of all trees, and of the additive model. The share
# of the additive model falls with the ratio for classes: where that is small, trees do not repair a poor additive model.
OF_BINS, OF_WEIGHT, OF_NUMBERS, MOST_OF_CLASSES, RATIO_OF_CLASSES = 0.03, 0.04, 0.2, 0.5, 2000.0
# Share for what calibrates the predictions, because leaf sums clip residuals: the mean residual of numbers, whose skewed targets
# are predicted too low, costs with a lognormal law by a fifth; and the slope of scores of classes, which are too sure.
OF_CALIBRATION = 0.01
# Bound on a residual of numbers there, for targets in [-1, 1].
LARGEST_RESIDUAL = 1.0
# Calibration of scores of classes, chosen on adult, ijcnn1, mammography, bank, bike and a made-up table: best slopes .64 to 1.
# An offset in addition, and a second step, gained nothing (docs/defaults.md).
SLOPE = SlopeSteps(OF_CALIBRATION, n_steps=1, mean=0.9, spread=0.15)
USUAL_RESIDUAL = 0.2  # scale of residuals, for targets in [-1, 1], where noise hides it: that of bike; a choice
LARGEST_MU = 2.0  # in the size of a step, which the number of trees limits from there on; a choice


@dataclass(frozen=True)
class Rule:
    """Hold the constants of a fit with trees.

    Parameters
    ----------
    depth : int
        Number of splits of a tree.
    share : float
        Share of the squared Gaussian-DP parameter for the additive model.
    of_residuals : bool
        Whether ``clip``, ``spread`` and ``limit`` are in units of the standard deviation that the additive model leaves.
    clip : float
        Bound on the norm of a residual.
    spread : float
        Standard deviation of the noise of a prediction after all trees, before residuals shrink it, in units of the raw
        prediction.
    curvature : float
        Upper bound on the second derivative of the loss is 1 over this.
    limit : float
        Bound on what trees add to a prediction, where their weight is estimated.
    learns_weights : bool
        Whether columns are drawn by weights that follow from the leaf sums.
    n_trees : int
        Number of trees.
    """

    depth: int
    share: float
    of_residuals: bool
    clip: float
    spread: float
    curvature: float
    limit: float
    learns_weights: bool
    n_trees: int

    def of_records(self, n_samples: int) -> "Rule":
        """Return the constants for a number of records: fewer trees for many, whose passes take time."""
        return self if n_samples <= LARGE else replace(self, n_trees=self.n_trees // 2)

    def in_units(self, residual_scale: float | None) -> "Rule":
        """Return the constants in units of the raw prediction, for residuals of a released scale, or of a usual one."""
        if not self.of_residuals:
            return self
        unit = USUAL_RESIDUAL if residual_scale is None else residual_scale
        return replace(self, of_residuals=False, clip=unit * self.clip, spread=unit * self.spread, limit=unit * self.limit)

    @property
    def share_of_leaves(self) -> float:
        """Share of the squared Gaussian-DP parameter for all leaf sums."""
        return 1 - self.share - OF_BINS - OF_WEIGHT - OF_CALIBRATION

    def releases(self, sizes: tuple[int, ...], loss: Loss) -> Schedule:
        """Return the releases after those of the additive model.

        Parameters
        ----------
        sizes : tuple of int
            Number of bins of each column.
        loss : Loss
            Loss of the raw predictions.

        Returns
        -------
        Schedule
            Counts of bins, leaf sums, the weight of all trees, and what calibrates the predictions.
        """
        bins, weight = BinCounts(sizes), None if self.of_residuals else math.sqrt(2.0) * self.limit
        offset = 1, Release(ResidualSum, Gaussian(1 / math.sqrt(OF_CALIBRATION)), LARGEST_RESIDUAL, loss.n_outputs)
        return Schedule(
            (
                (1, Release(BinCounts, Gaussian(1 / math.sqrt(OF_BINS)), bins.clip_norm, bins.size)),
                (
                    self.n_trees,
                    Release(
                        LeafSums,
                        Gaussian(math.sqrt(self.n_trees / self.share_of_leaves)),
                        None if self.of_residuals else self.clip,
                        loss.n_outputs << self.depth,
                    ),
                ),
                (1, Release(TreeWeight, Gaussian(1 / math.sqrt(OF_WEIGHT)), weight, 2)),
                SLOPE.entry(loss.n_outputs) if loss.targets == "classes" else offset,
            )
        )

    def step(self, signal: float, n_samples: int) -> float:
        """Return the largest step of a tree, for a signal-to-noise ratio mu n over the sensitivity."""
        # Of a leaf with few records, a tree adds the noise step * clip * sqrt(n_trees) / signal to a prediction, and all trees
        # sqrt(n_trees) times that, which is to be `spread`.
        signal = min(signal, LARGEST_MU * n_samples) * math.sqrt(self.share_of_leaves)
        return self.spread * signal / (self.clip * self.n_trees)


def least_ratio(n_columns: int, of_classes: bool) -> float:
    """Return the signal-to-noise ratio from which trees are worth their noise.

    Parameters
    ----------
    n_columns : int
        Number of columns of the table.
    of_classes : bool
        Whether labels are predicted.

    Returns
    -------
    float
        In the units of `Problem.signal_to_noise`.
    """
    return max(LEAST_PER_COLUMN * n_columns, LEAST_OF_CLASSES) if of_classes else LEAST_OF_NUMBERS * n_columns


def rule_of(signal: float, n_columns: int, of_classes: bool) -> Rule | None:
    """Return the constants of a fit; None if trees are not worth their noise.

    Parameters
    ----------
    signal : float
        Signal-to-noise ratio, mu n over the sensitivity relative to ``zero_out``.
    n_columns : int
        Number of columns of the table.
    of_classes : bool
        Whether labels are predicted.

    Returns
    -------
    Rule or None
        From public facts alone.
    """
    if signal < least_ratio(n_columns, of_classes):
        return None
    depth = DEEPEST if math.isinf(signal) else min(max(math.floor(math.log2(signal / PER_LEAF)), SHALLOWEST), DEEPEST)
    if not of_classes:
        # In units of the residuals. Medians of 4 fits with clip norms from .5 to 1 and spreads from .5 to .75 differed by up to
        # .02 of R2 on bike (four targets) and adult (age, hours), and by up to .04 where target_bounds were four times as wide as
        # the targets. There a clip norm of .15 of the range lost .14 to .25 at epsilon 1. One that shrinks as the trees explain
        # more, as the leaf sums tell, gained nothing.
        constants = {"clip": 0.6, "spread": 0.5, "curvature": 1.0, "limit": 2.5}
        return Rule(depth, OF_NUMBERS, of_residuals=True, **constants, learns_weights=True, n_trees=N_TREES)
    share = min(max(RATIO_OF_CLASSES / signal, OF_NUMBERS), MOST_OF_CLASSES)
    constants = {"clip": 0.5, "spread": 2.0, "curvature": 4.0, "limit": 3.0}
    return Rule(depth, share, of_residuals=False, **constants, learns_weights=False, n_trees=N_TREES)
