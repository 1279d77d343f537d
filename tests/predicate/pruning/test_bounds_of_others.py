"""Bounds that Iceberg, Delta and frames have: decoded as they mean them, checked, and sound."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.conversions import to_bytes
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField

import rowsieve as rs
from rowsieve import predicate as p
from rowsieve.errors import InvalidInput

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4, 5, 6], pa.int64()),
        "price": pa.array([Decimal(n) / 4 for n in (6, 10, -12, 16, 20, 25)], pa.decimal128(9, 2)),
        "name": pa.array(["a", "b", None, "\U0010ffff" * 40, "y", "z" * 40]),
        "day": pa.array([dt.date(2020, 1, day) for day in range(1, 7)]),
        "at": pa.array([dt.datetime(2020, 1, 1, 0, 0, 0, 999_999)] * 6, pa.timestamp("us", "UTC")),
        "f": pa.array([1.5, -0.0, 0.0, float("nan"), 2.5, 3.5]),
        "b": pa.array([True, False, None, True, True, True]),
        "raw": pa.array([b"\x00", b"\xff", None, b"\xff" * 40, b"a", b"b"]),
        "in": pa.array(
            [{"x": 1}, {"x": 2}, None, {"x": 4}, {"x": None}, {"x": 6}],
            pa.struct([("x", pa.int32())]),
        ),
    }
)  # fmt: skip
CONDITIONS = (
    "id = 3",
    "id > 4",
    "price < 0",
    "price = 6.25",
    "name IS NULL",
    "name > 'x'",
    "day = DATE '2020-01-02'",
    "at > TIMESTAMPTZ '2020-01-01 00:00:00.9995+00'",
    "f > 3",
    "f = 0",
    "b IS NULL",
    '"in".x = 4',
    '"in".x IS NULL',
)
FEWER = {"id = 3", "id > 4", "price < 0", "day = DATE '2020-01-02'", '"in".x = 4'}

NESTED = {'"in".x = 4'}  # of whose fields we publish no bounds


def check(
    text: str, schema: pa.Schema, files: list[pa.Table], bounds: p.FileBounds, fewer: set[str]
) -> None:
    """No file with a matching row is left out, and some file is where bounds tell."""
    tree = rs.translate(text, "duckdb", target="rowsieve", schema=schema).exact()
    bound = p.bind(tree, schema)
    kept = p.prune(bound, schema, **bounds)
    matching = [
        bool(p.matching(bound, file.combine_chunks().to_batches()[0]).any()) for file in files
    ]
    assert not (np.array(matching) & ~kept).any(), text
    if text in fewer:
        assert not kept.all(), text


@pytest.mark.parametrize("text", CONDITIONS)
def test_manifests_of_iceberg_lose_no_row(text: str, written: Any) -> None:
    table, files, parts = written
    check(text, PLAIN, parts, p.iceberg_bounds(files, PLAIN, table.schema()), FEWER - NESTED)


PLAIN = ROWS.schema
INSTANT = pa.timestamp("us", "UTC")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, list[Any], list[pa.Table]]:
    parts = [ROWS.slice(start, 2) for start in range(0, 6, 2)]
    table = rs.create_table(tmp_path_factory.mktemp("published") / "t", parts[0], key=["id"])
    for part in parts[1:]:
        table.upsert(part)
    place = table.publish("iceberg").metadata_location
    published = StaticTable.from_metadata(str(place))
    files = [task.file for task in published.scan().plan_files()]
    files.sort(key=lambda file: int.from_bytes(file.lower_bounds[1], "little"))
    return published, files, parts


@pytest.mark.parametrize("text", CONDITIONS)
def test_statistics_of_delta_lose_no_row(text: str, added: Any) -> None:
    stats, parts = added
    check(text, PLAIN, parts, p.delta_bounds(stats, PLAIN), FEWER)


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], list[pa.Table]]:
    folder = tmp_path_factory.mktemp("delta")
    parts = [ROWS.slice(start, 2) for start in range(0, 6, 2)]
    for part in parts:
        write_deltalake(folder, part, mode="append")
    log = sorted((folder / "_delta_log").glob("*.json"))
    actions = [json.loads(line) for entry in log for line in entry.read_text().splitlines()]
    stats = [action["add"]["stats"] for action in actions if "add" in action]
    assert len(stats) == len(parts)
    assert DeltaTable(folder).version() == 2
    return stats, parts


@pytest.mark.parametrize("made", [lambda table: table, pl.from_arrow, pa.Table.to_pandas])
def test_a_frame_of_bounds_is_read_by_the_names_of_its_columns(made: Any) -> None:
    frame = made(pa.table({"id_min": [1, 7, None], "id_max": [5, None, 9], "rows": [3, 4, 5]}))
    schema = pa.schema([("id", pa.int64()), ("other", pa.string())])
    tree = p.Comparison(p.ComparisonOp.EQ, p.Column("id"), p.Literal(6))
    bounds = p.frame_bounds(frame, schema)
    assert p.prune(tree, schema, **bounds).tolist() == [False, False, True]
    with pytest.raises(InvalidInput, match="none of them is called like a column"):
        p.frame_bounds(frame, schema, min="lo_{}", max="hi_{}", rows=None)


def test_a_frame_of_something_else_is_named() -> None:
    with pytest.raises(InvalidInput, match="a frame of pandas, polars or Arrow"):
        p.frame_bounds(object(), pa.schema([("id", pa.int64())]))


def data_file(**facts: Any) -> Any:
    names = ("lower_bounds", "upper_bounds", "null_value_counts", "nan_value_counts")
    return SimpleNamespace(record_count=2, **(dict.fromkeys(names) | facts))


def test_bounds_of_an_iceberg_column_before_its_promotion_are_read() -> None:
    schema = pa.schema([("x", pa.int64())])
    four = data_file(
        lower_bounds={3: (5).to_bytes(4, "little")}, upper_bounds={3: to_bytes(LongType(), 9)}
    )
    odd = data_file(lower_bounds={3: b"\x01"}, upper_bounds={3: b""})
    bounds = p.iceberg_bounds([four, odd], schema, {3: "x"})
    tree = p.Comparison(p.ComparisonOp.LT, p.Column("x"), p.Literal(5))
    assert p.prune(tree, schema, **bounds).tolist() == [False, True]


def test_an_iceberg_schema_with_another_type_is_refused() -> None:
    theirs = IcebergSchema(NestedField(3, "x", LongType()))
    file = data_file(lower_bounds={3: bytes(8)})
    with pytest.raises(InvalidInput, match="is long in Iceberg and date in the schema"):
        p.iceberg_bounds([file], pa.schema([("x", pa.date32())]), theirs)
    with pytest.raises(InvalidInput, match="names of columns by field id"):
        p.iceberg_bounds([file], pa.schema([("x", pa.int64())]), ["x"])


def after(clock: str) -> str:
    return f"x > TIMESTAMPTZ '2020-01-01 {clock}+00'"


def upto(value: Any) -> dict[str, Any]:
    return {"maxValues": {"x": value}}


@pytest.mark.parametrize(
    ("stats", "type_", "text", "kept"),
    [
        (upto("2020-01-01T00:00:00.123Z"), INSTANT, after("00:00:00.1235"), True),
        (upto("2020-01-01T00:00:00.123Z"), INSTANT, after("00:00:00.124"), False),
        (upto("2020-01-01T01:00:00.123+01:00"), INSTANT, after("00:00:00.124"), False),
        (upto("2020-01-01T00:00:00.123"), INSTANT, after("23:59:59"), True),
        ({"maxValues": {"x": 0.1}}, pa.decimal128(30, 20), "x > 0.2", False),
        (upto(Decimal("0.12345678901234567")), pa.decimal128(30, 20), "x > 0.2", True),
        ({"maxValues": {"x": "5"}}, pa.int64(), "x > 9", True),
        ({"maxValues": {"x": 5}}, pa.string(), "x > '9'", True),
        ({"maxValues": {"x": 2**70}}, pa.int64(), "x > 9", True),
        ({"minValues": {"x": "NaN"}}, pa.float64(), "x < 0", True),
        ({"minValues": {"x": "Infinity"}}, pa.float64(), "x < 0", False),
        ({"minValues": {"x": {"y": 1}}}, pa.int64(), "x < 0", True),
        ({"nullCount": {"x": 0}}, pa.int64(), "x IS NULL", False),
        ({"nullCount": {"x": True}}, pa.int64(), "x IS NULL", True),
        (None, pa.int64(), "x IS NULL", True),
        ("{}", pa.int64(), "x IS NULL", True),
    ],
)  # fmt: skip
def test_a_statistic_of_delta_is_a_bound_only_if_it_surely_is_one(
    stats: Any, type_: pa.DataType, text: str, kept: bool
) -> None:
    schema = pa.schema([("x", type_)])
    tree = rs.translate(text, "duckdb", target="rowsieve", schema=schema).exact()
    bounds = p.delta_bounds([stats, '{"numRecords": 0}'], schema)
    assert p.prune(tree, schema, **bounds).tolist() == [kept, False]


def test_columns_of_delta_are_known_by_their_physical_names() -> None:
    schema = pa.schema([("x", pa.int64())])
    stats = '{"numRecords": 2, "minValues": {"col-7": 5}}'
    tree = p.Comparison(p.ComparisonOp.LT, p.Column("x"), p.Literal(5))
    known = p.delta_bounds([stats], schema, physical={"x": "col-7"})
    assert p.prune(tree, schema, **known).tolist() == [False]
    with pytest.raises(InvalidInput, match="the stats of file 0 are not JSON"):
        p.delta_bounds(["{"], schema)


def test_a_bound_beyond_the_type_of_a_column_never_hides_a_file() -> None:
    def equal(name: str) -> p.Comparison:
        return p.Comparison(p.ComparisonOp.EQ, p.Column(name), p.Literal(3))

    schema = pa.schema([("i", pa.int32()), ("f", pa.float32())])
    narrow = [data_file(lower_bounds={1: to_bytes(LongType(), -(2**40))})]
    bounds = p.iceberg_bounds(narrow, schema, {1: "i"})
    assert p.prune(equal("i"), schema, **bounds).tolist() == [True]
    stats = [{"numRecords": 1, "minValues": {"f": -(10**400)}, "maxValues": {"f": 10**400}}]
    bounds = p.delta_bounds([json.dumps(each) for each in stats], schema)
    assert p.prune(equal("f"), schema, **bounds).tolist() == [True]
    with pytest.raises(InvalidInput, match="file 0 are not JSON"):
        p.delta_bounds(["[" * 100_000], schema)


def test_actions_of_the_log_are_read_as_they_stand() -> None:
    schema = pa.schema([("id", pa.int64())])
    stats = '{"numRecords": 2, "minValues": {"id": 1}, "maxValues": {"id": 3}}'
    facts = p.delta_bounds([stats], schema)
    for action in ({"add": {"path": "a", "stats": stats}}, {"stats": json.loads(stats)}):
        assert p.delta_bounds([action], schema) == facts
    assert p.delta_bounds([{"add": {"path": "a"}}, {"stats": None}], schema)["rows"] == [None, None]


def test_a_pattern_without_a_place_for_the_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"min='lo' has no \{\} .* min='\{\}_min'"):
        p.frame_bounds(pa.table({"id_max": [1]}), pa.schema([("id", pa.int64())]), min="lo")


def test_whatever_has_a_schema_may_be_given_for_it() -> None:
    rows = pa.table({"id": [7, 8]})
    tree = rs.translate("id = 7", "postgresql", target="rowsieve", schema=rows).exact()
    assert p.matching(p.bind(tree, rows), rows).tolist() == [True, False]
    assert p.prune(tree, rows, min={"id": [1, 8]}, max={"id": [7, 9]}).tolist() == [True, False]
    with pytest.raises(
        InvalidInput, match=r"matching takes a RecordBatch or Table .* not DataFrame"
    ):
        p.matching(p.bind(tree, rows), pl.DataFrame(rows))
    with pytest.raises(InvalidInput, match="such as a table, not to dict"):
        p.bind(tree, {"id": "int64"})
