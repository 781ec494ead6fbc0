"""Test accuracy and AUC of the defaults on prepared tables, both adjacencies, beside scikit-learn on the same rows.

Run ``python -m benchmarks.accuracy``; writes ``benchmarks/results/accuracy.json`` and prints a Markdown table.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from benchmarks.tables import TABLES, Table, load
from skdp import DPLogisticRegression
from skdp.privacy.budget import ADJACENCIES

RESULTS = Path(__file__).parent / "results" / "accuracy.json"
EPSILONS = (0.1, 0.5, 1.0, 3.0)
REPEATS = 15


def scores(model: DPLogisticRegression | LogisticRegression, table: Table) -> tuple[float, float]:
    """Test accuracy and area under the ROC curve after a fit."""
    model.fit(table.X_train, table.y_train)
    return model.score(table.X_test, table.y_test), roc_auc_score(table.y_test, model.decision_function(table.X_test))


def private_scores(table: Table, epsilon: float, adjacency: str) -> dict[str, list[float]]:
    """Quartiles over the repeats, with ``data_norm=1`` and everything else default."""
    model = DPLogisticRegression(epsilon, adjacency=adjacency, data_norm=1.0)
    accuracy, auc = np.quantile([scores(model, table) for _ in range(REPEATS)], (0.25, 0.5, 0.75), axis=0).T
    return {"accuracy": accuracy.round(4).tolist(), "auc": auc.round(4).tolist()}


def main() -> None:
    """Measure, print and write."""
    results: dict[str, object] = {"quartiles_of": REPEATS}
    print("| table | model | " + " | ".join(f"epsilon {epsilon:g}" for epsilon in EPSILONS) + " |")
    print("|---|---|" + "---|" * len(EPSILONS))
    for name in TABLES:
        table = load(name)
        accuracy, auc = scores(LogisticRegression(max_iter=3000), table)
        majority = max(np.mean(table.y_test), 1 - np.mean(table.y_test))
        results[name] = {"not private": {"accuracy": accuracy, "auc": auc}, "majority": majority}
        print(f"| {name} | not private (majority {majority:.3f}) | {accuracy:.3f} / {auc:.4f} |" + " |" * (len(EPSILONS) - 1))
        for adjacency in ADJACENCIES:
            cells = {epsilon: private_scores(table, epsilon, adjacency) for epsilon in EPSILONS}
            results[f"{name}, {adjacency}"] = cells
            row = " | ".join(f"{cell['accuracy'][1]:.3f} / {cell['auc'][1]:.3f}" for cell in cells.values())
            print(f"| {name} | {adjacency} | {row} |", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
