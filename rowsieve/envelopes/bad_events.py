"""Events that cannot be applied: what is wrong, with which of them, and the event itself.

Soundness: an event is applied, counted as skipped, or here. Either the whole call is refused for
the first of these, or all of them are handed to the caller; none is dropped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from reprlib import Repr
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidData

BAD_EVENTS: Final = pa.schema(
    [
        pa.field("event", pa.int64(), nullable=False),
        pa.field("partition", pa.int64()),
        pa.field("offset", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("message", pa.binary()),
    ]
)
"""Columns of a table of bad events; `event` counts the messages of the call from 0."""

_SHOWN_CHARACTERS: Final = 160
_SHOWN_LEVELS: Final = 100
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class MessagePlaces:
    """Where messages come from: partition and offset of each, if the data has them."""

    partitions: pa.ChunkedArray | None = None
    offsets: pa.ChunkedArray | None = None

    def of(self, event: int) -> tuple[int | None, int | None]:
        """Partition and offset of a message."""
        return _integer(self.partitions, event), _integer(self.offsets, event)

    def shown(self, event: int) -> str:
        """Name a message: `event 17 (partition 3, offset 1204)`."""
        named = zip(("partition", "offset"), self.of(event), strict=True)
        places = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"event {event}, counted from 0{f' ({places})' if places else ''}"


def _integer(column: pa.ChunkedArray | None, row: int) -> int | None:
    value = None if column is None else column[row].as_py()
    return value if isinstance(value, int) else None


def _stored(place: int | None) -> int | None:
    """A partition or offset, NULL if the column is too narrow for it."""
    return place if place is None or place <= _LARGEST else None


@dataclass(slots=True)
class BadEvents:
    """The bad events of one call by message, the first reason of each.

    `numbers` are those of the messages in the caller's data, where only some of them are read.
    """

    places: MessagePlaces
    message: Callable[[int], Any]
    numbers: Sequence[int] | None = None
    reasons: dict[int, str] = field(default_factory=dict)

    def shown(self, event: int) -> str:
        """Name a message as the caller counts it."""
        return self.places.shown(self.number(event))

    def number(self, event: int) -> int:
        """The number of a message in the caller's data."""
        return event if self.numbers is None else int(self.numbers[event])

    def add(self, event: int, reason: str) -> None:
        """Note what is wrong with a message."""
        self.reasons.setdefault(event, reason)

    def refuse(self, operation: str, *, adds_columns: bool) -> None:
        """Raise InvalidData for the first bad event, if there is one."""
        if not self.reasons:
            return
        event = min(self.reasons)
        more = f"; {len(self.reasons) - 1} more events are bad" if len(self.reasons) > 1 else ""
        unknown = "unknown field" in self.reasons[event] and not adds_columns
        adds = (
            ", pass schema_mode='merge' to add the columns that the table lacks" if unknown else ""
        )
        raise InvalidData(
            f"{operation}: {self.shown(event)}: {self.reasons[event]}; it is "
            f"{_shown(self.message(event))}{more}. Nothing was written. Correct the events{adds}, "
            "or pass on_bad='collect' to apply the others and get these"
        )

    def table(self) -> pa.Table:
        """Return the bad events in their order, with the columns of `BAD_EVENTS`."""
        rows = [
            (self.number(event), *map(_stored, self.places.of(self.number(event))), reason, message)
            for event, reason in sorted(self.reasons.items())
            for message in (_as_bytes(self.message(event)),)
        ]
        columns = zip(*rows, strict=True) if rows else ((),) * len(BAD_EVENTS)
        arrays = [
            pa.array(list(values), field.type)
            for values, field in zip(columns, BAD_EVENTS, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=BAD_EVENTS)


class _Shallow(Repr):
    """Text of a value without what is nested deeper than Python can show."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = _SHOWN_LEVELS
        self.maxdict = self.maxlist = self.maxtuple = self.maxstring = self.maxother = sys.maxsize


def _as_bytes(message: Any) -> bytes | None:
    if message is None or isinstance(message, bytes):
        return message
    if isinstance(message, str):
        return message.encode("utf-8", "surrogatepass")
    return _as_text(message).encode("utf-8", "surrogatepass")


def _as_text(message: Any) -> str:
    try:
        return repr(dict(message) if isinstance(message, Mapping) else message)
    except RecursionError:
        return _Shallow().repr(message)


def _shown(message: Any) -> str:
    text = (_as_bytes(message) or b"NULL").decode("utf-8", "replace")
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
