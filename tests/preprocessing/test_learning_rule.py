"""What is concluded from histograms: pure functions of releases, in any unit, for either sign, and under noise."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp.preprocessing._column_kinds import Category, LearnedScale, Number
from skdp.preprocessing._fine_rule import ends_in_few_bins, refine
from skdp.preprocessing._learning import Learned
from skdp.preprocessing._octave_rule import FAR_Z, Finding, common_buckets, number_or_text, place_octaves, place_truths
from skdp.preprocessing._parts import Shares
from skdp.preprocessing._range_search import QUESTIONS, RangeSearch, search_share
from skdp.privacy.queries.column_histograms import (
    BUCKETS,
    EVEN_BINS,
    NUMBER_BINS,
    OCTAVES,
    FineBins,
    integers_between,
    octave_bins,
)

N = 20_000
SIGMA = 1e-4


def octaves(x, sigma=0.0, rng=None):
    noise = sigma * rng.normal(size=NUMBER_BINS) if rng is not None else 0.0
    return np.bincount(octave_bins(x), minlength=NUMBER_BINS) / x.size + noise


def fine(finding, x, target=False):
    integers = integers_between(*finding.limits) if not target else np.zeros(0)
    bins = FineBins(*finding.limits, integers)(x)
    return np.bincount(bins, minlength=EVEN_BINS + integers.size + 1)[: EVEN_BINS + integers.size] / x.size


def both(x, sigma=SIGMA, target=False):
    first = place_octaves(octaves(x), sigma, target)
    return refine(first, fine(first, x, target), sigma, target) if first.narrows else first


@pytest.fixture
def columns(rng):
    z = rng.normal(size=N)
    return {
        "normal": z,
        "shifted": z / 100 + 7.3,
        "positive": np.exp(z / 2),
        "heavy": np.exp(3 * z),
        "heavy of both signs": np.sign(z) * np.exp(3 * rng.normal(size=N)),
        "mostly zeros": np.where(rng.random(N) < 0.8, 0.0, 3 + z / 4),
        "uniform": rng.uniform(-1, 1, N),
    }


@pytest.mark.parametrize("exponent", (-40, -7, 0, 3, 38))
def test_another_unit_gives_the_same_in_this_unit(exponent, columns):
    """Where no bins of integers are in play."""
    unit = 2.0**exponent
    for name in ("normal", "positive", "heavy", "heavy of both signs", "uniform", "mostly zeros"):
        here, there = (place_octaves(octaves(x), SIGMA) for x in (columns[name], unit * columns[name]))
        scaled = replace(here, limits=tuple(unit * v for v in here.limits), core=tuple(unit * v for v in here.core))
        scaled = replace(scaled, centre=unit * here.centre, unit=unit * here.unit if here.kind == "log" else 1.0)
        scaled = replace(scaled, logarithm=unit * here.logarithm)
        assert there == scaled, name


@pytest.mark.parametrize("sigma", (SIGMA, 0.01, 0.02))
def test_the_other_sign_gives_the_mirror_image(sigma, columns):
    for name, x in columns.items():
        here, there = place_octaves(octaves(x), sigma), place_octaves(octaves(-x), sigma)
        mirrored = replace(here, limits=here.limits[::-1], core=here.core[::-1])
        mirrored = replace(
            mirrored, limits=tuple(-v for v in mirrored.limits), core=tuple(-v for v in mirrored.core), centre=-here.centre
        )
        assert there == mirrored, name


def test_columns_are_what_they_look_like(columns):
    kinds = {name: both(x).kind for name, x in columns.items()}
    heavy = {"heavy", "heavy of both signs"}
    assert kinds == {name: "log" if name in heavy else "linear" for name in columns}
    for name in set(columns) - heavy:
        low, high = both(columns[name]).limits
        inside = (columns[name] >= low) & (columns[name] <= high)
        assert inside.mean() > 0.985, name
        assert np.ptp(columns[name][inside]) > (high - low) / 4, name  # and they are not much wider
    assert both(columns["mostly zeros"]).centre == 0
    assert both(columns["shifted"]).centre == pytest.approx(7.3, abs=0.02)


def test_heavy_tails_have_the_unit_of_their_body(columns):
    one, two = both(columns["heavy"]), both(columns["heavy of both signs"])
    assert one.unit == 2.0 ** math.floor(math.log2(np.quantile(columns["heavy"], 0.1)))
    assert two.unit == 2.0 ** math.floor(math.log2(np.median(np.abs(columns["heavy of both signs"]))))
    assert one.limits[0] == 0 < one.limits[1] and two.limits[0] < 0 < two.limits[1]
    x = columns["heavy"].copy()
    x[:300] = 1e15  # 1.5 % outliers: the largest bound is 20 octaves above the median
    assert both(x).limits[1] == 2.0 ** (np.frexp(np.median(x))[1] + 20)


def test_few_integers_get_indicators(rng):
    x = rng.integers(1, 13, N).astype(float)
    found = both(x)
    assert (found.kind, found.limits, found.integers) == ("integers", (1.0, 12.0), tuple(np.arange(1.0, 13)))
    assert found.centre == 6.5 and found.square == 1 / 3
    hidden = both(x, sigma=0.012)  # bins of .083 are told apart, and the limits of the first round are one octave further
    assert hidden.kind == "integers" and hidden.limits == (1.0, 12.0)
    many = both(rng.integers(0, 60, N).astype(float))
    assert many.kind == "integers" and many.integers == ()
    binary = both(rng.integers(0, 2, N).astype(float))
    assert binary.limits == (0.0, 1.0) and binary.integers == ()
    counts = both(np.where(rng.random(N) < 0.7, 3.0, x))
    assert counts.centre == 3 and counts.square < 0.11
    assert both(x + 0.5).integers == ()
    with_rest = both(np.where(rng.random(N) < 0.3, x + 0.5, x))
    assert with_rest.kind == "linear"


def test_integers_that_noise_hides_are_taken_together(rng):
    """60 bins of a 60th each at a noise of a 100th: none counts alone, their sum does."""
    x = rng.integers(0, 60, N).astype(float)
    first = place_octaves(octaves(x), SIGMA)
    shares = fine(first, x)
    shares[EVEN_BINS + 5] += 0.03  # one that counts
    found = refine(first, shares, 0.0125)
    assert found.kind == "integers" and found.integers == () and found.limits[0] <= 3 and found.limits[1] >= 55


@pytest.mark.parametrize("value", (0.0, 5.0, -3.0))
def test_a_constant_becomes_its_sign(value):
    found = both(np.full(N, value))
    assert (found.kind, found.centre) == ("constant", value)
    number = found.number()
    assert number.scale == "sign" and number.bounds == (value - 1, value + 1)


def test_missing_cells_are_counted_and_few_are_not(rng):
    x = rng.normal(size=N)
    x[: N // 10] = np.nan
    found = both(x)
    assert found.missing == pytest.approx(0.1) and found.number().learned.missing
    assert found.number().mean_square == pytest.approx(1 / 3 + 0.1)
    x[20:] = rng.normal(size=N - 20)
    assert both(x).missing == 0 and not both(x).number().learned.missing


def test_outliers_do_not_set_the_limits(rng):
    x = rng.normal(size=N)
    x[:30], x[30:60] = 1e12, -1e12
    low, high = both(x).limits
    assert -8 <= low < -2 and 2 < high <= 8
    target = both(x, target=True)
    assert target.kind == "linear"


def test_targets_keep_a_margin_and_no_logarithm(columns):
    found = both(columns["heavy"], target=True)
    assert found.kind == "linear" and found.integers == ()
    low, high = both(columns["normal"], target=True).limits
    assert low < np.quantile(columns["normal"], 0.005) and high > np.quantile(columns["normal"], 0.995)


def test_what_noise_hides_is_undetermined_and_small_exponents_are_likely():
    nothing = place_octaves(np.zeros(NUMBER_BINS), 0.2)
    assert nothing.kind == "undetermined" and nothing.core == (-1.0, 1.0) and nothing.limits == (-4.0, 4.0)
    hint = np.zeros(NUMBER_BINS)
    hint[octave_bins(np.array([700.0, -700.0]))] = 0.4  # two standard deviations each
    assert place_octaves(hint, 0.2).core[1] >= 1024


def test_limits_are_further_out_where_noise_hides_a_tail(columns):
    limits = [place_octaves(octaves(columns["positive"]), sigma).limits[1] for sigma in (0.003, 0.005, 0.016)]
    assert limits[1] == 2 * limits[0] and limits[2] >= limits[1]


def test_a_column_of_noise_alone_is_rarely_believed(rng):
    """Without a record, 3 % of the columns have a bin above 3.7 standard deviations; 40 of 400 are below 1e-9 likely."""
    kinds = [place_octaves(0.05 * rng.normal(size=NUMBER_BINS), 0.05).kind for _ in range(400)]
    assert sum(kind != "undetermined" for kind in kinds) < 40
    kept = [common_buckets(0.05 * rng.normal(size=BUCKETS + 1), 0.05)[0].n_features > 1 for _ in range(400)]
    assert sum(kept) < 40


def test_scales_are_right_under_noise(rng):
    """Noise of .01: 200 columns in any unit; core within a factor of 4 of twice the deviation in all but a few."""
    off = 0
    for _ in range(200):
        unit = 10.0 ** rng.uniform(-6, 6)
        found = place_octaves(octaves(unit * rng.normal(size=2000), 0.01, rng), 0.01)
        off += not 0.5 <= found.core[1] / (2 * unit) <= 4
    assert off <= 10


def test_bins_of_noise_beyond_the_others_set_no_limits(rng):
    """A far bin needs six deviations, and near ones more with each octave; a bin nearer to 0 costs no scale, and needs less."""
    sigma, shares = 0.002, octaves(rng.uniform(1, 8, N))
    bottom, *_, top = np.flatnonzero(shares)
    for target in (False, True):
        expected = place_octaves(shares, sigma, target).limits[1]
        for beyond, deviations, counts in (
            (1, 3, True),
            (2, 3, False),
            (2, 4, True),
            (3, 3.5, False),
            (3, 4, True),
            (9, 5, False),
        ):
            noisy = shares.copy()
            noisy[top + beyond] += deviations * sigma
            found = place_octaves(noisy, sigma, target).limits[1]
            assert found == expected * 2.0 ** (beyond * counts), (beyond, deviations)
        noisy[top + 9] += 2 * sigma
        assert place_octaves(noisy, sigma, target).limits[1] > 100 * expected
    noisy = shares.copy()
    noisy[bottom - 3] += 3 * sigma
    assert place_octaves(noisy, sigma).limits[0] < place_octaves(shares, sigma).limits[0]


def test_a_target_keeps_its_longer_tail(rng):
    """The few largest amounts decide R2; a target that is far from 0 for its spread has a margin on both sides."""
    amounts = np.exp(rng.normal(size=N))
    low, high = both(amounts, target=True).limits
    assert 0 <= low < 0.1 and high > np.quantile(amounts, 0.9995)
    low, high = both(-amounts, target=True).limits
    assert low < np.quantile(-amounts, 0.0005) and -0.1 < high <= 0
    x = 1e5 + rng.normal(size=N)
    low, high = both(x, target=True).limits
    assert 1e5 - 500 < low < x.min() and x.max() < high < 1e5 + 500


@pytest.mark.exhaustive
def test_targets_keep_their_range_under_noise(rng):
    """5000 targets with the noise that a small epsilon has: none is thousands of times too wide."""
    shares = octaves(rng.integers(1, 1000, N).astype(float))
    ends = [place_octaves(shares + 0.01 * rng.normal(size=NUMBER_BINS), 0.01, target=True).limits for _ in range(5000)]
    assert max(max(-low, high) for low, high in ends) <= 2**15


def test_buckets_that_are_all_alike_hold_an_id(rng):
    """30 000 spellings, of which a bucket has 117 or so; one more spelling is that of a tenth of the records."""
    shares = np.bincount(rng.integers(0, BUCKETS, 30_000), minlength=BUCKETS + 1) / 30_000
    assert common_buckets(shares, SIGMA)[0].buckets == ()
    shares[77] += 0.1
    assert common_buckets(shares, SIGMA)[0].buckets == (77,)
    few = np.bincount(rng.choice(BUCKETS, 100)[rng.integers(0, 100, 30_000)], minlength=BUCKETS + 1) / 30_000
    assert len(common_buckets(few, SIGMA)[0].buckets) == np.count_nonzero(few)


@pytest.mark.parametrize("sigma", (0.02, 0.0125, 0.001))
def test_hours_are_told_from_noise_between_far_limits(rng, sigma):
    """24 bins of a 24th among 129: no bin is clear, and all bins together are not."""
    hours = rng.integers(0, 24, N).astype(float)
    finding = Finding("linear", (0.0, 128.0), (0.0, 32.0), 16.0, 0.0)
    for _ in range(20):
        shares = fine(finding, hours)
        found = refine(finding, shares + sigma * rng.normal(size=shares.size), sigma)
        assert found.kind == "integers" and found.limits[0] <= 3 and 20 <= found.limits[1] <= 33
    shares = fine(finding, hours + 0.5)
    assert refine(finding, shares + sigma * rng.normal(size=shares.size), sigma).kind == "linear"


def test_hours_are_mostly_told_from_more_noise(rng):
    hours, sigma = rng.integers(0, 24, N).astype(float), 0.03
    finding = Finding("linear", (0.0, 64.0), (0.0, 32.0), 16.0, 0.0)
    for x, expected in ((hours, range(25, 41)), (hours + 0.5, range(3))):
        shares = fine(finding, x)
        kinds = [refine(finding, shares + sigma * rng.normal(size=shares.size), sigma).kind for _ in range(40)]
        assert kinds.count("integers") in expected


def test_integers_that_noise_hides_lose_no_tail(rng):
    ages = np.clip(np.round(rng.normal(45, 18, N)), 18, 95)
    finding = Finding("linear", (16.0, 128.0), (16.0, 128.0), 72.0, 0.0)
    shares = fine(finding, ages)
    found = [refine(finding, shares + 0.015 * rng.normal(size=shares.size), 0.015) for _ in range(40)]
    assert sum(one.kind == "integers" for one in found) > 20
    for one in found:
        assert np.mean((ages < one.limits[0]) | (ages > one.limits[1])) < 0.02


def test_a_column_far_from_zero_gets_narrower_bins():
    """At most four of the even bins, with the margins."""
    before = Finding("linear", (1024.0, 2048.0), (1024.0, 2048.0), 1536.0, 0.0)
    for width, few in ((1, True), (4, True), (5, False), (1024, False)):
        assert ends_in_few_bins(before, replace(before, limits=(1024.0, 1024.0 + width))) is few
    assert not ends_in_few_bins(before, replace(before, kind="integers", limits=(1024.0, 1025.0)))


def test_a_range_of_targets_is_symmetric_if_some_are_unseen(rng):
    """6 % are positive, in bins that noise hides; predictions below 0 alone would be wrong for these."""
    y = np.where(rng.random(N) < 0.06, 1.0, -1.0) * rng.uniform(0, 1, N)
    low, high = place_octaves(octaves(y), 0.012, target=True).limits
    assert -low == high >= 1
    assert place_octaves(octaves(np.abs(y)), 1e-4, target=True).limits[0] >= 0


def test_common_buckets():
    shares = np.zeros(BUCKETS + 1)
    shares[[3, 77, BUCKETS]] = 0.5, 0.0005, 0.2
    category, missing = common_buckets(shares, SIGMA)
    assert (category.buckets, category.missing, missing) == ((3,), True, 0.2)
    assert common_buckets(shares, 0.06)[0].missing is False


def test_whatever_the_releases_are_the_facts_are_valid(rng):
    """A schema can hold them: low < high, core in order, centre and fill finite, and within the bounds."""
    for trial in range(300):
        sigma = 10.0 ** rng.uniform(-6, 1)
        found = place_octaves(
            sigma * rng.normal(size=NUMBER_BINS) + rng.choice([0.0, 0.3, -0.3], NUMBER_BINS), sigma, bool(trial % 2)
        )
        if found.narrows:
            size = EVEN_BINS + (0 if trial % 2 else integers_between(*found.limits).size)
            shares = rng.choice([0.0, 1.0, 10.0]) * sigma * rng.normal(size=size) + rng.choice([0, 1], size, p=[0.99, 0.01])
            found = refine(found, shares, sigma, bool(trial % 2))
        assert isinstance(found, Finding)
        number = found.number()
        low, high = number.bounds
        assert -math.inf < low < high < math.inf and number.learned.core[0] <= number.learned.core[1]
        assert low <= number.fill <= high and 0 < number.mean_square < math.inf and 0 <= found.missing <= 1


def test_the_kind_of_a_column_is_that_of_the_larger_share(columns):
    """Text in a column of numbers is missing, and numbers in a column of text are among the others."""
    numbers, texts = octaves(columns["normal"]), np.zeros(BUCKETS)
    texts[[3, 200]] = 0.7, 0.3
    found = number_or_text(np.append(numbers, 0 * texts), SIGMA)
    assert found == replace(place_octaves(numbers, SIGMA), other=found.other) and 0 < found.other < 0.02
    found = number_or_text(np.append(0.9 * numbers, 0.1 * texts), SIGMA)
    assert found == replace(place_octaves(0.9 * numbers, SIGMA), missing=pytest.approx(0.1), other=pytest.approx(0.11, abs=0.01))
    category, missing = number_or_text(np.append(0.3 * numbers, 0.7 * texts), SIGMA)
    assert (category.buckets, category.missing, missing) == ((3, 200), False, 0.0)
    numbers[-1], numbers[:-1] = 0.4, 0.2 * numbers[:-1]
    category, missing = number_or_text(np.append(numbers, 0.4 * texts), SIGMA)
    assert (category.buckets, category.missing, missing) == ((3, 200), True, pytest.approx(0.4))


@pytest.mark.parametrize("sigma", (0.0, 5e-4, 0.01, 0.03))
def test_a_column_without_cells_is_undetermined(sigma, rng):
    """Its fine histogram would be noise alone. Of 3000 such columns, noise hides in none that all cells are missing."""
    for _ in range(1000 if sigma else 1):
        empty = np.eye(NUMBER_BINS)[-1] + sigma * rng.normal(size=NUMBER_BINS)
        found = place_octaves(empty, sigma)
        assert (found.kind, found.missing, found.narrows, found.core) == ("undetermined", 1.0, False, (-1.0, 1.0))
    few = place_octaves(octaves(np.where(rng.random(N) < 0.05 + 5 * sigma, 3.0, np.nan)), sigma)
    assert few.kind == "linear" and 0 < few.missing < 1 and few.narrows


def test_noise_is_no_window_of_the_few_cells_that_are_there(rng):
    """Cells at 5 to 6 in one record of a hundred: the noise of narrow bins is like their share."""
    sigma, x = 0.0015, np.where(np.arange(N) % 100 == 0, rng.uniform(5, 6, N), np.nan)
    for _ in range(100):
        first = place_octaves(octaves(x), sigma)
        shares = fine(first, x)
        low, high = refine(first, shares + sigma * rng.normal(size=shares.size), sigma).limits
        assert low <= 5 and 6 <= high


def test_text_and_numbers_that_are_lost_in_the_noise_leave_a_number_that_is_undetermined():
    """A description, which counts numbers among text, takes such a column for text."""
    finding = number_or_text(np.full(NUMBER_BINS + BUCKETS, 1e-5), 0.1)
    assert isinstance(finding, Finding) and finding.kind == "undetermined"
    assert isinstance(number_or_text(np.full(NUMBER_BINS + BUCKETS, 1e-5), 0.1, target=True)[0], Category)


@pytest.mark.parametrize("far", (-100, 40, 110), ids=str)
@pytest.mark.parametrize("height, high", ((4.2, False), (4.8, True)), ids=("fallback", "high"))
def test_where_no_bin_is_high_one_of_noise_is_not_taken_for_the_column(far, height, high, rng):
    """The largest bin of a column that is spread is below one of noise, but its neighbours hold records, too."""
    shares = octaves(rng.normal(size=N))
    sigma = float(shares.max()) / 4.0
    shares[OCTAVES + far] = height * sigma
    assert (height > FAR_Z) == high
    for target in (False, True):
        low, high_end = place_octaves(shares, sigma, target).limits
        assert -64 <= low < high_end <= 64


def test_whole_numbers_among_others_do_not_hide_where_a_column_lies(rng):
    """Prices, of which one in ten is whole, far from the ends of their octave: their bins are apart, and count all the same."""
    x = np.round(rng.uniform(70, 74, N), 2)
    x[: N // 10] = np.rint(x[: N // 10])
    found = both(x)
    assert found.kind == "linear" and found.limits[0] < 70 and 74 < found.limits[1] <= found.limits[0] + 12.5


@pytest.mark.parametrize(
    ("core", "bounds", "expected"),
    [
        ((1.0, 4.0), (0.25, 16.0), (0.5, 8.0)),
        ((-4.0, 4.0), (-16.0, 16.0), (-8.0, 8.0)),
        ((-4.0, 1.0), (-16.0, 1.0), (-8.0, 1.0)),
        ((1.0, 4.0), (1.0, 4.0), (1.0, 4.0)),
    ],
)
def test_nearer_limits_are_at_most_a_factor_beyond_the_core(core, bounds, expected):
    assert Number(bounds, "linear", None, LearnedScale(core, core[0])).nearer(2.0).bounds == expected


def test_nearer_limits_leave_other_columns_alone():
    learned = LearnedScale((1.0, 4.0), 1.0)
    for facts in (Number((0.25, 16.0), "linear", None), Number((0.25, 16.0), "log", None, learned), Category(("a",))):
        assert facts.nearer(2.0) == facts


@pytest.mark.parametrize("sign", (1, -1))
def test_a_skewed_column_of_one_sign_has_its_logarithm_beside_it(sign, rng):
    skewed = sign * 1.4 * np.exp(0.7 * rng.normal(size=N))
    found = both(skewed)
    assert found.kind == "linear" and found.logarithm == 0.5  # a tenth is below .57
    assert place_octaves(octaves(skewed), 0.016).logarithm == 0, "noise might hide the other sign"
    assert place_octaves(octaves(skewed), SIGMA, target=True).logarithm == 0
    for other in (rng.normal(size=N), rng.uniform(1, 2, N), 5 + rng.normal(size=N), np.sign(rng.normal(size=N)) * skewed):
        assert both(other).logarithm == 0


def test_integers_with_indicators_have_no_logarithm_beside_them(rng):
    few, many = (1 + np.floor(scale * rng.exponential(size=N)).clip(0, most) for scale, most in ((2, 30), (60, 1000)))
    assert both(few).integers and both(few).logarithm == 0
    assert not both(many).integers and both(many).logarithm > 0


def test_one_scale_of_a_skewed_column_is_the_logarithm():
    skewed = Number((0.0, 9.0), "linear", None, LearnedScale((0.0, 9.0), 4.5, logarithm=2.0))
    others = {
        "a": Number((0.0, 9.0), "linear", None),
        "b": Category(("x",)),
        "c": replace(skewed, learned=LearnedScale((0.0, 9.0), 4.5)),
    }
    alone = {name: column.on_one_scale() for name, column in {"skewed": skewed, **others}.items()}
    assert alone == {"skewed": Number((0.0, 9.0), "log", None, LearnedScale((0.0, 9.0), 4.5, unit=2.0)), **others}


@pytest.mark.parametrize("width", (100, 300, 510))
def test_a_window_is_hardly_wider_than_what_it_holds(width):
    """Of 1024 bins of length 1, `width` hold all numbers."""
    before = Finding("linear", (0.0, 1024.0), (0.0, 1024.0), 512.0, 0.0)
    even = np.where(np.abs(np.arange(1024) - 500) < width / 2, 1 / width, 0.0)
    low, high = refine(before, even, 1e-6).limits
    assert width < high - low < 1.2 * 1.85 * width and low < 500 - width / 2 and high > 500 + width / 2


@pytest.mark.parametrize(("share", "centre"), ((0.1, 0.0), (0.5, 0.5), (0.9, 1.0)))
def test_truths_are_0_and_1_and_most_of_them_are_mapped_to_0(share, centre):
    x = np.where(np.arange(N) < share * N, 1.0, 0.0)
    x[np.arange(N) % 20 == 0] = math.nan
    found = place_truths(octaves(x), SIGMA)
    assert (found.kind, found.limits, found.core, found.binary) == ("integers", (0, 1), (0, 1), True)
    assert found.centre == centre and found.missing == pytest.approx(0.05) and not found.narrows
    if centre != 0.5:
        assert found.square == pytest.approx(0.1 / 3, rel=0.01)


@pytest.mark.parametrize("sigma", (0.001, 0.1, 10.0))
def test_noise_does_not_move_the_limits_of_truths(sigma, rng):
    """Not even where it hides that there are any."""
    for _ in range(20):
        found = place_truths(rng.normal(scale=sigma, size=NUMBER_BINS), sigma)
        number = found.number()
        assert number.bounds == (0, 1) and number.fill in (0, 0.5, 1) and number.learned.core == (0, 1)
        assert 0 < number.mean_square < 3
    empty = place_truths(octaves(np.full(N, math.nan)), SIGMA)
    assert empty.kind == "undetermined" and empty.limits == (0, 1) and empty.missing == 1


def uniform_between(low, high, n_cells=N):
    """Return what is known of a column of which the first histogram found two octaves, and its exact fine histogram."""
    finding = Finding("linear", (0.0, 1024.0), (0.0, 1024.0), 512.0, 0.0)
    return finding, np.histogram(np.linspace(low, high, n_cells), bins=EVEN_BINS, range=finding.limits)[0] / n_cells


def test_a_window_that_noise_hides_is_the_likeliest_one(rng):
    """60 bins at a noise for which 20 are seen; its sum is 1 +- .1, and must be .9 at least."""
    finding, exact = uniform_between(600.0, 660.0)
    found = [refine(finding, exact + 0.014 * rng.normal(size=EVEN_BINS), 0.014) for _ in range(40)]
    narrowed = [one for one in found if one != finding]
    assert len(narrowed) > 25
    assert np.median([one.limits[1] - one.limits[0] for one in narrowed]) < 200
    for one in narrowed:
        assert 0 < one.limits[0] <= 605 and 655 <= one.limits[1] < 1024 and one.core == one.limits


@pytest.mark.parametrize("target", [False, True])
def test_likelihood_cuts_no_tail_off_what_is_near_zero(target, rng):
    finding, exact = uniform_between(5.0, 65.0)
    assert refine(finding, exact + 0.014 * rng.normal(size=EVEN_BINS), 0.014, target=target) == finding


def test_a_target_whose_window_noise_hides_has_wide_margins(rng):
    """Its range is proportional to the noise of a model; its values outside would be lost."""
    finding, exact = uniform_between(600.0, 660.0)
    found = [refine(finding, exact + 0.014 * rng.normal(size=EVEN_BINS), 0.014, target=True) for _ in range(40)]
    limits = np.array([one.limits for one in found if one != finding])
    assert len(limits) > 25 and np.median(limits[:, 1] - limits[:, 0]) < 400
    assert (limits[:, 0] < 600 - 60).all() and (limits[:, 1] > 660 + 60).all()


def test_where_noise_hides_nothing_a_window_holds_nearly_all_cells(rng):
    """Some are beyond the limits here."""
    finding, exact = uniform_between(600.0, 660.0)
    assert refine(finding, 0.97 * exact + 1e-4 * rng.normal(size=EVEN_BINS), 1e-4) == finding


def test_noise_alone_and_columns_that_fill_their_limits_have_no_likeliest_window(rng):
    finding, even = uniform_between(0.0, 1024.0)
    for _ in range(100):
        noise = 0.014 * rng.normal(size=EVEN_BINS)
        assert refine(finding, noise, 0.014) == finding
        assert refine(finding, even + noise, 0.014) == finding


def test_integers_of_a_classifier_have_lighter_indicators():
    facts = Number((0.0, 9.0), "linear", 4.0, LearnedScale((0.0, 9.0), 4.0, integers=(1.0, 2.0, 3.0), mean_square=4 / 3))
    light = facts.lighter()
    assert light.learned.mean_square == pytest.approx(1 / 3 + light.learned.weight**2) and light.lighter() == light
    cells = np.array([1.0, 2.0, 5.0])
    np.testing.assert_array_equal(light.beside(cells), light.learned.weight * facts.beside(cells))
    plain = [Number((0.0, 1.0), "linear", None), Category(("a",)), replace(facts, learned=replace(facts.learned, integers=()))]
    assert [one.lighter() for one in plain] == plain


@pytest.mark.parametrize("sigma", (1e-4, 0.01, 0.02, 0.04))
def test_codes_are_found_together_where_noise_hides_each(rng, sigma):
    """Hours of the day: 24 categories of the same share, each of which counts alone below a noise of .01."""
    shares = np.zeros(BUCKETS + 1)
    shares[:24] = 1 / 24
    missed, sizes = [], []
    for _ in range(100):
        kept = common_buckets(shares + sigma * rng.normal(size=shares.size), sigma, codes=True)[0].buckets
        missed.append(len(set(range(24)).difference(kept)))
        sizes.append(len(kept))
    # in nine of ten; at .01 most count alone, and hide that a few do not
    assert sorted(missed)[89] <= (3 if sigma == 0.01 else 0) and sorted(sizes)[89] <= (25 if sigma < 0.03 else 33)
    names = np.append(rng.permutation(shares[:-1]), 0.0)
    assert len(common_buckets(names + sigma * rng.normal(size=shares.size), sigma)[0].buckets) <= 24


def test_where_noise_hides_everything_codes_are_likely_to_be_small(rng):
    """Only if the type says that cells are numbers, and the user that these are codes."""
    shares = np.zeros(BUCKETS + 1)
    shares[:24] = 1 / 24
    noisy = shares + 0.2 * rng.normal(size=shares.size)
    assert len(common_buckets(noisy, 0.2)[0].buckets) < 5
    assert set(range(32)) <= set(common_buckets(noisy, 0.2, codes=True)[0].buckets)
    shares[[101, 205]] = 0.6, 0.4
    shares[:24] = 0.0
    assert common_buckets(shares, 0.01, codes=True)[0].buckets == (101, 205)
    shares[101:201] = 0.01
    assert common_buckets(shares, 0.005, codes=True)[0].buckets == (205,)  # the first are seen to be empty


@pytest.mark.slow
def test_noise_in_the_buckets_of_numbers_is_no_missing_cell():
    """Of 256 empty buckets, one is above 3.7 standard deviations in 3 of 100 columns; a rate of .001 passes with P > .9999."""
    rng, ghosts, sigma = np.random.default_rng(0), 0, 0.02
    for _ in range(2000):
        shares = sigma * rng.normal(size=NUMBER_BINS + BUCKETS)
        shares[180:182] += 0.5
        found = number_or_text(shares, sigma)
        ghosts += not isinstance(found, Finding) or found.missing > 0
    assert ghosts <= 10
    shares[NUMBER_BINS + 7] = 0.2
    assert number_or_text(shares, sigma).missing > 0.1


def test_a_stated_column_called_y_does_not_describe_the_target():
    learned = Learned({}, Finding("numbers", (0.0, 8.0), (0.0, 8.0), 0.0, 0.0))
    assert learned.described({"y": Number((-1.0, 1.0), "linear", None)}) == learned.described()


def under_noise(x, sigma, rng):
    """Return what both histograms tell of a column of numbers, without and with the rule for its ends."""
    first = octaves(x, sigma, rng)
    finding = place_octaves(first, sigma)
    shares = fine(finding, x)
    shares += sigma * rng.normal(size=shares.size)
    of_octaves = Shares(first[:-1], np.full(first.size - 1, sigma))
    return refine(finding, shares, sigma), refine(finding, shares, sigma, octaves=of_octaves)


@pytest.mark.parametrize("sign", (1, -1))
def test_limits_are_drawn_in_where_records_end(sign, rng):
    """The limit stays in 3 of 100 draws at this noise; more than 5 of 40 have a probability of .001."""
    x = rng.uniform(18, 66, 30_000)
    found = [under_noise(sign * x, 0.0041, rng) for _ in range(40)]
    ends = np.array([after.limits[::sign] for _, after in found]) * sign
    assert np.sum((ends[:, 1] < 64) | (ends[:, 1] > 70)) <= 5
    assert all(before.core == after.core and before.centre == after.centre for before, after in found)
    assert np.median([max(-before.limits[0], before.limits[1]) for before, _ in found]) > 75


@pytest.mark.parametrize("shape", ("normal", "gamma", "mostly zeros", "wide"))
def test_limits_of_tails_and_of_what_noise_hides_stay(shape, rng):
    """Noise draws them in in 1 of 30 draws at most; more than 2 of 20 have a probability of .03, and the draws are seeded."""
    z, sigma = rng.normal(size=N), 0.03 if shape == "wide" else 0.003
    draws = {"normal": 50 + 10 * z, "gamma": rng.gamma(2.0, 20.0, N), "mostly zeros": np.where(z < 1, 0.0, 3 + z)}
    found = [under_noise(draws.get(shape, rng.uniform(18, 66, N)), sigma, rng) for _ in range(20)]
    assert sum(before.limits[1] != after.limits[1] for before, after in found) <= 2


def searched(y, sigma, rng):
    """The range that counts with noise tell, and how often they were asked."""
    asked = []

    def ask(query):
        asked.append(query)
        counts = np.bincount(np.searchsorted(query.edges, y, side="right"), minlength=3)
        return counts + sigma * y.size * rng.normal(size=3)

    limits = RangeSearch(ask, y.size, sigma * y.size).finding().limits
    assert len(asked) == QUESTIONS and {len(query.edges) for query in asked} == {2}
    return limits


@pytest.mark.parametrize("exponent", (-55, -30, 0, 13, 45))
@pytest.mark.parametrize("sign", (-1.0, 1.0))
@pytest.mark.parametrize("shape", ("lognormal", "uniform", "normal", "mostly zeros"))
def test_a_search_finds_the_range_of_targets_of_any_unit_and_sign(shape, sign, exponent, rng):
    """At four times the noise at which histograms find nothing: nine tenths are in it, and it is hardly wider than they are."""
    z = rng.normal(size=2000)
    y = {"lognormal": np.exp(z / 2), "uniform": rng.random(2000), "normal": z, "mostly zeros": np.exp(z / 2) * (z < -0.5)}[shape]
    low, high = searched(sign * np.ldexp(y, exponent), 0.03, rng)
    assert np.mean((y * sign >= np.ldexp(low, -exponent)) & (y * sign <= np.ldexp(high, -exponent))) >= 0.85
    assert high - low <= 4 * np.ldexp(np.ptp(np.quantile(y, (0.02, 0.98))), exponent)
    assert (low < 0 < high) == (shape == "normal")


def test_a_search_halves_the_range_of_targets_far_from_zero(rng):
    """Years from 1998 have one of an octave at most, and of an eighth of that in 8 of 10 searches."""
    years = np.round(1998 + 10 * rng.normal(size=2000))
    found = np.array([searched(years, 0.03, rng) for _ in range(30)])
    assert (
        (found[:, 0] >= 1024).all() and (found[:, 0] < 1998).all() and (found[:, 1] > 1998).all() and (found[:, 1] <= 2048).all()
    )
    assert np.mean(np.ptp(found, axis=1) <= 128) > 0.8


def test_a_search_rarely_takes_noise_for_targets(rng):
    """Ranges of more than 2**8 times targets of which most are 0: 1 in 800 at this noise, so that 4 of 200 are one in 6000."""
    y = np.where(rng.random(1000) < 0.7, 0.0, 1000 * np.exp(rng.normal(size=1000)))
    assert sum(max(np.abs(searched(y, 0.15, rng))) > 2.0**18 for _ in range(200)) <= 3


@pytest.mark.parametrize("answer", (0.0, 1e300, -1e300, 1e6))
def test_a_search_has_a_range_whatever_the_answers_are(answer, rng):
    for signs in (np.ones(3), rng.choice([-1.0, 1.0], 3)):
        found = RangeSearch(lambda query, signs=signs: answer * signs, 100, 1.0).finding()
        assert -(2.0**65) < found.limits[0] < found.limits[1] < 2.0**65


@pytest.mark.parametrize("sigma", (0.03, 0.3))
def test_a_search_of_targets_that_are_0_has_a_range_whatever_the_noise_is(sigma, rng):
    for _ in range(100):
        low, high = searched(np.zeros(30), sigma, rng)
        assert low < high


@pytest.mark.parametrize("y", (np.zeros(50), np.full(50, 7.0), np.full(50, -1e300), np.full(50, 5e-324)), ids=str)
def test_targets_of_one_value_have_a_range_that_holds_it_or_ends_there(y, rng):
    low, high = searched(y, 0.01, rng)
    assert low < high and (low <= y[0] <= high or y[0] < low == -(2.0**63))


def test_the_share_of_a_search_follows_from_the_noise_of_a_count():
    """For s = mu n / k, k 1 and 2: half below 42 and 30, 3 % near 200, nothing from there on, or without noise."""
    assert search_share(0.02, 1000, "zero_out") == 0.5 == search_share(0.04, 1000, "replace_one")
    assert search_share(0.1, 1000, "zero_out") == pytest.approx(0.09) == pytest.approx(2 * search_share(0.2, 1000, "replace_one"))
    assert search_share(0.19, 1000, "zero_out") == 0.03 == search_share(0.39, 1000, "replace_one")
    assert (
        search_share(0.2, 1000, "zero_out")
        == 0.0
        == search_share(0.4, 1000, "replace_one")
        == search_share(math.inf, 9, "zero_out")
    )
