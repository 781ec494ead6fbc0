"""What LearnedSchema spends, worked out again: from counted sensitivities and the noise in the report, by another accountant."""

import math

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant

from skdp import DPLogisticRegression, PrivacyLedger
from skdp.preprocessing import LearnedSchema
from skdp.preprocessing._range_search import QUESTIONS
from skdp.privacy.oracle import Oracle
from skdp.privacy.queries import ColumnHistograms
from skdp.privacy.queries.column_histograms import octave_bins

N = 300
COLUMNS = {  # columns of numbers, of text, of either kind, and a target
    "numbers": (3, 0, 0, False),
    "a number": (1, 0, 0, False),
    "texts": (0, 2, 0, False),
    "texts and a target": (0, 2, 0, True),
    "all": (4, 2, 1, True),
}
SETTINGS = [(name, adjacency, 1.0, 1e-7) for name in COLUMNS for adjacency in ("zero_out", "replace_one")]
SETTINGS += [("all", "replace_one", 0.1, 1e-10), ("all", "zero_out", 8.0, 1e-5)]


def table(numbers, texts, either):
    frame = {f"n{i}": np.arange(N) * 0.37 + i for i in range(numbers)}
    frame |= {f"t{i}": np.array(["x", "y"] * (N // 2), dtype=object) for i in range(texts)}
    frame |= {f"e{i}": np.array(["1.5", "y"] * (N // 2), dtype=object) for i in range(either)}
    return pd.DataFrame(frame), {f"t{i}": "category" for i in range(texts)} | {f"e{i}": "either" for i in range(either)}


def epsilon_of(multipliers, delta):
    """Epsilon of Gaussian releases by their noise over their sensitivity, as dp_accounting has it."""
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for multiplier in multipliers:
        accountant.compose(GaussianDpEvent(multiplier))
    return accountant.get_epsilon(delta)


@pytest.mark.each_value
@pytest.mark.parametrize("name, adjacency, epsilon, delta", SETTINGS)
def test_report_ledger_and_accountant_agree(name, adjacency, epsilon, delta, tmp_path, monkeypatch):
    """Counted: the ones of a record in the first round, and of all columns that may be in the second."""
    numbers, texts, either, target = COLUMNS[name]
    frame, words = table(numbers, texts, either)
    gates = []
    monkeypatch.setattr(Oracle, "finish", lambda self, finish=Oracle.finish: gates.append(self) or finish(self))
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=20.0, delta=1e-4, adjacency=adjacency) as ledger:
        given = {"delta": delta, "adjacency": adjacency, "schema": words, "learn_target": target}
        model = LearnedSchema(epsilon, **given).fit(frame, np.arange(N) / 7)
        (entry,) = ledger.entries
    report = model.privacy_report_
    of_two = math.sqrt(2) if adjacency == "replace_one" else 1.0
    searched = report.releases[0].query == "TargetHistogram"
    assert searched == (target and epsilon <= 1 and adjacency == "replace_one") and report.releases[0].count == (
        QUESTIONS if searched else 1
    )
    counted = 4 * target * (not searched)
    squares = [numbers + texts + either + counted, numbers + either + counted]
    of_columns = report.releases[searched:]
    assert of_columns[0].clip_norm == pytest.approx(math.sqrt(squares[0]))
    assert len(of_columns) == (3 if squares[1] else 1)
    queries = [line.query for line in report.releases for _ in range(line.count)]
    assert [type_.query.__name__ for type_ in gates[0].transcript] == queries
    multipliers = [line.noise_multiplier / of_two for line in report.releases for _ in range(line.count)]  # over sensitivity
    recomputed = epsilon_of(multipliers, delta)
    assert recomputed == pytest.approx(epsilon, rel=2e-3)
    assert model.privacy_spent_ == (pytest.approx(epsilon, rel=1e-3), delta) and model.privacy_spent_.epsilon <= epsilon
    assert (entry.spending.epsilon, entry.spending.delta) == model.privacy_spent_
    assert entry.spending.schedule == tuple(map(str, report.releases))
    multipliers = multipliers[QUESTIONS * searched :]
    if squares[1]:
        assert multipliers[1] ** 2 / multipliers[0] ** 2 == pytest.approx(squares[0] / squares[1])
        assert multipliers[2] ** 2 / multipliers[1] ** 2 == pytest.approx(10)


@pytest.mark.slow
def test_two_fits_and_a_model_are_the_sum_of_their_squares(tmp_path):
    """A ledger that holds the columns, the columns again, and a model states what all releases together spend."""
    frame, words = table(2, 1, 1)
    y, given = np.arange(N) % 2, {"delta": 1e-7, "adjacency": "zero_out"}
    with PrivacyLedger(tmp_path / "a.sqlite", epsilon=20.0, delta=1e-5, adjacency="zero_out") as ledger:
        prepare = LearnedSchema(0.5, **given, schema=words)
        rows = prepare.fit_transform(frame)
        again = prepare.fit(frame).privacy_report_
        model = DPLogisticRegression(1.0, **given, data_norm=1.0, classes=[0, 1], solver="newton").fit(rows, y)
        names = [entry.spending.estimator for entry in ledger.entries]
        spent = ledger.spent_after_each[-1]
    assert names == ["LearnedSchema", "LearnedSchema", "DPLogisticRegression"]
    lines = [*again.releases, *again.releases, *model.privacy_report_.releases]
    multipliers = [line.noise_multiplier for line in lines for _ in range(line.count)]
    assert spent == pytest.approx(epsilon_of(multipliers, 1e-5), rel=5e-3)


def test_the_answers_have_the_noise_of_the_report(monkeypatch):
    """15 616 empty bins of 64 columns: the standard deviation is within 4 %, with a false-alarm rate below 1e-10."""
    answers = []
    monkeypatch.setattr(
        Oracle, "ask", lambda self, query, ask=Oracle.ask: answers.append((query, ask(self, query))) or answers[-1][1]
    )
    model = LearnedSchema(1.0, delta=1e-7).fit(pd.DataFrame({f"x{i}": np.ones(N) for i in range(64)}))
    query, answer = answers[0]
    assert isinstance(query, ColumnHistograms)
    line = model.privacy_report_.releases[0]
    empty = np.delete(answer.reshape(64, -1), octave_bins(np.ones(1)), axis=1)
    assert np.std(empty) == pytest.approx(line.noise_multiplier * line.clip_norm, rel=0.04)
