"""The tutorial of the site works as it is printed: its files, then its commands, in an empty directory."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("skops")

REPOSITORY = Path(__file__).resolve().parents[2]
TUTORIAL = (REPOSITORY / "docs" / "getting_started" / "tutorial.md").read_text()
FILES = re.findall(r"^```\{code-block\} \w+\n:caption: (\S+)\n\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL, re.MULTILINE | re.DOTALL)
COMMANDS = [line for block in BLOCKS for line in block.replace("\\\n", "").splitlines()]


@pytest.mark.slow
def test_the_tutorial_ends_with_a_published_model(tmp_path):
    """Files are written as printed, and the script skdp is called as a module, as it need not be installed."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "OMP_NUM_THREADS": "1"}
    printed = {}
    for command in COMMANDS:
        for name, text in FILES:
            (tmp_path / name).write_text(text)
        program, *words = shlex.split(command)
        words = [sys.executable, *{"skdp": ("-m", "skdp"), "python": ()}[program], *words]
        done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed[command] = done.stdout
    assert {"back.skops", "back.html", "curves.skops", "predicted.csv", "third.skops", "third.html"} <= {
        path.name for path in tmp_path.iterdir()
    }
    accuracy, larger = re.search(r"accuracy (\S+), .*alone (\S+) ", "".join(printed.values())).groups()
    assert float(accuracy) > float(larger) + 0.05  # far from chance: 2400 records, a standard error of 0.009
    assert "PrivacySpent(epsilon=0.99" in printed["python use_model.py"]
    assert "2 charges" in printed["skdp ledger patients-ledger.sqlite"]
    assert "a model needs about" in printed["python fit_model.py"]
    shown = re.search(r"```text\n(patient,.*?)```", TUTORIAL, re.DOTALL).group(1).splitlines()
    assert set(shown) <= set((tmp_path / "patients.csv").read_text().splitlines())
