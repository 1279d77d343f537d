"""Arithmetic of whole numbers is as wide as in the engine of the text: it overflows alike."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.errors import EvaluationError, InvalidPredicate
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Int
from tests.bridges.sql.engines import duckdb_rows
from tests.bridges.sql.postgres import postgres_rows
from tests.profiles import IS_DEEP

TOP = 2**31 - 1
ARROW = pa.schema(
    [
        ("k", pa.int64()),
        ("i8", pa.int8()),
        ("i16", pa.int16()),
        ("n", pa.int32()),
        ("s", pa.string()),
    ]
)
SCHEMA = schema_of(ARROW)[0]
CONSTANTS = (0, 1, 2, 3, 127, 128, 255, 32767, 32768, 40000, TOP, TOP + 1, 2**33, 2**62)
VALUES: dict[str, list[int | None]] = {
    "k": [0, 1, -1, 2**40, 2**63 - 1, -(2**63), None],
    "i8": [0, 1, -1, 2, 100, 127, -128, None],
    "i16": [0, 1, -1, 2, 300, 32767, -32768, None],
    "n": [0, 1, -1, 2, 70000, TOP, -TOP - 1, None],
}
COUNT = 2_000 if IS_DEEP else 250
# It drops what overflows: n * 40000 <> 0 becomes n <> 0.
_REWRITES = "expression_rewriter,statistics_propagation"
Judge = Callable[[str, pa.RecordBatch], list[int] | None]


class Texts:
    """Random values and conditions over the columns; PostgreSQL has no column of one byte."""

    def __init__(self, source: random.Random, dialect: str) -> None:
        self.source, self.dialect = source, dialect
        self.columns = ("i16", "n", "n", "k") if dialect == "postgres" else ("i8", "i16", "n", "k")

    def value(self, depth: int = 0) -> str:
        one, kind = self.source.choice, self.source.random()
        if depth > 2 or kind < 0.3:
            return one(self.columns)
        if kind < 0.5:
            return str(one(CONSTANTS))
        if kind < 0.53:
            return f"-{one(CONSTANTS)}"
        inner = [self.value(depth + 1) for _ in range(2)]
        if kind < 0.82:
            whole = "/" if self.dialect == "postgres" else "%"
            return f"({inner[0]} {one(('+', '-', '*', '+', '-', '*', '%', whole))} {inner[1]})"
        if kind < 0.88:
            return f"abs({inner[0]})"
        if kind < 0.96:
            return f"{one(('coalesce', 'greatest', 'least'))}({inner[0]}, {inner[1]})"
        return f"CASE WHEN n > 0 THEN {inner[0]} ELSE {inner[1]} END"

    def condition(self) -> str:
        return f"{self.value()} {self.source.choice(('=', '<', '>=', '<>'))} {self.value()}"


def duckdb_as_written(text: str, batch: pa.RecordBatch) -> list[int] | None:
    """The rows that DuckDB keeps when it computes all that the text says."""
    return duckdb_rows(text, batch, _REWRITES)


def rows_of(source: random.Random, count: int = 3) -> pa.RecordBatch:
    rows = [{name: source.choice(values) for name, values in VALUES.items()} for _ in range(count)]
    return pa.RecordBatch.from_pylist([row | {"s": "abc"} for row in rows], ARROW)


def ours(text: str, dialect: str, batch: pa.RecordBatch) -> list[int] | None:
    """The rows kept; None where one fails."""
    bound = bind(to_predicate(text, dialect, SCHEMA), SCHEMA, semantics_of(dialect, text))
    outcome = evaluate(bound, batch)
    return None if outcome.failed.any() else [int(row) for row in outcome.true.nonzero()[0]]


@pytest.mark.parametrize(
    ("dialect", "judge"), [("duckdb", duckdb_as_written), ("postgres", postgres_rows)]
)
def test_whole_numbers_overflow_where_the_engine_has_them_overflow(
    dialect: str, judge: Judge
) -> None:
    source = random.Random(5)
    texts = Texts(source, dialect)
    batches = [rows_of(source) for _ in range(12)]
    failing = 0
    for _ in range(COUNT):
        text, batch = texts.condition(), source.choice(batches)
        expected = judge(text, batch)
        assert (text, batch.to_pylist(), ours(text, dialect, batch)) == (
            text,
            batch.to_pylist(),
            expected,
        )
        failing += expected is None
    assert COUNT // 10 < failing < COUNT * 9 // 10


@pytest.mark.parametrize(
    ("dialect", "text", "row", "expected"),
    [
        ("postgres", "n + 1 > 0", {"n": TOP}, None),
        ("duckdb", "n + 1 > 0", {"n": TOP}, None),
        ("trino", "n + 1 > 0", {"n": TOP}, None),
        ("datafusion", "n + 1 > 0", {"n": TOP}, [0]),
        ("postgres", "i16 + 1 > 0", {"i16": 32767}, [0]),
        ("duckdb", "i16 + 1 > 0", {"i16": 32767}, None),
        ("duckdb", "i16 + 32768 > 0", {"i16": 32767}, [0]),
        ("postgres", "2147483647 + 1 > n", {"n": 1}, None),
        ("postgres", "n + 2147483648 > 0", {"n": TOP}, [0]),
        ("postgres", "length(s) + 2147483647 > 0", {}, None),
        ("duckdb", "length(s) + 2147483647 > 0", {}, [0]),
        ("duckdb", "coalesce(i8, 1) + 1 > 0", {"i8": 127}, None),
        ("postgres", "n = 2147483648", {"n": TOP}, []),
        ("postgres", "extract(year FROM DATE '2024-01-01') + 2147483647 > 0", {}, [0]),
        ("duckdb", "k % n = 0", {"k": -(2**63), "n": -1}, None),
        ("duckdb", "i8 % (-1) = 0", {"i8": -128}, None),
        ("duckdb", "n % k = 0", {"n": -TOP - 1, "k": -1}, [0]),
        ("postgres", "k % n = 0", {"k": -(2**63), "n": -1}, [0]),
        ("datafusion", "k % n = 0", {"k": -(2**63), "n": -1}, [0]),
        ("duckdb", "(i8 + 1) * 2 > 0 OR length(s) = 3", {"i8": 126}, [0]),
    ],
)
def test_a_constant_has_the_width_that_its_dialect_gives_it(
    dialect: str, text: str, row: dict[str, Any], expected: list[int] | None
) -> None:
    batch = pa.RecordBatch.from_pylist([{"s": "abc"} | row], ARROW)
    assert ours(text, dialect, batch) == expected


def test_assignments_and_computed_columns_have_the_widths_of_their_dialect() -> None:
    table = rs.create_table(
        "memory:///widths", pa.table({"k": [1], "n": pa.array([TOP], pa.int32())})
    )
    for dialect in ("postgres", "duckdb"):
        with pytest.raises(EvaluationError):
            table.scan(columns={"m": "n + 1"}, dialect=dialect).to_arrow()
    (row,) = table.scan(columns={"m": "n + 1"}, dialect="datafusion").to_arrow().to_pylist()
    assert row == {"m": TOP + 1}


def test_text_keeps_its_widths_in_another_dialect() -> None:
    for source in ("postgres", "duckdb"):
        for target in ("postgres", "duckdb", "spark"):
            made = rs.translate("n + 1 > 0", source, target=target, schema=ARROW)
            again = ours(made.exact(), target, pa.RecordBatch.from_pylist([{"n": TOP}], ARROW))
            assert again is None, made


@pytest.mark.parametrize(
    "operand",
    [
        ir.Call("add", (ir.Literal(1, Int(64)), ir.Literal(TOP, Int(64)))),
        ir.Call(
            "multiply", (ir.Call("negate", (ir.Literal(-TOP, Int(64)),)), ir.Literal(3, Int(64)))
        ),
        ir.Call("abs", (ir.Literal(-TOP - 1, Int(64)),)),
        ir.Call("add", (ir.Call("coalesce", (ir.Literal(TOP, Int(64)),)), ir.Literal(2, Int(64)))),
    ],
)
def test_constants_of_64_bits_are_written_with_room(operand: ir.Call) -> None:
    predicate = ir.Comparison(ir.ComparisonOp.LT, ir.Column("n"), operand)
    batch = pa.RecordBatch.from_pylist([{"n": TOP}], ARROW)
    judges = {"duckdb": duckdb_rows, "postgres": postgres_rows}
    for target in ("duckdb", "postgres", "spark"):
        text = rs.translate(predicate, target=target, schema=ARROW).exact()
        assert (text, ours(text, target, batch)) == (text, [0])
        if target in judges:
            assert (text, judges[target](text, batch)) == (text, [0])


@pytest.mark.parametrize("dialect", ["postgres", "duckdb"])
@pytest.mark.parametrize("shift", ["1 << 31", "2147483647 << 1", "1 << 32", "1 << 63", "1 >> 33"])
def test_a_shift_that_leaves_the_width_of_its_constant_is_refused(shift: str, dialect: str) -> None:
    with pytest.raises(InvalidPredicate, match="shift_"):
        ours(f"k & ({shift}) = 0", dialect, pa.RecordBatch.from_pylist([{"k": 1}], ARROW))


@pytest.mark.parametrize("shift", ["1 << 30", "1 << 3", "7 >> 1", "2147483648 << 3"])
def test_a_shift_within_the_width_of_its_constant_is_read(shift: str) -> None:
    cells = [{"k": value} for value in (0, 8, 3, 2**30, 2**34)]
    rows, text = pa.RecordBatch.from_pylist(cells, ARROW), f"k & ({shift}) <> 0"
    assert ours(text, "postgres", rows) == postgres_rows(text, rows)
    assert ours(text, "duckdb", rows) == duckdb_rows(text, rows)


@pytest.mark.parametrize("shift", ["1 << 40", "1 << 31", "7 >> 40"])
def test_a_constant_that_is_shifted_is_written_with_room(shift: str) -> None:
    text, rows = f"k & ({shift}) <> 0", pa.RecordBatch.from_pylist([{"k": 2**40 + 2**31}], ARROW)
    written = rs.translate(text, "datafusion", target="postgres", schema=ARROW).exact()
    assert postgres_rows(written, rows) == ours(text, "datafusion", rows)
