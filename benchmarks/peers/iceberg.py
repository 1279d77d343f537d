"""pyiceberg: copy on write, with a catalog in SQLite."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.conversions import to_bytes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import DoubleType, LongType, NestedField

from benchmarks import data
from benchmarks.peers.protocol import KEYS_PER_PART, Keys

NAME = "d.t"
PROPERTIES = {
    "write.parquet.row-group-limit": str(data.ROW_GROUP_ROWS),
    "write.parquet.compression-codec": "zstd",
}


class Iceberg:
    """A table with an identifier field."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        warnings.simplefilter("ignore")  # of its own dependencies

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """Append chunk after chunk."""
        catalog = _catalog(self._folder)
        catalog.create_namespace("d")
        for i, chunk in enumerate(chunks):
            rows = chunk.cast(_required_key(chunk.schema))
            if i == 0:
                table = catalog.create_table(NAME, rows.schema, properties=PROPERTIES)
                with table.update_schema() as update:
                    update.set_identifier_fields("id")
                table = catalog.load_table(NAME)
            table.append(rows)
        self.open()

    def open(self) -> None:
        """Read the metadata."""
        self._table: Any = _catalog(self._folder).load_table(NAME)

    def select(self, keys: Keys) -> pa.Table:
        """Scan with a row filter."""
        return self._scan(keys).to_arrow()

    def count(self, keys: Keys) -> int:
        """Count by a scan."""
        return int(self._scan(keys).count())

    def upsert(self, rows: pa.Table) -> None:
        """Its own upsert, which joins on the identifier field."""
        self._table.upsert(rows.cast(_required_key(rows.schema)))

    def _scan(self, keys: Keys) -> Any:
        return self._table.scan() if keys.everything else self._table.scan(keys.sql)


class Parts:
    """Manifests that name files that do not exist."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        warnings.simplefilter("ignore")

    def build(self, parts: int) -> None:
        """One fast append."""
        catalog = _catalog(self._folder)
        catalog.create_namespace("d")
        schema = Schema(
            NestedField(1, "id", LongType(), required=False),
            NestedField(2, "v", DoubleType(), required=False),
        )
        table = catalog.create_table(NAME, schema)
        with table.transaction() as change, change.update_snapshot().fast_append() as append:
            for i in range(parts):
                append.append_data_file(_data_file(self._folder, i))

    def open(self) -> None:
        """Read the metadata."""
        self._table: Any = _catalog(self._folder).load_table(NAME)

    def plan(self, key: int) -> int:
        """Read the manifests and keep what may match."""
        return len(list(self._table.scan(f"id = {key}").plan_files()))


def _catalog(folder: Path) -> SqlCatalog:
    uri = f"sqlite:///{folder / 'catalog.db'}"
    return SqlCatalog("c", uri=uri, warehouse=f"file://{folder}")


def _required_key(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(field.name != "id") for field in schema])


def _data_file(folder: Path, place: int) -> DataFile:
    first, kind = place * KEYS_PER_PART, LongType()
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=f"file://{folder}/p{place:08d}.parquet",
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=KEYS_PER_PART,
        file_size_in_bytes=1_000_000,
        column_sizes={},
        value_counts={1: KEYS_PER_PART},
        null_value_counts={1: 0},
        nan_value_counts={},
        lower_bounds={1: to_bytes(kind, first)},
        upper_bounds={1: to_bytes(kind, first + KEYS_PER_PART - 1)},
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=0,
    )
