"""The list of differences: what each row finds, and what it lets pass."""

from __future__ import annotations

import contextlib
import datetime
import itertools

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.differences import DIFFERENCES, Difference, Direction, check
from rowsieve.bridges.sql import parse_predicate
from rowsieve.bridges.sql.language import from_text
from rowsieve.errors import RowsieveError, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Timestamp
from tests.strategies import SCHEMA

WIDE = schema_of(
    pa.schema(
        [
            ("w", pa.decimal128(38, 2)),
            ("d", pa.decimal128(8, 2)),
            ("exact", pa.decimal128(18, 16)),
            ("f64", pa.float64()),
            ("n", pa.int32()),
        ]
    )
)[0]
ANSWERS, READS, WRITES = Direction.ANSWERS, Direction.READS, Direction.WRITES
ONE_ZERO = " OR ".join(f"f64 = {value}e0" for value in range(9))
# Engine, direction, a condition with the difference, a similar one without, part of the reason.
FOUND = [
    ("polars", READS, "f64 / 3e0 > 1e0", "f64 / 4e0 > 1e0", "reciprocal"),
    ("polars", WRITES, "f64 / 5e-324 > 1e0", "f64 / f64 > 1e0", "reciprocal"),
    ("polars", WRITES, "CAST(f64 AS real) > 0", "CAST(d AS double) > 0", "infinity"),
    ("datafusion", READS, "TRY_CAST(f64 AS real) > 0", "CAST(1e0 AS real) > 0", "infinity"),
    ("datafusion", WRITES, "d IN (1) AND d IN (2)", "d IN (1, 2) AND d IN (2)", "no member"),
    ("datafusion", ANSWERS, ONE_ZERO, f"{ONE_ZERO} OR f64 = -0e0", "0.0"),
    ("datafusion", ANSWERS, "NOT (d IN (1) AND d IN (2))", "d IN (1) AND d IN (2)", "no member"),
    ("datafusion", ANSWERS, "n # (d::int # n) = 1", "n # d::int = 1", "twice"),
    ("spark", ANSWERS, "-w > 0", "-d > 0", "34 digits"),
    ("spark", ANSWERS, "abs(w) > 0", "w + 1 > 0", "34 digits"),
    ("duckdb", WRITES, "w > exact", "d > exact", "38 digits"),
    ("datafusion", WRITES, "NOT (exact = w)", "w = d", "38 digits"),
    ("trino", WRITES, "w IS DISTINCT FROM exact", "w > 0.5", "38 digits"),
    ("spark", WRITES, "w <= exact", "w IN (1, 2)", "38 digits"),
    ("duckdb", WRITES, "-f64 < CAST('NaN' AS double)", "f64 < CAST('NaN' AS double)", "NaN"),
]


@pytest.mark.parametrize(("engine", "direction", "text", "other", "reason"), FOUND)
def test_a_difference_is_refused_and_a_similar_condition_passes(
    engine: str, direction: Direction, text: str, other: str, reason: str
) -> None:
    semantics = Semantics.named(engine)
    with pytest.raises(UnsupportedOperation, match=f"^{engine} .*{reason}"):
        check(
            bind(parse_predicate(text), WIDE, semantics, simplified=False).root, engine, direction
        )
    check(bind(parse_predicate(other), WIDE, semantics, simplified=False).root, engine, direction)


@pytest.mark.parametrize(
    "row", [row for row in DIFFERENCES if row.example], ids=lambda row: row.reason
)
def test_an_example_is_found_in_its_engine_alone(row: Difference) -> None:
    root = bind(
        parse_predicate(row.example), SCHEMA, Semantics.named(row.engine), simplified=False
    ).root
    with pytest.raises(UnsupportedOperation, match=row.engine):
        check(root, row.engine, row.direction)
    check(root, "pyarrow", row.direction)


def test_spark_compares_instants_for_local_times_that_occur_twice() -> None:
    local = zoned.local_time("Europe/Berlin", ir.Column("tz"))

    def at(hour: int) -> ir.Predicate:
        moment = datetime.datetime(2024, 10, 27, hour, 30, tzinfo=datetime.UTC)
        constant = ir.Literal(int(moment.timestamp()) * 1_000_000, Timestamp())
        equal = ir.Comparison(ir.ComparisonOp.EQ, local, constant)
        return bind(equal, SCHEMA, Semantics.SPARK, simplified=False).root

    with pytest.raises(UnsupportedOperation, match="occurs twice"):
        check(at(2), "spark", ANSWERS)
    check(at(3), "spark", ANSWERS)


def test_rows_name_known_engines_and_their_direction() -> None:
    for row in DIFFERENCES:
        assert Semantics.named(row.engine).name == row.engine
        assert row.direction
        assert not row.reason.endswith(".")


@pytest.mark.parametrize("text", ["s !~ '.*'", "(s ~* '.*') IS NULL", "NOT (b OR s ~ '.*')"])
def test_a_pattern_of_any_text_is_read_where_a_filter_keeps_it_alike(text: str) -> None:
    assert from_text(text, SCHEMA, dialect="datafusion").residual == text
    assert from_text("s ~ '.*' OR b", SCHEMA, dialect="datafusion").residual is None


@pytest.mark.parametrize("text", ["i64 IN (1, 'x')", "i64 = 'x' OR i64 = 0", "s = 'a' OR s = 1"])
def test_constants_of_several_types_are_compared_only_when_bound(text: str) -> None:
    """The lists of the top AND are examined before the constants have the column's type."""
    assert from_text(text, SCHEMA, dialect="datafusion").residual == text


def test_members_that_no_type_of_arrow_has_are_compared_as_text() -> None:
    rows = {"id": [1, 2], "u": pa.array([2, None], pa.uint64()), "s": ["2", None]}
    table = rs.create_table("memory:///members-of-chains", pa.table(rows))
    forms = ("({0} = 2 OR {0} = {1}) AND id > 0", "({0} <> 3 AND {0} <> {1}) OR id > 5")
    values = ("9223372036854775808", "18446744073709551616", "'a'", "DATE '2020-01-01'")
    for form, column, value in itertools.product(forms, "us", values):
        with contextlib.suppress(RowsieveError):
            assert table.count(form.format(column, value), dialect="datafusion") == 1
    assert table.count(forms[0].format("u", values[0]), dialect="datafusion") == 1
