"""What the command line shows of errors and warnings: one line, and nothing that could quote a record."""

import json
import re
import warnings
from pathlib import Path

import pytest

import skdp
from skdp import _commands
from skdp.__main__ import main
from skdp.privacy.errors import NotPrivateWarning, warn

SECRET = "x1-a-cell"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text("age\n1\n")
    return tmp_path


def fails_in_a_call(**given):
    float(SECRET)


def fails_in_another_library(**given):
    json.loads(SECRET, parse_constant=None, object_hook=None, cls=Foreign)


class Foreign(json.JSONDecoder):
    """Its errors quote what it read."""

    def decode(self, text):
        raise KeyError(text)


@pytest.mark.parametrize("fails", (fails_in_a_call, fails_in_another_library))
def test_errors_of_others_show_their_type_only(fails, folder, capsys, monkeypatch):
    monkeypatch.setattr(_commands, "schema", fails)
    assert main(["schema", "table.csv"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and error.count("\n") == 1 and "Error in " in error and SECRET not in error
    assert main(["schema", "table.csv", "--debug"]) == 2
    error = capsys.readouterr().err
    assert "Traceback" in error and SECRET in error


@pytest.mark.parametrize("error", (RecursionError, MemoryError, AssertionError, UnicodeError, StopIteration))
def test_no_error_ends_in_a_traceback(error, folder, capsys, monkeypatch):
    def fails(*given, **named):
        raise error(SECRET)

    monkeypatch.setattr("skdp._commands._schema.column_kinds", fails)
    assert main(["schema", "table.csv"]) == 2
    shown = capsys.readouterr().err
    assert shown.count("\n") == 1 and error.__name__ in shown and SECRET not in shown


def test_advice_says_what_to_use():
    """ "Expected X without it" reads as if something had been expected before; errors say "...; expected ..." of a value."""
    of_strings = re.compile(r"""\. Expected |^ *f?["']Expected (?!2D|a 2-dim|unique)[a-zA-Z"]""")
    texts = [path.read_text() for path in Path(skdp.__file__).parent.rglob("*.py")]
    assert not [line for text in texts for line in text.splitlines() if of_strings.search(line)]


def test_our_own_errors_and_those_of_the_system_are_shown(folder, capsys):
    assert main(["schema", "missing.csv"]) == 2
    assert capsys.readouterr().err == "error: There is no table missing.csv.\n"
    Path("m.skops").mkdir()
    assert main(["predict", "m.skops", "table.csv"]) == 2
    assert capsys.readouterr().err == "error: There is no model m.skops.\n"


def test_warnings_of_others_show_their_category_only(folder, capsys, monkeypatch):
    def warns(**given):
        warnings.warn(SECRET, UserWarning, stacklevel=1)
        warnings.warn(SECRET, UserWarning, stacklevel=2)
        warn("This is ours.", UserWarning)
        warn("This too.", NotPrivateWarning)

    monkeypatch.setattr(_commands, "schema", warns)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main(["schema", "table.csv"]) == 0
        shown = capsys.readouterr().err
        assert SECRET not in shown and shown.count("warning: UserWarning (--debug shows") == 1  # the same line once
        assert "warning: This is ours.\n" in shown and "warning: This too.\n" in shown


@pytest.mark.parametrize(
    "content", ('{"columns": ' + "[" * 100_000, '{"a":' * 100_000, "[" * 500 + "]" * 500, "1" * 5000, "\xff")
)
def test_schemas_that_are_nested_or_no_text_are_one_line(content, folder, capsys):
    Path("facts.json").write_bytes(content.encode("latin-1"))
    assert main(["plan", "--schema", "facts.json", "--epsilon", "1", "--n-samples", "100"]) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.count("\n") == 1 and shown.err.startswith("error: facts.json")
