"""Write the results of the benchmark of additive models: a page in Markdown, and a plot."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.additive_reference import EPSILONS, REFERENCE
from benchmarks.scores import SCORES
from benchmarks.writing import figure, row

__all__ = ["draw", "markdown"]

RESAMPLES, REFERENCE_FITS = 2000, 10
LABELS = {name: score.label for name, score in SCORES["classification"].items()} | {"r2": "R2", "clipped_r2": "R2, clipped"}
FIRST = ("auc", "clipped_r2")  # scores of the comparisons and of the plot
WORST = {"auc": 0.006, "clipped_r2": 0.0}  # largest deficit of a mean against the linear model where there are hats
COLOURS = {"linear": "C0", "additive": "C1", "DP-EBM": "C2"}
ABOUT = """\
{adjacency}, delta = {delta}, everything by default. Cells are medians over {repeats} fits with different seeds (3 of DP-EBM),
bootstrap standard errors in brackets. "linear" is `DPLogisticRegression` or `DPLinearRegression` with `data_norm=1` on rows
of norm at most 1, "additive" is `DPAdditiveClassifier` or `DPAdditiveRegressor` on the table in its own units with its public
facts. "reference" are figures of an earlier study, 10 seeds, medians; "errors" is the difference of both medians in bootstrap
standard errors (of a median of our fits less one of 10 such fits), positive where ours is better. Regressions predict within the
bounds of the target: that is "R2, clipped". s is mu n / p, the signal-to-noise per numeric column; below 6 a classifier has no
hats.
"""

ONCE = """\
Measured once, not by this command:

- **Small tables.** Those on which hats lose (ijcnn1) and those on which they win (bank, covertype, spambase) have the same s,
  of 10 to 30, so no threshold of s parts them: 30 would spare ijcnn1 and give up the gains of the others. Hats of half the
  weight are the least bad rule. On made-up tables of 1000 and 3000 records (numbers only, epsilon .5 to 3, 10 tables each)
  whose log-odds are linear, hats cost .006 to .015 of AUC with 6 columns and .015 to .029 with 25; with half the weight .005 to
  .010 and .009 to .016. Where the log-odds are sums of bent functions they gain .115 to .195 and .018 to .130; with half the
  weight .110 to .195 and .009 to .128. But where bounds are far too wide, as on spambase, half the weight loses .015 of the
  whole table's AUC at epsilon .5. The default stays.
- **Fewer knots** (1 or 2 even intervals where n is 1000 or 3000) gain nothing on ijcnn1, and lose up to .03 on bank and
  spambase.
- **Shrinking each function** by what is known of its noise (James and Stein) loses .001 to .014 on ijcnn1 and moves bank by
  -.03 to +.01.
- **Steps.** The defaults take 100, but for ijcnn1 with its 75; 100 change nothing there (AUC by .001 at most).
- **Rows longer than `data_norm`.** They are shortened for the fit, and predicted as they are. ijcnn1 has many, and there the
  log loss is above the reference, which shortens them for predictions, too. With that, the medians of 6 of our fits at epsilon
  .5, 1 and 3 are: log loss .181, .171, .162 in place of .205, .177, .173; AUC .930, .930, .939 in place of .934, .932, .942. It
  would be no additive model.
- **R2 at epsilon .1.** There are no hats then. Means of 100 fits, clipped: bike .595 ± .003 (linear .595 ± .002), california
  .625 ± .001 (linear .621 ± .001).
"""


def markdown(results: dict[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    results : dict
        What the JSON holds.

    Returns
    -------
    str
        Text that ends in a newline.
    """
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    lines = ["# Additive models", "", ABOUT.format(**results["settings"]), f"Versions: {versions}.", ""]
    lines += overview(results["records"])
    lines += failures(results["records"])
    for table in dict.fromkeys(record["table"] for record in results["records"]):
        own, free = ([r for r in results[key] if r["table"] == table] for key in ("records", "ceilings"))
        lines += section(table, own, free)
    lines += small_tables(results["subsets"]) + timing(results["speed"]) + variants(results["tried"], results["records"])
    return "\n".join(lines).rstrip("\n") + "\n"


def overview(records: list[dict[str, Any]]) -> list[str]:
    """Means over the tables, additive and linear."""
    lines = ["## Above the linear models?", "", "Means over fits, then over tables.", ""]
    epsilons = list(dict.fromkeys(record["epsilon"] for record in records))
    lines += header("score", epsilons)
    for score in FIRST:
        for model in ("linear", "additive"):
            cells = [[mean(r, score) for r in found(records, model, e) if score in r["scores"]] for e in epsilons]
            if all(cells):
                lines.append(row([f"{LABELS[score]}, {model}, {len(cells[0])} tables", *(f"{np.mean(c):.4f}" for c in cells)]))
    return [*lines, ""]


def failures(records: list[dict[str, Any]]) -> list[str]:
    """Return the cells that are below the reference, or below the linear model."""
    short, below = [], []
    for record in (record for record in records if record["model"] == "additive"):
        about = f"{record['table']} at {record['epsilon']:g}"
        short += [
            f"{about}, {LABELS[score]}: {median(record, score):.4f} for {other:.4f}, {errors:.1f} errors"
            for score in record["scores"]
            for other, errors in [compared(record, score)]
            if errors < -2
        ]
        (plain,) = found(records, "linear", record["epsilon"], record["table"])
        for score in (score for score in FIRST if score in record["scores"]):
            gaps = np.subtract(record["scores"][score], plain["scores"][score])
            if gaps.mean() < -WORST[score]:
                signal, gap = f"s = {record['signal_per_number']:.0f}", f"{gaps.mean():+.4f} ± {standard_error(gaps):.4f}"
                below.append(f"{about} ({signal}), {LABELS[score]}: mean {gap}")
    lines = ["More than two standard errors short of the reference:", "", *bullets(short), ""]
    worst = f"Mean AUC more than {WORST['auc']} below the linear model, or R2 below it at all:"
    return [*lines, worst, "", *bullets(below), ""]


def bullets(texts: list[str]) -> list[str]:
    """A list; "none" where it is empty."""
    return [f"- {text}" for text in texts or ["none"]]


def header(first: str, epsilons: list[float]) -> list[str]:
    """First two lines of a table with a column per epsilon."""
    return [row([first, *(f"epsilon {epsilon:g}" for epsilon in epsilons)]), row(["---"] * (len(epsilons) + 1))]


def section(table: str, records: list[dict[str, Any]], ceilings: list[dict[str, Any]]) -> list[str]:
    """All scores of one table."""
    epsilons = list(dict.fromkeys(record["epsilon"] for record in records))
    signals = ", ".join(f"{r['signal_per_number']:.0f}" for r in found(records, "additive"))
    lines = [f"## {table}", "", f"s = {signals}.", "", *header("score", epsilons)]
    for score in records[0]["scores"]:
        for model in dict.fromkeys(record["model"] for record in records):
            own = found(records, model)
            lines.append(row([f"{LABELS[score]}, {model}", *(f"{median(r, score):.4f} ({error(r, score):.4f})" for r in own)]))
            if model in REFERENCE.get(table, {}):
                pairs = [compared(r, score) for r in own]
                lines.append(row([f"reference, {model}", *(f"{value:.4f}, {errors:+.1f} errors" for value, errors in pairs)]))
    plain = (f"{r['model']} {', '.join(f'{LABELS[s]} {median(r, s):.4f}' for s in r['scores'])}" for r in ceilings)
    return [*lines, "", f"Without privacy: {'; '.join(plain)}.", ""]


def small_tables(records: list[dict[str, Any]]) -> list[str]:
    """Subsets: means of both models, and their paired difference."""
    if not records:
        return []
    repeats = len(records[0]["scores"]["auc"])
    about = (
        f"AUC, means over {repeats} subsets with a fit of each model; in brackets what they have more than linear, paired, with"
    )
    about += "\nstandard errors. Tested on the first 10 000 records for testing."
    models = [model for model in dict.fromkeys(record["model"] for record in records) if model != "linear"]
    heads = ["table", "n", "epsilon", "s", "linear", *models]
    lines = ["## Small tables", "", about, "", row(heads), row(["---"] * len(heads))]
    for plain in found(records, "linear"):
        others = [
            r for r in records if r["model"] != "linear" and all(r[key] == plain[key] for key in ("table", "n_train", "epsilon"))
        ]
        texts = [plain["table"], str(plain["n_train"]), f"{plain['epsilon']:g}", f"{plain['signal_per_number']:.1f}"]
        lines.append(row([*texts, f"{mean(plain, 'auc'):.4f}", *(beside(other, plain) for other in others)]))
    return [*lines, ""]


def beside(record: dict[str, Any], plain: dict[str, Any]) -> str:
    """Return the mean AUC, and its difference from that of the linear model."""
    gaps = np.subtract(record["scores"]["auc"], plain["scores"]["auc"])
    return f"{mean(record, 'auc'):.4f} ({gaps.mean():+.4f} ± {standard_error(gaps):.4f})"


def timing(speed: dict[str, float]) -> list[str]:
    """Time of a fit, as ratios."""
    if not speed:
        return []
    sizes = "A default fit on all {n_records:.0f} records of adult as they are, categories as words, {n_functions:.0f} functions:"
    ours = "{ours_ms:.0f} ms, of which the functions take {basis_ms:.0f} ms."
    theirs = "`LogisticRegression` of scikit-learn on one-hot columns and standardised numbers, encoding included:"
    ratio = "{scikit_learn_ms:.0f} ms, so ours takes {ratio_to_scikit_learn:.2f} times as long."
    dense = "On the functions as a sparse table a fit takes {sparse_to_dense:.2f} times what it takes on them as a dense one."
    return ["## Time", "", *(text.format(**speed) for text in (f"{sizes} {ours}", f"{theirs} {ratio}", dense)), ""]


def variants(tried: list[dict[str, Any]], records: list[dict[str, Any]]) -> list[str]:
    """Differences that a change of the defaults makes."""
    if not tried:
        return []
    about = "Means over fits with the same seeds, less those of the defaults, with paired standard errors: AUC, then log loss."
    lines = ["## What was tried", "", about, ""]
    for model in dict.fromkeys(record["model"] for record in tried):
        epsilons = list(dict.fromkeys(record["epsilon"] for record in tried))
        lines += [f"**{model}**", "", *header("table", epsilons)]
        for table in dict.fromkeys(record["table"] for record in tried):
            lines.append(row([table, *(changed(r, records) for r in tried if (r["table"], r["model"]) == (table, model))]))
        lines.append("")
    return [*lines, ONCE]


def changed(record: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """A cell of a variant."""
    (default,) = found(records, "additive", record["epsilon"], record["table"])
    texts = []
    for score in ("auc", "log_loss"):
        values = np.array(record["scores"][score])
        gaps = values - np.array(default["scores"][score])[: values.size]
        texts.append(f"{gaps.mean():+.4f} ± {standard_error(gaps):.4f}")
    return ", ".join(texts)


def found(
    records: list[dict[str, Any]], model: str, epsilon: float | None = None, table: str | None = None
) -> list[dict[str, Any]]:
    """Records of a model, perhaps of one epsilon and one table."""
    chosen = [record for record in records if record["model"] == model and epsilon in (None, record["epsilon"])]
    return [record for record in chosen if table in (None, record["table"])]


def mean(record: dict[str, Any], score: str) -> float:
    """Mean over the fits of a cell."""
    return float(np.mean(record["scores"][score]))


def median(record: dict[str, Any], score: str) -> float:
    """Median over the fits of a cell."""
    return float(np.median(record["scores"][score]))


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of a mean; NaN for a single value."""
    return float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan


def error(record: dict[str, Any], score: str, n_fits: int | None = None) -> float:
    """Return the bootstrap standard error of the median of a cell, or of a given number of fits like its own."""
    values = np.array(record["scores"][score])
    drawn = np.random.default_rng(0).integers(values.size, size=(RESAMPLES, n_fits or values.size))
    return float(np.median(values[drawn], axis=1).std())


def compared(record: dict[str, Any], score: str) -> tuple[float, float]:
    """Return the reference figure of a cell, and the lead of our median in standard errors, which include rounding."""
    value = REFERENCE[record["table"]][record["model"]][score][EPSILONS.index(record["epsilon"])]
    rounding = 10.0 ** (-3 if score.endswith("r2") else -4) / math.sqrt(12)
    gap = median(record, score) - value
    spread = math.hypot(error(record, score), error(record, score, REFERENCE_FITS), rounding)
    return value, (-gap if score == "log_loss" else gap) / spread


def draw(results: dict[str, Any], path: Path) -> None:
    """Plot the first score against epsilon, a panel per table; nothing where matplotlib is missing.

    Parameters
    ----------
    results : dict
        What the JSON holds.
    path : Path
        Of the PNG.
    """
    tables = list(dict.fromkeys(record["table"] for record in results["records"]))
    width = min(len(tables), 4)
    picture = figure(figsize=(3.6 * width, 3.2 * -(-len(tables) // width) + 0.6))
    if picture is None:
        return
    handles: dict[str, Any] = {}
    for place, table in enumerate(tables):
        axes = picture.add_subplot(-(-len(tables) // width), width, place + 1)
        own, free = ([r for r in results[key] if r["table"] == table] for key in ("records", "ceilings"))
        panel(axes, own, free, handles)
        axes.set(title=table, xlabel="epsilon", xscale="log")
    picture.legend(handles.values(), handles, loc="outside lower center", ncols=min(len(handles), 4))
    picture.savefig(path, dpi=100)


def panel(axes: Any, records: list[dict[str, Any]], ceilings: list[dict[str, Any]], handles: dict[str, Any]) -> None:
    """One table: medians with quartiles, the reference as crosses, models without privacy as lines."""
    (score,) = set(FIRST) & set(records[0]["scores"])
    for model in dict.fromkeys(record["model"] for record in records):
        own, colour = found(records, model), COLOURS[model]
        epsilons, scores = [r["epsilon"] for r in own], np.array([r["scores"][score] for r in own])
        low, middle, high = np.quantile(scores, [0.25, 0.5, 0.75], axis=1)
        handles[model] = axes.plot(epsilons, middle, marker="o", markersize=3, color=colour)[0]
        axes.fill_between(epsilons, low, high, color=colour, alpha=0.15, linewidth=0)
        if model in REFERENCE.get(own[0]["table"], {}):
            values = [compared(record, score)[0] for record in own]
            handles[f"reference, {model}"] = axes.plot(epsilons, values, "x", color=colour)[0]
    for record, style in zip(ceilings, ("--", "-.", ":"), strict=True):
        handles[record["model"]] = axes.axhline(median(record, score), color="grey", linestyle=style, linewidth=1)
    axes.set_ylabel(LABELS[score])
