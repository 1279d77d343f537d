"""Differential tables: rows are updates (data, time, difference) of a collection.

Each version has two frontiers, kept as properties of the table. `upper`: every update of a time
below it is there. `since`: times below it may have been advanced to it, so that they cannot be told
apart any more. The collection at a time `at`, with since <= at < upper, has each row as often as
the differences of its updates up to `at` add up to.

Soundness (invariant 33): a version of such a table is planned only as a `Reading` at a time, or as
updates on purpose. Frontiers never go back (rule 7). Operations that know nothing of them are
refused, before anything is written and again at the commit.
"""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa

from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    InvalidSchemaChange,
    UnsupportedOperation,
)
from rowsieve.properties import SINCE, UPPER
from rowsieve.storage.snapshot import (
    DIFFERENTIAL,
    DIFFERENTIAL_PROTOCOL,
    Reading,
    Snapshot,
    TableInfo,
)
from rowsieve.types.instants import from_microseconds, to_microseconds
from rowsieve.types.logical import Field, Int, LogicalType, Timestamp
from rowsieve.types.schema import Schema

TIME: Final = "_rowsieve_time"
DIFF: Final = "_rowsieve_diff"
RESERVED: Final = (TIME, DIFF)
UINT64: Final = Int(64, signed=False)
FIRST_INSTANT_US: Final = to_microseconds(datetime(1, 1, 1, tzinfo=UTC))
LAST_INSTANT_US: Final = to_microseconds(datetime.max.replace(tzinfo=UTC))
ONLY_DIFFERENTIAL: Final = frozenset({"append_updates", "advance_since"})
"""Operations of differential tables that other tables do not have."""
OPERATIONS: Final = frozenset(
    {
        "create",
        "append_updates",
        "advance_since",
        "alter",
        "analyze",
        "compact",
        "maintain",
        "rewrite_data_files",
        "transaction",  # whose changes are checked one by one
        "set_properties",
        "unset_properties",
        "expire_versions",
        "remove_orphans",
        "vacuum",
        "create_branch",
        "create_tag",
        "drop_branch",
        "drop_tag",
        "move",
    }
)
"""Operations of the log that keep the frontiers and the meaning of the updates."""
_TAKE_BACK: Final = (
    "Append what turns its rows of now into those, at the next time: "
    "rs.differences(table, rs.open_table(uri, version=…)), with a column of times, goes to "
    "append_updates"
)
_INSTEAD: Final = {
    "restore": _TAKE_BACK,
    "fast_forward": _TAKE_BACK,
    "publish": "publish a table of its rows: rs.create_table(uri, table.scan(at=…).to_arrow())",
    "changes": "use subscribe, which is its feed of updates",
}
"""What to do instead of an operation that is refused, for those that have an advice of their own.

A restore could choose a time itself, but the writers of the table say what its times mean.
"""
REFUSED_PROPERTIES: Final = (
    "expire_rows_when",
    "row_versions",
    "history",
    "combine",
    "late_horizon",
)
"""Properties that a differential table cannot have."""
_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)


class Frontiers(NamedTuple):
    """The frontiers of a version, in the physical form of its times."""

    since: int
    upper: int


def is_differential(info: TableInfo) -> bool:
    """Return whether the rows of the table are updates."""
    return info.mode == DIFFERENTIAL


def fields_of_updates(properties: Mapping[str, str], schema: Schema) -> tuple[Field, ...]:
    """The time and the difference among the stored columns of a differential table.

    None of another table, even if columns of it have such names.
    """
    return tuple(map(schema.field, RESERVED)) if SINCE in properties else ()


def as_differential(info: TableInfo, schema: Schema) -> TableInfo:
    """Describe a new table as differential; its schema ends with the reserved columns."""
    first = str(_range_of(schema.field(TIME).type)[0])
    return dataclasses.replace(
        info,
        mode=DIFFERENTIAL,
        properties={**info.properties, SINCE: first, UPPER: first},
        reader_version=max(info.reader_version, DIFFERENTIAL_PROTOCOL),
        writer_version=max(info.writer_version, DIFFERENTIAL_PROTOCOL),
        features=(*info.features, DIFFERENTIAL),
    )


def with_reserved(columns: pa.Schema, time: pa.DataType) -> pa.Schema:
    """Add the columns of time and difference; InvalidInput if the names are taken."""
    if taken := [name for name in columns.names if name.lower() in RESERVED]:
        raise InvalidInput(
            f"create_table: the column {taken[0]!r} has a name that differential tables reserve; "
            "give the columns of the data only, and the times and differences to append_updates"
        )
    return pa.schema(
        [
            *columns,
            pa.field(TIME, time, nullable=False),
            pa.field(DIFF, pa.int64(), nullable=False),
        ],
        metadata=columns.metadata,
    )


def frontiers_of(info: TableInfo) -> Frontiers:
    """Read the frontiers of a version; CorruptData if they are not there."""
    return Frontiers(_number(info.properties, SINCE), _number(info.properties, UPPER))


def with_frontiers(info: TableInfo, frontiers: Frontiers) -> TableInfo:
    """Return the table information with these frontiers; neither goes back (rule 7)."""
    before = frontiers_of(info)
    if frontiers.since < before.since or frontiers.upper < before.upper:
        raise InvalidInput(f"frontiers never go back: from {before} to {frontiers}")
    properties = {SINCE: str(frontiers.since), UPPER: str(frontiers.upper)}
    return dataclasses.replace(info, properties={**info.properties, **properties})


def evolved_columns(before: Schema, after: Schema) -> Schema:
    """Return changed columns with those of time and difference last, as they were.

    InvalidSchemaChange if these are not, or no other is left. All updates of a row have the same
    values afterwards, so sums are those of the rows with these columns at every time.
    """
    others = tuple(each for each in after if each.name.lower() not in RESERVED)
    reserved = tuple(map(before.field, RESERVED))
    if {each for each in after if each not in others} != set(reserved):
        raise InvalidSchemaChange(
            f"the columns {TIME} and {DIFF} of a differential table are those of its updates: they "
            "stay as they are, and no other column has such a name"
        )
    if not others:
        raise InvalidSchemaChange("a differential table needs a column of its rows; keep one")
    return Schema(after.id, (*others, *reserved))


def check_mode(operation: str, info: TableInfo) -> None:
    """Raise UnsupportedOperation for an operation that the mode of the table does not have."""
    if info.mode == DIFFERENTIAL:
        if operation not in OPERATIONS:
            raise UnsupportedOperation(
                f"{operation}: the table is differential, its rows are updates with a time and a "
                "difference, and this operation would change them without either; nothing was "
                "written. "
                + _INSTEAD.get(
                    operation, "Use append_updates, with a difference of -1 for a row that goes"
                )
            )
    elif operation in ONLY_DIFFERENTIAL:
        raise UnsupportedOperation(
            f"{operation}: the table has mode {info.mode!r}, and only tables with "
            'mode="differential" have times and differences; nothing was written. Use '
            + ("upsert" if info.key else "append")
        )


def check_properties_of_mode(properties: Mapping[str, str], info: TableInfo) -> None:
    """Raise UnsupportedOperation for a property that changes rows by their place or condition."""
    if is_differential(info) and (refused := [n for n in REFUSED_PROPERTIES if n in properties]):
        raise UnsupportedOperation(
            f"table property {refused[0]!r} is not for differential tables: it deletes rows or "
            "tells versions of them apart, and their rows are updates with a time and a "
            "difference; nothing was written. Use append_updates, with a difference of -1"
        )


def refuse_differential(operation: str, info: TableInfo) -> None:
    """Raise UnsupportedOperation for a read that cannot add up differences."""
    if is_differential(info):
        raise UnsupportedOperation(
            f"{operation}: the table is differential, its rows are updates with a time and a "
            "difference, and this way of reading does not add them up; "
            + _INSTEAD.get(operation, "use scan(at=…), to_arrow, to_dataset or scan_polars")
        )


def read_at(snapshot: Snapshot, at: Any = None, *, expanded: bool = False) -> Snapshot:
    """Return the version as it is read at a time, by default the latest complete one.

    InvalidInput for a time below `since`, or at or above `upper`. Without a complete time the
    default reads no rows. A version of another table is returned as it is.
    """
    if snapshot.table.mode != DIFFERENTIAL:
        if at is not None or expanded:
            raise InvalidInput(
                f"scan: at= and expanded= are for differential tables, and this one has mode "
                f"{snapshot.table.mode!r}; use version= or as_of= for its older versions"
            )
        return snapshot
    if snapshot.reading is not None:
        return snapshot
    stored, (since, upper) = snapshot.schema, frontiers_of(snapshot.table)
    time_type = stored.field(TIME).type
    moment = upper - 1 if at is None else physical_time(at, time_type, "scan: at=")
    is_empty = at is None and upper == _range_of(time_type)[0]
    if not is_empty and moment < since:
        raise InvalidInput(
            f"scan: at={shown_time(moment, time_type)} is before since="
            f"{shown_time(since, time_type)} of version {snapshot.version}: earlier times were "
            "given up, and their updates may have been advanced; read at since or later, or an "
            "older version"
        )
    if moment >= upper:
        raise InvalidInput(
            f"scan: at={shown_time(moment, time_type)} is not complete: upper is "
            f"{shown_time(upper, time_type)} at version {snapshot.version}, so updates of that "
            "time may still come; read at a time below it, or wait for append_updates"
        )
    names = tuple(name for name in stored.names if name != TIME and not (expanded and name == DIFF))
    reading = Reading(None if is_empty else moment, expanded, stored)
    return dataclasses.replace(snapshot, schema=stored.select(names), reading=reading)


def as_updates(snapshot: Snapshot) -> Snapshot:
    """Return the version as a table of its updates, whose rows nothing hides or sums."""
    if not is_differential(snapshot.table):
        return snapshot
    info = dataclasses.replace(snapshot.table, mode="append")
    return dataclasses.replace(snapshot, table=info)


def physical_time(value: Any, type_: LogicalType, what: str) -> int:
    """Return a time in physical form: an unsigned integer, or microseconds since 1970.

    InvalidInput for a value of another kind or beyond the range; `what` names it in errors.
    """
    low, high = _range_of(type_)
    if isinstance(type_, Timestamp):
        if not isinstance(value, datetime | str):
            raise InvalidInput(
                f"{what} must be an aware datetime or ISO-8601 text with an offset, as the times "
                f"of this table are timestamptz; got {value!r}"
            )
        return to_microseconds(value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise InvalidInput(
            f"{what} must be an integer, as the times of this table are uint64; got {value!r}"
        )
    number: int = operator.index(value)
    if not low <= number <= high:
        raise InvalidInput(f"{what} must be from {low} to {high}, got {number}")
    return number


def may_have_merged(info: TableInfo, time: int, type_: LogicalType) -> bool:
    """Return whether updates of earlier times may have this time or a later one by now.

    Times before `since` become `since`, so whoever has read all times below `time` would read them
    again if `since` is that time.
    """
    since = frontiers_of(info).since
    return since >= time and since > _range_of(type_)[0]


def readable_time(snapshot: Snapshot, time: Any, what: str) -> int:
    """Return a time in [since, upper) of this version in physical form, or raise InvalidInput."""
    if not is_differential(snapshot.table):
        raise InvalidInput(
            f"{what}: only differential tables have times, and this one has mode "
            f"{snapshot.table.mode!r}; leave it out, or read a version by version= or as_of="
        )
    time_type = snapshot.schema.field(TIME).type
    moment = physical_time(time, time_type, what)
    since, upper = frontiers_of(snapshot.table)
    if not since <= moment < upper:
        raise InvalidInput(
            f"{what}{shown_time(moment, time_type)} is not in [{shown_time(since, time_type)}, "
            f"{shown_time(upper, time_type)}), the times from since to upper that version "
            f"{snapshot.version} can read; give one of them"
        )
    return moment


def time_of_text(snapshot: Snapshot, text: str | None) -> Any:
    """Return a time that an option gives as text, for `read_at`; None stays None."""
    if text is None or not is_differential(snapshot.table):
        return text
    is_integer = snapshot.schema.field(TIME).type == UINT64 and _INTEGER.fullmatch(text)
    return int(text) if is_integer else text


def plain_frontiers(snapshot: Snapshot) -> dict[str, int | str | None]:
    """Return `since` and `upper` as plain values, and of a read its time `at`; {} without them."""
    if not is_differential(snapshot.table):
        return {}
    reading = snapshot.reading
    time_type = (snapshot.schema if reading is None else reading.stored).field(TIME).type
    since, upper = frontiers_of(snapshot.table)
    times = {"since": since, "upper": upper}
    values: dict[str, int | str | None] = {
        name: _plain_time(time, time_type) for name, time in times.items()
    }
    if reading is None:
        return values
    at = None if reading.at is None else _plain_time(reading.at, time_type)
    return {"at": at, **values}


def _plain_time(value: int, type_: LogicalType) -> int | str:
    moment = shown_time(value, type_)
    return moment.isoformat() if isinstance(moment, datetime) else int(moment)


def shown_time(value: int, type_: LogicalType) -> Any:
    """Return a physical time as users give it: an integer, or an aware datetime in UTC."""
    return from_microseconds(value) if isinstance(type_, Timestamp) else value


def _range_of(type_: LogicalType) -> tuple[int, int]:
    """The least and the greatest frontier."""
    if isinstance(type_, Timestamp):
        return FIRST_INSTANT_US, LAST_INSTANT_US
    return 0, 2**64 - 1


def _number(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name, "")
    if _INTEGER.fullmatch(text) is None:
        raise CorruptData(
            f"table property {name} is {text!r} instead of a time; the log is damaged, or another "
            "program wrote it: restore it from a copy"
        )
    return int(text)
