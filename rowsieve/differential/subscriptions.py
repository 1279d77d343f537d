"""Subscriptions: the updates of a differential table by time, as versions complete them.

Soundness: an item has all updates of its times, [lower, upper), because the version that it is read
of has declared them complete; each update is in exactly one item. Times that were given up before
they were read are an error, never a merged update. A lease on the table keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rowsieve import clock
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import SnapshotExpired
from rowsieve.executor.consolidation.advanced_updates import consolidated_updates
from rowsieve.executor.execute import Execution
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.storage.differential import (
    TIME,
    as_updates,
    frontiers_of,
    may_have_merged,
    readable_time,
    shown_time,
)
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import LogicalType


@dataclass(frozen=True, slots=True)
class Updates:
    """All updates of the times [lower, upper): an item of a subscription.

    `rows` has the columns of the table, with `_rowsieve_time` and `_rowsieve_diff`. The first item
    has the sums at its only time. `version` is the one that it was read of.
    """

    rows: pa.Table
    lower: Any
    upper: Any
    version: int


def subscription(
    handle: Handle, from_time: Any, *, snapshot: bool, interval_s: float | None
) -> Iterator[Updates]:
    """Yield items without end; with `interval_s` None, up to the newest version."""
    version = handle.resolve()
    time_type = version.schema.field(TIME).type
    lower = readable_time(version, from_time, "subscribe: from_time=")
    return _items(handle, version, lower, time_type, snapshot=snapshot, interval_s=interval_s)


def _items(
    handle: Handle,
    version: Snapshot,
    lower: int,
    time_type: LogicalType,
    *,
    snapshot: bool,
    interval_s: float | None,
) -> Iterator[Updates]:
    if snapshot:
        rows = _updates(handle, version, None, lower + 1, advanced_to=lower)
        yield _item(rows, (lower, lower + 1), version, time_type)
    lower += 1
    while True:
        since, upper = frontiers_of(version.table)
        if upper > lower:
            if may_have_merged(version.table, lower, time_type):
                raise SnapshotExpired(
                    f"subscribe: the times from {shown_time(lower, time_type)} to "
                    f"{shown_time(since, time_type)} were given up before they were read, and may "
                    "have updates of earlier times by now; hold a lease on the table while you "
                    "subscribe, and begin again at since"
                )
            yield _item(_updates(handle, version, lower, upper), (lower, upper), version, time_type)
            lower = upper
        if interval_s is None or handle.read_only:  # an older version never changes
            return
        newer = handle.resolve()
        if newer.version == version.version:
            clock.sleep(interval_s)
            newer = handle.resolve()
        version = newer


def _item(
    rows: pa.Table, times: tuple[int, int], version: Snapshot, time_type: LogicalType
) -> Updates:
    lower, upper = (shown_time(time, time_type) for time in times)
    return Updates(rows, lower, upper, version.version)


def _updates(
    handle: Handle, version: Snapshot, lower: int | None, upper: int, *, advanced_to: int = 0
) -> pa.Table:
    """The updates of [lower, upper), added up by row and time, in the order of their times."""
    time_type = version.schema.field(TIME).type
    bounds = [(ComparisonOp.LT, upper)]
    if lower is not None:
        bounds.append((ComparisonOp.GE, lower))
    terms = [ir.Comparison(op, ir.Column(TIME), ir.Literal(at, time_type)) for op, at in bounds]
    plan = plan_scan(
        as_updates(version), handle.store.uri, predicate=ir.conjoin(terms), now_us=clock.now_us()
    )
    schema = arrow_schema(version.schema)
    batches = list(Execution(plan, handle.store).read())
    if not batches:
        return schema.empty_table()
    read = pa.Table.from_batches(batches)
    least = advanced_to if lower is None else lower
    rows = pa.Table.from_batches([consolidated_updates(read, least)])
    return rows.sort_by(TIME)
