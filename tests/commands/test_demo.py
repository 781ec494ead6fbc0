"""The demonstration, end to end in a process of its own."""

import re
import subprocess
import sys

import pytest


def demo(directory, *arguments):
    quiet = "ignore:scipy.optimize:DeprecationWarning"  # scikit-learn 1.6 under the newest SciPy
    command = [sys.executable, "-W", "error", "-W", quiet, "-m", "skdp", "demo", "--out", str(directory / "out"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=directory)


@pytest.mark.slow
def test_demo_writes_table_plot_and_report(tmp_path):
    """At an epsilon of 3 and above, the median of few fits is far from chance with certainty for practical purposes."""
    run = demo(tmp_path, "--repeats", "3")
    assert run.returncode == 0, run.stderr
    rows = dict(re.findall(r"^ +([\w., ]+?)  +(\d\.\d{3}) ", run.stdout, re.MULTILINE))
    assert list(rows) == ["0.1", "0.3", "1", "3", "10", "1, no bounds", "not private", "larger class"]
    assert float(rows["larger class"]) + 0.1 < float(rows["3"]) <= 1
    assert float(rows["10"]) > float(rows["0.1"])
    assert (tmp_path / "out" / "privacy_utility.png").read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "differential privacy of the training records" in page
    assert "secure" in page


@pytest.mark.slow
def test_demo_refuses_nonsense(tmp_path):
    run = demo(tmp_path, "--repeats", "0")
    assert run.returncode == 2
    assert "0 is not a positive number" in run.stderr
