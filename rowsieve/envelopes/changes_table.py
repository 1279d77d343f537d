"""Entries of events become an Arrow table of changes, with the event that each came from.

Its columns are those of the database table, then `EXTRAS`: the operation, the number of the event,
the numbers of its order, and the columns that the source did not send. An update that changes a key
is a delete of the old key and a write of the new one.

Soundness: a value that was not sent is that of the row with the same key. A row that is created or
gets another key has none there, so its event has the value, or is bad.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import UNSET

from rowsieve.envelopes.actions import EventAction, Skipped
from rowsieve.envelopes.bad_events import BadEvents
from rowsieve.envelopes.entries import ColumnEntries, Entries, Repeated, Rows
from rowsieve.envelopes.event_orders import LAST, EventOrder, snapshot_marks, values_of
from rowsieve.envelopes.formats import Format, Meaning
from rowsieve.envelopes.values.columns import read_column
from rowsieve.envelopes.values.readings import TargetColumn
from rowsieve.errors import repr_of
from rowsieve.types.encodings import arrow_type

OP: Final = "op"
EVENT: Final = "event"
UNCHANGED: Final = "unchanged"
OWNERS: Final = "within"
SNAPSHOT: Final = "snapshot"
Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]
EMPTY_IT: Final = (
    "leave it out, and empty the table yourself (overwrite, TRUNCATE) when all events up to it are "
    "applied"
)
_CODE: Final = {meaning: code for code, meaning in enumerate([*EventAction, *Skipped], 1)}


@dataclass(frozen=True, slots=True)
class Destination:
    """The columns and key of the table, and the name of the source table, if the caller has one."""

    targets: tuple[TargetColumn, ...]
    key: tuple[str, ...]
    order: tuple[str, ...] = ()  # the columns of the table's event order
    source: str | None = None
    sources: frozenset[str] | None = None  # others are of another table of the call
    ignored: frozenset[str] = frozenset()  # names of rows that are NULL, and no columns yet
    fills: bool = False  # a column that a whole row lacks is NULL: the source has dropped it
    no_truncates: str | None = None  # why the table takes none

    def named(self, names: tuple[str, ...]) -> tuple[TargetColumn, ...]:
        """The columns of these names."""
        return tuple(each for each in self.targets if each.field.name in names)


@dataclass(slots=True)
class Block:
    """Changes of one block of entries, their order numbers, and how many were skipped."""

    changes: list[pa.Table] = field(default_factory=list)
    orders: dict[int, list[pa.Table]] = field(default_factory=dict)
    skipped: Counter[Skipped] = field(default_factory=Counter)
    source: tuple[Any, ...] | None = None


def read_block(
    entries: Entries,
    format_: Format,
    destination: Destination,
    bad: BadEvents,
    expected: tuple[Any, ...] | None,
) -> Block:
    """Read entries into changes; bad ones are noted and left out by the caller.

    `expected` is the source table of earlier blocks.
    """
    codes, skipped = meanings(entries, format_, bad)
    block = Block(skipped=skipped, source=expected)
    changing = np.flatnonzero((codes >= 1) & (codes <= len(EventAction)))
    if destination.sources is not None:
        for table, others in tables_of(entries, format_, changing).items():
            if shown_table(table) not in destination.sources:
                codes[others] = 0
    elif len(changing):
        _check_source(entries, format_, destination, changing, bad, block)
    changing = np.flatnonzero((codes >= 1) & (codes <= len(EventAction)))
    if not len(changing):
        return block
    writes = np.flatnonzero(codes == _CODE[EventAction.WRITE])
    deletes = np.flatnonzero(codes == _CODE[EventAction.DELETE])
    truncates = np.flatnonzero(codes == _CODE[EventAction.TRUNCATE])
    places = []
    if len(writes):
        places += _write(entries, format_, destination, writes, bad, block)
    if len(deletes):
        places += _delete(entries, format_, destination, deletes, bad, block)
    if len(truncates) and destination.no_truncates is not None:
        for event in entries.events[truncates]:
            bad.add(int(event), f"a truncate {destination.no_truncates}; {EMPTY_IT}")
    elif len(truncates):
        block.changes.append(_piece(destination, {}, "t", entries.events[truncates]))
        places.append(truncates)
    if not places:
        return block
    _add_orders(entries, format_, np.concatenate(places), block)
    return block


def meanings(
    entries: Entries, format_: Format, bad: BadEvents
) -> tuple[npt.NDArray[np.int8], Counter[Skipped]]:
    """The code of what each entry does; 0 for a bad one."""
    words = entries.scalars(format_.op)
    if format_.delete_flag is not None:
        flags = entries.scalars(format_.delete_flag)
        if any(flag is not None for flag in flags):
            words = [
                _flagged(flag, word, format_.delete_flag)
                for flag, word in zip(flags, words, strict=True)
            ]
    try:
        distinct = set(words[:1] if isinstance(words, Repeated) else words)
    except TypeError:
        words = [word if isinstance(word, str | None) else repr_of(word) for word in words]
        distinct = set(words)
    code_of = {word: _code(word, format_) for word in distinct}
    if isinstance(words, Repeated):
        codes = np.full(len(words), code_of[words.value], np.int8)
    else:
        codes = np.frombuffer(bytearray(map(code_of.__getitem__, words)), np.int8)
    for place in np.flatnonzero(codes == 0).tolist():
        word = words[place]
        meaning = format_.unmarked(entries.shown(place)) if word is None else None
        if meaning is None:
            known = ", ".join(sorted(map(repr, format_.meanings)))
            reason = (
                f"it is not an event of the format {format_.name}: it has no operation"
                if word is None
                else f"the operation {word!r} is unknown; known are {known}"
            )
            bad.add(int(entries.events[place]), reason)
        else:
            codes[place] = _CODE[meaning]
    _refuse_connectors(entries, format_, codes, bad)
    counts = np.bincount(codes, minlength=len(_CODE) + 1)
    return codes, Counter(
        {each: int(counts[_CODE[each]]) for each in Skipped if counts[_CODE[each]]}
    )


def _refuse_connectors(
    entries: Entries, format_: Format, codes: npt.NDArray[np.int8], bad: BadEvents
) -> None:
    """Note the events of connectors that the format refuses; their code becomes 0."""
    if format_.connector is None:
        return
    connectors = entries.scalars(format_.connector)
    for name, reason in format_.refused.items():
        if name not in connectors:
            continue
        for place, each in enumerate(connectors):
            if each == name:
                codes[place] = 0
                bad.add(int(entries.events[place]), reason)


def _flagged(flag: Any, word: Any, name: str) -> Any:
    """The operation of a row with a flag for deletes; what the flag is if it is none."""
    if flag is None or flag is False or flag == "false":
        return word
    return "d" if flag is True or flag == "true" else f"{name}: {repr_of(flag)}"


def _code(word: Any, format_: Format) -> int:
    meaning: Meaning | None = format_.meanings.get(word.lower()) if isinstance(word, str) else None
    return 0 if meaning is None else _CODE[meaning]


def _check_source(
    entries: Entries,
    format_: Format,
    destination: Destination,
    changing: Indices,
    bad: BadEvents,
    block: Block,
) -> None:
    """Note events of another table than the named one, or than the first event's."""
    for table, places in tables_of(entries, format_, changing).items():
        if destination.source is not None:
            right, expected = _is_named(table, destination.source), destination.source
        else:
            block.source = block.source or table
            right, expected = table == block.source, shown_table(block.source)
        if right:
            continue
        for event in entries.events[places]:
            bad.add(
                int(event),
                f"it is of the table {shown_table(table)}, and not of {expected}; apply the events "
                "of each table to its own, as Catalog.apply_events does",
            )


def tables_of(
    entries: Entries, format_: Format, changing: Indices
) -> dict[tuple[Any, ...], Indices]:
    """The places of the changes of each source table; empty if the format does not name it."""
    names = [entries.scalars(path) for path in format_.source]
    if not names or not len(changing):
        return {}
    if all(each.count(each[0]) == len(each) for each in names):
        return {_hashable(tuple(each[0] for each in names)): changing}
    if len(changing) < len(names[0]):
        names = [[each[place] for place in changing] for each in names]
    if all(each.count(each[0]) == len(each) for each in names):
        return {_hashable(tuple(each[0] for each in names)): changing}
    tables: dict[tuple[Any, ...], list[int]] = {}
    for place, table in zip(changing, zip(*names, strict=True), strict=True):
        tables.setdefault(_hashable(table), []).append(place)
    return {table: np.array(places, np.int64) for table, places in tables.items()}


def _hashable(names: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(name if isinstance(name, str | None) else repr_of(name) for name in names)


def shown_table(names: tuple[Any, ...]) -> str:
    """The name of a source's table: `shop.public.orders`."""
    return ".".join(str(name) for name in names if name) or "unknown name"


def _is_named(names: tuple[Any, ...], wanted: str) -> bool:
    shown = shown_table(names)
    return shown == wanted or shown.endswith(f".{wanted}")


def _write(
    entries: Entries,
    format_: Format,
    destination: Destination,
    writes: Indices,
    bad: BadEvents,
    block: Block,
) -> list[Indices]:
    """Read the rows that are written, and the old keys of those whose key changed."""
    after = entries.rows(format_.after)
    writes = _with_row(after, writes, entries, "a write has no row after the change", bad)
    events = entries.events[writes]
    columns, lacking = _read_columns(
        after, writes, destination.targets, destination.key, events, bad, fills=destination.fills
    )
    _note_unsent_of_creates(entries, format_, after, writes, lacking, bad)
    places = [writes]
    moves: list[pa.Table] = []
    before = None if format_.beside else entries.rows(format_.before)
    if before is not None and (had := np.flatnonzero(before.present[writes])).size:
        moved, keys = _old_keys(before, writes, had, destination, columns, events, format_, bad)
        if len(moved):
            _fill_from_before(before, writes, moved, destination, columns, lacking, events, bad)
            moves.append(_piece(destination, keys, "d", events[moved]))
            places.append(writes[moved])
    unchanged = _names_lacking(lacking, len(writes)) if lacking else None
    block.changes += [_piece(destination, columns, "u", events, unchanged), *moves]
    return places


def _note_unsent_of_creates(
    entries: Entries,
    format_: Format,
    after: Rows,
    writes: Indices,
    lacking: dict[str, Mask],
    bad: BadEvents,
) -> None:
    """Note creates with a marker for a value: no row has it. A column that is absent is NULL."""
    if not format_.creates or not lacking:
        return
    words = entries.scalars(format_.op)
    creates = np.array([str(words[place]).lower() in format_.creates for place in writes], bool)
    for name, unsent in lacking.items():
        rows = np.flatnonzero(unsent & creates)
        for place, value in zip(rows, after.values(name, writes[rows]), strict=True):
            if value is not UNSET:
                bad.add(int(entries.events[writes[place]]), f"it creates a row, {_unsent(name)}")


def _unsent(name: str) -> str:
    return (
        f"and the value of the column {name!r} was not sent; let the source send whole rows "
        "(in PostgreSQL, REPLICA IDENTITY FULL)"
    )


def _old_keys(
    before: Rows,
    writes: Indices,
    had: Indices,
    destination: Destination,
    columns: dict[str, pa.Array],
    events: Indices,
    format_: Format,
    bad: BadEvents,
) -> tuple[Indices, dict[str, pa.Array]]:
    """The keys before updates that changed them.

    Where the row before has only what changed, a key column that is not sent is as after it.
    """
    changed = np.zeros(len(had), bool)
    old: dict[str, pa.Array] = {}
    for target in destination.named(destination.key):
        name = target.field.name
        before_values = before.values(name, writes[had])
        read = read_column(before_values, target)
        _note(read.reasons, events[had], bad)
        unknown = np.asarray(read.values.is_null())
        if format_.before_is_partial:
            unknown[read.unchanged] = False
            unknown &= not isinstance(
                before_values, pa.Array
            )  # NULL in a struct is what is not sent
        for place in np.flatnonzero(unknown):
            bad.add(int(events[had[place]]), f"the row before it lacks the key column {name!r}")
        new = columns[name].take(pa.array(had))
        values = pc.coalesce(read.values, new)
        changed |= ~np.asarray(pc.fill_null(pc.equal(values, new), fill_value=True))
        old[name] = values
    places = np.flatnonzero(changed)
    moved = {name: values.take(pa.array(places)) for name, values in old.items()}
    for target in destination.named(destination.order):
        moved[target.field.name] = columns[target.field.name].take(pa.array(had[places]))
    return had[places], moved


def _fill_from_before(
    before: Rows,
    writes: Indices,
    moved: Indices,
    destination: Destination,
    columns: dict[str, pa.Array],
    lacking: dict[str, Mask],
    events: Indices,
    bad: BadEvents,
) -> None:
    """Give rows with a new key what they lack from the row before; bad are those without it.

    NULL before is no value: connectors write it for columns that they do not know.
    """
    for target in destination.named(tuple(lacking)):
        name = target.field.name
        rows = moved[lacking[name][moved]]
        if not len(rows) or name in (*destination.key, *destination.order):
            continue
        read = read_column(before.values(name, writes[rows]), target)
        _note(read.reasons, events[rows], bad)
        for place in np.flatnonzero(np.asarray(read.values.is_null())):
            bad.add(int(events[rows[place]]), f"it changes the key, {_unsent(name)}")
        source = np.arange(len(writes))
        source[rows] = len(writes) + np.arange(len(rows))
        columns[name] = pa.concat_arrays([columns[name], read.values]).take(pa.array(source))
        lacking[name][rows] = False


def _delete(
    entries: Entries,
    format_: Format,
    destination: Destination,
    deletes: Indices,
    bad: BadEvents,
    block: Block,
) -> list[Indices]:
    rows = entries.rows(format_.deleted)
    deletes = _with_row(rows, deletes, entries, "a delete has no row before the change", bad)
    events = entries.events[deletes]
    wanted = destination.named((*destination.key, *destination.order))
    keys, _ = _read_columns(rows, deletes, wanted, destination.key, events, bad)
    block.changes.append(_piece(destination, keys, "d", events))
    return [deletes]


def _with_row(
    rows: Rows, places: Indices, entries: Entries, otherwise: str, bad: BadEvents
) -> Indices:
    present = rows.present[places]
    for place in places[~present]:
        bad.add(int(entries.events[place]), otherwise)
    return places[present]


def _read_columns(
    rows: Rows,
    places: Indices,
    targets: Sequence[TargetColumn],
    key: tuple[str, ...],
    events: Indices,
    bad: BadEvents,
    *,
    fills: bool = False,
) -> tuple[dict[str, pa.Array], dict[str, Mask]]:
    """Read columns of the rows at these places; also which rows lack a column, by its name.

    With `fills`, a column that may be NULL is so where a row lacks it without a marker.
    """
    columns: dict[str, pa.Array] = {}
    lacking: dict[str, Mask] = {}
    for target in targets:
        name = target.field.name
        values = rows.values(name, places)
        read = read_column(values, target)
        columns[name] = read.values
        _note(read.reasons, events, bad)
        unchanged = read.unchanged
        if fills and target.field.nullable and name not in key and not isinstance(values, pa.Array):
            unchanged = np.array([at for at in unchanged if values[at] is not UNSET], np.int64)
        if len(unchanged):
            lacking[name] = np.zeros(len(places), bool)
            lacking[name][unchanged] = True
        if not target.field.nullable or name in key:
            _note_nulls(read.values, lacking.get(name), name, events, bad, in_key=name in key)
    return columns, lacking


def _note(reasons: dict[int, str], events: Indices, bad: BadEvents) -> None:
    for place, reason in reasons.items():
        bad.add(int(events[place]), reason)


def _note_nulls(
    values: pa.Array,
    unsent: Mask | None,
    name: str,
    events: Indices,
    bad: BadEvents,
    *,
    in_key: bool,
) -> None:
    if not values.null_count:
        return
    for place in np.flatnonzero(np.asarray(values.is_null())):
        if unsent is not None and unsent[place]:
            if in_key:
                bad.add(int(events[place]), f"it lacks the key column {name!r}")
        else:
            kind = "key column" if in_key else "NOT NULL column"
            bad.add(int(events[place]), f"the {kind} {name!r} is NULL")


def _names_lacking(lacking: dict[str, Mask], count: int) -> pa.Array:
    names = pa.array(list(lacking))
    rows, places = np.nonzero(np.stack(list(lacking.values()), axis=1))
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=count), out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), names.take(pa.array(places)))


def _piece(
    destination: Destination,
    columns: dict[str, pa.Array],
    op: str,
    events: Indices,
    unchanged: pa.Array | None = None,
) -> pa.Table:
    count = len(events)
    arrays = [
        columns.get(each.field.name, pa.nulls(count, arrow_type(each.field.type)))
        if each.field.name in columns
        else pa.nulls(count, arrow_type(each.field.type))
        for each in destination.targets
    ]
    extras = [
        pa.array(np.full(count, ord(op), np.int8)),
        pa.array(events),
        pa.nulls(count, pa.list_(pa.string())) if unchanged is None else unchanged,
    ]
    return pa.table(arrays + extras, schema=changes_schema(destination))


def changes_schema(destination: Destination) -> pa.Schema:
    """The columns of changes; those of the table have distinct names by their prefix."""
    columns = [
        pa.field(f"c.{each.field.name}", arrow_type(each.field.type))
        for each in destination.targets
    ]
    extras = [
        pa.field(OP, pa.int8()),
        pa.field(EVENT, pa.int64()),
        pa.field(UNCHANGED, pa.list_(pa.string())),
    ]
    return pa.schema([*columns, *extras])


def _add_orders(entries: Entries, format_: Format, places: Indices, block: Block) -> None:
    """Read the numbers of each order that some entry has, up to the first that all have."""
    taken = pa.array(places)
    for at, order in enumerate(format_.orders):
        arrays = _order_values(entries, order)
        if arrays is None:
            continue
        columns = [values.take(taken) for values in arrays]
        if all(column.null_count == len(places) for column in columns):
            continue
        beside = {name: each.take(taken) for name, each in _beside(entries, order).items()}
        names = [*(each.name for each in order.fields), *beside]
        block.orders[at] = [pa.table([*columns, *beside.values()], names=names)]
        if not any(
            column.null_count
            for column, each in zip(columns, order.fields, strict=True)
            if not each.optional
        ):
            return


def _order_values(entries: Entries, order: EventOrder) -> list[pa.Array] | None:
    arrays = []
    for each in order.fields:
        if isinstance(entries, ColumnEntries) and each.path in entries.arrays:
            arrays.append(entries.arrays[each.path])
            continue
        values = entries.scalars(each.path)
        if "" in values:  # MySQL's file in rows of an incremental snapshot, which have no place
            values = [None if value == "" else value for value in values]
        if values.count(None) == len(values) and not each.optional:
            return None
        if each.last is not None:
            pairs = zip(values, entries.scalars(each.last), strict=True)
            values = [LAST if value is None and last is True else value for value, last in pairs]
        arrays.append(values_of(values))
    return arrays


def _beside(entries: Entries, order: EventOrder) -> dict[str, pa.Array]:
    """What tells more of the places of entries than the numbers of their order."""
    beside = {}
    if order.within is not None and order.within.path is None:
        beside[OWNERS] = pa.array(entries.events)
    elif order.within is not None and order.within.path is not None:
        beside[OWNERS] = values_of(entries.scalars(order.within.path))
    if order.snapshot is not None:
        beside[SNAPSHOT] = snapshot_marks(entries.scalars(order.snapshot))
    return beside
