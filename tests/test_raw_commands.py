"""The command line on tables of which nothing is known: columns are learnt inside one budget, or into a schema."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdp import load_model
from skdp.__main__ import main
from skdp.preprocessing import Schema, SchemaColumns
from skdp.testing import reproducible_noise

N = 6000


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A directory with a raw table: units, gaps and odd cells among numbers, text, and a star in a name."""
    monkeypatch.chdir(tmp_path)
    age = rng.integers(18, 95, N)
    work = rng.choice(["nurse", "clerk", "sailor"], N, p=[0.5, 0.3, 0.2])
    rich = np.where(age / 40 + (work == "clerk") + 0.5 * rng.normal(size=N) > 2, "yes", "no")
    table = pd.DataFrame({"age": age.astype(str), "work*": work, "length": 1e5 * age + 3e4 * rng.normal(size=N), "rich": rich})
    table.loc[rng.random(N) < 0.05, "age"] = ""
    table.loc[:3, "age"] = [" ?", "NA", "none of your business", "1e400"]
    table.to_csv("raw.csv", index=False)
    table.assign(age=pd.to_numeric(table["age"], errors="coerce").clip(0, 200)).to_parquet("raw.parquet")
    return tmp_path


def run(*words, code=0):
    with reproducible_noise(0):
        assert main([str(word) for word in words]) == code


def test_a_raw_csv_is_fitted_under_one_budget_and_the_model_predicts(folder, capsys):
    """Without privacy, accuracy is 0.86; the larger class alone has 0.6."""
    run("fit", "raw.csv", "--target", "rich", "--epsilon", 3, "--test", 0.2, "--model", "m.skops", "--quiet")
    told = capsys.readouterr()
    assert float(re.search(r"accuracy ([\d.]+)", told.out)[1]) > 0.78
    assert "(3, " in told.out and "labels are read from the table and are public" in told.err
    model = load_model("m.skops")
    assert model[-1].privacy_spent_.epsilon == pytest.approx(3, rel=1e-6)
    assert set(model[-1].learnt_) == {"age", "work*", "length"}  # neither the target nor anything else
    run("predict", "m.skops", "raw.csv", "--out", "p.csv")
    assert len(pd.read_csv("p.csv")) == N
    told = capsys.readouterr()
    Path("raw.csv").write_text("age,work*,length\nnever heard of,,\n40,clerk,-inf\n")
    run("predict", "m.skops", "raw.csv")
    assert capsys.readouterr().out.count("\n") == 3


def test_a_number_is_predicted_if_the_user_says_so(folder, capsys):
    for words in (["--task", "regression"], ["--estimator", "linear"]):
        Path("m.skops").unlink(missing_ok=True)
        run("fit", "raw.csv", "--target", "length", *words, "--epsilon", 3, "--test", 0.2, "--model", "m.skops", "--quiet")
        told = capsys.readouterr()
        assert float(re.search(r"R2 ([\d.]+)", told.out)[1]) > 0.8
        assert "a number, whose range is learnt" in told.err
    run("fit", "raw.csv", "--target", "length", "--epsilon", 3, "--model", "n.skops", "--quiet", code=2)
    assert "more than 50 different labels" in capsys.readouterr().err  # not in silence


def test_a_learnt_schema_costs_its_budget_once_and_is_read_again(folder, capsys):
    run("ledger", "l.sqlite", "--epsilon", 3, "--delta", 1e-6)
    run("schema", "raw.csv", "--learn", "--epsilon", 1, "--target", "rich", "--ledger", "l.sqlite", "--out", "s.json")
    told = capsys.readouterr().out
    assert re.search(r"^age +(linear|integers)", told, re.MULTILINE) and re.search(r"^work\* +category", told, re.MULTILINE)
    assert "Privacy report: LearnedSchema" in told and "number of charges 1" in told
    content = json.loads(Path("s.json").read_text())
    assert content["target"] == "rich" and content["classes"] == ["no", "yes"]
    assert 0 <= content["columns"]["age"]["bounds"][0] < content["columns"]["age"]["bounds"][1] < 200
    run("fit", "raw.csv", "--schema", "s.json", "--epsilon", 3, "--test", 0.2, "--model", "m.skops", "--quiet")
    assert float(re.search(r"accuracy ([\d.]+)", capsys.readouterr().out)[1]) > 0.78
    run("schema", "raw.parquet", "--learn", "--epsilon", 1, "--target", "length", "--task", "regression", "--out", "t.json")
    low, high = json.loads(Path("t.json").read_text())["target_bounds"]
    assert low < 2.5e6 and 8.5e6 < high < 1e8


def test_what_is_known_is_not_learnt(folder, capsys):
    Path("part.json").write_text(
        json.dumps({"columns": {"age": {"kind": "number", "bounds": [0, 120], "fill": 50}, "work*": "category"}})
    )
    table = pd.read_csv("raw.csv", dtype=str)[10:].assign(age="41")
    table.to_csv("clean.csv", index=False)
    run("fit", "clean.csv", "--schema", "part.json", "--target", "rich", "--epsilon", 3, "--model", "m.skops", "--quiet")
    model = load_model("m.skops")[-1]
    assert set(model.learnt_) == {"work*", "length"} and model.schema_.columns["age"].bounds == (0, 120)


def test_the_plan_reads_names_only(folder, capsys):
    Path("raw.csv").write_text(Path("raw.csv").read_text().split("\n")[0] + "\n")  # no record
    run("plan", "--names", "raw.csv", "--target", "rich", "--n-samples", 6000, "--epsilon", 1)
    told = capsys.readouterr().out
    assert "ColumnHistograms" in told and "FineHistograms" in told and "signal s" in told
    run("plan", "--n-samples", 6000, "--epsilon", 1, code=2)
    assert "--names TABLE" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["fit", "raw.csv", "--epsilon", 1, "--model", "m.skops"], "--target NAME"),
        (["fit", "raw.csv", "--target", "poor", "--epsilon", 1, "--model", "m.skops"], "no column 'poor'"),
        (["fit", "raw.csv", "--target", "work*", "--task", "regression", "--epsilon", 1, "--model", "m.skops"], "not finite"),
        (["fit", "raw.csv", "--target", "rich", "--classes", "yes", "--epsilon", 1, "--model", "m.skops"], "at least two"),
        (["schema", "raw.csv", "--learn"], "--epsilon"),
        (["schema", "raw.csv", "--epsilon", 1], "without --learn"),
    ],
)
def test_what_makes_no_sense_is_refused(words, told, folder, capsys):
    run(*words, code=2)
    message = capsys.readouterr().err
    assert told in message
    assert not any(cell in message for cell in ("nurse", "business", "1e400"))
    assert not Path("m.skops").exists()


def test_cells_are_read_by_themselves(folder):
    """One odd cell changes no other cell of a CSV."""
    reader = SchemaColumns([], [], [], ["age"])
    before = reader.read(Path("raw.csv"))["age"].tolist()
    text = Path("raw.csv").read_text().replace("none of your business", "7")
    Path("raw.csv").write_text(text)
    after = reader.read(Path("raw.csv"))["age"].tolist()
    assert [place for place, pair in enumerate(zip(before, after, strict=True)) if pair[0] != pair[1]] == [2]
    assert before[:2] == [None, None]


def test_a_star_in_a_name_is_read_again():
    schema = Schema.read({"columns": {"a*b": {"kind": "number", "bounds": [0, 1], "exact": True}, "axb": {"kind": "ignore"}}})
    assert set(schema.columns) == {"a*b"}
    assert Schema.read(json.loads(json.dumps(schema.to_dict()))) == schema
    with pytest.raises(ValueError, match="patterns"):
        Schema.read({"columns": {"a*b": {"kind": "number", "bounds": [0, 1]}}})
    with pytest.raises(ValueError, match="exact=1"):
        Schema.read({"columns": {"a*b": {"kind": "number", "bounds": [0, 1], "exact": 1}}})
