"""State the guarantee of a fit: what was spent, on which releases, and what was assumed public."""

import json
import math
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from skdp.privacy.accounting.noise_calibration import noise_multiplier, selection_epsilon
from skdp.privacy.budget import Budget
from skdp.privacy.report._html import as_fragment, as_page
from skdp.privacy.report._public_columns import in_words
from skdp.privacy.schedule import Curve, Laplace, Release, Schedule, Selection, SinglePass, Staircase

SCHEMA_VERSION = "2.2"  # version of the JSON document; the second number rises with new fields, the first if fields change
WIDTH = 110  # characters per line of the printed text; a choice
# Conditions of every guarantee.
OTHER_FITS = "other fits on the same records, and anything else computed from them, spend more budget"
ONE_PERSON = (
    "one record is one person: a person with k records is protected less, by about k times the epsilon and a larger delta"
)
PERSONS = (
    "rows are of one person if and only if their ids are equal; labels and features may use other rows of the same person, and "
    "not those of others"
)
ESTIMAND = "the model describes a random row of a random person: a person with many rows counts as much as one with a single row"
OF_A_BLOCK = ("BlockGradient", "CoordinateScores")  # queries whose clip norm depends on public bounds of the block's coordinates
OF_RANKS = "RankScores"
UNREVIEWED = "{} is unreviewed: it sees the data and is not part of skdp"  # line of a report


class PrivacySpent(NamedTuple):
    """Hold the epsilon and delta that one fit spent."""

    epsilon: float
    delta: float


class Needed(NamedTuple):
    """Hold what a fit needs so that noise probably does not hide the signal: a number of records, or an epsilon."""

    n_samples: int | None
    epsilon: float | None
    aim: str = "predict more than a constant"

    def __str__(self) -> str:
        return self.in_words("records")

    def in_words(self, units: str) -> str:
        """Return what is needed, as a sentence; ``units`` are what counts."""
        number = f"no number of {units}" if self.n_samples is None else f"about {self.n_samples:,} {units}"
        budget = "no epsilon up to 10" if self.epsilon is None else f"about epsilon={self.epsilon:g}"
        least = f"{number} at this epsilon, or {budget} with these {units}"
        return f"To {self.aim}, a model needs {least}; a good model needs several times as much"


@dataclass(frozen=True)
class ReleaseLine:
    """Describe one kind of release in the report.

    Parameters
    ----------
    query : str
        Name of the query.
    mechanism : str
        Name of the mechanism that added the noise.
    count : int
        Number of releases.
    noise_multiplier : float or None
        Standard deviation of the noise over the clip norm; None for a selection and for a mechanism with its own proof.
    clip_norm : float or None
        Bound on one record's contribution; None if earlier releases set it.
    rounding_allowance : float
        Relative increase of the noise that covers the rounding of sums and of random numbers.
    sampling_rate : float
        Probability that a record takes part in one release; 1 if all records do, and for a single pass, whose guarantee does not
        rest on sampling.
    in_words : str, default=""
        Description of a selection, or of a mechanism with its own proof.
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
        """Bound on one record's contribution, in words."""
        if self.clip_norm is not None and not (self.query in OF_A_BLOCK and self.mechanism == Selection.__name__):
            return f"{self.clip_norm:.6g}"
        if self.query in OF_A_BLOCK:
            return "its bound" if self.mechanism == Selection.__name__ else "that of its block"
        return "set by earlier releases"

    @property
    def rounding_in_words(self) -> str:
        """Increase of the noise that covers rounding, in words."""
        least = self.clip_norm is None or self.query == OF_RANKS  # whose preferences for candidates are rounded, too
        return f"{'at least ' if least else ''}{100 * self.rounding_allowance:.2g}% more"

    @property
    def records_in_words(self) -> str:
        """Records that take part, in words."""
        if self.mechanism == SinglePass.__name__:
            return "disjoint parts of the table"
        return "all" if self.sampling_rate == 1 else f"a Poisson sample of rate {self.sampling_rate:.4g}"

    def __str__(self) -> str:
        what, rounding = f"{self.count} x {self.query}", f"{self.rounding_in_words} for rounding"
        if self.mechanism == Selection.__name__:
            ranks, clipped = "a record moves a rank by at most 1", f"each coordinate clipped to {self.clip_in_words}"
            return f"{what}, {self.in_words}, {ranks if self.query == OF_RANKS else clipped}, {rounding}"
        if self.noise_multiplier is None:
            return f"{what}, {self.in_words}"
        sample = "" if self.records_in_words == "all" else f" on {self.records_in_words}"
        noise = f"noise multiplier {self.noise_multiplier:.6g}, clip norm {self.clip_in_words}"
        return f"{what}{sample}, Gaussian noise, {noise}, {rounding}"


@dataclass(frozen=True)
class PrivacyReport:
    """State what a fit guarantees, or what a planned fit would guarantee.

    It prints as text, shows as a table in a notebook, and is written as JSON by `to_json`. It contains public values only.

    Parameters
    ----------
    estimator : str
        Class of the estimator.
    planned : bool
        True for a plan, which reads no data.
    budget : Budget
        The requested epsilon and delta, and the adjacency.
    adjacency_in_words : str
        Which tables are neighbours.
    spent : PrivacySpent
        What the schedule spends, rounded up.
    solver, solver_title, solver_reason : str
        Value of ``solver=``, title of the algorithm, and why it was chosen.
    releases : tuple of ReleaseLine
        All kinds of releases.
    reproducible_noise : bool
        Whether the noise came from a seed, which voids the guarantee.
    noise_size : str
        Size of the noise compared with the signal, in words.
    public : mapping
        Everything that was used and is not protected: shape, names, labels, parameters.
    assumptions : tuple of str
        Conditions of the guarantee, in words.
    versions : mapping
        Versions of the software.
    needed : Needed or None, default=None
        For a plan: the number of records, or the epsilon, that would be enough.
    learned : mapping or None, default=None
        What releases told about each column: values with noise, which are protected by the guarantee, in words.
    steps : mapping or None, default=None
        Reports of the steps of a pipeline, by name, each of a part of the budget.
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
    learned: Mapping[str, str] | None = None
    steps: Mapping[str, "PrivacyReport"] | None = None

    @property
    def private(self) -> bool:
        """Whether the fit has a privacy guarantee."""
        return self.budget.private and not self.reproducible_noise

    @property
    def summary(self) -> str:
        """What the fit spends, in one line."""
        if not self.private:
            return "Not private: " + ("the noise came from a seed" if self.budget.private else "epsilon = inf adds no noise")
        pair = f"epsilon = {self.spent.epsilon:.6g}, delta = {self.spent.delta:.6g}"
        unit = ", persons" if self.budget.unit == "person" else ""
        return f"{'Would spend' if self.planned else 'Spent'} {pair} ({self.budget.adjacency}{unit})"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain types.

        Returns
        -------
        dict
            Contents that can be written as JSON; an infinite number is the string "inf".
        """
        content = {
            "schema_version": SCHEMA_VERSION,
            "private": self.private,
            **asdict(self.budget),
            **asdict(self),
            "spent": self.spent._asdict(),
            "needed": None if self.needed is None else {"n_samples": self.needed.n_samples, "epsilon": self.needed.epsilon},
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
        """Return the report as an HTML page.

        Returns
        -------
        str
            A complete HTML document, which loads nothing from elsewhere.
        """
        return as_page(self)

    @property
    def title(self) -> str:
        """Title of the report."""
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
            *([] if self.unit is None else [("Unit", [self.unit])]),
            ("Neighbours", [f"{self.budget.adjacency}: {self.adjacency_in_words}"]),
            (
                "Spent",
                [f"epsilon = {self.spent.epsilon:.6g}, delta = {self.spent.delta:.6g}, by {self.accounting}"],
            ),
            ("Solver", [f"{self.solver}: {self.solver_title}; {self.solver_reason}"]),
            *(
                section
                for name, step in (self.steps or {"": self}).items()
                for section in [
                    *([("", [f"Step {name}: {step.estimator}, {step.summary}"])] if name else []),
                    ("Releases", [str(line) for line in step.releases_together()]),
                ]
            ),
            ("Noise", list(self.noise_facts().values())),
            ("Public", [line for name, value in in_words(self.public).items() for line in _lines(name, value)]),
            *([("Learned", ["from the records, with noise:", *_each(self.learned)])] if self.learned else []),
            ("Assumes", list(self.assumptions)),
            ("Versions", [", ".join(f"{name} {version}" for name, version in self.versions.items())]),
        ]

    def noise_facts(self) -> dict[str, str]:
        """Return the source and size of the noise and, for a plan, how many records or which epsilon would be enough."""
        source = {"Source": self.noise_source} if self.budget.private else {}
        enough = {} if self.needed is None else {"Enough": self.needed.in_words(f"{self.budget.unit}s")}
        return {**source, "Size": self.noise_size, **enough}

    def releases_together(self) -> list[ReleaseLine]:
        """Return one line for all releases of the same kind, also if other releases come in between."""
        counts: Counter[ReleaseLine] = Counter()
        for line in self.releases:
            counts[replace(line, count=1)] += line.count
        return [replace(line, count=count) for line, count in counts.items()]

    @property
    def guarantee(self) -> str:
        """The guarantee, in one line."""
        if not self.budget.private:
            return "NONE: epsilon = inf adds no noise, the model is not private"
        pair = f"({self.budget.epsilon:.6g}, {self.budget.delta:.6g})" if self.budget.delta else f"pure {self.budget.epsilon:.6g}"
        if self.reproducible_noise:
            return f"NONE: the noise came from a seed, the model is not private; with secure noise it would be {pair}"
        records, call = ("records", self.estimator) if self.estimator.islower() else ("training records", "fit")  # a function
        records = "test records" if call == "evaluate" else records
        if self.budget.unit == "person":
            records = "persons, each with all her rows"
        return f"{pair}-differential privacy of {'' if self.budget.unit == 'person' else 'the '}{records}, for one call of {call}"

    @property
    def n_units(self) -> int:
        """Number of records, or of persons."""
        return int(self.public[self.budget.number])

    @property
    def unit(self) -> str | None:
        """The unit of privacy in words, if it is not a record."""
        if self.budget.unit == "record":
            return None
        return (
            f"person: {self.n_units:,} persons. A row weighs one over the number of rows of its person, so that each "
            "person counts once; the number of rows is not public"
        )

    @property
    def accounting(self) -> str:
        """How the spent budget was computed."""
        selects = [line.mechanism == Selection.__name__ for line in self.releases]
        full = all(line.sampling_rate == 1 for line in self.releases)
        if self.releases and all(line.mechanism in (Laplace.__name__, Staircase.__name__) for line in self.releases):
            return "the sum of the epsilons of all releases, rounded up"
        if any(line.in_words for line in self.releases) and not any(selects):
            return "the proof of its mechanism, rounded up"
        if any(selects) and full:
            return "zero-concentrated differential privacy of all releases or the sum of their epsilons, rounded up"
        if full:
            return "exact accounting of all releases"
        return "privacy loss distributions of all releases, rounded up"

    @property
    def noise_source(self) -> str:
        """Source of the noise, in words."""
        if not self.budget.private:
            return "none"
        if not self.reproducible_noise:
            return "secure: the operating system's cryptographic generator"
        return "reproducible noise (skdp.testing.reproducible_noise), for tests and benchmarks only"


def assumed_of(unit: str) -> tuple[str, ...]:
    """Return what a guarantee for records, or for persons, assumes."""
    return (ONE_PERSON,) if unit == "record" else (PERSONS,)


def foreign_class(estimator: Any) -> str:
    """Return the line of a report for an estimator whose class is not one of skdp, such as a derived one; empty for others."""
    kind = type(estimator)
    module = sys.modules.get(kind.__module__ if kind.__module__.startswith("skdp.") else "")
    return "" if getattr(module, kind.__qualname__, None) is kind else UNREVIEWED.format(kind.__qualname__)


def describe_releases(schedule: Schedule, scale: float, budget: Budget, allowances: tuple[float, ...]) -> tuple[ReleaseLine, ...]:
    """Return one line per entry of a schedule."""
    return tuple(
        ReleaseLine(
            release.query.__name__,
            type(release.mechanism).__name__,
            count,
            None
            if isinstance(release.mechanism, (Curve, Laplace, Selection))
            else noise_multiplier(release, scale, budget.adjacency),
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
    if isinstance(release.mechanism, Laplace):
        if not scale:
            return "integers without noise"
        one = release.mechanism.weight * scale
        kind = (
            "staircase noise on an integer" if isinstance(release.mechanism, Staircase) else "discrete Laplace noise on integers"
        )
        return f"{kind}, of scale {one:.6g} times what one record changes, epsilon {1 / one:.4g} each"
    if not isinstance(release.mechanism, Curve):
        return ""
    return release.mechanism.in_words(scale, budget) if budget.private else f"{release.mechanism.name} without noise"


def _hanging(label: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=f"{label:<12}", subsequent_indent=" " * 14, break_on_hyphens=False)


def _each(facts: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {value}" for name, value in facts.items()]


def _lines(name: str, value: Any) -> list[str]:
    """Return a public fact as text, and a schema with a line per column."""
    if name == "schema" and isinstance(value, Mapping):
        return [f"schema of {fact}" for fact in _each(value)]
    return [f"{name} = {_text(value)}"]


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
