"""Samplings: their probabilities, unbiased sketches, and what is refused."""

import itertools
import math

import numpy as np
import pytest

from skdp.samplings import Blocks, Full, Importance, Nice, Uniform, check_sampling, draw

WEIGHTS = (1.0, 3.0, 0.5, 5.5)
SAMPLINGS = {
    "uniform": Uniform(4),
    "importance": Importance(WEIGHTS),
    "nice": Nice(4, 2),
    "full": Full(4),
    "blocks": Blocks(4, [[2, 0]]),
}
N_DRAWS = 20_000


def outcomes(name):
    """All sets with their probabilities, written down anew."""
    if name == "uniform":
        return {(j,): 1 / 4 for j in range(4)}
    if name == "importance":
        return {(j,): weight / 10 for j, weight in enumerate(WEIGHTS)}
    if name == "nice":
        return {pair: 1 / 6 for pair in itertools.combinations(range(4), 2)}
    return {(0, 1, 2, 3): 1.0} if name == "full" else {(0, 2): 1 / 3, (1,): 1 / 3, (3,): 1 / 3}


@pytest.mark.parametrize("name", SAMPLINGS)
def test_the_sketch_is_the_identity_on_average(name):
    """By enumeration, with the probabilities that are stated."""
    stated = SAMPLINGS[name].probabilities
    sketch = sum(chance * np.isin(np.arange(4), block) / stated for block, chance in outcomes(name).items())
    np.testing.assert_allclose(sketch, np.ones(4), rtol=1e-12)


@pytest.mark.parametrize("name", SAMPLINGS)
def test_sets_are_drawn_as_often_as_stated(name):
    """Each within 5 standard deviations of its frequency: a false alarm in less than 1 of 10**5 runs."""
    rng, counts = np.random.default_rng(0), dict.fromkeys(outcomes(name), 0)
    for _ in range(N_DRAWS):
        counts[tuple(draw(SAMPLINGS[name], rng, 4).tolist())] += 1
    for block, chance in outcomes(name).items():
        assert abs(counts[block] - N_DRAWS * chance) <= 5 * math.sqrt(N_DRAWS * chance * (1 - chance))


def test_probabilities_of_importance_are_in_proportion_to_smoothness():
    """Also where the constants are far apart, or beyond what sums of them could hold."""
    probabilities = Importance([1e-4, 1.0, 1e4]).probabilities
    np.testing.assert_allclose(probabilities / probabilities[0], [1.0, 1e4, 1e8])
    np.testing.assert_allclose(Importance([1e308, 1e308]).probabilities, [0.5, 0.5])


def test_the_last_coordinate_is_drawn_at_most():
    """A uniform number next to 1 leads to no coordinate beyond the last."""

    class Largest:
        def random(self):
            return np.nextafter(1.0, 0.0)

    for weights in ([0.1] * 10, [1.0, 1e-30]):
        assert Importance(weights).sample(Largest())[0] <= len(weights) - 1


def test_the_coordinates_that_no_block_names_are_blocks_of_their_own():
    blocks = Blocks(5, [[3, 1], (4,)]).blocks
    assert [block.tolist() for block in blocks] == [[1, 3], [4], [0], [2]]


@pytest.mark.parametrize(
    "kind, arguments, error",
    (
        (Uniform, (0,), ValueError),
        (Uniform, (2.5,), TypeError),
        (Nice, (3, 4), ValueError),
        (Nice, (3, 0), ValueError),
        (Nice, (3, True), TypeError),
        (Importance, ([],), ValueError),
        (Importance, ([1.0, 0.0],), ValueError),
        (Importance, ([1.0, math.nan],), ValueError),
        (Importance, ([[1.0]],), ValueError),
        (Blocks, (3, [[0, 1], [1]]), ValueError),
        (Blocks, (3, [[0, 0]]), ValueError),
        (Blocks, (3, [[]]), ValueError),
        (Blocks, (3, [[3]]), ValueError),
        (Blocks, (3, [[-1]]), ValueError),
        (Blocks, (3, [[0.0]]), TypeError),
        (Blocks, (3, [[True]]), TypeError),
        (Blocks, (3, [0, 1]), TypeError),
        (Blocks, (3, "01"), TypeError),
    ),
)
def test_parameters_are_checked(kind, arguments, error):
    with pytest.raises(error, match="expected"):
        kind(*arguments)


class Own:
    """A sampling with what is given."""

    def __init__(self, drawn=None, probabilities=(0.5, 0.5)):
        self.drawn, self.probabilities = drawn, probabilities

    def sample(self, rng):
        return self.drawn


@pytest.mark.parametrize("probabilities", ([0.5], [0.0, 1.0], [0.5, 1.5], [0.5, math.nan], ["a", "b"], None, 0.5, [[0.5, 0.5]]))
def test_probabilities_of_an_own_sampling_are_checked(probabilities):
    with pytest.raises(ValueError, match=r"has probabilities .* expected an object"):
        check_sampling(Own(probabilities=probabilities), 2)


@pytest.mark.parametrize("sampling", (object(), Own, [0.5, 0.5], None))
def test_what_is_no_sampling_is_refused(sampling):
    with pytest.raises(TypeError, match="expected an object with sample"):
        check_sampling(sampling, 2)


@pytest.mark.parametrize(
    "drawn",
    (
        np.array([], dtype=int),
        np.array([0, 0]),
        np.array([1, 0, 1]),
        np.array([2]),
        np.array([-1]),
        np.array([0.0]),
        np.array([0, None]),
        np.array([True]),
        np.array([[0]]),
        [0],
        0,
        None,
    ),
)
def test_what_an_own_sampling_draws_is_checked_every_time(drawn):
    """An array of different integers in range, which is sorted, or an error that says what was drawn."""
    assert draw(Own(np.array([1, 0], dtype=np.uint8)), None, 2).tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"drew .* expected a one-dimensional array of different integers from 0 to 1"):
        draw(Own(drawn), None, 2)
