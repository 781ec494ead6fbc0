"""Test DPMultinomialNB: its one release, its model with and without noise, and text at small epsilon."""

import itertools
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from seeded import fitted
from sklearn.metrics import roc_auc_score
from sklearn.naive_bayes import MultinomialNB

from skdp import DPMultinomialNB
from skdp._data_validation import Facts
from skdp.audit._audit import lower_bound
from skdp.audit._claim import Claim
from skdp.data import chunks
from skdp.privacy.data.training_data import TrainingData
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ClassSums
from skdp.testing import reproducible_noise

CLASSES = ["a", "b", "c"]


def words(rng, n, n_classes=2, n_words=60):
    """Counts of words, whose frequencies differ among the classes, and their labels; the last class is rare."""
    rates = rng.gamma(0.5, size=n_words) * np.exp(rng.normal(size=(n_classes, n_words)))
    labels = np.minimum(rng.integers(0, 2 * n_classes - 1, n) // 2, n_classes - 1)
    return sparse.csr_array(rng.poisson(rates[labels] / 2).astype(float)), np.array(CLASSES)[labels]


@pytest.mark.filterwarnings("ignore::skdp.NotPrivateWarning")
@pytest.mark.parametrize("n_classes", (2, 3))
def test_without_noise_labels_are_those_of_scikit_learn(n_classes, rng):
    """But for few records: the pseudo-counts differ."""
    X, y = words(rng, 4000, n_classes)
    lengths = np.sqrt(X.multiply(X).sum(axis=1))
    shortened = sparse.diags_array(1 / np.maximum(lengths, 1)) @ X
    theirs = MultinomialNB().fit(shortened, y)
    ours = DPMultinomialNB(math.inf).fit(X, y)
    assert (ours.predict(X) == theirs.predict(shortened)).mean() > 0.97
    assert ours.coef_.shape == (1 if n_classes == 2 else 3, 60)
    logarithms = theirs.class_log_prior_
    expected = logarithms[1:] - logarithms[0] if n_classes == 2 else logarithms - logarithms[0]
    assert_allclose(ours.intercept_ - (0 if n_classes == 2 else ours.intercept_[0]), expected, atol=1e-9)


def test_the_one_release_is_the_schedule_and_spends_the_budget(rng, monkeypatch):
    asked, ask = [], Oracle.ask
    monkeypatch.setattr(Oracle, "ask", lambda self, query: asked.append(query) or ask(self, query))
    X, y = words(rng, 500, 3)
    model = DPMultinomialNB(1.0, adjacency="zero_out").fit(X, y)
    assert asked == [ClassSums(1.0, 60, 3)]
    (line,) = model.privacy_report_.releases
    assert (line.query, line.count) == ("ClassSums", 1) and model.privacy_spent_.epsilon == pytest.approx(1.0)
    assert model.plan(500, 60, 3).releases == model.privacy_report_.releases


def test_rows_are_shortened_and_cut_at_0_in_the_fit_and_in_predictions(rng):
    X, y = words(rng, 300)
    X = X.toarray()
    hidden = np.where(X > 0, X, -(10.0 ** rng.integers(-9, -7, X.shape)))  # too short to change a length
    model = fitted(DPMultinomialNB(1.0), X, y)
    assert_allclose(fitted(DPMultinomialNB(1.0), hidden, y).coef_, model.coef_, atol=1e-6)
    assert_allclose(fitted(DPMultinomialNB(1.0), 7 * sparse.csr_array(X), y).coef_, model.coef_, atol=1e-6)
    for table in (7 * X, hidden, sparse.csc_array(X)):
        assert_allclose(model.decision_function(table), model.decision_function(X), atol=1e-5)
    short = np.where(X > 0, X, -0.1) / 1000
    assert_allclose(model.decision_function(short), model.decision_function(X / 1000), rtol=1e-9)


def test_words_that_noise_hides_have_small_effects(rng):
    """Words that no record has get less than a third of what those have that some records have."""
    X, y = words(rng, 1000)
    model = fitted(DPMultinomialNB(1.0), sparse.hstack([X, sparse.csr_array((1000, 200))], format="csr"), y)
    effects = np.abs(model.coef_[0])
    assert effects[60:].mean() < effects[:60].mean() / 3


def test_a_table_in_partitions_gives_the_same_bits(rng):
    X, y = words(rng, 700, 3)
    X, cuts = X.toarray(), [0, 100, 350, 700]
    table = chunks(lambda: ((X[a:b], y[a:b]) for a, b in itertools.pairwise(cuts)))
    whole, parts = (fitted(DPMultinomialNB(1.0, classes=CLASSES), *data) for data in ((X, y), (table,)))
    np.testing.assert_array_equal(whole.coef_, parts.coef_)


def test_text_is_classified_below_its_noise(rng):
    """The area under the ROC curve is above .85 in each of three fits."""
    X, y = words(rng, 2000, n_words=400)
    fits = [fitted(DPMultinomialNB(0.5), X[:1000], y[:1000], seed=seed) for seed in range(3)]
    assert min(roc_auc_score(y[1000:], fit.decision_function(X[1000:])) for fit in fits) > 0.85


@pytest.mark.parametrize("alpha", (0, -1.0, math.nan, "2", None, True))
def test_a_wrong_pseudo_count_is_named(alpha):
    with pytest.raises((ValueError, TypeError), match="alpha"):
        DPMultinomialNB(alpha=alpha).plan(100, 3)


def uncut(patched):
    """Negative entries count, so that two rows of a class may have opposite sums."""
    patched.setattr(ClassSums, "_of_batch", lambda query, batch: (np.eye(2)[batch.targets].T @ batch.rows).ravel())


def attacked(twin=None):
    """Return the epsilon that 1000 answers for each of two opposite rows of one class prove, of a claimed one of 6."""
    plan = DPMultinomialNB(6.0, delta=1e-5)._task().plan_of(Facts(20, 3, classes=np.array([0, 1])))
    X, y, scores = np.zeros((20, 3)), np.arange(20) % 2, np.empty((2, 1000))
    with pytest.MonkeyPatch.context() as patched, reproducible_noise(0):
        if twin is not None:
            twin(patched)
        noise = NoiseSource()
        for number, X[0, 0] in enumerate((-1.0, 1.0)):
            rows = TrainingData(X.copy(), y, data_norm=1.0, by_row=True)
            scores[number] = [plan.oracle(rows, noise).ask(ClassSums(1.0, 3, 2))[2] for _ in range(1000)]
    return lower_bound("transcript", scores, Claim(plan.schedule, plan.scale, plan.budget), "gaussian", 1 - 1e-4).epsilon


@pytest.mark.slow
def test_opposite_rows_stay_within_the_claim_and_the_twin_that_does_not_cut_them_at_0_is_caught():
    """By one coordinate of the answers; a false alarm has a chance of one in 10 000."""
    assert 2 < attacked() <= 6 < attacked(uncut)


@pytest.mark.parametrize("of", (list, np.array, lambda texts: np.array(texts, dtype=object)), ids=("list", "array", "objects"))
def test_texts_are_told_how_to_become_rows(of):
    with pytest.raises(ValueError, match="or CountVectorizer") as raised:
        DPMultinomialNB(classes=[0, 1]).fit(of(["a secret", "b"]), [0, 1])
    assert "secret" not in str(raised.value)


def test_the_report_says_that_negative_entries_count_as_0():
    assert "negative ones count as 0" in str(DPMultinomialNB(classes=[0, 1]).plan(100, 5))
