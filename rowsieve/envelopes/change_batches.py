"""The changes of a call, ready to be applied: ordered, without repeats, since the last truncate.

Soundness: the same event twice counts once. Two different changes of a key whose order the source's
numbers do not tell are refused.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.envelopes.actions import Skipped
from rowsieve.envelopes.bad_events import BadEvents
from rowsieve.envelopes.changes_table import EVENT, OP, UNCHANGED, Destination
from rowsieve.envelopes.event_orders import EventOrder, OrderField, as_it_is, ranks
from rowsieve.envelopes.messages import OPERATION
from rowsieve.envelopes.reading_events import Reading
from rowsieve.envelopes.table_orders import rows_have_order, with_order_columns
from rowsieve.errors import KeyViolation
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

_TRUNCATE: Final = ord("t")
_DELETE: Final = ord("d")


@dataclass(frozen=True, slots=True)
class ChangeBatch:
    """Changes of one table: `rows` with the columns `op`, `sequence` and, if needed, `unchanged`.

    `truncated`: the table is emptied before. `sequence` are the columns of the table's event order,
    if it has one; the other names are those of no column of the table.
    """

    rows: pa.Table
    op: str
    sequence: tuple[str, ...]
    unchanged: str | None
    truncated: bool
    skipped: Mapping[Skipped, int]
    order: EventOrder | None = None

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
    if destination.order and rows_have_order(table, destination):
        order, columns = _order_of_rows(table, destination, bad)
    else:
        order, columns = _order_of_envelope(reading, table, bad)
        if destination.order and table.num_rows:
            table = with_order_columns(table, destination, order, columns, bad)
    numbers = _numbers(order, columns, table, bad)
    if bad.reasons:
        wrong = np.isin(table.column(EVENT).to_numpy(), np.array(list(bad.reasons), np.int64))
        table = table.filter(pa.array(~wrong))
        numbers = numbers[~wrong]
    table, numbers, truncated = _since_truncate(table, numbers, order, bad)
    table, numbers = _without_repeats(table, numbers, order, schema, destination, bad)
    batch = _named(table, numbers, truncated, reading, schema, destination)
    return replace(batch, order=order)


def _order_of_rows(
    table: pa.Table, destination: Destination, bad: BadEvents
) -> tuple[EventOrder, list[pa.ChunkedArray]]:
    """The table's order, whose columns the rows have; bad are events without one of them."""
    fields = tuple(OrderField(name, "", as_it_is) for name in destination.order)
    columns = [table.column(f"c.{name}") for name in destination.order]
    for name, column in zip(destination.order, columns, strict=True):
        _note_without(name, column, table, bad)
    return EventOrder(fields), columns


def _order_of_envelope(
    reading: Reading, table: pa.Table, bad: BadEvents
) -> tuple[EventOrder | None, list[pa.ChunkedArray]]:
    """The best order that an event has, with its numbers; bad are events without them."""
    known = [at for _, orders in reading.orders for at in orders]
    if not known:
        return None, []
    chosen = min(known)
    order = reading.format.orders[chosen]
    columns = []
    for place, each in enumerate(order.fields):
        arrays = [
            orders[chosen][0].column(place) if chosen in orders else pa.nulls(count, pa.int64())
            for count, orders in reading.orders
        ]
        columns.append(_of_one_type(arrays))
        if not each.optional:
            _note_without(each.name, columns[-1], table, bad)
    return order, columns


def _note_without(name: str, column: pa.ChunkedArray, table: pa.Table, bad: BadEvents) -> None:
    if column.null_count:
        for event in table.column(EVENT).to_numpy()[np.asarray(column.is_null())]:
            bad.add(int(event), f"it has no {name}, by which the events are ordered")


def _numbers(
    order: EventOrder | None, columns: list[pa.ChunkedArray], table: pa.Table, bad: BadEvents
) -> npt.NDArray[np.int64]:
    """The number of each change in the order of the call."""
    if order is None:
        return np.zeros(table.num_rows, np.int64)
    try:
        return ranks(order, columns)
    except ValueError:
        _note_odd_numbers(order, columns, table.column(EVENT).to_numpy(), bad)
        return np.zeros(table.num_rows, np.int64)


def _note_odd_numbers(
    order: EventOrder, columns: list[Any], events: npt.NDArray[np.int64], bad: BadEvents
) -> None:
    """Note the events whose numbers are not of the form of the first one that has any."""
    for each, column in zip(order.fields, columns, strict=True):
        values = column.combine_chunks()
        values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        try:
            each.comparable(pa.chunked_array([values]), each.name)
        except ValueError:
            pass
        else:
            continue
        for place in range(len(values)):
            pair = pa.chunked_array([values.take(pa.array([0, place]))])
            try:
                each.comparable(pair, each.name)
            except ValueError as error:
                bad.add(int(events[place]), f"its {each.name} has no order: {error}")


def _of_one_type(arrays: list[Any]) -> pa.ChunkedArray:
    texts = any(pa.types.is_string(each.type) for each in arrays)
    type_ = pa.string() if texts else pa.int64()
    chunks = [
        chunk.cast(type_)
        for each in arrays
        for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])
    ]
    return pa.chunked_array(chunks, type_)


def _since_truncate(
    table: pa.Table, numbers: npt.NDArray[np.int64], order: EventOrder | None, bad: BadEvents
) -> tuple[pa.Table, npt.NDArray[np.int64], bool]:
    """The changes after the last truncate; KeyViolation for one that is at the same place."""
    ops = table.column(OP).to_numpy()
    truncates = ops == _TRUNCATE
    if not truncates.any():
        return table, numbers, False
    if order is None and not truncates.all():
        raise KeyViolation(
            f"{OPERATION}: the events have no order, so which of them a truncate removes is "
            "unknown; nothing was written. Let the source send numbers of its log"
        )
    last = int(np.flatnonzero(truncates)[np.argmax(numbers[truncates])])
    tied = np.flatnonzero(~truncates & (numbers == numbers[last]))
    if order is not None and len(tied):
        events = table.column(EVENT).to_numpy()
        raise KeyViolation(
            f"{OPERATION}: {bad.shown(int(events[tied[0]]))}, changes a row, and event "
            f"{bad.number(int(events[last]))} truncates the table, and they have the same "
            f"{order.names}, so whether the truncate removes the row is unknown; nothing was "
            "written. Let the source send numbers of its log, or apply these events one after the "
            "other"
        )
    later = ~truncates & (numbers > numbers[last])
    return table.filter(pa.array(later)), numbers[later], True


def _without_repeats(
    table: pa.Table,
    numbers: npt.NDArray[np.int64],
    order: EventOrder | None,
    schema: Schema,
    destination: Destination,
    bad: BadEvents,
) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Leave out changes that repeat another one; KeyViolation for others of one key and number."""
    by = np.argsort(numbers, kind="stable")
    same = np.diff(numbers[by]) == 0
    tied = np.zeros(len(by), bool)
    tied[1:] |= same
    tied[:-1] |= same
    candidates = by[tied]
    if not len(candidates):
        return table, numbers
    keys = KeyOrder.of(schema, destination.key)
    part = table.select([f"c.{name}" for name in keys.names]).rename_columns(list(keys.names))
    columns = keys.columns(part.take(pa.array(candidates)))
    within = columns.sort()  # stable: by number within a key
    repeats = columns.repeats(within)
    ordered = candidates[within]
    again = np.zeros(len(ordered), bool)
    again[1:] = repeats[1:] & (np.diff(numbers[ordered]) == 0)
    if not again.any():
        return table, numbers
    places = np.flatnonzero(again)
    first, second = ordered[places - 1], ordered[places]
    differ = _differing(table, first, second)
    if differ.any():
        at = int(np.flatnonzero(differ)[0])
        events = table.column(EVENT).to_numpy()
        pair = sorted((int(events[first[at]]), int(events[second[at]])))
        known = "have no order" if order is None else f"have the same {order.names}"
        raise KeyViolation(
            f"{OPERATION}: {bad.shown(pair[0])}, and event {bad.number(pair[1])} change one row "
            f"and {known}, so which is the later one is unknown; nothing was written. Let the "
            "source send numbers of its log, or apply these events one after the other"
        )
    kept = np.ones(table.num_rows, bool)
    kept[second] = False
    return table.filter(pa.array(kept)), numbers[kept]


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
