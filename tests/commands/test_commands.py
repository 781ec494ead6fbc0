"""The command line, end to end: files in, files out, and no data value in a message or a template."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from seeded import fitted
from sklearn.metrics import roc_auc_score

from benchmarks.tables import data_directory, load
from skdp import DPLogisticRegression, _progress, load_model
from skdp.__main__ import main
from skdp._commands._records import held_out_records, numbered, read_labelled
from skdp.preprocessing import Schema, from_schema, read_table
from skdp.preprocessing._schema import ADVICE
from skdp.testing import reproducible_noise

SCHEMAS = Path(__file__).parents[2] / "examples" / "schemas"
FACTS = {
    "columns": {
        "age": {"kind": "number", "bounds": [0, 120]},
        "debt": {"kind": "number", "bounds": [0, 1e5], "scale": "log", "fill": 0},
        "city": {"kind": "category", "categories": ["Bern", "Basel"]},
    },
    "target": "paid",
    "classes": ["no", "yes"],
}


def people(n, rng):
    age = rng.integers(18, 90, n)
    return pd.DataFrame(
        {
            "age": age,
            "debt": np.where(rng.random(n) < 0.1, np.nan, 10 ** rng.uniform(0, 5, n)),
            "city": rng.choice(["Bern", "Basel", "Thun"], n),
            "paid": np.where(age + rng.normal(0, 10, n) > 50, "yes", "no"),
            "fold": rng.choice(["a", "b"], n),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch, rng):
    """A directory with a schema and a table in all formats."""
    monkeypatch.chdir(tmp_path)
    Path("facts.json").write_text(json.dumps(FACTS))
    table = people(2000, rng)
    table.to_csv("people.csv", index=False)
    table.to_csv("people.csv.gz", index=False)
    table.to_parquet("people.parquet")
    return tmp_path


def fit(table, *options, schema="facts.json", epsilon="5"):
    Path("any.joblib").unlink(missing_ok=True)
    model = () if "--model" in options else ("--model", "any.joblib")
    return main(["fit", str(table), "--schema", str(schema), "--epsilon", epsilon, "--quiet", *model, *options])


@pytest.fixture
def parts(folder):
    """The same table as two files in a folder."""
    table = pd.read_parquet("people.parquet")
    Path("parts").mkdir()
    table[:700].to_parquet("parts/0.parquet")
    table[700:].to_parquet("parts/1.parquet")


@pytest.mark.slow
def test_a_folder_is_fitted_and_predicted_in_partitions(parts, capsys):
    assert fit("parts", "--model", "model.skops", "--report", "report.txt") == 0
    assert "Parquet, number of files 2" in Path("report.txt").read_text()
    assert main(["predict", "model.skops", "parts", "--out", "out.parquet"]) == 0
    assert main(["predict", "model.skops", "people.parquet", "--out", "out.csv"]) == 0
    pd.testing.assert_frame_equal(pd.read_parquet("out.parquet"), pd.read_csv("out.csv"), check_dtype=False)
    capsys.readouterr()
    assert main(["schema", "parts", "--target", "paid"]) == 0
    template = capsys.readouterr().out
    assert main(["schema", "people.parquet", "--target", "paid"]) == 0
    assert capsys.readouterr().out == template


@pytest.mark.slow
def test_what_a_folder_does_not_support_is_refused(parts, capsys):
    for options, message in (((("--test", "0.2")), "--test needs a table in memory"), (("--groups", "fold"), "--groups needs")):
        assert fit("parts", *options) == 2
        assert message in capsys.readouterr().err
    assert fit("parts") == 0
    for out, message in (((), "expected --out FILE.parquet"), (("--out", "out.csv"), "ends in one of .parquet")):
        assert main(["predict", "any.joblib", "parts", "--trust", *out]) == 2
        assert message in capsys.readouterr().err
    Path("empty").mkdir()
    assert fit("empty") == 2
    assert "has no Parquet files" in capsys.readouterr().err
    pd.read_parquet("people.parquet").drop(columns="paid").to_parquet("empty/0.parquet")
    assert fit("empty") == 2
    assert "has no column 'paid'" in capsys.readouterr().err


@pytest.mark.parametrize("cell", ("record-a1", None))
def test_cells_of_a_folder_are_not_quoted(cell, parts, capsys):
    table = pd.read_parquet("parts/1.parquet").astype({"age": object})
    table.loc[900, "age"] = cell
    table["age"] = table["age"].map(lambda age: None if age is None else str(age))
    table.to_parquet("parts/1.parquet")
    first = pd.read_parquet("parts/0.parquet")
    first.assign(age=first["age"].astype(str)).to_parquet("parts/0.parquet")
    assert fit("parts") == 2
    error = capsys.readouterr().err
    assert "columns ['age']" in error and "record-a1" not in error and "1.parquet" not in error


@pytest.mark.slow
@pytest.mark.each_value
@pytest.mark.parametrize("table", ("people.csv", "people.csv.gz", "people.parquet"))
@pytest.mark.parametrize("model", ("model.skops", "model.joblib"))
def test_fit_and_predict(table, model, folder, capsys):
    assert fit(table, "--model", model, "--report", "report.html", "--test", "0.25") == 0
    shown = capsys.readouterr().out
    assert "(5, 4.44444e-07)-differential privacy" in shown and f"Written: {model}" in shown
    assert float(re.search(r"On 500 test records: accuracy (\S+), AUC", shown)[1]) > 0.75
    assert "differential privacy of the training records" in Path("report.html").read_text()
    assert main(["predict", model, table, "--out", "out.csv", "--trust"]) == 0
    predicted = pd.read_csv("out.csv")
    assert predicted.columns.tolist() == ["prediction", "probability of no", "probability of yes"]
    truth = pd.read_csv("people.csv")["paid"]
    assert (predicted["prediction"] == truth).mean() > 0.75
    np.testing.assert_array_equal(predicted["prediction"], np.where(predicted["probability of yes"] > 0.5, "yes", "no"))


@pytest.mark.slow
def test_the_report_is_saved_with_the_model(folder):
    assert fit("people.csv", "--model", "model.skops", "--report", "report.json") == 0
    report = load_model("model.skops")[-1].privacy_report_
    assert report.to_dict() == json.loads(Path("report.json").read_text())
    assert report.public["feature_names"] == ["age", "debt", "city_Bern", "city_Basel", "city_other"]
    assert report.public["n_samples"] == 2000
    assert report.public["schema"] == FACTS
    assert fit("people.csv", "--model", "model.joblib", "--report", "report.txt") == 0
    assert str(joblib.load("model.joblib")[-1].privacy_report_) == Path("report.txt").read_text().rstrip("\n")


def test_test_records_are_not_fitted(folder, capsys):
    """Records of one fold with a wrong label each: a model that had seen them would not score below one half on them."""
    table = pd.read_csv("people.csv")
    wrong = table["fold"] == "b"
    table.loc[wrong, "paid"] = table.loc[wrong, "paid"].map({"yes": "no", "no": "yes"})
    table.to_csv("people.csv", index=False)
    assert fit("people.csv", "--test", "fold=b", "--report", "report.json") == 0
    shown = capsys.readouterr().out
    assert float(re.search(rf"On {wrong.sum()} test records: accuracy (\S+), AUC", shown)[1]) < 0.35
    assert json.loads(Path("report.json").read_text())["public"]["n_samples"] == (~wrong).sum()


@pytest.mark.slow
def test_progress_is_shown_unless_quiet(folder, capsys, monkeypatch):
    monkeypatch.setattr(_progress, "on_terminal", lambda: True)
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    assert main(["fit", "people.csv", "--schema", "facts.json", "--epsilon", "1", "--model", "new.joblib"]) == 0
    assert re.search(r"\[DPTabularClassifier\] \[#*\.+\] \d+ of \d+ releases", capsys.readouterr().err)
    assert fit("people.csv") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_what_fit_prints_depends_on_public_facts_only(folder, capsys):
    """Two tables without a number in common, of the same shape and types, give the same text, letter by letter.

    The levels of a category are in common: the report names those that hardly any record has, by a release.
    """
    shown = []
    for name, table in (("people.csv", None), ("people.csv", people(2000, np.random.default_rng(9)).assign(debt=0.5, age=7))):
        if table is not None:
            table.to_csv(name, index=False)
        assert fit(name, "--report", "report.txt") == 0
        shown.append((capsys.readouterr(), Path("report.txt").read_text()))
    assert shown[0] == shown[1]


@pytest.mark.slow
def test_plan_touches_no_table_and_states_the_fit(folder, capsys):
    plan = ["plan", "--schema", "facts.json", "--epsilon", "5", "--n-samples", "2000", "--estimator", "logistic"]
    plan += ["--solver", "sgd", "--report", "plan.json"]
    assert main(plan) == 0
    told = capsys.readouterr().out
    assert "Privacy plan" in told and "Private: all that depends on the records has noise." in told and "LEARNS" not in told
    assert fit("people.csv", "--estimator", "logistic", "--solver", "sgd", "--report", "report.json") == 0
    planned, done = (json.loads(Path(name).read_text()) for name in ("plan.json", "report.json"))
    assert planned["planned"] and not done["planned"]
    assert planned["releases"] == done["releases"] and planned["spent"] == done["spent"]


@pytest.mark.parametrize("table", ("people.csv", "people.csv.gz", "people.parquet"))
def test_a_template_has_names_and_kinds_and_no_value(table, folder, capsys):
    """Every value of the table is searched for in what is written, and so is its row count."""
    assert main(["schema", table, "--out", "template.json"]) == 0
    text = Path("template.json").read_text()
    written = json.loads(text)
    assert "better described as a category" in written["description"] and written["description"] == ADVICE
    assert written == {
        "description": ADVICE,
        "columns": {
            "age": {"kind": "number", "bounds": []},
            "debt": {"kind": "number", "bounds": []},
            "city": {"kind": "category", "categories": []},
            "paid": {"kind": "category", "categories": []},
            "fold": {"kind": "category", "categories": []},
        },
        "target": "",
        "classes": [],
        "target_bounds": [],
    }
    rest = text.replace(json.dumps(ADVICE), "")
    words = set(re.findall(r"[\w.]+", rest)) - {*pd.read_csv("people.csv").columns}
    keys = {"description", "columns", "kind", "bounds", "categories", "target", "classes", "target_bounds"}
    assert words == keys | {"number", "category"}
    capsys.readouterr()
    assert main(["schema", table]) == 0
    assert capsys.readouterr().out == text
    other = people(30, np.random.default_rng(5)).assign(city="Chur", age=1, debt=3.5)
    other.to_parquet("other.parquet") if table.endswith("parquet") else other.to_csv("other.csv", index=False)
    assert main(["schema", "other.parquet" if table.endswith("parquet") else "other.csv"]) == 0
    assert capsys.readouterr().out == text


def test_a_template_ignores_dates(folder, capsys):
    days = pd.date_range("2020-01-01", periods=3)
    pd.DataFrame({"day": days, "span": days - days[0], "größe": [1.5, 2, 3], "ok": [True, False, True]}).to_parquet(
        "days.parquet"
    )
    assert main(["schema", "days.parquet"]) == 0
    text = capsys.readouterr().out
    kinds = {name: facts["kind"] for name, facts in json.loads(text)["columns"].items()}
    assert kinds == {"day": "ignore", "span": "ignore", "größe": "number", "ok": "category"} and "größe" in text


def test_a_template_that_was_not_filled_in_is_refused(folder, capsys):
    assert main(["schema", "people.csv", "--out", "template.json"]) == 0
    assert fit("people.csv", schema="template.json") == 2
    error = capsys.readouterr().err
    assert (
        "not filled in yet: bounds of 'age', bounds of 'debt', categories of 'city', " in error
        and "target, classes or target_bounds" in error
    )


def test_a_blank_line_is_a_record_where_there_is_one_column(folder):
    Path("one.csv").write_text("city\nBern\n\nThun\n")
    facts = {"columns": {"city": FACTS["columns"]["city"]}}
    assert from_schema(facts).fit_transform(read_table("one.csv", facts)).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]


def test_a_table_without_header_is_refused(folder, capsys):
    Path("bare.csv").write_text("41,Bern\n57,Basel\n")
    assert main(["schema", "bare.csv"]) == 2
    shown = capsys.readouterr()
    assert "no header" in shown.err and "41" not in shown.err + shown.out
    Path("bare.csv").write_text("Ann,Bern\nBea,Basel\n")  # these could be names, but are not those of the schema
    assert fit("bare.csv") == 2
    shown = capsys.readouterr()
    assert "is the header missing, or is ',' not its separator" in shown.err and "Ann" not in shown.err + shown.out


def test_a_filled_in_schema_is_not_overwritten(folder, capsys):
    assert main(["schema", "people.csv", "--out", "facts.json"]) == 2
    assert "exists already" in capsys.readouterr().err and json.loads(Path("facts.json").read_text()) == FACTS


@pytest.mark.parametrize("broken", ("truncated", "garbage", "latin"))
def test_files_that_are_damaged_are_refused(broken, folder, capsys):
    whole = Path("people.csv.gz").read_bytes()
    name = "people.csv" if broken == "latin" else "people.csv.gz"
    content = {"truncated": whole[: len(whole) // 2], "garbage": whole[:20] + bytes(200), "latin": b"age,\xe9\n1,x1\n"}[broken]
    Path(name).write_bytes(content)
    assert fit(name) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_a_closed_output_costs_no_model(folder):
    """Who reads only the first line of the output, or none, still gets what the budget was spent on."""
    command = [sys.executable, "-u", "-m", "skdp", "fit", "people.csv", "--schema", "facts.json", "--epsilon", "1"]
    read, write = os.pipe()
    os.close(read)
    assert subprocess.run([*command, "--model", "model.skops"], stdout=write, stderr=subprocess.DEVNULL).returncode == 0
    for name, error in (("both.skops", write), ("full.skops", None)):
        with open("/dev/full", "w") as full:  # both streams are gone when the progress comes
            subprocess.run([*command, "--model", name], stdout=write, stderr=error or full)
    os.close(write)
    for name in ("model.skops", "both.skops", "full.skops"):
        assert load_model(name).classes_.tolist() == ["no", "yes"]


@pytest.mark.slow
def test_one_value_changes_no_other_row(folder, capsys):
    """Types of a file are public, but a missing value changes the types that pandas gives: a row must not notice."""
    facts = {
        "columns": {
            "flag": {"kind": "category", "categories": [True, False]},
            "rooms": {"kind": "category", "categories": [1, 2]},
            "code": {"kind": "category", "categories": ["01", "02"]},
            "age": {"kind": "number", "bounds": [0, 100], "fill": 50},
        },
        "target": "ill",
        "classes": [False, True],
    }
    n = 40
    odd, even = np.arange(n) % 2 == 1, np.arange(n) % 3 == 0
    columns = {"flag": odd, "rooms": 1 + even, "code": np.where(even, "01", "02"), "age": np.arange(n), "ill": odd}
    table = pa.table(columns | {"fold": pa.array(1 + odd)})
    prepared = {}
    for changed in (None, *columns, "fold"):
        values = {name: table[name].to_pylist() for name in table.column_names}
        if changed is not None and changed != "ill":
            values[changed][0] = None
        pq.write_table(pa.table(values, schema=table.schema), "records.parquet")
        frame = read_table("records.parquet", facts)
        prepared[changed] = from_schema(facts).fit_transform(frame)[1:]
        held_out = read_labelled(Path("records.parquet"), Schema.read(facts), "fold=1").X_test
        assert len(held_out) == n - odd.sum() - (changed == "fold")  # its first record
    for changed in columns:
        np.testing.assert_array_equal(prepared[changed], prepared[None])
    table.to_pandas().drop(columns="ill").to_csv("records.csv", index=False)
    lines = Path("records.csv").read_text().splitlines()
    for first in (lines[1], "x,y,z,,", "x,1.5,7,,q", "9" * 400 + ",True,é,,"):
        Path("records.csv").write_text("\n".join([lines[0], first, *lines[2:]]))
        np.testing.assert_array_equal(from_schema(facts).fit_transform(read_table("records.csv", facts))[1:], prepared[None])


@pytest.mark.parametrize(
    "content",
    (
        "age,debt,city,paid\nx1,2,Bern,yes\n",
        "age,debt,city,paid\n1,2,Bern,yes\n1,2,Basel,yes,x1\n",
        "age,debt,city,paid\n1,2,Bern,yes,x1\n1,2,Basel,yes,x1\n",
        "age,debt,city,paid\nx1,1,2,Bern,yes\nx1,1,2,Basel,no\n",
        'age,debt,city,paid\n1,2,"x1,yes\n1,2,Bern,yes\n',
        "",
    ),
)
def test_messages_quote_no_data(content, folder, capsys):
    Path("people.csv").write_text(content)
    assert fit("people.csv") == 2
    error = capsys.readouterr().err
    assert re.search("cannot be read|not finite numbers", error) and "x1" not in error and not re.search(r"(line|row) \d", error)


@pytest.mark.parametrize(
    "change, message",
    (
        (lambda t: t.assign(paid="maybe"), "outside classes=['no', 'yes']"),
        (lambda t: t.assign(age=np.nan), "numbers are missing in the columns ['age']"),
        (lambda t: t.assign(age="maybe"), "the columns ['age'] have cells that are not finite numbers"),
        (lambda t: t.assign(age=np.inf), "the columns ['age'] have cells that are not finite numbers"),
        (lambda t: t.drop(columns="city"), "has no columns ['city']"),
        (
            lambda t: t.drop(columns="paid"),
            "The target of the schema: people.csv has no column 'paid'; expected one of its columns",
        ),
        (lambda t: t.rename(columns={"age": "debt"}), "with the same name"),
        (lambda t: t.rename(columns=dict(zip(t, "vwxyz", strict=True))), "is the header missing, or is ',' not its separator"),
        (lambda t: t.iloc[:1], "a minimum of 2 is required"),
    ),
)
def test_tables_that_do_not_fit_are_refused_before_the_fit(change, message, folder, capsys, monkeypatch):
    monkeypatch.setattr(DPLogisticRegression._task_class, "run", lambda *given: pytest.fail("the fit began"))
    change(pd.read_csv("people.csv")).to_csv("people.csv", index=False)
    assert fit("people.csv") == 2
    error = capsys.readouterr().err
    assert message in error and "maybe" not in error


@pytest.mark.parametrize(
    "options, message",
    (
        (["--model", "model.pkl"], "expected a name that ends in one of .skops, .joblib"),
        (["--model", "nowhere/model.skops"], "cannot be written"),
        (["--report", "report.pdf"], "expected a name that ends in one of .html, .json, .txt"),
        (["--report", ".html"], "after a stem, such as name.html"),
        (["--test", "2"], "test='2'; expected a share"),
        (["--test", "half"], "test='half'; expected a share"),
        (["--test", "colour=red"], "has no column 'colour'"),
        (["--test", "city=Chur"], "test='city=Chur' selects 0 of 2000 records"),
        (["--test", "0.0001"], "test='0.0001' selects 0 of 2000 records"),
        (["--model", "people.joblib"], "people.joblib exists already"),
        (["--report", "facts.json"], "facts.json is also read"),
        (["--estimator", "logistic", "--solver", "adam"], "solver='adam'"),
        (["--delta", "2"], "delta=2.0"),
        (["--adjacency", "none"], "adjacency='none'"),
    ),
)
def test_options_that_make_no_sense_are_refused_before_the_fit(options, message, folder, capsys, monkeypatch):
    Path("people.joblib").touch()
    monkeypatch.setattr(DPLogisticRegression._task_class, "run", lambda *given: pytest.fail("the fit began"))
    assert fit("people.csv", *options) == 2
    assert message in capsys.readouterr().err


def test_files_that_are_not_there_are_named(folder, capsys):
    for words, message in (
        (["fit", "no.csv", "--schema", "facts.json", "--epsilon", "1", "--model", "m.skops"], "There is no table no.csv"),
        (["fit", "people.csv", "--schema", "no.json", "--epsilon", "1", "--model", "m.skops"], "There is no schema no.json"),
        (["predict", "no.skops", "people.csv"], "There is no model no.skops"),
        (["predict", "people.csv", "people.csv"], "expected a name that ends in one of .skops, .joblib"),
        (["schema", "people.xlsx"], "expected a name that ends in one of .csv"),
    ):
        assert main(words) == 2
        assert message in capsys.readouterr().err


def test_a_model_with_foreign_types_is_not_loaded(folder, capsys):
    import skops.io

    skops.io.dump(np.random.default_rng(0), "model.skops")
    skops.io.dump(Path("x"), "path.skops")
    assert main(["predict", "path.skops", "people.csv"]) == 2
    assert "holds the types" in capsys.readouterr().err


def test_an_interrupt_leaves_no_model(folder, capsys, monkeypatch):
    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(DPLogisticRegression._task_class, "run", interrupted)
    assert fit("people.csv", "--model", "model.skops") == 130
    assert "a fit that had begun has spent" in capsys.readouterr().err and not Path("model.skops").exists()


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", (pytest.param("adult", marks=pytest.mark.slow), "bank"))
def test_example_schemas_are_as_good_as_the_prepared_tables(name, tmp_path, monkeypatch, capsys):
    """One command on the raw file, against the same estimator on the prepared table; medians of five fits."""
    table = data_directory() / {"adult": "adult.csv.gz", "bank": "bank_full.csv.gz"}[name]
    if not table.exists():
        pytest.skip(f"no data sets: SKDP_DATA names no directory that holds {table.name}")
    monkeypatch.chdir(tmp_path)
    prepared, raw, beside = load(name), [], []
    for seed in range(5):
        assert fit(table, "--test", "split=test" if name == "adult" else "0.2", schema=SCHEMAS / f"{name}.json", epsilon="1") == 0
        raw.append(list(map(float, re.search(r"accuracy (\S+), AUC ([\d.]+);", capsys.readouterr().out).groups())))
        model = fitted(DPLogisticRegression(1.0, data_norm=1.0), prepared.X_train, prepared.y_train, seed=seed)
        auc = roc_auc_score(prepared.y_test, model.decision_function(prepared.X_test))
        beside.append([model.score(prepared.X_test, prepared.y_test), auc])
    assert (np.median(raw, axis=0) >= np.median(beside, axis=0) - 0.005).all()


@pytest.mark.slow
def test_the_module_runs_as_a_command(folder):
    """In a process of its own; a reader that closes the pipe is no error."""
    command = [sys.executable, "-m", "skdp", "schema", "people.csv"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout)["target"] == "" and not run.stderr
    read, write = os.pipe()
    os.close(read)
    assert subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True).stderr == ""
    os.close(write)


@pytest.mark.slow
def test_the_python_of_the_guide_runs(folder, monkeypatch, capsys):
    """The lines of the page on schemas that fit a model to a CSV with a schema, on the real table."""
    if not (data_directory() / "adult.csv.gz").exists():
        pytest.skip("no data sets: SKDP_DATA names no directory that holds adult.csv.gz")
    (block,) = re.findall(
        r"```python\n(from sklearn.pipeline import make_pipeline\n.*?)```",
        (SCHEMAS.parents[1] / "docs" / "guarantees" / "schemas.md").read_text(),
        re.DOTALL,
    )
    Path("adult.csv.gz").symlink_to(data_directory().resolve() / "adult.csv.gz")
    Path("examples").symlink_to(SCHEMAS.parent)
    assert len([line for line in block.splitlines() if line]) <= 10
    exec(block, {})
    shown = capsys.readouterr().out
    assert float(shown.split()[0]) > 0.83 and "Privacy report" in shown


COMMANDS_OF_PERSONS = (
    "plan visits.csv --target paid --epsilon 9 --persons id --report plan.json",
    "plan visits.csv --schema facts.json --epsilon 9 --persons id",
    "fit visits.csv --schema facts.json --estimator logistic --epsilon 9 --persons id --test 0.4 --model m.skops --report r.json",
    "evaluate m.skops visits.csv --test 0.4 --metrics accuracy --epsilon 9 --persons id --out scores.json",
    "schema visits.csv --target paid --learn --epsilon 9 --persons id --out learned.json",
)


@pytest.mark.slow
@pytest.mark.slow
@pytest.mark.filterwarnings("always")
def test_the_number_of_rows_of_a_person_is_in_no_output(folder, capsys):
    """A person whose only row is there twice has the same weight and sum. Ids and their column are in no output, either."""
    table = people(300, np.random.default_rng(0))
    table["id"] = [f"id-{number // 2:04d}" for number in range(2, 302)]
    table = table.iloc[1:]  # the first person, who is in the fit because of the hash of her id, has one row
    facts = {**FACTS, "columns": {**FACTS["columns"], "id": {"kind": "category", "categories": ["id-0000"]}}}
    Path("facts.json").write_text(json.dumps(facts))
    told = []
    for visits in (table, pd.concat([table.iloc[[0]], table])):
        visits.to_csv("visits.csv", index=False)
        for command in COMMANDS_OF_PERSONS:
            with reproducible_noise(0):
                assert main(command.split()) == 0, capsys.readouterr().err
        fitted = load_model("m.skops")[-1]
        assert fitted.privacy_unit == "person"
        files = [Path(name).read_text() for name in ("plan.json", "r.json", "scores.json", "learned.json")]
        told.append((*capsys.readouterr(), *files, str(fitted.privacy_report_)))
        for name in ("m.skops", "learned.json"):
            Path(name).unlink()
    assert told[0] == told[1]
    assert "number of persons 150; 90 for the fit" in told[0][0] and "number of persons 150; 60 for the scores" in told[0][0]
    assert "0.4 of the persons were kept for a test: the first ones by a public hash" in told[0][-1]
    assert "On the test records of 60 persons" in told[0][0] and "column id: whose each record is" in told[0][-1]
    assert not any("id-0" in text or "299" in text or '"id":' in text for text in told[0])


@pytest.mark.slow
def test_a_folder_of_persons_is_fitted_as_one_file(parts, capsys):
    for path in ("people.parquet", "parts/0.parquet", "parts/1.parquet"):
        table = pd.read_parquet(path)
        table.assign(id=[f"id-{age}" for age in table["age"]]).to_parquet(path)
    coefs = []
    for table in ("people.parquet", "parts"):
        words = f"fit {table} --schema facts.json --estimator logistic --epsilon 5 --persons id --quiet --report r.txt --model"
        with reproducible_noise(0):
            assert main([*words.split(), f"{table}.joblib"]) == 0, capsys.readouterr().err
        told = capsys.readouterr().out + Path("r.txt").read_text()
        assert "number of persons 72" in told and "n_persons = 72" in told and "2000" not in told and "id-" not in told
        coefs.append(joblib.load(f"{table}.joblib")[-1].coef_)
    np.testing.assert_array_equal(*coefs)
    assert main("plan parts --schema facts.json --epsilon 5 --persons id".split()) == 0
    assert "number of persons 72." in capsys.readouterr().out


def test_another_person_in_the_place_of_one_moves_at_most_one_other_to_the_test():
    ids = np.array([f"b{number:03d}" for number in range(500)])
    kept = []
    for other in ("a", "c"):  # the first one, and the last one
        frame = numbered(Path("t.csv"), pd.DataFrame({"id": [other, *ids, other]}), "id")
        kept.append(held_out_records(Path("t.csv"), frame, "0.3", "id"))
        assert frame["id"][kept[-1]].nunique() == 150 and kept[-1][0] == kept[-1][-1]
    assert np.count_nonzero(kept[0][1:-1] != kept[1][1:-1]) <= 1


@pytest.mark.parametrize(
    "words, message",
    (
        ("fit gaps.csv --schema facts.json --persons id", "persons has missing ids"),
        ("fit visits.csv --schema facts.json --persons nobody", "has no column 'nobody'"),
        ("fit visits.csv --schema facts.json --persons paid", "--persons paid names the column of --target"),
        ("fit visits.csv --schema facts.json --persons id --test id=7", "--persons id names the column of --test"),
        ("fit visits.csv --schema facts.json --persons id --test 0.001", "selects 0 of 20 persons"),
        ("fit visits.csv --schema facts.json --persons id --estimator group_dro --groups fold", "protects single records"),
        ('fit visits.csv --schema facts.json --set privacy_unit="person"', "privacy_unit is set by --persons"),
        ("fit parts --schema facts.json --persons id", "parts has no column 'id'"),
        ("schema visits.csv --persons id", "--persons without --learn"),
        ("plan --schema facts.json --persons id", "needs the number of persons"),
        ("evaluate model.joblib visits.csv --trust", "expected --persons COLUMN"),
    ),
)
def test_persons_that_make_no_sense_are_refused_before_the_fit(words, message, parts, capsys, monkeypatch):
    table = people(40, np.random.default_rng(0)).assign(id=np.arange(40) // 2)
    table.to_csv("visits.csv", index=False)
    table.assign(id=np.where(table.index == 7, " ?", table["id"].astype(str))).to_csv("gaps.csv", index=False)
    joblib.dump(DPLogisticRegression(privacy_unit="person"), "model.joblib")
    monkeypatch.setattr(DPLogisticRegression._task_class, "run", lambda *given: pytest.fail("the fit began"))
    own = {"fit": " --epsilon 1 --model m.skops", "plan": " --epsilon 1", "evaluate": " --epsilon 1", "schema": ""}
    assert main((words + own[words.split()[0]]).split()) == 2
    told = capsys.readouterr()
    assert message in told.err and "40" not in told.out + told.err
