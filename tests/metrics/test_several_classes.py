"""Private evaluation of classifiers of more than two classes: confusion matrix, accuracy, intervals, and what is refused."""

import math

import matplotlib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, confusion_matrix

from skdp import PrivacyLedger
from skdp.metrics import ConfusionMatrixDisplay, RocCurveDisplay, evaluate, plan_evaluation
from skdp.metrics._noisy_table import NoisyMatrix
from skdp.metrics._reading import predicted_classes
from skdp.testing import reproducible_noise

matplotlib.use("Agg")
CLASSES = np.array(["a", "b", "c"])


class Nearest:
    """A model that rounds the first column to a class."""

    classes_ = CLASSES

    def predict(self, X):
        return CLASSES[np.clip(np.rint(np.asarray(X)[:, 0]), 0, 2).astype(int)]


def records(n, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.choice(3, size=n, p=[0.5, 0.3, 0.2])
    return (true + 0.45 * rng.normal(size=n))[:, None], CLASSES[true]


@pytest.fixture(autouse=True)
def closed():
    from matplotlib import pyplot

    yield
    pyplot.close("all")


@pytest.mark.parametrize("normalize", (None, "true", "pred", "all"))
@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_without_noise_the_matrix_is_that_of_scikit_learn(normalize):
    X, y = records(3000)
    found = evaluate(Nearest(), X, y, epsilon=math.inf)
    predicted = Nearest().predict(X)
    assert list(found) == ["accuracy"] and found["accuracy"].value == pytest.approx(accuracy_score(y, predicted))
    display = ConfusionMatrixDisplay.from_evaluation(found, normalize=normalize)
    expected = confusion_matrix(y, predicted, normalize=normalize)
    np.testing.assert_allclose(display.confusion_matrix, expected)
    assert ((display.interval[:, :, 0] < expected) | (expected == 0)).all() and (expected <= display.interval[:, :, 1]).all()
    display.figure_.canvas.draw()
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == list(CLASSES)


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_persons_of_one_record_each_have_the_scores_of_records():
    X, y = records(200)
    found = evaluate(Nearest(), X, y, epsilon=math.inf, persons=np.arange(200))
    assert found["accuracy"].value == evaluate(Nearest(), X, y, epsilon=math.inf)["accuracy"].value


@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
@pytest.mark.parametrize("persons", (None, np.arange(100) // 2))
def test_a_model_without_any_prediction_is_no_error(persons):
    """Another single record for which the model does not fail would be no error either."""

    class Failing(Nearest):
        def predict(self, X):
            if (np.asarray(X) == 7.0).any():
                raise ValueError("cannot predict")
            return super().predict(X)

    X, y = np.full((100, 1), 7.0), np.repeat(CLASSES[:2], 50)
    assert evaluate(Failing(), X, y, epsilon=math.inf, persons=persons)["accuracy"].value == 0.5


@pytest.mark.slow
def test_the_unbiased_matrix_has_the_stated_covariance(rng):
    counts = rng.integers(50, 200, (3, 3)).astype(float)
    seen = []
    for _ in range(5000):
        table = NoisyMatrix.from_counts(counts.ravel() + 5.0 * rng.normal(size=9), 5.0, int(counts.sum()))
        smooth = table.smooth()
        assert table.counts.sum() == pytest.approx(counts.sum()) == pytest.approx(smooth.sum()) and (smooth >= 0).all()
        seen.append(table.counts.ravel())
    np.testing.assert_allclose(np.mean(seen, axis=0), counts.ravel(), atol=0.4)
    np.testing.assert_allclose(np.cov(np.transpose(seen)), table.covariance, atol=2.5)
    sparse = NoisyMatrix(np.array([[90.0, -20.0], [0.0, 30.0]]), np.eye(4), np.zeros(0), 100).smooth()
    np.testing.assert_allclose(sparse, [[80.0, 0.0], [0.0, 20.0]])


@pytest.mark.slow
def test_intervals_cover_noise_and_sampling():
    X, y = records(400_000, seed=10**6)
    truth = confusion_matrix(y, Nearest().predict(X), normalize="true")
    accuracy, inside, cells = np.mean(Nearest().predict(X) == y), 0, []
    for seed in range(60):
        with reproducible_noise(seed):
            found = evaluate(Nearest(), *records(2000, seed), epsilon=1.0, adjacency="zero_out")
        inside += found["accuracy"].low <= accuracy <= found["accuracy"].high
        ends = found.table.confusion_matrix(0.95, "true")
        cells.append((ends[:, :, 1] <= truth) & (truth <= ends[:, :, 2]))
    assert inside >= 51  # 57 on average; 50 or fewer in one of a thousand
    assert 0.91 < np.mean(cells) < 0.99


def test_the_plan_is_the_report_and_a_ledger_pays_once():
    with PrivacyLedger(epsilon=1.0, delta=1e-4) as ledger, reproducible_noise(0):
        found = evaluate(Nearest(), *records(3000), epsilon=0.8)
        planned, report = plan_evaluation(3000, epsilon=0.8, n_classes=3), found.privacy_report
        assert len(ledger.entries) == 1
    assert [str(line) for line in planned.releases] == [str(line) for line in report.releases]
    assert report.spent.epsilon == planned.spent.epsilon <= 0.8


@pytest.mark.parametrize(
    "given, message",
    (
        ({"metrics": ["roc_auc"]}, "expected some of accuracy"),
        ({"groups": np.zeros(500), "group_labels": [0]}, "are for two classes"),
        ({"error_bound": 1.0}, "for regressors"),
        ({"y": np.array(["secret"] * 500)}, "labels that the model does not know"),
        ({"X": np.zeros((499, 1))}, "differ in length"),
        ({"model": LogisticRegression().fit(np.arange(93.0)[:, None], np.arange(93) % 31)}, "expected at most 30"),
        ({"delta": 0, "noise": "gaussian"}, "delta=0"),
    ),
)
def test_wrong_input_is_refused_before_anything_is_paid(given, message):
    X, y = records(500)
    given = {"model": Nearest(), "X": X, "y": y, **given}
    with PrivacyLedger(epsilon=10.0, delta=1e-3) as ledger:
        with pytest.raises((TypeError, ValueError), match=message) as caught:
            evaluate(given.pop("model"), given.pop("X"), given.pop("y"), **given)
        assert not ledger.entries and "secret" not in str(caught.value)


def test_a_matrix_has_no_curves():
    found = evaluate(Nearest(), *records(500), epsilon=1.0)
    with pytest.raises(TypeError, match="of two classes"):
        RocCurveDisplay.from_evaluation(found)
    with pytest.raises(ValueError, match="expected an integer from 2 to 30"):
        plan_evaluation(500, n_classes=31)


@pytest.mark.parametrize("kind", (None, "secret", ValueError))
@pytest.mark.filterwarnings("ignore::skdp.privacy.NotPrivateWarning")
def test_a_record_that_gets_no_class_counts_as_the_first(kind):
    class Failing(Nearest):
        def predict(self, X):
            hostile = np.asarray(X)[:, 0] == 77.0
            if hostile.any() and kind is ValueError:
                raise ValueError("secret")
            found = super().predict(X).astype(object)
            found[hostile] = kind
            return found

    X, y = records(300)
    other, first = X.copy(), X.copy()
    other[123], first[123] = 77.0, 0.0
    found, expected = (evaluate(model, table, y, epsilon=math.inf) for model, table in ((Failing(), other), (Nearest(), first)))
    np.testing.assert_array_equal(found.table.counts, expected.table.counts)


def test_a_prediction_of_another_type_changes_no_other_one():
    """One text among numbers of a list would make text of all of them, which are no classes then."""
    X, y = records(300)
    numbers = np.searchsorted(CLASSES, y)
    other = X.copy()
    other[123] = 1e9

    class Listing(Nearest):
        classes_ = np.arange(3)

        def predict(self, X):
            return ["none" if x == 1e9 else int(np.clip(round(x), 0, 2)) for x in X[:, 0]]

    found, expected = (predicted_classes(Listing(), table, numbers)[1] for table in (other, X))
    np.testing.assert_array_equal(np.delete(found, 123), np.delete(expected, 123))
    assert found[123] == 0
