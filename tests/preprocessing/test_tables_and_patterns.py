"""Tables with other separators, targets that are numbers, and patterns for columns."""

import json

import numpy as np
import pandas as pd
import pytest

from skdp.preprocessing import Schema, from_schema, read_table

NUMBER = {"kind": "number", "bounds": [0, 100]}
FRAME = pd.DataFrame(
    {"BILL_1": [1.0, 2.0], "BILL_2": [3.0, 4.0], "PAY_1": [5.0, 6.0], "size [cm]": [7.0, 8.0], "due": [31415.0, 2.0]}
)


def facts(columns, **target):
    return {"columns": columns, **target}


@pytest.mark.parametrize("sep", (",", ";", "\t", "|"))
@pytest.mark.parametrize("name", ("table.csv", "table.csv.gz"))
def test_a_table_is_the_same_with_every_separator(sep, name, tmp_path):
    FRAME.to_csv(tmp_path / name, index=False, sep=sep)
    known = facts({name: NUMBER for name in FRAME.columns[:4]}, target="due", target_bounds=[0, 9])
    pd.testing.assert_frame_equal(read_table(tmp_path / name, known, sep=sep), FRAME)


@pytest.mark.parametrize(
    "written, read, message",
    (
        (";", ",", "with the separator ',' the header has one column and contains ';'; expected sep=';'"),
        ("\t", ",", r"the header has one column and contains '\\t'.*--sep 'tab'"),
        (",", ";", "the header has one column and contains ','; expected sep=','"),
        ("|", ",", "the header has one column and contains '|'"),
    ),
)
def test_a_wrong_separator_is_told_from_the_header(written, read, message, tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False, sep=written)
    with pytest.raises(ValueError, match=message.replace("|", r"\|")) as caught:
        read_table(tmp_path / "table.csv", facts({"PAY_1": NUMBER}), sep=read)
    assert "BILL" not in str(caught.value) and "31415" not in str(caught.value)


def test_a_separator_that_is_none_is_refused(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(ValueError, match="sep='BILL'; expected one of"):
        read_table(tmp_path / "table.csv", facts({"PAY_1": NUMBER}), sep="BILL")


def test_names_may_hold_the_separators_of_other_files(tmp_path):
    (tmp_path / "table.csv").write_text("size, in cm;PAY_1\n1;2\n")
    assert read_table(tmp_path / "table.csv", facts({"size, in cm": NUMBER}), sep=";")["size, in cm"].tolist() == [1.0]


@pytest.mark.parametrize("name", ("table.csv", "table.csv.gz", "table.parquet"))
def test_a_header_without_records_is_said(name, tmp_path):
    empty = FRAME.iloc[:0]
    empty.to_parquet(tmp_path / name) if name.endswith("parquet") else empty.to_csv(tmp_path / name, index=False)
    with pytest.raises(ValueError, match="has a header but no records"):
        read_table(tmp_path / name, facts({"PAY_1": NUMBER}))


def test_a_target_without_classes_is_a_number(tmp_path):
    (tmp_path / "table.csv").write_text("PAY_1,due\n1,31415\n2, 7.5\n")
    for target in ({"target_bounds": [0, 5]}, {}):
        read = read_table(tmp_path / "table.csv", facts({"PAY_1": NUMBER}, target="due", **target))
        assert read["due"].dtype == np.float64 and read["due"].tolist() == [31415.0, 7.5]


@pytest.mark.parametrize("cell", ("secret", "", "inf"))
def test_a_target_that_is_no_number_is_refused_without_quoting_it(cell, tmp_path):
    (tmp_path / "table.csv").write_text(f"PAY_1,due\n1,31415\n2,{cell}\n")
    with pytest.raises(ValueError, match="the target 'due' has values that are missing or not finite") as caught:
        read_table(tmp_path / "table.csv", facts({"PAY_1": NUMBER}, target="due"))
    assert "secret" not in str(caught.value) and "31415" not in str(caught.value)


@pytest.mark.parametrize(
    "target, message",
    (
        ({"target_bounds": [3, 3]}, r"target_bounds=\[3, 3\]; expected \[low, high\]"),
        ({"target_bounds": 5}, "target_bounds=5"),
        ({"target_bounds": [0, 1], "classes": [0, 1]}, "has classes and target_bounds"),
        ({"target_bounds": [], "classes": []}, "not filled in yet: classes or target_bounds"),
        ({"target_bounds": []}, "not filled in yet: target_bounds"),
    ),
)
def test_what_is_wrong_about_a_target_is_named(target, message):
    with pytest.raises(ValueError, match=message):
        Schema.read(facts({"PAY_1": NUMBER}, target="due", **target))


def test_the_half_of_a_template_that_does_not_apply_may_stay_empty():
    known = Schema.read(facts({"PAY_1": NUMBER}, target="due", target_bounds=[0, 9], classes=[]))
    assert known.classes is None and known.target_bounds == (0.0, 9.0)
    known = Schema.read(facts({"PAY_1": NUMBER}, target="due", target_bounds=[], classes=[0, 1]))
    assert known.classes == (0, 1) and known.target_bounds is None


def test_a_pattern_stands_for_columns():
    """Keys of their own go before patterns, the target is never a feature, and brackets are no pattern."""
    wide = {"kind": "number", "bounds": [0, 200]}
    given = {"size [cm]": NUMBER, "*_2": wide, "BILL_1": {"kind": "ignore"}, "*_1": NUMBER, "d*": NUMBER}
    with pytest.raises(ValueError, match=r"the pattern 'd\*' matches no column"):
        Schema.read(facts(given, target="due"), FRAME.columns)
    del given["d*"]
    known = Schema.read(facts(given, target="due"), FRAME.columns)
    assert {name: column.bounds[1] for name, column in known.columns.items()} == {"size [cm]": 100, "BILL_2": 200, "PAY_1": 100}
    written_out = {"columns": {"size [cm]": NUMBER, "BILL_2": wide, "PAY_1": NUMBER}}
    np.testing.assert_array_equal(from_schema(known).fit_transform(FRAME), from_schema(written_out).fit_transform(FRAME))


@pytest.mark.parametrize(
    "columns, message",
    (
        ({"BILL_*": NUMBER, "*_1": NUMBER}, r"'\*_1' and another pattern match the same column"),
        ({"BILL_*": NUMBER, "BILL_1": NUMBER, "BILL_2": NUMBER}, r"'BILL_\*' matches no column without a key of its own"),
        ({"bill_*": NUMBER}, r"'bill_\*' matches no column"),
        ({"BILL*": {"kind": "number", "bounds": []}}, r"not filled in yet: bounds of 'BILL\*'"),
        ({"*" * 200 + "x": NUMBER}, "matches no column"),
    ),
)
def test_patterns_that_do_not_fit_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        Schema.read(facts(columns), FRAME.columns)


def test_a_file_gives_its_patterns_their_columns(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "facts.json").write_text(json.dumps(facts({"BILL_*": {**NUMBER, "bounds": [0, 5]}})))
    assert read_table(tmp_path / "table.csv", tmp_path / "facts.json")["BILL_2"].tolist() == [3.0, 4.0]
    with pytest.raises(ValueError, match=r"has the patterns \['BILL_\*'\].*Schema.read\(schema, X.columns\)"):
        from_schema(tmp_path / "facts.json")


def test_a_name_with_a_star_is_a_name_where_there_is_such_a_column():
    known = Schema.read(facts({"a*": NUMBER}), ["a*", "ab"])
    assert list(known.columns) == ["a*"]
