"""Write a model card: what a private model is for, what it guarantees, what it tells, and where its limits are."""

import contextlib
import hashlib
import html
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from skdp._scikit_learn.pipelines import fitted_steps, reports_of, spent_together
from skdp._validation import explain_keywords, shown
from skdp.metrics import Evaluation
from skdp.privacy.report import PrivacyReport
from skdp.privacy.report._html import PAGE, STYLE, Picture, as_facts, as_list, as_table, plain_words, releases_table
from skdp.privacy.report._public_columns import in_words

FORMATS = ("md", "html")
# What only people can say of a model; the headings that model cards have elsewhere (Mitchell et al. 2019).
PURPOSE = ("Intended use", "Out-of-scope use", "Training data", "People affected", "Contact")
NOT_STATED = "Not stated."
SCORES = "evaluation has scores with noise, such as those of skdp.metrics.evaluate; others are no part of a card"
HINTS = dict.fromkeys(("scores", "metrics", "score"), SCORES)  # keywords that a user may try, and what is right
MOST = 40  # rows of a table of coefficients; a choice, about a page
POINTS = 60  # of a curve in a picture of WIDTH x HEIGHT points; choices
WIDTH, HEIGHT = 180, 48


@dataclass(frozen=True)
class Table:
    """Hold titles and rows of a table of a card; Markdown leaves pictures out."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Scores:
    """Hold published scores: name, records, value or None, and interval of each; their level, guarantee, epsilon and model."""

    rows: Sequence[tuple[str, str, float | None, float, float]]
    level: float
    guarantee: str
    epsilon: float
    model: str
    by_group: bool = False

    @classmethod
    def of(cls, found: Any) -> "Scores":
        """Return the scores of an evaluation, or of the file that the command ``evaluate`` wrote."""
        if isinstance(found, Evaluation):
            parts = [("all", found), *((f"group {name}", group) for name, group in found.groups.items())]
            rows = [
                (name, records, None if math.isnan(m.value) else m.value, m.low, m.high)
                for records, part in parts
                for name, m in part.items()
            ]
            report = found.privacy_report
            model, epsilon = report.public["parameters"]["model"], report.budget.epsilon
            return cls(rows, found.level, guarantee_of_scores(report), epsilon, model, bool(found.groups))
        if not isinstance(found, (str, os.PathLike)):
            raise TypeError(
                f"evaluation is a {type(found).__name__}; expected what skdp.metrics.evaluate returns, or a .json file of the "
                "command evaluate. Scores without noise tell of single test records."
            )
        with contextlib.suppress(AttributeError, KeyError, RecursionError, TypeError, ValueError):
            content = json.loads(Path(found).read_text(encoding="utf-8"))
            rows = [
                (
                    name,
                    "all",
                    None if m["value"] is None else float(m["value"]),
                    *map(_or_infinite, (m["low"], m["high"]), (-1, 1)),
                )
                for name, m in content["metrics"].items()
            ]
            privacy = content["privacy"]
            model, epsilon = privacy["public"]["parameters"]["model"], float(privacy["epsilon"])
            return cls(rows, float(content["level"]), str(content["guarantee"]), epsilon, model)
        raise ValueError(f"{found} holds no scores; expected a .json file that the command evaluate wrote.")


def _or_infinite(end: float | None, sign: int) -> float:
    return sign * math.inf if end is None else float(end)


Part = str | list[str] | Mapping[str, str] | Table  # a paragraph, a list, facts by name, or a table
Section = tuple[str, Sequence[Part]]


@explain_keywords(HINTS)
def model_card(model: Any, *, evaluation: Any = None, purpose: str | Mapping[str, str] | None = None, format: str = "md") -> str:
    """Return a model card of a fitted private model.

    A card states what the model is for, the privacy guarantee in words and in numbers, all releases, what was public and what was
    learned, published scores, coefficients or curves, and limits.

    Parameters
    ----------
    model : estimator
        A fitted estimator of skdp, or a pipeline or a search of one.
    evaluation : Evaluation, path-like or None, default=None
        Scores with noise, from `skdp.metrics.evaluate`, or the ``.json`` file of the command ``evaluate``. Scores without noise
        tell of the test records, and are not for a card.
    purpose : str, dict or None, default=None
        What the model is for; or texts for some of the headings "Intended use", "Out-of-scope use", "Training data",
        "People affected" and "Contact". A heading without text says that it is not stated.
    format : {"md", "html"}, default="md"
        Markdown; or an HTML page that loads nothing from elsewhere, with small pictures of curves.

    Returns
    -------
    str
        The card.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError, ValueError
        If the model is not private by this package, or another argument is none of those above.

    See Also
    --------
    save_model : Write the model itself.
    skdp.metrics.evaluate : Scores that may be published.

    Notes
    -----
    **Privacy.** Post-processing of what was released: the card holds released attributes of the model, its privacy report and
    the evaluation, and reads no records. The texts in ``purpose`` are published as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression, model_card
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(5000, 2))
    >>> model = DPLogisticRegression(epsilon=1.0, data_norm=1.5, classes=[0, 1]).fit(X, (X[:, 0] > 0).astype(int))
    >>> card = model_card(model, purpose="Shows who may be readmitted.")
    >>> card.splitlines()[0]
    '# Model card: DPLogisticRegression'
    """
    if not isinstance(format, str) or format not in FORMATS:
        raise ValueError(f"format={shown(format)}; expected one of {list(FORMATS)}.")
    scores = None if evaluation is None else Scores.of(evaluation)
    texts = _texts(purpose)
    report, fitted = _report_of(model), fitted_steps(model)[-1]
    if scores is not None:
        _check_scores(scores, {report.estimator, type(model).__name__, type(fitted).__name__})
    title = f"Model card: {report.estimator}"
    sections = list(_sections(model, report, fitted, scores, texts))
    return _as_markdown(title, sections) if format == "md" else _as_html(title, sections)


def _check_scores(scores: Scores, names: set[str]) -> None:
    """Raise ValueError for scores without noise, and for those of another kind of model."""
    if not scores.epsilon < math.inf:
        raise ValueError("evaluation has scores without noise, which tell of single test records; expected a finite epsilon.")
    if scores.model not in names:
        raise ValueError(f"evaluation has scores of {shown(scores.model)}; expected those of {' or '.join(sorted(names))}.")


def guarantee_of_scores(report: PrivacyReport) -> str:
    """Return the guarantee of scores in words."""
    return f"{report.guarantee}. {report.summary}."


def _texts(purpose: Any) -> dict[str, str]:
    """Return a text for each heading of the purpose."""
    given = {} if purpose is None else {PURPOSE[0]: purpose} if isinstance(purpose, str) else purpose
    if not isinstance(given, Mapping) or not all(isinstance(text, str) for text in given.values()):
        raise TypeError(f"purpose={shown(purpose)}; expected a text, or a dict from some of {list(PURPOSE)} to texts.")
    if unknown := [name for name in given if name not in PURPOSE]:
        raise ValueError(f"purpose has {shown(unknown)}; expected headings among {list(PURPOSE)}.")
    return {heading: given.get(heading, NOT_STATED) for heading in PURPOSE}


def _report_of(model: Any) -> PrivacyReport:
    """Return the report of a model, or of the last step of a pipeline."""
    if not hasattr(model, "privacy_report_") and isinstance(model, Pipeline):
        return _report_of(model[-1])
    report = getattr(model, "privacy_report_", None)
    if isinstance(report, PrivacyReport):
        return report
    name = type(model).__name__
    if hasattr(model, "privacy_report") or not hasattr(type(model), "plan"):
        raise TypeError(f"{name} has no privacy report; expected a fitted estimator of skdp, or a pipeline or search of one.")
    raise NotFittedError(f"This {name} is not fitted yet; expected a fitted estimator.")


def _sections(model: Any, last: PrivacyReport, fitted: Any, scores: Scores | None, texts: Mapping[str, str]) -> Iterator[Section]:
    from skdp.inspection import check_pipeline  # here, as it imports much of scikit-learn

    reports, check = reports_of(model), check_pipeline(model)
    others = _without_report(reports, check)
    private = not others and all(report.private for report in reports.values())
    yield "Purpose", [texts]
    yield "Model", [_model_facts(reports.values(), last, fitted)]
    yield "Privacy guarantee", list(_guarantees(reports, others))
    yield "Scores", _scores(scores)
    yield from _contents(fitted)
    unknown = [f"{step.name} ({step.kind}): {step.reason}." for step in check.steps if step.name in check.unknown]
    yield "Limits", [[*unknown, *_limits(private, fitted, scores)]]

    yield "What the guarantee assumes", [list(dict.fromkeys(line for report in reports.values() for line in report.assumptions))]
    for place, report in reports.items():
        of_step = f" of {place}" if place and len(reports) > 1 else ""
        for name, step in (report.steps or {"": report}).items():
            of = f" of {name}" if name else ""
            yield f"Releases{of_step}{of}", [Table(*releases_table(step))]
        facts = {name: _text_of(value) for name, value in in_words(report.public).items()}
        yield f"Public, not protected{of_step}", [facts]
        if report.learned:
            yield f"Learned from the records, with noise{of_step}", [report.learned]


def _without_report(reports: Mapping[str, PrivacyReport], check: Any) -> list[str]:
    """Return the names of the steps of a pipeline that learned from the records, and have no report."""
    known = {*reports, check.steps[0].name} if "" in reports else reports
    return [step.name for step in check.steps if step.verdict in ("learns", "private") and step.name not in known]


def _guarantees(reports: Mapping[str, PrivacyReport], others: Sequence[str]) -> Iterator[Part]:
    """Yield the guarantee of a model, with that of each step where there are several."""
    if others:
        yield f"NONE for the whole: {', '.join(others)} learned from the training records, and no report says what."
    if len(reports) > 1:
        epsilon, delta = spent_together([*reports.values()])
        yield f"The steps {', '.join(reports)} spend epsilon = {epsilon:.6g} and delta = {delta:.6g} together."
    alone = not others and len(reports) == 1
    for name, report in reports.items():
        yield f"{report.guarantee}." if alone else f"Step {name}: {report.guarantee}."
        yield from [plain_words(report)] if alone and report.private else []
        yield _budget_facts(report)


def _model_facts(reports: Iterable[PrivacyReport], report: PrivacyReport, fitted: Any) -> dict[str, str]:
    facts = {"Estimator": report.estimator}
    if type(fitted).__name__ != report.estimator:
        facts["Fitted"] = type(fitted).__name__
    if hasattr(fitted, "classes_"):
        facts["Predicts"] = f"one of the classes {', '.join(map(str, np.asarray(fitted.classes_).tolist()))}"
    elif hasattr(fitted, "target_bounds_"):
        ends = [f"from {low:.6g} to {high:.6g}" for low, high in np.atleast_2d(fitted.target_bounds_).tolist()]
        facts["Predicts"] = f"a number {ends[0]}" if len(ends) == 1 else f"numbers {', '.join(ends)}"
    names = getattr(fitted, "feature_names_in_", None)
    if names is not None:
        facts["Columns"] = ", ".join(map(str, names))
    elif hasattr(fitted, "n_features_in_"):
        facts["Columns"] = f"{fitted.n_features_in_}, without names"
    return {
        **facts,
        "Algorithm": f"{report.solver}: {report.solver_title}",
        "Software": ", ".join(f"{name} {version}" for name, version in report.versions.items()),
        "Privacy report": "SHA-256 " + " ".join(hashlib.sha256(each.to_json().encode()).hexdigest() for each in reports),
    }


def _budget_facts(report: PrivacyReport) -> dict[str, str]:
    unit = {} if report.unit is None else {"Unit": report.unit}
    spent = {"Spent": f"epsilon = {report.spent.epsilon:.6g}, delta = {report.spent.delta:.6g}", "Accounting": report.accounting}
    return {
        **unit,
        "Neighbours": f"{report.budget.adjacency}: {report.adjacency_in_words}",
        **(spent if report.private else {}),
        **{f"Noise: {name.lower()}": text for name, text in report.noise_facts().items()},
    }


def _scores(found: Scores | None) -> list[Part]:
    if found is None:
        return ["No score was published. skdp.metrics.evaluate gives scores with noise that may be."]
    rows = [
        (name, records, "not determined" if value is None else f"{value:.4g}", f"{low:.4g} to {high:.4g}")
        for name, records, value, low, high in found.rows
    ]
    return [
        Table(("Score", "Records", "Value", f"{found.level:.0%} interval"), rows),
        "Intervals cover the noise and the sampling of the test records. The scores have a guarantee of their own: "
        f"{found.guarantee}",
    ]


def _contents(fitted: Any) -> Iterator[Section]:
    """Yield what a model tells: functions of columns, coefficients, centres or components."""
    shapes = getattr(fitted, "shape_functions_", None)
    if isinstance(shapes, Mapping):
        yield "Functions of columns", [_functions(shapes)]
    elif isinstance(coef := getattr(fitted, "coef_", None), np.ndarray):
        yield "Coefficients", _coefficients(fitted, coef)
    elif hasattr(fitted, "cluster_centers_"):
        names = _feature_names(fitted, fitted.cluster_centers_.shape[1])
        rows = zip(fitted.cluster_counts_, fitted.cluster_centers_, strict=True)
        yield "Clusters", [Table(("Records, about", *names), [(f"{count:.0f}", *map(_number, centre)) for count, centre in rows])]
    elif hasattr(fitted, "components_"):
        names = _feature_names(fitted, fitted.components_.shape[1])
        rows = zip(fitted.explained_variance_, fitted.components_, strict=True)
        yield "Components", [Table(("Variance", *names), [(_number(variance), *map(_number, c)) for variance, c in rows])]


def _functions(shapes: Mapping[Any, Any]) -> Table:
    rows = [
        (
            " and ".join(map(str, shape.names)),
            f"{shape.importance:.3g}",
            f"{shape.values.min():.3g} to {shape.values.max():.3g}",
            _picture(shape),
        )
        for shape in sorted(shapes.values(), key=lambda shape: -shape.importance)
    ]
    return Table(("Column", "Importance", "Adds", "Function"), rows)


def _picture(shape: Any) -> Picture:
    """Return a function of one number as a line; nothing for categories, pairs and several classes."""
    if len(shape.names) > 1 or shape.scales[0] == "category" or shape.values.ndim > 1:
        return Picture()
    places = np.unique(np.linspace(0, shape.values.size - 1, POINTS).astype(int))
    values, grid = shape.values[places], np.asarray(shape.grid, dtype=float)[places]
    across = (grid - grid[0]) / max(grid[-1] - grid[0], math.ulp(1.0)) * WIDTH
    up = HEIGHT * (1 - (values - values.min()) / max(float(np.ptp(values)), math.ulp(1.0)))
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(across, up, strict=True))
    return Picture(
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="-1 -2 {WIDTH + 2} {HEIGHT + 4}" role="img" aria-label="function">'
        f'<polyline points="{points}" fill="none" stroke="#4c78a8" stroke-width="1.5"/></svg>'
    )


def _coefficients(fitted: Any, coef: np.ndarray) -> list[Part]:
    """Return the largest coefficients, with intercepts first."""
    matrix = np.atleast_2d(coef)
    intercept = np.broadcast_to(np.ravel(getattr(fitted, "intercept_", 0.0)), len(matrix))
    labels = getattr(fitted, "classes_", [f"target {place}" for place in range(len(matrix))])
    outputs = ["Coefficient"] if len(matrix) == 1 else [f"Coefficient for {label}" for label in labels]
    order = np.argsort(-np.abs(matrix).max(axis=0), kind="stable")[:MOST]
    names = _feature_names(fitted, matrix.shape[1])
    rows = [("(intercept)", *map(_number, intercept)), *((names[i], *map(_number, matrix[:, i])) for i in order)]
    left_out = matrix.shape[1] - order.size
    more = [f"{left_out} smaller coefficients are not shown."] if left_out else []
    return [Table(("Feature", *outputs), rows), *more]


def _feature_names(fitted: Any, size: int) -> list[str]:
    for name in ("prepared_features_", "feature_names_out_", "feature_names_in_"):
        found = getattr(fitted, name, None)
        if found is not None and len(found) == size:
            return [str(one) for one in found]
    return [f"x{place}" for place in range(size)]


def _limits(private: bool, fitted: Any, scores: Scores | None) -> Iterator[str]:
    if not private:
        yield "This model is not private. It must not be published as if it were."
    yield (
        "The guarantee is for the records of the fit. It says nothing of records that the model is applied to: their predictions "
        "are as sensitive as they are."
    )
    yield "The guarantee bounds what anybody learns from one record, or person. What holds of many people is what a model is for."
    schema = getattr(fitted, "schema_", None)
    if schema is not None:
        yield "Numbers beyond the bounds of a column count as the nearer bound, and categories that are not listed as other."
    else:
        yield "Values beyond the ranges of the fit are extrapolated, or count as the nearer end: see the parameters."
    yield "Noise changes the model: another fit to the same records gives other numbers, by about the size of the noise above."
    if scores is None or not scores.by_group:
        yield "No score by group of people was published: whether errors are larger for some groups is not known from this card."
    yield "Associations in the model are not causes."
    yield "This card repeats the privacy report in the model, which whoever wrote the model file can have changed."


def _number(value: float) -> str:
    return f"{float(value):.4g}"


def _text_of(value: Any) -> str:
    """Return a public fact as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}={one}" for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _as_markdown(title: str, sections: Sequence[Section]) -> str:
    blocks = [f"# {_escaped(title)}"]
    for heading, parts in sections:
        blocks += [f"## {_escaped(heading)}", *map(_markdown_of, parts)]
    return "\n\n".join(blocks) + "\n"


def _markdown_of(part: Part) -> str:
    if isinstance(part, str):
        return _escaped(part)
    if isinstance(part, list):
        return "\n".join(f"- {_escaped(line)}" for line in part)
    table = part if isinstance(part, Table) else Table(("", ""), list(part.items()))
    shown = [place for place in range(len(table.head)) if not any(isinstance(row[place], Picture) for row in table.rows)]
    lines = [[_escaped(row[place]) for place in shown] for row in (table.head, *table.rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in (lines[0], ["---"] * len(shown), *lines[1:]))


def _escaped(text: str) -> str:
    """Return text that Markdown shows as it is, on one line; names of columns and labels may hold anything."""
    line = " ".join(str(text).split())
    for mark in "\\`*_[]|#":
        line = line.replace(mark, f"\\{mark}")
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _as_html(title: str, sections: Sequence[Section]) -> str:
    body = "\n".join(f"<h2>{html.escape(heading)}</h2>\n{''.join(map(_html_of, parts))}" for heading, parts in sections)
    fragment = f'<section class="skdp-report">\n<style>{STYLE}</style>\n<h1>{html.escape(title)}</h1>\n{body}\n</section>'
    return PAGE.format(title=html.escape(title), fragment=fragment)


def _html_of(part: Part) -> str:
    if isinstance(part, str):
        return f"<p>{html.escape(part)}</p>"
    if isinstance(part, list):
        return as_list(part)
    return as_table(part.head, part.rows) if isinstance(part, Table) else as_facts(part)
