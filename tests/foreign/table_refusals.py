"""Refusals of tables of Delta and Iceberg, and of stores, each with what its message advises."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import write_deltalake
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable, Table
from pyiceberg.types import LongType, NestedField

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    NotFound,
    TableExists,
    UnsupportedOperation,
    VersionNotFound,
)
from tests.foreign import iceberg_tables
from tests.foreign.refusals import Refusal
from tests.foreign.test_from_delta import field, vector, write_log

V = [field("v", "long")]
V_ROWS = pa.table({"v": [1]})


def delta(folder: Path, **columns: Any) -> Path:
    write_deltalake(folder / "d", pa.table(columns or {"v": [1, 2]}), mode="overwrite")
    return folder / "d"


def logged(folder: Path, fields: list[Any], features: tuple[str, ...] = (), **more: Any) -> Path:
    """A Delta table by hand, of one file with two rows; an earlier one in its place goes."""
    shutil.rmtree(folder / "d", ignore_errors=True)
    (folder / "d").mkdir()
    pq.write_table(pa.table({"v": [1, 2], "s": ["a", "b"]}), folder / "d" / "a.parquet")
    size = (folder / "d" / "a.parquet").stat().st_size
    configuration = more.pop("configuration", {})
    file = {"path": "a.parquet", "size": size, "stats": json.dumps({"numRecords": 2}), **more}
    write_log(folder / "d", fields, [file], list(features), **configuration)
    return folder / "d"


def mapped(folder: Path) -> Path:
    """A table whose columns are found by ids, which its file lacks."""
    by_id = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "v"}
    mode = {"delta.columnMapping.mode": "id"}
    return logged(folder, [field("v", "long", **by_id)], ("columnMapping",), configuration=mode)


def collated(name: str) -> list[dict[str, Any]]:
    return [*V, field("s", "string", __COLLATIONS={"s": f"spark.{name}"})]


def with_vector(folder: Path) -> Path:
    return logged(folder, V, ("deletionVectors",), deletionVector=vector([1]))


def iceberg(folder: Path, *rows: int) -> Table:
    shutil.rmtree(folder / "i", ignore_errors=True)
    table = iceberg_tables.create(folder / "i", Schema(NestedField(1, "v", LongType())))
    table.append(pa.table({"v": pa.array(rows or (1, 2), pa.int64())}))
    return table


def snapshot_of(table: Table) -> int:
    snapshot = table.snapshots()[0]
    return int(snapshot.snapshot_id)


def in_delta(folder: Path) -> rs.Table:
    return rs.from_delta(delta(folder))


def rows_copied(folder: Path, source: rs.Table, **key: Any) -> rs.Table:
    return rs.create_table(folder / "copy", source.to_arrow(), **key)


def here(_: Path, uri: str) -> rs.Table:
    return rs.create_table(uri, V_ROWS)


OF_TABLES = {
    "a negative version of Delta": Refusal(
        NotFound, "versions begin at 0", lambda f: rs.from_delta(delta(f), -1),
        lambda f: rs.from_delta(delta(f), 0),
    ),
    "a version that Delta lacks": Refusal(
        NotFound, "leave version= out", lambda f: rs.from_delta(delta(f), 9), in_delta,
    ),
    "a folder inside a Delta table": Refusal(
        NotFound, "give the folder that holds _delta_log",
        lambda f: rs.from_delta(delta(f) / "_delta_log"), in_delta,
    ),
    "Delta in memory": Refusal(
        InvalidInput, "give a folder or a bucket", lambda f: rs.from_delta("memory:///d"), in_delta,
    ),
    "a Delta table without columns": Refusal(
        UnsupportedOperation, "ADD COLUMN to add at least one column",
        lambda f: rs.from_delta(logged(f, [])),
        lambda f: rs.from_delta(logged(f, V)),
    ),
    "a collation": Refusal(
        UnsupportedOperation, "as STRING COLLATE UTF8_BINARY",
        lambda f: rs.from_delta(logged(f, collated("UTF8_LCASE"))),
        lambda f: rs.from_delta(logged(f, collated("UTF8_BINARY"))),
    ),
    "a feature that deltalake lacks": Refusal(
        UnsupportedOperation, "to a Delta table without these features",
        lambda f: rs.from_delta(logged(f, V, ("aFeature",))), lambda f: rs.from_delta(logged(f, V)),
    ),
    "a feature that deltalake lacks, in Parquet": Refusal(
        UnsupportedOperation, "or to Parquet files",
        lambda f: rs.from_delta(logged(f, V, ("aFeature",))),
        lambda f: rs.open_parquet(f / "d" / "a.parquet"),
    ),
    "files without ids": Refusal(
        UnsupportedOperation, "open the files with open_parquet",
        lambda f: rs.from_delta(mapped(f)), lambda f: rs.open_parquet(f / "d" / "a.parquet"),
    ),
    "a change of a Delta view": Refusal(
        UnsupportedOperation, "write to it with deltalake", lambda f: in_delta(f).delete("v = 1"),
        lambda f: rs.from_delta(delta(f, v=[3])),
    ),
    "a change of a Delta view, copied": Refusal(
        UnsupportedOperation, "or create a table with its rows",
        lambda f: in_delta(f).delete("v = 1"),
        lambda f: rows_copied(f, in_delta(f)),
    ),
    "a key of a Delta table with vectors": Refusal(
        UnsupportedOperation, "import without key=",
        lambda f: rs.import_delta(with_vector(f), f / "t", ["v"]),
        lambda f: rs.import_delta(f / "d", f / "t"),
    ),
    "a key of a Delta table with vectors, copied": Refusal(
        UnsupportedOperation, "or copy the rows with create_table",
        lambda f: rs.import_delta(with_vector(f), f / "t", ["v"]),
        lambda f: rows_copied(f, rs.from_delta(f / "d"), key=["v"]),
    ),
    "an import into the table's own folder": Refusal(
        InvalidInput, "give another place", lambda f: rs.import_delta(delta(f), f / "d" / "t"),
        lambda f: rs.import_delta(f / "d", f / "t"),
    ),
    "an import into memory": Refusal(
        InvalidInput, "both lie on the local disk",
        lambda f: rs.import_delta(delta(f), "memory:///advised"),
        lambda f: rs.import_delta(f / "d", f / "t"),
    ),
    "an import over a table": Refusal(
        TableExists, "give another uri",
        lambda f: [rs.import_delta(delta(f), f / "t") for _ in range(2)],
        lambda f: rs.import_delta(f / "d", f / "u"),
    ),
    "no table of pyiceberg": Refusal(
        InvalidInput, "StaticTable.from_metadata", lambda f: rs.from_iceberg(f / "i"),
        lambda f: rs.from_iceberg(StaticTable.from_metadata(iceberg(f).metadata_location)),
    ),
    "a snapshot that Iceberg lacks": Refusal(
        VersionNotFound, r"table\.snapshots\(\) lists those that it has",
        lambda f: rs.from_iceberg(iceberg(f), 7),
        lambda f: rs.from_iceberg(table := iceberg(f), snapshot_of(table)),
    ),
    "a change of an Iceberg view": Refusal(
        UnsupportedOperation, "write to it with an Iceberg writer",
        lambda f: rs.from_iceberg(iceberg(f)).delete("v = 1"),
        lambda f: rs.from_iceberg(iceberg(f, 3)),
    ),
    "an import into Iceberg's folder": Refusal(
        InvalidInput, "give another place", lambda f: rs.import_iceberg(iceberg(f), f / "i" / "t"),
        lambda f: rs.import_iceberg(iceberg(f), f / "t"),
    ),
    "a URI with one slash": Refusal(
        InvalidInput, r"pass 'memory://…'", lambda f: here(f, "memory:/advised/a"),
        lambda f: here(f, "memory:///advised/a"),
    ),
    "an empty URI": Refusal(
        InvalidInput, "give a directory", lambda f: here(f, ""), lambda f: here(f, str(f / "t")),
    ),
    "a table in memory without a name": Refusal(
        InvalidInput, "memory:///name", lambda f: here(f, "memory:///"),
        lambda f: here(f, "memory:///name"),
    ),
    "a store that nobody knows": Refusal(
        InvalidInput, "use a local path", lambda f: here(f, "hdfs://a/b"),
        lambda f: here(f, str(f / "t")),
    ),
    "a local URI with a host": Refusal(
        InvalidInput, "a local URI has three slashes", lambda f: here(f, f"file:/{f}/t"),
        lambda f: here(f, f"file://{quote(str(f))}/t"),
    ),
    "a stray percent sign": Refusal(
        InvalidInput, "write % in a name as %25", lambda f: here(f, f"file://{f}/100%"),
        lambda f: here(f, f"file://{f}/100%25"),
    ),
    "a stray percent sign, as a path": Refusal(
        InvalidInput, "or pass an unencoded local path", lambda f: here(f, f"file://{f}/100%"),
        lambda f: here(f, f"{f}/100%"),
    ),
    "a query": Refusal(
        InvalidInput, r"write \? and # in a name as %3F", lambda f: here(f, f"file://{f}/a?b"),
        lambda f: here(f, f"file://{f}/a%3Fb"),
    ),
    "two slashes": Refusal(
        InvalidInput, "two slashes in a row, which a key cannot have; remove one",
        lambda f: rs.open_table("s3://bucket/a//b"), lambda f: here(f, "memory:///advised/b"),
    ),
    "options of a local table": Refusal(
        InvalidInput, "file tables take none",
        lambda f: rs.create_table(f / "t", V_ROWS, storage_options={"region": "x"}),
        lambda f: rs.create_table(f / "t", V_ROWS),
    ),
}  # fmt: skip
