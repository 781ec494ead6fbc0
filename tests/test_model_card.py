"""Model cards: what stands on them, of every kind of model, and what does not."""

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdp import (
    DPPCA,
    DPAdditiveClassifier,
    DPKMeans,
    DPLinearRegression,
    DPLogisticRegression,
    DPTabularClassifier,
    model_card,
    save_model,
)
from skdp.__main__ import main
from skdp._commands._evaluate import _content
from skdp.metrics import evaluate
from skdp.model_selection import DPGridSearchCV
from skdp.pipeline import DPPipeline
from skdp.preprocessing import BoundedScaler, LearnedSchema
from skdp.testing import reproducible_noise

N = 1500
HEADINGS = ["Purpose", "Model", "Privacy guarantee", "Scores", "Limits", "What the guarantee assumes", "Public, not protected"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.integers(18, 90, N).astype(float), "job": rng.choice(["clerk", "nurse"], N)})
    return frame, np.where(frame["age"] > 50, "yes", "no")


@pytest.fixture(scope="module")
def model(table):
    return DPAdditiveClassifier(epsilon=2.0, delta=1e-6).fit(*table)


def headings(card):
    return [line.removeprefix("## ") for line in card.splitlines() if line.startswith("## ")]


class Elements(HTMLParser):
    """Checks that elements are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.loaded = [], []

    def handle_starttag(self, tag, attrs):
        self.loaded += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "polyline", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "polyline":
            assert self.open.pop() == tag


def test_a_card_has_all_sections(model, table):
    with reproducible_noise(0):
        scores = evaluate(model, *table, epsilon=1.0, metrics="accuracy")
    card = model_card(model, evaluation=scores, purpose="Shows who is old.")
    assert [heading for heading in headings(card) if heading in HEADINGS] == HEADINGS
    assert "Functions of columns" in headings(card) and "Learned from the records, with noise" in headings(card)
    for told in (
        "Shows who is old.",
        "| accuracy | all |",
        "2, 1e-06",
        "7.39 times",
        "SHA-256",
        "Not stated",
        "ColumnHistograms",
    ):
        assert told in card
    page = model_card(model, evaluation=scores, format="html")
    parsed = Elements()
    parsed.feed(page)
    assert parsed.open == [] and parsed.loaded == [] and page.count("<svg") == 1  # of the number


def test_a_card_is_the_same_for_equal_releases(model):
    """It reads attributes of the model alone; no time, and no random number, is on it."""
    assert model_card(model) == model_card(model)


@pytest.mark.filterwarnings("ignore")
def test_other_models_and_pipelines_have_cards(table):
    frame, y = table
    X = frame[["age"]].to_numpy()
    private = DPLogisticRegression(1.0, delta=1e-6, data_norm=1.0, classes=["no", "yes"])
    cases = {
        "Coefficients": make_pipeline(BoundedScaler((0, 120)), private).fit(X, y),
        "Clusters": DPKMeans(2, epsilon=1.0, feature_bounds=(0, 120)).fit(X),
        "Components": DPPCA(1, epsilon=1.0, feature_bounds=(0, 120)).fit(X),
        "Releases of columns": DPPipeline(
            [("columns", LearnedSchema()), ("model", DPLogisticRegression(data_norm=1.0, classes=["no", "yes"]))], epsilon=2.0
        ).fit(frame, y),
        "Releases": DPGridSearchCV(private, {"alpha": [0.01, 0.1]}).fit(X / 120, y),
        "What the guarantee assumes": DPTabularClassifier(1.0).fit(frame, y),
    }
    for heading, fitted in cases.items():
        card = model_card(fitted)
        assert heading in headings(card) and "nan" not in card
        model_card(fitted, format="html")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "step, told",
    (
        (StandardScaler(), "NONE for the whole: step learned from the training records, and no report says what."),
        (DPPCA(1, epsilon=3.0, delta=1e-6, feature_bounds=(0, 120)), "step, model spend epsilon = 4 and delta = 2e-06 together"),
        (DPPCA(1, epsilon=np.inf, feature_bounds=(0, 120)), "Step step: NONE: epsilon = inf adds no noise"),
        (
            FeatureUnion([("a", DPPCA(1, epsilon=3.0, feature_bounds=(0, 120)))]),
            "NONE for the whole: step\\_\\_a learned from the training records",
        ),
        (FunctionTransformer(np.tanh), "- step (FunctionTransformer): what it keeps may depend on the records."),
        (BoundedScaler((0, 120)), "plain words"),
    ),
)
def test_the_guarantee_is_that_of_all_steps(step, told, table):
    """A card of a pipeline does not state the budget of the last step as that of the whole."""
    private = DPLogisticRegression(1.0, delta=1e-6, data_norm=1.0, classes=["no", "yes"])
    card = model_card(Pipeline([("step", step), ("model", private)]).fit(table[0][["age"]], table[1]))
    assert told in card and ("plain words" in card) == isinstance(step, (BoundedScaler, FunctionTransformer))
    assert ("must not be published" in card) == ("NONE" in told)


@pytest.mark.filterwarnings("ignore")
def test_no_record_is_on_a_card():
    """Names of rare values, numbers of records, and the number of rows of persons."""
    rng, rows = np.random.default_rng(0), 1743
    frame = pd.DataFrame({"cost": np.append(rng.uniform(0, 9, rows - 1), 8.7654321), "work": ["clerk"] * (rows - 1) + ["zebra"]})
    persons = rng.permutation(np.append(np.arange(900), rng.integers(900, size=rows - 900)))
    fitted = DPTabularClassifier(3.0, delta=1e-6, privacy_unit="person", classes=[0, 1])
    fitted.fit(frame, (frame["cost"] > 4).astype(int), persons=persons)
    for form in ("md", "html"):
        card = model_card(fitted, format=form)
        assert "900 persons" in card and not any(secret in card for secret in ("zebra", "clerk", "8.7654", "1743", "1,743"))
        assert "all rows of one person" in card


def test_a_card_names_a_part_of_a_search_that_may_keep_records():
    X, y = np.linspace((-1, 0), (1, 0.5), 500), np.arange(500) % 2
    model = DPGridSearchCV(DPLogisticRegression(feature_bounds=1.0), {"alpha": [0.1]}, epsilon=3.0, delta=1e-5).fit(X, y)
    assert "best\\_estimator\\_" not in model_card(model)
    model.best_estimator_.__class__ = type("Keeper", (DPLogisticRegression,), {})
    assert "best\\_estimator\\_ (Keeper): what it keeps may depend on the records." in model_card(model)


def test_a_card_of_several_targets_names_them():
    X = np.linspace((-1, 0), (1, 0.5), 400)
    card = model_card(DPLinearRegression(3.0, delta=1e-6, feature_bounds=1.0, target_bounds=[(-1, 1), (0, 2)]).fit(X, X))
    assert "| Predicts | numbers from -1 to 1, from 0 to 2 |" in card and "| Coefficient for target 1 |" in card


def test_names_are_shown_as_they_are():
    """Whatever the names of columns hold, they make no marks of Markdown and no elements of HTML."""
    names = ["<b>x</b> | [a](b)", "*y*\n# z"]
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (300, 2)), columns=names)
    fitted = DPLogisticRegression(3.0, delta=1e-6, feature_bounds=1.0, classes=[0, 1]).fit(X, (X.iloc[:, 0] > 0).astype(int))
    card, page = model_card(fitted), model_card(fitted, format="html")
    assert "<b>x" not in card and "\n# z" not in card and "\\[a\\]" in card and "<b>x" not in page


@pytest.mark.parametrize(
    "given, error, told",
    (
        ({"format": "pdf"}, ValueError, "format='pdf'"),
        ({"purpose": 3}, TypeError, "purpose=3"),
        ({"purpose": {"Use": "x"}}, ValueError, "expected headings among"),
        ({"evaluation": 0.9}, TypeError, "Scores without noise"),
        ({"evaluation": __file__}, ValueError, "holds no scores"),
    ),
)
def test_what_is_no_card_is_said(given, error, told, model):
    with pytest.raises(error, match=told):
        model_card(model, **given)


@pytest.mark.filterwarnings("ignore")
def test_scores_without_noise_or_of_other_models_are_not_on_a_card(model, table, tmp_path):
    given = dict(metrics="accuracy", epsilon=1.0)
    exact, good = evaluate(model, *table, **given | {"epsilon": np.inf}), evaluate(model, *table, **given)
    X, path = table[0][["age"]], tmp_path / "s.json"
    other = DPLogisticRegression(1.0, feature_bounds=(0, 120), classes=["no", "yes"]).fit(X, table[1])
    content = json.loads(_content(good, path))
    files = {
        "without noise": content | {"privacy": content["privacy"] | {"epsilon": "inf"}},
        "holds no scores": content | {"metrics": {"accuracy": {"value": "high", "low": 0, "high": 1}}},
        "s.json holds no scores": content | {"privacy": {}},
    }
    with pytest.raises(ValueError, match="scores without noise"):
        model_card(model, evaluation=exact)
    with pytest.raises(ValueError, match="scores of 'DPAdditiveClassifier'; expected those of DPLogisticRegression"):
        model_card(other, evaluation=good)
    for told, written in files.items():
        path.write_text(json.dumps(written))
        with pytest.raises(ValueError, match=told):
            model_card(model, evaluation=path)


def test_models_without_a_guarantee_have_no_card(table):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        model_card(DPLogisticRegression())
    X = table[0][["age"]].to_numpy()
    for other in (LogisticRegression().fit(X, table[1]), make_pipeline(LogisticRegression().fit(X, table[1])), 3):
        with pytest.raises(TypeError, match="expected a fitted estimator of skdp"):
            model_card(other)
    with pytest.warns(match="not private"):
        card = model_card(DPLogisticRegression(float("inf"), data_norm=100.0, classes=["no", "yes"]).fit(X, table[1]))
    assert "NONE: epsilon = inf" in card and "must not be published" in card and "plain words" not in card


def test_groups_have_scores(model, table):
    found = evaluate(model, *table, epsilon=3.0, metrics="accuracy", groups=table[0]["job"], group_labels=["clerk", "nurse"])
    card = model_card(model, evaluation=found)
    assert "| accuracy | group nurse |" in card and "No score by group" not in card


def test_the_command_writes_a_card(model, table, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    save_model(model, "m.skops")
    table[0].assign(old=table[1]).to_csv("t.csv", index=False)
    assert main(["evaluate", "m.skops", "t.csv", "--target", "old", "--epsilon", "1", "--out", "s.json"]) == 0
    capsys.readouterr()
    assert main(["card", "m.skops", "--scores", "s.json", "--purpose", "Shows who is old."]) == 0
    card = capsys.readouterr().out
    assert (
        "Shows who is old." in card
        and "| roc\\_auc | all |" in card
        and json.loads(Path("s.json").read_text())["guarantee"].partition(" (")[0] in card
    )
    assert main(["card", "m.skops", "--out", "card.html"]) == 0 and "<svg" in Path("card.html").read_text()
    assert main(["card", "m.skops", "--out", "card.pdf"]) == 2
    assert "expected a name that ends in one of .md, .html" in capsys.readouterr().err
