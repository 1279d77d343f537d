"""What is written keeps, in polars, the rows that our evaluator keeps."""

from __future__ import annotations

import math
from functools import cache

import polars as pl
import pyarrow as pa
import pytest

from rowsieve.bridges.polars_exprs import from_polars, to_polars
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date, Float, Int, String, Timestamp
from tests.bridges.conformance import ours
from tests.bridges.polars_exprs.engine import theirs
from tests.strategies import IEEE, SCHEMA, arrow_array

TEXTS = pa.array(["", "a", "a\n", "xac", "bacc", "b\na", "ab", "é", "aab", "abb", None])


def equals(name: str, value: int) -> ir.Comparison:
    return ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal(value))


@pytest.mark.parametrize(
    ("pattern", "escape"),
    [
        ("a%", None),
        ("%b", None),
        ("%0!%%", "!"),
        ("a_b", None),
        ("100!%", "!"),
        ("a.c", None),
        ("%.%c", None),
        ("-#&~ \n\t", None),
        ("", None),
        ("%", None),
        ("!%%", "!"),
    ],
)
@pytest.mark.parametrize("ignore_case", [False, True])
def test_patterns_match_alike(pattern: str, escape: str | None, *, ignore_case: bool) -> None:
    texts = ["", "a", "A", "aXb", "a\nb", "100%", "%x", "100x", "a.c", "abc", "-#&~ \n\t", None]
    rows = pa.record_batch({"s": pa.array(texts, pa.string())})
    like = ir.Like(ir.Column("s"), pattern, escape, ignore_case)
    found = theirs(to_polars(like, SCHEMA).exact(), rows)
    assert found == ours(like, SCHEMA, rows, Semantics.POLARS)


EDGES = [
    *(127.9, 128.0, -128.9, -129.0, -0.9, 255.5, 256.0, 2147483647.5, 2.0**31, -(2.0**31) - 1),
    *(2.0**63 - 1024, 2.0**63, -(2.0**63), -(2.0**63) - 2048, 2.0**64 - 2048, 2.0**64, 1e300),
    *(math.nan, math.inf, -math.inf, -0.0, 5e-324, None),
]


@cache
def every_character() -> pa.Array:
    return pa.array([chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000])


REGEXES = [r"^\w$", r"\D", r"^\s$", "^.$", "(?i)^k$", "^[^a-f]$", "[a-c]|^x", "(?:a|b)+?c{1,2}"]


@pytest.mark.parametrize("pattern", REGEXES)
def test_a_regular_expression_finds_the_same_texts(pattern: str) -> None:
    batch = pa.record_batch({"s": pa.concat_arrays([every_character(), TEXTS])})
    schema = schema_of(batch.schema)[0]
    expression = pl.col("s").str.contains(pattern)
    read = from_polars(expression, schema).exact()
    kept = theirs(expression, batch)
    assert ours(read, schema, batch, Semantics.POLARS) == kept
    written = to_polars(read, schema).exact()
    assert theirs(written, batch) == kept
    assert from_polars(written, schema).exact() == read


@pytest.mark.parametrize("pattern", ["^a", "b$", "^ab$", "ab"])
def test_a_regular_expression_of_plain_text_is_read_as_its_function(pattern: str) -> None:
    schema = schema_of(pa.schema([("s", pa.string())]))[0]
    batch = pa.record_batch({"s": TEXTS})
    predicate = ir.BooleanOperand(ir.Call("regex_matches", (ir.Column("s"), ir.Literal(pattern))))
    written = to_polars(predicate, schema).exact()
    assert theirs(written, batch) == ours(predicate, schema, batch, Semantics.POLARS)
    read = from_polars(written, schema).exact()
    assert ours(read, schema, batch, Semantics.POLARS) == theirs(written, batch)


@pytest.mark.parametrize("pattern", ["a\\\\b", r"\bword", "(?P<name>a)"])
def test_a_regular_expression_that_flavours_take_apart_is_left(pattern: str) -> None:
    schema = schema_of(pa.schema([("s", pa.string())]))[0]
    predicate = ir.BooleanOperand(ir.Call("regex_matches", (ir.Column("s"), ir.Literal(pattern))))
    assert "a regular expression" in to_polars(predicate, schema).notes[0]


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("try_", [True, False])
@pytest.mark.parametrize("kind", ["float", "decimal"])
def test_fractions_become_whole_numbers_alike(
    bits: int, kind: str, *, signed: bool, try_: bool
) -> None:
    """Row by row, so that one that fails hides no other."""
    cells = pa.array(EDGES)
    if kind == "decimal":
        small = [None if value is None or abs(value) >= 1e20 else value for value in EDGES[:-6]]
        texts = [None if value is None else f"{value:.2f}" for value in small]
        cells = pa.array(texts, pa.string()).cast(pa.decimal128(30, 2))
    batch = pa.record_batch({"x": cells})
    schema = schema_of(batch.schema)[0]
    target = Int(bits, signed=signed)
    made = ir.Cast(ir.Column("x"), target, try_)
    for predicate in (
        ir.IsNull(made),
        ir.Comparison(ir.ComparisonOp.LE, made, ir.Literal(0, target)),
    ):
        written = to_polars(predicate, schema).exact()
        for row in range(len(cells)):
            one = batch.slice(row, 1)
            assert theirs(written, one) == ours(predicate, schema, one, Semantics.POLARS)


def test_casts_that_round_are_not_those_that_cut() -> None:
    rounded = ir.Comparison(ir.ComparisonOp.EQ, ir.Cast(ir.Column("f64"), Int(32)), ir.Literal(2))
    assert to_polars(rounded, SCHEMA, Semantics.SPARK).exactness is Exactness.EXACT
    longs = ir.Comparison(ir.ComparisonOp.EQ, ir.Cast(ir.Column("f64"), Int(64)), ir.Literal(2))
    assert "too large" in to_polars(longs, SCHEMA, Semantics.SPARK).notes[0]
    for semantics in (Semantics.SQL, Semantics.DUCKDB):
        assert "fractions differently" in to_polars(rounded, SCHEMA, semantics).notes[0]
    floor = ir.Comparison(
        ir.ComparisonOp.GT, ir.Call("floor", (ir.Column("f64"),)), ir.Literal(0.0)
    )
    assert to_polars(floor, SCHEMA, Semantics.SPARK).expression is None


@pytest.mark.parametrize("op", list(ir.ComparisonOp))
def test_nan_that_is_unequal_to_itself_is_guarded(op: ir.ComparisonOp) -> None:
    rows = pa.record_batch({"f64": arrow_array([math.nan, 1.0, -math.inf, None], Float(64))})
    for value in (math.nan, 1.0, None):
        for predicate in (
            ir.Comparison(op, ir.Column("f64"), ir.Literal(value, Float(64))),
            ir.Not(ir.Comparison(op, ir.Column("f64"), ir.Literal(value, Float(64)))),
        ):
            written = to_polars(predicate, SCHEMA, IEEE)
            if "DISTINCT" in op.value:
                assert written.expression is None
            else:
                assert theirs(written.exact(), rows) == ours(predicate, SCHEMA, rows, IEEE)


@pytest.mark.parametrize("semantics", [Semantics.POLARS, Semantics.SQL, IEEE], ids=lambda s: s.name)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply"])
def test_integers_overflow_as_the_semantics_require(semantics: Semantics, name: str) -> None:
    ends = [-(2**63), 2**63 - 1, 3, None]
    rows = pa.record_batch({"i64": pa.array(ends, pa.int64())})
    result = ir.Call(name, (ir.Column("i64"), ir.Literal(3, Int(64))))
    for limit in (ir.Literal(0), ir.Literal(9)):
        predicate = ir.Comparison(ir.ComparisonOp.GT, result, limit)
        found = theirs(to_polars(predicate, SCHEMA, semantics).exact(), rows)
        assert found == ours(predicate, SCHEMA, rows, semantics)


NUMBERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64()]


@pytest.mark.parametrize("semantics", [Semantics.POLARS, Semantics.SQL, IEEE], ids=lambda s: s.name)
@pytest.mark.parametrize("type_", NUMBERS, ids=str)
def test_whole_numbers_are_negated(semantics: Semantics, type_: pa.DataType) -> None:
    schema, _ = schema_of(pa.schema([("n", type_)]))
    predicate = ir.Comparison(
        ir.ComparisonOp.LT, ir.Call("negate", (ir.Column("n"),)), ir.Literal(0)
    )
    try:
        bind(predicate, schema, semantics)
    except InvalidPredicate:  # a negative number of an unsigned type
        return
    expression = to_polars(predicate, schema, semantics).exact()
    for values in ([0, 5, None], [-5, 5], [-(2 ** (type_.bit_width - 1))]):
        if type_ in NUMBERS[:4] or values[0] == 0:
            rows = pa.record_batch({"n": pa.array(values, type_)})
            assert theirs(expression, rows) == ours(predicate, schema, rows, semantics)


def test_zeros_that_a_long_list_tells_apart_stay_behind() -> None:
    values = ir.ValueSet(pa.array([0.0, 1.0, 2.0, 3.0]), Float(64))
    listed = ir.InList(ir.Column("f64"), values)
    written = to_polars(ir.And((equals("i64", 1), listed)), SCHEMA, Semantics.DATAFUSION)
    assert written.exactness is Exactness.SUPERSET
    assert written.residual == listed
    assert "zeros of both signs" in written.notes[0]
    assert to_polars(listed, SCHEMA, Semantics.SQL).exactness is Exactness.EXACT


@pytest.mark.parametrize("name", ["*", "^a.*$", 'A "b".c'])
def test_column_names_are_not_patterns(name: str) -> None:
    batch = pa.record_batch({name: pa.array(["x", "y"])})
    schema = schema_of(batch.schema)[0]
    predicate = ir.Comparison(ir.ComparisonOp.EQ, ir.Column(name), ir.Literal("y", String()))
    written = to_polars(predicate, schema)
    if name.startswith("A"):
        assert theirs(written.exact(), batch) == [1]
        assert from_polars(written.exact(), schema).exact() == predicate
    else:
        assert "a pattern in polars" in written.notes[0]


@pytest.mark.parametrize(
    ("column", "literal"),
    [("day", ir.Literal(2**31 - 1, Date())), ("ts", ir.Literal(2**63 - 1, Timestamp()))],
)
def test_days_beyond_the_calendar_are_refused(column: str, literal: ir.Literal) -> None:
    written = to_polars(ir.Comparison(ir.ComparisonOp.LT, ir.Column(column), literal), SCHEMA)
    assert "beyond polars' calendar" in written.notes[0]
