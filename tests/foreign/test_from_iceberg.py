"""Iceberg tables, read through our planner: the rows are those that pyiceberg reads."""

from __future__ import annotations

import decimal
import json
import struct
import uuid
import zlib
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyroaring
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadataUtil
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedOperation, VersionNotFound
from rowsieve.foreign import position_deletes
from tests.foreign import iceberg_tables

SCHEMA = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(2, "p", StringType()),
    NestedField(3, "d", DateType()),
    NestedField(4, "f", DoubleType()),
    NestedField(5, "ts", TimestamptzType()),
    NestedField(6, "local", TimestampType()),
    NestedField(
        7,
        "st",
        StructType(
            NestedField(8, "x", LongType()),
            NestedField(9, "l", ListType(10, StringType(), element_required=False)),
        ),
    ),
)
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "p": ["a b", "é%", None, "a b"],
        "d": [date(2020, 1, 1), None, date(2020, 1, 3), date(1960, 1, 1)],
        "f": [1.5, float("nan"), None, -0.0],
        "ts": pa.array([datetime(2020, 1, i, tzinfo=UTC) for i in range(1, 5)]),
        "local": pa.array([datetime(2020, 1, i) for i in range(1, 5)], pa.timestamp("us")),
        "st": [{"x": 1, "l": ["a", None]}, None, {"x": None, "l": None}, {"x": 2, "l": []}],
    }
)
CONDITIONS = (
    *("id = 3", "id > 2", "p = 'a b'", "p IS NULL", "d = date '1960-01-01'", "f = 0", "f > 1"),
    *("ts >= timestamptz '2020-01-03 00:00:00+00'", "local < timestamp '2020-01-02'", "f IS NULL"),
)
PARTITIONED = PartitionSpec(
    PartitionField(2, 1000, IdentityTransform(), "p"),
    PartitionField(3, 1001, IdentityTransform(), "d"),
)


def in_order(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(map(repr, rows))


def rows_of(table: Table, snapshot_id: int | None = None) -> pa.Table:
    return table.scan(snapshot_id=snapshot_id).to_arrow()


def check_same(table: Table) -> rs.Table:
    opened = rs.from_iceberg(table)
    expected = rows_of(table)
    assert opened.schema.names == expected.column_names
    found = opened.to_arrow()
    assert in_order(found.to_pylist()) == in_order(expected.to_pylist())
    for condition in CONDITIONS:
        full = opened.scan(condition, pruning="off").to_arrow()
        assert opened.scan(condition, pruning="soft").to_arrow().num_rows == full.num_rows
        assert opened.count(condition) == full.num_rows
    return opened


@pytest.mark.parametrize("partitioned", [False, True])
def test_rows_are_those_that_pyiceberg_reads(partitioned: bool, tmp_path: Path) -> None:
    spec = {"spec": PARTITIONED} if partitioned else {}
    table = iceberg_tables.create(tmp_path / "t é", SCHEMA, **spec)
    table.append(ROWS)
    first = table.current_snapshot()
    table.append(ROWS.slice(1, 2))
    table.delete("id = 3")
    opened = check_same(table)
    assert [int(field.metadata[b"PARQUET:field_id"]) for field in opened.schema] == list(
        range(1, 8)
    )
    assert first is not None
    assert rs.from_iceberg(table, first.snapshot_id).count() == 4
    with pytest.raises(VersionNotFound, match="no snapshot 7"):
        rs.from_iceberg(table, 7)
    if partitioned:
        scan = opened.scan("p = 'é%'")
        assert set(scan.to_arrow()["id"].to_pylist()) == {2}
        assert scan.metrics.parts_pruned > 0


def test_columns_are_found_by_their_ids(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    with table.update_schema() as change:
        change.delete_column("f")
        change.rename_column("p", "f")
        change.update_column("id", LongType())
    with table.update_schema() as change:
        change.add_column("p", StringType())
    opened = rs.from_iceberg(table)
    assert in_order(opened.to_arrow().to_pylist()) == in_order(rows_of(table).to_pylist())
    assert opened.count("p IS NULL") == 4
    assert opened.count("f = 'é%'") == 1
    assert opened.scan("id = 3").to_arrow()["id"].type == pa.int64()


NESTED = Schema(
    NestedField(1, "id", IntegerType()),
    NestedField(
        2,
        "s",
        StructType(
            NestedField(3, "a", IntegerType()),
            NestedField(4, "b", StringType()),
            NestedField(5, "t", StructType(NestedField(6, "f", FloatType()))),
        ),
    ),
    NestedField(
        7, "l", ListType(8, StructType(NestedField(9, "n", IntegerType())), element_required=False)
    ),
    NestedField(
        10,
        "m",
        MapType(
            11, StringType(), 12, StructType(NestedField(13, "v", IntegerType())),
            value_required=False,
        ),
    ),
)  # fmt: skip


@pytest.mark.parametrize("imported", [False, True])
def test_fields_inside_columns_are_found_by_their_ids(imported: bool, tmp_path: Path) -> None:
    """Renamed, moved, dropped, added again, added and widened, in structs, lists and maps."""
    table = iceberg_tables.create(tmp_path / "t", NESTED)
    old = {
        "id": 1,
        "s": {"a": 5, "b": "x", "t": {"f": 1.5}},
        "l": [{"n": 7}],
        "m": [("k", {"v": 1})],
    }
    null: dict[str, Any] = {"id": 2, "s": None, "l": [], "m": []}
    table.append(pa.Table.from_pylist([old, null], schema_to_pyarrow(table.schema())))
    with table.update_schema() as change:
        change.rename_column(("s", "a"), "b2").update_column(("s", "a"), LongType())
        change.delete_column(("s", "b"))
        change.update_column(("s", "t", "f"), DoubleType())
        change.rename_column(("l", "n"), "k").add_column(("l", "new"), StringType())
        change.update_column(("m", "v"), LongType()).add_column(("m", "w"), DateType())
    with table.update_schema() as change:
        change.add_column(("s", "b"), StringType()).move_first(("s", "t"))
    new = {
        "id": 3,
        "s": {"t": {"f": 2.5}, "b2": 2**40, "b": "x"},
        "l": [{"k": 1, "new": "y"}],
        "m": [("k", {"v": 2**40, "w": date(2026, 1, 1)})],
    }
    table.append(pa.Table.from_pylist([new], schema_to_pyarrow(table.schema())))
    opened = rs.import_iceberg(table, tmp_path / "own") if imported else rs.from_iceberg(table)
    expected: list[dict[str, Any]] = [
        {
            "id": 1,
            "s": {"t": {"f": 1.5}, "b2": 5, "b": None},
            "l": [{"k": 7, "new": None}],
            "m": [("k", {"v": 1, "w": None})],
        },
        null,
        new,
    ]
    assert opened.to_arrow().sort_by("id").to_pylist() == expected
    assert in_order(rows_of(table).to_pylist()) == in_order(expected)
    found = {
        where: sorted(opened.scan(where).to_arrow()["id"].to_pylist())
        for where in ("(s).b = 'x'", "(s).b IS NULL", "(s).b2 = 5", "(l[1]).new = 'y'", "s IS NULL")
    }
    assert list(found.values()) == [[3], [1, 2], [1], [3], [2]]
    if imported:
        opened.rename_column("s.b", "c")
        opened.add_column("s.b", "int64", default=9)
        opened.drop_column("l.element.k")
        for _ in range(2):
            assert opened.count("(s).c = 'x'") == 1
            assert opened.count("(s).b = 9") == 2
            assert opened.count("(s).c IS NULL") == 2
            assert opened.scan("id = 1").to_arrow()["l"].to_pylist() == [[{"new": None}]]
            assert opened.count("(s).b2 > 4") == 2
            opened.compact()


def with_deletes(table: Table, monkeypatch: pytest.MonkeyPatch, delete: DataFile) -> None:
    """Let the plan have a delete file, which pyiceberg cannot write."""
    scan = type(table.scan())
    planned = list(table.scan().plan_files())
    tasks = [FileScanTask(task.file, delete_files={delete}) for task in planned]
    monkeypatch.setattr(scan, "plan_files", lambda _: tasks)
    monkeypatch.setattr(position_deletes, "_entries_of", lambda *_: len(tasks))


def test_vectors_that_no_entry_may_name_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer may replace one vector of a file; its entries tell, but not to pyiceberg."""
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    (path,) = (task.file.file_path for task in table.scan().plan_files())
    (tmp_path / "d").write_bytes(puffin({path: [1], f"{path}.gone": [1]}))
    delete = delete_file(tmp_path / "d", DataFileContent.POSITION_DELETES, FileFormat.PUFFIN)
    with_deletes(table, monkeypatch, delete)
    with pytest.raises(UnsupportedOperation, match=r"2 deletion vectors, .* names 1 of them"):
        rs.from_iceberg(table)


def delete_file(path: Path, content: DataFileContent, form: FileFormat) -> DataFile:
    return DataFile.from_args(
        content=content,
        file_path=str(path),
        file_format=form,
        partition=Record(),
        record_count=1,
        file_size_in_bytes=path.stat().st_size,
        _table_format_version=2,
    )


def test_position_deletes_hide_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    table.append(ROWS)
    first, second = (task.file.file_path for task in table.scan().plan_files())
    deletes = pa.table({"file_path": [first, first, second], "pos": [0, 2, 3]})
    pq.write_table(deletes, tmp_path / "d.parquet")
    delete = delete_file(
        tmp_path / "d.parquet", DataFileContent.POSITION_DELETES, FileFormat.PARQUET
    )
    with_deletes(table, monkeypatch, delete)
    opened = rs.from_iceberg(table)
    assert sorted(opened.to_arrow()["id"].to_pylist()) == [1, 2, 2, 3, 4]
    assert opened.count("id = 1") == 1
    assert in_order(opened.to_arrow().to_pylist()) == in_order(rows_of(table).to_pylist())


@pytest.mark.parametrize("position", [4, -1, None])
def test_positions_that_a_file_lacks_are_errors(
    position: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    (path,) = (task.file.file_path for task in table.scan().plan_files())
    pq.write_table(pa.table({"file_path": [path] * 2, "pos": [0, position]}), tmp_path / "d")
    delete = delete_file(tmp_path / "d", DataFileContent.POSITION_DELETES, FileFormat.PARQUET)
    with_deletes(table, monkeypatch, delete)
    with pytest.raises(CorruptData, match=r"/d deletes rows that .*\.parquet, which has 4 rows"):
        rs.import_iceberg(table, tmp_path / "new")


def puffin(vectors: dict[str, list[int]]) -> bytes:
    """A Puffin file with a deletion vector for each data file, as version 3 of Iceberg has them."""
    data, blobs = b"PFA1", []
    for path, rows in vectors.items():
        inside = b"\xd1\xd3\x39\x64" + pyroaring.BitMap64(rows).serialize()
        checksum = struct.pack(">I", zlib.crc32(inside))
        blob = struct.pack(">I", len(inside)) + inside + checksum
        about = {"referenced-data-file": path, "cardinality": str(len(rows))}
        blobs.append(
            {"type": "deletion-vector-v1", "fields": [], "snapshot-id": -1, "sequence-number": -1}
            | {"offset": len(data), "length": len(blob), "properties": about}
        )
        data += blob
    footer = json.dumps({"blobs": blobs}).encode()
    return data + b"PFA1" + footer + struct.pack("<II", len(footer), 0) + b"PFA1"


def test_vectors_of_puffin_files_hide_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    table.append(ROWS)
    first, second = (task.file.file_path for task in table.scan().plan_files())
    (tmp_path / "d.puffin").write_bytes(puffin({first: [0, 2], second: [3]}))
    delete = delete_file(tmp_path / "d.puffin", DataFileContent.POSITION_DELETES, FileFormat.PUFFIN)
    with_deletes(table, monkeypatch, delete)
    opened = rs.from_iceberg(table)
    assert sorted(opened.to_arrow()["id"].to_pylist()) == [1, 2, 2, 3, 4]
    assert in_order(opened.to_arrow().to_pylist()) == in_order(rows_of(table).to_pylist())
    assert rs.import_iceberg(table, tmp_path / "own").count("id = 1") == 1


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        pytest.param(lambda data, _: data[:-1] + b"2", "PFA1", id="end"),
        pytest.param(lambda data, _: data[:20] + b"!" + data[21:], "checksum", id="bitmap"),
        pytest.param(lambda data, _: data.replace(b'"offset": 4', b'"offset": 5'), "checksum",
                     id="offset"),
        pytest.param(lambda data, _: data.replace(b'{"blobs"', b'["blobs"'), "footer", id="footer"),
        pytest.param(lambda _, path: puffin({path: [4]}), "which has 4 rows", id="row"),
        pytest.param(lambda _, path: puffin({path: [2**40]}), "deletes the row", id="far row"),
        pytest.param(lambda data, _: data.replace(b"referenced-", b"referencer-"), "no vector",
                     id="data file"),
    ],
)  # fmt: skip
def test_damaged_puffin_files_are_errors(
    damage: Callable[[bytes, str], bytes],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    (path,) = (task.file.file_path for task in table.scan().plan_files())
    (tmp_path / "d").write_bytes(damage(puffin({path: [1]}), path))
    delete = delete_file(tmp_path / "d", DataFileContent.POSITION_DELETES, FileFormat.PUFFIN)
    with_deletes(table, monkeypatch, delete)
    with pytest.raises(CorruptData, match=why):
        rs.from_iceberg(table)


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (DataFileContent.EQUALITY_DELETES, FileFormat.PARQUET),
        (DataFileContent.POSITION_DELETES, FileFormat.ORC),
    ],
)
def test_other_deletes_are_refused_by_name(
    content: DataFileContent, form: FileFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    (tmp_path / "d").write_bytes(b"x")
    with_deletes(table, monkeypatch, delete_file(tmp_path / "d", content, form))
    with pytest.raises(UnsupportedOperation, match=r"(equality|position) deletes as (PARQUET|ORC)"):
        rs.from_iceberg(table)


def test_files_of_other_formats_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(ROWS)
    (task,) = table.scan().plan_files()
    task.file[2] = FileFormat.AVRO
    monkeypatch.setattr(type(table.scan()), "plan_files", lambda _: [task])
    with pytest.raises(UnsupportedOperation, match=r"AVRO, and .* write\.format\.default=parquet"):
        rs.from_iceberg(table)


DEFAULTS = [
    (LongType(), 5, 5),
    (DoubleType(), 1.5, 1.5),
    (StringType(), "5", "5"),
    (DateType(), "2020-01-02", date(2020, 1, 2)),
    (DateType(), -1, date(1969, 12, 31)),
    (TimestampType(), "2020-01-02T03:04:05.000006", datetime(2020, 1, 2, 3, 4, 5, 6)),
    (DecimalType(9, 2), "14.20", decimal.Decimal("14.20")),
    (BooleanType(), True, True),
    (UUIDType(), "00000000-0000-0000-0000-000000000005", uuid.UUID(int=5).bytes),
    (BinaryType(), "6162", b"ab"),
]


@pytest.mark.parametrize(("type_", "default", "value"), DEFAULTS)
def test_columns_that_files_lack_have_their_initial_default(
    type_: Any, default: Any, value: Any, tmp_path: Path
) -> None:
    """Format version 3: added to the metadata, since pyiceberg writes version 2."""
    table = iceberg_tables.create(tmp_path / "t", Schema(NestedField(1, "id", LongType())))
    table.append(pa.table({"id": [1, 2]}))
    added = NestedField(2, "c", type_, initial_default=default)
    schema = Schema(NestedField(1, "id", LongType()), added, schema_id=1)
    metadata = table.metadata.model_copy(
        update={"schemas": [table.schema(), schema], "current_schema_id": 1, "last_column_id": 2}
    )
    table.metadata = metadata
    newer = pa.schema(
        [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            schema_to_pyarrow(schema).field("c"),
        ]
    )
    name = "newer.parquet"
    given = uuid.UUID(int=5) if isinstance(type_, UUIDType) else value
    held = pa.table({"id": [3, 4], "c": pa.array([None, given], newer.field("c").type)}, newer)
    pq.write_table(held, tmp_path / name)
    planned = list(table.scan().plan_files())
    data = DataFile.from_args(
        content=DataFileContent.DATA, file_path=str(tmp_path / name), record_count=2,
        file_format=FileFormat.PARQUET, partition=Record(), file_size_in_bytes=1,
    )  # fmt: skip
    data.spec_id = 0
    planned.append(FileScanTask(data))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(table.scan()), "plan_files", lambda _: planned)
        opened = rs.from_iceberg(table)
    rows = opened.to_arrow().sort_by("id")
    assert rows["c"].to_pylist() == [value, value, None, value]
    assert opened.count("c IS NULL") == 1
    assert opened.count("c IS NOT NULL") == 3
    assert opened.scan("c IS NULL").to_arrow()["id"].to_pylist() == [3]


def test_partition_values_stand_in_for_columns_that_files_lack(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "d", DateType()))
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "d"))
    table = iceberg_tables.create(tmp_path / "t", schema, spec)
    table.append(pa.table({"id": [1, 2], "d": [date(2020, 1, 1), date(1969, 12, 31)]}))
    for task in table.scan().plan_files():
        path = task.file.file_path.removeprefix("file://")
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns("d"), path)
    opened = rs.from_iceberg(table)
    assert in_order(opened.to_arrow().to_pylist()) == in_order(
        [{"id": 1, "d": date(2020, 1, 1)}, {"id": 2, "d": date(1969, 12, 31)}]
    )
    assert opened.scan("d < date '1970-01-01'").to_arrow()["id"].to_pylist() == [2]


def test_other_objects_are_refused() -> None:
    with pytest.raises(InvalidInput, match="must be a pyiceberg table, not str"):
        rs.from_iceberg("t")


def nanosecond_table(folder: Path, spec: PartitionSpec | None = None) -> Table:
    """A table of format version 3, which pyiceberg reads and does not write.

    It is written with integers, whose places get times of the same ticks afterwards.
    """
    names = ("a", "b")
    before = Schema(
        NestedField(1, "id", IntegerType()),
        *(NestedField(i, name, LongType()) for i, name in enumerate(names, 2)),
        NestedField(4, "l", ListType(5, LongType(), element_required=False)),
    )
    given = {} if spec is None else {"spec": spec}
    table = iceberg_tables.create(folder, before, **given)
    ticks = pa.array([TICK, TICK + 1, None], pa.int64())
    rows = {"id": pa.array([1, 2, 3], pa.int32()), "a": ticks, "b": ticks}
    table.append(pa.table({**rows, "l": pa.array([[TICK], [], None], pa.list_(pa.int64()))}))
    for task in table.scan().plan_files():
        path = task.file.file_path.removeprefix("file://")
        stored = pq.ParquetFile(path).read()
        fields = [field.with_type(in_nanos(field)) for field in stored.schema]
        times = [column.cast(f.type) for column, f in zip(stored.columns, fields, strict=True)]
        pq.write_table(pa.table(times, schema=pa.schema(fields)), path)
    raw = json.loads(table.metadata.model_dump_json())
    for field in raw["schemas"][0]["fields"][1:]:
        if field["name"] == "l":
            field["type"]["element"] = "timestamp_ns"
        else:
            field["type"] = "timestamp_ns" if field["name"] == "a" else "timestamptz_ns"
    raw |= {"format-version": 3, "next-row-id": 3}
    metadata = TableMetadataUtil.parse_obj(raw)
    return Table(("db", "t"), metadata, table.metadata_location, table.io, table.catalog)


def in_nanos(field: pa.Field) -> pa.DataType:
    if pa.types.is_list(field.type):
        element = field.type.value_field
        return pa.list_(element.with_type(pa.timestamp("ns")))
    if field.type != pa.int64():
        return field.type
    return pa.timestamp("ns", "UTC" if field.name == "b" else None)


TICK = 1_700_000_000_000_000_001


@pytest.mark.parametrize("partitioned", [False, True])
def test_nanoseconds_stay_what_they_are(partitioned: bool, tmp_path: Path) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "a"))
    table = nanosecond_table(tmp_path / "t", spec if partitioned else None)
    opened = rs.from_iceberg(table)
    assert opened.schema.field("a").type == pa.timestamp("ns")
    assert opened.schema.field("b").type == pa.timestamp("ns", "UTC")
    found = opened.to_arrow().sort_by("id")
    for name in ("a", "b"):
        ticks = found[name].cast(pa.int64()).to_pylist()
        assert ticks == [TICK, TICK + 1, None]
    assert found["l"].cast(pa.list_(pa.int64())).to_pylist() == [[TICK], [], None]
    for where, ids in (
        ("a > '2023-11-14 22:13:20.000000001'", [2]),
        ("b <= '2023-11-14 22:13:20.000000001+00'", [1]),
        ("b > '2023-11-14 22:13:20.000000002+00'", []),
    ):
        for pruning in ("on", "off"):
            assert opened.scan(where, pruning=pruning).to_arrow()["id"].to_pylist() == ids
    own = rs.import_iceberg(table, tmp_path / "own")
    assert own.to_arrow().sort_by("id").equals(found)


@pytest.mark.parametrize(("type_", "default", "value"), DEFAULTS)
def test_fields_of_structs_that_files_lack_have_their_initial_default(
    type_: Any, default: Any, value: Any, tmp_path: Path
) -> None:
    """Added to the metadata, under ids after those that the table has."""
    struct = StructType(NestedField(3, "a", LongType()))
    items = ListType(4, StructType(NestedField(5, "a", LongType())), element_required=False)
    fields = [NestedField(1, "id", LongType()), NestedField(2, "s", struct)]
    table = iceberg_tables.create(tmp_path / "t", Schema(*fields, NestedField(6, "l", items)))
    rows = {"id": [1, 2], "s": [{"a": 5}, None], "l": [[{"a": 7}, None], []]}
    plain = schema_to_pyarrow(table.schema(), include_field_ids=False)
    table.append(pa.table(rows, schema=plain))

    def with_b(own: StructType, field_id: int) -> StructType:
        return StructType(*own.fields, NestedField(field_id, "b", type_, initial_default=default))

    number, old, old_items = table.schema().fields
    list_ = old_items.field_type
    changed = Schema(
        number,
        NestedField(old.field_id, "s", with_b(old.field_type, 101)),
        NestedField(
            old_items.field_id,
            "l",
            ListType(list_.element_id, with_b(list_.element_type, 102), element_required=False),
        ),
        schema_id=1,
    )
    table.metadata = table.metadata.model_copy(
        update={"schemas": [table.schema(), changed], "current_schema_id": 1, "last_column_id": 102}
    )
    opened = rs.from_iceberg(table)
    assert opened.to_arrow().sort_by("id").select(["s", "l"]).to_pylist() == [
        {"s": {"a": 5, "b": value}, "l": [{"a": 7, "b": value}, None]},
        {"s": None, "l": []},
    ]
    assert opened.count("s.b IS NOT NULL") == 1
    assert opened.scan("s.b IS NULL").to_arrow()["id"].to_pylist() == [2]
    ours = rs.import_iceberg(table, tmp_path / "ours")
    for _ in range(2):
        assert ours.to_arrow().sort_by("id").equals(opened.to_arrow().sort_by("id"))
        assert ours.count("s.b IS NOT NULL") == 1
        assert ours.scan("s.b IS NULL").to_arrow()["id"].to_pylist() == [2]
        ours.compact()
