"""The scalers: their algebra, that they learn nothing, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from skdp.preprocessing import BoundedScaler, RowNormClipper, from_schema

STATELESS = [
    BoundedScaler((-1.5, 3.0)),
    BoundedScaler([(-1, 1), (0, 2), (-3, 0)], centre=False),
    BoundedScaler((-100, 1000), scale="log", fill=0.0),
    RowNormClipper(0.7),
]


def test_bounds_go_to_the_ends_and_values_outside_are_clipped():
    scaler = BoundedScaler([(10, 20), (-4, 0)])
    np.testing.assert_allclose(
        scaler.fit_transform([[10.0, -4], [20, 0], [15, -2], [-5, 7]]), [[-1, -1], [1, 1], [0, 0], [-1, 1]]
    )


def test_without_centre_zeros_stay():
    scaled = BoundedScaler([(-1, 4), (0, 2)], centre=False).fit_transform([[0.0, 0], [4, 1], [-9, 9]])
    np.testing.assert_allclose(scaled, [[0, 0], [1, 0.5], [-0.25, 1]])


def test_log_scale_is_the_logarithm_of_one_more():
    scaled = BoundedScaler((0, 99), scale="log").fit_transform([[0.0], [9], [99], [1e6], [-3]])
    np.testing.assert_allclose(scaled[:, 0], [-1, 0, 1, 1, -1])
    both = BoundedScaler((-99, 9), scale="log", centre=False).fit_transform([[-99.0], [9], [-9], [0]])
    np.testing.assert_allclose(both[:, 0], [-1, 0.5, -0.5, 0])


def test_bounds_by_name_follow_the_names():
    frame = pd.DataFrame({"b": [1.0, 2.0], "a": [10.0, 30.0]})
    scaled = BoundedScaler({"a": (10, 30), "b": (0, 2)}).set_output(transform="pandas").fit_transform(frame)
    pd.testing.assert_frame_equal(scaled, pd.DataFrame({"b": [0.0, 1.0], "a": [-1.0, 1.0]}))


def test_a_missing_value_becomes_its_public_number():
    scaled = BoundedScaler((0, 10), fill=5.0).fit_transform([[np.nan], [10.0]])
    np.testing.assert_allclose(scaled, [[0], [1]])
    assert BoundedScaler((0, 10), fill=99.0).fit_transform([[np.nan]]) == 1
    with pytest.raises(ValueError, match="Input X contains NaN"):
        BoundedScaler((0, 10)).fit([[np.nan]])


@pytest.mark.parametrize("transformer", STATELESS, ids=repr)
def test_nothing_is_learned(transformer, rng):
    """Fitted on one table, on a disjoint one, on a constant one or not at all, it maps a third in the same way."""
    tables = [rng.normal(size=(50, 3)), 1e6 * rng.random((20, 3)) + 7, np.zeros((3, 3))]
    new = rng.normal(size=(40, 3))
    mapped = [clone(transformer).fit(table).transform(new) for table in tables] + [clone(transformer).transform(new)]
    for other in mapped[1:]:
        np.testing.assert_array_equal(mapped[0], other)
    first, second = (vars(clone(transformer).fit(table)) for table in tables[:2])
    assert first == second


@pytest.mark.parametrize("transformer", STATELESS, ids=repr)
def test_every_row_is_mapped_by_itself(transformer, rng):
    X = 3 * rng.normal(size=(30, 3))
    alone = np.vstack([transformer.fit_transform(row[None]) for row in X])
    np.testing.assert_array_equal(transformer.fit_transform(X), alone)


@pytest.mark.parametrize("container", (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array))
@pytest.mark.parametrize("transformer", (STATELESS[1], RowNormClipper(0.7)), ids=repr)
def test_sparse_tables_are_mapped_as_dense_ones(container, transformer, rng):
    X = rng.normal(size=(60, 3)) * (rng.random((60, 3)) < 0.4)
    given = container(X)
    mapped = transformer.fit_transform(given)
    assert sparse.issparse(mapped)
    np.testing.assert_allclose(mapped.toarray(), transformer.fit_transform(X), rtol=1e-14)
    np.testing.assert_array_equal(given.toarray(), X)


@pytest.mark.parametrize("transformer", STATELESS, ids=repr)
@pytest.mark.parametrize("dtype", (np.float32, np.float64))
def test_names_are_kept_and_the_dtype_where_that_is_public(transformer, dtype, rng):
    frame = pd.DataFrame(rng.normal(size=(5, 3)).astype(dtype), columns=["a", "b", "c"])
    given = frame.copy()
    mapped = transformer.set_output(transform="pandas").fit_transform(frame)
    expected = dtype if isinstance(transformer, RowNormClipper) else np.float64
    assert mapped.columns.tolist() == ["a", "b", "c"] and set(mapped.dtypes) == {np.dtype(expected)}
    assert transformer.get_feature_names_out().tolist() == ["a", "b", "c"]
    pd.testing.assert_frame_equal(frame, given)
    transformer.set_output(transform="default")


def test_long_rows_are_scaled_down_and_short_ones_kept(rng):
    X = np.vstack([rng.normal(size=(20, 3)), np.zeros(3), [1e200, 0, 0], [5e-324, 0, 0]])
    clipped = RowNormClipper(0.5).fit_transform(X)
    assert (np.linalg.norm(clipped, axis=1) <= 0.5 * (1 + 1e-15)).all()
    short = np.hypot(np.hypot(X[:, 0], X[:, 1]), X[:, 2]) <= 0.5
    np.testing.assert_array_equal(clipped[short], X[short])
    np.testing.assert_allclose(np.cross(clipped[:20], X[:20]), 0, atol=1e-15)
    assert not clipped[21].any()


@pytest.mark.parametrize(
    "parameters, message",
    (
        ({"bounds": None}, "bounds=None; expected .*public knowledge"),
        ({"bounds": (1, 1)}, "low < high"),
        ({"bounds": (2, 1)}, "low < high"),
        ({"bounds": (0, np.inf)}, "numbers up to 1e50"),
        ({"bounds": (np.nan, 1)}, "numbers up to 1e50"),
        ({"bounds": [(0, 1)] * 3}, "is for 3 features; expected bounds for 2"),
        ({"bounds": "wide"}, "bounds='wide'"),
        ({"bounds": {"a": (0, 1)}}, r"keys \['a'\]; expected the columns of X: \['x0', 'x1'\]"),
        ({"bounds": (0, 1), "scale": "square"}, "scale='square'; expected 'linear' or 'log'"),
    ),
)
def test_bounds_that_make_no_sense_are_refused(parameters, message):
    with pytest.raises((TypeError, ValueError), match=message):
        BoundedScaler(**parameters).fit(np.ones((3, 2)))


def test_parameters_of_the_wrong_type_are_refused():
    for transformer, name in ((BoundedScaler((0, 1), centre="yes"), "centre"), (RowNormClipper("long"), "max_norm")):
        with pytest.raises(TypeError, match=name):
            transformer.fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="max_norm=0"):
        RowNormClipper(0).fit(np.ones((3, 2)))


def test_centring_a_sparse_table_is_refused():
    for scaler in (BoundedScaler((0, 1)), BoundedScaler((1, 2), centre=False)):
        with pytest.raises(ValueError, match="fill the zeros of a sparse X"):
            scaler.fit(sparse.eye_array(3, format="csr"))


def test_messages_quote_no_data():
    frame = pd.DataFrame({"age": ["41", "secret"]})
    for transformer in (BoundedScaler((0, 1)), RowNormClipper()):
        with pytest.raises(ValueError, match="table of finite real numbers") as caught:
            transformer.fit(frame)
        assert "secret" not in str(caught.value) and caught.value.__context__ is None


@pytest.mark.parametrize("narrow", ("int8", "int16", "uint8", "bool"))
def test_a_missing_value_widens_no_other(narrow):
    """pandas makes floats or objects of a column with a gap; beside float32 that changed the type of the whole table."""
    whole = pd.DataFrame({"a": np.ones(9, dtype=narrow), "b": np.linspace(0, 1, 9, dtype=np.float32)})
    gap = pd.DataFrame({"a": pd.Series([*whole["a"][:-1], None]).astype(object).infer_objects(), "b": whole["b"]})
    scaler = BoundedScaler((-1, 2), fill=0.0)
    np.testing.assert_array_equal(scaler.fit_transform(gap)[:-1], scaler.fit_transform(whole)[:-1])
    assert scaler.fit_transform(gap).dtype == scaler.fit_transform(whole).dtype == np.float64


def test_duplicates_of_a_record_add_up_to_the_same_whatever_the_order_of_another_record_is(rng):
    values = rng.permutation(np.concatenate([[1e17, -1e17] * 8, rng.uniform(-1, 1, 10)]))
    kept = []
    for last in ([1, 2], [2, 1]):
        rows, columns = np.append(np.zeros(26, dtype=int), [1, 1]), np.append(np.zeros(26, dtype=int), last)
        X = sparse.coo_array((np.append(values, [0.1, 0.1]), (rows, columns)), shape=(2, 3))
        kept.append(RowNormClipper(1e30).fit_transform(X).toarray()[0])
    np.testing.assert_array_equal(*kept)


@pytest.mark.parametrize("cell", (1e-310, 5e-324, 1e308))
def test_what_one_cell_is_shows_in_no_warning(cell):
    """Also where a program makes errors of overflow and underflow."""
    X = pd.DataFrame({"a": [cell, 1.0, 2.0], "b": [3.0, 0.0, 3.0]})
    number = {"kind": "number", "bounds": [-1e4, 1e4], "scale": "log"}
    with np.errstate(all="raise"):
        for transformer in (RowNormClipper(0.3), from_schema({"columns": {"a": number, "b": number}})):
            assert np.isfinite(transformer.fit_transform(X)).all()


@pytest.mark.parametrize("storage", (np.asarray, sparse.csr_array, sparse.csc_array))
def test_long_rows_of_float32_are_clipped_as_those_of_float64(storage):
    """Squares, and a bound, that float32 cannot hold made rows of nan and of zeros."""
    X = np.array([[3e38, -3e38], [3e20, 4e20], [0.0, 1e-45], [1.0, 0.0]], dtype=np.float32)
    for bound in (1.0, 1e50):
        found = RowNormClipper(bound).fit_transform(storage(X))
        assert found.dtype == np.float32
        expected = RowNormClipper(bound).fit_transform(X.astype(np.float64))
        np.testing.assert_allclose(found.toarray() if sparse.issparse(found) else found, expected, rtol=1e-6)
