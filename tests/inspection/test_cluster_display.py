"""Drawings of clusters: their plane, and what is written beside them."""

import matplotlib
import numpy as np
import pytest
from seeded import fitted

from skdp import DPKMeans, DPLogisticRegression
from skdp.inspection import ClusterDisplay
from skdp.inspection._cluster_display import in_words, plane_of

matplotlib.use("Agg")
CENTRES = np.array([[0.5, 0.5, 0.0], [-0.5, 0.5, 0.2], [0.0, -0.5, -0.3]])


def test_discs_are_counts_and_circles_the_noise_of_the_centres():
    X = CENTRES[np.arange(3000) % 3] * [1.0, 1.0, 10.0]
    model = fitted(DPKMeans(3, feature_bounds=[(-1, 1), (-1, 1), (-10, 10)], random_state=0), X)
    display = ClusterDisplay.from_estimator(model)
    centres = model.cluster_centers_ / model.scale_
    apart = np.linalg.norm(centres - centres[:1], axis=1)
    np.testing.assert_allclose(np.linalg.norm(display.places - display.places[:1], axis=1), apart, rtol=1e-9)  # three in a plane
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts == [f"{i}: {count:.0f} ± {2 * model.cluster_counts_std_:.0f}" for i, count in enumerate(model.cluster_counts_)]
    for line, place, spread in zip(display.ax_.lines, display.places, display.spread, strict=True):
        np.testing.assert_allclose(np.linalg.norm((line.get_xydata() - place) / spread, axis=1), 2, rtol=1e-9)
    assert display.axes[0].startswith("component 1: ") and display.axes[0].endswith(", each over scale_")
    display.axes = (" + ".join(["0.5 a_long_name"] * 5),) * 2
    drawn = display.plot().ax_
    assert max(map(len, (drawn.get_xlabel() + "\n" + drawn.get_ylabel()).split("\n"))) <= 45
    ends = np.array([display.ax_.get_xlim(), display.ax_.get_ylim()])
    assert (ends[:, 0] < display.places).all() and (display.places < ends[:, 1]).all()
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("d", (1, 2))
def test_one_or_two_features_are_drawn_in_their_units(d):
    """Incomes and ages, whose axes have units of their own; the noise of each is in its unit, too."""
    size = np.array([[40_000.0, 40.0]])[:, :d]
    X = CENTRES[np.arange(3000) % 3, :d] * size
    model = fitted(DPKMeans(3, feature_bounds=[(-end, end) for end in size[0]], random_state=0), X)
    display = ClusterDisplay.from_estimator(model)
    np.testing.assert_allclose(display.places[:, :d], model.cluster_centers_)
    np.testing.assert_allclose(display.spread[:, :d], model.cluster_centers_std_)
    assert display.axes == ("x0", "x1")[:d] + ("",) * (2 - d) and display.ax_.get_aspect() == "auto"
    ends = np.array([display.ax_.get_xlim(), display.ax_.get_ylim()])
    assert (ends[:, 0] < display.places).all() and (display.places < ends[:, 1]).all()
    matplotlib.pyplot.close("all")


def test_the_plane_of_two_features_is_that_of_the_features_and_others_are_named_by_the_largest():
    np.testing.assert_array_equal(plane_of(CENTRES[:, :2], np.ones(3)), np.eye(2))
    np.testing.assert_array_equal(plane_of(CENTRES[:, :1], np.ones(3)), np.eye(1, 2))
    line = np.outer(np.arange(3.0), [0.6, -0.8, 0.0, 0.0])
    np.testing.assert_allclose(plane_of(line, np.array([5.0, 0.0, 1.0]))[:, 0], [-0.6, 0.8, 0.0, 0.0], atol=1e-12)
    assert in_words(np.array([-0.6, 0.8, 0.01]), ["age", "hours", "gain"]) == "0.8 hours - 0.6 age"
    assert in_words(np.array([0.0, 1.0]), ["age", "hours"]) == in_words(np.array([0.01, 0.9999]), ["age", "hours"]) == "hours"
    assert in_words(np.array([0.2, -0.98]), ["age", "hours"]) == "mostly hours"


def test_other_models_are_refused():
    with pytest.raises(TypeError, match="expected a DPKMeans"):
        ClusterDisplay.from_estimator(fitted(DPLogisticRegression(data_norm=1.0), CENTRES, [0, 1, 1]))
