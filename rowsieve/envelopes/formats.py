"""The formats of events: a row for each, with all that differs between them.

A row says where the operation, the row before and after the change, the source's table and its log
numbers stand, and what each operation means. Readers of messages act by these rows only, so a new
format is a row, and a function if its messages hold several changes or lists of columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from rowsieve.envelopes.actions import EventAction, Skipped
from rowsieve.envelopes.alike_messages import Alike
from rowsieve.envelopes.event_orders import EventOrder
from rowsieve.envelopes.row_structs import RowType
from rowsieve.envelopes.values.text_rules import TextRules

Meaning: TypeAlias = EventAction | Skipped


@dataclass(frozen=True, slots=True)
class Unpacked:
    """Entries of messages: `places` has the message of each, `failures` those that have none."""

    objects: Sequence[Any]
    places: Sequence[int]
    schemas: Sequence[bytes] | None = None
    failures: Mapping[int, Exception] | None = None
    skipped: Mapping[int, Skipped] | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """A format of events.

    `message` makes the type of a message from that of a row. `unpack` makes entries of messages.
    `op` to `deleted` are paths: `deleted` to the row of a delete. `before_is_partial`: the row
    before an update has only what changed. `creates` are operations that make a row, and mark what
    they do not send. `beside`: columns stand beside the names of `extra`.
    `delete_flag` is the path of a flag that marks a delete. `unmarked` tells what an entry without
    an operation is, and `variant` which form of the format the first message has. Messages that are
    NULL are skipped as `tombstones`, or bad if that is None. `listed` yields the rows of a message
    of plain JSON in which columns stand in lists. `alike` tells what messages of a block share with
    the first one. `refused` has the connectors whose events are bad, by their name at the path
    `connector`, and why.
    """

    name: str
    message: Callable[[RowType], Any]
    unpack: Callable[[Sequence[Any], RowType], Unpacked]
    op: str
    meanings: Mapping[str, Meaning]
    after: str
    before: str
    deleted: str
    source: tuple[str, ...]
    orders: tuple[EventOrder, ...]
    rules: TextRules
    unmarked: Callable[[Any], Meaning | None]
    connector: str | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    variant: Callable[[Any], Format] | None = None
    alike: Callable[[Any, Sequence[EventOrder]], Alike | None] | None = None
    delete_flag: str | None = None
    before_is_partial: bool = False
    creates: frozenset[str] = frozenset()
    beside: bool = False
    extra: tuple[str, ...] = ()
    decoded: bool = False  # rows are made of decoded values
    listed: Callable[[Mapping[str, Any]], Iterator[Mapping[str, Any]]] | None = None
    whole_rows: bool = False  # a column that a row lacks without a marker was dropped
    tombstones: Skipped | None = Skipped.TOMBSTONE


def one_each(messages: Sequence[Any], _row: RowType) -> Unpacked:
    """Each message is an entry."""
    return Unpacked(messages, range(len(messages)))


def never(_entry: Any) -> None:
    """An entry without an operation is bad."""
    return
