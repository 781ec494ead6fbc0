"""The command line on tables of which nothing is known: columns are learned inside one budget, or into a schema."""

import gzip
import json
import re
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from marks import slow

from skdp import DPLogisticRegression, DPTabularClassifier, PrivacyLedger, load_model, save_model
from skdp.__main__ import main
from skdp._files._tables import to_moments, to_numbers
from skdp.estimators.boosting import _rule
from skdp.preprocessing import Schema, SchemaColumns
from skdp.privacy.data import summation
from skdp.testing import reproducible_noise

N = 6000


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """A hundred trees show the commands what a thousand do."""
    monkeypatch.setattr(_rule, "N_TREES", 100)


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


@pytest.fixture
def parts(folder):
    """The same table as three files; the first has gaps alone where the others have truths, and no age that is whole."""
    table = pd.read_parquet("raw.parquet").assign(member=pd.array(np.arange(N) % 3 == 0, dtype="boolean"))
    table.loc[:499, "member"] = pd.NA
    table.to_parquet("raw.parquet")
    Path("parts").mkdir()
    for number, (start, stop) in enumerate(((0, 500), (500, 3000), (3000, N))):
        table[start:stop].to_parquet(f"parts/{number}.parquet")
    return folder


def run(*words, code=0):
    with reproducible_noise(0):
        assert main([str(word) for word in words]) == code


@pytest.mark.slow
def test_a_raw_csv_is_fitted_under_one_budget_and_the_model_predicts(folder, capsys):
    """Without privacy, accuracy is 0.86; the larger class alone has 0.6."""
    run("fit", "raw.csv", "--target", "rich", "--epsilon", 3, "--test", 0.2, "--model", "m.skops", "--quiet")
    told = capsys.readouterr()
    assert float(re.search(r"accuracy ([\d.]+)", told.out)[1]) > 0.78
    assert "(3, " in told.out and "labels no, yes; they are read from the table and are public" in told.err
    model = load_model("m.skops")
    assert model[-1].privacy_spent_.epsilon == pytest.approx(3, rel=1e-6)
    assert set(model[-1].learnt_) == {"age", "work*", "length"}  # neither the target nor anything else
    assert "types" not in " ".join(model[-1].privacy_report_.assumptions)  # a CSV has none
    run("predict", "m.skops", "raw.csv", "--out", "p.csv")
    assert len(pd.read_csv("p.csv")) == N
    told = capsys.readouterr()
    Path("raw.csv").write_text("age,work*,length\nnever heard of,,\n40,clerk,-inf\n")
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # as outside of the tests
        run("predict", "m.skops", "raw.csv")
    told = capsys.readouterr()
    assert told.out.count("\n") == 3 and "are no numbers" not in told.err
    Path("raw.csv").write_text("age,work*,length\n" + 10 * "47 yrs,,1\n40 yrs,clerk,2\n")
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # as outside of the tests
        run("predict", "m.skops", "raw.csv")
    assert "20 of 20 cells of 'age' are no numbers and count as missing" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("kind", [DPTabularClassifier, *slow(DPLogisticRegression)])
def test_a_model_that_python_saved_predicts_for_files(kind, parts, capsys):
    """A CSV has no types: its columns become numbers where all cells are, and the model names the others."""
    table = pd.read_parquet("raw.parquet").drop(columns="member")
    model = kind(epsilon=9.0, schema={"work*": "ignore"} if kind is DPLogisticRegression else "learn")
    save_model(model.fit(table.drop(columns="rich"), table["rich"]), "m.skops")
    expected = model.predict(table.drop(columns="rich"))
    table.to_csv("t.csv", index=False)
    for path, out in (("t.csv", "p.csv"), ("raw.parquet", "p.csv"), ("parts", "p.parquet")):
        run("predict", "m.skops", path, "--out", out)
        assert (getattr(pd, f"read_{out[2:]}")(out)["prediction"] == expected).all()
    table["age"].astype(str).str.replace(".", ",").to_frame().join(table.drop(columns="age")).to_csv("comma.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # as outside of the tests
        run("predict", "m.skops", "comma.csv", "--out", "p.csv")
    assert capsys.readouterr().err.count("cells of 'age' are no numbers and count as missing.") == 1


@pytest.mark.slow
def test_dates_and_truths_of_a_csv_are_read_as_the_model_knows_them(folder, capsys):
    """As pandas writes both; columns of which nothing was learned held no numbers, so that nothing is missing."""
    rng = np.random.default_rng(0)
    days, member = rng.integers(0, 4000, N), rng.random(N) < 0.4
    X = pd.DataFrame({"day": pd.to_datetime("2015-01-01") + pd.to_timedelta(days, "D"), "member": member})
    X["late"] = X["day"].dt.tz_localize("Europe/Berlin")
    y = (days / 4000 + member + rng.normal(size=N) > 1).astype(int)
    model = DPLogisticRegression(epsilon=9.0, schema="learn").fit(X, y)
    save_model(model, "m.skops")
    X = X.astype({"member": "boolean"})
    X.iloc[0, :2] = [pd.NaT, pd.NA]
    X.to_csv("t.csv", index=False)
    run("predict", "m.skops", "t.csv", "--out", "p.csv")
    np.testing.assert_array_equal(pd.read_csv("p.csv")["prediction"], model.predict(X))
    assert "are no numbers" not in capsys.readouterr().err
    X["day"].dt.strftime("%d.%m.%Y").to_frame().join(X[["member", "late"]]).to_csv("t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run("predict", "m.skops", "t.csv", "--out", "p.csv")
    assert "5999 of 6000 cells of 'day' are no numbers" in capsys.readouterr().err
    X["note"] = [f"note {place}" for place in range(N)]
    X[["note", "late"]].assign(y=y).to_csv("t.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run("fit", "t.csv", "--target", "y", "--epsilon", 0.3, "--model", "n.skops", "--quiet")
        assert "Nothing was learned of ['note', 'late']" in capsys.readouterr().err
        run("predict", "n.skops", "t.csv", "--out", "p.csv")
    assert not capsys.readouterr().err


def test_a_model_without_names_of_columns_does_not_predict_for_files(folder, capsys):
    model = DPLogisticRegression(epsilon=9.0, data_norm=1.0)
    save_model(model.fit(np.eye(2)[np.arange(N) % 2], np.arange(N) % 2), "m.skops")
    run("predict", "m.skops", "raw.csv", code=2)
    assert "m.skops does not state the columns that it takes; expected a model that the command fit" in capsys.readouterr().err


@pytest.mark.slow
def test_a_number_is_predicted_if_the_user_says_so(folder, capsys):
    for words in (["--task", "regression"], ["--estimator", "linear"]):
        Path("m.skops").unlink(missing_ok=True)
        run("fit", "raw.csv", "--target", "length", *words, "--epsilon", 3, "--test", 0.2, "--model", "m.skops", "--quiet")
        told = capsys.readouterr()
        assert float(re.search(r"R2 ([\d.]+)", told.out)[1]) > 0.8
        assert "a number, whose range is learned" in told.err
    run("fit", "raw.csv", "--target", "length", "--epsilon", 3, "--model", "n.skops", "--quiet", code=2)
    assert "more than 20 different labels" in capsys.readouterr().err  # not in silence


@pytest.mark.slow
@pytest.mark.parametrize("words", (["--target", "rich"], ["--target", "length", "--task", "regression"]))
def test_the_estimators_to_start_with_take_a_raw_table(words, folder, capsys):
    """What they choose is in the plan and in the report, and the model predicts."""
    words = [*words, "--estimator", "tabular", "--epsilon", 3]
    run("plan", "raw.csv", "--n-samples", N * 8 // 10, *words)
    planned = re.search(r"DP\w+: the signal-to-noise ratio", capsys.readouterr().out)[0]
    run("fit", "raw.csv", *words, "--test", 0.2, "--model", "m.skops", "--quiet", "-v")
    told = capsys.readouterr().out
    assert planned in told and float(re.search(r"(?:accuracy|R2) ([\d.]+)", told)[1]) > 0.78
    run("predict", "m.skops", "raw.csv", "--out", "p.csv")
    assert len(pd.read_csv("p.csv")) == N
    assert set(load_model("m.skops")[-1].learnt_) - {"y"} == {"age", "work*", "length", "rich"} - {words[1]}


@pytest.mark.slow
def test_a_learned_schema_costs_its_budget_once_and_is_read_again(folder, capsys):
    run("ledger", "l.sqlite", "--epsilon", 3, "--delta", 1e-6)
    run("schema", "raw.csv", "--learn", "--epsilon", 1, "--target", "rich", "--ledger", "l.sqlite", "--out", "s.json")
    told = capsys.readouterr().out
    assert re.search(r"^age +(linear|integers)", told, re.MULTILINE) and re.search(r"^work\* +category", told, re.MULTILINE)
    assert "Privacy report: LearnedSchema" in told and "number of charges 1; left: a full-data fit" in told
    content = json.loads(Path("s.json").read_text())
    assert content["target"] == "rich" and content["classes"] == ["no", "yes"]
    assert 0 <= content["columns"]["age"]["bounds"][0] < content["columns"]["age"]["bounds"][1] < 200
    run("fit", "raw.csv", "--schema", "s.json", "--epsilon", 3, "--test", 0.2, "--model", "m.skops", "--quiet")
    assert float(re.search(r"accuracy ([\d.]+)", capsys.readouterr().out)[1]) > 0.78
    run("schema", "raw.parquet", "--learn", "--epsilon", 1, "--target", "length", "--task", "regression", "--out", "t.json")
    low, high = json.loads(Path("t.json").read_text())["target_bounds"]
    assert low < 2.5e6 and 8.5e6 < high < 1e8


@pytest.mark.slow
def test_what_is_known_is_not_learned(folder, capsys):
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
    run("plan", "raw.csv", "--target", "rich", "--n-samples", 6000, "--epsilon", 1)
    told = capsys.readouterr().out
    assert "ColumnHistograms" in told and "FineHistograms" in told and "signal s" in told
    run("plan", "--n-samples", 6000, "--epsilon", 1, code=2)
    assert "expected a TABLE" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("always::skdp.TableWarning")
@pytest.mark.parametrize("name", ("ids.csv", "ids.parquet", "ids"))
def test_a_plan_warns_of_ids_as_the_fit_does(name, folder, capsys):
    table = pd.read_parquet("raw.parquet").assign(patient_id=np.arange(N))
    Path("ids").mkdir()
    for path in ("ids.parquet", "ids/0.parquet"):
        table.to_parquet(path)
    table.to_csv("ids.csv", index=False)
    for schema, warned in (({}, True), ({"patient_id": "ignore"}, False)):
        Path("s.json").write_text(json.dumps(schema))
        run("plan", name, "--schema", "s.json", "--target", "rich", "--epsilon", 1)
        assert ("The columns ['patient_id'] have names of ids" in capsys.readouterr().err) == warned


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


@pytest.mark.slow
def test_a_raw_folder_is_fitted_in_partitions_with_the_model_of_a_file(parts, capsys):
    options = ["--target", "rich", "--estimator", "logistic", "--epsilon", 3, "--quiet", "--report"]
    run("fit", "parts", *options, "parts.json", "--model", "parts.skops")
    assert "labels are read from the table and are public" in capsys.readouterr().err
    report = json.loads(Path("parts.json").read_text())
    assert report["public"]["table"]["source"] == "Parquet, number of files 3" and report["spent"]["epsilon"] == pytest.approx(3)
    assert report["public"]["read_as"]["member"] == "true or false"  # by the type of the files, whatever the first batch holds
    run("fit", "raw.parquet", *options, "raw.json", "--model", "raw.skops")
    of_parts, of_file = load_model("parts.skops")[-1], load_model("raw.skops")[-1]
    assert of_parts.schema_ == of_file.schema_ and of_parts.classes_.tolist() == of_file.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(of_parts.coef_, of_file.coef_)
    run("predict", "parts.skops", "parts", "--out", "p.parquet")
    run("predict", "parts.skops", "raw.parquet", "--out", "p.csv")
    predicted = pd.read_parquet("p.parquet")
    pd.testing.assert_frame_equal(predicted, pd.read_csv("p.csv"), check_dtype=False)
    assert (predicted["prediction"] == pd.read_parquet("raw.parquet")["rich"]).mean() > 0.78
    capsys.readouterr()
    run("plan", "parts", *options[:-2], "--report", "plan.json")
    assert f"Read parts: number of records {N}." in capsys.readouterr().out
    assert json.loads(Path("plan.json").read_text())["releases"][:3] == report["releases"][:3]  # those of the columns


@pytest.mark.slow
@pytest.mark.parametrize("words", (["--target", "rich"], ["--target", "length", "--task", "regression"], []))
def test_a_folder_teaches_the_schema_of_a_file(words, parts, capsys):
    run("ledger", "l.sqlite", "--epsilon", 3, "--delta", 1e-6)
    for table in ("parts", "raw.parquet"):
        run("schema", table, "--learn", "--epsilon", 1, *words, "--ledger", "l.sqlite", "--out", f"{table}.json")
    assert "number of charges 2" in capsys.readouterr().out
    learned = json.loads(Path("parts.json").read_text())
    assert learned == json.loads(Path("raw.parquet.json").read_text())
    if not words:
        return
    assert learned["target"] == words[1] and ("classes" in learned) == (words[1] == "rich")
    run("fit", "parts", "--schema", "parts.json", "--epsilon", 3, "--model", "m.skops", "--quiet")


@pytest.mark.slow
def test_what_is_known_of_a_folder_is_not_learned(parts, capsys):
    """Ages are text in the files, and numbers by the schema, as they are in one file."""
    for path in Path("parts").iterdir():
        frame = pd.read_parquet(path)
        frame.assign(age=frame["age"].fillna(30).astype(str)).to_parquet(path)
    known = {"age": {"kind": "number", "bounds": [0, 120]}, "work*": "either", "member": "ignore", "rich": "ignore"}
    Path("part.json").write_text(json.dumps({"columns": known}))
    options = ["--schema", "part.json", "--target", "length", "--task", "regression", "--epsilon", 3, "--quiet"]
    run("fit", "parts", *options, "--model", "m.skops", "--estimator", "additive")
    model = load_model("m.skops")[-1]
    assert set(model.learnt_) == {"work*", "y"} and model.schema_.columns["age"].bounds == (0, 120)
    frame = pd.read_parquet("parts/2.parquet")
    frame.loc[N - 1, "age"] = "secret 31415"
    frame.to_parquet("parts/2.parquet")
    run("fit", "parts", *options, "--model", "n.skops", code=2)
    message = capsys.readouterr().err
    assert "columns ['age']" in message and "31415" not in message and "2.parquet" not in message


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--target", "rich", "--test", 0.2], "--test needs a table in memory"),
        (["--target", "length"], "more than 20 different labels"),
        (["--target", "work*", "--task", "regression"], "not finite"),
        (["--target", "gap"], "missing in some records"),
        (["--target", "rich", "--classes", "yes,maybe"], "classes"),
        (["--target", "rich", "--solver", "objective"], "solver"),
    ],
)
def test_a_raw_folder_is_refused_before_the_charge(words, told, parts, capsys):
    """The label that is missing is in the last file."""
    for path in Path("parts").iterdir():
        frame = pd.read_parquet(path)
        frame.assign(gap=frame["rich"].where(frame.index != N - 1)).to_parquet(path)
    run("ledger", "l.sqlite", "--epsilon", 3, "--delta", 1e-6)
    run("fit", "parts", *words, "--epsilon", 1, "--ledger", "l.sqlite", "--model", "m.skops", "--quiet", code=2)
    message = capsys.readouterr().err
    assert told in message and "nurse" not in message and not Path("m.skops").exists()
    assert not PrivacyLedger("l.sqlite").entries


@pytest.mark.slow
def test_labels_are_counted_over_all_batches(parts, monkeypatch, capsys):
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)
    for path in Path("parts").iterdir():
        frame = pd.read_parquet(path)
        frame.assign(code=frame.index // 270).to_parquet(path)  # 23 labels, at most 16 in a batch
    run("fit", "parts", "--target", "code", "--epsilon", 1, "--model", "m.skops", "--quiet", code=2)
    assert "more than 20 different labels" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::skdp.privacy.errors.OutsideGuaranteeWarning")
def test_values_of_folders_are_columns(parts):
    for path in list(Path("parts").iterdir()):
        place = Path("parts") / f"year=202{path.stem}"
        place.mkdir()
        path.rename(place / path.name)
    run("schema", "parts", "--learn", "--epsilon", 1, "--target", "rich", "--out", "s.json")
    assert "year" in json.loads(Path("s.json").read_text())["columns"]


@pytest.mark.slow
def test_options_may_repeat_a_complete_schema(folder, capsys):
    for words in (["--target", "rich", "--classes", "yes,no"], ["--target", "length", "--task", "regression"]):
        run("schema", "raw.csv", "--learn", *words, "--epsilon", 1, "--out", "s.json")
        for command in (["fit", "raw.csv", "--model", "m.skops", "--quiet"], ["plan", "--n-samples", N]):
            run(*command, "--schema", "s.json", *words, "--epsilon", 1)
        for other in (["--target", "age"], ["--task", {"rich": "regression", "length": "classification"}[words[1]]]):
            for command in (["fit", "raw.csv", "--model", "n.skops"], ["plan", "--n-samples", N]):
                capsys.readouterr()
                run(*command, "--schema", "s.json", *other, "--epsilon", 1, code=2)
                assert f"{other[0]} beside a complete schema that states target = '{words[1]}'" in capsys.readouterr().err
        for name in ("s.json", "m.skops"):
            Path(name).unlink()


@pytest.mark.parametrize("words, said", [([], "its labels are read"), (["--task", "regression"], "a number, whose range")])
def test_a_plan_says_which_task_it_takes(folder, capsys, words, said):
    run("plan", "raw.csv", "--target", "length", *words, "--n-samples", N, "--epsilon", 1)
    assert said in capsys.readouterr().err


PLAIN = "age,income,city,ill\n" + "41,1234.5,Köln,yes\n,987,Bonn,no\n" * 20


def in_german(text):
    return text.replace(",", ";").replace("1234.5", "1.234,5")


PUBLISHED = {  # name of the file: content, options, names of the columns that predict
    "plain.csv": (PLAIN, [], None),
    "padded.csv": (PLAIN.replace("age,income,city,ill", " age , income,city , ill "), [], None),
    "spaces.csv": (PLAIN.replace(",", ", "), [], None),
    "index.csv": ("".join(f"{n or ''},{line}\n" for n, line in enumerate(PLAIN.splitlines())), [], None),
    "trailing.csv": (PLAIN.replace("\n", ",\n"), [], None),
    "years.csv": (PLAIN.replace("age,income", "2019,2020"), [], ["2019", "2020", "city"]),
    "preamble.csv": ("# export, of\n# 2024-05-01\n" + PLAIN, ["--skip", "2"], None),
    "bare.data": (PLAIN.partition("\n")[2], ["--header", "age,income,city,ill"], None),
    "UPPER.CSV": (PLAIN, [], None),
    "tabs.tsv": (PLAIN.replace(",", "\t"), [], None),
    "columns.txt": (PLAIN.replace("\n,", "\nNA,").replace(",", "   "), ["--sep", "space"], None),
    "latin.csv": (PLAIN.encode("latin-1"), ["--encoding", "latin-1"], None),
    "utf16.csv": (PLAIN.encode("utf-16"), ["--encoding", "utf-16"], None),
    "packed.csv.gz": (gzip.compress(PLAIN.encode()), [], None),
    "german.csv": (in_german(PLAIN), ["--sep", ";", "--decimal", ",", "--thousands", "."], None),
    "thousands.csv": (PLAIN.replace("1234.5", '"1,234.5"'), ["--thousands", ","], None),
    "inches.csv": (PLAIN.replace("41", '"41').replace("Köln", 'Kö"ln'), ["--no-quotes"], None),
    "gaps.csv": (PLAIN + "50,1,Bonn,\n51,1,Bonn,NA\n", ["--drop-missing-target"], None),
}


@pytest.fixture
def records(monkeypatch):
    """What the fit of a command gets; nothing is fitted."""
    found = []

    def stop(pipeline, X, y):
        found.append((pipeline[0].transform(X), y))
        raise KeyboardInterrupt

    monkeypatch.setattr("sklearn.pipeline.Pipeline.fit", stop)
    return found


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.filterwarnings("ignore:.*have no name:UserWarning")
def test_files_are_read_as_people_publish_them(name, tmp_path, monkeypatch, records, capsys):
    monkeypatch.chdir(tmp_path)
    content, options, names = PUBLISHED[name]
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    run("fit", name, "--target", "ill", "--epsilon", 1, "--model", "m.skops", *options, code=130)
    told = capsys.readouterr()
    assert f"Read {name}: number of records {42 if name == 'gaps.csv' else 40}" in told.out and "labels no, yes;" in told.err
    ((X, y),) = records
    assert list(X) == (names or ["age", "income", "city"]) and y.tolist() == ["yes", "no"] * 20
    first, second = X.iloc[0].tolist(), X.iloc[1].tolist()
    if name == "inches.csv":
        assert first == ['"41', "1234.5", 'Kö"ln']
    else:
        assert first == ["41", "1234.5", "Köln"] and second == [None, "987", "Bonn"]


@pytest.mark.slow
@pytest.mark.filterwarnings("always")
@pytest.mark.parametrize("form", ([], ["--decimal", ","]))
def test_numbers_with_a_decimal_comma_are_named_after_the_fit(form, tmp_path, monkeypatch, capsys, rng):
    """Whatever noise makes of the text; with the option the column is learned as numbers without a word."""
    monkeypatch.chdir(tmp_path)
    size = rng.normal(80, 20, N)
    table = pd.DataFrame({"size": size, "rooms": (size / 25).round(), "dear": np.where(size > 80, "yes", "no")})
    table.to_csv("t.csv", index=False, sep=";", decimal=",", float_format="%.1f")
    run("fit", "t.csv", "--target", "dear", "--epsilon", 1, "--model", "m.skops", "--sep", ";", "--quiet", *form)
    told = capsys.readouterr().err
    assert ("'size'" in told and "--decimal ," in told) == (not form)


def test_a_zip_file_is_read(tmp_path, monkeypatch, records, capsys):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("packed.zip", "w") as packed:
        packed.writestr("any.csv", PLAIN)
    run("fit", "packed.zip", "--target", "ill", "--epsilon", 1, "--model", "m.skops", code=130)
    assert len(records[0][1]) == 40
    with zipfile.ZipFile("packed.zip", "a") as packed:
        packed.writestr("more.csv", PLAIN)
    run("fit", "packed.zip", "--target", "ill", "--epsilon", 1, "--model", "m.skops", code=2)
    assert "a zip file that holds one table" in capsys.readouterr().err


STRAY = PLAIN.replace("41", '"41', 1)
REFUSED = {  # name of the file: content, options, message
    "quotes.csv": (STRAY[:-40] + STRAY[-40:].replace("41", '"41', 1), [], "a cell spans lines and holds separators"),
    "ends.csv": (STRAY[:-40] + STRAY[-40:].replace("41", '41"', 1), [], "a cell spans lines and holds separators"),
    "one.csv": (STRAY, [], "a quotation mark begins a cell that never ends"),
    "long.csv": (PLAIN.replace("Bonn", "Bonn,x", 1), [], "a row has more fields than the first line"),
    "first.csv": (PLAIN.replace("Köln", "Köln,x", 1), [], "a row has more fields than the first line"),
    "latin.csv": (PLAIN.encode("latin-1"), [], "it is no text in utf-8; expected encoding='latin-1'"),
    "utf16.csv": (PLAIN.encode("utf-16"), [], "--encoding"),
    "marks.csv": (PLAIN, ["--decimal", ",", "--thousands", ","], "decimal and thousands are both ','"),
    "coded.csv": (PLAIN, ["--encoding", "klingon"], "encoding='klingon'; expected one of Python's"),
    "bare.csv": (PLAIN.partition("\n")[2], [], "has no header"),
    "names.csv": (PLAIN, ["--header", "a,b"], "first line has 4 fields, and 2 names are stated"),
    "preamble.csv": ("# 2024-05-01\n" + PLAIN, [], "--skip N leaves N lines"),
    "dated.tsv": ("# 5, 2024-05-01\n" + PLAIN.replace(",", "\t"), [], "the first line is a comment; expected the names"),
    "comma.csv": (PLAIN.replace(",", ";").replace("yes", "1,5"), ["--sep", ";", "--task", "regression"], "--decimal"),
    "gaps.csv": (PLAIN + "50,1,Bonn,?\n", [], "--drop-missing-target"),
    "spelt.csv": (
        PLAIN,
        ["--target", "Il"],
        "no column 'Il'; expected one of its columns. The table has, nearest name first: ill, ",
    ),
    "apart.csv": (PLAIN, ["--schema", "s.json"], "The schema: apart.csv has no column 'City'; expected one of its"),
    "test.csv": (
        PLAIN,
        ["--test", "City=Bonn"],
        "no column 'City'; expected one of its columns. The table has, nearest name first: city",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_each_cause_has_its_message(name, tmp_path, monkeypatch, records, capsys):
    monkeypatch.chdir(tmp_path)
    content, options, message = REFUSED[name]
    Path("s.json").write_text('{"City": "ignore"}')
    Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
    run("fit", name, "--target", "ill", "--epsilon", 1, "--model", "m.skops", *options, code=2)
    error = capsys.readouterr().err
    assert message in error and not records
    assert not any(cell in error for cell in ("1234", "987", "Köln", "Bonn,", "41"))


def test_texts_of_several_lines_are_read(tmp_path, monkeypatch, records):
    """Between quotation marks that belong together; only with separators they are taken for records."""
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(PLAIN.replace("Köln", '"Köln\nam ""Rhein"""', 1))
    run("fit", "t.csv", "--target", "ill", "--epsilon", 1, "--model", "m.skops", code=130)
    assert records[0][0]["city"][0] == 'Köln\nam "Rhein"' and len(records[0][1]) == 40


def test_columns_without_a_name_are_left_out_and_said(tmp_path, monkeypatch, records, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(PUBLISHED["index.csv"][0])
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run("fit", "t.csv", "--target", "ill", "--epsilon", 1, "--model", "m.skops", code=130)
    assert capsys.readouterr().err.count("the columns in the places [1] have no name") == 1


def test_labels_that_are_spelt_apart_are_named(tmp_path, monkeypatch, records, capsys):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(PLAIN.replace(",yes", ",Yes", 3).replace(",no", ",no.", 4))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        run("fit", "t.csv", "--target", "ill", "--epsilon", 1, "--model", "m.skops", code=130)
    told = capsys.readouterr().err
    assert "Target ill: labels Yes, no, no., yes;" in told and "are probably the same, spelt apart: Yes, no, no., yes" in told


@pytest.mark.slow
def test_a_missing_target_is_left_out_if_the_user_says_so(folder, capsys):
    """Also with a schema, where a stated class such as NA is none; the report says that the number that remains is public."""
    table = pd.read_csv("raw.csv", dtype=str, keep_default_na=False)
    table.loc[:9, "rich"] = [""] * 5 + ["NA"] * 5
    table.to_csv("gaps.csv", index=False)
    columns = {"length": {"kind": "number", "bounds": [1e6, 1e7]}}
    for classes, kept in ((["no", "yes"], N - 10), (["no", "yes", "NA"], N - 5)):
        Path("s.json").write_text(json.dumps({"columns": columns, "target": "rich", "classes": classes}))
        words = ["fit", "gaps.csv", "--schema", "s.json", "--epsilon", 1, "--model", f"m{kept}.skops", "--quiet"]
        run(*words, "--report", "r.json", "--drop-missing-target")
        assert f"number of records {N}; {kept} of them have a target; {kept} for the fit" in capsys.readouterr().out
        public = json.loads(Path("r.json").read_text())["public"]
        assert public["n_samples"] == kept and "the number that remains is taken to be public" in public["missing targets"]


def test_the_template_is_for_the_owner_of_the_records(folder, capsys):
    run("schema", "raw.csv", "--out", "s.json")
    assert "This template is for the owner of the records" in capsys.readouterr().out
    assert "for the owner of the records" in json.loads(Path("s.json").read_text())["description"]


HOSTILE = ["9999-12-31", "0001-01-01", "2020-01-01T00:00:00.123456789", "2020-01-01T10:00+02:00", "1.1.2020", "", "2262-04-12"]
HOSTILE += [
    "0.1",
    "-1",
    "18446744073709551615",
    "9007199254740993",
    "123456789012345678901",
    "1e-320",
    "True",
    "x",
    "inf",
    " 7.5 ",
]


@pytest.mark.slow
@pytest.mark.parametrize("read", (to_numbers, to_moments))
def test_one_cell_changes_no_bit_of_another(read):
    """Numbers and dates of a file, in each pair of odd cells as alone."""

    def found(cells):
        frame = pd.DataFrame({"a": np.array(cells, dtype=object)})
        read(frame, "a")
        return [
            (type(cell) is str, str(cell) if isinstance(cell, str) else pd.Series([cell]).to_numpy().tobytes())
            for cell in frame["a"].tolist()
        ]

    for cell in HOSTILE:
        alone = found([cell])
        assert all(found([cell, other])[:1] == alone for other in HOSTILE if other != cell), cell


@pytest.mark.slow
@pytest.mark.parametrize("words", (["rich"], ["length", "--task", "regression"]))
def test_a_model_gets_scores_that_may_be_published(words, folder, capsys):
    """Of the records that the fit kept out; the exact score is in the interval: seeds for which it is not are 1 in 20."""
    run("ledger", "l.sqlite", "--epsilon", 9, "--delta", 1e-6)
    fitted = ["fit", "raw.csv", "--target", *words, "--estimator", "logistic" if words == ["rich"] else "linear", "--quiet"]
    run(*fitted, "--epsilon", 3, "--test", 0.5, "--model", "m.skops")
    exact = float(re.search(r"(?:accuracy|R2) ([\d.]+)", capsys.readouterr().out)[1])
    scored = ["evaluate", "m.skops", "raw.csv", "--epsilon", 3, "--test", 0.5, "--disjoint", "--ledger", "l.sqlite"]
    run(*scored, "--out", "s.json", "--report", "r.json")
    told = capsys.readouterr().out
    assert f"number of records {N}; {N // 2} for the scores" in told and "number of charges 1; left: a full-data fit" in told
    found, name = json.loads(Path("s.json").read_text()), "accuracy" if words == ["rich"] else "r2"
    assert found["metrics"][name]["low"] <= exact <= found["metrics"][name]["high"] and found["level"] == 0.95
    report = json.loads(Path("r.json").read_text())
    assert report == found["privacy"] and report["spent"]["epsilon"] == pytest.approx(3, rel=1e-3)
    assert report["public"]["n_samples"] == N // 2
    assert "Scores are for records that the model was not fitted to" not in told
    run("evaluate", "m.skops", "raw.csv", "--epsilon", 3, "--test", 0.6, code=2)
    assert "--test 0.6 would select records of the fit: 0.5 of the records were kept" in capsys.readouterr().err
    run("evaluate", "m.skops", "raw.csv", "--target", words[0], "--epsilon", 3, "--metrics", name, "--out", "s.csv")
    assert "Scores are for records that the model was not fitted to" in capsys.readouterr().out
    (line,) = pd.read_csv("s.csv").to_dict("records")
    assert line["metric"] == name and line["low"] < line["value"] < line["high"]


@pytest.mark.slow
@pytest.mark.parametrize("words", (["--drop-missing-target"], ["--drop-missing-target", "--test", "work*=clerk"]))
def test_the_report_of_an_evaluation_says_which_choice_of_records_is_public(words, folder):
    """As that of a fit with these options."""
    table = pd.read_csv("raw.csv", dtype=str, keep_default_na=False)
    table.loc[:9, "rich"] = ""
    table.to_csv("gaps.csv", index=False)
    run("fit", "gaps.csv", "--target", "rich", "--epsilon", 3, "--model", "n.skops", "--report", "f.json", "--quiet", *words)
    run("evaluate", "n.skops", "gaps.csv", "--epsilon", 3, "--report", "r.json", "--out", "s.json", *words)
    public, of_fit = (json.loads(Path(name).read_text())["public"] for name in ("r.json", "f.json"))
    chosen = ["missing targets", "test"][: len(words)]
    assert {name: public[name] for name in chosen} == {name: of_fit[name] for name in chosen}
    assert "the number that remains is taken to be public" in public["missing targets"]
    assert json.loads(Path("s.json").read_text())["privacy"]["public"] == public


UNSCORED = (
    (["raw.csv", "--target", "poor"], "no column 'poor'"),
    (["raw.csv", "--target", "work*"], "outside classes=['no', 'yes']"),
    (["raw.csv"], "m.skops does not state the column that it predicts; expected --target NAME"),
    (["raw.csv", "--target", "rich", "--metrics", "beauty"], "metrics=['beauty']"),
    (["raw.csv", "--target", "rich", "--target-bounds", "0,1"], "--target-bounds is for numbers"),
    (["raw.csv", "--target", "rich", "--ledger", "no.sqlite"], "There is no ledger no.sqlite"),
    (["raw.csv", "--target", "rich", "--out", "raw.csv"], "raw.csv is also read"),
    (["gaps.csv", "--target", "rich"], "missing or outside classes"),
    ([".", "--target", "rich"], "is a folder"),
)


@pytest.mark.slow
def test_an_evaluation_that_makes_no_sense_is_refused(folder, capsys):
    table = pd.read_csv("raw.csv", dtype=str).drop(columns=["age", "length"])
    save_model(DPLogisticRegression(epsilon=9.0, schema="learn").fit(table[["work*"]], table["rich"]), "m.skops")
    Path("gaps.csv").write_text(Path("raw.csv").read_text() + "41,nurse,5,\n")
    for words, told in UNSCORED:
        run("evaluate", "m.skops", *words, "--epsilon", 1, code=2)
        message = capsys.readouterr().err
        assert told in message and "nurse" not in message
    run("evaluate", "m.skops", "gaps.csv", "--target", "rich", "--epsilon", 1, "--drop-missing-target")
    assert f"number of records {N + 1}; {N} of them have a target; {N} for the scores" in capsys.readouterr().out


def test_a_table_is_described_on_a_page(parts, capsys):
    """With the same bits from a file and from a folder; what is known of it is stated; persons are protected."""
    Path("known.json").write_text(json.dumps({"age": {"kind": "number", "bounds": [0, 120]}, "member": "ignore"}))
    run("ledger", "l.sqlite", "--epsilon", 9, "--delta", 1e-4)
    words = ("--epsilon", 2, "--schema", "known.json", "--ledger", "l.sqlite")
    run("describe", "raw.parquet", *words, "--out", "page.html", "--report", "r.json")
    told = capsys.readouterr().out
    run("describe", "parts", *words)
    same = capsys.readouterr().out
    assert told.partition("count")[2].partition("Written: page.html")[0] == same.partition("count")[2].partition("Charged")[0]
    assert "bucket" in told
    page = Path("page.html").read_text()
    assert page.count("<svg") >= 4 and "http" not in page.split("</style>")[-1] and json.loads(Path("r.json").read_text())
    assert len(PrivacyLedger("l.sqlite").entries) == 2
    run("describe", "raw.csv", "--epsilon", 2, "--persons", "length")
    assert "number of persons 6000" in capsys.readouterr().out
    run("describe", "raw.csv", "--epsilon", 2, "--schema", "none.json", code=2)
