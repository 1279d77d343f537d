"""Columns of nanoseconds through a table: conditions, pruning, keys, engines, schema changes."""

from __future__ import annotations

import dataclasses
import datetime
import operator
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from datafusion import SessionContext
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import rowsieve as rs
from rowsieve.bridges.languages import BRIDGES
from rowsieve.cli.app import app as cli
from rowsieve.errors import (
    EvaluationError,
    InvalidPredicate,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Nanos
from tests.profiles import examples

NS, ZONED = pa.timestamp("ns"), pa.timestamp("ns", "UTC")
NAME = {"ARROW:extension:name": "rowsieve.timestamp_ns.1"}
BASE = 1_700_000_000_000_000_000  # 2023-11-14 22:13:20
MICROS = BASE // 1_000
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64()),
        pa.field("t", NS, metadata=NAME),
        pa.field("z", ZONED, metadata=NAME),
    ]
)
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def text(nanos: int) -> str:
    """The time as text with nine digits."""
    seconds, rest = divmod(nanos, 10**9)
    whole = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    return f"{whole.isoformat(sep=' ')}.{rest:09}"


def table_of(ticks: Sequence[int | None], part_rows: int = 3, uri: str | None = None) -> rs.Table:
    table = rs.create_table(uri or f"memory:///{uuid.uuid4().hex}", SCHEMA, key=["id"])
    for start in range(0, len(ticks), part_rows):
        taken = ticks[start : start + part_rows]
        ids = range(start, start + len(taken))
        rows = {"id": ids, "t": pa.array(taken, NS), "z": pa.array(taken, ZONED)}
        table.upsert(pa.table(rows))
    return table


def ids(rows: Any) -> list[int]:
    return sorted(rows.column("id").to_pylist())


@pytest.fixture
def table() -> rs.Table:
    return table_of([*range(BASE, BASE + 3_000, 7), None], 64)


EDGES = [-(2**63), -(2**63) + 1, -1_001, -1_000, -999, -1, 0, 1, 999, 1_000, 2**63 - 1]
TICKS = st.one_of(
    st.sampled_from(EDGES),
    st.integers(BASE - 3_000, BASE + 3_000),
)


@examples(100)
@given(
    st.lists(st.none() | TICKS, min_size=1, max_size=9),
    st.sampled_from(list(OPERATORS)),
    TICKS,
    st.sampled_from(["text", "microseconds", "in"]),
)
def test_conditions_compare_to_the_nanosecond(
    values: list[int | None], op: str, point: int, form: str
) -> None:
    table = table_of(values)
    if form == "in":
        where, matches = f"t IN ('{text(point)}', '{text(BASE)}')", (point, BASE).__contains__
    elif form == "text":
        where, matches = f"t {op} '{text(point)}'", lambda tick: OPERATORS[op](tick, point)
    else:
        rounded = point // 1_000
        where = f"t {op} TIMESTAMP '{text(rounded * 1_000)[:-3]}'"
        matches = lambda tick: OPERATORS[op](tick, rounded * 1_000)  # noqa: E731 - one of three
    wanted = [i for i, tick in enumerate(values) if tick is not None and matches(tick)]
    for pruning in ("on", "soft", "off"):
        assert ids(table.scan(where, pruning=pruning).to_arrow()) == wanted, where


def test_parts_and_pages_are_skipped_by_nanoseconds(tmp_path: Path) -> None:
    table = rs.create_table(str(tmp_path / "t"), SCHEMA, key=["id"])
    ticks = pa.array(range(BASE, BASE + 50_000), NS)
    for start in (0, 50_000):
        moved = pc.add(ticks.cast(pa.int64()), start).cast(NS)
        rows = {"id": range(start, start + 50_000), "t": moved, "z": moved.cast(ZONED)}
        table.upsert(pa.table(rows))
    scan = table.scan(f"t = '{text(BASE + 77)}'")
    assert ids(scan.to_arrow()) == [77]
    assert scan.metrics.parts_pruned == 1
    assert scan.metrics.rows_decoded < 50_000
    assert ids(table.scan(f"z >= '{text(BASE + 99_998)}Z'").to_arrow()) == [99_998, 99_999]


def test_a_scan_and_a_file_keep_every_digit_and_the_name(tmp_path: Path) -> None:
    table = table_of([BASE + 1, None, -1], uri=str(tmp_path / "t"))
    rows = table.to_arrow()
    assert rows.column("t").cast(pa.int64()).to_pylist() == [BASE + 1, None, -1]
    copy = rs.create_table(f"memory:///{uuid.uuid4().hex}", rows)
    copy.append(rows)
    assert copy.to_arrow().column("z").cast(pa.int64()).to_pylist() == [BASE + 1, None, -1] * 2
    (file,) = (tmp_path / "t" / "data").glob("*.parquet")
    stored = pq.ParquetFile(file)
    assert stored.schema_arrow.field("t").type == NS
    assert str(stored.schema.column(1).logical_type).startswith("Timestamp(isAdjustedToUTC=false")
    table.compact()
    assert table.to_arrow().equals(rows)


def test_keys_are_nanoseconds() -> None:
    schema = pa.schema([pa.field("t", NS, metadata=NAME), pa.field("v", pa.int64())])
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", schema, key=["t"])
    table.upsert(pa.table({"t": pa.array([BASE, BASE + 1, BASE + 2], NS), "v": [1, 2, 3]}))
    table.upsert(pa.table({"t": pa.array([BASE + 1], NS), "v": [20]}))
    table.delete(keys=pa.table({"t": pa.array([BASE + 2], NS)}))
    found = table.scan(order_by_key=True).to_arrow()
    assert found.column("t").cast(pa.int64()).to_pylist() == [BASE, BASE + 1]
    assert found.column("v").to_pylist() == [1, 20]
    where = f"t IN ('{text(BASE + 1)}', '{text(BASE + 2)}')"
    assert table.scan(where).to_arrow().column("v").to_pylist() == [20]


def test_a_column_of_nanoseconds_is_added_with_a_default(table: rs.Table) -> None:
    table.add_column("seen", "timestamptz_ns", default=pa.scalar(BASE + 5, ZONED))
    table.sql("ALTER TABLE this ADD COLUMN w timestamp_ns")
    count = table.count()
    assert table.scan(f"seen = '{text(BASE + 5)}Z' AND w IS NULL").to_arrow().num_rows == count
    assert table.scan(f"seen = '{text(BASE + 4)}Z'").plan().splits == ()
    table.update({"w": f"'{text(BASE + 9)}'"}, where="id = 3")
    assert ids(table.scan(f"w = '{text(BASE + 9)}'").to_arrow()) == [3]


def test_engines_see_nanoseconds(table: rs.Table) -> None:
    dataset, moment = table.to_dataset(), text(BASE + 14)
    query = f"SELECT id, typeof(t) FROM dataset WHERE t = TIMESTAMP_NS '{moment}'"
    assert duckdb.execute(query).fetchall() == [(2, "TIMESTAMP_NS")]
    context = SessionContext()
    context.register_table("ns", table)
    for where in (f"t = '{moment}'", f"z = '{moment}Z'", f"t IN ('{moment}', '{text(3)}')"):
        assert context.sql(f"SELECT id FROM ns WHERE {where}").to_pylist() == [{"id": 2}]
    truncated = "SELECT count(*) AS n FROM ns WHERE date_trunc('microsecond', t) = TIMESTAMP"
    found = context.sql(f"{truncated} '{text(BASE)[:-3]}'").to_pylist()
    assert found == [{"n": 143}]
    for constant in (pa.scalar(BASE + 14, NS), pa.scalar(BASE // 1_000 * 1_000, NS)):
        rows = dataset.to_table(filter=pc.field("t") == constant)
        assert len(rows) == 1
    assert len(dataset.to_table(filter=pc.field("t").isin(pa.array([BASE + 7, 1], NS)))) == 1
    at = pl.lit(BASE + 14, dtype=pl.Datetime("ns"))
    assert table.scan_polars().filter(pl.col("t") == at).collect()["id"].to_list() == [2]


def test_microseconds_compare_with_nanoseconds_in_engines() -> None:
    table = rs.create_table(f"memory:///{uuid.uuid4().hex}", pa.schema({"u": pa.timestamp("us")}))
    table.append(pa.table({"u": pa.array([MICROS, MICROS + 1], pa.timestamp("us"))}))
    rows = table.to_arrow()
    point = pa.scalar(BASE + 1, NS)
    for field in (pc.field("u") > point, pc.field("u") == point):
        assert table.to_dataset().to_table(filter=field).equals(rows.filter(field))
    context = SessionContext()
    context.register_table("us", table)
    context.from_arrow(rows, "plain")
    for name in ("us", "plain"):
        found = context.sql(f"SELECT count(*) AS n FROM {name} WHERE u > '{text(BASE + 1)}'")
        assert found.to_pylist() == [{"n": 1}], name


TRANSLATED = {"polars", "pyarrow_exprs", "delta_dnf", "rowsieve"}
TRANSLATED |= {"duckdb", "datafusion", "datafusion_exprs", "iceberg_json"}


@pytest.mark.parametrize(
    "language", [each.name for each in BRIDGES if each.name != "spark_columns"]
)
def test_a_translation_is_exact_or_refused(language: str) -> None:
    where = f"t < '{text(BASE + 14)}'"
    found = rs.translate(where, "postgres", target=language, schema=SCHEMA)
    assert (found.expression is not None) == (language in TRANSLATED), found
    rows = pa.table({"t": pa.array([BASE + 13, BASE + 14, None], NS)})
    if language == "polars":
        assert isinstance(found.expression, pl.Expr)
        assert pl.DataFrame(rows).filter(found.expression).height == 1
    if language == "pyarrow_exprs":
        assert rows.filter(found.expression).num_rows == 1


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("t - t = INTERVAL '1 day'", "epoch_us"),
        ("t::time = '12:00'", "CAST from timestamp_ns"),
        ("z::text = '2023-11-14'", "CAST from timestamptz_ns"),
        ("t = z", "no meaning"),
        ("t > '2262-04-11 23:47:16.854775808'", "1677-09-21"),
        ("t > '2023-11-14 22:13:20.0000000001'", "not a valid"),
        (f"t = '{text(1)}Z'", "offset"),
    ],
)
def test_what_has_no_meaning_is_refused(table: rs.Table, where: str, why: str) -> None:
    with pytest.raises(InvalidPredicate, match=why):
        table.scan(where).to_arrow()


def test_a_local_time_of_another_zone_needs_an_offset() -> None:
    berlin = dataclasses.replace(Semantics.POSTGRES, time_zone="Europe/Berlin")
    schema = schema_of(SCHEMA)[0]
    for members in ((text(BASE),), (text(BASE), text(BASE) + "Z")):
        values = ir.ValueSet(pa.array(members))
        for condition in (
            ir.InList(ir.Column("z"), values),
            ir.Comparison(ir.ComparisonOp.EQ, ir.Column("z"), ir.Literal(members[0])),
        ):
            with pytest.raises(InvalidPredicate, match="offset"):
                bind(condition, schema, berlin)
    told = ir.Comparison(ir.ComparisonOp.EQ, ir.Column("z"), ir.Literal(text(BASE) + "+01:00"))
    root = bind(told, schema, berlin).root
    assert isinstance(root, ir.Comparison)
    assert root.right == ir.Literal(BASE - 3_600 * 10**9, Nanos(utc=True))


def test_digits_that_a_timestamp_lacks_are_refused_with_the_type_that_has_them() -> None:
    values = pa.table({"t": pa.array([BASE, BASE + 1], NS)})
    with pytest.raises(
        SchemaMismatch,
        match=r"type timestamp_ns has nanoseconds: .*'rowsieve\.timestamp_ns\.1'} \(row 1",
    ):
        rs.create_table(f"memory:///{uuid.uuid4().hex}", values)
    far = pa.table({"id": [1], "t": pa.array([2**62], pa.timestamp("us")), "z": pa.nulls(1, ZONED)})
    with pytest.raises(SchemaMismatch, match="does not fit timestamp_ns"):
        table_of([]).upsert(far)


def test_files_of_others_are_read_as_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = f"SELECT i AS id, make_timestamp_ns({BASE} + i) AS t FROM range(30000) r(i)"
    duckdb.sql(f"COPY ({rows}) TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 10000)")
    coarse = {"id": [-1], "t": pa.array([BASE // 1_000 + 99], pa.timestamp("us"))}
    pq.write_table(pa.table(coarse), tmp_path / "b.parquet")
    opened = rs.open_parquet(str(tmp_path), schema=SCHEMA.remove(2))
    scan = opened.scan(f"t = '{text(BASE + 25_000)}'")
    assert ids(scan.to_arrow()) == [25_000]
    assert scan.metrics.rows_decoded <= 10_240
    assert ids(opened.scan(f"t = '{text(BASE + 99_000)}'").to_arrow()) == [-1]


def test_publications_refuse_nanoseconds(table: rs.Table, tmp_path: Path) -> None:
    for format_ in ("delta", "iceberg"):
        with pytest.raises(UnsupportedOperation, match="timestamp_ns"):
            table.publish(format_, str(tmp_path / format_))


@pytest.mark.parametrize("output", ["text", "json", "csv", "markdown"])
def test_the_command_line_prints_every_digit(output: str, tmp_path: Path) -> None:
    uri = str(tmp_path / "ns")
    table_of([BASE + 1, BASE, None], uri=uri)
    query = ["query", "SELECT id, t FROM ns ORDER BY id", "--table", f"ns={uri}"]
    printed = CliRunner().invoke(cli, [*query, "--output", output])
    assert printed.exit_code == 0, printed.output
    assert text(BASE + 1) in printed.output


def test_assignments_convert_as_casts_do() -> None:
    table = table_of([BASE + 499, BASE + 500, None, 2**63 - 1])
    table.add_column("u", "timestamp")
    table.add_column("w", "timestamp_ns")
    table.update({"u": "t", "w": "t + INTERVAL '1 microsecond'"}, where="id < 3")
    rows = table.scan("id < 3", order_by_key=True).to_arrow()
    assert rows.column("u").cast(pa.int64()).to_pylist() == [MICROS, MICROS + 1, None]
    assert rows.column("w").cast(pa.int64()).to_pylist() == [BASE + 1_499, BASE + 1_500, None]
    table.update({"w": "u"}, where="id < 3")
    rows = table.scan("id < 3", order_by_key=True).to_arrow()
    assert rows.column("w").cast(pa.int64()).to_pylist() == [BASE, BASE + 1_000, None]
    for assigned in ("t + INTERVAL '1 microsecond'", "TIMESTAMP '1500-01-01'"):
        with pytest.raises(EvaluationError, match="'w'"):
            table.update({"w": assigned}, where="id = 3")
