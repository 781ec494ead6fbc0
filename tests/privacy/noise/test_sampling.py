"""Poisson samples by keys: functions of key and chunk with the stated probability, independent for other keys and chunks."""

import hashlib
import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
import seeded
from scipy.stats import binom, binomtest, chisquare, kstest

from skdp.privacy.noise import sampling
from skdp.privacy.noise.sampling import order_of, sample_of
from skdp.privacy.noise.source import NoiseSource

FALSE_ALARM = 1e-6
LENGTH = 2**17
KEYS = [seeded.source(seed).key() for seed in range(8)]


def by_hand(key, chunk, n_rows, rate):
    """The same sample, record by record, in whole numbers."""
    start, threshold = key + chunk.to_bytes(8, "little"), math.floor(Fraction(rate) * 2**53)
    first = hashlib.shake_256(start + b"\0").digest(n_rows)
    more, drawn = hashlib.shake_256(start + b"\1").digest(8 * n_rows), []
    for row, byte in enumerate(first):
        low = 0
        if byte == threshold >> 45:
            low, more = int.from_bytes(more[:8], "little") >> 19, more[8:]
        if (byte << 45) + low < threshold:
            drawn.append(row)
    return drawn


@pytest.mark.parametrize("rate", (1e-12, 0.004, 5 / 256, 0.3, 255.5 / 256, 1 - 2.0**-53))
@pytest.mark.parametrize("chunk, n_rows", ((0, 3000), (7, 1), (2**40, 1000), (3, 0)))
def test_it_is_what_the_definition_says(rate, chunk, n_rows):
    """Every machine, and every version, must draw the same sample from the same key."""
    for key in KEYS[:2]:
        drawn = sample_of(key, chunk, n_rows, rate)
        assert drawn.tolist() == by_hand(key, chunk, n_rows, rate)
        np.testing.assert_array_equal(sample_of(key, chunk, n_rows, rate), drawn)


def test_a_record_enters_whatever_follows_it():
    """Which of the first rows enter does not depend on how many rows the chunk has."""
    for rate in (0.02, 0.5):
        whole = sample_of(KEYS[0], 5, 5000, rate)
        for n_rows in (1, 136, 137, 4999):
            np.testing.assert_array_equal(sample_of(KEYS[0], 5, n_rows, rate), whole[whole < n_rows])


@pytest.mark.parametrize("rate", (0.001, 2.0**-17 + 2.0**-20, 0.01, 0.3, 0.97))
def test_sizes_are_binomial(rate):
    """Of all chunks together, of the first and second halves, and the spread of the sizes over chunks and keys."""
    samples = [sample_of(key, chunk, LENGTH, rate) for key in KEYS for chunk in range(8)]
    sizes, halves = np.array([sample.size for sample in samples]), [np.sum(sample < LENGTH // 2) for sample in samples]
    assert binomtest(int(sizes.sum()), sizes.size * LENGTH, rate).pvalue > FALSE_ALARM
    assert binomtest(int(sum(halves)), sizes.size * LENGTH // 2, rate).pvalue > FALSE_ALARM
    if rate >= 0.001:  # sizes of 100 or more are nearly continuous
        assert kstest(binom.cdf(sizes, LENGTH, rate) - binom.pmf(sizes, LENGTH, rate) / 2, "uniform").pvalue > FALSE_ALARM
    assert binomtest(int(sizes.sum()), sizes.size * LENGTH, rate + 2.0**-9).pvalue < FALSE_ALARM  # half a step of the first byte


@pytest.mark.parametrize("rate", (0.01, 0.3, 0.9))
def test_samples_of_other_keys_and_chunks_are_independent(rate):
    """The records that two samples share, also at other places, are as many as by chance."""
    samples = np.zeros((9, LENGTH), dtype=bool)
    for sample, (key, chunk) in zip(samples, product(KEYS[:3], (0, 1, 256)), strict=True):
        sample[sample_of(key, chunk, LENGTH, rate)] = True

    def alarm(first, second, shift):
        both = np.count_nonzero(first[shift:] & second[: LENGTH - shift])
        return binomtest(both, LENGTH - shift, rate**2).pvalue < FALSE_ALARM / 200  # at most 200 comparisons

    assert not any(alarm(*pair, shift) for pair in combinations(samples, 2) for shift in (0, 1, 8, 136))
    assert not any(alarm(sample, sample, shift) for sample in samples for shift in (1, 2, 8, 64, 136))
    assert alarm(samples[0], samples[0], 0)  # the twin


def test_every_chunk_and_part_reads_a_stream_of_its_own():
    streams = [
        sampling._stream(key, chunk, part, 32) for key in KEYS[:3] for chunk in (0, 1, 255, 256, 2**16, 2**32) for part in (0, 1)
    ]
    assert len(set(streams)) == len(streams)


@pytest.mark.parametrize("threshold", (1, 2**45 - 1, 2**45, 5 << 45, (5 << 45) - 1, (5 << 45) + 1000, (256 << 45) - 1))
def test_the_probability_is_exact(threshold, monkeypatch):
    """All first bytes, each with later bits on both sides of the border: ``threshold`` of the 2**53 integers enter."""
    first, rest = divmod(threshold, 2**45)
    for more in sorted({0, max(rest - 1, 0), rest, 2**45 - 1}):
        streams = (bytes(range(256)), np.full(256, (more << 19) + 2**19 - 1, dtype="<u8").tobytes())
        monkeypatch.setattr(sampling, "_stream", lambda key, chunk, part, size, streams=streams: streams[part][:size])
        enters = np.isin(np.arange(256), sample_of(b"", 0, 256, threshold / 2**53))
        np.testing.assert_array_equal(enters, [byte < first or (byte == first and more < rest) for byte in range(256)])


def test_the_rate_is_rounded_down():
    """A rate between two multiples of 2**-53: below 2**-53 nobody enters."""
    assert sample_of(KEYS[0], 0, LENGTH, 2.0**-54).size == 0
    np.testing.assert_array_equal(sample_of(KEYS[0], 0, 1000, 1.0), np.arange(1000))


def test_all_orders_of_persons_are_equally_likely():
    """24 orders of 4 persons; an order of many is a permutation, and another one for each key."""
    orders = Counter(tuple(order_of(bytes([0, *seed.to_bytes(4, "little")]), 4).tolist()) for seed in range(4800))
    assert len(orders) == 24 and chisquare([*orders.values()]).pvalue > FALSE_ALARM
    first, second = (order_of(key, 1000) for key in KEYS[:2])
    np.testing.assert_array_equal(np.sort(first), np.arange(1000))
    np.testing.assert_array_equal(first, order_of(KEYS[0], 1000))
    assert np.count_nonzero(first == second) < 12  # one on average: a false alarm has a probability below 1e-8


def test_keys_are_fresh_unless_seeded():
    assert len({NoiseSource().key() for _ in range(4)}) == 4
    assert seeded.source(3).key() == seeded.source(3).key()
    drawn = seeded.source(3)
    assert len(drawn.key()) == 32 and drawn.key() != seeded.source(3).key()
