"""Equality deletes of Iceberg tables hide the rows that the specification says they hide.

Neither pyiceberg nor an engine of this machine reads such deletes: the rows are judged by a plain
walk over them. The delete files are written with pyarrow, as Flink writes them.
"""

from __future__ import annotations

import decimal
import random
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.typedef import Record
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    UUIDType,
)

import rowsieve as rs
from rowsieve.errors import CorruptData, UnsupportedOperation
from tests.foreign import iceberg_tables
from tests.foreign.iceberg_tables import with_delete_file
from tests.profiles import examples

SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "s", StringType()))
BY_S = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "s"))


def rows(*pairs: tuple[Any, Any]) -> pa.Table:
    ids, texts = zip(*pairs, strict=True)
    return pa.table({"id": pa.array(ids, pa.int64()), "s": pa.array(texts, pa.string())})


def deletes(
    folder: Path,
    values: pa.Table,
    ids: Sequence[int],
    partition: Record | None = None,
    form: FileFormat = FileFormat.PARQUET,
) -> DataFile:
    """A file of deleted values, whose columns have these field ids."""
    fields = [
        field.with_metadata({"PARQUET:field_id": str(field_id)})
        for field, field_id in zip(values.schema, ids, strict=True)
    ]
    path = folder / f"{uuid.uuid4()}.parquet"
    pq.write_table(values.cast(pa.schema(fields)), path)
    return DataFile.from_args(
        content=DataFileContent.EQUALITY_DELETES,
        file_path=path.as_uri(),
        file_format=form,
        partition=Record() if partition is None else partition,
        record_count=values.num_rows,
        file_size_in_bytes=path.stat().st_size,
        equality_ids=list(ids),
        _table_format_version=2,
    )


def ids_of(table: Table, **options: Any) -> list[Any]:
    read_rows = rs.from_iceberg(table, **options).to_arrow()["id"].to_pylist()
    return sorted(read_rows, key=str)


def test_rows_with_deleted_values_are_hidden_in_older_files_only(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(rows((1, "a"), (2, None), (3, "c")))
    before = table.current_snapshot().snapshot_id
    table = with_delete_file(table, deletes(tmp_path, rows((1, ""), (3, "")).select(["id"]), [1]))
    assert ids_of(table) == [2]
    table.append(rows((1, "again"), (4, "d")))
    assert ids_of(table) == [1, 2, 4]
    same = table.current_snapshot().sequence_number  # deletes and rows of one commit
    table = with_delete_file(
        table, deletes(tmp_path, rows((1, "")).select(["id"]), [1]), sequence_number=same
    )
    assert ids_of(table) == [1, 2, 4]
    table = with_delete_file(table, deletes(tmp_path, rows((7, "")).select(["id"]), [1]))
    assert ids_of(table) == [1, 2, 4]
    table = with_delete_file(table, deletes(tmp_path, rows((0, "d")).select(["s"]), [2]))
    assert ids_of(table) == [1, 2]
    assert ids_of(table, snapshot_id=before) == [1, 2, 3]
    copy = rs.import_iceberg(table, tmp_path / "copy")
    copy.append(rows((9, "new")))
    copy.compact()
    assert sorted(copy.to_arrow()["id"].to_pylist()) == [1, 2, 9]
    assert copy.count("s = 'again'") == 1


def test_position_deletes_of_the_same_files_hide_rows_too(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(rows((1, "a"), (2, "b"), (3, "c"), (4, "d")))
    (task,) = table.scan().plan_files()
    places = pa.table({"file_path": [task.file.file_path] * 2, "pos": [1, 2]})
    pq.write_table(places, tmp_path / "p.parquet")
    by_place = deletes(tmp_path, places, [2147483546, 2147483545])
    by_place[0], by_place[1] = DataFileContent.POSITION_DELETES, (tmp_path / "p.parquet").as_uri()
    table = with_delete_file(table, by_place)
    values = rows((1, ""), (2, "")).select(["id"])
    table = with_delete_file(table, deletes(tmp_path, values, [1]))
    table = with_delete_file(table, deletes(tmp_path, values.slice(0, 0), [1]))
    assert ids_of(table) == [4]
    with pytest.raises(UnsupportedOperation, match="import without key="):
        rs.import_iceberg(table, tmp_path / "copy", key=["id"])


def test_null_equals_null_in_each_of_several_columns(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(rows((1, "a"), (1, None), (None, "a"), (None, None), (2, "a")))
    keys = rows((1, None), (None, "a"), (2, "b"))
    table = with_delete_file(table, deletes(tmp_path, keys.select(["s", "id"]), [2, 1]))
    read_rows = rs.from_iceberg(table).to_arrow().to_pylist()
    kept = [(1, "a"), (None, None), (2, "a")]
    assert sorted(map(repr, read_rows)) == sorted(repr({"id": i, "s": s}) for i, s in kept)


def test_deletes_of_a_partition_stay_in_it_and_those_of_none_reach_all(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA, BY_S)
    table.append(rows((1, "a"), (1, "b"), (2, "a"), (2, None)))
    one = rows((1, "")).select(["id"])
    table = with_delete_file(table, deletes(tmp_path, one, [1], Record("a")))
    assert ids_of(table) == [1, 2, 2]
    table = with_delete_file(
        table, deletes(tmp_path, rows((2, "")).select(["id"]), [1], Record(None))
    )
    assert ids_of(table) == [1, 2]


def test_deletes_without_partition_reach_all_partitions(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(rows((0, "z")))
    with table.update_spec() as update:
        update.add_identity("s")
    table.append(rows((1, "a"), (1, "b"), (2, "a"), (2, None)))
    delete = deletes(tmp_path, rows((1, "")).select(["id"]), [1])
    table = with_delete_file(table, delete, UNPARTITIONED_PARTITION_SPEC)
    assert ids_of(table) == [0, 2, 2]


def test_columns_are_compared_by_field_id_through_schema_changes(tmp_path: Path) -> None:
    schema = Schema(NestedField(1, "id", IntegerType()), NestedField(2, "s", StringType()))
    table = iceberg_tables.create(tmp_path / "t", schema)
    table.append(
        rows((1, "a"), (2, "b"), (3, "c")).set_column(0, "id", pa.array([1, 2, 3], pa.int32()))
    )
    narrow = pa.table({"was": pa.array([1], pa.int32())})
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("id", "number")
        update.add_column("added", StringType())
    table = with_delete_file(table, deletes(tmp_path, narrow, [1]))
    assert rs.from_iceberg(table).to_arrow()["number"].to_pylist() == [2, 3]
    both = pa.table({"x": pa.array([2, 3], pa.int64()), "y": pa.array([None, "z"], pa.string())})
    table = with_delete_file(table, deletes(tmp_path, both, [1, 3]))
    assert rs.from_iceberg(table).to_arrow()["number"].to_pylist() == [3]
    gone = deletes(tmp_path, pa.table({"s": ["c"]}), [2])
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("s")
    assert rs.from_iceberg(table).to_arrow()["number"].to_pylist() == [3]
    assert rs.from_iceberg(with_delete_file(table, gone)).count() == 0


VALUES: list[tuple[Any, pa.DataType, list[Any]]] = [
    (BooleanType(), pa.bool_(), [True, False]),
    (IntegerType(), pa.int32(), [0, -(2**31), 7]),
    (StringType(), pa.string(), ["", "a", "é"]),
    (BinaryType(), pa.binary(), [b"", b"\xff"]),
    (FixedType(2), pa.binary(2), [b"ab", b"\0\0"]),
    (UUIDType(), pa.binary(16), [uuid.UUID(int=5).bytes, bytes(16)]),
    (DecimalType(9, 2), pa.decimal128(9, 2), [decimal.Decimal("1.20"), decimal.Decimal("-0.01")]),
    (DateType(), pa.date32(), [date(1, 1, 1), date(2020, 2, 29)]),
    (TimestampType(), pa.timestamp("us"), [datetime(1970, 1, 1), datetime(9999, 1, 1, 0, 0, 0, 1)]),
]


@examples(64)
@given(seed=st.integers(0, 2**32))
def test_histories_of_appends_and_deletes_keep_the_rows_of_the_specification(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    draw, tmp_path = random.Random(seed), tmp_path_factory.mktemp("t")
    kinds = [draw.choice(VALUES) for _ in range(3)]
    fields = [NestedField(i + 1, f"c{i}", kind[0]) for i, kind in enumerate(kinds)]
    table = iceberg_tables.create(tmp_path / "t", Schema(*fields))
    expected: list[tuple[Any, ...]] = []
    for _ in range(8):
        drawn = [tuple(draw.choice([None, *kind[2]]) for kind in kinds) for _ in range(5)]
        columns = [pa.array([row[i] for row in drawn], kind[1]) for i, kind in enumerate(kinds)]
        values = pa.table(columns, names=[field.name for field in fields])
        if not expected or draw.random() < 0.6:
            arrow = table.schema().as_arrow()
            table.append(values.cast(pa.schema([field.remove_metadata() for field in arrow])))
            expected += drawn
            continue
        places = sorted(draw.sample(range(3), draw.randint(1, 3)))
        table = with_delete_file(
            table, deletes(tmp_path, values.select(places), [place + 1 for place in places])
        )
        gone = {tuple(row[place] for place in places) for row in drawn}
        expected = [row for row in expected if tuple(row[place] for place in places) not in gone]
    read_rows = rs.from_iceberg(table).to_arrow()
    assert sorted(map(repr, zip(*read_rows.to_pydict().values(), strict=True))) == sorted(
        map(repr, expected)
    )


def test_what_engines_compare_differently_is_refused_by_name(tmp_path: Path) -> None:
    schema = Schema(
        NestedField(1, "f", DoubleType()),
        NestedField(2, "st", StructType(NestedField(3, "x", LongType()))),
    )
    table = iceberg_tables.create(tmp_path / "t", schema)
    table.append(pa.table({"f": [0.5], "st": [{"x": 1}]}))
    for values, field_id, why in (
        (pa.table({"f": [0.5]}), 1, "compare 'f', of type double"),
        (pa.table({"st": [{"x": 1}]}), 2, "compare 'st', of type struct"),
        (pa.table({"x": [1]}), 3, "compare the field 3, which is inside"),
    ):
        deleted = with_delete_file(table, deletes(tmp_path, values, [field_id]))
        with pytest.raises(UnsupportedOperation, match=why):
            rs.from_iceberg(deleted)
    avro = deletes(tmp_path, pa.table({"f": [0.5]}), [1], form=FileFormat.AVRO)
    with pytest.raises(UnsupportedOperation, match="equality deletes as AVRO"):
        rs.from_iceberg(with_delete_file(table, avro))


def test_a_delete_file_without_a_compared_column_is_an_error(tmp_path: Path) -> None:
    table = iceberg_tables.create(tmp_path / "t", SCHEMA)
    table.append(rows((1, "a")))
    delete = deletes(tmp_path, rows((1, "a")).select(["id"]), [1])
    pq.write_table(
        pa.table(
            {"s": pa.array(["a"])},
            schema=pa.schema([pa.field("s", pa.string(), metadata={"PARQUET:field_id": "2"})]),
        ),
        delete.file_path[7:],
    )
    with pytest.raises(CorruptData, match="lacks a column that its equality deletes compare: id"):
        rs.from_iceberg(with_delete_file(table, delete))
