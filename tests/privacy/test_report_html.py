"""The report as a page: complete, escaped, in an order for readers, and without anything from elsewhere."""

import warnings
from dataclasses import replace
from html import escape
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from seeded import fitted

from skdp import DPAdditiveClassifier, DPAUCMaximizer, DPConstrainedClassifier, DPLinearRegression, DPLogisticRegression
from skdp.constraints import L1Ball

X, Y = np.random.default_rng(0).uniform(-1, 1, (600, 3)), np.arange(600) % 2
HOSTILE = ["<script>alert(1)</script>", 'a" onclick="b', "c & d"]
VOID = {"meta", "link", "br", "img", "input"}


class Page(HTMLParser):
    """What is on a page: text by element, rows of tables, and all elements in their order."""

    def __init__(self, content):
        super().__init__()
        self.open, self.elements, self.attributes, self.rows, self.texts = [], [], [], [], []
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += attrs
        self.open += [] if tag in VOID else [tag]
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append((tuple(self.open), data))
        if self.open and self.open[-1] in ("td", "th", "summary"):
            self.rows[-1].append(data)

    def text(self, *inside):
        return " ".join(data for elements, data in self.texts if set(inside) <= set(elements))


def reports():
    schema = {"columns": {"<age>": {"kind": "number", "bounds": [0, 1]}, "job": {"kind": "category", "categories": ["a", "<b>"]}}}
    people = pd.DataFrame({"<age>": np.abs(X[:, 0]), "job": np.where(Y, "a", "<b>")})
    return {
        "default": DPLogisticRegression().fit(X, Y),
        "names": DPLogisticRegression(solver="sgd").fit(pd.DataFrame(X, columns=HOSTILE), Y),
        "pure": DPLogisticRegression(delta=0).fit(X, Y),
        "selections": DPConstrainedClassifier(constraint=L1Ball(2.0), solver="frank_wolfe").fit(X, Y),
        "schema": DPAdditiveClassifier(schema=schema, interactions=[("<age>", "job")]).fit(people, Y),
        "none": DPLogisticRegression(float("inf")).fit(X, Y),
        "seeded": fitted(DPLinearRegression(target_bounds=(0, 1)), X, Y),
    }


@pytest.fixture(scope="module")
def every():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # one adds no noise, others are small
        models = reports()
    return {"plan": DPAUCMaximizer(0.5).plan(10_000, 20), **{name: model.privacy_report_ for name, model in models.items()}}


KINDS = ("plan", "default", "names", "pure", "selections", "schema", "none", "seeded")


@pytest.mark.parametrize("name", KINDS)
def test_the_page_is_well_formed_and_stands_alone(name, every):
    page = Page(every[name].to_html())
    assert page.elements.index("h1") < page.elements.index("h2") < page.elements.index("table")
    assert not {"script", "link", "img", "iframe", "object"} & set(page.elements)
    assert not {"src", "href", "onclick"} & {name for name, _ in page.attributes}
    assert not any(word in every[name].to_html() for word in ("url(", "@import", "http:", "https:"))
    assert every[name]._repr_html_() in every[name].to_html()


@pytest.mark.parametrize("name", KINDS)
def test_the_guarantee_comes_first(name, every):
    report, page = every[name], Page(every[name].to_html())
    shown = [data for elements, data in page.texts if "section" in elements and data.strip()]
    assert shown[:2] == [report.title, f"{report.guarantee}."]
    private = report.to_dict()["private"]
    assert private == (name not in ("none", "seeded"))
    assert (f"at most about {np.exp(report.budget.epsilon):.3g} times" in page.text("p")) == private
    assert (("class", "skdp-guarantee skdp-none") in page.attributes) != private


@pytest.mark.parametrize("name", KINDS)
def test_what_is_spent_is_said_where_there_is_a_guarantee(name, every):
    report, rows = every[name], Page(every[name].to_html()).rows
    label = {"plan": "Would spend", "seeded": "With secure noise", "none": None}.get(name, "Spent")
    labels = ("Would spend", "With secure noise", "Spent")
    expected = [[label, f"epsilon = {report.spent.epsilon:.6g}, delta = {report.spent.delta:.6g}"]] if label else []
    assert [row for row in rows if row and row[0] in labels] == expected


@pytest.mark.parametrize("name", KINDS)
def test_every_release_is_a_row(name, every):
    report, rows = every[name], Page(every[name].to_html()).rows
    lines = [row for row in rows if len(row) == 7]
    assert lines[0][:2] == ["Count", "Query"]
    assert [(int(row[0]), row[1]) for row in lines[1:]] == [(line.count, line.query) for line in report.releases_together()]
    assert sum(int(row[0]) for row in lines[1:]) == report.public["n_releases"]
    for row, line in zip(lines[1:], report.releases_together(), strict=True):
        assert all(cell in str(line) for cell in (row[2], row[3], row[4], row[6]) if cell != "\N{EN DASH}")
        assert row[5] in str(line) or row[5] == "all"


@pytest.mark.parametrize("name", KINDS)
def test_nothing_is_left_out(name, every):
    report, page = every[name], Page(every[name].to_html())
    text = page.text("section")
    for line in (*report.assumptions, report.noise_size, report.noise_source, report.solver_title):
        assert line in text
    assert (report.accounting in text) == (name != "none")
    assert all(f"{software} {version}" in text for software, version in report.versions.items())
    schema = report.public.get("schema", {"columns": {}})  # which a line of the parameters may cut
    for name, facts in schema["columns"].items():
        (row,) = [row[1] for row in page.rows if row[0] == name and str(facts["kind"]) in row[1]]
        assert all(each in row for each in facts.get("categories", ())) and all(
            f"{each:g}" in row for each in facts.get("bounds", ())
        )
    for parameter, value in report.public["parameters"].items():
        if parameter == "schema" and schema["columns"]:
            continue
        assert [parameter, value] in page.rows
        assert value in page.text("details")
    for fact in ("n_samples", "n_features", "n_releases", "passes"):
        assert [fact, str(report.public[fact])] in page.rows


def test_names_are_escaped_and_folded_where_they_are_many():
    report = DPLogisticRegression(data_norm=2.0).fit(pd.DataFrame(X, columns=HOSTILE), Y).privacy_report_
    for page in (report.to_html(), replace(report, steps=dict.fromkeys(HOSTILE, report)).to_html()):
        assert all(escape(name) in page and name not in page for name in HOSTILE)
    many = pd.DataFrame(np.tile(X, 100), columns=[f"<{i}>" for i in range(300)])
    folded = Page(DPLogisticRegression(data_norm=2.0).fit(many, Y).privacy_report_.to_html())
    assert "<299>" in folded.text("details") and "300 values" in folded.text("summary")
    few = Page(DPLogisticRegression(data_norm=2.0).fit(many.iloc[:, :3], Y).privacy_report_.to_html())
    assert "<2>" in few.text("td") and "<2>" not in few.text("details")


def test_a_large_epsilon_has_a_page():
    with pytest.warns(UserWarning, match="weak"):
        assert "exp(epsilon) times" in DPLogisticRegression(1e5).plan(1000, 3).to_html()


def test_entries_of_a_mapping_are_not_called_parameters_in_the_page():
    page = DPLogisticRegression(feature_bounds={"a": 3, "b": 10}).plan(2000, 2).to_html()
    assert "entries</summary>" in page and "parameters</summary>" not in page
