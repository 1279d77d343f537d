"""Read all messages of a call into changes: decode, unpack, and read block by block.

Blocks bound the Python objects that exist at once. The next one is read as the format's row says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.envelopes.actions import Skipped
from rowsieve.envelopes.alike_messages import Alike
from rowsieve.envelopes.bad_events import BadEvents
from rowsieve.envelopes.changes_table import (
    EVENT,
    Block,
    Destination,
    changes_schema,
    read_block,
)
from rowsieve.envelopes.decoding import DECODING_ERRORS, decode_each
from rowsieve.envelopes.entries import ArrowEntries, Entries, JsonEntries, given_name
from rowsieve.envelopes.formats import Format, Unpacked, one_each
from rowsieve.envelopes.messages import Messages, text_array
from rowsieve.envelopes.plain_rows import names_of_rows
from rowsieve.envelopes.row_structs import NumberText, RowType, row_type
from rowsieve.envelopes.spelling import Spelling, spelled_as
from rowsieve.envelopes.templates.columnar_messages import ColumnarReader
from rowsieve.envelopes.values.semantic_types import DeclaredColumns, parse_schema
from rowsieve.errors import SchemaMismatch, did_you_mean

BLOCK_MESSAGES: Final = 1 << 13  # their objects stay in the cache of a core
COLUMNAR_BLOCKS: Final = 2  # that are matched with templates at once
OWN_TYPE_FROM_MESSAGES: Final = 1 << 9  # fewer messages do not pay for a type of their own
TYPES_IN_CACHE: Final = 16  # types that are kept


@dataclass(slots=True)
class Reading:
    """What was read of the messages so far."""

    format: Format
    changes: list[pa.Table] = field(default_factory=list)
    orders: list[tuple[int, Mapping[int, list[pa.Table]]]] = field(default_factory=list)
    skipped: Counter[Skipped] = field(default_factory=Counter)
    source: tuple[Any, ...] | None = None

    def add(self, block: Block) -> None:
        """Add the changes of a block."""
        self.skipped += block.skipped
        self.source = block.source
        if block.changes:
            self.changes += block.changes
            self.orders.append((sum(map(len, block.changes)), block.orders))

    def table(self, destination: Destination) -> pa.Table:
        """All changes."""
        return pa.concat_tables([changes_schema(destination).empty_table(), *self.changes])

    def leave_out(self, bad: BadEvents) -> None:
        """Leave out the changes of bad events; their numbers say nothing of the order of others."""
        if not bad.reasons or not self.changes:
            return
        changes = pa.concat_tables(self.changes)
        wrong = np.array(list(bad.reasons), np.int64)
        mask = pa.array(~np.isin(changes.column(EVENT).to_numpy(), wrong))
        self.changes = [changes.filter(mask)]
        orders, self.orders = self.orders, []
        start = 0
        for count, tables_of_orders in orders:
            part = mask.slice(start, count)
            start += count
            numbers = {
                place: [table.filter(part) for table in tables]
                for place, tables in tables_of_orders.items()
            }
            known = {
                place: tables
                for place, tables in numbers.items()
                if any(map(self.format.orders[place].has_numbers, tables))
            }
            self.orders.append((part.true_count, known))

    @property
    def order(self) -> int | None:
        """The best of the format's orders that a change has, by its place; None without one."""
        return min((place for _, orders in self.orders for place in orders), default=None)


def read_events(
    messages: Messages, format_: Format, destination: Destination, bad: BadEvents
) -> Reading:
    """Read all messages; a message is a change, is counted as skipped, or is bad.

    The first message may be of another source than the changes. If these then have no numbers of a
    log, they are read again with those of all sources.
    """
    if messages.structs is not None:
        return _read_structs(messages.structs, format_, destination, bad)
    reader = _EventReader.of(messages, format_, destination)
    reading = _read_texts(reader, messages, bad)
    orders, known = reader.format.orders, reading.order
    is_by_log = known is not None and orders[known].weak is None
    if len(orders) == len(format_.orders) or not reading.changes or is_by_log:
        return reading
    reader = _EventReader.of(messages, replace(format_, variant=None), destination)
    return _read_texts(reader, messages, bad)


def _read_texts(reader: _EventReader, messages: Messages, bad: BadEvents) -> Reading:
    reading = Reading(reader.format)
    destination = reader.destination
    for entries, declared in reader.all_blocks(messages.texts, reading, bad):
        into = _declaring(destination, declared, reader.spelling)
        reading.add(read_block(entries, reader.format, into, bad, reading.source))
        del entries  # the next block's objects take its memory, which is still in the cache
    reading.leave_out(bad)
    return reading


def read_entries(
    messages: Messages, format_: Format, destination: Destination, bad: BadEvents
) -> Iterator[tuple[Counter[Skipped], Entries, Format]]:
    """Decode all messages into entries, with what was skipped before each block of them."""
    if messages.structs is not None:
        for part in _struct_blocks(payload_of(messages.structs), {}, format_):
            yield Counter(), part, format_
        return
    reader = _EventReader.of(messages, format_, destination)
    reading = Reading(reader.format)
    for entries, _ in reader.all_blocks(messages.texts, reading, bad):
        yield reading.skipped, entries, reader.format
        reading.skipped = Counter()


def _skip_tombstones(
    texts: Sequence[Any], numbers: Any, format_: Format, reading: Reading, bad: BadEvents
) -> None:
    places = [int(number) for number, each in zip(numbers, texts, strict=True) if each is None]
    if format_.tombstones is not None:
        reading.skipped[format_.tombstones] += len(places)
        return
    for place in places:
        bad.add(
            place,
            "a tombstone of unwrapped events may be the only trace of a delete; let the connector "
            "send deletes as rows (delete.tombstone.handling.mode=rewrite), and leave tombstones "
            "out",
        )


@dataclass(frozen=True, slots=True)
class _Decoding:
    """How messages become entries; `constants` are the values that all of them have, by path."""

    row: RowType
    decode: Callable[[Any], Any]
    unpack: Callable[[Sequence[Any], RowType], Unpacked]
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class _EventReader:
    """Decodes messages of one format into entries."""

    format: Format
    destination: Destination
    decoded: bool
    spelling: Spelling
    schemas: dict[bytes, DeclaredColumns] = field(default_factory=dict)
    general: _Decoding | None = None
    special: dict[Alike, _Decoding] = field(default_factory=dict)
    columnar: ColumnarReader | None = None

    @classmethod
    def of(cls, messages: Messages, format_: Format, destination: Destination) -> _EventReader:
        """A reader for the form that the first message has."""
        first = next((each for each in messages.texts if each is not None), None)
        sample = None if first is None else as_object(first)
        if format_.variant is not None and sample is not None:
            format_ = format_.variant(sample)
        columns = [target.field.name for target in destination.targets]
        spelling = Spelling(columns, "__" if format_.beside else None)
        spelling.ignored.update(dict.fromkeys(sorted(destination.ignored)))
        spelling.learn(names_of_rows(sample, format_))
        return cls(format_, destination, isinstance(first, dict), spelling)

    def all_blocks(
        self, texts: Sequence[Any], reading: Reading, bad: BadEvents
    ) -> Iterator[tuple[Entries, DeclaredColumns]]:
        """Decode all messages, block by block."""
        length = COLUMNAR_BLOCKS * BLOCK_MESSAGES
        for start in range(0, len(texts), length):
            stop = min(start + length, len(texts))
            rest: Any = range(start, stop)
            has_templates = self.format.alike is not None and not self.decoded
            array = text_array(texts, start, stop) if has_templates else None
            if array is not None:
                matched, places = self._columnar().read(array, start)
                rest = places + start
                first = min((int(each.events[0]) for each, _ in matched), default=stop)
                before = int(np.searchsorted(rest, first))  # the first event names the table
                yield from self._rest(texts, array, rest[:before], start, reading, bad)
                rest = rest[before:]
                for entries, schema in sorted(matched, key=lambda each: int(each[0].events[0])):
                    yield entries, self._declared(schema)
            yield from self._rest(texts, array, rest, start, reading, bad)

    def _rest(
        self,
        texts: Sequence[Any],
        array: pa.Array | None,
        numbers: Any,
        start: int,
        reading: Reading,
        bad: BadEvents,
    ) -> Iterator[tuple[Entries, DeclaredColumns]]:
        """Decode the messages with these numbers into entries, block by block."""
        for at in range(0, len(numbers), BLOCK_MESSAGES):
            part = numbers[at : at + BLOCK_MESSAGES]
            chosen = _at(texts, array, part, start)
            if not all(chosen):  # text of no length is none of these
                _skip_tombstones(chosen, part, self.format, reading, bad)
            yield from self.blocks(chosen, part, reading, bad)

    def _declared(self, schema: bytes | None) -> DeclaredColumns:
        if schema is None:
            return DeclaredColumns()
        if schema not in self.schemas:
            self.schemas[schema] = parse_schema(schema)
        return self.schemas[schema]

    def blocks(
        self, texts: Sequence[Any], numbers: Any, reading: Reading, bad: BadEvents
    ) -> Iterator[tuple[Entries, DeclaredColumns]]:
        """Decode messages into entries, by the schema that they declare; `numbers` are theirs."""
        places: Sequence[int] = range(len(texts))
        if not all(texts):
            places = [place for place, each in enumerate(texts) if each is not None]
        present = texts if len(places) == len(texts) else [texts[place] for place in places]
        decoding, objects, failures = self._decode(present)
        good = places
        if failures:
            for place, error in failures.items():
                bad.add(int(numbers[places[place]]), _undecoded(error, present[place], self))
            good = [place for at, place in enumerate(places) if at not in failures]
            objects = [each for at, each in enumerate(objects) if at not in failures]
        unpacked = decoding.unpack(objects, decoding.row)
        for place, error in (unpacked.failures or {}).items():
            bad.add(int(numbers[good[place]]), _undecoded(error, texts[good[place]], self))
        for kind in (unpacked.skipped or {}).values():
            reading.skipped[kind] += 1
        given_numbers = _indices(numbers)[_indices(good)]
        events = given_numbers[_indices(unpacked.places)] if good else given_numbers
        entries = JsonEntries(
            unpacked.objects, events, decoding.row, self.format.beside, decoding.constants
        )
        if unpacked.schemas is None:
            yield entries, DeclaredColumns()
            return
        for schema in dict.fromkeys(unpacked.schemas):
            at = [place for place, each in enumerate(unpacked.schemas) if each == schema]
            yield entries.take(np.array(at, np.int64)), self._declared(schema)

    def _decode(self, texts: Sequence[Any]) -> tuple[_Decoding, list[Any], dict[int, Exception]]:
        while True:
            general = self.general = self.general or self._general()
            if (special := self._of_alike(texts, general.row)) is not None:
                with suppress(*DECODING_ERRORS):
                    return special, list(map(special.decode, texts)), {}
            objects, failures = decode_each(general.decode, texts)
            rows = [names_of_rows(as_object(texts[place]), self.format) for place in failures]
            learned = [self.spelling.learn(names) for names in rows]
            if not any(learned):
                return general, objects, failures
            self.general = self.columnar = None
            self.special.clear()

    def _columnar(self) -> ColumnarReader:
        """The reader of messages that match a template."""
        if self.columnar is None:
            general = self.general = self.general or self._general()
            targets = self.destination.targets
            names = {
                self.spelling.names.get(each.field.name, each.field.name): each.field.name
                for each in targets
            }
            self.columnar = ColumnarReader(self.format, targets, names, general.decode)
        return self.columnar

    def _general(self) -> _Decoding:
        """The decoding of any message of the format."""
        row = row_type(
            [target.field for target in self.destination.targets],
            self.spelling.names,
            decoded=self.decoded or self.format.decoded,
            extra=self.format.extra,
            ignored=self.spelling.ignored,
        )
        row = replace(row, sources=self.destination.sources)
        type_ = self.format.message(row)
        if not self.decoded:
            return _Decoding(row, _json_decoder(type_), self.format.unpack)
        decode = lambda message: msgspec.convert(_as_dict(message), type_)  # noqa: E731
        return _Decoding(row, decode, self.format.unpack)

    def _of_alike(self, texts: Sequence[Any], row: RowType) -> _Decoding | None:
        """The decoding of messages that share what the first one says; None for a few."""
        if self.decoded or self.format.alike is None or len(texts) < OWN_TYPE_FROM_MESSAGES:
            return None
        shared = self.format.alike(as_object(texts[0]), self.format.orders)
        if shared is None:
            return None
        if shared not in self.special:
            if len(self.special) >= TYPES_IN_CACHE:
                del self.special[next(iter(self.special))]
            type_ = shared.type_of(row, self.format.meanings)
            unpack = self.format.unpack if shared.beside_schema else one_each
            constants = {f"source.{name}": value for name, value in shared.constants}
            self.special[shared] = _Decoding(row, _json_decoder(type_), unpack, constants)
        return self.special[shared]


def _at(texts: Sequence[Any], array: pa.Array | None, numbers: Any, start: int) -> Sequence[Any]:
    """The messages with these numbers; `array` has those from `start` on, if they are text."""
    if isinstance(numbers, range) or len(numbers) == numbers[-1] - numbers[0] + 1:
        return texts[int(numbers[0]) : int(numbers[-1]) + 1]
    assert array is not None
    chosen: list[Any] = array.take(pa.array(numbers - start)).to_pylist()
    return chosen


def _json_decoder(type_: Any) -> Callable[[Any], Any]:
    return msgspec.json.Decoder(type_, float_hook=NumberText).decode


def _indices(places: Any) -> npt.NDArray[np.int64]:
    if isinstance(places, range):
        return np.arange(places.start, places.stop, places.step, dtype=np.int64)
    return np.array(places, np.int64)


def _as_dict(message: Any) -> Any:
    if not isinstance(message, dict):
        raise TypeError("a list of events holds dicts or JSON text, not both")
    return message


def as_object(message: Any) -> Any:
    """A message as Python's objects; None if it is not JSON."""
    if isinstance(message, dict):
        return message
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return None


def _undecoded(error: Exception, message: Any, reader: _EventReader) -> str:
    known = as_object(message)
    if known is None:
        return f"it is not a JSON document: {error or type(error).__name__}"
    payload = known.get("payload", known) if isinstance(known, dict) else known
    source = payload.get("source") if isinstance(payload, dict) else None
    connector = source.get("connector") if isinstance(source, dict) else None
    if isinstance(connector, str) and connector in reader.format.refused:
        return reader.format.refused[connector]
    columns = ", ".join(reader.spelling.columns)
    return f"it does not fit the format {reader.format.name} or the columns ({columns}): {error}"


def _declaring(
    destination: Destination, declared: DeclaredColumns, spelling: Spelling
) -> Destination:
    """The destination with what the schema of events declares of each column."""
    if not (declared.columns or declared.texts):
        return destination
    targets = []
    for target in destination.targets:
        name = spelling.names.get(target.field.name, target.field.name)
        targets.append(
            replace(
                target,
                declared=declared.columns.get(name),
                declared_text=name in declared.texts,
            )
        )
    return replace(destination, targets=tuple(targets))


def _read_structs(
    table: pa.Table, format_: Format, destination: Destination, bad: BadEvents
) -> Reading:
    columns = [target.field.name for target in destination.targets]
    table = payload_of(table)
    row_columns = row_names(table, format_)
    names = spelled_as(columns, row_columns)
    unknown = [
        name
        for name in row_columns
        if name not in names.values()
        and name not in destination.ignored
        and not (format_.beside and name.startswith("__"))
    ]
    if unknown:
        raise SchemaMismatch(
            f"apply_events: rows of the events have the column {unknown[0]!r} that the table does "
            f"not have{did_you_mean(unknown[0], columns)}; the table has ({', '.join(columns)})"
        )
    reading = Reading(format_)
    for entries in _struct_blocks(table, names, format_):
        reading.add(read_block(entries, format_, destination, bad, reading.source))
    reading.leave_out(bad)
    return reading


def _struct_blocks(
    table: pa.Table, names: Mapping[str, str], format_: Format
) -> Iterator[ArrowEntries]:
    for start in range(0, table.num_rows, BLOCK_MESSAGES):
        part = table.slice(start, BLOCK_MESSAGES)
        events = np.arange(start, start + part.num_rows, dtype=np.int64)
        yield ArrowEntries(part, events, names, format_.beside)


def payload_of(table: pa.Table) -> pa.Table:
    """The payload's columns, if structs have it beside their schema."""
    if set(table.column_names) == {"schema", "payload"}:
        payload = table.column("payload")
        if pa.types.is_struct(payload.type):
            return pa.Table.from_struct_array(payload)
    return table


def row_names(table: pa.Table, format_: Format) -> list[str]:
    """The names of the columns that rows in structs have."""
    if format_.beside:
        return [name for name in table.column_names if name not in format_.extra]
    names: dict[str, None] = {}
    for path in (format_.after, format_.before, format_.deleted):
        column = given_name(path, table.column_names)
        if column is not None and pa.types.is_struct(type_ := table.schema.field(column).type):
            names.update(dict.fromkeys(member.name for member in type_))
    return list(names)
