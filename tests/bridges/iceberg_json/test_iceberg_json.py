"""Iceberg's expressions as JSON: read as specified, and written as Java's clients read."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.bridges.iceberg_json import from_iceberg_json, is_iceberg_json, to_iceberg_json
from rowsieve.bridges.iceberg_json.single_values import as_json
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.awkward import POOLS, rows
from tests.bridges.iceberg_json import engine
from tests.profiles import examples
from tests.strategies import COLUMN_TYPES, SCHEMA

COMPARISONS = ("lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq")
FLOATS = ("f32", "f64")
TIMES = ("day", "ts", "tz")
NAMES = tuple(name for name in COLUMN_TYPES if name != "b")
IDS = dict(enumerate(COLUMN_TYPES, 11))
Expressions = st.SearchStrategy[Any]


def constants(name: str) -> st.SearchStrategy[Any]:
    """JSON constants of a column's type: its values, where JSON has them."""
    return st.sampled_from([made for value in POOLS[name] if (made := said(name, value)) != ()])


def said(name: str, value: Any) -> Any:
    try:
        return as_json(value, COLUMN_TYPES[name])
    except UnsupportedOperation:
        return ()


def reference(name: str) -> dict[str, Any]:
    return {"type": "reference", "name": name}


def typed(value: Any, data_type: str) -> dict[str, Any]:
    return {"type": "literal", "value": value, "data-type": data_type}


def of_transform(transform: str, name: str, value: Any) -> dict[str, Any]:
    term = {"type": "transform", "transform": transform, "term": name}
    return {"type": "eq", "term": term, "value": value}


def of_function(name: str) -> dict[str, Any]:
    return {"type": "is-null", "child": {"type": "apply", "function": name, "arguments": []}}


@st.composite
def leaves(draw: st.DrawFn) -> Any:
    """Tests and comparisons of a column with constants and columns, in both forms."""
    name, is_older = draw(st.sampled_from(NAMES)), draw(st.booleans())
    test = draw(
        st.sampled_from((*COMPARISONS, "is-null", "not-null", "in", "not-in", "text", "nan", "two"))
    )
    column: Any = {"term": name} if is_older else {"child": reference(name)}
    match test:
        case "is-null" | "not-null":
            return {"type": test, **column}
        case "nan":
            kind, name = draw(st.sampled_from(("is-nan", "not-nan"))), draw(st.sampled_from(FLOATS))
            return (
                {"type": kind, "term": name}
                if is_older
                else {"type": kind, "child": reference(name)}
            )
        case "text":
            kind = draw(st.sampled_from(("starts-with", "not-starts-with")))
            return {"type": kind, "term": "s", "value": draw(constants("s"))}
        case "in" | "not-in":
            return {"type": test, **column, "values": draw(st.lists(constants(name), max_size=4))}
        case "two":
            other = "i64" if name in ("i8", "i32", "u8") else "s" if name == "t" else name
            kind = draw(st.sampled_from(COMPARISONS))
            return {"type": kind, "left": reference(name), "right": reference(other)}
    value = draw(constants(name))
    if draw(st.booleans()):
        value = {"type": "literal", "value": value}
    if is_older:
        return {"type": test, "term": name, "value": value}
    sides = [reference(name), value]
    left, right = sides if draw(st.booleans()) or test not in MIRRORED else sides[::-1]
    return {"type": test if right is sides[1] else MIRRORED[test], "left": left, "right": right}


MIRRORED = {"lt": "gt", "gt": "lt", "lt-eq": "gt-eq", "gt-eq": "lt-eq", "eq": "eq"}


@st.composite
def of_transforms(draw: st.DrawFn) -> Any:
    """Comparisons of transforms with constants, near the values that rows have."""
    kind = draw(st.sampled_from((*COMPARISONS, "in", "not-in", "is-null")))
    transform, name, pool = draw(st.sampled_from(TRANSFORMS))
    term = {"type": "transform", "transform": transform, "term": name}
    if draw(st.booleans()) and transform != "identity":
        called, _, width = transform.rstrip("]").partition("[")
        function = {"catalog": "iceberg_functions", "identifier": [called]}
        arguments = [*([int(width)] if width else []), reference(name)]
        term = {"type": "reference", "term": name}
        apply = {"type": "apply", "function": function, "arguments": arguments}
        if kind in ("in", "not-in"):
            return {
                "type": kind,
                "child": apply,
                "values": draw(st.lists(st.sampled_from(pool), max_size=3)),
            }
        if kind != "is-null":
            return {"type": kind, "left": apply, "right": draw(st.sampled_from(pool))}
    if kind in ("in", "not-in"):
        return {
            "type": kind,
            "term": term,
            "values": draw(st.lists(st.sampled_from(pool), max_size=3)),
        }
    if kind == "is-null":
        return {"type": kind, "term": term}
    return {"type": kind, "term": term, "value": draw(st.sampled_from(pool))}


TRANSFORMS = (
    *(("year", name, (-70, -1, 0, 43, 54)) for name in TIMES),
    *(("month", name, (-840, -1, 0, 1, 516, 518)) for name in TIMES),
    *(
        ("day", name, ("1969-12-31", "1970-01-01", "2013-01-01", 15_706, "2013-03-01"))
        for name in TIMES
    ),
    *(("hour", name, (-24, -1, 0, 10, 376_944, 376_954)) for name in TIMES[1:]),
    *((f"truncate[{width}]", "i64", (0, -10, -7, 90, 100)) for width in (1, 10)),
    ("truncate[10]", "i32", (0, -10, 3, 100, 2**31 - 8)),
    ("truncate[50]", "d", ("1.50", "0.00", "-2.50", "0.10", "9999.50")),
    *((f"truncate[{width}]", "s", ("", "a", "ab", "abc", "é", "\U0010ffff")) for width in (1, 2)),
    ("identity", "i64", (0, 1, 100)),
)
EXPRESSIONS: Expressions = st.recursive(
    leaves() | of_transforms() | st.booleans(),
    lambda inner: (
        st.fixed_dictionaries({"type": st.just("not"), "child": inner})
        | st.fixed_dictionaries(
            {"type": st.sampled_from(("and", "or")), "left": inner, "right": inner}
        )
    ),
    max_leaves=4,
)


@examples(600)
@given(expression=EXPRESSIONS, seed=st.integers(0, 9), as_text=st.booleans())
def test_an_expression_keeps_the_rows_of_the_specification_and_is_never_null(
    expression: Any, seed: int, as_text: bool
) -> None:
    batch = rows(seed, 24)
    written = json.dumps(expression) if as_text else expression
    read = from_iceberg_json(written, SCHEMA).exact()
    outcome = evaluate(bind(read, SCHEMA, Semantics.ICEBERG_JSON), batch)
    assert outcome.true.nonzero()[0].tolist() == engine.judged(expression, batch)
    assert (outcome.true | outcome.false).all()


@examples(200)
@given(expression=EXPRESSIONS, seed=st.integers(0, 9), by_id=st.booleans())
def test_what_is_read_and_written_again_keeps_its_rows(
    expression: Any, seed: int, by_id: bool
) -> None:
    batch = rows(seed, 24)
    read = from_iceberg_json(expression, SCHEMA).exact()
    written = to_iceberg_json(read, SCHEMA, ids={n: i for i, n in IDS.items()} if by_id else None)
    if written.expression is None or written.residual is not None:
        return
    again = from_iceberg_json(written.expression, SCHEMA, ids=IDS).exact()
    outcome = evaluate(bind(again, SCHEMA, Semantics.ICEBERG_JSON), batch)
    assert outcome.true.nonzero()[0].tolist() == engine.judged(expression, batch)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("i64 > 5", {"type": "gt", "term": "i64", "value": 5}),
        ("day = DATE '2020-02-29'", {"type": "eq", "term": "day", "value": "2020-02-29"}),
        ("d < 1.5", {"type": "lt", "term": "d", "value": "1.50"}),
        ("bin = '\\x00ff'", {"type": "eq", "term": "bin", "value": "00ff"}),
        (
            "tz >= TIMESTAMPTZ '2020-01-01 02:00:00+02'",
            {"type": "gt-eq", "term": "tz", "value": "2020-01-01T00:00:00.000000+00:00"},
        ),
        (
            "ts = TIMESTAMP '1969-12-31 23:59:59.999999'",
            {"type": "eq", "term": "ts", "value": "1969-12-31T23:59:59.999999"},
        ),
        (
            "s <> 'a'",
            {
                "type": "and",
                "left": {"type": "not-null", "term": "s"},
                "right": {"type": "not-eq", "term": "s", "value": "a"},
            },
        ),
        ("s LIKE 'a%'", {"type": "starts-with", "term": "s", "value": "a"}),
        ("i64 IN (1, 2)", {"type": "in", "term": "i64", "values": [1, 2]}),
        ("TRUE", True),
    ],
)
def test_conditions_are_written_in_the_form_that_every_client_reads(
    text: str, written: Any
) -> None:
    made = rs.translate(text, source="postgres", target="iceberg_json", schema=SCHEMA)
    assert json.loads(made.exact()) == written


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ({"type": "eq", "term": "i64", "value": None}, "null, NaN or infinite"),
        ({"type": "lt", "term": "f64", "value": float("nan")}, "null, NaN or infinite"),
        ({"type": "in", "term": "i64", "values": [1, None]}, "null, NaN or infinite"),
        ({"type": "in", "term": "i64", "values": 1}, "takes a JSON array"),
        ({"type": "eq", "term": "i64"}, "lacks its member 'value'"),
        ({"type": "and", "left": True}, "lacks its member 'right'"),
        ({"type": "not"}, "lacks its member 'child'"),
        ({"type": "like", "term": "s", "value": "a"}, "'like' is unknown"),
        ({"type": "eq", "term": "i64", "value": "5"}, "takes a JSON integer"),
        ({"type": "eq", "term": "i64", "value": True}, "takes a JSON integer"),
        ({"type": "eq", "term": "b", "value": 1}, "true or false"),
        ({"type": "eq", "term": "s", "value": 5}, "takes a JSON string"),
        ({"type": "eq", "term": "day", "value": "2020-02-30"}, "takes a date"),
        ({"type": "eq", "term": "ts", "value": "2020-01-01"}, "without offset"),
        ({"type": "eq", "term": "ts", "value": "2020-01-01T00:00:00+00:00"}, "without offset"),
        ({"type": "eq", "term": "tz", "value": "2020-01-01T00:00:00"}, "with offset"),
        ({"type": "eq", "term": "tz", "value": "2020-01-01T00:00:00.1234567Z"}, "with offset"),
        ({"type": "eq", "term": "bin", "value": "0"}, "hexadecimal"),
        ({"type": "eq", "term": "uid", "value": "00"}, "36 characters"),
        ({"type": "eq", "term": "d", "value": "NaN"}, "decimal digits"),
        ({"type": "eq", "term": "f32", "value": 1e300}, "of its range"),
        ({"type": "eq", "term": "pair", "value": "1"}, "no constants of the type"),
        ({"type": "is-nan", "term": "i64"}, "takes float and double"),
        ({"type": "starts-with", "term": "bin", "value": "00"}, "takes text"),
        (of_transform("bucket[4]", "i64", 1), "bucket[4](i64)"),
        (of_transform("hash", "i64", 1), "'hash' is unknown"),
        (of_transform("hour", "day", 1), "does not take day"),
        (of_transform("truncate", "s", "a"), "width None"),
        ({"type": "is-null", "child": {"type": "reference", "id": 3}}, "give from_iceberg_json"),
        (of_function("f"), "f is not read"),
        ({"type": "eq", "left": 1, "right": 1}, "two constants"),
        ({"type": "eq", "left": reference("i64"), "right": reference("s")}, "cast one of them"),
        ({"type": "eq", "term": "i64", "value": typed("a", "string")}, "cannot be compared"),
        ({"type": "eq", "term": "i64", "value": typed(1, "list")}, "'list' are not compared"),
    ],
)  # fmt: skip
def test_what_has_no_exact_meaning_is_refused_by_name(expression: Any, reason: str) -> None:
    read = from_iceberg_json(expression, SCHEMA)
    assert read.expression is None
    assert read.residual == expression
    assert reason in " ".join(read.notes)
    with pytest.raises((UnsupportedOperation, InvalidPredicate)):
        from_iceberg_json(expression, SCHEMA, strict=True)


@pytest.mark.parametrize("text", ["{", "NaN", '{"type": "and", "type": "or"}', "[" * 100_000])
def test_text_that_is_not_one_json_value_is_an_invalid_predicate(text: str) -> None:
    with pytest.raises(InvalidPredicate, match=r"JSON"):
        from_iceberg_json(text, SCHEMA)


def test_an_unknown_column_is_named() -> None:
    with pytest.raises(UnknownColumn, match="nowhere"):
        from_iceberg_json({"type": "is-null", "term": "nowhere"}, SCHEMA)


def test_constants_with_a_type_compare_by_it() -> None:
    batch = pa.record_batch({"f": pa.array([0.1], pa.float32())})
    schema, _ = schema_of(batch.schema)
    for data_type, expected in ((None, [True]), ("float", [True]), ("double", [False])):
        constant: dict[str, Any] = {"type": "literal", "value": 0.1}
        if data_type is not None:
            constant["data-type"] = data_type
        read = from_iceberg_json({"type": "eq", "term": "f", "value": constant}, schema).exact()
        outcome = evaluate(bind(read, schema, Semantics.ICEBERG_JSON), batch)
        assert outcome.true.tolist() == expected


def test_a_number_in_text_keeps_all_its_digits() -> None:
    schema, _ = schema_of(pa.schema([("m", pa.decimal128(38, 20))]))
    text = '{"type": "eq", "term": "m", "value": 1.01234567890123456789}'
    read = from_iceberg_json(text, schema).exact()
    assert "1.01234567890123456789" in str(read)


@pytest.mark.parametrize("fraction", [1.5, Decimal("1.5")])
def test_a_fraction_in_a_list_equals_no_integer(fraction: Any) -> None:
    batch = pa.record_batch({"i": pa.array([1, 2, None], pa.int32())})
    schema, _ = schema_of(batch.schema)
    matching = {"in": [False, True, False], "not-in": [True, False, True]}
    for kind, expected in matching.items():
        condition = {"type": kind, "term": "i", "values": [fraction, 2]}
        read = from_iceberg_json(condition, schema).exact()
        outcome = evaluate(bind(read, schema, Semantics.ICEBERG_JSON), batch)
        assert outcome.true.tolist() == expected


def test_a_name_that_is_a_column_and_a_path_is_refused() -> None:
    fields = [("a.x", pa.int64()), ("a", pa.struct([("x", pa.int64())])), ("b.y", pa.int64())]
    schema, _ = schema_of(pa.schema(fields))
    assert from_iceberg_json({"type": "is-null", "term": "a.x"}, schema).expression is None
    read = from_iceberg_json({"type": "is-null", "term": "b.y"}, schema)
    assert read.exact() == ir.IsNull(ir.Column("b.y"))


def test_a_condition_that_cannot_be_read_is_the_residual_of_the_others() -> None:
    bucket = of_transform("bucket[4]", "s", 1)
    one = {"type": "gt", "term": "i64", "value": 1}
    read = from_iceberg_json(json.dumps({"type": "and", "left": bucket, "right": one}), SCHEMA)
    assert json.loads(str(read.residual)) == bucket
    assert read.expression is not None


def test_an_object_is_recognised_and_a_table_is_scanned_by_it(tmp_path: Any) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"id": [1, 2, 3]}), key=["id"])
    policy = {"type": "or", "left": {"type": "eq", "term": "id", "value": 2}, "right": False}
    assert is_iceberg_json(policy)
    assert not is_iceberg_json({"type": "point"})
    assert table.scan(where=policy).to_arrow()["id"].to_pylist() == [2]
    assert rs.translate(policy, target="duckdb", schema=table).exact()
    for source in (json.dumps(policy), policy):
        made = rs.translate(source, source="iceberg_json", target="spark", schema=table)
        assert made.exact()


def test_ten_thousand_terms_are_read_and_written() -> None:
    wide: Any = {"type": "eq", "term": "i64", "value": 0}
    for value in range(1, 10_000):
        wide = {"type": "or", "left": wide, "right": {"type": "eq", "term": "i64", "value": value}}
    read = from_iceberg_json(wide, SCHEMA).exact()
    assert isinstance(read, ir.Or)
    assert len(read.terms) == 10_000
    assert from_iceberg_json(to_iceberg_json(read, SCHEMA).exact(), SCHEMA).exact() == read
