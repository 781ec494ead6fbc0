"""The statement of guarantees: what was spent, on which releases, and what was assumed public."""

import json
import math
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from skdp.privacy.accounting.noise_calibration import noise_multiplier, selection_epsilon, spent_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.report._html import as_fragment, as_page
from skdp.privacy.schedule import Curve, Release, Schedule, Selection, SinglePass

__all__ = ["Needed", "PrivacyReport", "PrivacySpent", "ReleaseLine", "describe_releases", "spent"]

SCHEMA_VERSION = "1.3"
WIDTH = 110  # of the printed text
OF_A_BLOCK = ("BlockGradient", "CoordinateScores")  # clipped in proportion to public bounds of its coordinates


class PrivacySpent(NamedTuple):
    """What one fit spent, as a pair."""

    epsilon: float
    delta: float


class Needed(NamedTuple):
    """What a fit needs for its noise to be unlikely to drown the signal: records at this epsilon, or epsilon at these records."""

    n_samples: int | None
    epsilon: float | None

    def __str__(self) -> str:
        records = "no number of records" if self.n_samples is None else f"about {self.n_samples:,} records"
        budget = "no epsilon up to 10" if self.epsilon is None else f"about epsilon={self.epsilon:g}"
        least = f"{records} at this epsilon, or {budget} with these records"
        return f"For more than a constant it takes {least}; for a good model, several times as much"


@dataclass(frozen=True)
class ReleaseLine:
    """One kind of release, as the report states it.

    Parameters
    ----------
    query : str
        What was asked.
    mechanism : str
        Which noise was added.
    count : int
        How many times.
    noise_multiplier : float or None
        Standard deviation of the noise over the clip norm; None for a selection and for a mechanism with its own proof.
    clip_norm : float or None
        Bound on one record's contribution; None where earlier releases set it.
    rounding_allowance : float
        Relative increase of the noise over that, which covers the rounding of sums and of random numbers.
    sampling_rate : float
        Probability that a record takes part in one release; 1 where all records do, and for a single pass, which does not rest on
        chance.
    in_words : str, default=""
        What a selection, or a mechanism with its own proof, does.
    """

    query: str
    mechanism: str
    count: int
    noise_multiplier: float | None
    clip_norm: float | None
    rounding_allowance: float
    sampling_rate: float
    in_words: str = ""

    @property
    def clip_in_words(self) -> str:
        """The bound on one record's contribution."""
        if self.clip_norm is not None and not (self.query in OF_A_BLOCK and self.mechanism == Selection.__name__):
            return f"{self.clip_norm:.6g}"
        if self.query in OF_A_BLOCK:
            return "its bound" if self.mechanism == Selection.__name__ else "that of its block"
        return "set by earlier releases"

    @property
    def rounding_in_words(self) -> str:
        """How much more noise covers rounding."""
        return f"{'at least ' if self.clip_norm is None else ''}{100 * self.rounding_allowance:.2g}% more"

    @property
    def records_in_words(self) -> str:
        """Which records take part."""
        if self.mechanism == SinglePass.__name__:
            return "records drawn in public, none in two of them"
        return "all" if self.sampling_rate == 1 else f"a Poisson sample of rate {self.sampling_rate:.4g}"

    def __str__(self) -> str:
        what, rounding = f"{self.count} x {self.query}", f"{self.rounding_in_words} for rounding"
        if self.mechanism == Selection.__name__:
            return f"{what}, {self.in_words}, each coordinate clipped to {self.clip_in_words}, {rounding}"
        if self.noise_multiplier is None:
            return f"{what}, {self.in_words}"
        sample = "" if self.records_in_words == "all" else f" on {self.records_in_words}"
        noise = f"noise multiplier {self.noise_multiplier:.6g}, clip norm {self.clip_in_words}"
        return f"{what}{sample}, Gaussian noise, {noise}, {rounding}"


@dataclass(frozen=True)
class PrivacyReport:
    """What a fit guarantees, or what a planned fit would.

    Printed as text, shown as a table in a notebook, and written as JSON by `to_json`. It holds public values only.

    Parameters
    ----------
    estimator : str
        Class of the estimator.
    planned : bool
        True before any data was touched.
    budget : Budget
        The (epsilon, delta) that was asked for, and the adjacency.
    adjacency_in_words : str
        Which tables are neighbours.
    spent : PrivacySpent
        What the schedule spends, by exact accounting.
    solver, solver_title, solver_reason : str
        What ``solver=`` calls the algorithm, what it is, and why it was chosen.
    releases : tuple of ReleaseLine
        Every kind of release.
    reproducible_noise : bool
        Whether the noise came from a seed, which voids the guarantee.
    noise_size : str
        How large it is against the signal.
    public : mapping
        Everything that was used and is not protected: shape, names, labels, parameters.
    assumptions : tuple of str
        Conditions of the guarantee, in words.
    versions : mapping
        Of the software.
    needed : Needed or None, default=None
        Of a plan: how many records, or which epsilon, would do.
    """

    estimator: str
    planned: bool
    budget: Budget
    adjacency_in_words: str
    spent: PrivacySpent
    solver: str
    solver_title: str
    solver_reason: str
    releases: tuple[ReleaseLine, ...]
    reproducible_noise: bool
    noise_size: str
    public: Mapping[str, Any]
    assumptions: tuple[str, ...]
    versions: Mapping[str, str]
    needed: Needed | None = None

    @property
    def private(self) -> bool:
        """Whether there is a guarantee."""
        return self.budget.private and not self.reproducible_noise

    @property
    def summary(self) -> str:
        """What the fit spends, in one line."""
        if not self.private:
            return "Not private: " + ("the noise came from a seed" if self.budget.private else "epsilon = inf adds no noise")
        pair = f"epsilon = {self.spent.epsilon:.6g}, delta = {self.spent.delta:.6g}"
        return f"{'Would spend' if self.planned else 'Spent'} {pair} ({self.budget.adjacency})"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain types.

        Returns
        -------
        dict
            Ready for JSON: an infinite number is the string "inf".
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "private": self.private,
            **asdict(self.budget),
            **asdict(self),
            "spent": self.spent._asdict(),
            "needed": None if self.needed is None else self.needed._asdict(),
        }
        del content["budget"]
        return _plain(content)

    def to_json(self, indent: int | None = 2) -> str:
        """Return the report as a JSON document.

        Parameters
        ----------
        indent : int or None, default=2
            Spaces per level; None for one line.

        Returns
        -------
        str
            The document.
        """
        return json.dumps(self.to_dict(), indent=indent, allow_nan=False)

    def to_html(self) -> str:
        """Return the report as a page.

        Returns
        -------
        str
            A whole HTML document, which loads nothing from elsewhere.
        """
        return as_page(self)

    @property
    def title(self) -> str:
        """What it is a statement of."""
        return f"Privacy {'plan' if self.planned else 'report'}: {self.estimator}"

    def __str__(self) -> str:
        sections = [_hanging(label if text is texts[0] else "", text) for label, texts in self._sections() for text in texts]
        return "\n".join([self.title, "=" * len(self.title), *sections])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return as_fragment(self)

    def _sections(self) -> list[tuple[str, list[str]]]:
        return [
            ("Guarantee", [self.guarantee]),
            ("Neighbours", [f"{self.budget.adjacency}: {self.adjacency_in_words}"]),
            (
                "Spent",
                [f"epsilon = {self.spent.epsilon:.6g}, delta = {self.spent.delta:.6g}, by {self.accounting}"],
            ),
            ("Solver", [f"{self.solver}: {self.solver_title}; {self.solver_reason}"]),
            ("Releases", [str(line) for line in self.releases_together()]),
            ("Noise", list(self.noise_facts().values())),
            ("Public", [f"{name} = {_text(value)}" for name, value in self.public.items()]),
            ("Assumes", list(self.assumptions)),
            ("Versions", [", ".join(f"{name} {version}" for name, version in self.versions.items())]),
        ]

    def noise_facts(self) -> dict[str, str]:
        """Return where the noise is from, how large it is, and what would be enough, as far as that is known."""
        source = {"Source": self.noise_source} if self.budget.private else {}
        enough = {} if self.needed is None else {"Enough": str(self.needed)}
        return {**source, "Size": self.noise_size, **enough}

    def releases_together(self) -> list[ReleaseLine]:
        """Return one line for all releases on the same terms, also where others come in between."""
        counts: Counter[ReleaseLine] = Counter()
        for line in self.releases:
            counts[replace(line, count=1)] += line.count
        return [replace(line, count=count) for line, count in counts.items()]

    @property
    def guarantee(self) -> str:
        """What holds, in one line."""
        if not self.budget.private:
            return "NONE: epsilon = inf adds no noise, the model is not private"
        pair = f"({self.budget.epsilon:.6g}, {self.budget.delta:.6g})" if self.budget.delta else f"pure {self.budget.epsilon:.6g}"
        if self.reproducible_noise:
            return f"NONE: the noise came from a seed, the model is not private; with secure noise it would be {pair}"
        return f"{pair}-differential privacy of the training records, for one call of fit"

    @property
    def accounting(self) -> str:
        """How the spent budget was computed."""
        selects = [line.mechanism == Selection.__name__ for line in self.releases]
        full = all(line.sampling_rate == 1 for line in self.releases)
        if any(line.in_words for line in self.releases) and not any(selects):
            return "the proof of its mechanism, rounded up"
        if any(selects) and full:
            return "zero-concentrated differential privacy of all releases or the sum of their epsilons, rounded up"
        if full:
            return "exact accounting of all releases"
        return "privacy loss distributions of all releases, rounded up"

    @property
    def noise_source(self) -> str:
        """Where the noise came from."""
        if not self.budget.private:
            return "none"
        if not self.reproducible_noise:
            return "secure: the operating system's cryptographic generator"
        return "reproducible noise (skdp.testing.reproducible_noise), for tests and benchmarks only"


def spent(schedule: Schedule, scale: float, budget: Budget) -> PrivacySpent:
    """Return what a schedule spends at the budget's delta."""
    return PrivacySpent(spent_epsilon(schedule, scale, budget), budget.delta)


def describe_releases(schedule: Schedule, scale: float, budget: Budget, allowances: tuple[float, ...]) -> tuple[ReleaseLine, ...]:
    """Return one line per entry of a schedule."""
    return tuple(
        ReleaseLine(
            release.query.__name__,
            type(release.mechanism).__name__,
            count,
            None if isinstance(release.mechanism, (Curve, Selection)) else noise_multiplier(release, scale, budget.adjacency),
            release.clip_norm,
            allowance,
            getattr(release.mechanism, "sampling_rate", 1.0),
            _in_words(release, scale, budget),
        )
        for (count, release), allowance in zip(schedule.entries, allowances, strict=True)
    )


def _in_words(release: Release, scale: float, budget: Budget) -> str:
    if isinstance(release.mechanism, Selection):
        noise = f"Gumbel noise of scale {release.mechanism.weight * scale:.6g} times the sensitivity" if scale else "no noise"
        return f"exponential mechanism ({noise}, epsilon {selection_epsilon(release.mechanism, scale):.4g} each)"
    if not isinstance(release.mechanism, Curve):
        return ""
    return release.mechanism.in_words(scale, budget) if budget.private else f"{release.mechanism.name} without noise"


def _hanging(label: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=f"{label:<12}", subsequent_indent=" " * 14, break_on_hyphens=False)


def _text(value: Any) -> str:
    return ", ".join(f"{name}={item}" for name, item in value.items()) if isinstance(value, Mapping) else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)
