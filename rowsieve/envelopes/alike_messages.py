"""Messages of Debezium that differ in their rows and log numbers only, as most of a block do.

Their type has what they share as constants, and no field that nobody would read of them, so that
fewer objects are made and freed for each.

Soundness: the type accepts only messages that the general type reads alike. A constant is a
literal, a name that the first message lacks may only be NULL, and numbers of the order are neither
NULL nor empty, so that no later order is asked for. A block with another message is decoded by the
general type.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Raw, UnsetType

from rowsieve.envelopes.event_orders import EventOrder
from rowsieve.envelopes.row_structs import NO_TEXT, RowType

_NAMES: Final = ("connector", "db", "schema", "table")
_SNAPSHOT: Final = "snapshot"
_Never: TypeAlias = Literal["\0"] | UnsetType
_Number: TypeAlias = int | Annotated[str, msgspec.Meta(min_length=1)]


@dataclass(frozen=True, slots=True)
class Alike:
    """What messages share: the values of names in `source`, and which log numbers they have.

    `numbers` are the names of those in each message, `others` of those in some. A message with a
    schema has its payload beside it.
    """

    constants: tuple[tuple[str, str | None], ...]
    numbers: tuple[str, ...]
    others: tuple[str, ...]
    beside_schema: bool

    def type_of(self, row: RowType, operations: Iterable[str]) -> Any:
        """The type of these messages, with the attributes that the general type has."""
        source = msgspec.defstruct(
            "Source",
            [
                *((name, Any, None) for name in self.others if name == _SNAPSHOT),
                *(_constant_field(name, value) for name, value in self.constants),
                *((name, _Number) for name in self.numbers),
                *((name, Any, None) for name in self.others if name != _SNAPSHOT),
            ],
            gc=False,
            kw_only=True,
        )
        fields: list[Any] = [
            ("before", row.struct | None, None),
            ("after", row.struct | None, None),
            ("source", source),
            ("op", Literal[tuple(operations)]),
            ("payload", _Never, UNSET),
        ]
        payload = msgspec.defstruct("Payload", fields, gc=False, kw_only=True)
        if not self.beside_schema:
            return payload
        outside: list[Any] = [(name, _Never, UNSET) for name in ("before", "after", "source", "op")]
        message = [("schema", Raw, NO_TEXT), ("payload", payload), *outside]
        return msgspec.defstruct("Message", message, gc=False, kw_only=True)


def _constant_field(name: str, value: str | None) -> Any:
    return (name, None, None) if value is None else (name, Literal[value])


def alike(message: Any, orders: Iterable[EventOrder]) -> Alike | None:
    """Return what messages like this one share; None if the general type reads them.

    `orders` are those of logs, the best first.
    """
    payload = message.get("payload", message) if isinstance(message, dict) else None
    source = payload.get("source") if isinstance(payload, dict) else None
    if not isinstance(source, dict):
        return None
    constants = {name: source.get(name) for name in (*_NAMES, _SNAPSHOT)}
    others = []
    if not isinstance(constants[_SNAPSHOT], str | None):
        others.append(_SNAPSHOT)
        del constants[_SNAPSHOT]
    for order in orders:
        numbers = tuple(each.name for each in order.fields if not each.optional)
        optional = [each.name for each in order.fields if each.optional]
        if all(_is_number(source.get(name)) for name in numbers):
            break
        constants.update((name, source.get(name)) for name in (*numbers, *optional))
    else:
        return None
    if not all(isinstance(value, str | None) for value in constants.values()):
        return None
    return Alike(tuple(constants.items()), numbers, (*others, *optional), "payload" in message)


def _is_number(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and value != "")
