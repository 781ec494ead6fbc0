"""Quantiles: the exact law of all choices, what is chosen without noise, intervals, and values that many records share."""

import math
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from scipy.stats import chisquare
from seeded import source

from skdp import stats
from skdp.privacy.accounting.noise_calibration import calibrate
from skdp.privacy.budget import Budget
from skdp.privacy.data.column_cells import ColumnCells
from skdp.privacy.noise import GumbelNoise
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import Ranks, RankScores
from skdp.privacy.schedule import Schedule
from skdp.stats import _quantiles, _rank_line
from skdp.stats._quantiles import RankSearch, halved
from skdp.stats._rank_line import RankLine
from skdp.testing import reproducible_noise

Z = 1.96
CELLS = np.array([0.0, 0.0, 1.0, 1.5, 1.5, 2.0])
NEIGHBOURS = {  # what becomes of the last record, or of the first
    "replace_one": [(5, 0.0), (5, 1.5), (5, math.nan), (0, 2.0), (0, 1.0), (2, 2.0), (2, 0.0)],
    "zero_out": [(i, math.nan) for i in (0, 2, 3, 5)],
}


def searched(shares, epsilon, adjacency, n, z=None, n_there=None):
    budget = Budget(epsilon, 0.0, adjacency)
    search = RankSearch((0.0, *shares, 1.0), budget, 1.0, n, n if n_there is None else n_there, z).with_ends()
    return search, Schedule(tuple((1, release) for release in search.releases))


@pytest.fixture
def few_places(monkeypatch):
    """Few places of each leaf, so that all outcomes can be listed."""
    for name, number in {"OF_NUMBERS": 1, "OF_GAPS": 2, "OF_INTEGERS": 1, "OF_ENDS": 2}.items():
        monkeypatch.setattr(_rank_line, name, number)


class Asked(Exception):
    """Carries the next query."""


def law(search, line, scales, tables, prefix=(), so_far=0.0):
    """Yield the logarithms of the probabilities of each outcome in all tables, by the formula of the exponential mechanism."""
    answers = iter(prefix)

    def ask(query):
        answer = next(answers, None)
        if answer is None:
            raise Asked(query)
        return answer

    try:
        search.find(ask, line)
    except Asked as asked:
        query = asked.args[0]
        noise = scales[len(prefix)] * query.sensitivity(search.budget.adjacency)
        groups = [
            np.array([log_softmax(query.groups(query.evaluate(table))[place] / noise) for table in tables])
            for place in range(len(query.choices))
        ]
        for chosen in product(*(range(group.shape[1]) for group in groups)):
            more = sum(group[:, index] for group, index in zip(groups, chosen, strict=True))
            yield from law(search, line, scales, tables, (*prefix, chosen), so_far + more)
    else:
        yield so_far


@dataclass(frozen=True, eq=False)
class OneBlock(RankScores):
    """A twin that charges one block where a replaced record is in two."""

    relative_sensitivity: ClassVar = {"replace_one": 1.0, "zero_out": 1.0}


def largest_ratio(shares, epsilon, adjacency, n_there=None, z=None):
    """Return the largest log-ratio of the probabilities of an outcome, over all outcomes and neighbours."""
    search, schedule = searched(shares, epsilon, adjacency, CELLS.size, z, n_there)
    line = RankLine(np.array([0.0, 1.0, 2.0]), False)
    scales = [calibrate(schedule, search.budget) * release.mechanism.weight for release in schedule]
    others = []
    for place, value in NEIGHBOURS[adjacency]:
        others.append(CELLS.copy())
        others[-1][place] = value
    tables = [ColumnCells(cells[:, None]) for cells in (CELLS, *others)]
    logs = np.array(list(law(search, line, scales, tables)))
    np.testing.assert_allclose(np.exp(logs).sum(axis=0), 1.0, rtol=1e-9)
    return np.abs(logs - logs[:, :1]).max()


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_no_outcome_of_all_choices_is_more_likely_by_more_than_epsilon(adjacency, few_places):
    """Every outcome of halving, for several neighbours."""
    for shares in ((0.5,), (0.25, 0.5, 0.8)):
        found = largest_ratio(shares, 1.5, adjacency)
        assert 0.3 * 1.5 < found <= 1.5 * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_an_audit_of_a_level_attains_epsilon_and_catches_the_twin_that_charges_one_block(adjacency):
    """A record moves from one block to another, or leaves; preferences make the other candidate of each block all but certain."""
    preferences = (np.array([0.0, 1e3]), np.array([1e3, 0.0]))
    places = (np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    choices = tuple(Ranks(p[0] - 1, p[1], 0.5, 0.0, p, p, offset) for p, offset in zip(places, preferences, strict=True))
    cells = np.array([0.0, 0.5, 0.5, 0.5, 1.0, 1.5, 1.5, 1.5])
    tables = [ColumnCells(np.append(c, cells[1:])[:, None]) for c in (0.0, 1.0 if adjacency == "replace_one" else math.nan)]
    for kind, factor in ((RankScores, 1.0), (OneBlock, 2.0 if adjacency == "replace_one" else 1.0)):
        query = kind(0, np.array([0.0, 1.0, 2.0]), choices)
        noise = 2 / 1.5 * query.sensitivity(adjacency)  # of a selection of epsilon 1.5
        scores = [query.groups(query.evaluate(table)) for table in tables]
        logs = [log_softmax(first / noise)[0] + log_softmax(second / noise)[1] for first, second in scores]
        assert logs[0] - logs[1] == pytest.approx(1.5 * factor, rel=1e-6)


@pytest.mark.parametrize("adjacency", ("replace_one", "zero_out"))
def test_no_outcome_of_the_choices_of_intervals_is_more_likely_by_more_than_epsilon(adjacency, few_places):
    assert largest_ratio((0.5,), 1.5, adjacency, n_there=1e9, z=0.5) <= 1.5 * (1 + 1e-9)


def test_the_oracle_chooses_in_each_group_as_the_exponential_mechanism_does(few_places):
    """Frequencies of 600 pairs; less than half of the noise fails here."""
    search, _ = searched((0.25, 0.5, 0.75), 2.0, "replace_one", CELLS.size)
    line, noise = RankLine(np.array([0.0, 1.0, 2.0]), False), search.noise(1, 0.5)
    choices = tuple(line.part(start, stop, 0.5, noise) for start, stop in ((0.0, 2.0), (2.0, 5.0)))
    query, table = RankScores(0, line.edges, choices), ColumnCells(CELLS[:, None])
    schedule = Schedule(((600, search.releases[1]),))
    oracle = Oracle(table, schedule, search.budget, 1 / search.budget.epsilon, source(0))
    chosen = np.array([oracle.ask(query) for _ in range(600)])
    groups = query.groups(query.evaluate(table))
    scale = search.releases[1].mechanism.weight / search.budget.epsilon * query.sensitivity("replace_one")
    for place, scores in enumerate(groups):
        observed = np.bincount(chosen[:, place], minlength=scores.size)
        for factor, right in ((1.0, True), (0.4, False)):
            expected = 600 * np.exp(log_softmax(scores / (factor * scale)))
            assert (chisquare(observed, expected).pvalue > 1e-4) == right  # a false alarm in 5000


def test_the_noise_that_intervals_rest_on_is_that_of_the_oracle():
    """In records: the scale of the noise in a score, times the larger share."""
    for adjacency in ("replace_one", "zero_out"):
        search, schedule = searched((0.2, 0.5, 0.9), 0.7, adjacency, 1000, Z)
        scale = calibrate(schedule, search.budget)
        line = RankLine(np.arange(5.0), False)
        for release, nodes in enumerate(search.levels):
            choices = tuple(line.part(0.0, 9.0, node.share, 1.0) for node in nodes)
            own = (
                RankScores(0, line.edges, choices).sensitivity(adjacency) * scale * schedule.entries[release][1].mechanism.weight
            )
            for node in nodes:
                assert search.noise(release, node.share) == pytest.approx(own * max(node.share, 1 - node.share), rel=1e-9)


@pytest.mark.parametrize("m", (1, 2, 3, 5, 7, 19, 100))
def test_the_tree_is_as_low_as_can_be_and_has_each_quantile_once(m):
    shares = [0.0, *np.linspace(0, 1, m + 2)[1:-1] ** 2, 1.0]
    levels = halved(shares)
    assert len(levels) == math.ceil(math.log2(m + 1))
    assert sorted(node.quantile for level in levels for node in level) == [*range(1, m + 1)]
    chosen = {0, m + 1}
    for level in levels:
        assert all(node.lower in chosen and node.upper in chosen and 0 < node.share < 1 for node in level)
        chosen |= {node.quantile for node in level}


def test_without_privacy_quantiles_are_exact():
    """At values that many records share, too, in any order of q, and given twice; integers stay integers."""
    x = np.repeat([0, 3, 4, 50], [600, 150, 150, 100])
    with pytest.warns(match="not private"):
        found = stats.quantile(x, [0.95, 0.3, 0.65, 0.3, 0.8], epsilon=math.inf, bounds=(0, 100))
    assert found.value.tolist() == [50, 0, 3, 0, 4]
    with pytest.warns(match="not private"):
        assert float(stats.median(np.arange(1001) / 1000, epsilon=math.inf, bounds=(0, 1))) == pytest.approx(0.5, abs=2e-3)


def test_tables_of_quantiles_show_labels_and_intervals():
    x = pd.Series(np.arange(20_000) % 100, name="age")
    with reproducible_noise(0):
        found = stats.quantile(x, (0.9, 0.1), epsilon=1.0, bounds=(0, 99))
    assert found.table.index.tolist() == ["0.9", "0.1"] and found.intervals.loc["0.9", "value"] == found.value[0]
    assert np.all(found.low <= np.asarray(found)) and np.all(np.asarray(found) <= found.high)
    assert "\n0.9  " in str(found) and " to " in repr(found)
    assert "a record moves a rank by at most 1" in str(found.privacy_report) and found.privacy_report.spent.delta == 0


def test_without_confidence_the_interval_is_the_bounds_and_the_noise_is_smaller():
    x = np.arange(2000) % 100
    found = stats.median(x, epsilon=1.0, bounds=(0, 99), confidence=None)
    assert found.interval == (0.0, 99.0) and len(found.privacy_report.releases) == 1


@pytest.mark.parametrize("q", (0, 1, 1.5, math.nan, [], [0.5, 2.0], "half", True, None, [[0.5]]))
def test_shares_that_are_none_are_refused(q):
    with pytest.raises(ValueError, match=r"expected a number above 0 and below 1"):
        stats.quantile(np.arange(10.0), q, epsilon=1.0, bounds=(0, 9))


def test_noise_that_hides_quantiles_is_said_before():
    with pytest.warns(match="Noise is likely to hide the quantile"):
        stats.quantile(np.arange(50.0), [0.1, 0.9], epsilon=0.1, bounds=(0, 50))


LAWS = {  # how cells are drawn, and bounds
    "normal": (lambda rng, n: rng.normal(40, 10, n), (0, 120)),
    "ties": (lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, np.exp(rng.normal(7, 1, n))), (0, 1e5)),
    "heavy": (lambda rng, n: rng.pareto(1.1, n), (0, 1e6)),
    "integers": (lambda rng, n: np.rint(rng.gamma(2, 20, n)).astype(int), (0, 1000)),
    "missing": (lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(0, 1, n)), (-20, 20)),
}


def coverage(law, q, n, epsilon, repetitions):
    """Return the share of intervals that hold the quantile of the law."""
    draw, bounds = LAWS[law]
    truth = np.nanquantile(draw(np.random.default_rng(99), 2_000_000), q, method="inverted_cdf")
    held = np.zeros(np.size(q))
    for seed in range(repetitions):
        with reproducible_noise(seed):
            found = stats.quantile(draw(np.random.default_rng(seed), n), q, epsilon=epsilon, bounds=bounds)
        low, high = (found.low, found.high) if np.ndim(q) else found.interval
        held += (low <= truth) & (truth <= high)
    return held / repetitions


@pytest.mark.slow  # a twin of a quarter of a second is below
@pytest.mark.filterwarnings("ignore:Noise is likely to hide")
@pytest.mark.parametrize("law", LAWS)
def test_intervals_hold_the_quantiles_of_the_law(law):
    """95 % of 80, but for binomial error of 4 standard deviations, which is 10 %: a false alarm in 30 000 for each number."""
    for q, n, epsilon in ((0.5, 500, 1.0), (0.9, 5000, 0.5), ((0.25, 0.5, 0.9), 2000, 2.0)):
        assert np.all(coverage(law, q, n, epsilon, 80) > 0.85)


def test_intervals_hold_the_median_of_the_law():
    """At least 24 of 30, which happens with a probability of 0.9997 if 95 % hold it."""
    assert coverage("normal", 0.5, 300, 3.0, 30) > 0.79


def test_choices_of_intervals_that_have_no_room_are_not_made():
    """Then the ends are quantiles beyond, or bounds, and all of epsilon is for the numbers."""
    search, _ = searched((0.45, 0.5, 0.55), 0.5, "replace_one", 500, Z)
    assert search.ends == () and sum(search.portions) == pytest.approx(1.0)
    search, _ = searched((0.45, 0.5, 0.55), 3.0, "replace_one", 50_000, Z)
    assert [len(level) for level in search.ends] == [4, 2] and sum(search.portions[2:]) == pytest.approx(1 - _quantiles.MAIN)


def test_integers_do_not_attract_the_ends_of_intervals():
    """An integer has a preference over other numbers for a quantile, and none for an end."""
    line = RankLine(np.array([0.5, 1.25, 2.0, 2.75, 3.5]), False)
    number, end = line.part(1.0, 8.0, 0.5, 1.0), line.end(1.0, 8.0, 0.5, 5.0, 1.0)
    weights = [np.exp(choice.offset * choice.larger_share) for choice in (number, end)]
    shares = [w[choice.low.astype(int) == 4].sum() / w.sum() for w, choice in zip(weights, (number, end), strict=True)]
    assert shares[0] > 0.2 > 2 * shares[1]


def test_empty_leaves_do_not_keep_the_end_of_an_interval_from_a_number_that_many_share():
    """200 records share a number in a gap; the end of the interval is to be beyond 20 of them, and the noise is 8 records."""
    line = RankLine(0.3 + np.arange(9.0), False)
    cells = ColumnCells(np.append(np.full(200, 4.7), np.full(50, 7.5))[:, None])
    end = line.end(3.0, line.last + 1.0, 0.0, 20.0, 8.0)
    places = replace(line.part(3.0, line.last + 1.0, 0.0, 8.0), shift=20.0)  # the twin
    shares = []
    for choice in (end, places):
        chances = np.exp(log_softmax(RankScores(0, line.edges, (choice,)).evaluate(cells) / 8.0))
        shares.append(chances[choice.low >= 9.0].sum())  # the gap of the 200
    assert shares[0] > 0.6 > 2 * shares[1]
    assert end.low.size == end.high.size and (end.high - end.low == 1).all()


def test_the_report_states_the_roundings_that_the_noise_covers(monkeypatch):
    """All but those of preferences for candidates, which follow from earlier releases: a tenth of them here."""
    found, calibrated = [], GumbelNoise.calibrated

    def watched(**facts):
        found.append(facts)
        return calibrated(**facts)

    monkeypatch.setattr(GumbelNoise, "calibrated", watched)
    report = stats.quantile(np.arange(5000.0), [0.2, 0.5, 0.8], bounds=(0, 5000), epsilon=1.0).privacy_report
    stated, used = ([facts["rounding"] for facts in part] for part in (found[:4], found[-4:]))
    assert all(0.8 * one <= other <= one for one, other in zip(used, stated, strict=True))
    assert str(report).count("at least") == 4
