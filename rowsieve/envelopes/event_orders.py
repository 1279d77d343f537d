"""The order of events by what their source says of its log.

A format lists the orders that its sources have, the best first. The first one that an event of the
call has is that of the call, and an event without it is bad. Soundness: numbers are compared as
numbers, whatever text they are in. An order by time is the last, and is warned of: two changes
within one unit of it have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change_sequences import comparable_sequences
from rowsieve.envelopes.row_structs import integers

Ranks = npt.NDArray[np.int64]
Comparable = Callable[[pa.ChunkedArray, str], list[Any]]
_SNAPSHOT: Final = frozenset(
    {"true", "first", "first_in_data_collection", "last_in_data_collection", "last"}
)
LAST: Final = (1 << 63) - 1
"""The number of an entry that its source marks as the last one, instead of numbering it."""


def number(values: pa.ChunkedArray, name: str) -> list[Any]:
    """A number, or text of digits or of a log sequence number; NULL is below all."""
    if pa.types.is_string(values.type):
        values = pc.utf8_trim_whitespace(values)
        known = values.drop_null()
        if not len(known):
            return [values]
        padded = comparable_sequences(known, name).combine_chunks()
        if isinstance(padded, pa.ChunkedArray):
            padded = padded.combine_chunks()
        if not values.null_count:
            return [padded]
        valid = np.asarray(values.is_valid())
        places = np.maximum(np.cumsum(valid) - 1, 0)
        return [padded.take(pa.array(places, mask=~valid))]
    return [comparable_sequences(values, name)]


def as_it_is(values: pa.ChunkedArray, _name: str) -> list[Any]:
    """A value of a column of the table, which has the order of its type."""
    return [values]


def log_file(values: pa.ChunkedArray, name: str) -> list[Any]:
    """The number at the end of the name of a log file: `binlog.000012`."""
    parts = pc.extract_regex(values.cast(pa.string()), r"^(?P<log>.*)\.(?P<number>[0-9]{1,18})$")
    digits = pc.struct_field(parts, "number")
    _refuse_other(values, digits, name, "binlog.000012")
    _refuse_two_logs(pc.struct_field(parts, "log"), name)
    return [digits.cast(pa.int64())]


def log_position(values: pa.ChunkedArray, name: str) -> list[Any]:
    """A log file and the position in it: `binlog.000012:4711`."""
    parts = pc.extract_regex(
        values.cast(pa.string()), r"^(?P<log>.*)\.(?P<file>[0-9]{1,18}):(?P<at>[0-9]{1,18})$"
    )
    _refuse_other(values, pc.struct_field(parts, "file"), name, "binlog.000012:4711")
    _refuse_two_logs(pc.struct_field(parts, "log"), name)
    return [pc.struct_field(parts, each).cast(pa.int64()) for each in ("file", "at")]


def moment(values: pa.ChunkedArray, _name: str) -> list[Any]:
    """A number of a clock, or ISO text."""
    if pa.types.is_string(values.type):
        zoned = pc.match_substring_regex(values, r"([Zz]|[+-][0-9]{2}(:?[0-9]{2})?)$")
        zone = "UTC" if pc.any(zoned, min_count=0).as_py() else None
        return [values.cast(pa.timestamp("us", zone))]
    return [values]


def _refuse_other(values: Any, parts: Any, name: str, example: str) -> None:
    if parts.null_count > values.null_count:
        other = values.filter(pc.and_(pc.is_valid(values), pc.is_null(parts)))[0]
        raise ValueError(f"{name} is {other.as_py()!r}, and not as in {example!r}")


def _refuse_two_logs(logs: Any, name: str) -> None:
    """Files of two servers, or of a log that was renamed, are numbered apart."""
    known = pc.unique(logs.drop_null())
    if len(known) > 1:
        raise ValueError(
            f"{name} is of the log {known[1].as_py()!r}, and that of other events is of "
            f"{known[0].as_py()!r}; apply the events of each log in calls of their own"
        )


@dataclass(frozen=True, slots=True)
class OrderField:
    """A number of an order: its name, where it stands in an event, and how it compares.

    `last` is the path of a mark of entries that come after all others instead of having a number.
    `unit` is that of a clock.
    """

    name: str
    path: str
    comparable: Comparable = number
    optional: bool = False  # an event without it is below those with it
    last: str | None = None
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Within:
    """What the last number of an order counts within: a transaction, or without `path` a message.

    Changes that agree in the numbers before it, but not in this, have no order. `apart` says it.
    """

    apart: str
    path: str | None = None


@dataclass(frozen=True, slots=True)
class EventOrder:
    """An order of a source's events; `weak` says why it may not order two changes of a key.

    `snapshot` is the path of the mark of rows of a first snapshot, which have the place in the log
    at which it was taken: they are before changes of the same place.
    """

    fields: tuple[OrderField, ...]
    weak: str | None = None
    within: Within | None = None
    snapshot: str | None = None

    def has_numbers(self, numbers: pa.Table) -> bool:
        """Whether a change has one of the order's numbers, which are columns."""
        columns = [numbers.column(field.name) for field in self.fields]
        return any(column.null_count < len(column) for column in columns)

    @property
    def of_messages(self) -> bool:
        """Whether it orders the changes of one message only."""
        return self.within is not None and self.within.path is None

    @property
    def names(self) -> str:
        """The names of its numbers, for messages."""
        return ", ".join(field.name for field in self.fields)


@dataclass(frozen=True, slots=True)
class EventPlaces:
    """The places of changes in the order of their events.

    `numbers` (m,) ascend with it. `groups` (m,) are equal where all numbers are but the last one,
    if that counts within `owners` (m,), such as transactions; else they are `numbers`.
    """

    numbers: Ranks
    groups: Ranks
    owners: Ranks

    @classmethod
    def of(cls, numbers: Ranks) -> EventPlaces:
        """Places that numbers tell alone."""
        return cls(numbers, numbers, np.zeros(len(numbers), np.int64))

    def take(self, chosen: npt.NDArray[Any]) -> EventPlaces:
        """The places of some changes, by a mask or their indices."""
        return EventPlaces(self.numbers[chosen], self.groups[chosen], self.owners[chosen])

    def spread(self, mask: npt.NDArray[np.bool_]) -> EventPlaces:
        """The places of more changes, (n,) for a mask: 0 where it is false."""

        def spread(values: Ranks) -> Ranks:
            result = np.zeros(len(mask), np.int64)
            result[mask] = values
            return result

        return EventPlaces(spread(self.numbers), spread(self.groups), spread(self.owners))


def places_of(
    order: EventOrder,
    columns: Sequence[pa.ChunkedArray],
    owners: pa.ChunkedArray | None,
    snapshot: pa.ChunkedArray | None,
) -> EventPlaces:
    """Return the places of changes; ValueError if numbers of one column do not compare."""
    numbers = ranks(order, columns)
    if snapshot is not None:
        return EventPlaces.of(_joined(numbers, _dense(snapshot)))
    if owners is None:
        return EventPlaces.of(numbers)
    before = EventOrder(order.fields[:-1])
    groups = ranks(before, columns[:-1]) if before.fields else np.zeros(len(numbers), np.int64)
    return EventPlaces(numbers, groups, _dense(owners))


def snapshot_marks(values: Sequence[Any]) -> pa.Array:
    """0 for a row of a first snapshot, and 1 for others."""
    with suppress(TypeError):  # a list or an object
        distinct = set(values)
        if all(isinstance(each, str | None) for each in distinct):
            mark_of = {each: 0 if _is_marked(each) else 1 for each in distinct}
            if len(distinct) == 1:
                return pa.array(np.full(len(values), next(iter(mark_of.values())), np.int64))
            return pa.array(list(map(mark_of.__getitem__, values)), pa.int64())
    return pa.array([0 if _is_marked(each) else 1 for each in values], pa.int64())


def _is_marked(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value in _SNAPSHOT)


def values_of(items: Sequence[Any]) -> pa.Array:
    """Values of an order's number as Arrow: integers, else text of all of them."""
    types = set(map(type, items))
    if types == {int}:
        with suppress(OverflowError):
            return integers(items)
    if float in types:  # pa.array cuts fractions off
        items = [int(i) if isinstance(i, float) and i.is_integer() else i for i in items]
        if float in set(map(type, items)):
            return _texts_of(items)
    try:
        return pa.array(items, pa.int64())
    except (pa.ArrowException, OverflowError, TypeError):
        return _texts_of(items)


def _texts_of(items: Sequence[Any]) -> pa.Array:
    return pa.array([None if item is None else str(item) for item in items], pa.string())


def ranks(order: EventOrder, columns: Sequence[pa.ChunkedArray]) -> Ranks:
    """Return numbers in the order of the events, equal where the source's numbers are."""
    total: Ranks = np.zeros(len(columns[0]), np.int64)
    for field, column in zip(order.fields, columns, strict=True):
        if column.null_count == len(column):
            continue
        for values in field.comparable(column, field.name):
            total = _joined(total, _dense(values))
    return total


def _dense(values: Any) -> Ranks:
    """Ranks from 0 without gaps; NULL is first."""
    if pa.types.is_int64(values.type) and not values.null_count:
        return np.asarray(values.to_numpy(), np.int64)
    ranked = pc.rank(values, tiebreaker="dense").to_numpy(zero_copy_only=False)
    return np.where(np.asarray(values.is_null()), 0, ranked.astype(np.int64))


def _joined(first: Ranks, second: Ranks) -> Ranks:
    """Ranks of pairs, in the order of their first numbers and then their second ones."""
    if not first.any():
        return second
    by = np.lexsort((second, first))
    steps = (np.diff(first[by]) != 0) | (np.diff(second[by]) != 0)
    joined = np.empty(len(by), np.int64)
    joined[by] = np.concatenate([[0], np.cumsum(steps)])
    return joined
