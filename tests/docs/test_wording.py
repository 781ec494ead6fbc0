"""What pages quote or repeat is what the package says: messages, and sentences that occur in several places."""

import ast
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GridSearchCV

from skdp import DPLogisticRegression, DPTabularClassifier, PrivacyLedger
from skdp.__main__ import main
from skdp.metrics import evaluate
from skdp.privacy import errors
from skdp.privacy.budget import DELTA_IN_WORDS

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS, PACKAGE = REPOSITORY / "docs", REPOSITORY / "skdp"
QUESTIONS = (DOCS / "user_guide" / "questions_and_errors.md").read_text()
# Pages whose sentences are short: a page for each line of the tasks, and those that a newcomer reads next.
NEW = [
    *("index", "getting_started/first_model", "getting_started/tutorial", "getting_started/install"),
    *(f"user_guide/{task}" for task in "raw_tables preparing_data how_many_records ledger publish_scores curves".split()),
    *(
        f"user_guide/{task}"
        for task in "confidence_intervals large_tables survey_weights questions_and_errors rankings_and_groups".split()
    ),
    *(
        f"user_guide/{page}"
        for page in "cost_of_privacy not_in_skdp from_statsmodels from_opendp counts_and_amounts command_line".split()
    ),
    "guarantees/data_protection_officer",
]
RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (100, 2))
TABLE = pd.DataFrame({"age": RNG.integers(18, 90, 100), "smoker": RNG.choice(["no", "yes"], 100)})
Y = np.arange(100) % 2
GAPS = np.where(Y, "yes", None)
NUMBERS = pd.DataFrame(X, columns=["a", "b"])


def bounded(**parameters):
    return DPLogisticRegression(feature_bounds=1.0, **parameters)


def in_ledger(model, **ledger):
    with PrivacyLedger(epsilon=0.5, delta=1e-6, **ledger):
        model.fit(X, Y)


WRONG = {  # the first words of each error on the page: what a user did
    "Input X contains NaN.": lambda: bounded().fit(np.where(X > 0.99, np.nan, X), Y),
    "X (DataFrame) or y has something that cannot be read": lambda: bounded().fit(TABLE, Y),
    "Input y contains NaN.": lambda: bounded().fit(X, np.where(Y, np.nan, 0)),
    "y has values that cannot be read.": lambda: DPTabularClassifier().fit(TABLE, pd.Series(GAPS).astype("category")),
    "Unknown label type: y has labels that are missing": lambda: DPTabularClassifier().fit(TABLE, GAPS),
    "y is missing; expected fit(X, y)": lambda: DPTabularClassifier().fit(TABLE),
    "Unknown label type: continuous.": lambda: DPTabularClassifier().fit(TABLE, X[:, 0]),
    "y has only one class; expected at least two.": lambda: bounded().fit(X, np.ones(100)),
    "y has labels outside classes=…": lambda: bounded(classes=["no", "yes"]).fit(X, Y),
    "y should be a 1d array": lambda: DPTabularClassifier().fit(TABLE, "ill"),
    "Found input variables with inconsistent numbers of samples": lambda: bounded().fit(X, Y[1:]),
    "X has column names that are no strings, or the same name twice": lambda: DPTabularClassifier().fit(TABLE.join(X_AGAIN), Y),
    "schema names the columns …, which X does not have": lambda: DPTabularClassifier(schema={"agee": "number"}).fit(TABLE, Y),
    "schema, column …; expected {'kind': 'number', 'bounds': [low, high]}": lambda: DPTabularClassifier(
        schema={"age": "numeric"}
    ).fit(TABLE, Y),
    "epsilon=… is not a number": lambda: DPTabularClassifier(epsilon="1").fit(TABLE, Y),
    "delta=None means 1 / n_samples**2 = …": lambda: bounded().fit(X[:20], Y[:20]),
    "… does not take C: the penalty is alpha = 1 / (C * n_samples).": lambda: DPLogisticRegression(C=1.0),
    "… does not take sample_weight": lambda: bounded().fit(X, Y, sample_weight=np.ones(100)),
    "inference=True needs schema, feature_bounds or data_norm": lambda: DPLogisticRegression(inference=True).fit(X, Y),
    "inference=True with columns that are learned": lambda: DPLogisticRegression(inference=True).fit(TABLE, Y),
    "privacy_unit='person' without persons": lambda: bounded(privacy_unit="person").fit(X, Y),
    "… would spend epsilon=…; in the ledger …": lambda: in_ledger(bounded(epsilon=1.0, delta=1e-7)),
    "There is no ledger … yet; a new one needs a ceiling": lambda: PrivacyLedger("no folder/ledger.sqlite"),
    "… would fit … times": lambda: in_ledger(GridSearchCV(bounded(delta=1e-7), {"epsilon": [0.4, 0.5]}, cv=5)),
    "The feature names should match those that were passed during fit.": lambda: FITTED().predict(NUMBERS[["b", "a"]]),
    "y holds labels that the model does not know": lambda: evaluate(FITTED(), NUMBERS, np.where(Y, "yes", "no"), epsilon=1.0),
}
X_AGAIN = pd.DataFrame({0: X[:, 0]})
WARN = ("warn", "warn_outside")
SPOKEN = re.compile(r"(warn|warn_outside|Warning)\(")  # in a function that warns
INDIRECT = {  # functions that return or yield texts of warnings, which `warn` gets as a name
    "_contradictions.py": ("contradictions", "_about_targets", "of_columns", "of_first_categories"),
    "_task.py": ("left_out",),
    "_regressor.py": ("contradictions", "left_out"),
    "_plan.py": ("doubts",),
    "callers.py": ("learned_around",),
}


def FITTED():
    return bounded(epsilon=10.0).fit(NUMBERS, Y)


def quoted(text):
    """First words of messages: code in the first column of the tables."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def pattern(words):
    """What begins a message, or is a part of it, with values in place of each ellipsis."""
    return re.compile(".*?".join(map(re.escape, words.split("…"))), re.DOTALL)


ERRORS, COMMAND, WARNINGS = (quoted(part) for part in re.split("## Errors of the command|## Warnings that", QUESTIONS))
WRONG_COMMANDS = (  # of which each error of the command is one, in the order of the page
    ("people.csv", "--target", "Smoker"),
    ("people.csv",),
    ("people.csv", "--target", "smoker"),
    ("people.csv", "--target", "smoker", "--task", "regression"),
    ("people.csv", "--target", "smoker", "--epsilon", "0,5"),
    ("nobody.csv", "--target", "smoker"),
)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("words", ERRORS)
def test_errors_begin_as_the_page_says(words, monkeypatch):
    monkeypatch.setattr("skdp.privacy.budget.LARGEST_DEFAULT", 1e-3)
    with pytest.raises(Exception) as wrong:
        WRONG[words]()
    assert pattern(words).match(str(wrong.value))


@pytest.mark.parametrize(("words", "wrong"), list(zip(COMMAND, WRONG_COMMANDS, strict=True)))
def test_errors_of_the_command_have_what_the_page_says(words, wrong, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    TABLE.assign(smoker=TABLE["smoker"].where(TABLE["age"] > 20)).to_csv("people.csv", index=False)
    try:
        code = main(["fit", "--epsilon", "1", *wrong, "--model", "model.skops"])
    except SystemExit as stop:
        code = stop.code
    told = capsys.readouterr().err
    assert code == 2 and "error: " in told and pattern(words).search(told)
    assert not Path("model.skops").exists()


def test_all_errors_of_the_page_are_tried():
    assert list(WRONG) == ERRORS and len(ERRORS) >= 20


def written(node, said):
    """The text of an expression, with an ellipsis for each value; None if it is no text. ``said`` has texts that have a name."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return re.sub("…+", "…", "".join(written(part, said) or "…" for part in node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (written(node.left, said) or "…") + (written(node.right, said) or "…")
    if isinstance(node, ast.FormattedValue):
        return written(node.value, said) if isinstance(node.value, ast.Name) else None
    if isinstance(node, ast.IfExp):
        return " / ".join(filter(None, (written(part, said) for part in (node.body, node.orelse)))) or None
    return written(said[node.id], {}) if isinstance(node, ast.Name) and node.id in said else None


def texts_in(node, said):
    """Texts of an expression or a statement, outermost ones only; of what is yielded the first, as others say what to do."""
    text = written(node, said)
    pair = isinstance(node, ast.Yield) and isinstance(node.value, ast.Tuple)
    parts = node.value.elts[:1] if pair else ast.iter_child_nodes(node)
    return [text] if text else [found for part in parts for found in texts_in(part, said)]


def said_by(path, function):
    """Texts of the warnings of a function."""
    nodes = list(ast.walk(function))
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.args]
    names = [getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls]
    said = {
        node.targets[0].id: node.value for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    warned = [call.args[0] for call, name in zip(calls, names, strict=True) if name in WARN or name.endswith("Warning")]
    if function.name in INDIRECT.get(path.name, ()):
        warned += [node for node in nodes if isinstance(node, ast.Yield | ast.Return)]
        warned += [call for call in calls if getattr(call.func, "attr", "") == "append"]
    return [text for node in warned for text in texts_in(node, said) if len(text) > 20]


@cache
def messages():
    """Texts of all warnings in the source; two of a choice are two."""
    sources = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    spoken = [path for path, source in sources.items() if path.name in INDIRECT or SPOKEN.search(source)]
    functions = [
        (path, function)
        for path in spoken
        for node in ast.parse(sources[path]).body
        for function in (node.body if isinstance(node, ast.ClassDef) else [node])
        if isinstance(function, ast.FunctionDef)
    ]
    return [
        text
        for path, function in functions
        if function.name in INDIRECT.get(path.name, ())
        or SPOKEN.search("\n".join(sources[path].splitlines()[function.lineno : function.end_lineno]))
        for text in said_by(path, function)
    ]


def test_every_warning_is_on_the_page():
    """And no other: what is quoted is part of a text in the source."""
    asked = {words: pattern(words) for words in WARNINGS}
    missing = [text for text in messages() if not any(one.search(text) for one in asked.values())]
    assert not missing
    stale = [words for words, one in asked.items() if not any(one.search(text) for text in messages())]
    assert not stale and len(messages()) > 50


def test_every_class_of_warnings_has_its_place():
    classes = {name for name in errors.__all__ if name.endswith("Warning")}
    assert classes <= set(re.findall(r"`(\w+Warning)`", QUESTIONS))


def sentences(page):
    """Sentences of prose: without code, tables of quotes stay, and links count as their words."""
    text = re.sub(r"^```.*?^```$|^:{3,}[^\n]*$|^\[?!\[[^\n]*$", "", page, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"`[^`]*`", "code", re.sub(r"\]\([^)]*\)", "]", text))
    return [one for line in re.split(r"\n\n|\n(?=[-|#]|\d\.)|\|", text) for one in re.split(r"(?<=[.?!:])\s", line)]


@pytest.mark.parametrize("page", NEW)
def test_sentences_are_short(page):
    assert not [one for one in sentences((DOCS / f"{page}.md").read_text()) if len(one.split()) > 25]


DELTA = DELTA_IN_WORDS.format(units="records")
OF_DELTA = ["README.md", "docs/index.md", "docs/privacy.md"]
OF_DELTA += [
    f"docs/{name}.md" for name in ("guarantees/data_protection_officer", "user_guide/privacy_model", "getting_started/tutorial")
]


def written_pages():
    return [REPOSITORY / "README.md", *(page for page in DOCS.rglob("*.md") if not {"_build", "papers"} & {*page.parts})]


def test_pages_and_reports_explain_delta_in_one_sentence():
    assert all(DELTA in (REPOSITORY / page).read_text() for page in OF_DELTA)
    told = re.compile(
        r"\bdelta\b\W{1,3}(?:is|means|bounds)[^|.]{0,20}(?:probab|fail|promis)[^|.]*|probability (?:of|that)[^|.]{0,20}\bdelta\b"
    )
    for page in written_pages():
        found = told.findall(" ".join(page.read_text().split()))
        assert all(DELTA.startswith(one) for one in found), page
    plan = bounded().plan(100, 2)
    assert DELTA in plan.to_html()


def test_learned_values_are_nowhere_called_public():
    """What is learned is learned from the records, with noise."""
    said = re.compile(r"(learned|learnt)[^.|:]{0,30} (?:is|are|counts? as) public|never read from the data", re.IGNORECASE)
    assert not [page for page in written_pages() if said.search(" ".join(page.read_text().split()))]


def test_the_page_for_officers_states_what_an_attacker_can_conclude():
    """From even odds, to exp(epsilon) to one."""
    page = (DOCS / "guarantees" / "data_protection_officer.md").read_text()
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) % \|", page, re.MULTILINE)
    assert len(rows) == 4
    assert all(f"{share} %" in (DOCS / "index.md").read_text() for _, share in rows[:2])
    for epsilon, share in rows:
        assert float(share) == pytest.approx(100 / (1 + np.exp(-float(epsilon))), rel=1e-2)
