"""deltalake: copy on write, merged by key, read by its own engine."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, WriterProperties, write_deltalake

from benchmarks import data
from benchmarks.peers.protocol import KEYS_PER_PART, Keys

PROPERTIES = WriterProperties(compression="ZSTD", max_row_group_size=data.ROW_GROUP_ROWS)


class Delta:
    """A Delta table of sorted chunks."""

    def __init__(self, folder: Path) -> None:
        self._uri = str(folder / "table")
        self._loaded = 0

    def load(self, chunks: Iterator[pa.Table]) -> None:
        """Append chunk after chunk."""
        for chunk in chunks:
            write_deltalake(self._uri, chunk, mode="append", writer_properties=PROPERTIES)

    def open(self) -> None:
        """Read the log; a reader stays at its version."""
        self._table = DeltaTable(self._uri)
        self._query = QueryBuilder().register("t", self._table)

    def select(self, keys: Keys) -> pa.Table:
        """Read by its query builder."""
        return pa.table(self._query.execute(f"SELECT * FROM t{keys.where}").read_all())

    def count(self, keys: Keys) -> int:
        """Count by its query builder."""
        found = self._query.execute(f"SELECT count(*) AS n FROM t{keys.where}").read_all()
        return int(pa.table(found).column("n")[0].as_py())

    def upsert(self, rows: pa.Table) -> None:
        """Merge by key."""
        merge = DeltaTable(self._uri).merge(
            rows,
            "t.id = s.id",
            source_alias="s",
            target_alias="t",
            writer_properties=PROPERTIES,
        )
        merge.when_matched_update_all().when_not_matched_insert_all().execute()

    def compact(self) -> None:
        """Bin packing."""
        DeltaTable(self._uri).optimize.compact(writer_properties=PROPERTIES)

    def reopen(self) -> int:
        """Read the log again."""
        return int(DeltaTable(self._uri).version())


class Parts:
    """A log whose files do not exist, with a checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "table"
        self._query: Any = None

    def build(self, parts: int) -> None:
        """Write the log as JSON and let deltalake make the checkpoint."""
        log = self._folder / "_delta_log"
        log.mkdir(parents=True)
        actions = [*_head(), *(_add(i) for i in range(parts))]
        (log / f"{0:020d}.json").write_text("\n".join(map(json.dumps, actions)))
        DeltaTable(str(self._folder)).create_checkpoint()

    def open(self) -> None:
        """Read the checkpoint."""
        self._query = QueryBuilder().register("t", DeltaTable(str(self._folder)))

    def plan(self, key: int) -> int:
        """EXPLAIN lists the files that a scan would open."""
        found = pa.table(
            self._query.execute(f"EXPLAIN SELECT * FROM t WHERE id = {key}").read_all()
        )
        return sum(str(text).count(".parquet") for text in found.column("plan").to_pylist())


def _head() -> list[dict[str, Any]]:
    fields = [
        {"name": name, "type": kind, "nullable": True, "metadata": {}}
        for name, kind in (("id", "long"), ("v", "double"))
    ]
    return [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {
            "metaData": {
                "id": str(uuid.uuid4()),
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {},
                "createdTime": 0,
            }
        },
    ]


def _add(place: int) -> dict[str, Any]:
    first = place * KEYS_PER_PART
    statistics = {
        "numRecords": KEYS_PER_PART,
        "minValues": {"id": first, "v": 0.0},
        "maxValues": {"id": first + KEYS_PER_PART - 1, "v": 1.0},
        "nullCount": {"id": 0, "v": 0},
    }
    return {
        "add": {
            "path": f"p{place:08d}.parquet",
            "partitionValues": {},
            "size": 1_000_000,
            "modificationTime": 0,
            "dataChange": True,
            "stats": json.dumps(statistics),
        }
    }
