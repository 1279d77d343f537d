"""The two columns of a table that keeps history: when a version of a row began and ended to hold.

A version holds in the half-open interval [from, to) of event time; `to` is NULL for the current
one. An empty interval records a delete that no version ends with. The table's property `history`
names both columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidInput, SchemaMismatch, UnsupportedOperation, repr_of
from rowsieve.predicate.ir import (
    And,
    Column,
    Comparison,
    ComparisonOp,
    IsNull,
    Literal,
    Or,
    Predicate,
)
from rowsieve.properties import HISTORY
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.conform import conform_values
from rowsieve.types.logical import Date, Decimal, Field, Int, Nanos, Timestamp, type_name
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

_TIMES: Final = (Int, Decimal, Date, Timestamp, Nanos)


@dataclass(frozen=True, slots=True)
class HistoryColumns:
    """When a version begins, which is the last column of the key, and when it ends."""

    start: Field
    end: Field

    @property
    def text(self) -> str:
        """The value of the property."""
        return f"{self.start.name}, {self.end.name}"

    def business_order(self, schema: Schema, key: Sequence[str]) -> KeyOrder:
        """The order of the key without the time."""
        return KeyOrder.of(schema, key[:-1])


def named_history(properties: Mapping[str, str], schema: Schema) -> tuple[Field, ...]:
    """The columns that the property names; InvalidInput for names that the table lacks."""
    text = properties.get(HISTORY)
    if text is None:
        return ()
    names = [name.strip() for name in text.split(",")]
    known = set(schema.names)
    if len(names) != 2 or not known.issuperset(names):
        raise InvalidInput(
            f"property {HISTORY} is {text!r}; it must name two columns of the table, in which a "
            "version begins and ends, as 'valid_from, valid_to'"
        )
    return tuple(map(schema.field, names))


def history_columns(
    snapshot: Snapshot, history: Sequence[str] | None, operation: str
) -> HistoryColumns:
    """Return the checked columns: those given, or those of the property."""
    schema, key = snapshot.schema, snapshot.table.key
    recorded = named_history(snapshot.table.properties, schema)
    if history is not None and len(history) != 2:
        raise InvalidInput(
            f"{operation}: history= names {len(history)} columns; name two, in which a version "
            "begins and ends, as ('valid_from', 'valid_to')"
        )
    fields = recorded if history is None else tuple(map(schema.field, history))
    if recorded and fields != recorded:
        raise InvalidInput(
            f"{operation}: history=({', '.join(field.name for field in fields)}), but the table "
            f"keeps its history in ({', '.join(field.name for field in recorded)})"
        )
    start, end = fields
    if len(key) < 2 or key[-1] != start.name:
        raise InvalidInput(
            f"{operation}: the key is ({', '.join(key)}); a table with history has a key that ends "
            f"with the start of a version, such as key=['id', {start.name!r}]"
        )
    if snapshot.table.sequence:
        raise UnsupportedOperation(
            f"{operation}: the table has an event order by ({', '.join(snapshot.table.sequence)}) "
            "and would keep one version of each key; create a table without sequence= for history"
        )
    if not isinstance(start.type, _TIMES):
        raise InvalidInput(
            f"{operation}: column {start.name!r} is {type_name(start.type)}; a version begins at a "
            "date, a time or a number without a fraction of a float"
        )
    if end.type != start.type or not end.nullable:
        raise InvalidInput(
            f"{operation}: column {end.name!r} must have the type of {start.name!r}, "
            f"{type_name(start.type)}, and may be NULL, which the current version has"
        )
    for field in schema:
        if not field.nullable and field.default is None and field.name not in key:
            raise InvalidInput(
                f"{operation}: column {field.name!r} is NOT NULL and has no default; a delete is "
                "recorded as a row without values: relax_not_null, or give it a default"
            )
    return HistoryColumns(start, end)


def holds_at(snapshot: Snapshot, moment: Any) -> Predicate:
    """The condition that a version held at a moment of event time, for the property's columns."""
    fields = named_history(snapshot.table.properties, snapshot.schema)
    if not fields:
        raise InvalidInput(
            "scan: as_of_event= needs a table with history; apply_changes(…, history=…) makes one, "
            "or set the property history to the two columns"
        )
    start, end = fields
    at = _moment(moment, start)
    return And(
        (
            Comparison(ComparisonOp.LE, Column(start.name), at),
            Or((IsNull(Column(end.name)), Comparison(ComparisonOp.GT, Column(end.name), at))),
        )
    )


def _moment(moment: Any, field: Field) -> Literal:
    values = moment
    try:
        if isinstance(moment, str) and isinstance(field.type, Timestamp | Nanos | Date):
            values = _parsed(moment, field)
        array = conform_values(pa.array([values]), field.type, field.name)
    except (pa.ArrowException, SchemaMismatch, ValueError, TypeError, OverflowError) as error:
        raise InvalidInput(
            f"scan: as_of_event={repr_of(moment)} is no value of column {field.name!r}, "
            f"{type_name(field.type)}: {error}"
        ) from error
    if array.null_count:
        raise InvalidInput("scan: as_of_event= is NULL; give a moment, or leave it out")
    scalar = array[0]
    return Literal(scalar.value if pa.types.is_temporal(array.type) else scalar.as_py(), field.type)


def _parsed(text: str, field: Field) -> Any:
    from datetime import date, datetime  # noqa: PLC0415 - only text needs it

    if isinstance(field.type, Date):
        return date.fromisoformat(text)
    moment = datetime.fromisoformat(text)
    wants_zone = field.type.utc  # type: ignore[union-attr] # text is parsed for times only
    if (moment.tzinfo is not None) != wants_zone:
        raise ValueError("it must have an offset from UTC" if wants_zone else "it has an offset")
    return moment
