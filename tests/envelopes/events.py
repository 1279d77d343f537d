"""Events in the shapes that the formats' documentation describes, in a story of our own.

A shop has the table `crates` with a key, a label, a weight and the time of packing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import rowsieve
from rowsieve import Table
from tests.small_tables import fresh_uri

CRATES = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("label", pa.string()),
        ("grams", pa.int64()),
    ]
)
SOURCES: Mapping[str, dict[str, Any]] = {
    "postgresql": {"schema": "store", "txId": 901, "lsn": 40_001, "xmin": None},
    "mysql": {
        "server_id": 7,
        "gtid": "8b2e:41",
        "file": "binlog.000009",
        "pos": 2_101,
        "row": 0,
        "thread": 5,
        "query": None,
    },
    "sqlserver": {
        "schema": "dbo",
        "change_lsn": "0000002c:00000a30:0002",
        "commit_lsn": "0000002c:00000a30:0003",
        "event_serial_no": 1,
    },
    "oracle": {
        "schema": "STORE",
        "txId": "0a.2",
        "scn": "812001",
        "commit_scn": "812005",
        "ssn": 0,
    },
    "db2": {
        "schema": "STORE",
        "change_lsn": "00000000:00000001:0002",
        "commit_lsn": "00000000:00000001:0003",
    },
    "vitess": {"keyspace": "store", "vgtid": '[{"keyspace":"store","shard":"0","gtid":"x"}]'},
}
"""What each connector writes into `source`, beside what all of them do."""


def crates(**options: Any) -> Table:
    """The empty table `crates`."""
    return rowsieve.create_table(fresh_uri(), CRATES, key=["id"], **options)


def crate(id_: int, label: str | None = None, grams: int | None = None) -> dict[str, Any]:
    """A row of `crates`."""
    return {"id": id_, "label": label, "grams": grams}


def event(
    op: str,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    at: int = 0,
    connector: str = "postgresql",
    table: str = "crates",
) -> dict[str, Any]:
    """An event of Debezium; `at` moves it on in the log of its source."""
    source = {
        "version": "3.0.0.Final",
        "connector": connector,
        "name": "shop",
        "ts_ms": 1_800_000_000_000 + at,
        "snapshot": "false",
        "db": "shop",
        "sequence": f'["{40_000 + at}","{40_001 + at}"]',
        "table": table,
        **{name: moved(name, value, at) for name, value in SOURCES[connector].items()},
    }
    return {
        "before": before,
        "after": after,
        "source": source,
        "op": op,
        "ts_ms": 1_800_000_000_500 + at,
        "transaction": None,
    }


def moved(name: str, value: Any, at: int) -> Any:
    """A number of a source's log, `at` places later."""
    if name in ("lsn", "pos"):
        return value + at
    if name == "scn":
        return str(int(value) + at)
    if name in ("change_lsn", "commit_lsn"):
        first, second, third = value.split(":")
        return f"{first}:{int(second, 16) + at:08x}:{third}"
    return value


def texts(*events: Any) -> list[str | None]:
    """Events as JSON text, and None for a tombstone."""
    return [None if each is None else json.dumps(each) for each in events]


def rows(table: Table) -> list[dict[str, Any]]:
    """The rows of a table by key."""
    return list(table.scan().to_arrow().sort_by("id").to_pylist())


STREAM = (
    event("r", None, crate(1, "plums", 900), 0),
    event("c", None, crate(2, "pears", 700), 1),
    event("u", crate(2, "pears", 700), crate(2, "pears", 650), 2),
    event("c", None, crate(3, "figs", 100), 3),
    event("d", crate(1, "plums", 900), None, 4),
)
"""A snapshot read, creates, an update and a delete."""
AFTER_STREAM = [crate(2, "pears", 650), crate(3, "figs", 100)]
