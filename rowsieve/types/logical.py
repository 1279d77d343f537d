"""Logical types of columns, independent of file formats and engines.

A closed family of frozen values; use `match`. Nested types hold `Field`s, whose ids survive
renames. `type_name` is the only spelling of types in messages, in the log and in the docs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Bool:
    """True or false; false sorts first."""


@dataclass(frozen=True, slots=True)
class Int:
    """An integer of 8, 16, 32 or 64 bits."""

    bits: int = 64
    signed: bool = True


@dataclass(frozen=True, slots=True)
class Float:
    """An IEEE 754 number of 32 or 64 bits."""

    bits: int = 64


@dataclass(frozen=True, slots=True)
class Decimal:
    """An exact number of `precision` digits (at most 38), `scale` of them after the point."""

    precision: int
    scale: int


ANY_DECIMAL: Final = Decimal(38, 18)
"""The type of a number without a precision, which engines read with any number of digits."""


@dataclass(frozen=True, slots=True)
class String:
    """UTF-8 text; sorts by bytes, which is by code point."""


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes; sort as unsigned bytes."""


@dataclass(frozen=True, slots=True)
class Date:
    """Days since 1970-01-01."""


@dataclass(frozen=True, slots=True)
class Time:
    """Microseconds since midnight."""


@dataclass(frozen=True, slots=True)
class Timestamp:
    """Microseconds since 1970-01-01; an instant if `utc`, otherwise a local (wall clock) time.

    `zone` is the declared time zone of the column. Instants with different zones have equal types;
    engines in which the zone is part of the type get the declared zone.
    """

    utc: bool = False
    zone: str = field(default="UTC", compare=False)


@dataclass(frozen=True, slots=True)
class Nanos:
    """Nanoseconds since 1970-01-01, of the years 1677 to 2262; an instant if `utc`, else local."""

    utc: bool = False


@dataclass(frozen=True, slots=True)
class Uuid:
    """16 bytes; sorts as unsigned bytes."""


@dataclass(frozen=True, slots=True)
class Json:
    """JSON text, stored unchanged. It has no order and cannot be a key."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Months, days and microseconds; compared by total length, see `rowsieve.types.interval_bytes`.

    Different intervals may be equal (1 month and 30 days), so it cannot be a key.
    """


@dataclass(frozen=True, slots=True)
class Numeric:
    """A number of any size, see `rowsieve.types.numeric_bytes`; NaN is equal to itself and last.

    It is stored as an approximate float and exact bytes; it cannot be a key (invariant I5).
    """


@dataclass(frozen=True, slots=True)
class Enum:
    """Text that is one of `labels`; see `rowsieve.types.enums`.

    It is stored as text and sorts as such. PostgreSQL compares it by the order of the labels. It
    cannot be a key, and is always a column of its own: never inside a list, struct or map.
    """

    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class List:
    """A list of one element type."""

    element: Field


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Map:
    """Pairs of key and value; keys are not NULL."""

    key: Field
    value: Field


_SHOWN_LABELS = 8  # in messages

LogicalType: TypeAlias = (
    Bool
    | Int
    | Float
    | Decimal
    | String
    | Binary
    | Date
    | Time
    | Timestamp
    | Nanos
    | Uuid
    | Json
    | Interval
    | Numeric
    | Enum
    | List
    | Struct
    | Map
)


@dataclass(frozen=True, slots=True)
class Field:
    """A column or a nested field: `id` is unique in its table and never reused.

    `added` is the id of the schema that added the column; 0 for the columns of the table's creation
    and nested fields. In rows of older schemas it has the value `fill`, which never changes
    (invariant 14). `default` is the value for new rows that lack the column. Both are text, see
    `rowsieve.types.stored_defaults`; None is NULL. `alias` is another system's name for the type:
    see `rowsieve.types.aliases`. `comment` is for people. `size` is the number of bytes or items
    that each value of a binary or a list must have: writes check it, reads do not rely on it.
    `float_since` is the id of the schema that made an integer a float; 0 for all other columns. In
    rows of older schemas it has no NaN.
    """

    id: int
    name: str
    type: LogicalType
    nullable: bool = True
    added: int = 0
    fill: str | None = None
    default: str | None = None
    alias: str | None = None
    comment: str | None = None
    size: int | None = None
    float_since: int = 0


def type_name(type_: LogicalType) -> str:
    """Return the type's name: `int64`, `decimal(10,2)`, `list<string>`, `timestamptz`.

    That of an enum has its first labels only; `rowsieve.types.enums.spelled` has all.
    """
    match type_:
        case (
            Bool()
            | String()
            | Binary()
            | Date()
            | Time()
            | Uuid()
            | Json()
            | Interval()
            | Numeric()
        ):
            return type(type_).__name__.lower()
        case Int(bits=bits, signed=signed):
            return f"{'' if signed else 'u'}int{bits}"
        case Float(bits=bits):
            return f"float{bits}"
        case Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case Timestamp(utc=utc):
            return "timestamptz" if utc else "timestamp"
        case Nanos(utc=utc):
            return "timestamptz_ns" if utc else "timestamp_ns"
        case Enum(labels=labels):
            more = ", …" if len(labels) > _SHOWN_LABELS else ""
            return f"enum({', '.join(f'{each!r}' for each in labels[:_SHOWN_LABELS])}{more})"
        case List(element=element):
            return f"list<{type_name(element.type)}>"
        case Struct(fields=fields):
            inner = ", ".join(f"{field.name}: {type_name(field.type)}" for field in fields)
            return f"struct<{inner}>"
        case Map(key=key, value=value):
            return f"map<{type_name(key.type)}, {type_name(value.type)}>"
        case _:
            assert_never(type_)


def is_nested(type_: LogicalType) -> bool:
    """Return whether it is a list, struct or map."""
    return isinstance(type_, List | Struct | Map)


def is_ordered(type_: LogicalType) -> bool:
    """Return whether stored values have a total order that statistics and keys may use."""
    return not isinstance(type_, List | Struct | Map | Json | Interval | Numeric)
