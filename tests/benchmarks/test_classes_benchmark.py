"""The benchmark of several classes: its scores and page."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks import classes
from benchmarks.__main__ import main


class Sure:
    """Predict the frequencies of three classes, but too sure by a factor."""

    classes_ = np.arange(3)

    def __init__(self, frequencies, factor):
        powers = np.array(frequencies) ** factor
        self.probabilities = powers / powers.sum()

    def predict_proba(self, X):
        return np.tile(self.probabilities, (len(X), 1))


@pytest.mark.parametrize("factor", (1.0, 2.0))
def test_the_factor_is_that_by_which_probabilities_are_too_sure(factor):
    frequencies = [0.2, 0.3, 0.5]
    y = np.tile(np.repeat(np.arange(3), [2, 3, 5]), 200)
    table = classes.ClassTable(pd.DataFrame({"x": y}), y, 1000)
    found = table.scores(Sure(frequencies, factor))
    assert found["factor"] == pytest.approx(1 / factor, abs=1e-3) and found["accuracy"] == 0.5
    assert table.constant == pytest.approx(-np.dot(frequencies, np.log(frequencies)), abs=1e-5)
    assert (found["log_loss"] > table.constant + 0.05) == (factor > 1)


def test_a_star_marks_what_is_not_below_the_constant():
    fits = [[{"log_loss": loss, "accuracy": 0.5, "factor": 0.5}] for loss in (1.2, 0.9, 0.9, 0.9, 0.9)]
    cells = [
        {"adjacency": adjacency, "epsilon": epsilon, "signal": 30.0, "fits": fit}
        for (adjacency, epsilon), fit in zip(classes.CELLS, fits, strict=True)
    ]
    free = {name: fits[1][0] for name in ("GLM", "HGB")}
    record = {"table": "made up", "n_train": 10, "constant": 1.1, "model": "linear", "cells": cells, **free}
    page = classes.markdown({"settings": {"delta": "1", "repeats": 1, "most": 10}, "records": [record]})
    assert "Of 5 cells, 4 are below the constant; the largest signal s = mu n / k of the others is 30." in page
    assert "| made up | 10 | linear | 1.200 (0.50)* | 0.900 (0.50) |" in page


@pytest.mark.slow
def test_the_quick_mode_writes_a_page(tmp_path):
    main(["classes", "--quick", "--out", str(tmp_path)])
    (record,) = json.loads((tmp_path / "classes.json").read_text())["records"]
    assert all(cell["fits"][0]["log_loss"] < record["constant"] for cell in record["cells"][1:])
    assert record["GLM"]["log_loss"] < record["cells"][3]["fits"][0]["log_loss"]
