"""Files of an Iceberg table with and without fields of structs: their own values, or defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType, StructType

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from tests.foreign import iceberg_tables


def table_of_files(
    folder: Path, schemas: list[list[NestedField]], rows: list[list[dict[str, Any]]]
) -> Table:
    """A table with the last schema, and a file with the rows of each; by ids alone."""
    table = iceberg_tables.create(folder, Schema(*schemas[0]))
    for number, (fields, own) in enumerate(zip(schemas, rows, strict=True)):
        arrow = schema_to_pyarrow(Schema(*fields))
        pq.write_table(pa.Table.from_pylist(own, arrow), folder / f"{number}.parquet")
    last = Schema(*schemas[-1], schema_id=1)
    update = {"schemas": [table.schema(), last], "current_schema_id": 1, "last_column_id": 20}
    table.metadata = table.metadata.model_copy(update=update)
    return table


def planned(folder: Path, count: int) -> list[FileScanTask]:
    tasks = []
    for number in range(count):
        data = DataFile.from_args(
            content=DataFileContent.DATA, file_path=str(folder / f"{number}.parquet"),
            file_format=FileFormat.PARQUET, partition=Record(), record_count=1,
            file_size_in_bytes=1,
        )  # fmt: skip
        data.spec_id = 0
        tasks.append(FileScanTask(data))
    return tasks


A, B, C = (
    NestedField(3, "a", LongType()),
    NestedField(4, "b", LongType(), initial_default=5),
    NestedField(5, "c", StringType(), initial_default="x"),
)


def with_members(*members: NestedField) -> list[NestedField]:
    return [NestedField(1, "id", LongType()), NestedField(2, "s", StructType(*members))]


def test_files_with_and_without_fields_of_structs_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file's own values count where it has the field, and the default where it lacks it."""
    schemas = [with_members(A), with_members(A, B), with_members(C, A, B)]
    rows: list[list[dict[str, Any]]] = [
        [{"id": 0, "s": {"a": 1}}, {"id": 1, "s": None}],
        [{"id": 2, "s": {"a": 1, "b": 9}}, {"id": 3, "s": {"a": 2, "b": None}}],
        [{"id": 4, "s": {"a": 1, "b": 9, "c": "y"}}, {"id": 5, "s": {"b": 5, "c": None}}],
    ]
    table = table_of_files(tmp_path / "t", schemas, rows)
    tasks = planned(tmp_path / "t", 3)
    monkeypatch.setattr(type(table.scan()), "plan_files", lambda _: tasks)
    expected = [
        {"c": "x", "a": 1, "b": 5}, None, {"c": "x", "a": 1, "b": 9}, {"c": "x", "a": 2, "b": None},
        {"c": "y", "a": 1, "b": 9}, {"c": None, "a": None, "b": 5},
    ]  # fmt: skip
    ours = rs.import_iceberg(table, tmp_path / "ours")
    for _ in range(2):
        assert ours.to_arrow().sort_by("id")["s"].to_pylist() == expected
        for where, ids in (
            ("s.b = 9", [2, 4]), ("s.b = 5", [0, 5]), ("s.b IS NULL", [1, 3]),
            ("s.c = 'x'", [0, 2, 3]), ("s.c = 'y'", [4]), ("s.c IS NULL", [1, 5]),
        ):  # fmt: skip
            for pruning in ("on", "soft", "off"):
                ids_read = ours.scan(where, pruning=pruning).to_arrow()["id"].to_pylist()
                assert sorted(ids_read) == ids
            assert ours.count(where) == len(ids)
        ours.compact()
    ours.add_column("s.d", "int64", default=7)
    assert ours.count("s.d = 7") == 5


def test_files_whose_fields_have_no_order_are_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schemas = [with_members(A, C), with_members(A, B, C)]
    rows: list[list[dict[str, Any]]] = [
        [{"id": 0, "s": {"a": 1, "c": "z"}}], [{"id": 1, "s": {"a": 1, "b": 2, "c": "y"}}],
    ]  # fmt: skip
    table = table_of_files(tmp_path / "t", schemas, rows)
    tasks = planned(tmp_path / "t", 2)
    monkeypatch.setattr(type(table.scan()), "plan_files", lambda _: tasks)
    with pytest.raises(UnsupportedOperation, match=r"0\.parquet lacks the field 'b'.*added later"):
        rs.import_iceberg(table, tmp_path / "ours")
    opened = rs.from_iceberg(table).to_arrow().sort_by("id")["s"].to_pylist()
    assert opened == [{"a": 1, "b": 5, "c": "z"}, {"a": 1, "b": 2, "c": "y"}]
