"""Write small models of the present version, which every later one has to load: python tests/helpers/lasting_models.py.

A release adds a folder with its version, which nobody changes from then on: a file per model, and what they say of rows.
"""

import contextlib
import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import skdp
from skdp.estimators.boosting import _rule
from skdp.minimax import AUCSaddle
from skdp.pipeline import DPPipeline
from skdp.preprocessing import LearnedSchema, from_schema
from skdp.scorers import LinearScorer
from skdp.testing import reproducible_noise

N = 600
STATED = {
    "age": {"kind": "number", "bounds": [18, 90]},
    "cost": {"kind": "number", "bounds": [0, 1e4], "scale": "log", "fill": 100},
    "work": {"kind": "category", "categories": ["clerk", "nurse"]},
}


def table(n_rows, seed):
    """Return a frame with a missing cell, an unlisted category and values beyond the bounds."""
    rng = np.random.default_rng(seed)
    cost = np.round(rng.exponential(500.0, n_rows), 2)
    cost[2] = np.nan
    work = rng.choice(["clerk", "nurse", "cook"], n_rows)
    return pd.DataFrame({"age": rng.integers(15, 95, n_rows).astype(float), "cost": cost, "work": work})


def models():
    """Yield names, models and the kind of their table."""
    classes = {"classes": [0, 1]}
    yield "logistic", skdp.DPLogisticRegression(2.0, schema=STATED, **classes), "frame"
    yield "logistic learned", skdp.DPLogisticRegression(3.0, **classes), "frame"
    yield "logistic inference", skdp.DPLogisticRegression(3.0, schema=STATED, inference=True, **classes), "frame"
    yield "several classes", skdp.DPLogisticRegression(3.0, data_norm=2.0, classes=[0, 1, 2]), "rows"
    yield "svc", skdp.DPLinearSVC(2.0, data_norm=2.0, **classes), "rows"
    yield "linear", skdp.DPLinearRegression(2.0, schema=STATED, target_bounds=(0, 3)), "frame"
    yield "log link", skdp.DPLinearRegression(9.0, feature_bounds=1.0, target_bounds=(0, 3), link="log_count"), "rows"
    yield "quantile", skdp.DPQuantileRegressor(2.0, feature_bounds=1.0), "rows"
    yield "robust", skdp.DPRobustRegressor(2.0, feature_bounds=1.0, target_bounds=(0, 3)), "rows"
    yield "constrained", skdp.DPConstrainedRegression(2.0, data_norm=2.0, target_bounds=(0, 3)), "rows"
    yield "additive", skdp.DPAdditiveClassifier(3.0, schema=STATED, **classes), "frame"
    yield "additive learned", skdp.DPAdditiveRegressor(3.0, target_bounds=(0, 3)), "frame"
    yield "boosted", skdp.DPGradientBoostingClassifier(3.0, schema=STATED, **classes), "frame"
    yield "boosted learned", skdp.DPGradientBoostingRegressor(3.0, target_bounds=(0, 3)), "frame"
    yield "tabular", skdp.DPTabularClassifier(3.0, **classes), "frame"
    yield "auc", skdp.DPAUCMaximizer(3.0, data_norm=2.0, **classes), "rows"
    yield "network", skdp.DPAUCMaximizer(3.0, data_norm=2.0, scorer="mlp", hidden_layer_sizes=(3,), **classes), "rows"
    yield "minimax", skdp.DPMinimax(AUCSaddle(LinearScorer(2), positive_rate=0.5), epsilon=3.0, data_norm=2.0), "rows"
    yield "words", skdp.DPMultinomialNB(3.0, **classes), "counts"
    yield "clusters", skdp.DPKMeans(3, epsilon=3.0, feature_bounds=1.0), "rows"
    yield "components", skdp.DPPCA(2, epsilon=3.0, feature_bounds=1.0), "rows"
    steps = [("columns", LearnedSchema()), ("model", skdp.DPLogisticRegression(data_norm=1.0, **classes))]
    yield "several steps", DPPipeline(steps, epsilon=3.0), "frame"
    prepared = from_schema({"columns": STATED})
    prepared.steps.append(("model", skdp.DPLogisticRegression(2.0, data_norm=1.0, **classes)))
    yield "pipeline", prepared, "frame"


def inputs(n_rows, seed):
    """Return tables by kind."""
    frame = table(n_rows, seed)
    rows = np.random.default_rng(seed).uniform(-1, 1, (n_rows, 2))
    return {"frame": frame, "rows": rows, "counts": csr_array(np.rint(4 * np.abs(rows)))}


def answers(model, X):
    """Return all that a model says of rows, by method, as lists."""
    found = {}
    for name in ("predict", "predict_proba", "decision_function", "transform"):
        with contextlib.suppress(AttributeError):
            found[name] = getattr(model, name)(X)
    return {name: np.asarray(answer, dtype=float).tolist() for name, answer in found.items()}


def main():
    """Write the folder of the present version."""
    folder = Path(__file__).parents[1] / "model_files" / skdp.__version__
    folder.mkdir(exist_ok=True)
    _rule.N_TREES = 3  # small files
    fitted_to, asked = inputs(N, 0), inputs(8, 1)
    said = {}
    warnings.simplefilter("ignore")
    for place, (name, model, kind) in enumerate(models()):
        signal = fitted_to["rows"][:, 0]
        numbers = name in ("linear", "quantile", "robust", "constrained", "log link", "additive learned", "boosted learned")
        y = 1 + signal if numbers else (signal > 0) + (signal > 0.5) if name == "several classes" else (signal > 0).astype(int)
        with reproducible_noise(place):
            model.fit(fitted_to[kind], None if name in ("clusters", "components") else y)
        skdp.save_model(model, folder / f"{name}.skops")
        said[name] = {"table": kind, **answers(model, asked[kind])}
    (folder / "predictions.json").write_text(json.dumps(said) + "\n")


if __name__ == "__main__":
    main()
