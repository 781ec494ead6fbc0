"""Learn the schema of a data frame with a privacy budget of its own, and map frames by it."""

from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skdp._data_validation import Partitions, TargetReader
from skdp._exported import Exported
from skdp._persons import taken_persons, without_number
from skdp._scikit_learn.copies import BoundToLedgers
from skdp._scikit_learn.pipelines import warn_of_learning_steps
from skdp._table_types import as_frame, as_table, is_lazy
from skdp._validation import check_option, check_random_state, check_truth, shown
from skdp.preprocessing._column_kinds import FURTHEST
from skdp.preprocessing._frame_facts import FrameFacts, warn_of_ids, warn_of_types
from skdp.preprocessing._learning import USUAL_SHARE, Learned, LearningPlan, in_words, learn, warn_of_unlearned
from skdp.preprocessing._pipeline import from_schema, names_of, unscaled
from skdp.privacy.budget import Budget, unit_of
from skdp.privacy.data.persons import SomeRows
from skdp.privacy.errors import silently
from skdp.privacy.ledger.charging import pay
from skdp.privacy.noise.source import NoiseSource
from skdp.privacy.report.statement import OTHER_FITS, PrivacyReport, assumed_of, foreign_class

TARGET = "every target is a finite number"
OUTPUTS = ("rows", "standardized", "units")
LIKELY = (2, 20)  # numbers of common categories of a column of text for which a step behind this one is planned


@dataclass(eq=False, repr=False)
class LearnedSchema(Exported, TransformerMixin, BoundToLedgers):
    r"""Learn bounds, scales and common categories of a data frame from noisy histograms, and map frames by them.

    The first release counts the cells of each column in bins that suit every unit: numbers by sign and binary exponent, text by a
    public hash of its spelling. The second counts numbers in narrow bins between the limits that the first one showed. The third
    does so with columns that are in one or two of these bins, because they are far from 0 for their spread. All that
    is learned follows from these releases: where a column is centred, how it is scaled, whether its scale is logarithmic, which
    integers and categories get an indicator, and whether missing cells are frequent.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of this transformer alone, beside that of the estimator which follows. A tenth of the squared budget of a
        fit is usually enough: ``epsilon=0.3`` beside an estimator with ``epsilon=1.0``.
    delta : float or None, default=None
        Privacy parameter in (0, 1); None means ``max(1 / n_samples**2, 1e-11)``.
    adjacency : {"replace_one", "zero_out"}, default="replace_one"
        Which tables are neighbours.
    privacy_unit : {"record", "person"}, default="record"
        What the guarantee protects: a single row, or all rows of a person; ``fit(X, persons=ids)`` then takes whose each row is.
    schema : dict or None, default=None
        What is known of some columns, by name. An entry is as in `from_schema`, and costs nothing; or it is a word: "category"
        for a column whose numbers are codes, "number" for text that holds numbers, "either" for text of which not even that is
        known, "ignore" for a column to leave out. The columns that it does not name are learned, as numbers or as text by their
        types.
    learn_target : bool, default=False
        Whether y holds numbers whose range is learned, too. It is ``schema_.target_bounds`` then.
    output : {"rows", "standardized", "units"}, default="rows"
        What `transform` returns. "rows" has rows of length at most 1, for estimators of skdp. "standardized" is the same without
        the division by a length: numbers around their centre in sizes of their core, at most 4 of them away, as after a
        ``StandardScaler``. "units" has numbers in the units of X, clipped to the learned limits, with gaps filled by the centre,
        as after a ``SimpleImputer``. In all of them, categories and missing cells have indicators, as after a ``OneHotEncoder``.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the noise inside `skdp.testing.reproducible_noise`; it changes nothing elsewhere.

    Attributes
    ----------
    schema_ : Schema
        What was learned, and what was given, for `from_schema`.
    learnt_ : dict
        For each learned column, its kind ("linear", "log", "integers", "constant", "undetermined" or "category"), and what the
        releases tell: limits, scale, share of missing cells, integers or number of categories. ``pandas.DataFrame(learnt_).T``
        is a table.
    privacy_report_ : PrivacyReport
        Guarantee, releases and noise.
    privacy_spent_ : PrivacySpent
        Spent epsilon and delta.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names.

    Raises
    ------
    TypeError, ValueError
        From ``fit``, for a table that is no data frame or parameters that are not valid, before anything is charged.

    See Also
    --------
    from_schema : Map frames by public facts, without a budget.

    Notes
    -----
    **Privacy.** A record adds 1 to one bin of every column, so its contribution to a release of d columns has norm
    :math:`\sqrt d`. All releases get Gaussian noise and compose exactly. Cells are read one by one with public rules, so that no
    record changes how another is read. ``transform`` maps each row by released facts. It returns rows of length at most 1: use
    ``data_norm=1`` for the estimator that follows.

    With d columns and :math:`\mu` of the budget, all that matters is :math:`s = \mu n / (k \sqrt{d / 10})`, where k is 1 for
    ``zero_out`` and :math:`\sqrt 2` for ``replace_one``. `plan` states it. From 120 on columns are learned fully,
    from 50 on in part.

    The cells of a column "either" are read one by one: a cell that is a number counts in its octave, another one in its bucket.
    The kind of the larger share is that of the column. So a file that is read as text needs no types, which single records may
    change.

    Categories are known by the bucket of their hash only: 256 buckets, which rare categories may share.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdp.preprocessing import LearnedSchema
    >>> hours = np.arange(100_000) % 24
    >>> calls = pd.DataFrame({"hour": hours, "length": 60.0 * np.exp(hours), "answered": np.where(hours % 3, "yes", "no")})
    >>> prepare = LearnedSchema(epsilon=0.5).fit(calls)
    >>> prepare.schema_.columns["hour"].bounds, prepare.schema_.columns["length"].scale
    ((0.0, 23.0), 'log')
    """

    _usual_share: ClassVar[float] = USUAL_SHARE  # of the squared Gaussian-DP parameter of a pipeline

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float | None = None
    adjacency: str = "replace_one"
    privacy_unit: str = "record"
    schema: Any = None
    learn_target: bool = False
    output: str = "rows"
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: text and missing values are allowed, and secure noise is not reproducible."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = NoiseSource().secure
        tags.input_tags.string = tags.input_tags.categorical = tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    @silently
    def fit(self, X: Any, y: Any = None, *, persons: Any = None) -> "LearnedSchema":
        """Learn the columns of a data frame.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features), or table in partitions
            Records, of pandas or polars; or a table of `skdp.data` or a Dask frame, whose releases have the same bits.
        y : array-like of shape (n_samples,), default=None
            Numbers to predict, read with ``learn_target=True`` only; None for a table of `skdp.data`, which has its own.
        persons : array-like of shape (n_samples,), str or None, default=None
            Whose each row is, with ``privacy_unit="person"``: an id per row, or the name of a column, which is not learned
            then; or a Dask series beside a Dask frame.

        Returns
        -------
        self
            The transformer.
        """
        warn_of_learning_steps()
        self._check_parameters()
        X, group = taken_persons(self.privacy_unit, type(self).__name__, as_table(X), y if self.learn_target else None, persons)
        del persons
        warn_of_ids(self.schema, X, unit=self.privacy_unit)
        if is_lazy(X):
            return self._fit_in_partitions(X, y, group)
        facts = FrameFacts.of(X, self.schema)
        with without_number(None if group is None else facts.n_samples):
            targets = TargetReader().check_target(y, facts.n_samples)[0] if self.learn_target else None
        if group is not None:
            facts = replace(facts, n_samples=group.n_persons)
        rows = facts.rows(X, targets, group)
        del X, y, targets, group  # no frame holds them from here on, but that of the caller
        return self._learn(facts, rows)

    def transform(self, X: Any) -> np.ndarray:
        """Map each row of a data frame by what was learned.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_features), or table in partitions
            Records; not changed.

        Returns
        -------
        ndarray of shape (n_samples, n_features_out), or table in partitions
            The rows, as ``output`` says; those of a table in partitions are mapped when they are read.
        """
        check_is_fitted(self, "schema_")
        X = as_table(X)
        warn_of_types(self.schema_, X)
        return self._preparation().fit_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return the names of the prepared columns.

        Parameters
        ----------
        input_features : object, default=None
            Ignored: the names are those of the frame that was learned.

        Returns
        -------
        ndarray of str
            The names.
        """
        check_is_fitted(self, "schema_")
        return names_of(self._preparation(), self.schema_)

    def to_schema(self) -> dict[str, Any]:
        """Return what was learned as the content of a schema, which can be edited, written as JSON, and given to `from_schema`.

        Returns
        -------
        dict
            Columns, and the range of the target if it was learned.
        """
        check_is_fitted(self, "schema_")
        return self.schema_.to_dict()

    def plan(self, n_samples: Any, n_features: int | None = None) -> PrivacyReport:
        """Return the report of a fit, and how well it will learn the columns, before any data is touched.

        Parameters
        ----------
        n_samples : int, DataFrame or Table
            Number of records; or a frame, of which only the number of records and the names and types of its columns are read; or
            a table in partitions that knows them, such as one of Parquet files.
        n_features : int or None, default=None
            Number of columns to learn, which count as numbers; None if a frame is given.

        Returns
        -------
        PrivacyReport
            Spent budget, releases and noise.
        """
        self._check_parameters()
        n_samples = as_frame(n_samples)
        warn_of_ids(self.schema, n_samples, unit=self.privacy_unit)
        if is_lazy(n_samples):
            facts = _facts_of_table(n_samples, self.schema)
        elif hasattr(n_samples, "columns"):
            facts = FrameFacts.of(n_samples, self.schema)
        else:
            for name, value, least in (("n_samples", n_samples, 2), ("n_features", n_features, 1)):
                if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
                    raise ValueError(f"{name}={shown(value)}; expected an integer from {least} on, or a data frame as n_samples.")
            names = tuple(f"x{place}" for place in range(int(n_features)))  # type: ignore[arg-type]
            facts = FrameFacts(int(n_samples), names, {}, dict.fromkeys(names, False), typed=True)
        return self._report(self._plan(facts), facts, NoiseSource(), planned=True)

    def _facts_of_output(self) -> dict[str, Any]:
        """Return public facts about the rows that `transform` returns, as parameters of the estimator that follows."""
        if self.output == "rows":
            return {"data_norm": 1.0, "feature_bounds": 1.0}
        schema = getattr(self, "schema_", None)
        if self.output == "standardized" or schema is None:  # before the fit, limits are not known
            length = 1.0 if schema is None else schema.data_norm  # of a typical row; longer ones are shortened
            return {"feature_bounds": FURTHEST, **({"data_norm": length} if self.output == "standardized" else {})}
        ends = {name: column.ends for name, column in schema.columns.items() if column.ends is not None}
        bounds = {name: (low, high) if low < high else (low - 1, high + 1) for name, (low, high) in ends.items()}
        return {"feature_bounds": [bounds.get(name, (0.0, 1.0)) for name in self.get_feature_names_out()]}

    def _preparation(self) -> Any:
        """Return what maps tables, by what was learned."""
        return from_schema(self.schema_) if self.output == "rows" else unscaled(self.schema_, self.output == "units")

    def _likely_widths(self, X: Any, n_features: int | None = None) -> list[int]:
        """Return likely numbers of columns that `transform` returns, for few and for many categories of text."""
        if X is None:
            return [int(n_features or 1)]
        facts = FrameFacts.of(X, self.schema)
        return [facts.likely(of_text).n_features for of_text in LIKELY]

    def _check_parameters(self) -> None:
        unit_of(self.privacy_unit)
        check_random_state(self.random_state)
        check_truth("learn_target", self.learn_target)
        check_option("output", self.output, OUTPUTS)

    def _fit_in_partitions(self, X: Any, y: Any, persons: SomeRows | None) -> "LearnedSchema":
        from skdp.data._cells import CellReader, loaded_cells, typed_columns  # which imports this package

        facts = FrameFacts.of(typed_columns(X), self.schema)
        reader = CellReader(facts, TargetReader().check_target if self.learn_target else None)
        with loaded_cells(X, y, reader, bool(self.learn_target), persons=persons) as cells:
            del X, y
            return self._learn(replace(facts, n_samples=cells.rows.n_samples), cells.rows, cells.partitions)

    def _learn(self, facts: FrameFacts, rows: Any, partitions: Partitions | None = None) -> "LearnedSchema":
        """Pay for the releases, make them, and set all attributes."""
        plan, noise = self._plan(facts), NoiseSource(self.random_state)
        statement = self._report(plan, facts, noise, partitions=partitions)
        plan.warn_of_low_signal()
        pay(plan.cost.spending(statement.estimator, statement.public["parameters"], noise), self._ledgers)
        oracle = plan.oracle(rows, noise)
        del rows
        learned = learn(oracle.ask, plan)
        oracle.finish()
        self._commit(self._attributes(facts, learned, statement))
        warn_of_unlearned(learned, plan)
        return self

    def _plan(self, facts: FrameFacts) -> LearningPlan:
        budget = Budget.from_parameters(self.epsilon, self.delta, self.adjacency, facts.n_samples, self.privacy_unit)
        return LearningPlan.make(facts, bool(self.learn_target), budget)

    def _report(
        self,
        plan: LearningPlan,
        facts: FrameFacts,
        noise: NoiseSource,
        planned: bool = False,
        partitions: Partitions | None = None,
    ) -> PrivacyReport:
        return plan.cost.report(
            type(self).__name__,
            planned=planned,
            reproducible_noise=not noise.secure,
            solver="histograms",
            solver_title="joint histograms of all columns, by octave and by hash bucket, then in narrow bins",
            solver_reason="the only one; the squared budget is split by the numbers of columns and of columns of numbers",
            noise_size=plan.outlook,
            public={
                plan.budget.number: plan.n_samples,
                "n_features": len(facts.names),
                **({} if partitions is None else partitions.stated(plan.schedule.passes)),
                "read_as": facts.read_as,
                "parameters": {name: shown(value) for name, value in self.get_params().items() if name != "random_state"},
                "n_releases": len(plan.schedule),
                "passes": plan.schedule.passes,
            },
            assumptions=(
                *facts.assumptions,
                *([TARGET] if plan.target else []),
                OTHER_FITS,
                *assumed_of(plan.budget.unit),
                *([] if partitions is None else [partitions.trusted]),
                *filter(None, [foreign_class(self)]),
            ),
        )

    def _attributes(self, facts: FrameFacts, learned: Learned, statement: PrivacyReport) -> dict[str, Any]:
        """Return all attributes of the fitted transformer, from releases and public facts only."""
        schema, rows = facts.schema(learned), learned.described()
        return {
            "n_features_in_": len(facts.names),
            "feature_names_in_": np.array(facts.names, dtype=object),
            "schema_": schema,
            "learnt_": rows,
            "privacy_report_": replace(statement, learned=in_words(rows)),
            "privacy_spent_": statement.spent,
        }


def _facts_of_table(X: Any, schema: Any) -> FrameFacts:
    from skdp.data._cells import typed_columns

    columns = typed_columns(X)
    if columns.n_samples is None:
        raise ValueError("The table does not tell its number of records; expected plan(n_samples, n_features).")
    return FrameFacts.of(columns, schema)
