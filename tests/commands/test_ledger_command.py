"""The ledger on the command line."""

import json
import re
from pathlib import Path

from skdp.__main__ import main


def fit(*options):
    return main(["fit", "people.csv", "--schema", "facts.json", "--epsilon", "5", "--quiet", *options])


def test_a_ledger_is_made_charged_shown_and_kept(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    facts = {"columns": {"age": {"kind": "number", "bounds": [0, 120]}}, "target": "paid", "classes": ["no", "yes"]}
    Path("facts.json").write_text(json.dumps(facts))
    Path("people.csv").write_text("age,paid\n" + "31,no\n70,yes\n" * 500)
    assert main(["ledger", "study.sqlite", "--epsilon", "6", "--delta", "1e-6"]) == 0
    assert "0 charges" in capsys.readouterr().out
    assert fit("--ledger", "study.sqlite", "--delta", "1e-7", "--model", "a.skops") == 0
    capsys.readouterr()
    assert fit("--ledger", "study.sqlite", "--delta", "1e-7", "--model", "b.skops") == 2
    assert re.search(r"error: DPTabularClassifier would spend epsilon=5.* up to \d\.\d+ would still fit", capsys.readouterr().err)
    assert not Path("b.skops").exists()
    for out in ("ledger.json", "ledger.png"):
        assert main(["ledger", "study.sqlite", "--out", out]) == 0
        assert " by 1 charge, " in capsys.readouterr().out
        assert Path(out).stat().st_size > 500
    assert fit("--ledger", "other.sqlite", "--model", "b.skops") == 2
    assert main(["ledger", "other.sqlite"]) == 2
    assert (
        "There is no ledger 'other.sqlite' yet; a new one needs a ceiling; expected epsilon and delta too."
        in capsys.readouterr().err
    )
    assert b"study.sqlite" not in Path("a.skops").read_bytes()
    assert main(["ledger", "persons.sqlite", "--epsilon", "6", "--delta", "1e-6", "--unit", "person"]) == 0
    assert fit("--ledger", "persons.sqlite", "--delta", "1e-7", "--model", "c.skops") == 2
    assert "protects records; the ledger" in capsys.readouterr().err
