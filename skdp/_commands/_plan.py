"""Print the guarantee of a fit before it is done."""

import sys
from functools import partial
from pathlib import Path
from typing import Any

from skdp._commands._estimator_names import planned, unfitted
from skdp._commands._estimator_names import settings as read_settings
from skdp._commands._raw import RawTable, check_complete, content_of, schema_without
from skdp._commands._records import check_persons, number_of_records, unit_in_words
from skdp._files._outputs import check_outputs, write_whole
from skdp._files._suffixes import REPORTS, Forgiving, report_content
from skdp._files._tables import TextFormat, column_names
from skdp.estimators import DPGroupDROClassifier
from skdp.inspection import check_pipeline
from skdp.preprocessing import Schema
from skdp.preprocessing._frame_facts import leaves_to_learn


def plan(
    table: Path | None,
    schema: Path | None,
    n_samples: int | None,
    report: Path | None,
    *,
    form: TextFormat,
    target: str | None,
    classes: str | None,
    task: str | None,
    estimator: str | None,
    settings: list[str],
    persons: str | None,
    **parameters: Any,
) -> None:
    """Print the guarantee of a fit before it is done, and what each step of its pipeline does with records.

    Parameters
    ----------
    table : Path or None
        Records, of which the number and the names and types of the columns are read; all of them are public.
    schema : Path or None
        What is public about the table; columns that it does not describe are learned.
    n_samples : int or None
        Number of records, or of persons; None takes that of the table.
    report : Path or None
        Where to write the plan.
    form : TextFormat
        How a text is written.
    target, classes, task : str or None
        Column to predict, its labels, and "classification" or "regression", if no schema of all columns states them.
    estimator : str or None
        Name of the estimator; None uses the default.
    settings : list of str
        Further parameters of the estimator, as ``name=value``.
    persons : str or None
        Column of the ids of persons, who are protected then.
    **parameters : dict
        Parameters that all estimators have.
    """
    content = content_of(schema)
    raw = None
    if table is not None:
        apart = [persons] if persons else []
        raw = RawTable.of(table, form, content, target=target, classes=classes, task=task, estimator=estimator, apart=apart)
    elif content == {} or leaves_to_learn(content):
        raise ValueError("The plan needs the names of the columns to learn; expected a TABLE, or a schema of all columns.")
    else:
        check_complete(content, target, classes, task)
    if table is None and n_samples is None:
        number = f"number of {unit_in_words(persons)}"
        raise ValueError(f"The plan needs the {number}; expected --n-samples, or a TABLE.")
    facts: Any = raw
    if raw is None:
        names = None if table is None else partial(column_names, table, form)
        facts, content = schema_without(persons, Schema.read(schema, names), content)
    check_persons(persons, None, target=facts.target)
    check_outputs([(report, REPORTS)], [schema, table])
    unit = {} if persons is None else {"privacy_unit": "person"}
    model = unfitted(facts, estimator, read_settings(settings), **parameters, **unit)
    if isinstance(model[-1], DPGroupDROClassifier):
        raise ValueError("A plan of group_dro needs the sizes of the groups; expected a call of plan(group_sizes=...) in Python.")
    if n_samples is None and table is not None:
        n_samples = number_of_records(table, form, persons)
        print(f"Read {table}: number of {unit_in_words(persons)} {n_samples}.")
    if raw is not None and table is not None and n_samples is not None:
        print(raw.said(), file=Forgiving(sys.stderr))
        statement = planned(model, raw.shape(table, n_samples))
    else:
        statement = model[-1].plan(n_samples=n_samples, n_features=facts.n_features)
    print(statement, "", "Steps", check_pipeline(model), sep="\n")
    if report is not None:
        write_whole(report, report_content(statement, report))
