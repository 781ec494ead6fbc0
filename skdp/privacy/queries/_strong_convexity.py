"""Bound the minimum of a strongly convex sum, and the error with which float64 finds it, from public facts."""

import math
from dataclasses import dataclass, replace

from skdp.privacy.data.summation import summation_error
from skdp.privacy.noise.gaussian import RELATIVE_SLACK

ROUNDOFF = 2.0**-53  # largest relative error of one rounding in float64

# Norm of the gradient at which a search for the minimum ends, relative to the largest float64 error of that gradient. A choice
# (see docs/proofs/objective.md). A larger number ends the search earlier and needs more noise on the result.
MARGIN = 1000.0


@dataclass(frozen=True)
class Minimization:
    r"""Hold public facts of :math:`J(w) = \sum_i \ell_i(w) + \Lambda/2 \|w\|^2 + b^\top w`.

    Every :math:`\ell_i` is a convex, non-negative function of one raw prediction, with a clipped gradient.

    Parameters
    ----------
    n_samples : int
        Number of records.
    size : int
        Number of coordinates of w.
    clip_norm : float
        Bound C on the norm of one record's gradient.
    smoothness : float
        Lipschitz constant of one record's gradient.
    strength : float
        The constant :math:`\Lambda`, positive.
    value : float
        Bound on one record's loss at w = 0.
    one_sided : bool
        Whether the derivative in the raw prediction has a fixed sign for each label.
    tilt : float, default=0.0
        Bound on the norm of b.
    tilt_error : float, default=0.0
        Bound on the distance between b as computed and real-valued noise.
    """

    n_samples: int
    size: int
    clip_norm: float
    smoothness: float
    strength: float
    value: float
    one_sided: bool
    tilt: float = 0.0
    tilt_error: float = 0.0

    @property
    def log_determinant(self) -> float:
        """Bound on the change of the log-determinant of the Hessian by one record."""
        return self.log_determinant_of("record")

    def log_determinant_of(self, unit: str) -> float:
        r"""Return the bound on the change of the log-determinant of the Hessian by one record, or by one person.

        *Proof for persons.* A person adds a matrix B, positive semidefinite with a trace of at most :math:`\beta`. With
        :math:`H \succeq \Lambda I` and :math:`M = H^{-1/2} B H^{-1/2}`, :math:`\log \det(H + B) - \log \det H = \log
        \det(I + M) \le \operatorname{tr} M \le \beta / \Lambda`. For a record B has rank one, and the logarithm is that of
        :math:`1 + \beta / \Lambda`.
        """
        ratio = self.smoothness * (1 + 2 * RELATIVE_SLACK) / self.strength
        return math.log1p(ratio) if unit == "record" else ratio

    @property
    def largest(self) -> float:
        r"""Bound W on the norm of the minimum.

        :math:`J(w) \le J(0)` and non-negative losses give :math:`\Lambda/2 \|w\|^2 - \|b\| \|w\| \le n v`, where v bounds one
        loss at 0. That the gradient at the minimum is 0 gives the other bound.
        """
        tilt = self.tilt / self.strength
        by_value = tilt + math.sqrt(tilt**2 + 2 * self.n_samples * self.value / self.strength)
        return min(by_value, self.n_samples * self.clip_norm / self.strength + tilt)

    @property
    def gradient_error(self) -> float:
        """Bound on the norm of the float64 error of the gradient of J at every w of norm at most 2 W."""
        return self._error(2 * self.largest)

    @property
    def precision(self) -> float:
        r"""Norm :math:`\tau` of the gradient at which the search ends: 1000 times its float64 error.

        A point whose computed gradient is shorter than :math:`(1 - 1/1000) \tau` has a true gradient shorter than :math:`\tau`.
        For norms up to 2 W that follows from the definition. Further out the true gradient is so long that the computed one is
        never shorter than :math:`\tau`.

        Raises
        ------
        ValueError
            If the last sentence does not hold, because the penalty is too weak compared with the rounding of all the records.
        """
        if not self._attainable:
            stronger = (replace(self, strength=self.strength * 2.0**power) for power in range(200))
            enough = next((facts.strength / self.n_samples for facts in stronger if facts._attainable), None)
            expected = "fewer of them" if enough is None else f"at least {enough:.17g}"
            raise ValueError(
                f"alpha={self.strength / self.n_samples:.3g} is too small or too large for float64 to find the minimum over "
                f"{self.n_samples} records; expected {expected}."
            )
        return MARGIN * self.gradient_error

    @property
    def _attainable(self) -> bool:
        error = MARGIN * self.gradient_error
        return 4 * error <= self.strength * self.largest and 4 * self._error(1.0) <= self.strength < math.inf

    def _error(self, norm: float) -> float:
        """Return a bound on the float64 error of the gradient at every w of the given norm."""
        # Rounding of residuals; of raw predictions, which the slope passes on; of the sum; and of the terms without records.
        by_records = self.n_samples * (
            self.clip_norm * 24 * ROUNDOFF + self.smoothness * (self.size + 8) * ROUNDOFF * norm  # residuals; raw predictions
        )
        by_sum = summation_error(self.n_samples, by_column=False) * self.clip_norm
        return by_records + by_sum + 8 * ROUNDOFF * (self.strength * norm + self.tilt) + self.tilt_error
