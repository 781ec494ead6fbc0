"""Test warnings about meta-estimators that leave the guarantee, and the refusal of searches that exceed a ledger."""

import inspect
import math
import re
import sys
import warnings

import numpy as np
import pytest
import sklearn
from joblib import parallel_config
from marks import slow
from packaging.version import Version
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.impute import IterativeImputer
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    HalvingRandomSearchCV,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.discovery import all_estimators

from skdp import DPGroupDROClassifier, DPLinearRegression, DPLinearSVC, DPLogisticRegression, PrivacyLedger
from skdp.inspection import check_pipeline
from skdp.model_selection import DPGridSearchCV
from skdp.preprocessing import BoundedScaler, LearnedSchema
from skdp.privacy.accounting.gaussian_dp import gaussian_epsilon, gaussian_mu
from skdp.privacy.errors import BudgetExceededError, OutsideGuaranteeWarning

N = 200
X, Y = np.random.default_rng(0).normal(size=(N, 3)), np.arange(N) % 2
MODEL = DPLogisticRegression(delta=1e-6, classes=[0, 1])
ANY = DPLogisticRegression(delta=1e-6)
NUMBERS = DPLinearRegression(delta=1e-6, target_bounds=(0, 1))
GRID = {"alpha": [0.1, 0.2, 0.3, 0.4]}


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "ledger.db", epsilon=10.0, delta=1e-5)


def warned(work):
    """Messages about the guarantee, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    return sorted({str(each.message) for each in caught if issubclass(each.category, OutsideGuaranteeWarning)})


@pytest.mark.each_value
@pytest.mark.parametrize("n_jobs", (None, 2))
@pytest.mark.parametrize(
    ("meta", "words"),
    (
        (
            lambda jobs: StackingClassifier([("a", ANY)], cv=KFold(2), n_jobs=jobs),
            "StackingClassifier learns its final",
        ),
        (
            lambda jobs: StackingRegressor([("a", NUMBERS)], cv=KFold(2), n_jobs=jobs),
            "StackingRegressor learns its final",
        ),
        (lambda jobs: CalibratedClassifierCV(MODEL, cv=KFold(2), n_jobs=jobs), "CalibratedClassifierCV learns"),
        (
            lambda jobs: CalibratedClassifierCV(make_pipeline(BoundedScaler((-1, 1)), MODEL), cv=KFold(2), n_jobs=jobs),
            "CalibratedClassifierCV learns",
        ),
        (lambda jobs: TunedThresholdClassifierCV(MODEL, cv=KFold(2), n_jobs=jobs), "TunedThresholdClassifierCV learns"),
        (lambda jobs: RANSACRegressor(NUMBERS, min_samples=50, max_trials=1), "RANSACRegressor learns which records"),
        (lambda jobs: SelfTrainingClassifier(MODEL), "SelfTrainingClassifier learns labels"),
        (lambda jobs: OneVsOneClassifier(MODEL), "OneVsOneClassifier learns the number of records"),
        (lambda jobs: RFECV(MODEL, cv=KFold(2), n_jobs=jobs), "RFECV learns which columns to keep"),
        (
            lambda jobs: SequentialFeatureSelector(MODEL, n_features_to_select=1, cv=KFold(2), n_jobs=jobs),
            "SequentialFeatureSelector learns which columns",
        ),
    ),
)
def test_second_stages_that_learn_without_privacy_warn(meta, words, n_jobs):
    (message,) = warned(lambda: meta(n_jobs).fit(X, Y))
    assert message.startswith(words) and "without privacy" in message


def test_records_that_are_drawn_twice_warn():
    (message,) = warned(lambda: BaggingClassifier(ANY, 2).fit(X, Y))
    assert "BaggingClassifier draws records with replacement" in message and "bootstrap=False" in message


@pytest.mark.parametrize(
    "meta",
    (
        VotingClassifier([("a", MODEL)]),
        BaggingClassifier(make_pipeline(BoundedScaler((-1, 1)), MODEL), 2, bootstrap=False),
        StackingClassifier([("a", MODEL)], ANY, cv=KFold(2)),
    ),
)
def test_labels_that_are_numbered_by_occurrence_warn_where_classes_are_stated(meta):
    (message,) = warned(lambda: meta.fit(X, Y))
    assert f"{type(meta).__name__} numbers the labels that occur" in message and "Use classes=None" in message


@pytest.mark.skipif(Version(sklearn.__version__) < Version("1.8"), reason="older ones refuse weights that members do not take")
@pytest.mark.parametrize("n_jobs", (None, 2))
def test_records_that_are_drawn_by_weights_warn(n_jobs):
    """One record's weight decides which others a member sees."""
    bag = BaggingClassifier(ANY, 2, bootstrap=False, max_samples=0.1, n_jobs=n_jobs)
    with parallel_config("threading"):
        (message,) = warned(lambda: bag.fit(X, Y, sample_weight=np.linspace(1, 2, N)))
    assert "BaggingClassifier draws records by sample_weight" in message


@pytest.mark.slow
@pytest.mark.parametrize(
    "meta",
    (
        StackingClassifier([("a", ANY)], ANY, cv=KFold(2)),
        StackingClassifier([("a", ANY)], make_pipeline(BoundedScaler((-1, 1)), ANY), cv=KFold(2)),
        BaggingClassifier(ANY, 2, bootstrap=False),
        VotingClassifier([("a", ANY)]),
        GridSearchCV(MODEL, GRID, cv=KFold(2)),
        MODEL,
    ),
    ids=lambda meta: type(meta).__name__,
)
def test_what_the_guarantee_covers_does_not_warn(meta, ledger):
    assert warned(lambda: meta.fit(X, Y)) == []
    with ledger:
        assert warned(lambda: meta.fit(X, Y)) == []


@pytest.mark.slow
@pytest.mark.parametrize("cv", (3, *slow(None, StratifiedKFold(3))), ids=str)
def test_stratified_folds_inside_a_ledger_warn(cv, ledger):
    meta = (
        lambda: GridSearchCV(MODEL, {"alpha": [0.1]}, cv=cv).fit(X, Y),
        lambda: StackingClassifier([("a", ANY)], ANY, cv=cv).fit(X, Y),
        lambda: cross_validate(MODEL, X, Y, cv=cv),
        lambda: cross_val_score(MODEL, X, Y, cv=cv),
    )
    for work in meta:
        assert warned(work) == []
        with PrivacyLedger(epsilon=20, delta=1e-5):
            (message,) = warned(work)
        assert "is stratified" in message and "cv=KFold(...)" in message


@pytest.mark.slow
@pytest.mark.parametrize("cv", (KFold(3), [(np.arange(100), np.arange(100, 200))] * 2), ids=("KFold", "list"))
def test_other_folds_do_not(cv, ledger):
    with ledger:
        assert warned(lambda: cross_validate(MODEL, X, Y, cv=cv)) == []
        assert warned(lambda: GridSearchCV(MODEL, {"alpha": [0.1]}, cv=cv).fit(X, Y)) == []
    with PrivacyLedger(epsilon=20, delta=1e-5):  # for numbers an integer is no stratified split
        assert warned(lambda: GridSearchCV(NUMBERS, {"alpha": [0.1]}, cv=3).fit(X, Y)) == []


@pytest.mark.slow
def test_a_chain_without_folds_does_not(ledger):
    with ledger:
        assert warned(lambda: ClassifierChain(MODEL).fit(X, np.c_[Y, 1 - Y])) == []
        (message,) = warned(lambda: ClassifierChain(MODEL, cv=2).fit(X, np.c_[Y, 1 - Y]))
    assert "cv=2 of ClassifierChain is stratified" in message


def test_folds_from_a_generator_are_left_for_the_search(ledger):
    with ledger:
        search = GridSearchCV(MODEL, {"alpha": [0.1]}, cv=KFold(3).split(X)).fit(X, Y)
    assert search.n_splits_ == 3 and len(ledger.entries) == 4


Y2 = np.c_[Y, 1 - Y]
T = Y.astype(float)
HOLES = np.where(np.arange(N)[:, None] == [0, 1, 2], np.nan, X)
THREE = np.arange(N) % 3
# Every class of scikit-learn that holds estimators, with what it does around a private one. "safe": all that it keeps follows
# from private fits and public facts. "warned": it keeps more, and the fit says so. "refused": it fits no estimator of skdp.
# "guide": it keeps exact scores, as the guide says of all scores. "holds": it passes records on, and each step is judged alone.
METAS = {
    "AdaBoostClassifier": ("refused", lambda: AdaBoostClassifier(MODEL).fit(X, Y)),
    "AdaBoostRegressor": ("warned", lambda: AdaBoostRegressor(NUMBERS, n_estimators=2).fit(X, T)),
    "BaggingClassifier": ("warned", lambda: BaggingClassifier(ANY, 2).fit(X, Y)),
    "BaggingRegressor": ("warned", lambda: BaggingRegressor(NUMBERS, 2).fit(X, T)),
    "CalibratedClassifierCV": ("warned", lambda: CalibratedClassifierCV(MODEL, cv=KFold(2)).fit(X, Y)),
    "ClassifierChain": ("safe", lambda: ClassifierChain(ANY).fit(X, Y2)),
    "ColumnTransformer": ("holds", None),
    "FeatureUnion": ("holds", None),
    "FixedThresholdClassifier": ("safe", lambda: FixedThresholdClassifier(MODEL).fit(X, Y)),
    "FrozenEstimator": ("holds", None),
    "GridSearchCV": ("guide", lambda: GridSearchCV(MODEL, {"alpha": [0.1]}, cv=KFold(2)).fit(X, Y)),
    "HalvingGridSearchCV": ("guide", lambda: HalvingGridSearchCV(MODEL, {"alpha": [0.1]}, cv=KFold(2)).fit(X, Y)),
    "HalvingRandomSearchCV": ("guide", lambda: HalvingRandomSearchCV(MODEL, {"alpha": [0.1]}, cv=KFold(2)).fit(X, Y)),
    "IterativeImputer": ("warned", lambda: IterativeImputer(NUMBERS, max_iter=1).fit(HOLES)),
    "LinearDiscriminantAnalysis": ("refused", lambda: LinearDiscriminantAnalysis("lsqr", covariance_estimator=NUMBERS).fit(X, Y)),
    "MultiOutputClassifier": ("safe", lambda: MultiOutputClassifier(ANY).fit(X, Y2)),
    "MultiOutputRegressor": ("safe", lambda: MultiOutputRegressor(NUMBERS).fit(X, Y2)),
    "OneVsOneClassifier": ("warned", lambda: OneVsOneClassifier(ANY).fit(X, THREE)),
    "OneVsRestClassifier": ("safe", lambda: OneVsRestClassifier(ANY).fit(X, THREE)),
    "OutputCodeClassifier": ("safe", lambda: OutputCodeClassifier(ANY, random_state=0).fit(X, THREE)),
    "Pipeline": ("holds", None),
    "QuadraticDiscriminantAnalysis": (
        "refused",
        lambda: QuadraticDiscriminantAnalysis(solver="eigen", covariance_estimator=NUMBERS).fit(X, Y),
    ),
    "RANSACRegressor": ("warned", lambda: RANSACRegressor(NUMBERS, min_samples=50, max_trials=1).fit(X, T)),
    "RFE": ("safe", lambda: RFE(MODEL, n_features_to_select=2).fit(X, Y)),
    "RFECV": ("warned", lambda: RFECV(MODEL, cv=KFold(2)).fit(X, Y)),
    "RandomizedSearchCV": ("guide", lambda: RandomizedSearchCV(MODEL, {"alpha": [0.1]}, n_iter=1, cv=KFold(2)).fit(X, Y)),
    "RegressorChain": ("safe", lambda: RegressorChain(NUMBERS).fit(X, Y2)),
    "SelectFromModel": ("safe", lambda: SelectFromModel(MODEL).fit(X, Y)),
    "SelfTrainingClassifier": ("warned", lambda: SelfTrainingClassifier(MODEL).fit(X, Y)),
    "SequentialFeatureSelector": (
        "warned",
        lambda: SequentialFeatureSelector(MODEL, n_features_to_select=1, cv=KFold(2)).fit(X, Y),
    ),
    "StackingClassifier": ("warned", lambda: StackingClassifier([("a", ANY)], cv=KFold(2)).fit(X, Y)),
    "StackingRegressor": ("warned", lambda: StackingRegressor([("a", NUMBERS)], cv=KFold(2)).fit(X, T)),
    "TransformedTargetRegressor": ("safe", lambda: TransformedTargetRegressor(NUMBERS).fit(X, T)),
    "TunedThresholdClassifierCV": ("warned", lambda: TunedThresholdClassifierCV(MODEL, cv=KFold(2)).fit(X, Y)),
    "VotingClassifier": ("safe", lambda: VotingClassifier([("a", ANY)]).fit(X, Y)),
    "VotingRegressor": ("safe", lambda: VotingRegressor([("a", NUMBERS)]).fit(X, T)),
}
HOLD = {"estimator", "estimators", "base_estimator", "classifier", "regressor", "steps", "transformers", "transformer_list"}


def holds(kind):
    return any(name in HOLD or name.endswith("_estimator") for name in inspect.signature(kind).parameters)


def test_every_class_of_scikit_learn_that_holds_estimators_is_known():
    """One that a new version brings is looked at before it passes in silence."""
    found = {name for name, kind in all_estimators() if holds(kind)}
    assert found - set(METAS) == set()
    assert set(METAS) - found <= {"QuadraticDiscriminantAnalysis"}  # the oldest version has no covariance_estimator there


@pytest.mark.parametrize("name", [name for name, (verdict, _) in METAS.items() if verdict != "holds"])
def test_what_each_does_around_a_private_one(name):
    verdict, fit = METAS[name]
    if verdict == "refused":
        with pytest.raises((TypeError, ValueError, AttributeError)), PrivacyLedger(epsilon=10, delta=1e-5) as ledger:
            fit()
        assert name != "AdaBoostClassifier" or not ledger.entries
        return
    made = []
    messages = warned(lambda: made.append(fit()))
    check, (meta,) = check_pipeline(made[0]), made
    if verdict == "warned":
        assert len(messages) == 1 and messages[0].startswith(f"{name} ") and " Use " in messages[0]
    else:
        assert messages == []
    assert (name.lower() in check.leaks) is (verdict in ("warned", "guide"))
    if verdict == "safe" and hasattr(meta, "predict"):
        assert check.ok


@pytest.mark.parametrize("name", [name for name, (_, fit) in METAS.items() if fit and "Discriminant" not in name])
def test_our_searches_take_those_alone_that_are_safe_and_fit_once(name, monkeypatch):
    made = []
    monkeypatch.setattr(getattr(sys.modules[__name__], name), "fit", lambda self, *given: made.append(self) or self)
    METAS[name][1]()
    monkeypatch.undo()
    with PrivacyLedger(epsilon=10, delta=1e-5) as ledger:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", OutsideGuaranteeWarning)
                DPGridSearchCV(made[0], {}, epsilon=2.0, delta=1e-6).fit(X, Y)
        except (TypeError, ValueError) as error:
            assert not ledger.entries and str(error)
        else:
            assert name in ("FixedThresholdClassifier", "VotingClassifier", "OneVsRestClassifier")


@pytest.mark.parametrize("n_jobs", (None, 2))
@pytest.mark.parametrize(
    ("search", "n_fits"),
    (
        (GridSearchCV(MODEL, GRID, cv=KFold(3)), 13),
        (GridSearchCV(make_pipeline(BoundedScaler((-1, 1)), MODEL), {"dplogisticregression__alpha": [0.1, 0.2]}, cv=KFold(4)), 9),
        (GridSearchCV(MODEL, {"epsilon": [0.2, 3.0]}, cv=KFold(3), refit=False), 6),
        (RandomizedSearchCV(MODEL, GRID, n_iter=2, cv=KFold(4)), 9),
        (HalvingGridSearchCV(MODEL, GRID, cv=KFold(3)), 13),
        (HalvingRandomSearchCV(MODEL, GRID, n_candidates=2, cv=KFold(4)), 9),
    ),
    ids=("grid", "pipeline", "epsilons", "random", "halving", "halving random"),
)
def test_a_search_without_room_is_refused_before_its_first_fit(search, n_fits, n_jobs, tmp_path):
    ledger = PrivacyLedger(tmp_path / "small.db", epsilon=1.5, delta=1e-5)
    with ledger, pytest.raises(BudgetExceededError, match=f"{n_fits} times") as refusal:
        search.set_params(n_jobs=n_jobs).fit(X, Y)
    assert ledger.entries == ()
    assert "Nothing was charged" in str(refusal.value)
    assert refusal.value.epsilon_left == ledger.epsilon_left(n_fits=n_fits) > 0
    assert re.search(r"\.py|\d{4,}\.\d", str(refusal.value)) is None


@pytest.mark.slow
def test_a_search_with_just_enough_room_ends_and_can_be_repeated_once_there_is_room_again(tmp_path):
    """Its refit, and a second search that has no room, are told from the first one."""
    ledger = PrivacyLedger(tmp_path / "exact.db", epsilon=1.5, delta=1e-5)
    model = MODEL.__sklearn_clone__().set_params(delta=1e-5, epsilon=ledger.epsilon_left(n_fits=7))
    search = GridSearchCV(model, {"alpha": [0.1, 0.2]}, cv=KFold(3))
    with ledger:
        search.fit(X, Y)
        assert len(ledger.entries) == 7
        with pytest.raises(BudgetExceededError, match="7 times"):
            search.fit(X, Y)
    assert len(ledger.entries) == 7
    with PrivacyLedger(epsilon=1.5, delta=1e-5) as other:
        search.fit(X, Y)
    assert len(other.entries) == 7


@pytest.mark.slow
def test_searches_by_halving_with_room_end(ledger):
    """Those that say in advance how many fits they make, and those that do not."""
    model = MODEL.__sklearn_clone__().set_params(epsilon=0.2)
    with ledger:
        HalvingGridSearchCV(model, GRID, cv=KFold(2), min_resources=50).fit(X, Y)
        HalvingRandomSearchCV(model, GRID, cv=KFold(2), min_resources=100).fit(X, Y)
        HalvingGridSearchCV(model, {"alpha": [0.1, 0.2]}, cv=KFold(2), resource="epsilon", max_resources=2).fit(X, Y)
    assert len(ledger.entries) > 20


@pytest.mark.slow
def test_no_search_is_refused_that_a_ledger_has_room_for(ledger):
    """Sampled fits, and epsilons of many sizes: the check is a bound from below."""
    for estimator, grid in (
        (DPLogisticRegression(delta=1e-6, classes=[0, 1], solver="sgd"), {"alpha": [0.1, 0.2]}),
        (MODEL, {"epsilon": [0.1, 1.0, 2.0]}),
    ):
        with PrivacyLedger(epsilon=10, delta=1e-5) as room:
            GridSearchCV(estimator, grid, cv=KFold(2), refit=False).fit(X, Y)
        spent = room.summary().spent_epsilon
        with PrivacyLedger(epsilon=spent * 1.02, delta=1e-5):
            GridSearchCV(estimator, grid, cv=KFold(2), refit=False).fit(X, Y)


def test_groups_that_are_missing_warn():
    model = DPGroupDROClassifier(8.0, delta=1e-6, classes=[0, 1], data_norm=2.0)
    with pytest.warns(UserWarning, match="groups=None: all records are one group"):
        model.fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, Y, groups=np.arange(N) // 2 % 2)


def piped(**given):
    return make_pipeline(BoundedScaler((-1, 1)), MODEL.__sklearn_clone__().set_params(**given))


LARGE = [MODEL.__sklearn_clone__().set_params(epsilon=1.3), DPLinearSVC(1.3, delta=1e-6, classes=[0, 1])]
OWN_BUDGETS = {
    "steps": (GridSearchCV(piped(epsilon=0.1), {"dplogisticregression": LARGE}, cv=KFold(3)), 7),
    "a step of theirs": (
        GridSearchCV(piped(epsilon=0.1), {"dplogisticregression": LARGE[:1], "dplogisticregression__epsilon": [0.1, 1.3]}),
        11,
    ),
    "models": (GridSearchCV(VotingClassifier([("a", ANY)]), {"a": [piped(epsilon=1.3), "drop"]}, cv=KFold(4)), 5),
    "two in a pipeline": (
        GridSearchCV(make_pipeline(LearnedSchema(0.7, delta=1e-6), piped(epsilon=0.7)), {"pipeline__boundedscaler": [None]}),
        12,
    ),
}


@pytest.mark.parametrize("name", OWN_BUDGETS)
def test_a_search_counts_each_candidate_with_its_own_budget(name):
    search, n_fits = OWN_BUDGETS[name]
    with PrivacyLedger(epsilon=2.0, delta=1e-6) as small:
        with warnings.catch_warnings(), pytest.raises(BudgetExceededError, match=f"{n_fits} times"):
            warnings.simplefilter("ignore", OutsideGuaranteeWarning)
            search.fit(X, Y)
        assert small.entries == ()


@pytest.mark.slow
def test_the_refit_counts_with_the_largest_budget():
    room = gaussian_epsilon(math.sqrt(3.5) * gaussian_mu(1.3, 1e-6), 1e-6)  # for the folds, and half a refit
    with PrivacyLedger(epsilon=room, delta=1e-6) as small:
        with pytest.raises(BudgetExceededError, match="7 times"):
            GridSearchCV(MODEL, {"epsilon": [0.1, 1.3]}, cv=KFold(3)).fit(X, Y)
        GridSearchCV(MODEL, {"epsilon": [0.1, 1.3]}, cv=KFold(3), refit=False).fit(X, Y)
    assert len(small.entries) == 6


@pytest.mark.slow
def test_candidates_that_cost_less_than_the_estimator_are_not_refused():
    search = GridSearchCV(piped(epsilon=1.9), {"dplogisticregression": [MODEL.__sklearn_clone__().set_params(epsilon=0.1)]})
    with PrivacyLedger(epsilon=2.0, delta=1e-6) as small:
        search.set_params(cv=KFold(3)).fit(X, Y)
        assert len(small.entries) == 4
        drawn = RandomizedSearchCV(search.estimator, search.param_grid, n_iter=1, cv=KFold(3), random_state=0)
        drawn.fit(X, Y)  # what it draws is not known before
        assert len(small.entries) == 8
