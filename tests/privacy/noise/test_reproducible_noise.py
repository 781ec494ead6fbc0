"""Noise that repeats: in tests and benchmarks only, in one process, and said in the report."""

import multiprocessing
import pickle
import threading

import joblib
import numpy as np
import pytest

from skdp import DPLogisticRegression, PrivacyLedger
from skdp.privacy.noise.source import NoiseSource
from skdp.testing import reproducible_noise


@pytest.fixture
def table(rng):
    X = rng.uniform(-1, 1, size=(200, 3))
    return X, (X[:, 0] > 0).astype(int)


def model(**given):
    return DPLogisticRegression(1.0, delta=1e-6, classes=[0, 1], **given)


def bits():
    return NoiseSource().read(16)


@pytest.mark.slow
def test_a_seed_repeats_a_fit_and_its_public_choices(table):
    fits = []
    for seed in (5, 5, 6):
        with reproducible_noise(seed):
            fits.append([model(solver="sgd").fit(*table).coef_ for _ in range(2)])
    (first, second), again, other = fits
    assert np.array_equal(first, again[0]) and np.array_equal(second, again[1])
    assert not np.array_equal(first, second) and not np.array_equal(first, other[0])


def test_an_integer_random_state_repeats_fits_inside_a_block_only(table):
    with reproducible_noise(5):
        alike = [model(random_state=1).fit(*table).coef_ for _ in range(2)]
        other = model(random_state=2).fit(*table).coef_
    with reproducible_noise(6):
        elsewhere = model(random_state=1).fit(*table).coef_
    outside = model(random_state=1).fit(*table).coef_
    assert np.array_equal(*alike)
    assert not any(np.array_equal(alike[0], coef) for coef in (other, elsewhere, outside))


def test_fits_inside_are_reported_as_not_private(table):
    with reproducible_noise(0):
        inside, planned = model().fit(*table).privacy_report_, model().plan(200, 3)
    outside = model().fit(*table).privacy_report_
    assert [report.to_dict()["private"] for report in (inside, planned, outside)] == [False, False, True]
    assert "NONE: the noise came from a seed" in str(inside) and "NONE" not in str(outside)


def test_ledgers_say_which_fits_were_not_private(table):
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger:
        model().fit(*table)
        with reproducible_noise(0):
            model().fit(*table)
    assert [entry.spending.parameters.get("noise") for entry in ledger.entries] == [None, "from a seed: not private"]


def test_noise_is_secure_again_after_the_block_and_after_an_error():
    with pytest.raises(KeyError), reproducible_noise(0):
        assert not NoiseSource().secure
        raise KeyError
    assert NoiseSource().secure
    assert bits() != bits()


def test_the_innermost_block_counts_and_the_outer_one_goes_on():
    with reproducible_noise(1):
        first = bits()
        with reproducible_noise(2):
            inner = bits()
        second = bits()
    with reproducible_noise(1):
        assert [bits(), bits()] == [first, second]
    with reproducible_noise(2):
        assert bits() == inner


def test_blocks_that_end_in_another_order_leave_nothing_behind():
    first, second = reproducible_noise(1), reproducible_noise(2)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert not NoiseSource().secure
    second.__exit__(None, None, None)
    assert NoiseSource().secure


def test_it_is_of_the_process_and_so_of_all_its_threads():
    found = []
    with reproducible_noise(0):
        thread = threading.Thread(target=lambda: found.append(NoiseSource().secure))
        thread.start()
        thread.join()
    assert found == [False]


def is_secure():
    return NoiseSource().secure


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_draws_secure_noise():
    with reproducible_noise(0), multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(is_secure)


def test_joblib_workers_draw_secure_noise_unless_they_enter_a_block():
    def inside():
        with reproducible_noise(0):
            return bits()

    with reproducible_noise(0):
        expected = bits()
    with reproducible_noise(0):
        assert all(joblib.Parallel(2)(joblib.delayed(is_secure)() for _ in range(2)))
    assert joblib.Parallel(2)(joblib.delayed(inside)() for _ in range(2)) == [expected] * 2


def test_nothing_of_it_is_pickled(table):
    with reproducible_noise(918273645):
        fitted = model().fit(*table)
        inside = pickle.dumps(fitted)
    assert inside == pickle.dumps(fitted)
    with reproducible_noise(918273645):
        assert not np.array_equal(pickle.loads(inside).fit(*table).coef_, model().fit(*table).coef_)


@pytest.mark.parametrize("seed, error", ((-1, ValueError), (None, TypeError), (True, TypeError), (1.0, TypeError)))
def test_the_seed_is_checked(seed, error):
    with pytest.raises(error, match="seed="), reproducible_noise(seed):
        raise AssertionError


@pytest.mark.parametrize("random_state, error", ((-1, ValueError), (True, TypeError), (1.5, TypeError), ("0", TypeError)))
def test_random_state_is_checked_before_anything_is_charged(random_state, error, table):
    with PrivacyLedger(epsilon=10.0, delta=1e-4) as ledger, pytest.raises(error, match="random_state="):
        model(random_state=random_state).fit(*table)
    assert not ledger.entries
