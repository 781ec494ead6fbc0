"""The basis of additive models: what it holds, and how long its rows can be."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdp.estimators.additive._basis import AdditiveBasis, knots
from skdp.preprocessing._schema import Schema

FACTS = Schema.read(
    {
        "columns": {
            "age": {"kind": "number", "bounds": [0, 100]},
            "income": {"kind": "number", "bounds": [0, 1e5], "scale": "log", "fill": 0},
            "sex": {"kind": "category", "categories": ["f", "m"]},
            "town": {"kind": "category", "categories": ["a", "b", "other"]},
        }
    }
)
USUAL = np.sqrt(2 + 2 / 3 + 2 * np.sqrt(8 / 45))
PAIRS = (("sex", "town"), ("age", "sex"), ("age", "income"))
BASES = [AdditiveBasis(FACTS, m, pairs, dyadic=m != 1) for m in (0, 1, 4, 16) for pairs in ((), PAIRS)]
BASES += [AdditiveBasis(FACTS, 4, pairs, placed={"age": (0.0, 0.3, 0.35, 1.0)}) for pairs in ((), PAIRS)]
every = pytest.mark.parametrize("basis", BASES, ids=lambda basis: f"{basis.n_intervals}-{len(basis.interactions)}")


def people(rng, n):
    """Rows within the bounds, far outside, and at the ends; categories known and unknown."""
    extreme = [0.0, 100.0, -1e300, 1e300, 5e-324, 50.0]
    return pd.DataFrame(
        {
            "town": rng.choice(["a", "b", "c", ""], n),
            "sex": rng.choice(["f", "m", "?"], n),
            "age": np.where(rng.random(n) < 0.5, rng.uniform(0, 100, n), rng.choice(extreme, n)),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.choice([*extreme, 1e5, 1e3], n)),
            "unknown": "not looked at",
        }
    )


def test_knots():
    np.testing.assert_allclose(knots(4), [0, 1 / 64, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1])
    np.testing.assert_allclose(knots(4, dyadic=False), [0, 1 / 4, 1 / 2, 3 / 4, 1])
    for m in range(1, 17):
        assert len(knots(m)) == m + 5 and (np.diff(knots(m)) > 0).all()


@every
def test_no_row_is_longer_than_the_bound_and_some_are_nearly_as_long(basis, rng):
    frame = people(rng, 2000)
    norms = np.linalg.norm(basis.transform(frame).toarray(), axis=1)
    assert norms.max() <= basis.row_norm * (1 + 1e-12)
    ends = pd.DataFrame({"age": [100.0], "income": [1e5], "sex": ["f"], "town": ["a"]})
    np.testing.assert_allclose(np.linalg.norm(basis.transform(ends).toarray(), axis=1), basis.row_norm)


@every
def test_rows_within_their_length_are_within_the_data_norm(basis, rng):
    """And with a length that no row exceeds, both bounds are the same."""
    table = basis.transform(people(rng, 2000)).toarray()
    linear = [term.columns.start if term.names[0] in basis.numbers else term.columns for term in basis.terms[:4]]
    usual = np.linalg.norm(table[:, np.r_[tuple(linear)]], axis=1) <= 1
    assert usual.any() and np.linalg.norm(table[usual], axis=1).max() <= basis.data_norm * (1 + 1e-12)
    longest = replace(basis, length=2.0)
    assert longest.row_norm == longest.data_norm
    assert np.linalg.norm(longest.transform(people(rng, 200)).toarray(), axis=1).max() <= longest.data_norm * (1 + 1e-12)


@pytest.mark.parametrize("p", (1, 2, 3, 10, 60))
def test_few_rows_are_longer_than_usual(p, rng):
    """Of numbers that are spread evenly: of 4000 between 1 and 5 in 100, 7 standard errors on both sides of 3."""
    columns = {f"x{i}": {"kind": "number", "bounds": [-1, 1]} for i in range(p)}
    basis = AdditiveBasis(Schema.read({"columns": columns}), 0)
    longer = np.linalg.norm(basis.transform(rng.uniform(-1, 1, (4000, p))).toarray(), axis=1) > basis.data_norm
    assert 0.01 < longer.mean() < 0.05


def test_values_are_zero_at_zero_or_at_the_nearest_bound():
    ends = {"a": [0, 4], "b": [2, 4], "c": [-4, -2], "d": [-2, 4], "e": [-8, 1]}
    facts = Schema.read({"columns": {name: {"kind": "number", "bounds": pair} for name, pair in ends.items()}})
    basis = AdditiveBasis(facts, 0, length=1.0)
    columns = [np.array([-9, low, (low + high) / 2, 0, high, 9.0]) for low, high in ends.values()]
    expected = [
        [0, 0, 0.5, 0, 1, 1],
        [0, 0, 0.5, 0, 1, 1],
        [-1, -1, -0.5, 0, 0, 0],
        [-0.5, -0.5, 0.25, 0, 1, 1],
        [-1, -1, -7 / 16, 0, 1 / 8, 1 / 8],
    ]
    np.testing.assert_allclose(basis.transform(np.column_stack(columns)).toarray(), np.transpose(expected), atol=1e-12)


@every
def test_a_term_at_given_values_is_the_same_part_of_the_table(basis, rng):
    frame = people(rng, 60)
    table = basis.transform(frame).toarray()
    for term in basis.terms:
        values = {name: frame[name].to_numpy() for name in term.names}
        np.testing.assert_array_equal(basis.of_term(term, values).toarray(), table[:, term.columns])


@every
def test_no_record_has_more_functions_than_stated(basis, rng):
    assert np.diff(basis.transform(people(rng, 500)).indptr).max() <= basis.n_stored


@every
def test_grids_hold_the_knots_and_all_categories(basis):
    assert basis.grid("sex").tolist() == ["f", "m", "other"] and basis.grid("town").tolist() == ["a", "b", "other"]
    for name, units in {"age": lambda u: 100 * u, "income": lambda u: np.expm1(u * np.log1p(1e5))}.items():
        grid = basis.grid(name)
        assert (np.diff(grid) > 0).all() and (grid[0], grid[-1]) == basis.facts.columns[name].bounds
        np.testing.assert_allclose(np.isclose(grid[:, None], units(basis.knots_of(name)), rtol=1e-9).any(axis=0), True)


@every
def test_hats_add_up_to_one_and_interpolate(basis, rng):
    """A linear combination with the values of any piecewise linear function at the knots is that function."""
    if not basis.n_intervals:
        return
    frame = people(rng, 300).assign(age=rng.uniform(0, 100, 300))
    hats = basis.transform(frame).toarray()[:, basis.terms[0].columns][:, 1:] * np.sqrt(2)
    assert (hats >= -1e-12).all() and ((hats > 1e-12).sum(axis=1) <= 2).all()
    np.testing.assert_allclose(hats.sum(axis=1), 1.0)
    values = rng.normal(size=hats.shape[1])
    np.testing.assert_allclose(hats @ values, np.interp(frame["age"], 100 * basis.knots_of("age"), values), atol=1e-9)


@every
def test_terms_are_all_columns_in_order(basis, rng):
    table = basis.transform(people(rng, 5))
    assert [term.names for term in basis.terms] == [("age",), ("income",), ("sex",), ("town",), *basis.interactions]
    assert [term.columns.start for term in basis.terms] == [0, *(term.columns.stop for term in basis.terms[:-1])]
    assert table.shape == (5, basis.n_features)


def test_products_are_those_of_both_columns(rng):
    basis, frame = AdditiveBasis(FACTS, 4, PAIRS), people(rng, 200)
    table = basis.transform(frame).toarray()
    age, income, sex, town, *pairs = (table[:, term.columns] for term in basis.terms)
    hats = [np.sqrt(2) * part[:, 1:] for part in (age, income)]
    indicators = [USUAL * sex, USUAL * town]
    expected = [(indicators[0], indicators[1]), (hats[0], indicators[0]), (hats[0], hats[1])]
    for found, (one, other) in zip(pairs, expected, strict=True):
        wanted = np.einsum("ia,ib->iab", one, other).reshape(len(frame), -1) / np.sqrt(3)
        np.testing.assert_allclose(found, wanted, atol=1e-12)


def test_unknown_categories_are_others_and_rows_do_not_see_each_other(rng):
    basis, frame = AdditiveBasis(FACTS, 4, PAIRS), people(rng, 50)
    whole = basis.transform(frame).toarray()
    np.testing.assert_array_equal(basis.transform(frame[7:8]).toarray(), whole[7:8])
    other = basis.transform(frame.assign(sex="neither", town="other")).toarray()
    same = basis.transform(frame.assign(sex=None, town="elsewhere")).toarray()
    np.testing.assert_array_equal(other, same)


def test_gaps_and_missing_columns_are_refused_without_quoting(rng):
    basis, frame = AdditiveBasis(FACTS, 4), people(rng, 20)
    with pytest.raises(ValueError, match="contains NaN") as error:
        basis.transform(frame.assign(age=np.where(np.arange(20) == 3, np.nan, 77.25)))
    assert "77.25" not in str(error.value)
    with pytest.raises(ValueError, match=r"X has no columns \['town'\]"):
        basis.transform(frame.drop(columns="town"))
