"""What a source of a table says when it is given something else."""

import numpy as np
import pandas as pd
import pytest

from skdp.data import chunks, npy, parquet, write_predictions
from skdp.estimators import DPLinearRegression

MODEL = DPLinearRegression(data_norm=2.0, target_bounds=(-1, 1))
X, Y = np.zeros((3000, 3)), np.zeros(3000)


def test_chunks_of_another_width_are_refused():
    with pytest.raises(ValueError, match="another number of columns than n_features=4"):
        MODEL.fit(chunks(lambda: [(X, Y)], n_features=4))
    assert MODEL.fit(chunks(lambda: [(X, Y)], n_features=3)).n_features_in_ == 3


def test_a_generator_that_is_read_once_is_told():
    once = ((X, Y) for _ in range(1))
    table = chunks(lambda: once)
    model = DPLinearRegression(data_norm=2.0, target_bounds=(-1, 1)).fit(table)
    for use in (model.score, model.fit, model.predict):
        with pytest.raises(ValueError, match="returned the same iterator as before, which is empty now"):
            use(table)
    again = chunks(lambda: iter([(X, Y)]))
    assert model.fit(again).fit(again).n_features_in_ == 3


def test_a_table_without_target_names_the_ways_to_give_one():
    with pytest.raises(
        ValueError, match=r"y is missing; .*names its target: .*npy\(X, y\).*parquet\(source, target=\.\.\.\).*chunks of pairs"
    ):
        MODEL.fit(chunks(lambda: [X]))


def test_arrays_and_patterns_are_no_files(tmp_path):
    with pytest.raises(TypeError, match=r"X is a ndarray; expected a path of a file\. Arrays go to fit\(X, y\)"):
        npy(X, Y)
    pd.DataFrame({"a": [1.0]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(FileNotFoundError, match="Patterns are not taken"):
        parquet(tmp_path / "*.parquet")


def test_predictions_of_a_dask_frame_are_written_by_dask(tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    ddf = frames.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=2)
    with pytest.raises(TypeError, match="to_parquet"):
        write_predictions(MODEL, ddf, tmp_path / "out")
