"""The columns of a table's event order, from the rows of the events or from their envelope.

Soundness: the table's order must be that of the source. Its columns therefore get all numbers of
the source's order or none: with the file's position but not its number, an event of a later file
would be taken for an earlier one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.envelopes.bad_events import BadEvents
from rowsieve.envelopes.changes_table import EVENT, UNCHANGED, Destination
from rowsieve.envelopes.event_orders import EventOrder, OrderField
from rowsieve.envelopes.messages import OPERATION
from rowsieve.envelopes.values.readings import TargetColumn, number_text
from rowsieve.envelopes.values.text_rules import TextRules
from rowsieve.errors import RowsieveError, SchemaMismatch
from rowsieve.types import logical
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field


def rows_have_order(table: pa.Table, destination: Destination) -> bool:
    """Whether the rows of the events have values of the table's event order themselves."""
    return any(table.column(f"c.{name}").null_count < table.num_rows for name in destination.order)


def with_order_columns(
    table: pa.Table,
    destination: Destination,
    order: EventOrder | None,
    numbers: Sequence[pa.ChunkedArray],
    bad: BadEvents,
) -> pa.Table:
    """Fill the columns of the table's event order with the numbers of the source's log.

    SchemaMismatch if the events have other numbers than the table has columns.
    """
    chosen = _chosen(destination, order, numbers)
    for target in destination.named(destination.order):
        field, column = chosen[target.field.name]
        values = _values(column, field, target.field, table.column(EVENT).to_numpy(), bad)
        name = f"c.{target.field.name}"
        place = table.column_names.index(name)
        table = table.set_column(place, table.schema.field(place), values)
    return _all_sent(table, destination)


def _chosen(
    destination: Destination, order: EventOrder | None, numbers: Sequence[pa.ChunkedArray]
) -> dict[str, tuple[OrderField, pa.ChunkedArray]]:
    """The number of the events' order for each column of the table's: by name, else by place."""
    names = destination.order
    pairs = [] if order is None else list(zip(order.fields, numbers, strict=True))
    used = [(each, column) for each, column in pairs if column.null_count < len(column)]
    known = {_word(each): (each, column) for each, column in pairs}
    by_name = [known.get(_named(name)) for name in names]
    if all(each is not None for each in by_name):
        matched = [each for each in by_name if each is not None]
        tables = [each for each, _ in matched]
        if tables == [each for each, _ in pairs][: len(tables)] and len(tables) >= len(used):
            return dict(zip(names, matched, strict=True))
    elif order is not None and order.weak is not None and not _are_times(destination):
        pass  # a clock is never the number of a log, which the column had or will have
    elif len(names) == len(pairs):
        return dict(zip(names, pairs, strict=True))
    elif len(names) == len(used) and used == pairs[: len(used)]:
        return dict(zip(names, used, strict=True))
    shown = "none" if order is None else f"({order.names})"
    raise SchemaMismatch(
        f"{OPERATION}: the table is ordered by ({', '.join(names)}), and the numbers that order "
        f"the events are {shown}; create the table with a column for each of these, in this order"
    )


def are_named(names: Sequence[str], order: EventOrder) -> bool:
    """Whether columns of these names are for the numbers of the source's order."""
    return {_named(name) for name in names} <= {_word(each) for each in order.fields}


def _word(field: OrderField) -> str:
    return field.name.lower().replace("-", "_")


def _named(column: str) -> str:
    """The word for a number in the name of a column."""
    return column.lower().removeprefix("_").removeprefix("_source_")


def _are_times(destination: Destination) -> bool:
    """Whether the table's events are ordered by times alone."""
    targets = destination.named(destination.order)
    times = logical.Timestamp | logical.Nanos
    return all(isinstance(target.field.type, times) for target in targets)


def _values(
    column: pa.ChunkedArray, field: OrderField, target: Field, events: Any, bad: BadEvents
) -> pa.ChunkedArray:
    """The numbers in the column's type; an event whose number does not fit is bad."""
    array = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    try:
        values = conform_values(_natural(array, field, target), target.type, target.name)
    except (RowsieveError, pa.ArrowException, ValueError) as error:
        for event in events:
            bad.add(
                int(event), f"its {field.name} does not fit the column {target.name!r}: {error}"
            )
        values = pa.nulls(len(array), arrow_type(target.type))
    return pa.chunked_array([values])


def _natural(values: pa.Array, field: OrderField, target: Field) -> pa.Array:
    """The numbers as Arrow has them: integers, decimals, times or text."""
    if field.optional and values.null_count:
        values = pc.fill_null(values, "0" if pa.types.is_string(values.type) else 0)
    match target.type:
        case logical.String():
            return values.cast(pa.string())
        case logical.Timestamp(utc=utc) | logical.Nanos(utc=utc) if field.unit is not None:
            zone = "UTC" if utc else None
            if pa.types.is_string(values.type):
                return values.cast(pa.timestamp("us", zone))
            return values.cast(pa.timestamp(field.unit, zone))
        case _ if not pa.types.is_string(values.type):
            return values
        case _:
            return _digits(values, target)


def _digits(values: pa.Array, target: Field) -> pa.Array:
    """Integers of text: digits, `0/16B3748`, or the number at the end of a file's name."""
    if pc.all(pc.match_substring_regex(values, r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$")).as_py():
        numbers = [None if text is None else _lsn(text) for text in values.to_pylist()]
        return pa.array(numbers, pa.uint64())
    if pc.all(pc.match_substring_regex(values, r"\.[0-9]{1,18}$")).as_py():
        values = pc.replace_substring_regex(values, r"^.*\.", "")
    return number_text(values, TargetColumn(target, TextRules()))


def _lsn(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def _all_sent(table: pa.Table, destination: Destination) -> pa.Table:
    """Leave the filled columns out of the lists of columns that events lack."""
    lists = table.column(UNCHANGED)
    if lists.null_count == len(lists):
        return table
    whole = pa.concat_arrays(lists.chunks)
    names = pc.list_flatten(whole)
    other_names = np.asarray(pc.invert(pc.is_in(names, value_set=pa.array(destination.order))))
    rows = np.asarray(pc.list_parent_indices(whole))[other_names]
    counts = np.bincount(rows, minlength=len(whole))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    empty = pa.array(counts == 0)
    shorter = pa.ListArray.from_arrays(
        pa.array(offsets), names.filter(pa.array(other_names)), mask=empty
    )
    place = table.column_names.index(UNCHANGED)
    return table.set_column(place, table.schema.field(place), shorter)
