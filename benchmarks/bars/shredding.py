"""Bar: bytes that a condition on a JSON path reads where files store the path as columns.

The same documents are written with the property `json_shredding` and without. Bytes are counted, so
they are the same on every machine; CPU seconds of both, read and written, are shown beside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec
import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.result import Bar, expect

MAX_SHARE = 0.05
ROWS_PER_KIND = 5_000
SCHEMA = pa.schema([pa.field("id", pa.int64()), pa.field("payload", pa.json_())])
PATHS = "payload.kind, payload.n"
T = TypeVar("T")


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Write the documents twice, and ask both tables for the rows of one kind and of one range."""
    count = sizes.expression_rows
    conditions = (
        f"payload->>'kind' = 'k{count // ROWS_PER_KIND // 2:05}'",
        f"(payload->>'n')::bigint >= {count - 100}",
    )
    rows = pa.table([pa.array(range(count), pa.int64()), _documents(count)], schema=SCHEMA)
    facts: dict[str, dict[str, float]] = {}
    results = []
    for name, properties in (("plain", {}), ("shredded", {"json_shredding": PATHS})):
        table = rs.create_table(folder / name, SCHEMA, properties=properties)
        write_s, _ = _cpu(partial(table.append, rows))
        found, read_bytes, read_s = [], 0, 0.0
        for where in conditions:
            scan = table.scan(where)
            seconds, matched = _cpu(scan.to_arrow)
            found.append(matched.num_rows)
            read_bytes, read_s = read_bytes + scan.metrics.bytes_read, read_s + seconds
        size = sum(file.stat().st_size for file in (folder / name / "data").iterdir())
        results.append(found)
        facts[name] = {"write_s": write_s, "file": size, "read_s": read_s, "read": read_bytes}
    expect("rows of the conditions", results[1], results[0])
    plain, shredded = facts["plain"], facts["shredded"]
    share = shredded["read"] / plain["read"]
    return Bar(
        name="shredding",
        promise=f"conditions on a path of {count:,} documents read at most {MAX_SHARE:.0%} of the "
        "bytes that they read without json_shredding",
        found=f"{share:.1%} of the bytes, {shredded['read_s'] / plain['read_s']:.1%} of the CPU; "
        f"writing takes {shredded['write_s'] / plain['write_s']:.1f}x the CPU, files are "
        f"{shredded['file'] / plain['file']:.2f}x as large",
        met=share <= MAX_SHARE,
        facts=facts,
    )


def _documents(count: int) -> pa.Array:
    texts = [
        msgspec.json.encode(
            {
                "kind": f"k{i // ROWS_PER_KIND:05}",
                "n": i,
                "user": {"id": i * 7919 % count, "name": f"name {i % 97}"},
            }
        ).decode()
        for i in range(count)
    ]
    return pa.ExtensionArray.from_storage(pa.json_(), pa.array(texts))


def _cpu(act: Callable[[], T]) -> tuple[float, T]:
    before = time.process_time()
    result = act()
    return time.process_time() - before, result
