"""Labels in another type than the classes: matched where type and classes, both public, leave no doubt."""

import warnings

import numpy as np
import pandas as pd
import pytest

from skdp import DPAdditiveClassifier, DPGroupDROClassifier, DPLinearSVC, DPLogisticRegression, PrivacyLedger
from skdp._label_types import otherwise_spelt, sorted_labels
from skdp.audit._canary import _rarest_and_most_frequent
from skdp.metrics import dp_accuracy_score

N = 600
CODES = np.random.default_rng(0).integers(0, 2, N)
X = np.random.default_rng(1).uniform(-1, 1, (N, 2)) + CODES[:, None]
FRAME = pd.DataFrame(X, columns=["age", "height"])
COLUMNS = {name: {"kind": "number", "bounds": [-1, 2]} for name in FRAME}

AS_NUMBERS = {
    "int64": CODES,
    "int8": CODES.astype(np.int8),
    "uint16": CODES.astype(np.uint16),
    "float64": CODES.astype(float),
    "objects": CODES.astype(object),
    "series": pd.Series(CODES),
    "nullable": pd.Series(CODES, dtype="Int64"),
}
AS_TEXT = {
    "array": CODES.astype(str),
    "objects": CODES.astype(str).astype(object),
    "series": pd.Series(CODES.astype(str)),
    "category": pd.Series(CODES.astype(str), dtype="category"),
}
given = pytest.mark.parametrize(
    "y", (*AS_NUMBERS.values(), *AS_TEXT.values()), ids=(*AS_NUMBERS, *(f"text {n}" for n in AS_TEXT))
)


def models(classes):
    schema = {"columns": COLUMNS, "target": "ill", "classes": classes}
    yield DPAdditiveClassifier(50.0, schema=schema), FRAME
    yield DPLogisticRegression(50.0, classes=classes), X
    yield DPLinearSVC(50.0, classes=classes), X


@pytest.mark.each_value
@pytest.mark.filterwarnings("ignore::skdp.WeakPrivacyWarning")
@given
@pytest.mark.parametrize("classes", (["0", "1"], [0, 1]), ids=("text classes", "number classes"))
def test_labels_are_matched_and_predicted_in_the_type_of_y(classes, y):
    text = isinstance(np.asarray(y)[0], str)
    for model, table in models(classes):
        model.fit(table, y)
        assert model.classes_.tolist() == (["0", "1"] if text else [0, 1])
        assert isinstance(model.predict(table)[0], str) == text
        assert np.mean(model.predict(table) == np.asarray(y)) > 0.7
        assert model.privacy_report_.public["classes"] == model.classes_.tolist()


@pytest.mark.parametrize(
    ("classes", "y", "expected"),
    (
        (["10", "2"], np.array([2, 10]), [2, 10]),
        ([2, 10], np.array(["2", "10"]), ["10", "2"]),
        (["-1", "1"], np.array([-1.0, 1.0]), [-1, 1]),
        (["False", "True"], np.array([True, False]), [False, True]),
        ([False, True], np.array(["True", "False"]), ["False", "True"]),
        (["0", "1"], np.array([True, False]), ["0", "1"]),
        (["0", "01"], np.array([0, 1]), ["0", "01"]),
        (["0", "1.0"], np.array([0, 1]), ["0", "1.0"]),
        (["0", str(2**53)], np.array([0, 2**53]), ["0", str(2**53)]),
        (["no", "yes"], np.array([0, 1]), ["no", "yes"]),
        ([0.5, 1.0], np.array(["0.5", "1.0"]), [0.5, 1.0]),
        (["0", "1"], [0, 1], ["0", "1"]),
    ),
)
def test_only_what_has_one_exact_spelling_is_matched(classes, y, expected):
    found = otherwise_spelt(np.unique(classes), y, np.asarray(y))
    assert found.tolist() == expected
    assert all(type(a) is type(b) for a, b in zip(found.tolist(), expected, strict=True))


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("classes", (["0", "1"], [0, 1]))
@pytest.mark.parametrize("kind", (int, str))
@pytest.mark.parametrize("container", (lambda y: np.array(y, dtype=object), lambda y: pd.Series(y, dtype=object), list))
def test_no_neighbour_that_can_be_fitted_has_labels_of_another_type(classes, kind, container):
    """One record of another type: the table is refused, or gives the same classes."""
    table = [kind(code) for code in CODES]
    for other in (0, 1, "0", "1", True, 1.0, np.int8(1), np.str_("1")):
        outcomes = set()
        for y in (table, [other, *table[1:]]):
            try:
                outcomes.add(repr(DPLogisticRegression(classes=classes).fit(X, container(y)).classes_.tolist()))
            except ValueError as error:
                assert "outside classes" in str(error) or "something in them cannot be read" in str(error)
        assert len(outcomes) <= 1


@pytest.mark.parametrize(
    ("classes", "y", "told"),
    (
        (["no", "yes"], CODES, "classes are text, and y is of dtype int64"),
        (["no", "yes"], pd.Series(CODES == 1), "classes are text, and y is of dtype bool"),
        ([0, 1], np.where(CODES, "yes", "no"), "classes are numbers, and y is text"),
        ([0, 1], np.where(CODES, "yes", "no").astype(object), "classes are numbers, and y is of dtype object"),
        (["0", "1"], CODES.tolist(), "classes are text; an array y may have them in another type, a list may not"),
        (["0", "1"], CODES + 1, "classes are text, and y is of dtype int64"),
        ([0, 1], CODES + 1, "one of them, spelt as in y: upper case counts."),
        (["no", "yes"], np.where(CODES, "perhaps", "no"), "one of them, spelt as in y: upper case counts."),
    ),
)
def test_the_message_has_both_types_and_no_label(classes, y, told):
    with pytest.raises(ValueError, match="y has labels outside classes=") as caught:
        DPLogisticRegression(classes=classes).fit(X, y)
    message = str(caught.value)
    assert message.rstrip(".").endswith(told.rstrip("."))
    assert "perhaps" not in message and "<U" not in message


def test_categories_of_a_frame_are_not_in_the_message():
    y = pd.Series(np.where(CODES, "secret", "no"), dtype="category")
    with pytest.raises(ValueError, match="y is of dtype object") as caught:
        DPLogisticRegression(classes=[0, 1]).fit(X, y)
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_class_weights_follow_the_classes():
    for classes, y, weights in (
        (["0", "1"], CODES, {"1": 3.0}),
        (["0", "1"], CODES, {1: 3.0}),
        ([0, 1], CODES.astype(str), {1: 3.0}),
    ):
        model = DPLogisticRegression(float("inf"), classes=classes, class_weight=weights)
        twin = DPLogisticRegression(float("inf"), classes=[0, 1], class_weight={1: 3.0})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.testing.assert_array_equal(model.fit(X, y).coef_, twin.fit(X, CODES).coef_)
            model.plan(N, 2)
    with pytest.raises(ValueError, match="twice"):
        DPLogisticRegression(classes=["0", "1"], class_weight={"1": 3.0, 1: 2.0}).fit(X, CODES)
    with pytest.raises(ValueError, match="class_weight has the label 2"):
        DPLogisticRegression(classes=["0", "1"], class_weight={2: 3.0}).fit(X, CODES)


def test_groups_and_audits_match_them_too():
    model = DPGroupDROClassifier(50.0, classes=["0", "1"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, CODES, groups=np.arange(N) % 2)
    assert model.classes_.tolist() == [0, 1]
    labels, codes = _rarest_and_most_frequent(DPLogisticRegression(classes=["0", "1"]), np.array([0, 0, 1, 0, 0]), 1)
    assert labels == (1, 0) and codes == (1, 0)


BIG = [2**60, 2**60 + 1]
LISTED = [BIG[code] for code in CODES]


@pytest.mark.parametrize("kind", (list, tuple))
@pytest.mark.parametrize("host, classes", ((2.0**60, BIG), (2**63, [*BIG, 2**63 - 1]), (-(2.0**60), [-(2**60), *BIG])))
def test_one_label_does_not_change_those_of_others_by_rounding(kind, host, classes):
    """A float makes all numbers of a list floats, of which two classes may be the same."""
    model = DPLogisticRegression(1.0, classes=classes)
    with PrivacyLedger(epsilon=5.0, delta=1e-4) as ledger:
        with pytest.raises(
            ValueError, match=r"labels outside classes=.* beyond 2\*\*53 are told apart only if all of y are integ"
        ):
            model.fit(X, kind([host, *LISTED[1:]]))
        assert not ledger.entries
        model.fit(X, kind(LISTED))
    assert model.classes_.tolist() == sorted(classes) and len(ledger.entries) == 1


def test_large_labels_of_evaluations_are_not_rounded():
    scores = np.full(N, 0.5)
    dp_accuracy_score(LISTED, scores, classes=BIG)
    with pytest.raises(ValueError, match="labels that classes= does not know"):
        dp_accuracy_score([2.0**60, *LISTED[1:]], scores, classes=BIG)
    dp_accuracy_score([0.0, *CODES[1:]], scores)


@pytest.mark.parametrize(
    "labels, like, expected",
    (
        ([1, 0.0], "int64", np.array([0, 1])),
        ([True, 0], "int64", np.array([0, 1])),
        ([1.0, 0], "bool", np.array([False, True])),
        ([2.0, True, 0], "bool", np.array([0, 1, 2])),
        ([1, 300.0], "int8", np.array([1, 300])),
        ([1, 0.5], "int64", np.array([0.5, 1.0])),
        ([2**60, 1], "float32", np.array([1.0, 2.0**60], dtype=np.float32)),
        ([2**60 + 1, 1.0], "float64", np.array([1, 2**60 + 1])),
        (["b", "a"], "U9", np.array(["a", "b"])),
        (["b", "a"], "object", np.array(["a", "b"], dtype=object)),
    ),
)
def test_labels_of_several_parts_have_a_type_that_no_record_decides(labels, like, expected):
    for given in (labels, labels[::-1]):
        found = sorted_labels(given, np.dtype(like))
        assert found.tolist() == expected.tolist() and found.dtype == expected.dtype


@pytest.mark.parametrize("listed", (list, tuple))
def test_one_label_of_a_list_does_not_decide_the_type_of_the_classes(listed):
    for label in (1, 1.0, np.float32(1), np.int8(1)):
        model = DPLogisticRegression(1.0).fit(X, listed([label, *(int(code) for code in CODES[1:])]))
        assert model.classes_.tolist() == [0, 1] and model.classes_.dtype == np.int64 and type(model.event_) is int


@pytest.mark.parametrize(
    ("table", "other"), (([True, False], 1), ([True, False], 0.0), ([1, 0], True), ([1, 0], "1"), (["1", "0"], 1))
)
def test_a_list_that_mixes_types_of_labels_is_refused_like_an_array_of_objects(table, other):
    """One label decided whether classes were booleans, integers or text."""
    y = [other, *(table[int(code)] for code in CODES[1:])]
    for given in (y, tuple(y), np.array(y, dtype=object)):
        with pytest.raises((TypeError, ValueError), match=r"neither all text nor all numbers|something in them cannot be read"):
            DPLogisticRegression(1.0).fit(X, given)
