"""Progress: one tick per release, printed or through scikit-learn's callbacks, and what callbacks may see."""

from io import StringIO
from threading import enumerate as enumerate_threads

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils.fixes import parse_version

from skdp import DPLogisticRegression, DPTabularClassifier, DPTabularRegressor, OutsideGuaranteeWarning, _progress
from skdp._progress import Progress
from skdp.data import chunks, npy
from skdp.model_selection import DPGridSearchCV
from skdp.privacy.data import summation
from skdp.solvers import GradientDescent

HAS_CALLBACKS = parse_version(sklearn.__version__) >= parse_version("1.9")
needs_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has callbacks from 1.9 on")
X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
STEPS = 25


def estimator(**given):
    return DPLogisticRegression(solver=GradientDescent(STEPS), **given)


@pytest.mark.parametrize("verbose, lines", ((0, 0), (False, 0), (1, 13), (2, 25)))
def test_verbose_counts_releases(verbose, lines, capsys):
    estimator(verbose=verbose).fit(X, y)
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == lines
    if lines:
        assert printed[-1] == "[DPLogisticRegression] 25 of 25 releases"


class Terminal(StringIO):
    """Keeps what is written to it."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    "verbose, terminal, seconds, shown",
    ((None, True, 0.0, True), (None, True, 1e3, False), (None, False, 0.0, False), (0, True, 0.0, False), (1, True, 0.0, False)),
)
def test_a_long_fit_shows_a_bar_on_a_terminal(verbose, terminal, seconds, shown, monkeypatch, capsys):
    """By default; it is wiped at the end."""
    written = Terminal() if terminal else StringIO()
    monkeypatch.setattr(_progress.sys, "stderr", written)
    monkeypatch.setattr(_progress, "PATIENCE", seconds)
    monkeypatch.setattr(_progress, "REFRESH", 0.0)
    estimator(**({} if verbose is None else {"verbose": verbose})).fit(X, y)
    states = [state for state in written.getvalue().split("\r") if state]
    assert bool(states) == shown and (capsys.readouterr().out == "") == (verbose != 1)
    if shown:
        assert len(states) == STEPS and states[9].startswith(f"[DPLogisticRegression] [{12 * '#'}{18 * '.'}] 10 of 25 releases")
        assert not states[-1].strip() and len(states[-1]) >= len(states[-2])


@pytest.mark.slow
def test_trials_of_a_search_show_no_bar(monkeypatch):
    """Their number is secret."""
    monkeypatch.setattr(_progress.sys, "stderr", written := Terminal())
    monkeypatch.setattr(_progress, "PATIENCE", 0.0)
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (2000, 2))
    model = DPLogisticRegression(feature_bounds=1.0, solver=GradientDescent(3))
    search = DPGridSearchCV(model, {"alpha": [0.01, 0.1]}, epsilon=3.0, delta=1e-6)
    search.fit(rows, (rows[:, 0] > 0).astype(int))
    assert written.getvalue() == ""


class Recorder:
    """Follows scikit-learn's protocol for callbacks and asks for no data."""

    def __init__(self):
        self.ends, self.contexts = 0, []

    def setup(self, estimator, context):
        self.contexts.append(context)

    def teardown(self, estimator, context):
        self.contexts.append("torn down")

    def on_fit_task_begin(self, estimator, context):
        """Nothing to do."""

    def on_fit_task_end(self, estimator, context):
        self.ends += context.parent is not None


class Propagated(Recorder):
    """A recorder that scikit-learn hands on to the parts of an estimator."""

    max_propagation_depth = None


class Keeper(Recorder):
    """Keeps the model that callbacks get."""

    def on_fit_task_end(self, estimator, context, *, fitted_estimator):
        super().on_fit_task_end(estimator, context)
        self.model, self.name = fitted_estimator, type(estimator).__name__


@needs_callbacks
def test_callbacks_get_one_task_per_release(recwarn):
    recorder = Recorder()
    estimator(feature_bounds=4.0).set_callbacks(recorder).fit(X, y)
    assert recorder.ends == recorder.contexts[0].max_subtasks == STEPS
    assert recorder.contexts[-1] == "torn down"
    assert not recwarn.list


@needs_callbacks
def test_progress_bar_of_scikit_learn(capsys):
    from sklearn.callback import ProgressBar

    estimator().set_callbacks(ProgressBar()).fit(X, y)
    assert "DPLogisticRegression - fit" in capsys.readouterr().out


def tabular(kind, given, form):
    """Return an estimator that chooses another one, and a table; 3 of 5 records are of the first class."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.uniform(-1, 1, 2000), "b": rng.uniform(-1, 1, 2000)})
    target = (frame["a"] > 0.2).astype(int).to_numpy()
    model = kind(**given, feature_bounds=None if form == "frame" else 1.0)
    return model, *((frame, target) if form == "frame" else (frame.to_numpy(), target))


CHOOSERS = [(DPTabularClassifier, {"classes": [0, 1]}), (DPTabularRegressor, {"target_bounds": (0, 1)})]


@pytest.mark.slow
@pytest.mark.each_value
@needs_callbacks
@pytest.mark.parametrize("form", ("array", "frame", "chunks"))
@pytest.mark.parametrize("kind, given", CHOOSERS)
def test_callbacks_of_an_estimator_that_chooses_another_one(kind, given, form, recwarn):
    """They are set up and torn down once, and get a task per release and the model that the fit returns."""
    model, rows, target = tabular(kind, given, form)
    keeper, table = Keeper(), (chunks(lambda: [(rows, target)]),) if form == "chunks" else (rows, target)
    model.set_callbacks(keeper).fit(*table)
    assert keeper.contexts[-1] == "torn down" and len(keeper.contexts) == 2
    assert keeper.ends == keeper.contexts[0].max_subtasks > 1 and keeper.name == kind.__name__
    assert np.array_equal(keeper.model.predict(rows), model.predict(rows))
    assert keeper.model.privacy_report_ == model.privacy_report_ and type(keeper.model) is kind
    assert [name for name in vars(model) if "callback" in name] == ["_skl_callbacks"]
    assert not [name for name in vars(model.estimator_) if "callback" in name or name == "_chosen_by"]
    assert not [w for w in recwarn if "callback" in str(w.message)]


@pytest.mark.slow
@needs_callbacks
@pytest.mark.parametrize("kind, given", CHOOSERS)
def test_a_pipeline_hands_callbacks_on_to_an_estimator_that_chooses(kind, given):
    model, rows, target = tabular(kind, given, "array")
    recorder = Propagated()
    pipeline = make_pipeline(model).set_callbacks(recorder).fit(rows, target)
    assert recorder.contexts[-1] == "torn down" and len(recorder.contexts) == 2
    assert recorder.ends == model.privacy_report_.public["n_releases"] + 1
    assert not [name for part in (model, model.estimator_) for name in vars(part) if "callback" in name]
    assert pipeline[-1] is model


@pytest.mark.slow
@needs_callbacks
@pytest.mark.parametrize("kind, given", CHOOSERS)
def test_progress_bar_of_an_estimator_that_chooses_ends_with_the_fit(kind, given, capsys):
    from sklearn.callback import ProgressBar

    model, rows, target = tabular(kind, given, "array")
    before = enumerate_threads()
    model.set_callbacks(ProgressBar()).fit(rows, target)
    assert f"{kind.__name__} - fit" in capsys.readouterr().out
    assert all(thread.daemon or thread in before for thread in enumerate_threads())  # the process can end


@needs_callbacks
@pytest.mark.parametrize("kind, given", CHOOSERS)
def test_a_refused_fit_of_an_estimator_that_chooses_tears_callbacks_down(kind, given):
    model, rows, target = tabular(kind, given, "array")
    recorder = Interrupts()
    model.set_callbacks(recorder)
    with pytest.raises(KeyboardInterrupt, match="its budget stays spent"):
        model.fit(rows, target)
    assert recorder.contexts[-1] == "torn down" and not hasattr(model, "estimator_")


@needs_callbacks
def test_callbacks_that_read_the_data_work_and_warn():
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="accuracy")
    model = estimator().set_callbacks(monitor)
    with pytest.warns(OutsideGuaranteeWarning, match="ScoringMonitor"):
        model.fit(X, y)
    assert monitor.get_logs().data[-1]["accuracy"] == model.score(X, y)


class Interrupts(Recorder):
    """Presses Ctrl-C in the middle."""

    def on_fit_task_end(self, estimator, context):
        super().on_fit_task_end(estimator, context)
        if self.ends == 7:
            raise KeyboardInterrupt


@pytest.mark.parametrize("fitted_before", (False, True))
def test_interrupt_leaves_the_estimator_as_it_was(fitted_before, monkeypatch):
    from skdp.privacy.noise.source import NoiseSource

    model = estimator()
    if fitted_before:
        model.fit(X, y)
    before = {name: id(value) for name, value in vars(model).items()}
    draw, drawn = NoiseSource.normal, []

    def interrupt(self, size, calls=1):
        drawn.append(size)
        if len(drawn) == 7:
            raise KeyboardInterrupt
        return draw(self, size, calls)

    monkeypatch.setattr(NoiseSource, "normal", interrupt)
    with pytest.raises(KeyboardInterrupt, match="its budget stays spent, and nothing else has changed"):
        model.fit(X[:, :1], y)
    assert {name: id(value) for name, value in vars(model).items()} == before


def test_interrupt_after_the_last_release(monkeypatch):
    """The model is made, and callbacks are told, when all of the budget is spent."""
    model = estimator()

    def interrupt(self, *arguments):
        raise KeyboardInterrupt

    for owner, name in ((type(model)._task_class, "model"), (Progress, "end")):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="its budget stays spent"):
            patch.setattr(owner, name, interrupt)
            model.fit(X, y)
        assert not hasattr(model, "coef_") and not hasattr(model, "n_features_in_")


@needs_callbacks
def test_interrupt_from_a_callback():
    recorder = Interrupts()
    model = estimator().set_callbacks(recorder)
    with pytest.raises(KeyboardInterrupt, match="its budget stays spent"):
        model.fit(X, y)
    assert recorder.contexts[-1] == "torn down"
    assert not hasattr(model, "coef_") and not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("cache, known", (("disk", True), (None, False)))
def test_verbose_2_counts_the_partitions_of_long_passes(cache, known, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(summation, "LONGEST", summation.BLOCK)
    many = np.tile(X, (200, 1)), np.tile(y, 200)  # three chunks
    for name, array in zip("Xy", many, strict=True):
        np.save(tmp_path / f"{name}.npy", array)
    table = npy(*(tmp_path / f"{name}.npy" for name in "Xy"), cache=cache) if known else chunks(lambda: [many], cache=cache)

    def printed(**given):
        DPLogisticRegression(solver=GradientDescent(2), **given).fit(table)
        return [line.removeprefix("[DPLogisticRegression] ") for line in capsys.readouterr().out.splitlines()]

    releases = ["1 of 2 releases", "2 of 2 releases"]
    assert printed(verbose=2) == releases  # the passes are short
    monkeypatch.setattr(_progress, "PAUSE", 0.0)
    assert printed(verbose=1) == releases
    read, of = (
        [f"read {done}{' of 3' * known} partitions" for done in (1, 2, 3)],
        [f"summed {k} of 3 partitions" for k in (1, 2, 3)],
    )
    assert printed(verbose=2) == [*read, *of, releases[0], *of, releases[1]]
