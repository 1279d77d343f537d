"""The messages in what a caller passes: lines of JSON, lists, columns of text, Arrow structs.

A message is JSON text, a dict of decoded JSON, or None, which Kafka calls a tombstone. Arrow data
with the envelope's own columns, such as `before` and `after`, holds an event in each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, overload

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.data.ingest import read_data
from rowsieve.envelopes.bad_events import MessagePlaces
from rowsieve.errors import InvalidInput
from rowsieve.types.encodings import is_bytes, is_text

OPERATION: Final = "apply_events"
_LONGEST_NULL: Final = 16
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Messages:
    """Messages in the order of the data: in `texts`, or as rows of `structs`."""

    texts: Sequence[Any]
    places: MessagePlaces
    structs: pa.Table | None = None
    numbers: Sequence[int] | None = None  # of the messages in the caller's data, if not all

    def __len__(self) -> int:
        """The number of messages."""
        return len(self.texts) if self.structs is None else self.structs.num_rows

    def shown(self, place: int) -> Any:
        """One message: text, or a dict."""
        if self.structs is None:
            return self.texts[place]
        return self.structs.slice(place, 1).to_pylist()[0]

    def take(self, positions: Sequence[int]) -> Messages:
        """The messages at these positions; `places` stay those of all messages."""
        if self.structs is not None:
            structs = self.structs.take(pa.array(positions, pa.int64()))
            return replace(self, structs=structs, numbers=positions)
        return replace(self, texts=[self.texts[place] for place in positions], numbers=positions)


class TextColumn(Sequence[bytes | None]):
    """The messages of a column, which become objects of Python where they are asked for."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    @overload
    def __getitem__(self, place: int) -> bytes | None: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes | None]: ...
    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            return self._column[place].as_py()
        start, stop, step = place.indices(len(self))
        return self._column.slice(start, max(stop - start, 0)).to_pylist()[::step]

    def array(self, start: int, stop: int) -> pa.Array:
        """Messages as one array of bytes."""
        chunks = self._column.slice(start, stop - start).chunks
        return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)


def text_array(texts: Sequence[Any], start: int, stop: int) -> pa.Array | None:
    """The messages of a block as UTF-8 text; None if one of them is not text."""
    try:
        if isinstance(texts, TextColumn):
            return texts.array(start, stop).cast(pa.string())
        return pa.array(texts[start:stop], pa.binary()).cast(pa.string())
    except (pa.ArrowException, TypeError, ValueError):
        return None


def read_messages(data: Any) -> Messages:
    """Find the messages in data of any supported kind; InvalidInput if there are none.

    Text is lines of JSON or one JSON array. Of a table with a column `value`, the messages are in
    it, and `partition` and `offset` beside it name them in errors.
    """
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogatepass")
    if isinstance(data, bytes | bytearray | memoryview):
        return Messages(_with_tombstones(_lines(bytes(data))), MessagePlaces())
    if isinstance(data, list | tuple):
        _refuse_kinds(data)
        return Messages(_with_tombstones(data), MessagePlaces())
    return _of_table(read_data(data, OPERATION))


def _lines(text: bytes) -> list[bytes]:
    text = text.removeprefix(_BYTE_ORDER_MARK)
    if text.lstrip().startswith(b"["):
        try:
            return [bytes(item) for item in msgspec.json.decode(text, type=list[msgspec.Raw])]
        except (msgspec.DecodeError, RecursionError):
            pass  # lines, the first of which is bad
    return [line for line in text.split(b"\n") if line and not line.isspace()]


def _with_tombstones(messages: Sequence[Any]) -> Sequence[Any]:
    """The messages, with None for the text `null`, as which tools print a tombstone."""
    with suppress(TypeError):  # None has no length
        if min(map(len, messages), default=0) > _LONGEST_NULL:
            return messages
    if not any(map(_is_null, messages)):
        return messages
    return [None if _is_null(each) else each for each in messages]


def _is_null(message: Any) -> bool:
    if not isinstance(message, str | bytes) or len(message) > _LONGEST_NULL:
        return False
    return message.strip() in ("null", b"null")


def _refuse_kinds(messages: Sequence[Any]) -> None:
    kinds = set(map(type, messages)) - {type(None)}
    for kind in kinds:
        if not issubclass(kind, str | bytes | dict):
            raise InvalidInput(
                f"{OPERATION}: a list of events holds JSON text, bytes or dicts, not "
                f"{kind.__name__}"
            )


def _of_table(table: pa.Table) -> Messages:
    by_name = {name.lower(): name for name in table.column_names}
    places = MessagePlaces(
        *(
            table.column(by_name[name])
            if name in by_name and pa.types.is_integer(table.schema.field(by_name[name]).type)
            else None
            for name in ("partition", "offset")
        )
    )
    name = by_name.get("value") or (table.column_names[0] if table.num_columns == 1 else None)
    if name is None:
        return Messages((), MessagePlaces(), table)
    values = table.column(name)
    if is_text(values.type) or is_bytes(values.type):
        wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
        binary = values.cast(pa.large_binary() if wide else pa.binary())
        if (pc.min(pc.binary_length(binary)).as_py() or 0) > _LONGEST_NULL:
            return Messages(TextColumn(binary), places)
        return Messages(_with_tombstones(binary.to_pylist()), places)
    if pa.types.is_struct(values.type):
        return Messages((), places, _members(values))
    if pa.types.is_null(values.type):
        return Messages([None] * len(values), places)
    if by_name.get("value"):
        return Messages((), MessagePlaces(), table)
    raise InvalidInput(
        f"{OPERATION}: the column {name!r} has the type {values.type}; events are JSON text, bytes "
        "or structs"
    )


def _members(values: pa.ChunkedArray) -> pa.Table:
    fields = list(values.type)
    batches = [
        pa.RecordBatch.from_arrays(chunk.flatten(), schema=pa.schema(fields))
        for chunk in values.chunks
    ]
    return pa.Table.from_batches(batches, pa.schema(fields))
