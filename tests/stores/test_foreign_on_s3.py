"""Tables of Iceberg and Delta with deletes on S3: the rows are those on disk, by every way."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import Location
from rowsieve.providers.datafusion import SessionContext
from tests.foreign import iceberg_tables
from tests.foreign.test_from_delta import field, vector, write_log
from tests.foreign.test_from_iceberg import puffin
from tests.stores.folder_server import folder_server
from tests.stores.s3_server import BUCKET, S3


def check(table: rs.Table, expected: list[int], storage_options: dict[str, str]) -> None:
    """Compare the rows of each way to read a table."""
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == expected
    assert table.count() == len(expected)
    assert table.count("id >= 5") == sum(id_ >= 5 for id_ in expected)
    splits = table.scan().plan().splits_to_bytes()
    parts = [rs.read_split(split, storage_options=storage_options).read_all() for split in splits]
    assert sorted(id_ for part in parts for id_ in part["id"].to_pylist()) == expected
    for context in (SessionContext(), datafusion.SessionContext()):
        context.register_table("t", table)
        read = context.sql("SELECT id FROM t WHERE id >= 0 ORDER BY id").to_arrow_table()
        assert read["id"].to_pylist() == expected
        assert context.sql("SELECT count(*) AS n FROM t").to_pydict() == {"n": [len(expected)]}


def change_and_publish(
    table: rs.Table, expected: list[int], s3: S3, storage_options: dict[str, str]
) -> None:
    """An imported table is changed, rewritten and published; what is read back is the same."""
    check(table, expected, storage_options)
    table.delete(f"id = {expected[0]}")
    left = expected[1:]
    check(rs.open_table(table.uri, storage_options=storage_options), left, storage_options)
    with pytest.raises(UnsupportedOperation, match="compact first"):
        table.publish("iceberg")
    table.compact()
    location = table.publish("iceberg").metadata_location
    published = StaticTable.from_metadata(location, properties_of(s3))
    assert sorted(published.scan().to_arrow()["id"].to_pylist()) == left
    check(rs.from_iceberg(published, storage_options=storage_options), left, storage_options)
    table.publish("delta")
    check(rs.from_delta(table.uri, storage_options=storage_options), left, storage_options)


def properties_of(s3: S3) -> dict[str, str]:
    names = {"endpoint": "endpoint", "region": "region", "access_key_id": "access-key-id"}
    names["secret_access_key"] = "secret-access-key"
    return {f"s3.{name}": s3.options[own] for own, name in names.items()}


def test_iceberg_tables_with_three_kinds_of_deletes(s3: S3) -> None:
    file_io = PyArrowFileIO(properties_of(s3))
    location = f"{s3.fresh_uri()}/a é"
    metadata = new_table_metadata(
        Schema(NestedField(1, "id", LongType())), UNPARTITIONED_PARTITION_SPEC,
        UNSORTED_SORT_ORDER, location, {"format-version": "2"},
    )  # fmt: skip
    written = iceberg_tables.write_metadata(metadata, file_io)
    catalog = iceberg_tables.LocalCatalog("local")
    table = Table(("db", "t"), metadata, written, file_io, catalog)

    def put(name: str, data: bytes) -> dict[str, Any]:
        path = f"{location}/data/{name}"
        with file_io.new_output(path).create() as sink:
            sink.write(data)
        return {
            "file_path": path, "file_size_in_bytes": len(data), "partition": Record(),
            "record_count": 1, "_table_format_version": 2,
        }  # fmt: skip

    for start in (0, 5, 10):
        table.append(pa.table({"id": range(start, start + 5)}))
    places = {min(rows): path for path, rows in files_of(table).items()}
    by_place = pa.table({"file_path": [places[0]], "pos": pa.array([1], pa.int64())})
    for name, data, more in (
        ("equal.parquet", file_with(pa.table({"id": [2, 11]}), [1]),
         {"content": DataFileContent.EQUALITY_DELETES, "file_format": FileFormat.PARQUET,
          "equality_ids": [1]}),
        ("places.parquet", file_with(by_place, [2147483546, 2147483545]),
         {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PARQUET}),
        ("vectors.puffin", puffin({places[5]: [0, 4]}),
         {"content": DataFileContent.POSITION_DELETES, "file_format": FileFormat.PUFFIN}),
    ):  # fmt: skip
        table = iceberg_tables.with_delete_file(
            table, DataFile.from_args(**put(name, data), **more)
        )
    expected = [0, 3, 4, 6, 7, 8, 10, 12, 13, 14]
    check(rs.from_iceberg(table, storage_options=s3.options), expected, s3.options)
    own = rs.import_iceberg(table, f"{s3.fresh_uri()}/own", storage_options=s3.options)
    change_and_publish(own, expected, s3, s3.options)


def files_of(table: Table) -> dict[str, list[int]]:
    paths = [task.file.file_path for task in table.scan().plan_files()]
    opened = {path: io.BytesIO(table.io.new_input(path).open().read()) for path in paths}
    return {path: pq.read_table(data)["id"].to_pylist() for path, data in opened.items()}


def file_with(rows: pa.Table, ids: list[int]) -> bytes:
    fields = [
        field.with_metadata({"PARQUET:field_id": str(field_id)})
        for field, field_id in zip(rows.schema, ids, strict=True)
    ]
    sink = io.BytesIO()
    pq.write_table(rows.cast(pa.schema(fields)), sink)
    return sink.getvalue()


@pytest.mark.parametrize("with_vectors", [False, True])
def test_delta_tables_with_checkpoints_and_vectors(with_vectors: bool, tmp_path: Path) -> None:
    folder = tmp_path / BUCKET / "a é"
    folder.mkdir(parents=True)
    if with_vectors:
        pq.write_table(pa.table({"id": range(10)}), folder / "f 1.parquet", row_group_size=4)
        file = {"path": "f%201.parquet", "size": (folder / "f 1.parquet").stat().st_size}
        file |= {"stats": json.dumps({"numRecords": 10}), "deletionVector": vector([0, 5, 9])}
        enabled = {"delta.enableDeletionVectors": "true"}
        write_log(folder, [field("id", "long")], [file], ["deletionVectors"], **enabled)
        expected = [1, 2, 3, 4, 6, 7, 8]
    else:
        for start in (0, 4):
            write_deltalake(folder, pa.table({"id": range(start, start + 4)}), mode="append")
        DeltaTable(folder).delete("id = 2")
        DeltaTable(folder).create_checkpoint()
        write_deltalake(folder, pa.table({"id": [8]}), mode="append")
        expected = [0, 1, 3, 4, 5, 6, 7, 8]
    assert sorted(rs.from_delta(folder).to_arrow()["id"].to_pylist()) == expected
    with folder_server(tmp_path) as server:
        options, uri = server.s3.options, Location("s3", BUCKET, "a é").uri
        check(rs.from_delta(uri, storage_options=options), expected, options)
        own = rs.import_delta(uri, f"s3://{BUCKET}/own", storage_options=options)
        change_and_publish(own, expected, server.s3, options)
