"""A ledger in a notebook."""

from html.parser import HTMLParser

import pytest

from skdp import PrivacyLedger


class Page(HTMLParser):
    """Tags, and the text of cells by row."""

    def __init__(self, content):
        super().__init__()
        self.tags, self.open, self.rows, self.text = set(), [], [], ""
        self.feed(content)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag != "meta":  # which has no end
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_a_notebook_shows_ceiling_spent_left_and_entries(tmp_path):
    ledger = PrivacyLedger(tmp_path / "study.sqlite", epsilon=3, delta=1e-6, adjacency="zero_out")
    empty = Page(ledger._repr_html_())
    assert [row[0] for row in empty.rows] == ["Ceiling", "Spent", "Left"]
    assert "epsilon 0 at this delta by 0 charges" in empty.text
    ledger.add(0.5, note="histogram of ages")
    ledger.add(0.25, 1e-8, note="histogram of towns")
    page = Page(ledger._repr_html_())
    assert not page.open
    assert "epsilon 3, delta 1e-06; neighbours: zero_out" in page.text
    assert "epsilon 0.75 at this delta by 2 charges" in page.text
    assert f"{ledger.epsilon_left():.4g}" in dict(row for row in page.rows if len(row) == 2)["Left"]
    assert [row[3:6] for row in page.rows if row[0] in ("1", "2")] == [
        ["histogram of ages", "0.5", "0"],
        ["histogram of towns", "0.25", "1e-08"],
    ]


def test_a_page_says_who_spent_what(tmp_path, monkeypatch):
    ledger = PrivacyLedger(tmp_path / "study.sqlite", epsilon=3, delta=1e-6, adjacency="zero_out")
    for user, epsilon in (("ann", 0.5), ("bob", 0.25), ("ann", 0.125), ("<b>", 0.1)):
        monkeypatch.setattr("getpass.getuser", lambda user=user: user)
        ledger.add(epsilon, note=f"table of {user}")
    page = Page(ledger.to_html())
    assert page.rows[page.rows.index(["By", "Charges", "Epsilon of these alone"]) + 1 :][:3] == [
        ["ann", "2", "0.625"],
        ["bob", "1", "0.25"],
        ["<b>", "1", "0.1"],
    ]
    assert ["2", "table of bob", "record", "stated by hand"] in page.rows
    assert "epsilon 0.975 at this delta by 4 charges" in page.text and f"epsilon up to {ledger.epsilon_left():.4g}" in page.text
    assert "script" not in page.tags


def test_nothing_in_it_is_markup(tmp_path):
    harmful = "<script>alert('&amp;')</script><img src=x onerror=\"alert(1)\">"
    ledger = PrivacyLedger(tmp_path / "a<b>&.sqlite", epsilon=3, delta=1e-6, adjacency="zero_out")
    ledger.add(0.5, note=harmful)
    page = Page(ledger._repr_html_())
    assert page.tags <= {"div", "p", "b", "table", "tbody", "tr", "td", "th"}
    assert harmful in [cell for row in page.rows for cell in row]
    assert "a<b>&.sqlite" in page.text


def test_a_file_that_cannot_be_read_is_said_not_raised(tmp_path):
    ledger = PrivacyLedger(tmp_path / "<b>.sqlite", epsilon=3, delta=1e-6)
    ledger.path.unlink()
    page = Page(ledger._repr_html_())
    assert "There is no ledger file at" in page.text
    assert page.tags == {"p"}


@pytest.mark.parametrize("style", ("color:#", "background:#", "color:black", "background:white"))
def test_colours_are_those_of_the_page(style):
    assert style not in PrivacyLedger(epsilon=1, delta=1e-6)._repr_html_()
