"""Print the guarantee of a fit before any data is touched."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from skdp._commands._estimator_names import settings as read_settings
from skdp._commands._estimator_names import unfitted
from skdp._commands._raw import RawTable, check_complete, content_of
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import REPORTS, Forgiving, report_content
from skdp._files._tables import column_names
from skdp.estimators import DPGroupDROClassifier
from skdp.inspection import check_pipeline
from skdp.preprocessing import Schema
from skdp.preprocessing._frame_facts import leaves_to_learn

__all__ = ["plan"]


def plan(
    schema: Path | None,
    n_samples: int,
    report: Path | None,
    *,
    names: Path | None,
    sep: str,
    target: str | None,
    classes: str | None,
    task: str | None,
    estimator: str | None,
    settings: list[str],
    **parameters: Any,
) -> None:
    """Print the guarantee of a fit before any data is touched, and what each step of its pipeline does with records.

    Parameters
    ----------
    schema : Path or None
        What is public about the table; columns that it does not describe are learnt.
    n_samples : int
        Number of records.
    report : Path or None
        Where to write the plan.
    names : Path or None
        Table with the columns to learn, or those that match the patterns in the schema; names and types of columns are read.
    sep : str
        Separator of the fields of a CSV.
    target, classes, task : str or None
        Column to predict, its labels, and "classification" or "regression", if no schema of all columns states them.
    estimator : str or None
        Name of the estimator; None uses the default for the kind of target.
    settings : list of str
        Further parameters of the estimator, as ``name=value``.
    **parameters : dict
        Parameters that all estimators have.
    """
    content = content_of(schema)
    raw = None
    if names is not None:
        raw = RawTable.of(names, sep, content, target=target, classes=classes, task=task, estimator=estimator)
    elif content == {} or leaves_to_learn(content):
        raise ValueError("The plan needs the names of the columns to learn; expected --names TABLE, or a schema of all columns.")
    else:
        check_complete(content, target, classes, task)
    facts: Any = raw or Schema.read(schema, None if names is None else partial(column_names, names, sep))
    check_outputs([(report, REPORTS)], [schema, names])
    model = unfitted(facts, estimator, read_settings(settings), **parameters)
    if isinstance(model[-1], DPGroupDROClassifier):
        raise ValueError("A plan of group_dro needs the sizes of the groups; expected a call of plan(group_sizes=...) in Python.")
    if raw is not None and names is not None:
        print(raw.said, file=Forgiving(sys.stderr))
        statement = model[-1].plan(raw.shape(names, n_samples))
    else:
        statement = model[-1].plan(n_samples=n_samples, n_features=facts.n_features)
    print(statement, "", "Steps", check_pipeline(model), sep="\n")
    if report is not None:
        write_whole(report, report_content(statement, report))
