"""The changes of a call, ready to be applied: ordered, without repeats, since the last truncate.

Soundness: the same event twice counts once. Two different changes of a key whose order the source's
numbers do not tell are refused.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.envelopes.actions import Skipped
from rowsieve.envelopes.bad_events import BadEvents
from rowsieve.envelopes.changes_table import (
    EMPTY_IT,
    EVENT,
    OP,
    OWNERS,
    SNAPSHOT,
    UNCHANGED,
    Destination,
)
from rowsieve.envelopes.event_orders import (
    EventOrder,
    EventPlaces,
    OrderField,
    as_it_is,
    places_of,
)
from rowsieve.envelopes.messages import OPERATION
from rowsieve.envelopes.reading_events import Reading
from rowsieve.envelopes.table_orders import are_named, rows_have_order, with_order_columns
from rowsieve.errors import KeyViolation
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

_TRUNCATE: Final = ord("t")
_APART: Final = "apply events without it in calls of their own"
_DELETE: Final = ord("d")


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of one table: `rows` with the columns `op`, `sequence` and, if needed, `unchanged`.

    `truncated`: the table is emptied before; `truncate` is the place of that in its event order,
    one row. `sequence` are the columns of that order, if the table has one; the other names are
    those of no column of the table.
    """

    rows: pa.Table
    op: str
    sequence: tuple[str, ...]
    unchanged: str | None
    truncated: bool
    skipped: Mapping[Skipped, int]
    order: EventOrder | None = None
    truncate: pa.Table | None = None

    def warn_of_order(self) -> None:
        """Warn if the numbers that order the events may not tell the order of two of them."""
        if self.order is not None and self.order.weak is not None and self.rows.num_rows:
            warnings.warn(
                f"{OPERATION}: the events are ordered by {self.order.names} only, "
                f"{self.order.weak}; let the source send numbers of its log",
                UserWarning,
                stacklevel=2,
            )


def change_batch(
    reading: Reading, schema: Schema, destination: Destination, bad: BadEvents
) -> ChangeBatch:
    """Order the changes that were read, and leave out bad events and repeats."""
    table = reading.table(destination)
    order: EventOrder | None
    beside: dict[str, pa.ChunkedArray] = {}
    marks = None
    if destination.order and rows_have_order(table, destination):
        order, columns = _order_of_rows(table, destination, bad)
    else:
        order, columns, beside = _order_of_envelope(reading, table, bad)
        if destination.order and table.num_rows:
            of_log = None if order is None or order.of_messages else order
            table = with_order_columns(table, destination, of_log, columns, bad)
            _note_lone_truncates(table, destination, of_log, bad)
            marks = beside.pop(SNAPSHOT, None)  # the table's order has no place for it
    at = _places(order, columns, beside, table, bad)
    if marks is not None and table.num_rows:
        mask = ~_before_changes(table, at, marks.to_numpy(), schema, destination)
        table, at = table.filter(pa.array(mask)), at.take(mask)
    if bad.reasons:
        wrong = np.isin(table.column(EVENT).to_numpy(), np.array(list(bad.reasons), np.int64))
        table = table.filter(pa.array(~wrong))
        at = at.take(~wrong)
    last = _last_truncate(table, at, order, bad)
    truncate = None
    if last is not None:
        truncate = _place_of(table, last, destination)
        later = (table.column(OP).to_numpy() != _TRUNCATE) & (at.numbers > at.numbers[last])
        table, at = table.filter(pa.array(later)), at.take(later)
    table, at = _without_repeats(table, at, order, schema, destination, bad)
    batch = _named(table, at.numbers, last is not None, reading, schema, destination)
    return replace(batch, order=order, truncate=truncate)


def _before_changes(
    table: pa.Table, at: EventPlaces, marks: Any, schema: Schema, destination: Destination
) -> npt.NDArray[np.bool_]:
    """(m,) rows of a first snapshot that a whole change of the same key and place follows."""
    keys = KeyOrder.of(schema, destination.key)
    part = table.select([f"c.{name}" for name in keys.names]).rename_columns(list(keys.names))
    columns = keys.columns(part)
    within = columns.sort()
    owners = np.empty(len(within), np.int64)
    owners[within] = np.cumsum(~columns.repeats(within))
    pairs = np.stack([owners, at.numbers], axis=1)
    _, places = np.unique(pairs, axis=0, return_inverse=True)
    places = places.reshape(-1)
    whole = (marks == 1) & np.asarray(table.column(UNCHANGED).is_null())
    followed = np.bincount(places, weights=whole) > 0
    return np.asarray((marks == 0) & followed[places], bool)


def _order_of_rows(
    table: pa.Table, destination: Destination, bad: BadEvents
) -> tuple[EventOrder, list[pa.ChunkedArray]]:
    """The table's order, whose columns the rows have; bad are events without one of them."""
    fields = tuple(OrderField(name, "", as_it_is) for name in destination.order)
    columns = [table.column(f"c.{name}") for name in destination.order]
    for name, column in zip(destination.order, columns, strict=True):
        _note_without(name, column, table, bad, of_truncates=f"a truncate has no row: {EMPTY_IT}")
    return EventOrder(fields), columns


def _order_of_envelope(
    reading: Reading, table: pa.Table, bad: BadEvents
) -> tuple[EventOrder | None, list[pa.ChunkedArray], dict[str, pa.ChunkedArray]]:
    """The best order that an event has, with its numbers and what tells more of the places.

    Bad are events without its numbers.
    """
    chosen = reading.order
    if chosen is None:
        return None, [], {}
    order = reading.format.orders[chosen]

    def column(name: str) -> pa.ChunkedArray:
        return _of_one_type(
            [
                orders[chosen][0].column(name) if chosen in orders else pa.nulls(count, pa.int64())
                for count, orders in reading.orders
            ]
        )

    columns = [column(each.name) for each in order.fields]
    for each, values in zip(order.fields, columns, strict=True):
        if not each.optional:
            _note_without(each.name, values, table, bad)
    paths = {OWNERS: order.within, SNAPSHOT: order.snapshot}
    return order, columns, {name: column(name) for name, path in paths.items() if path is not None}


def _note_without(
    name: str,
    column: pa.ChunkedArray,
    table: pa.Table,
    bad: BadEvents,
    of_truncates: str = _APART,
) -> None:
    if column.null_count:
        rows = table.select([EVENT, OP]).filter(column.is_null())
        for event, op in zip(*(each.to_pylist() for each in rows.columns), strict=True):
            advice = of_truncates if op == _TRUNCATE else _APART
            bad.add(event, f"it has no {name}, by which the events are ordered; {advice}")


def _note_lone_truncates(
    table: pa.Table, destination: Destination, order: EventOrder | None, bad: BadEvents
) -> None:
    """Note truncates without a row that would show whether the table is ordered by the log."""
    if not (table.column(OP).to_numpy() == _TRUNCATE).all():
        return
    if order is None or not are_named(destination.order, order):
        for event in table.column(EVENT).to_pylist():
            bad.add(
                event,
                f"a truncate has no row, and no other event of the call shows that the table is "
                f"ordered by numbers of the log ({', '.join(destination.order)}); apply it "
                "together with the events around it",
            )


def _places(
    order: EventOrder | None,
    columns: list[pa.ChunkedArray],
    beside: Mapping[str, pa.ChunkedArray],
    table: pa.Table,
    bad: BadEvents,
) -> EventPlaces:
    """The place of each change in the order of the call; 0 for bad events where one is odd."""
    if order is None:
        return EventPlaces.of(np.zeros(table.num_rows, np.int64))
    owners, snapshot = beside.get(OWNERS), beside.get(SNAPSHOT)
    with suppress(ValueError):
        return places_of(order, columns, owners, snapshot)
    events = table.column(EVENT).to_numpy()
    _note_odd_numbers(order, columns, events, bad)
    fits = ~np.isin(events, np.array(list(bad.reasons), np.int64))
    mask = pa.array(fits)
    places = places_of(
        order,
        [each.filter(mask) for each in columns],
        None if owners is None else owners.filter(mask),
        None if snapshot is None else snapshot.filter(mask),
    )
    return places.spread(fits)


def _note_odd_numbers(
    order: EventOrder, columns: list[Any], events: npt.NDArray[np.int64], bad: BadEvents
) -> None:
    """Note the events whose numbers are not of the form of the first one that has an order."""
    for each, chunks in zip(order.fields, columns, strict=True):
        with suppress(ValueError):
            each.comparable(chunks, each.name)
            continue
        column = pa.table([chunks], [each.name]).combine_chunks().column(0)
        first: int | None = None
        for place in np.flatnonzero(np.asarray(column.is_valid())).tolist():
            compared = [place] if first is None else [first, place]
            try:
                each.comparable(column.take(pa.array(compared)), each.name)
            except ValueError as error:
                bad.add(int(events[place]), f"its {each.name} has no order: {error}")
            else:
                first = place if first is None else first


def _of_one_type(arrays: list[Any]) -> pa.ChunkedArray:
    texts = any(pa.types.is_string(each.type) for each in arrays)
    type_ = pa.string() if texts else pa.int64()
    chunks = [
        chunk.cast(type_)
        for each in arrays
        for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])
    ]
    return pa.chunked_array(chunks, type_)


def _place_of(table: pa.Table, last: int, destination: Destination) -> pa.Table | None:
    """The place of a truncate in the table's event order, one row; None without such an order."""
    if not destination.order:
        return None
    names = [f"c.{name}" for name in destination.order]
    return table.slice(last, 1).select(names).rename_columns(list(destination.order))


def _last_truncate(
    table: pa.Table, at: EventPlaces, order: EventOrder | None, bad: BadEvents
) -> int | None:
    """The row of the last truncate; KeyViolation for a change that may be before or after it."""
    ops = table.column(OP).to_numpy()
    truncates = ops == _TRUNCATE
    if not truncates.any():
        return None
    if order is None and not truncates.all():
        raise KeyViolation(
            f"{OPERATION}: the events have no order, so which of them a truncate removes is "
            "unknown; nothing was written. Let the source send numbers of its log"
        )
    numbers, groups = at.numbers, at.groups
    last = int(np.flatnonzero(truncates)[np.argmax(numbers[truncates])])
    near = groups == groups[last]
    apart = bool((at.owners[near] != at.owners[last]).any())
    tied = np.flatnonzero(~truncates & (near if apart else numbers == numbers[last]))
    if order is not None and len(tied):
        events = table.column(EVENT).to_numpy()
        raise KeyViolation(
            f"{OPERATION}: {bad.shown(int(events[tied[0]]))}, changes a row, and event "
            f"{bad.number(int(events[last]))} truncates the table, and they "
            f"{_why_unknown(order, apart=apart)}, so whether the truncate removes the row is "
            "unknown; nothing was written. Let the source send numbers of its log, or apply these "
            "events one after the other"
        )
    return last


def _why_unknown(order: EventOrder | None, *, apart: bool) -> str:
    if order is None:
        return "have no order"
    if order.within is not None and apart:
        return order.within.apart
    return f"have the same {order.names}"


def _without_repeats(
    table: pa.Table,
    at: EventPlaces,
    order: EventOrder | None,
    schema: Schema,
    destination: Destination,
    bad: BadEvents,
) -> tuple[pa.Table, EventPlaces]:
    """Leave out changes that repeat another one; KeyViolation for others of unknown order."""
    by = np.argsort(at.numbers, kind="stable")
    same = np.diff(at.groups[by]) == 0
    tied = np.zeros(len(by), bool)
    tied[1:] |= same
    tied[:-1] |= same
    candidates = by[tied]
    if not len(candidates):
        return table, at
    keys = KeyOrder.of(schema, destination.key)
    part = table.select([f"c.{name}" for name in keys.names]).rename_columns(list(keys.names))
    columns = keys.columns(part.take(pa.array(candidates)))
    within = columns.sort()  # stable: by number within a key
    repeats = columns.repeats(within)
    ordered = candidates[within]
    near = at.take(ordered)
    again = np.zeros(len(ordered), bool)  # of the key and group of the one before
    again[1:] = repeats[1:] & (np.diff(near.groups) == 0)
    if not again.any():
        return table, at
    places = np.flatnonzero(again)
    first, second = ordered[places - 1], ordered[places]
    apart = near.owners[places - 1] != near.owners[places]
    one_number = near.numbers[places - 1] == near.numbers[places]
    changed = ~one_number
    changed[one_number] = _differing(table, first[one_number], second[one_number])
    runs = np.cumsum(~again)[places]
    unknown = (one_number & changed) | (apart & np.isin(runs, runs[changed]))
    if unknown.any():
        chosen = int(np.flatnonzero(unknown)[0])
        events = table.column(EVENT).to_numpy()
        pair = sorted((int(events[first[chosen]]), int(events[second[chosen]])))
        known = _why_unknown(order, apart=bool(apart[chosen]))
        raise KeyViolation(
            f"{OPERATION}: {bad.shown(pair[0])}, and event {bad.number(pair[1])} change one row "
            f"and {known}, so which is the later one is unknown; nothing was written. Let the "
            "source send numbers of its log, or apply these events one after the other"
        )
    mask = np.ones(table.num_rows, bool)
    mask[second[one_number]] = False
    return table.filter(pa.array(mask)), at.take(mask)


def _differing(table: pa.Table, first: Any, second: Any) -> npt.NDArray[np.bool_]:
    """Which pairs of changes differ in more than the event that they come from."""
    left, right = (table.drop_columns([EVENT]).take(pa.array(each)) for each in (first, second))
    differ = np.zeros(len(first), bool)
    for one, other in zip(left.columns, right.columns, strict=True):
        if pa.types.is_nested(one.type):
            pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
            differ |= np.array([repr(a) != repr(b) for a, b in pairs], bool)
            continue
        equal = pc.equal(one, other)
        if pa.types.is_floating(one.type):
            equal = pc.or_kleene(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)))
        both_null = pc.and_(pc.is_null(one), pc.is_null(other))
        differ |= ~np.asarray(pc.fill_null(pc.or_kleene(equal, both_null), fill_value=False))
    return differ


def _named(
    table: pa.Table,
    numbers: npt.NDArray[np.int64],
    truncated: bool,
    reading: Reading,
    schema: Schema,
    destination: Destination,
) -> ChangeBatch:
    taken = {name.lower() for name in schema.names}
    op, sequence, unchanged = (_free(name, taken) for name in ("op", "sequence", UNCHANGED))
    columns = {
        each.field.name: table.column(f"c.{each.field.name}") for each in destination.targets
    }
    words = pa.array(["u", "d"]).take(pc.equal(table.column(OP), _DELETE).cast(pa.int8()))
    columns[op] = words
    if not destination.order:
        columns[sequence] = pa.array(numbers)
    lacking = table.column(UNCHANGED)
    partial_rows = lacking.null_count < len(lacking)
    if partial_rows:
        columns[unchanged] = lacking
    skipped = Counter({kind: count for kind, count in reading.skipped.items() if count})
    return ChangeBatch(
        pa.table(columns),
        op,
        destination.order or (sequence,),
        unchanged if partial_rows else None,
        truncated,
        skipped,
    )


def _free(name: str, taken: set[str]) -> str:
    """A name that no column of the table has."""
    while name in taken:
        name = f"_{name}"
    return name
