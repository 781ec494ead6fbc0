"""Read the training table of a fit in partitions."""

import warnings
from functools import partial
from typing import Any

from skdp._data_validation import Facts, Partitions
from skdp._progress import PartitionProgress, asks_for_data, tells_partitions
from skdp._table_types import is_dask
from skdp.data import Table
from skdp.data._dask import current_client, table_of
from skdp.data._reading import PartitionedTable, number_of_chunks, public_partitions, stored_type
from skdp.estimators._group_labels import GroupColumn
from skdp.privacy.data.persons import SomeRows

# Numbers of records and of columns for which a plan asks whether a solver takes partitions, where the source does not tell them.
USUAL = 2**20, 20


def read_partitions(task: Any, X: Any, y: Any, persons: SomeRows | None = None) -> PartitionedTable:
    """Check a training table in partitions, in one pass over the data; learn only what is public about it."""
    client = current_client() if is_dask(X) else None
    if is_dask(X):
        X = table_of(X, y if task.takes_y else X, persons)
    elif y is not None:
        raise TypeError(
            "y is given beside a table in partitions, which names its own target; expected fit(table) of the estimator or of a "
            "pipeline. Other estimators around it, such as VotingClassifier, need a table in memory."
        )
    if asks_for_data(task):
        raise TypeError("A callback asks for X and y; a table in partitions has none to give. Use callbacks that do not.")
    _refuse_early(task, X)
    if task.takes_groups and client is not None:
        raise TypeError(
            "Groups are taken from tables of skdp.data, such as skdp.data.parquet; expected one of these, or no groups."
        )
    reader, kind, width = task.part_reader(X), stored_type(X), X.shape[1]
    stated, groups = hasattr(task, "label_set") and task.label_set() is not None, GroupColumn() if task.takes_groups else None
    table = PartitionedTable(X, reader, client, stated=stated, groups=groups, persons=persons)
    return table.load(
        getattr(reader, "n_samples", None),  # the basis of an additive model was planned for the number that was known
        None if kind is None or width is None else width * kind.itemsize,
        partial(PartitionProgress, task) if tells_partitions(task) and persons is None else None,
    )


def planned_partitions(table: Any, facts: Facts, of_persons: bool) -> Partitions | None:
    """Return what a fit of a table would state about its partitions; None for a table in memory."""
    if not isinstance(table, Table):
        return None
    return public_partitions(table, facts, None if of_persons else number_of_chunks(facts.n_samples, facts.n_features))


def _refuse_early(task: Any, table: Table) -> None:
    """Refuse a solver that needs a table in memory before the table is read: that depends on no number of records or columns."""
    n_samples, n_features = table.shape
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the budget: the number of records may be another
            classes = task.planned_classes(None)[0]
            plan = task.plan_of(Facts(n_samples or USUAL[0], n_features or USUAL[1], classes=classes))
    except Exception:  # the plan of the table will say what is wrong
        return
    plan.refuse_partitions(task.kind, table.cache is not None)
