"""The events of PostgreSQL's plugin wal2json: by transaction (format 1) and by row (format 2).

A column that was not changed and is stored out of line is absent in both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import msgspec

from rowsieve.envelopes.actions import EventAction, Skipped
from rowsieve.envelopes.decoding import decode_each
from rowsieve.envelopes.event_orders import EventOrder, OrderField, Within
from rowsieve.envelopes.formats import Format, Unpacked, never
from rowsieve.envelopes.row_structs import RowType
from rowsieve.envelopes.values.text_rules import TextRules


class Wal2JsonChange(msgspec.Struct, gc=False):
    """One change of either format."""

    op: str | None
    schema: Any = None
    table: Any = None
    after: Any = None
    before: Any = None
    lsn: Any = None
    place: int = 0


class _Value(msgspec.Struct, gc=False):
    name: str
    value: Any = None


class _RowMessage(msgspec.Struct, gc=False):
    """A message of format 2."""

    action: str
    schema: Any = None
    table: Any = None
    columns: list[_Value] | None = None
    identity: list[_Value] | None = None
    lsn: Any = None


class _OldKeys(msgspec.Struct, gc=False):
    keynames: list[str]
    keyvalues: list[Any]


class _Kind(msgspec.Struct, gc=False):
    """A change in a message of format 1."""

    kind: str
    schema: Any = None
    table: Any = None
    columnnames: list[str] | None = None
    columnvalues: list[Any] | None = None
    oldkeys: _OldKeys | None = None


class _Transaction(msgspec.Struct, gc=False):
    """A message of format 1."""

    change: list[_Kind]
    nextlsn: Any = None


def _row_change(row: RowType, message: _RowMessage) -> Wal2JsonChange:
    def read(values: list[_Value] | None) -> Any:
        if values is None:
            return None
        return _row(row, [each.name for each in values], [each.value for each in values])

    return Wal2JsonChange(
        message.action,
        message.schema,
        message.table,
        read(message.columns),
        read(message.identity),
        message.lsn,
    )


def _changes(row: RowType, message: _Transaction) -> list[Wal2JsonChange]:
    changes = []
    for place, each in enumerate(message.change):
        source = ".".join(str(name) for name in (each.schema, each.table) if name)
        if row.sources is not None and source not in row.sources:
            continue
        after = before = None
        if each.columnnames is not None:
            after = _row(row, each.columnnames, each.columnvalues or [])
        if each.oldkeys is not None:
            before = _row(row, each.oldkeys.keynames, each.oldkeys.keyvalues)
        named = (each.kind, each.schema, each.table)
        changes.append(Wal2JsonChange(*named, after, before, message.nextlsn, place))
    return changes


def _listed(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The rows of a message of plain JSON, of both formats."""
    columns = message.get("columns") or message.get("identity")
    for column in columns if isinstance(columns, list) else ():
        if isinstance(column, Mapping) and isinstance(column.get("name"), str):
            yield {column["name"]: column.get("value")}
    changes = message.get("change")
    for each in changes if isinstance(changes, list) else ():
        if not isinstance(each, Mapping):
            continue
        old = each.get("oldkeys")
        for row, kind in ((each, "column"), (old if isinstance(old, Mapping) else {}, "key")):
            names, values = row.get(f"{kind}names"), row.get(f"{kind}values")
            if isinstance(names, list) and isinstance(values, list):
                yield dict(zip(map(str, names), values, strict=False))


def _row(row: RowType, names: list[str], values: list[Any]) -> Any:
    if len(set(names)) < len(names) or len(names) != len(values):
        raise ValueError(f"{len(names)} names of columns, and {len(values)} values")
    return msgspec.convert(dict(zip(names, values, strict=True)), row.struct)


def _by_row(messages: Sequence[Any], row: RowType) -> Unpacked:
    entries, failures = decode_each(partial(_row_change, row), messages)
    places = [place for place in range(len(messages)) if place not in failures]
    return Unpacked([entries[place] for place in places], places, failures=failures)


def _by_transaction(messages: Sequence[Any], row: RowType) -> Unpacked:
    changes, failures = decode_each(partial(_changes, row), messages)
    objects: list[Any] = []
    places: list[int] = []
    skipped = {}
    for place, each in enumerate(changes):
        if place in failures:
            continue
        objects += each
        places += [place] * len(each)
        if not messages[place].change:
            skipped[place] = Skipped.TRANSACTION
    return Unpacked(objects, places, failures=failures, skipped=skipped)


def _variant(first: Any) -> Format:
    return WAL2JSON_1 if isinstance(first, dict) and "change" in first else WAL2JSON


WAL2JSON: Final = Format(
    name="wal2json",
    message=lambda _row: _RowMessage,
    unpack=_by_row,
    op="op",
    meanings={
        "i": EventAction.WRITE,
        "u": EventAction.WRITE,
        "d": EventAction.DELETE,
        "t": EventAction.TRUNCATE,
        "m": Skipped.MESSAGE,
        "b": Skipped.TRANSACTION,
        "c": Skipped.TRANSACTION,
        "insert": EventAction.WRITE,
        "update": EventAction.WRITE,
        "delete": EventAction.DELETE,
        "truncate": EventAction.TRUNCATE,
        "message": Skipped.MESSAGE,
    },
    after="after",
    before="before",
    deleted="before",
    source=("schema", "table"),
    orders=(EventOrder((OrderField("lsn", "lsn"),)),),
    rules=TextRules(bytes_="hex"),
    unmarked=never,
    variant=_variant,
    before_is_partial=True,
    decoded=True,
    listed=_listed,
)
WAL2JSON_1: Final = replace(
    WAL2JSON,
    message=lambda _row: _Transaction,
    unpack=_by_transaction,
    orders=(
        EventOrder((OrderField("nextlsn", "lsn"), OrderField("place", "place"))),
        EventOrder(
            (OrderField("place", "place"),), within=Within("are in two messages without nextlsn")
        ),
    ),
)
