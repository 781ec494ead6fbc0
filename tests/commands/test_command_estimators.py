"""The command line with every estimator, other separators, and what it prints."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdp import DPLogisticRegression, PrivacyLedger, load_model
from skdp.__main__ import main
from skdp._commands._estimator_names import ESTIMATORS
from skdp.estimators.boosting import _rule

COLUMNS = {
    "age": {"kind": "number", "bounds": [0, 120]},
    "debt": {"kind": "number", "bounds": [0, 1e5], "scale": "log"},
    "city": {"kind": "category", "categories": ["Bern", "Basel"]},
}
LABELS = {"columns": COLUMNS, "target": "paid", "classes": ["no", "yes"]}
NUMBERS = {"columns": COLUMNS, "target": "cost", "target_bounds": [0, 3000]}
EVERY = [(name, labels) for name, kinds in ESTIMATORS.items() for labels in kinds]


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """A hundred trees show the commands what a thousand do."""
    monkeypatch.setattr(_rule, "N_TREES", 100)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, rng):
    """A directory with two schemas and a table, comma by comma and with semicolons."""
    monkeypatch.chdir(tmp_path)
    age = rng.integers(18, 90, 2000)
    table = pd.DataFrame({"age": age, "debt": 10 ** rng.uniform(0, 5, 2000), "city": rng.choice(["Bern", "Basel", "Thun"], 2000)})
    table["paid"] = np.where(age + rng.normal(0, 10, 2000) > 50, "yes", "no")
    table["cost"] = 20 * age + rng.normal(0, 50, 2000)
    table.to_csv("people.csv", index=False)
    table.to_csv("semi.csv", index=False, sep=";")
    Path("labels.json").write_text(json.dumps(LABELS))
    Path("numbers.json").write_text(json.dumps(NUMBERS))


def fit(*options, table="people.csv", schema="labels.json", model="model.skops"):
    Path(model).unlink(missing_ok=True)
    return main(["fit", table, "--schema", schema, "--epsilon", "5", "--quiet", "--model", model, *options])


def needed(name, labels):
    """Parameters in units of the target."""
    value = {"robust": "threshold=300", "constrained": f"radius={3 if labels else 3000}"}.get(name)
    return [] if value is None else ["--set", value]


def refused(capsys, code):
    """The one line of an error."""
    shown = capsys.readouterr()
    assert (
        code == 2
        and (not shown.out or shown.out.startswith("Read people.csv: "))
        and shown.err.startswith("error: ")
        and shown.err.count("\n") == 1
    )
    return shown.err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X has what no training record had")  # noise decides whether an effect is told
@pytest.mark.each_value
@pytest.mark.parametrize("name, labels", EVERY)
def test_every_estimator_is_fitted_saved_and_predicts(name, labels, capsys):
    options = ["--groups", "city"] if name == "group_dro" else needed(name, labels)
    options += ["--set", "fit_intercept=true"] if name == "constrained" else []
    schema = "labels.json" if labels else "numbers.json"
    assert fit("--estimator", name, "--test", "0.2", *options, schema=schema) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    score = float(re.search(r"On 400 test records: (?:accuracy |AUC |R2 |)([\d.-]+)", last)[1])
    assert score > {"quantile": 0.4, "constrained": 0.4}.get(name, 0.75)  # these are 0.5 of the targets, and a small ball
    assert isinstance(load_model("model.skops")[-1], ESTIMATORS[name][labels])
    assert main(["predict", "model.skops", "people.csv", "--out", "out.csv"]) == 0
    predicted, truth = pd.read_csv("out.csv"), pd.read_csv("people.csv")
    assert len(predicted) == len(truth)
    if not labels:
        assert predicted.columns.tolist() == ["prediction"]
        assert np.corrcoef(predicted["prediction"], truth["cost"])[0, 1] > 0.9
    elif name == "auc":
        assert predicted.columns.tolist() == ["score of yes"]
    else:
        assert (predicted["prediction"] == truth["paid"]).mean() > 0.75
        expected = ["score of yes"] if name == "svm" else ["probability of no", "probability of yes"]
        assert predicted.columns.tolist() == ["prediction", *expected]


@pytest.mark.each_value
@pytest.mark.parametrize("name, labels", [case for case in EVERY if case[0] != "group_dro"])  # its plan needs group sizes
def test_every_estimator_is_planned_as_it_is_fitted(name, labels):
    schema = "labels.json" if labels else "numbers.json"
    options = ["--estimator", name, *needed(name, labels)]
    plan = ["plan", "--schema", schema, "--epsilon", "5", "--n-samples", "2000", *options, "--report", "plan.json"]
    assert main(plan) == 0
    assert fit(*options, "--report", "report.json", schema=schema) == 0
    planned, fitted = (json.loads(Path(file).read_text()) for file in ("plan.json", "report.json"))
    assert planned["releases"] == fitted["releases"] and planned["estimator"] == fitted["estimator"]


@pytest.mark.parametrize("name, schema", (("logistic", "labels.json"), ("linear", "numbers.json")))
def test_a_fit_for_inference_is_written(name, schema):
    assert fit("--estimator", name, "--set", "inference=true", schema=schema) == 0
    assert len(load_model("model.skops")[-1].summary().to_frame()) == 4  # two numbers, a category of two, the intercept


class Derived(DPLogisticRegression):
    """An estimator that no model file may hold."""


def test_a_model_that_its_file_cannot_hold_is_refused_before_the_charge(capsys, monkeypatch):
    monkeypatch.setitem(ESTIMATORS, "logistic", {True: Derived})
    with PrivacyLedger("ledger", epsilon=9.0, delta=1e-3) as ledger:
        pass
    assert "would hold the types" in refused(capsys, fit("--estimator", "logistic", "--ledger", "ledger"))
    assert not ledger.entries and not Path("model.skops").exists()


@pytest.mark.slow
def test_the_target_chooses_the_estimator():
    for schema, kind in (("labels.json", "DPTabularClassifier"), ("numbers.json", "DPTabularRegressor")):
        assert fit(schema=schema) == 0
        assert type(load_model("model.skops")[-1]).__name__ == kind
    assert load_model("model.skops")[-1].target_bounds == (0.0, 3000.0)


def test_a_class_may_be_named_too():
    assert fit("--estimator", "DPLinearSVC") == 0
    assert type(load_model("model.skops")[-1]).__name__ == "DPLinearSVC"


@pytest.mark.slow
def test_further_parameters_reach_estimator_and_solver():
    options = ("alpha=0.01", 'class_weight={"yes": 2, "no": 1}', "solver__n_steps=7")
    assert fit("--estimator", "logistic", "--solver", "gd", *(word for option in options for word in ("--set", option))) == 0
    model = load_model("model.skops")[-1]
    assert model.alpha == 0.01 and model.class_weight == {"no": 1, "yes": 2} and model.n_iter_ == 7
    assert fit("--estimator", "quantile", "--set", "quantile=0.9", schema="numbers.json") == 0
    assert load_model("model.skops")[-1].quantile == 0.9


LOGISTIC = ("--estimator", "logistic")


@pytest.mark.parametrize(
    "options, message",
    (
        (["--estimator", "forest"], "estimator='forest'; expected one of"),
        (["--estimator", "quantile"], "estimator='quantile' predicts numbers"),
        (
            ["--estimator", "linear"],
            "expected one of ['logistic', 'tabular', 'boosting', 'additive', 'svm', 'auc', 'group_dro', 'constrained']",
        ),
        ([*LOGISTIC, "--set", "alpha=" + "1" * 5000], "alpha="),
        (["--set", "alpha"], "--set 'alpha'; expected name=value"),
        (["--set", "epsilon=9"], "epsilon is set by --epsilon"),
        (["--set", "classes=[1, 2]"], "classes is set by the file of --schema"),
        (["--set", "alpha=1", "--set", "alpha=2"], "alpha is set by another --set"),
        (["--set", "C=1"], "does not take C: the penalty is alpha"),
        ([*LOGISTIC, "--set", "alfa=1"], "DPLogisticRegression has no ['alfa']; expected names among ['alpha', 'class_weight'"),
        ([*LOGISTIC, "--solver", "gd", "--set", "solver__n_step=1"], "has no ['solver__n_step']; expected names among"),
        ([*LOGISTIC, "--set", "alpha=-1"], "alpha=-1"),
        ([*LOGISTIC, "--set", "solver__n_steps=7"], "solver='auto' with --set solver__n_steps; expected one of"),
        (["--estimator", "tabular", "--solver", "gd"], "--solver gd: DPTabularClassifier chooses its solver by itself"),
        (
            ["--estimator", "boosting", "--solver", "gd", "--set", "solver__n_steps=7"],
            "--set solver__n_steps: DPGradientBoosting",
        ),
        (["--groups", "city"], "--groups city; expected a column of public groups with --estimator group_dro"),
        (["--estimator", "group_dro"], "expected a column of public groups with --estimator group_dro"),
        (["--estimator", "group_dro", "--groups", "town"], "--groups: the table has no column 'town'; expected"),
        (["--sep", ";"], "with the separator ';' the header has one column and contains ','"),
        (["--sep", "and"], "sep='and'; expected one of"),
    ),
)
def test_options_that_make_no_sense_are_one_line(options, message, capsys):
    assert message in refused(capsys, fit(*options))
    assert not Path("model.skops").exists()


@pytest.mark.parametrize("name, parameter", (("robust", "threshold"), ("constrained", "radius")))
def test_a_parameter_in_units_of_the_target_has_no_default(name, parameter, capsys):
    Path("bare.json").write_text(json.dumps({"columns": COLUMNS, "target": "cost"}))
    error = refused(capsys, fit("--estimator", name, schema="bare.json" if name == "robust" else "numbers.json"))
    assert f"needs --set {parameter}=NUMBER" in error and "in units of the target" in error


@pytest.mark.slow
def test_the_absolute_loss_and_a_range_need_no_threshold():
    Path("bare.json").write_text(json.dumps({"columns": COLUMNS, "target": "cost"}))
    assert fit("--estimator", "robust", "--set", "loss=absolute", schema="bare.json") == 0
    assert fit("--estimator", "robust", schema="numbers.json") == 0


def test_a_target_with_neither_classes_nor_bounds(capsys):
    Path("bare.json").write_text(json.dumps({"columns": COLUMNS, "target": "cost"}))
    error = refused(capsys, fit(schema="bare.json"))
    assert 'neither "classes" nor "target_bounds" for the target \'cost\'' in error and "quantile and robust" in error
    assert fit("--estimator", "quantile", schema="bare.json") == 0


@pytest.mark.slow
def test_tables_that_are_no_tables_are_one_line(capsys):
    lines = Path("people.csv").read_text().splitlines()
    error = refused(capsys, fit(table="semi.csv"))
    assert "semi.csv: with the separator ',' the header has one column and contains ';'; expected sep=';'" in error
    assert "--sep ';'" in error and "debt" not in error
    Path("header.csv").write_text(lines[0] + "\n")
    for words in (["schema", "header.csv"], ["predict", "model.skops", "header.csv"]):
        fit()
        capsys.readouterr()
        assert "header.csv has a header but no records" in refused(capsys, main(words))
    assert "header.csv has a header but no records" in refused(capsys, fit(table="header.csv"))
    pd.read_csv("people.csv").drop(columns="paid").to_csv("free.csv", index=False)
    assert "free.csv has no column 'paid'; expected one of its columns" in refused(capsys, fit(table="free.csv"))
    for name in ("model.skops", "model.joblib"):
        Path(name).write_bytes(b"no model")
        assert name in refused(capsys, main(["predict", name, "people.csv"]))


@pytest.mark.slow
def test_the_whole_way_with_semicolons(capsys):
    assert main(["schema", "semi.csv", "--sep", ";", "--target", "paid", "--out", "template.json"]) == 0
    template = json.loads(Path("template.json").read_text())
    assert template["target"] == "paid" and "paid" not in template["columns"] and "target_bounds" not in template
    assert list(template["columns"]) == ["age", "debt", "city", "cost"]
    template["columns"] = {**COLUMNS, "cost": {"kind": "ignore"}}
    Path("facts.json").write_text(json.dumps({**template, "classes": ["no", "yes"]}))
    assert fit("--sep", ";", "--test", "0.2", table="semi.csv", schema="facts.json") == 0
    assert float(re.search(r"accuracy ([\d.]+)", capsys.readouterr().out)[1]) > 0.75
    assert main(["predict", "model.skops", "semi.csv", "--sep", ";", "--out", "a.csv"]) == 0
    assert main(["predict", "model.skops", "people.csv", "--out", "b.csv"]) == 0
    assert Path("a.csv").read_text() == Path("b.csv").read_text()


def test_a_template_for_a_number_asks_for_classes_or_bounds(capsys):
    assert main(["schema", "people.csv", "--target", "cost"]) == 0
    template = json.loads(capsys.readouterr().out)
    assert template["target"] == "cost" and template["classes"] == template["target_bounds"] == []
    assert "has no column 'price'; expected one of its columns" in refused(
        capsys, main(["schema", "people.csv", "--target", "price"])
    )


def test_groups_are_stated_and_a_plan_without_their_sizes_is_refused(capsys):
    assert fit("--estimator", "group_dro", "--groups", "city", "--report", "report.json") == 0
    assert "column city" in json.loads(Path("report.json").read_text())["public"]["groups"]
    capsys.readouterr()
    plan = ["plan", "--schema", "labels.json", "--epsilon", "5", "--n-samples", "2000", "--estimator", "group_dro"]
    assert "needs the sizes of the groups" in refused(capsys, main(plan))


def test_counts_with_exposure_are_fitted_and_scored(capsys):
    """Predictions are per unit; the printed score multiplies them by the exposures of the test records."""
    table, rng = pd.read_csv("people.csv"), np.random.default_rng(0)
    table["years"] = rng.uniform(1, 10, 2000)
    table.assign(cost=rng.poisson(table["age"] / 20 * table["years"])).to_csv("claims.csv", index=False)
    linked = ("--estimator", "linear", "--set", "link=log_count", "--set", "max_exposure=10", "--exposure")
    assert fit(*linked, "years", "--test", "0.3", table="claims.csv", schema="numbers.json") == 0
    score = float(re.search(r"R2 (-?[\d.]+)", capsys.readouterr().out)[1])
    predicted = load_model("model.skops").predict(table)
    assert score > 0.3 and predicted.mean() == pytest.approx(table["age"].mean() / 20, rel=0.3)
    assert "no column 'months'" in refused(capsys, fit(*linked, "months", table="people.csv", schema="numbers.json"))


def test_patterns_are_read_with_the_table(capsys):
    columns = {"*e": {"kind": "number", "bounds": [0, 120]}, "city": {"kind": "ignore"}, "cost": {"kind": "ignore"}}
    Path("facts.json").write_text(json.dumps({**LABELS, "columns": columns}))
    assert fit("--report", "report.json", schema="facts.json") == 0
    assert json.loads(Path("report.json").read_text())["public"]["feature_names"] == ["age"]
    plan = ["plan", "--schema", "facts.json", "--epsilon", "5", "--n-samples", "2000"]
    capsys.readouterr()
    assert "facts.json has the patterns ['*e']" in refused(capsys, main(plan))
    assert main(["plan", "semi.csv", *plan[1:], "--sep", ";", "--report", "plan.json"]) == 0
    planned, fitted = (json.loads(Path(file).read_text()) for file in ("plan.json", "report.json"))
    assert planned["releases"] == fitted["releases"]


@pytest.mark.slow
def test_the_report_is_printed_on_demand_and_the_scores_last(capsys):
    for options, printed in (((), False), (("-v",), True), (("--report", "r.txt"), False), (("--report", "r.txt", "-v"), True)):
        assert fit("--test", "0.2", *options) == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[-1].startswith("On 400 test records: accuracy")
        assert any(line.startswith("Releases") for line in lines) == printed
        assert len([line for line in lines if line.startswith("Guarantee") and "differential privacy" in line]) == 1
        assert printed or len(lines) <= 5
        assert ("r.txt" in "".join(lines)) == Path("r.txt").exists() == ("--report" in options)
        Path("r.txt").unlink(missing_ok=True)
