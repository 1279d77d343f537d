"""Debezium's events: with the envelope, or unwrapped to rows by its ExtractNewRecordState.

Both come as JSON with a schema beside the payload, and without.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from rowsieve.envelopes.actions import EventAction, Skipped
from rowsieve.envelopes.alike_messages import alike
from rowsieve.envelopes.event_orders import EventOrder, OrderField, log_file, moment
from rowsieve.envelopes.formats import Format, Meaning, Unpacked, one_each
from rowsieve.envelopes.row_structs import NO_TEXT, RowType
from rowsieve.envelopes.values.text_rules import TextRules

CLOCK: Final = "the source's clock, of which two changes of a row may have the same reading"


_SOURCE: Final = ("connector", "ts_ms", "snapshot", "db", "schema", "table")
_CONNECTOR: Final = "source.connector"
_REFUSED: Final = {
    "mongodb": (
        "it is an event of MongoDB, whose documents are text and have no columns; unwrap them with "
        "Debezium's ExtractNewDocumentState and use the format debezium-unwrapped"
    ),
    "cassandra": (
        "it is an event of Cassandra, in which each value is a cell with a state of its own, and "
        "lacks those that did not change; make rows of its cells and use apply_changes with "
        "missing='keep'"
    ),
}


@cache
def _source_type(numbers: tuple[str, ...]) -> Any:
    """Where an event comes from, with these numbers of its log.

    Fields are in the order of Debezium's JSON: msgspec looks for a name after the one before it.
    """
    return msgspec.defstruct("Source", [(name, Any, None) for name in _SOURCE + numbers], gc=False)


def _message(row: RowType, numbers: tuple[str, ...]) -> Any:
    source = _source_type(numbers)
    payload = msgspec.defstruct(
        "Payload",
        [
            ("before", row.struct | None, None),
            ("after", row.struct | None, None),
            ("source", source, msgspec.field(default_factory=source)),
            ("op", str | None, None),
            ("ts_ms", Any, None),
            ("status", Any, None),
            ("ddl", Any, None),
            ("table_changes", Any, msgspec.field(default=None, name="tableChanges")),
        ],
        gc=False,
    )
    fields = [_schema_field(row), ("payload", payload | None | UnsetType, UNSET)]
    return msgspec.defstruct("Message", fields, bases=(payload,), gc=False)


def _schema_field(row: RowType) -> tuple[str, Any, Any]:
    return ("schema", Any, None) if row.decoded else ("schema", Raw, NO_TEXT)


def _payloads(messages: Sequence[Any], _row: RowType) -> Unpacked:
    """The payload of each message, with the text of its schema; a NULL one is a tombstone."""
    payloads = list(map(attrgetter("payload"), messages))
    unwrapped = payloads.count(UNSET)
    if unwrapped == len(payloads):
        return one_each(messages, _row)
    pairs = zip(payloads, messages, strict=True)
    objects = [each if payload is UNSET else payload for payload, each in pairs]
    places = [place for place, each in enumerate(objects) if each is not None]
    gone = {place: Skipped.TOMBSTONE for place, each in enumerate(objects) if each is None}
    schemas = [_schema(messages[place].schema) for place in places]
    return Unpacked([objects[place] for place in places], places, schemas, skipped=gone)


def _schema(value: Any) -> bytes:
    text = bytes(value) if isinstance(value, Raw) else msgspec.json.encode(value)
    return b"" if text == b"null" else text


def _unmarked(entry: Any) -> Meaning | None:
    """Tell heartbeats, markers of transactions and changes of the schema by their fields."""
    if isinstance(entry, dict):
        present = {name for name, value in entry.items() if value is not None}
        if not present:
            return Skipped.TOMBSTONE
        if "status" in present:
            return Skipped.TRANSACTION
        if present & {"ddl", "tableChanges"}:
            return Skipped.SCHEMA_CHANGE
        return Skipped.HEARTBEAT if present == {"ts_ms"} else None
    if entry.before is not None or entry.after is not None:
        return None
    if entry.status in ("BEGIN", "END"):
        return Skipped.TRANSACTION
    if entry.ddl is not None or entry.table_changes is not None:
        return Skipped.SCHEMA_CHANGE
    if entry.ts_ms is not None and entry.source.table is None:
        return Skipped.HEARTBEAT
    return None


_MEANINGS: Final[dict[str, Meaning]] = {
    "c": EventAction.WRITE,
    "r": EventAction.WRITE,
    "u": EventAction.WRITE,
    "d": EventAction.DELETE,
    "t": EventAction.TRUNCATE,
    "m": Skipped.MESSAGE,
}
_CREATES: Final = frozenset({"c", "r"})
_RULES: Final = TextRules(bytes_="base64", decimals=None, epochs=True, unavailable=True)


def _orders(prefix: str) -> tuple[EventOrder, ...]:
    """The orders of PostgreSQL, MySQL, SQL Server and Db2, Oracle, and of a clock."""

    def of(name: str, comparable: Any = None, *, optional: bool = False) -> OrderField:
        if comparable is None:
            return OrderField(name, f"{prefix}{name}", optional=optional)
        return OrderField(name, f"{prefix}{name}", comparable, optional)

    logs = (
        (of("lsn"),),
        (of("file", log_file), of("pos"), of("row", optional=True)),
        (
            of("commit_lsn"),
            of("change_lsn", optional=True),
            of("event_serial_no", optional=True),
        ),
        (of("scn"), of("ssn", optional=True)),
    )
    return (
        *(EventOrder(fields, snapshot=f"{prefix}snapshot") for fields in logs),
        EventOrder((OrderField("ts_ms", f"{prefix}ts_ms", moment, unit="ms"),), weak=CLOCK),
    )


_ORDERS: Final = _orders("source.")


def _of_connector(first: Any) -> Format:
    """The format with the log numbers that the first event's connector sends; else with all."""
    payload = first.get("payload", first) if isinstance(first, dict) else None
    source = payload.get("source") if isinstance(payload, dict) else None
    sent = source.keys() if isinstance(source, dict) else ()
    *logs, clock = _ORDERS
    known = [order for order in logs if any(each.name in sent for each in order.fields)]
    return _with_orders((*known, clock)) if known else DEBEZIUM


def _with_orders(orders: tuple[EventOrder, ...]) -> Format:
    numbers = tuple(each.name for order in orders[:-1] for each in order.fields)
    return replace(DEBEZIUM, orders=orders, message=partial(_message, numbers=numbers))


DEBEZIUM: Final = Format(
    name="debezium",
    message=partial(
        _message, numbers=tuple(each.name for order in _ORDERS[:-1] for each in order.fields)
    ),
    unpack=_payloads,
    op="op",
    meanings=_MEANINGS,
    after="after",
    before="before",
    deleted="before",
    source=("source.db", "source.schema", "source.table"),
    orders=_ORDERS,
    rules=_RULES,
    unmarked=_unmarked,
    variant=_of_connector,
    connector=_CONNECTOR,
    refused=_REFUSED,
    alike=lambda message, orders: alike(message, orders[:-1]),  # the last one is by the clock
    creates=_CREATES,
    whole_rows=True,
)

_PREFIXES: Final = ("__", "__source_")
_UNWRAPPED_ORDERS: Final = tuple(
    order
    for pair in zip(*(_orders(prefix) for prefix in _PREFIXES), strict=True)
    for order in reversed(pair)
)
_NAMES: Final = ("__db", "__schema", "__table", "__source_db", "__source_schema", "__source_table")
_OP: Final = ("__op", "__deleted")


def _row_beside_schema(row: RowType) -> Any:
    fields = [_schema_field(row), ("payload", row.struct | None, None)]
    return msgspec.defstruct("Message", fields, gc=False)


def _unwrapped_variant(first: Any) -> Format:
    has_schema = isinstance(first, dict) and first.keys() == {"schema", "payload"}
    return UNWRAPPED_BESIDE_SCHEMA if has_schema else UNWRAPPED


UNWRAPPED: Final = Format(
    name="debezium-unwrapped",
    message=lambda row: row.struct,
    unpack=one_each,
    op="__op",
    meanings=_MEANINGS,
    after="",
    before="",
    deleted="",
    source=("__db", "__schema", "__table"),
    orders=_UNWRAPPED_ORDERS,
    rules=_RULES,
    unmarked=lambda _entry: EventAction.WRITE,
    creates=_CREATES,
    whole_rows=True,
    beside=True,
    delete_flag="__deleted",
    variant=_unwrapped_variant,
    extra=(
        *_OP,
        *_NAMES,
        *dict.fromkeys(field.path for order in _UNWRAPPED_ORDERS for field in order.fields),
        *dict.fromkeys(order.snapshot for order in _UNWRAPPED_ORDERS if order.snapshot),
    ),
    tombstones=None,
)
UNWRAPPED_BESIDE_SCHEMA: Final = replace(
    UNWRAPPED, message=_row_beside_schema, unpack=_payloads, tombstones=None
)
