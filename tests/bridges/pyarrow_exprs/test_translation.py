"""pyarrow's expressions both ways: pyarrow keeps the rows that our evaluator keeps."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pytest

import rowsieve as rs
from rowsieve.bridges.pyarrow_exprs import from_pyarrow, to_pyarrow
from rowsieve.bridges.pyarrow_exprs.function_table import FUNCTIONS
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate, matching
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Float, Int, Uuid
from tests.strategies import SCHEMA

F = pc.field
FAILURES = (
    "overflow",
    "Precision is not",
    "does not fit in precision",
    "not in range",
    "divide by zero",
    "Divide by zero",
    "out of bounds",
)
ROWS = pa.table(
    {
        "i": pa.array([0, 1, -5, 2**31 - 1, None], pa.int32()),
        "k": pa.array([0, 2**53 + 1, -(2**63), None, 7], pa.int64()),
        "f": pa.array([0.0, -0.0, math.nan, math.inf, None], pa.float64()),
        "g": pa.array([0.5, -0.0, math.nan, 16777216.0, None], pa.float32()),
        "d": pa.array([0, 1, -250, 99, None], pa.int32()).cast(pa.decimal128(12, 2)),
        "s": pa.array(["", "abc", " a ", "ÉaB%", None]),
        "b": pa.array([True, False, None, True, False]),
        "ts": pa.array([0, -1, 1_711_848_600_000_000, 10**15, None], pa.timestamp("us")),
        "day": pa.array([0, -1, 19_782, 20_000, None], pa.date32()),
        "p": pa.array([{"x": 1}, {"x": None}, None, {"x": 2}, {"x": 1}]),
    }
)
COLUMNS = schema_of(ROWS.schema)[0]

ASSUMED = pc.assume_timezone(F("ts"), "Asia/Kathmandu")

READ: list[Any] = [
    pc.local_timestamp(ASSUMED.cast(pa.timestamp("us", "Asia/Kolkata"))) > F("ts"),
    pc.hour(ASSUMED.cast(pa.timestamp("us", "Asia/Kolkata"))) == 23,
    F("i") == 1,
    F("i") + 1 > F("k"),
    F("i") - F("i") == 0,
    F("k") / 7 == 1,
    pc.divide(F("f"), 0.0) > 1.0,
    F("f") > 0,
    F("f") >= F("f"),
    ~(F("f") > 0),
    F("f") != F("f"),
    F("f").is_nan(),
    ~F("f").is_nan(),
    F("g") == 0.5,
    F("g") < 100,
    F("f").isin([0.0, 7.5]),
    ~F("f").isin([0.0, 7.5]),
    ~F("f").isin([-0.0, None]),
    F("k").isin([0, 7, None]),
    ~F("k").isin([0, 7]),
    F("s").isin(["abc", ""]) | F("b"),
    pc.is_in(F("k"), options=pc.SetLookupOptions(pa.array([7, None]), skip_nulls=True)),
    ~pc.is_in(F("k"), options=pc.SetLookupOptions(pa.array([7, None]), skip_nulls=True)),
    pc.abs_checked(F("f")) > 0,
    pc.negate_checked(F("i")) > 1,
    pc.floor(F("g")) == 0,
    pc.ln(F("f")) < 1,
    pc.exp(F("f")) > 2,
    pc.power(F("f"), F("f")) >= 1,
    pc.round(F("g")) == 0,
    pc.utf8_length(F("s")) > 2,
    pc.utf8_upper(F("s")) == "ABC",
    pc.utf8_reverse(F("s")) == "cba",
    pc.starts_with(F("s"), "a"),
    pc.ends_with(F("s"), ""),
    ~pc.match_substring(F("s"), "a"),
    pc.utf8_trim(F("s"), " ") == "a",
    pc.utf8_ltrim(F("s"), "ab") == "c",
    pc.match_like(F("s"), "%\\%"),
    pc.match_like(F("s"), "a_C", ignore_case=True),
    pc.binary_join_element_wise(F("s"), F("s"), "") == "abcabc",
    pc.replace_substring(F("s"), "b", "xx") == "axxc",
    pc.utf8_slice_codeunits(F("s"), 1, 2) == "b",
    pc.utf8_slice_codeunits(F("s"), 1) == "bc",
    pc.coalesce(F("i"), F("i")) == 1,
    pc.if_else(F("b"), F("k"), F("k")) == 0,
    pc.if_else(F("b"), F("s"), "abc") == "abc",
    F("i").cast(pa.float64()) > 0.5,
    F("i").cast(pa.string()) == "-5",
    F("d") > F("i"),
    F("d") == 1,
    pc.year(F("ts")) == 1969,
    pc.iso_week(F("day")) == 1,
    pc.floor_temporal(F("ts"), unit="week") == F("ts"),
    F("day") < F("ts"),
    F("ts").cast(pa.date32(), safe=False) == F("day"),
    pc.field("p", "x") == 1,
    ~(pc.field("p", "x") == 1),
    F("b"),
    ~F("b"),
    F("b") == (F("i") == 1),
    (F("b") & (F("i") == 1)).is_null(),
]
LEFT: list[tuple[Any, str]] = [
    (F("g") == 2**30 + 1, "cast one to the other's type"),
    (F("g") < F("k"), "cast one to the other's type"),
    (F("g").isin([0.1]), "give the set the column's type"),
    (pc.add(F("i"), 1) == 2, "wraps around"),
    (pc.and_(F("b"), F("b")), "unknown to Rowsieve"),
    (F("i").is_null(nan_is_null=True), "nan_is_null"),
    (pc.starts_with(F("s"), "x", ignore_case=True), "ignore_case"),
    (pc.match_substring_regex(F("s"), "x"), "regular expressions"),
    (F("f").cast(pa.int32()) == 1, "cast of float64"),
    (F("i").cast(pa.int8(), safe=False) == 1, "allow_int_overflow"),
    (pc.floor_temporal(F("ts"), 3, unit="day") == F("ts"), "multiple"),
    (pc.round(F("f"), 2) == 1, "ndigits"),
    (pc.struct_field(F("p"), [0]) == 1, "by its number"),
    (pc.coalesce(F("i"), F("k")) == 1, "coalesce of int32 and int64: the types must be one"),
    (pc.coalesce(F("ts"), pa.scalar(7, pa.timestamp("ms"))) > F("ts"), "several units"),
    (F("f").isin([0.0, math.nan]), "the same bits"),
    (F("ts").cast(pa.timestamp("s"), safe=False) == F("ts"), "Rowsieve stores in another form"),
    (F("i").cast(pa.float16()) == F("i"), "Rowsieve stores in another form"),
    (
        F("i").cast(pa.sparse_union([pa.field("a", pa.int8())])) == F("i"),
        "which no column can have",
    ),
    (F("i").cast(pa.duration("us")) == F("i"), "a cast of int32 to interval"),
    (F("d") == pa.scalar(1, pa.decimal256(40)), "decimal(12,2) and numeric"),
    (F("i") == (pc.utf8_title(F("s")) == "x"), "utf8_title"),
]


def ours(
    predicate: ir.Predicate, batch: pa.RecordBatch, semantics: Semantics, schema: Any = SCHEMA
) -> list[int] | None:
    outcome = evaluate(bind(predicate, schema, semantics), batch)
    if outcome.failed.any():
        return None
    return [row for row, true in enumerate(outcome.true) if true]


def theirs(expression: Any, rows: pa.Table) -> list[int] | None:
    numbered = rows.append_column("row number", pa.array(range(rows.num_rows)))
    try:
        found = numbered.filter(expression).column("row number")
        scanned = ds.dataset(numbered).to_table(filter=expression).column("row number")
    except pa.ArrowException as error:
        if not any(word in str(error) for word in FAILURES):
            raise
        return None
    assert found.equals(scanned)
    kept: list[int] = found.to_pylist()
    return kept


def test_every_function_of_pyarrow_is_listed() -> None:
    scalar = {name for name in pc.list_functions() if pc.get_function(name).kind == "scalar"}
    assert [row.foreign for row in FUNCTIONS].count("cast") == 1
    assert {row.foreign for row in FUNCTIONS} - {"cast"} == scalar
    assert len(FUNCTIONS) == len(scalar) + 1


def test_every_row_that_reads_is_read_here() -> None:
    texts = " ".join(map(str, READ))
    lacking = [
        row.foreign
        for row in FUNCTIONS
        if row.reads is Exactness.EXACT
        and f"{row.foreign}(" not in texts
        and row.foreign not in ("equal", "not_equal", "less", "less_equal", "greater")
        and row.foreign not in ("greater_equal", "and_kleene", "or_kleene", "cast", "ceil")
        and row.foreign not in ("add_checked", "subtract_checked", "multiply_checked")
        and row.foreign not in ("divide_checked", "is_valid", "utf8_lower", "utf8_rtrim")
        and row.foreign not in ("quarter", "month", "day", "hour", "minute", "day_of_year")
    ]
    assert lacking == []


@pytest.mark.parametrize("expression", READ, ids=lambda item: str(item)[:60])
def test_read_conditions_keep_the_rows_of_pyarrow(expression: Any) -> None:
    read = from_pyarrow(expression, COLUMNS)
    assert read.exactness is Exactness.EXACT, read.notes
    batch = ROWS.combine_chunks().to_batches()[0]
    found = ours(read.exact(), batch, Semantics.PYARROW, COLUMNS)
    rows = theirs(expression, ROWS)
    if rows is not None:
        assert found == rows
    for row in range(ROWS.num_rows):  # one at a time, where another row fails
        kept = theirs(expression, ROWS.slice(row, 1))
        if kept is not None:
            assert ours(read.exact(), batch.slice(row, 1), Semantics.PYARROW, COLUMNS) == kept


@pytest.mark.parametrize(("expression", "reason"), LEFT, ids=lambda item: str(item)[:60])
def test_unknown_conditions_are_residual_as_a_whole(expression: Any, reason: str) -> None:
    whole = (F("b") | F("b")) & expression
    read = from_pyarrow(whole, COLUMNS)
    assert read.exactness is Exactness.SUPERSET
    assert read.residual is whole
    assert reason in read.notes[0]
    assert read.notes[0].startswith("condition 2 of 2")
    for inside in (F("b") | expression, ~(F("b") & expression)):
        assert from_pyarrow(inside, COLUMNS).expression is None
        with pytest.raises(UnsupportedOperation, match="condition 1 of 1"):
            from_pyarrow(inside, COLUMNS, strict=True)


def test_bytes_that_are_not_utf8_are_residual_too() -> None:
    expression = pc.match_substring(F("s"), b"\xff", ignore_case=True)
    read = from_pyarrow(expression, COLUMNS)
    assert read.residual is expression
    assert "holds bytes" in read.notes[0]


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("members", [[1, 2], [1, None], [], [None]])
def test_lists_come_back_as_they_went(members: list[int | None], *, negated: bool) -> None:
    listed = ir.InList(ir.Column("i64"), ir.ValueSet(pa.array(members, pa.int64()), Int(64)))
    predicate: ir.Predicate = ir.Not(listed) if negated else listed
    read = from_pyarrow(to_pyarrow(predicate, SCHEMA).exact(), SCHEMA).exact()
    if negated:
        assert normalize(read) == normalize(predicate)
    else:  # where NULL is as good as FALSE, a member that is NULL says nothing
        assert isinstance(read, ir.InList)
        assert read.values.array.to_pylist() == [item for item in members if item is not None]


def test_other_engines_have_nan_above_all() -> None:
    rows = pa.table({"f64": pa.array([1.0, math.nan, None, 9.0])})
    above = ir.Comparison(ir.ComparisonOp.GT, ir.Column("f64"), ir.Literal(5.0, Float(64)))
    for semantics, kept in ((Semantics.SQL, [1, 3]), (Semantics.PYARROW, [3])):
        assert theirs(to_pyarrow(above, SCHEMA, semantics).exact(), rows) == kept
    assert theirs(to_pyarrow(ir.Not(above), SCHEMA, Semantics.SQL).exact(), rows) == [0]


def test_lists_at_the_top_level_have_no_guard() -> None:
    listed = ir.InList(ir.Column("i64"), ir.ValueSet(pa.array([1, 2]), Int(64)))
    written = to_pyarrow(ir.Or((listed, listed)), SCHEMA).exact()
    assert written.equals(F("i64").isin(pa.array([1, 2])) | F("i64").isin(pa.array([1, 2])))


@pytest.mark.parametrize(
    ("text", "kept"),
    [("CAST(k AS DECIMAL(5, 1)) = 7", [1]), ("CAST(i AS DECIMAL(9, 0)) > -6", [0, 1, 2])],
)
def test_integers_are_cast_to_decimals_that_not_all_of_their_type_fit(
    text: str, kept: list[int]
) -> None:
    rows = pa.table({"k": pa.array([0, 7, -7]), "i": pa.array([1, -5, 0], pa.int32())})
    made = rs.translate(text, "duckdb", target="pyarrow", schema=rows.schema).exact()
    assert theirs(made, rows) == kept
    again = rs.translate(made, target="duckdb", schema=rows.schema).exact()
    assert again.count('CAST("') == 1
    wide = pa.table({"k": pa.array([123_456]), "i": pa.array([1_000_000_000], pa.int32())})
    assert theirs(made, wide) is None  # as in DuckDB


@pytest.mark.parametrize(
    ("text", "reason"),
    [("CAST(k AS DECIMAL(38, 30)) = 7", "49 digits, more than 38"), ("-u IS NULL", "signed")],
)
def test_calls_of_types_that_pyarrow_lacks_are_refused(text: str, reason: str) -> None:
    columns = pa.schema([("k", pa.int64()), ("u", pa.uint32())])
    made = rs.translate(text, "duckdb", target="pyarrow", schema=columns)
    assert made.expression is None
    assert reason in str(made.notes[0])


def test_unknown_columns_are_errors() -> None:
    with pytest.raises(UnknownColumn):
        from_pyarrow(F("nowhere") == 1, SCHEMA)


def test_scans_keep_the_rows_of_pyarrow(tmp_path: Any) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [1.0, math.nan, None]})
    table = rs.create_table(str(tmp_path / "t"), data, key=["id"])
    kept = {
        str(expression): table.scan(expression).to_arrow().column("id").to_pylist()
        for expression in (F("x") > 0, ~(F("x") > 0), F("x").is_nan(), ~F("x").isin([1.0]))
    }
    wanted = {
        text: data.filter(e).column("id").to_pylist()
        for text, e in zip(
            kept, (F("x") > 0, ~(F("x") > 0), F("x").is_nan(), ~F("x").isin([1.0])), strict=True
        )
    }
    assert kept == wanted


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_of_uuids_that_is_written_is_read_back(count: int) -> None:
    schema, _ = schema_of(pa.schema([("uid", pa.uuid())]))
    uuids = [bytes([number]) * 16 for number in range(count)]
    given = ir.InList(ir.Column("uid"), ir.ValueSet(pa.array(uuids, pa.binary(16)), Uuid()))
    read = from_pyarrow(to_pyarrow(given, schema).exact(), schema)
    batch = pa.record_batch({"uid": pa.array([*uuids, b"x" * 16, None], pa.binary(16))})
    found, expected = (
        matching(bind(each, schema, Semantics.PYARROW), batch).tolist()
        for each in (read.exact(), given)
    )
    assert found == expected
    assert sum(found) == count


@pytest.mark.parametrize("expression", [pc.field(0) == 1, pc.field("s", 0) == 1])
def test_columns_by_number_are_refused(expression: pc.Expression) -> None:
    """pyarrow does not say which numbers it has."""
    with pytest.raises(UnsupportedOperation, match="not by its number"):
        from_pyarrow(expression, SCHEMA)
