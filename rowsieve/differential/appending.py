"""Append updates to a differential table: compare the frontier, then append and move it.

Soundness (invariant 33): the new parts and the new frontier are one commit. It is made only on a
version whose frontier is the one that the caller began at, so every update has a time at or above
it, and nobody else has declared these times complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change import Change, nothing_done
from rowsieve.changes.column_changes import check_same_columns
from rowsieve.changes.data.ingest import Changes, prepare_appended, read_data
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidData, InvalidInput, SchemaMismatch, UpperMismatch
from rowsieve.storage.differential import (
    DIFF,
    TIME,
    UINT64,
    Frontiers,
    frontiers_of,
    physical_time,
    shown_time,
    with_frontiers,
)
from rowsieve.storage.log.commit_request import CommitRequest, must_write_again
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import LogicalType
from rowsieve.types.schema import Schema
from rowsieve.types.shown_values import shown_row

APPEND: Final = "append_updates"


def append_updates(
    handle: Handle,
    change: Change,
    data: Any,
    names: tuple[str, str],
    bounds: tuple[Any, Any],
) -> Commit:
    """Append the updates of [lower, upper); see `DifferentialMethods.append_updates`.

    `names`: the columns of times and differences. `bounds`: lower, None for the frontier that this
    handle has seen, and upper.
    """
    known = handle.newest
    time_type = known.schema.field(TIME).type
    lower = frontiers_of(known.table).upper
    if bounds[0] is not None:
        lower = physical_time(bounds[0], time_type, f"{APPEND}: lower=")
    upper = physical_time(bounds[1], time_type, f"{APPEND}: upper=")
    base = handle.latest()
    if (done := handle.log.committed_before(change.token, base)) is not None:
        return done
    _check_upper(base, lower, time_type)
    rows = _updates(data, base.schema, names, handle.storage_options)
    rows = _checked_times(rows, (lower, upper), time_type)
    if not rows.num_rows and upper == lower:
        return nothing_done(APPEND, base)
    changes = Changes(rows, None)
    request = change.write(base, changes)

    def request_for(head: Snapshot) -> CommitRequest:
        nonlocal request
        _check_upper(head, lower, time_type)
        check_same_columns(APPEND, base.schema.id, head)
        if must_write_again(APPEND, request.added, request.removed, head):
            request = change.write(head, changes)
        since = frontiers_of(head.table).since
        return replace(request, info=with_frontiers(head.table, Frontiers(since, upper)))

    return handle.commit(change, base, request_for)


def _check_upper(head: Snapshot, lower: int, time_type: LogicalType) -> None:
    upper = frontiers_of(head.table).upper
    if upper != lower:
        expected, there = shown_time(lower, time_type), shown_time(upper, time_type)
        raise UpperMismatch(
            f"{APPEND}: the updates begin at {expected}, and the frontier of the table is {there} "
            f"at version {head.version}: another writer appended, or lower= is wrong; nothing was "
            f"committed. Read what is there, then append what is left from {there} on",
            expected=expected,
            upper=there,
            version=head.version,
        )


def _updates(
    data: Any, schema: Schema, names: tuple[str, str], storage_options: Mapping[str, Any]
) -> pa.Table:
    """Read the updates as rows of the table; differences of zero are left out."""
    new_names = _given_names(schema, names)
    fields = tuple(replace(field, name=new_names[field.name]) for field in schema)
    named = Schema(schema.id, fields)
    table = read_data(data, APPEND, named, appends=True, storage_options=storage_options)
    if missing := [name for name in names if name not in table.column_names]:
        raise SchemaMismatch(
            f"{APPEND}: the data has no column {missing[0]!r}, and every update needs a time and a "
            f"difference; it has ({', '.join(table.column_names)}). Name them with time= and diff="
        )
    _check_every_update(table, names, schema.field(TIME).type)
    rows = prepare_appended(table, named).rename_columns(list(schema.names))
    return rows.filter(pc.not_equal(rows.column(DIFF), 0))


def _check_every_update(data: pa.Table, names: tuple[str, str], time_type: LogicalType) -> None:
    """Raise SchemaMismatch for an update without a time or difference, or with a negative time."""
    for name in names:
        if nulls := data.column(name).null_count:
            raise SchemaMismatch(
                f"{APPEND}: column {name!r} has {nulls:,} NULL values, and every update needs a "
                "time and a difference; nothing was committed: give them values, or leave these "
                "updates out"
            )
    times = data.column(names[0])
    is_signed = pa.types.is_signed_integer(times.type) or pa.types.is_floating(times.type)
    if time_type == UINT64 and is_signed and (pc.min(times).as_py() or 0) < 0:
        raise SchemaMismatch(
            f"{APPEND}: column {names[0]!r} has the time {pc.min(times).as_py()}, and times of "
            f"type uint64 are 0 to {2**64 - 2}; nothing was committed"
        )


def _given_names(schema: Schema, names: tuple[str, str]) -> Mapping[str, str]:
    """The name in the data of each column."""
    renamed = {TIME: names[0], DIFF: names[1]}
    if names[0] == names[1]:
        raise InvalidInput(f"{APPEND}: time= and diff= both name the column {names[0]!r}")
    folded = {name.lower(): name for name in schema.names if name not in renamed}
    for argument, name in zip(("time", "diff"), names, strict=True):
        if name.lower() in folded:
            raise InvalidInput(
                f"{APPEND}: {argument}={name!r} names a column of the table's rows; rename the "
                f"column of the updates, for example to {TIME if argument == 'time' else DIFF!r}, "
                f"and give {argument}= its name"
            )
    return {name: renamed.get(name, name) for name in schema.names}


def _checked_times(rows: pa.Table, bounds: tuple[int, int], time_type: LogicalType) -> pa.Table:
    """Raise InvalidData for a time below lower, or at or above upper, which is not below lower."""
    lower, upper = bounds
    if upper < lower:
        raise InvalidInput(
            f"{APPEND}: upper={shown_time(upper, time_type)} is before the frontier "
            f"{shown_time(lower, time_type)}; a frontier never goes back: give an upper above all "
            "times of the updates"
        )
    times = rows.column(TIME).combine_chunks()
    numbers = times.cast(pa.uint64() if times.type == pa.uint64() else pa.int64()).to_numpy()
    kind = numbers.dtype.type
    outside = (numbers < kind(lower)) | (numbers >= kind(upper))
    if outside.any():
        row = shown_row(rows, int(np.argmax(outside)))
        raise InvalidData(
            f"{APPEND}: {int(outside.sum()):,} of {rows.num_rows:,} updates have a time outside of "
            f"[{shown_time(lower, time_type)}, {shown_time(upper, time_type)}), such as {row}; "
            "nothing was committed. Times begin at the frontier, upper of the table, and end below "
            "upper="
        )
    return rows
