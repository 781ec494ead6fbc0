"""Divide the budget of a search among trials and the refit, from public facts."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

from skdp.metrics._definition import ClassMetric
from skdp.metrics._metrics import CLASSIFICATION
from skdp.metrics._score_kinds import USUAL_AUC, score_noise
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.accounting.random_stopping import stopping_epsilon, stopping_mu
from skdp.privacy.budget import Budget
from skdp.privacy.ledger.entries import Spending
from skdp.privacy.release_plan import Cost
from skdp.privacy.report.statement import ESTIMAND, OTHER_FITS, PrivacyReport, PrivacySpent, ReleaseLine, assumed_of

COMPOSITION, STOPPING = "composition", "random_stopping"
REFIT = 0.5  # share of the squared Gaussian-DP parameter that a refit gets: half, by the design note of private metrics
# Largest number of candidates that are all tried and scored by default. Then a trial and a refit have a good part of the budget.
FEW = 3
SLACK = 1e-8  # relative amount by which parts are rounded down: above the rounding of the conversions between epsilon and mu
LEAST = 1e-4  # Gaussian-DP parameter of a trial below which nothing is learned from it, and its epsilon has few digits
# Standard deviation of a score's noise from which a search is likely to choose at random: most candidates differ by less. A
# choice, the same for all scores.
UNCLEAR = 0.05
RARE = 0.1  # share of a rare class, for which the noise of the area under the ROC curve is stated, too
ORDERED = {  # what the division of the records assumes; the order of persons is secret
    "record": ("records are assigned to the two parts by a random permutation; their order does not depend on their values",),
    "person": (),
}
TITLES = {
    COMPOSITION: "every candidate is tried once, and every score is released",
    STOPPING: "a secret random number of candidates is tried, and only the best one is released",
}


@dataclass(frozen=True)
class SearchPlan:
    """State what a search costs. All follows from public facts.

    Parameters
    ----------
    mechanism : {"composition", "random_stopping"}
        How the candidates share the budget.
    budget : Budget
        What all fits, scores and the refit spend together.
    n_candidates : int
        Number of different candidates.
    mean_trials : float
        Mean number of trials.
    n_train, n_validation : int
        Numbers of records, or of persons, that trials are fitted and scored on.
    refit : bool
        Whether the chosen candidate is fitted once more, on all records.
    mu_trial, mu_refit : float
        Gaussian-DP parameters of a trial and of the refit; 0 without refit.
    same_kind : bool
        Whether all candidates are of one class.
    metric : str
        What candidates are compared by.
    """

    mechanism: str
    budget: Budget
    n_candidates: int
    mean_trials: float
    n_train: int
    n_validation: int
    refit: bool
    mu_trial: float
    mu_refit: float
    same_kind: bool
    metric: str

    @classmethod
    def make(
        cls,
        budget: Budget,
        n_candidates: int,
        mean_trials: float,
        sizes: tuple[int, int],
        mechanism: str,
        refit: bool | str,
        same_kind: bool,
        metric: str,
    ) -> "SearchPlan":
        r"""Divide the budget.

        Parameters
        ----------
        budget : Budget
            Budget of the search.
        n_candidates : int
            Number of candidates.
        mean_trials : float
            Mean number of trials, for random stopping.
        sizes : tuple of int
            Numbers of records for fits and for scores.
        mechanism : {"auto", "composition", "random_stopping"}
            How the candidates share the budget.
        refit : bool or "auto"
            Whether the chosen candidate is fitted once more.
        same_kind : bool
            Whether all candidates are of one class.
        metric : str
            What candidates are compared by.

        Returns
        -------
        SearchPlan
            The plan.

        Raises
        ------
        ValueError
            If the budget is too small for so many candidates.

        Notes
        -----
        **Privacy.** *A trial.* The records are divided into two parts by a random permutation that does not depend on them, so
        that neighbours differ in one record of one part. If it is in the part for fits, the score is post-processing of a fit;
        if it is in the part for scores, the fit has the same distribution for both. So a trial of a fit and a score that are
        each :math:`\mu`-GDP is :math:`\mu`-GDP, and k trials are :math:`\sqrt k\mu`-GDP, also if each depends on the results of
        earlier ones.

        *Persons.* A secret order of the persons, of which all are equally likely, divides them, whatever their ids and their
        numbers of rows are. So the same holds for neighbours that differ in one person.

        *Composition.* With a refit on all records, :math:`k\mu^2 + \mu_r^2` is the square of the parameter of the budget. The
        choice is post-processing of released scores.

        *Random stopping.* ``skdp.privacy.accounting.random_stopping`` has the bound.
        """
        chosen = (COMPOSITION if n_candidates <= FEW else STOPPING) if mechanism == "auto" else mechanism
        again = chosen == COMPOSITION if refit == "auto" else bool(refit)
        whole = gaussian_mu(budget.epsilon, budget.delta)
        of_refit = whole * math.sqrt(REFIT) * (1 - SLACK) if again else 0.0
        if chosen == COMPOSITION:
            of_trial = whole * math.sqrt((1 - REFIT * again) / n_candidates) * (1 - SLACK)
        else:
            of_trial = stopping_mu(budget.epsilon, float(mean_trials), budget.delta, of_refit) * (1 - SLACK)
        mean = n_candidates if chosen == COMPOSITION else mean_trials
        plan = cls(chosen, budget, n_candidates, float(mean), *sizes, again, of_trial, of_refit, same_kind, metric)
        if of_trial < LEAST or not plan.epsilon_trial > 0:
            raise ValueError(
                f"epsilon={budget.epsilon:g} is too small for a search over {n_candidates} candidates; expected a larger epsilon "
                "or fewer candidates."
            )
        return plan

    @property
    def n_units(self) -> int:
        """Number of records, or of persons."""
        return self.n_train + self.n_validation

    @property
    def epsilon_trial(self) -> float:
        """Epsilon of the fit, and of the score, of one trial."""
        return self._epsilon(self.mu_trial)

    @property
    def epsilon_refit(self) -> float:
        """Epsilon of the refit; 0 without one."""
        return self._epsilon(self.mu_refit)

    @property
    def cost(self) -> Cost:
        """What the search costs: Gaussian releases for composition; for random stopping the guarantee alone."""
        secret = "" if self.mechanism == COMPOSITION else " in the mean, of which the best one is released"
        words = f"a fit and a score, each at epsilon {self.epsilon_trial:.4g}{secret}"
        trial = ReleaseLine("Trial", "Search", round(self.mean_trials), None, None, 0.0, 1.0, words)
        again = ReleaseLine(
            "Refit", "Search", 1, None, None, 0.0, 1.0, f"on all {self._units}, at epsilon {self.epsilon_refit:.4g}"
        )
        lines = (trial, again) if self.refit else (trial,)
        if self.mechanism == COMPOSITION:
            mu = math.hypot(math.sqrt(self.n_candidates) * self.mu_trial, self.mu_refit)
            return Cost.gaussian(self.budget, lines, mu**2)
        facts = (self.mu_trial, self.mean_trials, self.budget.delta, self.mu_refit)
        return Cost(self.budget, lines, stopping_epsilon(*facts) if self.budget.private else math.inf, None)

    @property
    def spent(self) -> PrivacySpent:
        """What the search spends."""
        return self.cost.spent

    @cached_property
    def score_noise(self) -> float:
        """Standard deviation of the noise of the score of one trial; an area under the ROC curve is of classes of equal size."""
        return self._score_noise(0.5)

    def _score_noise(self, rate: float) -> float:
        return score_noise(self._score, self.n_validation, replace(self.budget, epsilon=self.epsilon_trial), rate)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons why the search is not likely to pay; empty without one."""
        found = []
        if self.n_candidates == 1:
            found.append("There is one candidate: fit it with the whole budget")
        if self.score_noise >= UNCLEAR:
            found.append(
                f"The noise of a score, {self._of_score}, has a standard deviation of {self.score_noise:.2g}: the search chooses "
                f"nearly at random. Use more {self._units}, a larger epsilon or fewer candidates"
            )
        return tuple(found)

    @property
    def _of_score(self) -> str:
        """What the noise of a score is stated for."""
        simulated = "" if self._score.loss is not None else f" of {USUAL_AUC:g} with classes of equal size"
        return f"{self._score.title}{simulated}"

    @property
    def _units(self) -> str:
        return f"{self.budget.unit}s"

    @property
    def _score(self) -> ClassMetric:
        return CLASSIFICATION[self.metric]

    def _epsilon(self, mu: float) -> float:
        return gaussian_epsilon(mu, self.budget.delta) if mu else 0.0

    def spending(self, estimator: str, parameters: dict[str, str]) -> Spending:
        """Return the one charge of the search.

        Parameters
        ----------
        estimator : str
            Class of the search.
        parameters : dict of str
            Its parameters as text.

        Returns
        -------
        Spending
            Gaussian releases for composition; for random stopping the guarantee alone.
        """
        return self.cost.spending(estimator, parameters)

    def report(self, estimator: str, parameters: dict[str, str], *, planned: bool, reproducible: bool) -> PrivacyReport:
        """Return the privacy report of the search.

        Parameters
        ----------
        estimator : str
            Class of the search.
        parameters : dict of str
            Its parameters as text.
        planned : bool
            Whether nothing was fitted.
        reproducible : bool
            Whether the noise came from a seed.

        Returns
        -------
        PrivacyReport
            Guarantee and releases.
        """
        return self.cost.report(
            estimator,
            planned=planned,
            solver=self.mechanism,
            solver_title=TITLES[self.mechanism],
            solver_reason=f"of {self.n_candidates} candidates",
            reproducible_noise=reproducible,
            noise_size=f"{self.score_noise:.2g} ({self._of_score}) in the score of one trial",
            public={
                self.budget.number: self.n_units,
                "n_train": self.n_train,
                "n_validation": self.n_validation,
                "parameters": parameters,
            },
            assumptions=(
                *ORDERED[self.budget.unit],
                "y has two labels, and both occur in the part for fits, unless the estimator has classes",
                "time and memory of the search, which depend on the number of trials, are not seen by others",
                OTHER_FITS,
                *assumed_of(self.budget.unit),
                *([] if self.budget.unit == "record" else [ESTIMAND]),
            ),
        )

    def __str__(self) -> str:
        """Return the cost of the search, and whether it is likely to pay."""
        whole = gaussian_mu(self.budget.epsilon, self.budget.delta)
        share = self.mu_trial / whole if self.budget.private else 1.0
        has_loss = self._score.loss is not None
        # an area has a variance of at most 1/4 over the smaller class
        low, high = self._score.limits if has_loss else (0.0, math.sqrt(2))
        sampling = (high - low) / 2 / math.sqrt(self.n_validation)
        rare = "" if has_loss else f" ({self._score_noise(RARE):.2g} with {RARE:.0%} of the {self._units} in one class)"
        final = (
            f"a refit on all {self._units} at epsilon {self.epsilon_refit:.3g}"
            if self.refit
            else f"the chosen trial's, fitted on {self.n_train} {self._units} at epsilon {self.epsilon_trial:.3g}"
        )
        lines = [
            f"Search     {self.n_candidates} candidates, {self.mechanism}: {TITLES[self.mechanism]}",
            f"Budget     epsilon {self.budget.epsilon:.4g}, delta {self.budget.delta:.3g} ({self.budget.adjacency}) for all",
            f"Trials     {self.mean_trials:g}{' in the mean' if self.mechanism == STOPPING else ''}; each has {share:.0%} of the "
            f"signal-to-noise ratio of a fit with the whole budget (epsilon {self.epsilon_trial:.3g})",
            f"Scores     on {self.n_validation} {self._units}: noise of {self.score_noise:.2g}{rare} and up to {sampling:.2g} of "
            f"sampling error in the {self._of_score} (standard deviations)",
            f"Model      {final}",
            f"Instead    one fit with fixed parameters would have epsilon {self.budget.epsilon:.4g} and all "
            f"{self.n_units} {self._units}",
        ]
        doubts = list(self.doubts)
        if self.same_kind:
            doubts.append(
                "The candidates are of one class. In 24 measured cases (four tables, epsilon 0.5, 1 and 3) a search over "
                "parameters was worse than the defaults, and the best candidate was at most 0.008 of AUC better than these"
            )
        return "\n".join([*lines, *(f"Doubt      {doubt}" for doubt in doubts)])
