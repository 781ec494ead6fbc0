"""Describe a table under one budget: counts, means, deviations, quantiles and shares of categories, all with intervals."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy.special import ndtri

from skdp._table_types import TypedColumns, as_table, is_lazy
from skdp._validation import check_level, explain_keywords, first_of, shown
from skdp.preprocessing._column_kinds import Column
from skdp.preprocessing._frame_facts import FrameFacts, leaves_to_learn, warn_of_ids, warn_of_left_out
from skdp.preprocessing._learning import HARDLY, MOST_OTHER, USUAL_SHARE, Learned, LearningPlan, learn
from skdp.preprocessing._octave_rule import LEAST_BUCKET
from skdp.preprocessing._schema import Schema
from skdp.privacy.accounting.gaussian_dp import gaussian_mu
from skdp.privacy.accounting.noise_calibration import calibrate, noise_multiplier
from skdp.privacy.budget import Budget
from skdp.privacy.errors import LowSignalWarning, silently, warn
from skdp.privacy.queries import EvenMoments, HaarCounts, LimitedMoments, Query
from skdp.privacy.queries.column_histograms import BUCKETS
from skdp.privacy.queries.haar_counts import CANDIDATES, CATEGORY_WEIGHT, LEAVES
from skdp.privacy.queries.limited_moments import LARGEST
from skdp.privacy.report.statement import PrivacyReport
from skdp.privacy.schedule import Gaussian, Release, Schedule
from skdp.stats._candidates import edges_for
from skdp.stats._described_schema import feature_of
from skdp.stats._description import DescribedCategory, DescribedColumn, DescribedNumbers, Description
from skdp.stats._distribution import SEEN, Distribution, typical_variance
from skdp.stats._estimate import Estimate, share_of
from skdp.stats._limited import limits_of, moments_of
from skdp.stats._plan import Ask, Statement, StatisticsPlan, as_text, budget_of
from skdp.stats._reading import reading

CLIPS = ("auto", "bounds")
# Share of the squared budget for the distributions; the rest is for sums. A plateau of the prototype: .3 and .7 changed errors of
# quantiles by 1.25 and .85, of means by .97 and 1.2.
DISTRIBUTIONS = 0.5
# Noise of a rank, as a share of the records, above which a warning says that noise hides the distributions. A choice: half of the
# interval of a quartile is then a fifth of the records.
MOST_NOISE = 0.1
# Standard deviations of its noise above which a bucket of a learned category is shown; fewer would show empty ones.
SHOWN = 4.0
MISSING = "missing"  # label of learned categories, which the share of missing cells stands for
NUMBERS, REST = "(numbers)", "(other)"  # what else a column holds that is read cell by cell
ADVICE = {  # for columns of which most cells are that
    REST: (
        "text in no bucket that is common, such as dates, names or ids. Use the types of dates (pandas.to_datetime), which a CSV "
        'does not have; categories from public knowledge; or "ignore" in the schema, which lowers the noise for the others.'
    ),
    NUMBERS: "numbers that noise hides. Use bounds from public knowledge, or a type of numbers, such as from x.astype(float).",
}

STATED = (
    "schema has what is known, such as schema={'age': {'kind': 'number', 'bounds': [0, 100]}, 'ward': {'kind': 'category', "
    "'categories': ['A', 'B']}}"
)
SOME = "describe(frame[['age', 'ward']], ...) takes some of the columns"
HINTS = {  # keywords of other functions, and what is right here
    **dict.fromkeys(("bounds", "range", "feature_bounds", "categories"), STATED),
    **dict.fromkeys(("column", "columns", "include", "exclude"), SOME),
    "percentiles": "quantiles has their levels",
    "weights": "sample_weight has the weights of records, with their public bound max_sample_weight",
}


@dataclass(frozen=True)
class Releases:
    """Hold the public facts of the releases of a description.

    Parameters
    ----------
    facts : FrameFacts
        All columns that are read; those that are learned come first.
    budget : Budget
        What may be spent.
    weighted : bool
        Whether the total weight of the records is released.
    """

    facts: FrameFacts
    budget: Budget
    weighted: bool = False

    @property
    def learned(self) -> FrameFacts | None:
        """The facts of the columns that are learned; None if there are none."""
        names = [name for name in self.facts.are_text if name not in self.facts.described]
        return replace(self.facts, are_text={name: self.facts.are_text[name] for name in names}) if names else None

    @property
    def learning(self) -> LearningPlan | None:
        """The releases that learn columns; None if all are described."""
        if self.learned is None:
            return None
        mu = gaussian_mu(self.budget.epsilon, self.budget.delta) * math.sqrt(USUAL_SHARE) if self.budget.private else math.inf
        return replace(LearningPlan.make(self.learned, False, self.budget, mu), whole=True)

    @property
    def n_numbers(self) -> int:
        """Number of columns that are numbers, or may be."""
        return sum(not text for text in self.facts.are_text.values())

    @property
    def undecided(self) -> bool:
        """Whether a release decides which columns are numbers."""
        return None in self.facts.are_text.values()

    @property
    def sums(self) -> type[LimitedMoments]:
        """The query of the sums, with the weight of squares that suits the adjacency."""
        return LimitedMoments if self.budget.adjacency == "replace_one" else EvenMoments

    @property
    def schedule(self) -> Schedule:
        """All releases."""
        likely = self.counts({name: self.likely(name) for name in self.facts.are_text})
        sums = self.sums(likely.numbers, np.tile([-1.0, 1.0], (self.n_numbers, 1)))
        shares = (DISTRIBUTIONS, 1 - DISTRIBUTIONS) if self.n_numbers else (1.0,)
        releases = [
            Release(type(query), Gaussian(share**-0.5), *((None, None) if self.undecided else (query.clip_norm, query.size)))
            for query, share in zip((likely, sums), shares, strict=False)
        ]
        own = Schedule(tuple((1, release) for release in releases))
        return own if self.learning is None else self.learning.schedule.followed_by(own, 1 - USUAL_SHARE)

    def likely(self, name: str) -> Column:
        """Return a column as it may be learned, for a plan."""
        return self.facts.described.get(name) or self.facts.likely().columns[name]

    def counts(self, columns: Mapping[str, Column]) -> HaarCounts:
        """Return the query of the distributions of columns."""
        widths = [1 + (text is None) for text in self.facts.are_text.values()]
        places = dict(zip(self.facts.are_text, np.cumsum([0, *widths]), strict=False))
        numbers = {name: int(places[name]) for name, column in columns.items() if column.ends is not None}
        edges = [_padded(edges_for(*columns[name].ends)) for name in numbers]  # type: ignore[misc]
        others = {name: column for name, column in columns.items() if column.ends is None}
        either = {name: self.facts.are_text[name] is None for name in others}
        return HaarCounts(
            tuple(numbers.values()),
            np.array(edges).reshape(-1, CANDIDATES),
            tuple((int(places[name]) + 1, int(places[name])) if either[name] else (int(places[name]),) for name in others),
            tuple(len(column.labels) if name in self.facts.described else BUCKETS for name, column in others.items()),
            self.weighted,
        )

    def plan(self, statement: Statement) -> StatisticsPlan:
        """Return the plan of the releases."""
        schedule = self.schedule
        return StatisticsPlan(
            statement,
            schedule=schedule,
            budget=self.budget,
            n_samples=self.facts.n_samples,
            scale=calibrate(schedule, self.budget) if self.budget.private else 0.0,
            default_size=len(self.facts.are_text) * LEAVES,
        )

    def described(self, ask: Ask, plan: StatisticsPlan, asked: "Asked") -> tuple[tuple[DescribedColumn, ...], Schema]:
        """Make all releases, and return what they tell of each column, and the schema.

        Nothing here may fail or warn because of a record or of noise.
        """
        learned = Learned({}, None) if self.learning is None else learn(ask, self.learning)
        columns = {**learned.entries(), **self.facts.described}
        query = self.counts(columns)
        coefficients, counts, weight = query.split(ask(query))
        noise = self.noise_of(plan, query)
        total, total_noise = (float(self.facts.n_samples), 0.0) if weight is None else (weight, noise)
        names = [name for name, column in columns.items() if column.ends is not None]
        distributions = {
            name: Distribution(edges, own, noise, total, name in asked.complete, total_noise, name in asked.integers)
            for name, edges, own in zip(names, query.edges, coefficients, strict=True)
        }
        found: dict[str, DescribedColumn] = dict(self._numbers(ask, plan, asked, query.numbers, distributions))
        others = [name for name in columns if name not in distributions]
        for name, count in zip(others, counts, strict=True):
            labels = columns[name].labels if name in self.facts.described else None
            found[name] = asked.category(name, count, labels, noise / CATEGORY_WEIGHT, total, total_noise)
        self.warn_of_texts(found)
        schema = Schema(self.facts.described, None, None)
        if self.learned is not None:
            seen = {name: found[name].missing for name in distributions}
            features = {
                name: feature_of(finding, distributions[name], seen[name].value if seen[name].low > 0 else 0.0)
                for name, finding in learned.features.items()
                if name in distributions
            }
            schema = self.learned.schema(replace(learned, columns={**learned.columns, **features}))
        return tuple(found[name] for name in self.facts.names if name in found), schema

    def _numbers(
        self, ask: Ask, plan: StatisticsPlan, asked: "Asked", places: tuple[int, ...], distributions: Mapping[str, Distribution]
    ) -> Iterator[tuple[str, DescribedNumbers]]:
        """Make the release of sums, and yield what is known of each column of numbers."""
        if not self.n_numbers:
            return
        noise = self.noise_of(plan, self.sums(places, np.zeros((0, 2))))
        truths = {name for name, one in distributions.items() if name in asked.truths and one.bounds == (0.0, 1.0)}
        limits = [
            one.bounds if asked.clip == "bounds" or name in truths else limits_of(one, noise)
            for name, one in distributions.items()
        ]
        query = self.sums(places, np.array(limits).reshape(-1, 2))
        unit = np.array([LARGEST, LARGEST**2 * query.square_weight])
        sums = ask(query).reshape(-1, 2) / unit
        for (name, distribution), own, both in zip(distributions.items(), limits, sums, strict=True):
            known = name in self.facts.described or name in truths
            moments = moments_of(distribution, own, both, noise / unit, asked.z)
            counted, quantiles = asked.counted(distribution), asked.quantiles_of(distribution)
            dates, true = name in self.facts.dated, name in truths
            yield name, DescribedNumbers(name, *counted, distribution, known, own, *moments, quantiles, dates, true)

    def warn_of_texts(self, found: Mapping[str, DescribedColumn]) -> None:
        """Warn of columns that are read cell by cell, and are mostly text or numbers of which nothing is known."""
        mixed = {name: one for name, one in found.items() if self.facts.are_text[name] is None}
        for kind, advice in ADVICE.items():
            names = [
                name
                for name, one in mixed.items()
                if isinstance(one, DescribedCategory) and one.shares.get(kind, Estimate()).low > MOST_OTHER
            ]
            if names:
                named, more = first_of(names)
                warn(f"The releases show that most cells of {named}{more} are {advice}", LowSignalWarning)

    def noise_of(self, plan: StatisticsPlan, query: Query) -> float:
        """Return the standard deviation of the noise in the answer to a query."""
        release = next(release for release in plan.schedule if release.query is type(query))
        return noise_multiplier(release, plan.scale, self.budget.adjacency) * query.clip_norm


@dataclass(frozen=True)
class Asked:
    """Hold what the caller asks for.

    Parameters
    ----------
    quantiles : tuple of float
        Levels of the quantiles.
    confidence : float
        Coverage of the intervals.
    clip : {"auto", "bounds"}
        Whether releases choose limits for mean and deviation, or these are the bounds.
    complete : frozenset of str, default=frozenset()
        Columns in which no cell is missing, by their type.
    integers, truths : frozenset of str, default=frozenset()
        Columns whose cells are integers, and those whose cells are true or false, if they are not missing, by their type.
    factor : float, default=1.0
        Weight of a record that counts as 1.
    """

    quantiles: tuple[float, ...]
    confidence: float
    clip: str
    complete: frozenset[str] = frozenset()
    integers: frozenset[str] = frozenset()
    truths: frozenset[str] = frozenset()
    factor: float = 1.0

    @property
    def z(self) -> float:
        """Half the length of an interval in standard deviations."""
        return float(-ndtri((1 - self.confidence) / 2))

    def counted(self, distribution: Distribution) -> tuple[Estimate, Estimate]:
        """Return the number of cells that are there, and the share of missing ones."""
        total, noise = distribution.total, self.z * distribution.total_noise
        if distribution.complete:
            return Estimate(total, total - noise, total + noise).times(self.factor), Estimate(0.0, 0.0, 0.0)
        missing = distribution.share(np.eye(1, LEAVES, LEAVES - 1)[0], self.z)
        return Estimate(1 - missing.value, 1 - missing.high, 1 - missing.low).times(total * self.factor), missing

    def quantiles_of(self, distribution: Distribution) -> dict[float, Estimate]:
        """Return the quantiles of a column."""
        if not distribution.determined:
            return dict.fromkeys(self.quantiles, Estimate())
        return {q: Estimate(distribution.quantile(q), *distribution.interval(q, self.z)) for q in self.quantiles}

    def category(
        self, name: str, counts: np.ndarray, labels: Sequence[str] | None, noise: float, total: float, total_noise: float
    ) -> DescribedCategory:
        """Return the shares of a category; of one without names, those of the buckets that hold more than noise.

        Parameters
        ----------
        name : str
            The column.
        counts : ndarray of float
            Noisy counts of codes, of missing cells, and perhaps of numbers among text.
        labels : sequence of str or None
            Names of the codes; None for buckets.
        noise, total, total_noise : float
            Noise of a count, number of all records, and its noise.

        Returns
        -------
        DescribedCategory
            Not determined where all records may be noise.
        """
        n_codes = BUCKETS if labels is None else len(labels)
        if total <= max(SEEN * total_noise, 1.0):
            return DescribedCategory(name, Estimate(), Estimate(), {})

        def share(count: float, of_count: float) -> Estimate:
            return share_of(count, math.hypot(of_count, total_noise * count / total), total, self.z)

        missing = share(counts[n_codes], noise)
        present = Estimate(1 - missing.value, 1 - missing.high, 1 - missing.low).times(total * self.factor)
        if labels is not None:
            shares = {label: share(count, noise) for label, count in zip(labels, counts, strict=False) if label != MISSING}
            return DescribedCategory(name, present, missing, shares)
        seen = np.flatnonzero(counts[:n_codes] > max(SHOWN * noise, LEAST_BUCKET * total))
        shares = {f"bucket {bucket}": share(counts[bucket], noise) for bucket in seen.tolist()}
        if counts.size > n_codes + 1:
            shares[NUMBERS] = share(counts[-1], noise)
        rest = total - counts[n_codes:].sum() - counts[seen].sum()
        shares[REST] = share(rest, noise * math.sqrt(seen.size + counts.size - n_codes))
        return DescribedCategory(name, present, missing, shares)


@explain_keywords(HINTS)
@silently
def describe(
    frame: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: str = "replace_one",
    schema: Any = None,
    quantiles: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
    confidence: float = 0.95,
    clip: str = "auto",
    persons: Any = None,
    sample_weight: Any = None,
    max_sample_weight: float | None = None,
    random_state: Any = None,
) -> Description:
    r"""Describe the columns of a table under one privacy budget, with intervals.

    Of a column of numbers: how many cells are there, the share of missing ones, mean, standard deviation and quantiles. Of other
    columns: the share of each category. Each number has an interval that covers the noise and the sampling of the records.

    Parameters
    ----------
    frame : DataFrame of shape (n_samples, n_columns), or table in partitions
        Records, of pandas, polars or Dask, or a table of `skdp.data`.
    epsilon : float
        Privacy budget of the whole description.
    delta : float or None, default=None
        Privacy parameter in (0, 1); None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables are neighbours.
    schema : dict, path-like, Schema, "learn" or None, default=None
        What is known of the columns, as estimators take it: bounds and categories from public knowledge cost nothing. The bounds
        of other columns are learned, with a tenth of the squared budget, and categories without names are counted by the bucket
        of a hash.
    quantiles : sequence of float, default=(0.05, 0.25, 0.5, 0.75, 0.95)
        Levels of the quantiles, in [0, 1].
    confidence : float, default=0.95
        Coverage of each interval.
    clip : {"auto", "bounds"}, default="auto"
        Mean and standard deviation are of values clipped to limits. "auto" chooses these from the first release where that lowers
        the error; a row whose limits are no stated bounds has a name that says so. "bounds" takes the bounds, so that intervals
        cover the plain mean of a column with stated bounds, and are wider.
    persons : array-like of shape (n_samples,), str or None, default=None
        Whose each row is: an id per row, or the name of a column. Persons are protected with all their rows then, and each counts
        as one record, the mean of her rows.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weight of each record, for a table in memory.
    max_sample_weight : float or None, default=None
        Their public bound.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

    Returns
    -------
    Description
        Prints like ``DataFrame.describe``; ``table``, ``intervals``, ``categories`` and ``limits`` are data frames, ``plot()``
        draws it, and ``schema`` lets a later fit learn nothing of the columns.

    Raises
    ------
    TypeError, ValueError
        For parameters and tables that are not valid, before anything is charged.

    See Also
    --------
    plan_describe : Tell the noise before.

    Notes
    -----
    **Privacy.** Two Gaussian releases: Haar coefficients of the counts of each column between public candidates, with the counts
    of categories; then sums of values between limits that follow from the first release, and of their squares. Where columns are
    learned, three histograms come first. Their squared Gaussian-DP parameters add up exactly. All else follows from these
    releases and from public facts. The proofs are in :doc:`/proofs/statistics`.

    A sampling error is estimated as if records were drawn independently, and persons are at least as variable as that.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.stats import describe
    >>> age = np.arange(60_000) % 61 + 20.0
    >>> frame = pd.DataFrame({"age": age, "city": np.where(age < 50, "Kent", "York")})
    >>> known = {"age": {"kind": "number", "bounds": [0, 120]}, "city": {"kind": "category", "categories": ["Kent", "York"]}}
    >>> found = describe(frame, epsilon=1.0, schema=known)
    >>> low, high = found.intervals.loc[("age", "quantile 0.5"), ["low", "high"]]
    >>> bool(low <= 50 <= high)
    True
    """
    asked = _asked(quantiles, confidence, clip)
    frame = as_table(frame)
    if not hasattr(_typed(frame), "columns"):
        raise TypeError(f"frame is a {type(frame).__name__}; expected a data frame, such as pandas.DataFrame(x, columns=[...]).")
    unit = "record" if persons is None else "person"
    names = [name for name in getattr(_typed(frame), "columns", ()) if not (isinstance(persons, str) and name == persons)]
    words = _words(schema, names, frame)
    warn_of_ids(words if schema is not None else None, frame, unit=unit)
    weights = {"sample_weight": sample_weight, "max_sample_weight": max_sample_weight}
    with reading(frame, None, kind=None, described=words, persons=persons, **weights) as table:
        del frame, persons, weights, sample_weight
        releases = Releases(table.facts, _gaussian(budget_of(table, epsilon, delta, adjacency)), table.weighted)
        asked = replace(asked, complete=table.complete, integers=table.integers, truths=table.truths)
        asked = replace(asked, factor=table.max_sample_weight or 1.0)
        plan = releases.plan(_statement(releases, asked))
        (columns, learned), report = plan.run(table, lambda ask: releases.described(ask, plan, asked), random_state)
    return Description(columns, confidence, asked.z, learned, report)


@explain_keywords(HINTS)
@silently
def plan_describe(
    n_samples: Any,
    columns: Any = None,
    *,
    epsilon: float,
    delta: float | None = None,
    adjacency: str = "replace_one",
    schema: Any = None,
    privacy_unit: str = "record",
) -> PrivacyReport:
    """Tell the noise of a description before any record is read.

    Parameters
    ----------
    n_samples : int, DataFrame or table in partitions
        Number of records, or of persons; or a table, of which the number of records and the names and types of the columns are
        read.
    columns : int, sequence of str or None, default=None
        Names of the columns, or how many; columns that ``schema`` does not name count as numbers that are learned. None for
        those of a table, or of a schema.
    epsilon, delta, adjacency : float, float or None, and str
        As of `describe`.
    schema : dict, path-like, Schema or None, default=None
        As of `describe`.
    privacy_unit : {"record", "person"}, default="record"
        What is protected.

    Returns
    -------
    PrivacyReport
        The releases; ``noise_size`` has the noise of shares, of ranks, and of means in units of the bounds.

    Raises
    ------
    TypeError, ValueError
        For parameters that are not valid.

    Notes
    -----
    **Privacy.** No record is read, so this costs nothing.

    Examples
    --------
    >>> from skdp.stats import plan_describe
    >>> print(plan_describe(50_000, ["age", "income"], epsilon=1.0).noise_size)
    0.0011 of the records in the rank of a quantile, 0.00024 of the distance between the limits in a mean
    """
    table = as_table(n_samples) if hasattr(n_samples, "columns") or is_lazy(n_samples) else None
    if table is None:
        if not isinstance(n_samples, Integral) or isinstance(n_samples, bool) or int(n_samples) < 2:
            raise ValueError(f"n_samples={shown(n_samples)}; expected an integer from 2 on, or a table.")
        if columns is None:
            columns = list(Schema.read(schema).columns)
        names = [f"x{place}" for place in range(int(columns))] if isinstance(columns, Integral) else list(columns)
        table = TypedColumns(dict.fromkeys(names, np.dtype(float)), int(n_samples))
    table = _typed(table)
    facts = FrameFacts.of(table, _words(schema, list(table.columns), table), target=True).with_described()
    budget = Budget.from_parameters(epsilon, delta, adjacency, facts.n_samples, privacy_unit)
    releases = Releases(facts, _gaussian(budget))
    return releases.plan(_statement(releases, Asked((), 0.95, "auto"))).report()


def _asked(quantiles: Any, confidence: Any, clip: Any) -> Asked:
    """Return what the caller asks for; raise ValueError for what is not valid."""
    check_level(confidence, "confidence")
    levels = [quantiles] if isinstance(quantiles, Real) else list(quantiles)
    if not all(isinstance(q, Real) and not isinstance(q, bool) and 0 <= float(q) <= 1 for q in levels):
        raise ValueError(f"quantiles={shown(quantiles)}; expected numbers in [0, 1].")
    if clip not in CLIPS:
        raise ValueError(f"clip={shown(clip)}; expected one of {', '.join(CLIPS)}.")
    return Asked(tuple(sorted({float(q) for q in levels})), float(confidence), clip)


def _typed(table: Any) -> Any:
    """Return names and types of the columns of a table in partitions; any other one as it is."""
    if not is_lazy(table):
        return table
    from skdp.data._cells import typed_columns  # which imports the readers of frames

    return typed_columns(table)


def _words(schema: Any, names: list[str], table: Any) -> Any:
    """Return what is known of each column, or how it is read, as `FrameFacts` takes it."""
    if schema is None or (isinstance(schema, str) and schema == "learn"):
        return None
    if leaves_to_learn(schema, table):
        return schema
    warn_of_left_out(schema, table)
    content = Schema.read(schema, names).to_dict()
    entries, target = content["columns"], content.get("target")
    if target is not None and target in names:
        kinds = {"classes": {"kind": "category", "categories": content.get("classes")}}
        kinds["target_bounds"] = {"kind": "number", "bounds": content.get("target_bounds")}
        entries |= {target: next((facts for key, facts in kinds.items() if key in content), "ignore")}
    if unknown := [name for name in entries if name not in names]:
        raise ValueError(f"schema names the columns {unknown}, which the table does not have; expected its columns.")
    return {name: entries.get(name, "ignore") for name in names}


def _gaussian(budget: Budget) -> Budget:
    if budget.delta == 0:
        raise ValueError(
            "delta=0: describe needs Gaussian noise, which has no pure guarantee; expected a positive delta, or None."
        )
    return budget


def _padded(edges: np.ndarray) -> np.ndarray:
    return np.append(edges, np.full(CANDIDATES - edges.size, edges[-1]))


def _statement(releases: Releases, asked: Asked) -> Statement:
    """Return what the report says, from public facts."""
    n, learning = releases.facts.n_samples, releases.learning
    plan = releases.plan(Statement("describe", "", "", {}))
    likely = releases.counts({name: releases.likely(name) for name in releases.facts.are_text})
    noise = releases.noise_of(plan, likely) / n
    rank, share = noise * math.sqrt(typical_variance()), noise / CATEGORY_WEIGHT if likely.categories else 0.0
    sizes = [f"{rank:.2g} of the records in the rank of a quantile"] if releases.n_numbers else []
    if releases.n_numbers:
        of_sums = releases.noise_of(plan, releases.sums(likely.numbers, np.zeros((0, 2)))) / n
        sizes.append(f"{of_sums / 2:.2g} of the distance between the limits in a mean")
    if likely.categories:
        sizes.append(f"{share:.2g} in the share of a category")
    hidden = None
    if learning is not None and learning.signal < HARDLY:
        hidden = (
            f"the bounds of most columns that are learned (signal {learning.signal:.2g} of {HARDLY}), and what follows from them,"
        )
    elif max(rank * bool(releases.n_numbers), share) > MOST_NOISE:
        hidden = f"how the cells are distributed (its noise is {max(rank, share):.2g} of the records)"
    title = "counts of all columns along trees of public candidates, then sums between limits that follow from them"
    return Statement(
        "describe",
        title if learning is None else f"histograms that learn columns, then {title}",
        f"the only one; the counts get {DISTRIBUTIONS:.0%} of the squared budget that learning columns leaves",
        as_text(
            ({"quantiles": asked.quantiles} if asked.quantiles else {}) | {"confidence": asked.confidence, "clip": asked.clip}
        ),
        noise_size=", ".join(sizes),
        hidden=hidden,
        public={"read_as": releases.facts.read_as},
    )
