"""Plan the three releases from which the columns of a table are learned, and make them."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from skdp._validation import first_of
from skdp.preprocessing._column_kinds import Category, Column
from skdp.preprocessing._fine_rule import ends_in_few_bins, may_be_integers, refine
from skdp.preprocessing._octave_rule import Finding, common_buckets, number_or_text, place_octaves, place_truths, text_share
from skdp.preprocessing._parts import Shares
from skdp.preprocessing._range_search import AT_ZERO, RangeSearch, search_releases, search_share
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import noise_multiplier
from skdp.privacy.accounting.privacy_loss import Composition
from skdp.privacy.budget import Budget
from skdp.privacy.errors import LowSignalWarning, warn
from skdp.privacy.queries import ColumnHistograms, FineHistograms, Query
from skdp.privacy.queries.column_histograms import (
    BUCKETS,
    EVEN_BINS,
    FEW_BINS,
    NUMBER_BINS,
    TARGET_WEIGHT,
    WIDEST_INTEGERS,
    contribution,
)
from skdp.privacy.release_plan import ReleasePlan
from skdp.privacy.schedule import Gaussian, Release, Schedule

# By whether each cell of a column is a number or text (None), or all are numbers.
RULES: dict[bool | None, Callable[..., Any]] = {False: place_octaves, None: number_or_text}
# The signal s = mu n / (k sqrt(d)) of a fit that spends a tenth of its squared budget on the columns: from FULL on all columns of
# made-up tables were learned, from PART on their units, and below HARDLY less than half of them.
USUAL_SHARE = 0.1
# Squared budget of the third release over that of the second. A choice: few columns are far from 0 for their spread, and these
# have few bins.
THIRD = 0.1
# Distance from 0 of limits that are powers of 2, over their length, from which a target may have much less spread than they have.
# A choice: at most three octaves. Those of counts from 1 on, and of prices of houses, are more, and their length is about the
# spread.
APART = 0.1
FULL, PART, HARDLY = 120, 50, 30
# Released shares of the cells of a column above which a warning says that they are not read: text among numbers; missing cells of
# text that is learned as numbers, of which most may be empty; and cells of no common category, as most of free text are. Choices.
MOST_TEXT, MOST_MISSING, MOST_OTHER = 0.2, 0.5, 0.8


@dataclass(frozen=True)
class Learned:
    """What the releases tell of the columns.

    Parameters
    ----------
    columns : dict
        `Finding` of a column of numbers, or the `Category` and the share of missing cells of a column of text, by name; empty if
        nothing was learned but the range of the target.
    target : Finding or None
        The same of the target.
    coarse : bool, default=False
        Whether noise hides where the target lies between its limits, which are powers of 2.
    counted : dict, default={}
        Released shares of the indicators of each column of text, in their order; and of the missing cells of each column of
        numbers, alone.
    texts : dict, default={}
        Released share of the cells that are text, of each column whose cells are read one by one.
    features : dict, default={}
        Where nothing was cut off of the columns: what the first release tells of each column of numbers as a feature.
    """

    columns: dict[str, Finding | tuple[Category, float]]
    target: Finding | None
    coarse: bool = False
    counted: dict[str, Shares] = field(default_factory=dict)
    texts: dict[str, float] = field(default_factory=dict)
    features: dict[str, Finding] = field(default_factory=dict)

    def entries(self) -> dict[str, Column]:
        """Return the facts of each column, by name."""
        return {name: found.number() if isinstance(found, Finding) else found[0] for name, found in self.columns.items()}

    def described(self, taken: Mapping[str, Column] | None = None) -> dict[str, dict[str, Any]]:
        """Return what was learned of each column, and of the target as "y" or "y (target)", as plain types.

        Parameters
        ----------
        taken : dict or None, default=None
            What a model takes of it, by name; None for all.

        Returns
        -------
        dict
            By name of the column.
        """
        target = {} if self.target is None else {"y (target)" if "y" in self.columns else "y": self.target}
        taken = self.entries() if taken is None else taken
        found = {**self.columns, **target}
        return {
            name: _described(finding, taken.get(name) if name in self.columns else None, self.counted.get(name))
            for name, finding in found.items()
        }


@dataclass(frozen=True)
class LearningPlan(ReleasePlan):
    """Hold the public facts of the releases.

    Parameters
    ----------
    facts : FrameFacts
        What is public about the frame.
    target : bool
        Whether the range of the target is learned.
    mu : float
        Gaussian-DP parameter of all releases together; inf without noise.
    robust : bool, default=False
        Whether targets that are far from most others are outliers, and not in their range.
    search : float, default=0.0
        Share of the squared budget for counts that find the range of the target, which is in the histograms without them; 1 if
        nothing is learned of the columns.
    whole : bool, default=False
        Whether nothing is cut off of any column of numbers, as of a target.
    """

    facts: Any
    target: bool
    mu: float
    robust: bool = False
    search: float = 0.0
    whole: bool = False

    @classmethod
    def make(
        cls, facts: Any, target: bool, budget: Budget, mu: float | None = None, robust: bool = False, search: float = 0.0
    ) -> "LearningPlan":
        """Plan the releases; raise an error for noise that random bits cannot resolve, before any data is read.

        They spend the whole budget, or ``mu`` where another part of a fit spends the rest. Then ``search`` is the share of the
        counts that find the range of the target. Without ``mu`` it follows: they have as much beside the histograms of a
        tenth of a squared budget as in a fit.

        The squared budget of the first two is split in proportion to the columns that each counts, so that bins of both have
        about the same noise. How many columns the second one counts follows from the first; it can be all numbers, without
        those that are true or false. The third has `THIRD` of the squared budget of the second.
        """
        if budget.delta == 0:
            raise ValueError("delta=0: Gaussian noise has no pure guarantee; expected a positive delta, or None.")
        if mu is None:
            mu = gaussian_mu(budget.epsilon, budget.delta)
            of_fit = search_share(mu / math.sqrt(USUAL_SHARE), facts.n_samples, budget.adjacency) if target else 0.0
            search = of_fit / (of_fit + USUAL_SHARE)
        counted = target and not search
        n_numbers = sum(not text for text in facts.are_text.values()) - len(facts.truths)
        schedule = Schedule(search_releases())
        if search < 1:
            histograms = _histograms(ColumnHistograms(tuple(facts.are_text.values()), counted), n_numbers)
            schedule = schedule.followed_by(histograms, 1 - search) if search else histograms
        plan = cls(
            facts,
            target,
            mu,
            robust,
            search,
            schedule=schedule,
            budget=budget,
            n_samples=facts.n_samples,
            scale=math.sqrt(Composition.of(schedule, budget.adjacency).full) / mu,
            default_size=(n_numbers + counted) * (EVEN_BINS + WIDEST_INTEGERS + 1),
        )
        plan.rounding_allowances  # noqa: B018 - raises an error
        return plan

    def noise_of(self, query: Query) -> float:
        """Return the standard deviation of the noise in a bin, as a share of the records."""
        further = isinstance(query, FineHistograms) and query.even_bins != EVEN_BINS  # the second of this kind
        _, release = [entry for entry in self.schedule.entries if entry[1].query is type(query)][further]
        return noise_multiplier(release, self.scale, self.budget.adjacency) * query.clip_norm / self.n_samples

    @property
    def signal(self) -> float:
        """The s of a fit with `USUAL_SHARE` for the columns, whose columns are learned as well as these."""
        if not self.budget.private:
            return math.inf
        d = contribution(len(self.facts.are_text), self.target and not self.search)
        k = ColumnHistograms.relative_sensitivity[self.budget.adjacency]
        return self.mu * math.sqrt(1 - self.search) * self.n_samples / (k * d * math.sqrt(USUAL_SHARE))

    @property
    def outlook(self) -> str:
        """How well the columns will be learned, in words."""
        if not self.budget.private:
            return "no noise"
        signal = self.signal
        if self.search == 1:
            return "nothing is learned of them, and of y its range"
        if signal >= FULL:
            told = "columns are learned fully"
        elif signal >= PART:
            told = "scales are learned; tails, integers and rare categories may be missed"
        else:
            most = "most" if signal < HARDLY else "many"
            told = f"{most} scales may be missed: write bounds for the columns that you know, or take a larger epsilon"
        limits = f"from {FULL} full, from {PART} in part, below {HARDLY} hardly"
        return f"signal s = {signal:.3g} over the noise of a bin ({limits}): {told}"

    def warn_of_low_signal(self) -> None:
        """Warn, before anything is charged, if most columns are likely to stay unknown."""
        if self.signal < HARDLY and self.search < 1:
            warn(
                f"Noise is likely to hide most columns of n_samples={self.n_samples}, and the budget is spent all the same: "
                f"{self.outlook}. A plan tells you this before a fit.",
                LowSignalWarning,
            )


def _histograms(query: ColumnHistograms, n_numbers: int) -> Schedule:
    """Return the three releases that learn columns, from the first query and the number of columns that the others may count."""
    # A record adds 1 to a bin of each of d columns, so that its contribution has norm sqrt(d). Multipliers in proportion to
    # 1 / weight spend the squared budget in the parts weight^2 / (w1^2 + w2^2 + w3^2).
    of_numbers = contribution(n_numbers, query.target)
    weights = [query.clip_norm, of_numbers, of_numbers * math.sqrt(THIRD)]
    releases = [Release(ColumnHistograms, Gaussian(math.hypot(*weights) / weights[0]), query.clip_norm, query.size)]
    if of_numbers:
        releases += [Release(FineHistograms, Gaussian(math.hypot(*weights) / weight)) for weight in weights[1:]]
    return Schedule(tuple((1, release) for release in releases))


def learn(ask: Callable[[Query], np.ndarray], plan: LearningPlan) -> Learned:
    """Make the releases and conclude from them, and from public facts, what the columns are.

    Parameters
    ----------
    ask : callable
        Returns the noisy answer to a query, `Oracle.ask`.
    plan : LearningPlan
        The public facts.

    Returns
    -------
    Learned
        What the releases tell.
    """
    target = RangeSearch(ask, plan.n_samples, plan.noise_of(AT_ZERO) * plan.n_samples).finding() if plan.search else None
    if plan.search == 1:
        return Learned({}, target)
    of_target = plan.target and not plan.search
    query = ColumnHistograms(tuple(plan.facts.are_text.values()), of_target)
    shares, sigma = _split(ask(query), query.sizes(), plan), plan.noise_of(query)
    # First release: bins by octave and by bucket; kind, limits and scale of each column follow.
    columns: dict[str, Finding | tuple[Category, float]] = {}
    features: dict[str, Any] = {}
    by_column = dict(zip(plan.facts.are_text, shares, strict=False))
    for name, text in plan.facts.are_text.items():
        if text:
            columns[name] = common_buckets(by_column[name], sigma, codes=name in plan.facts.codes)
        elif name in plan.facts.truths:
            columns[name] = place_truths(by_column[name], sigma)
        else:
            columns[name] = RULES[text](by_column[name], sigma, plan.whole)
            features[name] = RULES[text](by_column[name], sigma)
    counted = {name: _counted(found, by_column[name], sigma) for name, found in columns.items()}
    texts = {name: text_share(by_column[name], sigma) for name, text in plan.facts.are_text.items() if text is None}
    if of_target:
        target = place_octaves(shares[-1] / TARGET_WEIGHT, sigma / TARGET_WEIGHT, target=True, robust=plan.robust)
    if not any(release.query is FineHistograms for release in plan.schedule):
        return Learned(columns, target, counted=counted, texts=texts, features=features if plan.whole else {})
    # Second release: even bins between these limits, of columns whose limits may be narrower.
    places = dict(zip(plan.facts.are_text, query.places(), strict=True))
    found = {name: finding for name, finding in columns.items() if isinstance(finding, Finding)}
    wide = {name: finding for name, finding in found.items() if finding.narrows}
    octaves = {name: Shares(by_column[name][: NUMBER_BINS - 1], np.full(NUMBER_BINS - 1, sigma)) for name in found}
    wide_target = target if of_target and target is not None and target.narrows else None
    narrowed, narrowed_target = _refined(ask, plan, EVEN_BINS, places, octaves, wide, wide_target)
    # Third release: narrower bins, of columns that are in few even bins, or whose limits have room for bins of integers only now.
    few = {name for name, finding in narrowed.items() if ends_in_few_bins(wide[name], finding)}
    again = {name: finding for name, finding in narrowed.items() if name in few or may_be_integers(wide[name], finding)}
    far = target is not None and narrowed_target is not None and ends_in_few_bins(target, narrowed_target)
    narrower, narrower_target = _refined(ask, plan, FEW_BINS, places, octaves, again, narrowed_target if far else None)
    taken = {name: finding for name, finding in narrower.items() if name in few or finding.integers}
    coarse = wide_target is not None and narrowed_target == wide_target
    target = narrower_target or narrowed_target or target
    return Learned({**columns, **narrowed, **taken}, target, coarse, counted, texts, features if plan.whole else {})


def _counted(found: Finding | tuple[Category, float], counts: np.ndarray, sigma: float) -> Shares:
    """Return the shares of the indicators of a category, or of the missing cells of a number."""
    if isinstance(found, Finding):
        missing = NUMBER_BINS - 1
        return Shares(counts[missing : missing + 1], np.array([sigma]))
    category = found[0]
    mixed = counts.size > BUCKETS + 1  # octaves, missing cells, buckets
    buckets, missing = (counts[NUMBER_BINS:], counts[NUMBER_BINS - 1]) if mixed else (counts[:-1], counts[-1])
    kept = np.append(buckets[list(category.buckets or ())], [missing] * category.missing)
    return Shares(np.append(kept, 1 - kept.sum()), sigma * np.append(np.ones(kept.size), math.sqrt(max(kept.size, 1))))


def _refined(
    ask: Callable[[Query], np.ndarray],
    plan: LearningPlan,
    n_bins: int,
    places: Mapping[str, int],
    octaves: Mapping[str, Shares],
    findings: dict[str, Finding],
    target: Finding | None,
) -> tuple[dict[str, Finding], Finding | None]:
    """Make the release of a number of even bins; return what is known of some columns, and of the target, after it."""
    limits = [finding.limits for finding in (*findings.values(), *([] if target is None else [target]))]
    of_columns = tuple(places[name] for name in findings)
    query = FineHistograms(of_columns, np.array(limits, dtype=float).reshape(-1, 2), target is not None, n_bins)
    shares, sigma = _split(ask(query), query.sizes(), plan), plan.noise_of(query)
    pairs = zip(findings.items(), shares, strict=False)
    refined = {
        name: refine(finding, counted, sigma, plan.whole, n_bins, None if plan.whole else octaves[name])
        for (name, finding), counted in pairs
    }
    if target is not None:
        target = refine(target, shares[-1] / TARGET_WEIGHT, sigma / TARGET_WEIGHT, target=True, n_bins=n_bins)
    return refined, target


def warn_of_unlearned(learned: Learned, plan: LearningPlan) -> None:
    """Warn of columns of which nothing was learned, or only a part is read, as the releases tell.

    Parameters
    ----------
    learned : Learned
        What the releases tell.
    plan : LearningPlan
        The public facts. Columns of a boolean type have their bounds.
    """
    low, high = (0.0, 0.0) if learned.target is None else learned.target.limits
    if learned.coarse and (plan.signal < PART or max(low, -high) > APART * (high - low)):
        warn(
            f"Noise hides where the numbers to predict lie between {low:g} and {high:g}, and the noise of the model is in "
            "proportion to this range. Use target_bounds from public knowledge, if they are narrower; more records; or a "
            "larger epsilon.",
            LowSignalWarning,
        )
    names = [
        name
        for name, row in replace(learned, target=None).described().items()
        if name not in plan.facts.truths and (row["kind"] == "undetermined" or row.get("categories") == 0)
    ]
    if names:
        shown, more = first_of(names)
        warn(
            f"Nothing was learned of {shown}{more}: noise hides what is common in them, or they are ids, empty, "
            "read as numbers and hold none, or dates that are kept as text. A model can make little of them. "
            f'Use "ignore" in the schema for ids, as in {{{names[0]!r}: "ignore"}}, which lowers the noise for the others; '
            'numbers for text such as "$1,200", "5 mg" or "1,5" (on the command line --decimal ,), and the types of dates '
            "(pandas.to_datetime), which a CSV does not have; "
            "bounds or categories from public knowledge; more records; or a larger epsilon.",
            LowSignalWarning,
        )
    _warn_of_unread(learned, plan.facts, names)


def _warn_of_unread(learned: Learned, facts: Any, unlearned: Collection[str]) -> None:
    """Warn of other columns of which large shares of the cells are read as missing, or as "other", as the releases tell."""
    found = []
    for name, finding in learned.columns.items():
        if name in unlearned:
            continue
        if not isinstance(finding, Finding):
            share = float(learned.counted[name].shares[-1])
            if name not in facts.codes and share > MOST_OTHER:
                found.append(f"{share:.2g} of {name!r} are in no category that is common enough to count")
        elif learned.texts.get(name, 0.0) > MOST_TEXT:
            found.append(f"{learned.texts[name]:.2g} of {name!r} are text among numbers, and count as missing")
        elif name in facts.texts and finding.missing > MOST_MISSING:
            found.append(f"{finding.missing:.2g} of {name!r} are empty or text, and count as missing")
    if found:
        shown, more = first_of(found, " columns")
        warn(
            f"The releases show that the model does not read many of the cells: about {'; '.join(shown)}{more}. "
            "Use numbers for '1,5' (decimal=',' of pandas.read_csv; on the command line --decimal ,), '5 mg' and '<5', which are "
            'text; "ignore" in the schema for names and free text; and categories or bounds from public knowledge.',
            LowSignalWarning,
        )


def in_words(described: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return what was learned of each column as a line of text."""
    return {name: ", ".join(f"{key} {value}" for key, value in row.items()) for name, row in described.items()}


def _split(answer: np.ndarray, sizes: list[int], plan: LearningPlan) -> list[np.ndarray]:
    return np.split(answer / plan.n_samples, np.cumsum(sizes)[:-1])


def _described(finding: Finding | tuple[Category, float], taken: Any, counted: Shares | None) -> dict[str, Any]:
    """Return what was learned of a column, and the limits and the scale that are taken, as plain types."""
    if not isinstance(finding, Finding):
        category, missing = finding
        other = {} if counted is None else {"other_at_most": round(float(counted.most[-1]), 4)}
        return {"kind": "category", "categories": len(category.buckets or ()), "missing": round(missing, 4), **other}
    number = finding.number() if taken is None else taken
    scale = f"{number.scale} and log" if number.learned is not None and number.learned.logarithm else number.scale
    facts = {"kind": finding.kind, "low": number.bounds[0], "high": number.bounds[1], "scale": scale}
    integers = {"integers": len(finding.integers)} if finding.integers else {}
    other = {"other_at_most": round(finding.other, 4)} if finding.other else {}
    return {**facts, "missing": round(finding.missing, 4), **other, **integers}
