"""Expressions that are read keep the rows that DataFusion keeps; others are named and left out."""

from __future__ import annotations

import decimal
import math
import re
import threading
from pathlib import Path

import datafusion
import pyarrow as pa
import pytest
from datafusion import col, lit
from datafusion import functions as f

import rowsieve as rs
from rowsieve.bridges.datafusion_exprs import (
    from_datafusion,
    is_datafusion_expression,
    to_datafusion,
)
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import UnknownColumn, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.conformance import ours
from tests.bridges.datafusion_exprs.engine import frame, theirs
from tests.cases import cases_in

D = decimal.Decimal
BATCH = pa.record_batch(
    {
        "i": pa.array([1, -7, 0, 12, -(2**31), 2**31 - 1, None], pa.int32()),
        "k": pa.array([5, -25, 2**53 + 1, 0, -(2**63), 2**63 - 1, None], pa.int64()),
        "u": pa.array([5, 0, 2**64 - 1, 7, 2**63, 1, None], pa.uint64()),
        "f": pa.array([2.5, math.nan, -0.0, 0.0, math.inf, -math.inf, None], pa.float64()),
        "g": pa.array([16777216.0, math.nan, -0.0, 0.1, math.inf, -math.inf, None], pa.float32()),
        "d": pa.array(
            [D("2.50"), D("-2.55"), D("0.00"), D("99.99"), D("1.40"), D("0.10"), None],
            pa.decimal128(8, 2),
        ),
        "s": pa.array(["abcabc", "  x ", "", "Éa b", "a\nb", "A%_\\", None]),
        "t": pa.array(["abc", "x", None, "", "é", "a", None]),
        "b": pa.array([True, False, None, True, False, None, True]),
        "day": pa.array([0, -1, 15706, 19782, 2932896, -719162, None], pa.int32()).cast(
            pa.date32()
        ),
        "ts": pa.array(
            [0, -1, 1356998400000000, 1709164800250000, 951782400000000, 1, None], pa.int64()
        ).cast(pa.timestamp("us")),
        "tz": pa.array(
            [0, -1, 1356998400000000, 1709164800250000, 951782400000000, 1, None], pa.int64()
        ).cast(pa.timestamp("us", "UTC")),
        "l": pa.array([[1, 2, 3], [None], [], [9], [4, 5], [0], None], pa.list_(pa.int64())),
        "p": pa.StructArray.from_arrays(
            [
                pa.array([1, None, 0, None, 2, 1, None], pa.int32()),
                pa.array(["a", "", None, None, "b", "c", None]),
            ],
            ["x", "y"],
            mask=pa.array([False, False, False, True, False, False, True]),
        ),
    }
)

SCHEMA = schema_of(BATCH.schema)[0]
FRAME = frame(BATCH)
EXACT = cases_in(__file__, "exact.txt")
REFUSED = cases_in(__file__, "refused.txt")


def parsed(text: str) -> datafusion.Expr:
    return FRAME.parse_sql_expr(text)


@pytest.mark.parametrize("text", EXACT)
def test_rows_are_those_of_the_engine(text: str) -> None:
    expression = parsed(text)
    read = from_datafusion(expression, SCHEMA)
    assert read.exactness is Exactness.EXACT, read.notes
    mine = ours(read.exact(), SCHEMA, BATCH, Semantics.DATAFUSION)
    found = theirs(expression, BATCH)
    assert mine is None or found is None or mine == found
    written = to_datafusion(read.exact(), SCHEMA)
    if written.exactness is Exactness.EXACT and mine is not None and found is not None:
        assert theirs(written.exact(), BATCH) == mine


@pytest.mark.parametrize("text", REFUSED)
def test_constructs_without_a_counterpart_are_named(text: str) -> None:
    read = from_datafusion(parsed(text), SCHEMA)
    assert read.exactness is Exactness.UNSUPPORTED
    assert read.expression is None
    assert read.residual is not None
    assert read.notes[0].startswith("condition 1 of 1 (")


def test_an_unknown_condition_goes_to_the_residual_as_a_whole() -> None:
    read = from_datafusion(parsed("i > 0 AND levenshtein(s, 'b') = 2 AND k < 9"), SCHEMA)
    assert read.exactness is Exactness.SUPERSET
    assert read.notes[0].startswith("condition 2 of 3")
    assert read.expression is not None
    assert read.residual is not None
    rows = theirs(parsed("i > 0 AND levenshtein(s, 'b') = 2 AND k < 9"), BATCH)
    wider = ours(read.expression, SCHEMA, BATCH, Semantics.DATAFUSION)
    checked = theirs(read.residual, BATCH)
    assert wider is not None
    assert checked is not None
    assert sorted(set(wider) & set(checked)) == rows
    with pytest.raises(UnsupportedOperation, match=r"condition 2 of 3 .*LEVENSHTEIN"):
        from_datafusion(parsed("i > 0 AND levenshtein(s, 'b') = 2 AND k < 9"), SCHEMA, strict=True)


@pytest.mark.parametrize(
    "text", ["i > 0 OR levenshtein(s, 'b') = 2", "NOT (i > 0 AND levenshtein(s, 'b') = 2)"]
)
def test_nothing_is_dropped_under_or_and_not(text: str) -> None:
    assert from_datafusion(parsed(text), SCHEMA).expression is None


@pytest.mark.parametrize(
    "text",
    [
        "f = 0.0 OR f = 1.0 OR f = 2.0 OR f = 3.0",
        "NOT (f <> 0.0 AND f <> 1.0 AND f <> 2.0 AND f <> 3.0)",
        "g = 0 OR g = 1 OR g = 2 OR g = 3",
        "f = 0.0 OR i = 1 OR f = 1.0 OR f IN (2.0, 3.0)",
        "f = 7.0 OR f IN (2.0, 0.0, 3.0)",
        "NOT (f <> 7.0 AND f NOT IN (2.0, 0.0, 3.0))",
    ],
)
def test_equals_that_become_a_list_of_bits_are_refused(text: str) -> None:
    for source in (text, parsed(text)):
        name = "datafusion" if isinstance(source, str) else None
        read = rs.translate(source, name, target="rowsieve", schema=BATCH.schema)
        assert read.expression is None
        assert re.search(r"-0\.0|one zero", read.notes[0])


def test_expressions_that_datafusion_cannot_write_are_residual() -> None:
    day = pa.array([-(2**63)]).view(pa.date64())[0]  # DataFusion panics
    read = from_datafusion(f.initcap(col("s")) == lit(day), SCHEMA)
    assert read.expression is None
    assert "a BinaryExpr that DataFusion cannot write" in read.notes[0]


def test_the_time_of_the_statement_is_one_node() -> None:
    read = from_datafusion(parsed("ts < now() - INTERVAL '1 day' OR day < current_date"), SCHEMA)
    bound = bind(read.exact(), SCHEMA, Semantics.DATAFUSION, now_us=0)
    assert bound.columns


def test_aggregates_windows_and_parameters_are_refused() -> None:
    for expression in (f.count(col("i")) > lit(1), f.row_number() > lit(1)):
        with pytest.raises(UnsupportedOperation, match=r"a value for each row|unknown to Rowsieve"):
            from_datafusion(expression, SCHEMA, strict=True)


def test_an_unknown_column_is_an_error_and_no_residual() -> None:
    with pytest.raises(UnknownColumn, match="nowhere"):
        from_datafusion(col("nowhere") > lit(1), SCHEMA)


def test_an_expression_is_told_from_other_values() -> None:
    assert is_datafusion_expression(col("i") > lit(1))
    assert not is_datafusion_expression("i > 1")


def test_scans_and_deletes_take_expressions(tmp_path: Path) -> None:
    table = rs.create_table(
        str(tmp_path / "t"), pa.schema([("id", pa.int64()), ("x", pa.float64())]), key=["id"]
    )
    table.upsert(pa.table({"id": [1, 2, 3, 4], "x": [1.0, math.nan, -0.0, None]}))
    assert table.scan(where=col("x") > lit(0.5)).to_arrow().num_rows == 2
    listed = f.in_list(col("x"), [lit(value) for value in (0.0, 5.0, 6.0, 7.0)])
    assert table.scan(where=listed).count() == 0  # bit by bit
    table.delete(where=col("x").is_null())
    assert table.scan().count() == 3
    with pytest.raises(UnsupportedOperation, match="sin"):
        table.scan(where=f.sin(col("x")) == lit(0.0))


def deep(levels: int) -> datafusion.Expr:
    """AND, OR and NOT in turn, each about the one before."""
    whole = col("i") > lit(0)
    for level in range(levels):
        match level % 3:
            case 0:
                whole = ~whole
            case 1:
                whole = whole & (col("k") != lit(level))
            case _:
                whole = whole | (col("i") == lit(level))
    return ~whole


@pytest.mark.parametrize("levels", [10, 11, 12, 13, 24, 25, 40, 100, 190])
def test_deep_conditions_are_read(levels: int) -> None:
    expression = deep(levels)
    read = from_datafusion(expression, SCHEMA, strict=True).exact()
    assert ours(read, SCHEMA, BATCH, Semantics.DATAFUSION) == theirs(expression, BATCH)


def test_deep_conditions_are_read_where_a_stack_is_short() -> None:
    found: list[object] = []
    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(
            target=lambda: found.append(from_datafusion(deep(190), SCHEMA, strict=True).exact())
        )
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [from_datafusion(deep(190), SCHEMA).exact()]


@pytest.mark.parametrize("levels", [199, 250, 400])
def test_expressions_deeper_than_a_predicate_are_rejected(levels: int) -> None:
    assert "deeper" in from_datafusion(deep(levels), SCHEMA).notes[0]


@pytest.mark.parametrize("levels", [40, 100, 250])
def test_deep_values_are_refused(levels: int) -> None:
    chosen, sums = lit(1), col("i")
    for level in range(levels):
        chosen = f.case(col("i")).when(lit(level), chosen).otherwise(lit(2))
        sums = (sums + lit(1)) if level % 2 else (sums * lit(1))
    for value in (chosen, sums):
        assert "deep" in from_datafusion(value == lit(2), SCHEMA).notes[0]
