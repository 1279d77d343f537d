"""Differential tables in memory, their updates as tuples, and the model: a multiset by time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa

import rowsieve as rs
from rowsieve import Table
from tests.small_tables import fresh_uri

KV = pa.schema([pa.field("k", pa.int64()), pa.field("v", pa.string())])
Update: TypeAlias = tuple[int, str | None, int, int]
"""k, v, time, difference."""


def differential(schema: pa.Schema = KV, **options: Any) -> Table:
    """A differential table without updates."""
    return rs.create_table(fresh_uri(), schema, mode="differential", **options)


def updates(*rows: Update) -> pa.Table:
    """Updates of `KV`, as `append_updates` takes them."""
    names = ["k", "v", "time", "diff"]
    schema = pa.schema([*KV, pa.field("time", pa.uint64()), pa.field("diff", pa.int64())])
    return pa.Table.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema)


def sums(table: Table, at: int | None = None, where: Any = None, **options: Any) -> dict[Any, int]:
    """The rows of a `KV` table with their multiplicities; `count` and pruning must agree."""
    scan = table.scan(where, at=at, **options)
    rows = scan.to_arrow().to_pylist()
    assert scan.count() == len(rows)
    unpruned = table.scan(where, at=at, pruning="off", **options).to_arrow().to_pylist()
    assert _by_row(unpruned) == _by_row(rows)
    table.scan(where, at=at, pruning="soft", **options).to_arrow()  # audits all that was skipped
    return _by_row(rows)


def modelled(rows: Sequence[Update], at: int) -> dict[Any, int]:
    """What `sums` must return."""
    total: Counter[Any] = Counter()
    for k, v, time, diff in rows:
        if time <= at:
            total[k, v] += diff
    return {row: count for row, count in total.items() if count}


def _by_row(rows: Sequence[dict[str, Any]]) -> dict[Any, int]:
    found = {(row["k"], row["v"]): row["_rowsieve_diff"] for row in rows}
    assert len(found) == len(rows)
    return found
