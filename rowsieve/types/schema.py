"""A table's schema: top-level fields by id, looked up by name or by id.

Names match exactly, or else uniquely ignoring case. The log stores the JSON form, which the format
reference documents.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, assert_never

from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    SchemaMismatch,
    UnknownColumn,
    UnsupportedProtocol,
    did_you_mean,
)
from rowsieve.types.enums import named_enum, spelled
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Enum,
    Field,
    Float,
    Int,
    Interval,
    Json,
    List,
    LogicalType,
    Map,
    Nanos,
    Numeric,
    String,
    Struct,
    Time,
    Timestamp,
    Uuid,
    type_name,
)

_FLAT: tuple[LogicalType, ...] = (
    Bool(),
    *(Int(bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)),
    Float(32),
    Float(64),
    String(),
    Binary(),
    Date(),
    Time(),
    Timestamp(utc=False),
    Timestamp(utc=True),
    Nanos(utc=False),
    Nanos(utc=True),
    Uuid(),
    Json(),
    Interval(),
    Numeric(),
)
_SIMPLE: Mapping[str, LogicalType] = {type_name(type_): type_ for type_ in _FLAT}
_NAME = operator.attrgetter("name")
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of one schema version; each change of the table's schema increments `id`.

    The names, the fields by name and the hash are computed at their first use, once: all take as
    long as the schema is wide. Threads may compute them twice.
    """

    id: int
    fields: tuple[Field, ...]
    _by_name: Mapping[str, Field] | None = dataclass_field(
        default=None, init=False, repr=False, compare=False
    )
    _names: tuple[str, ...] | None = dataclass_field(
        default=None, init=False, repr=False, compare=False
    )
    _hash: int | None = dataclass_field(default=None, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        if (hash_value := self._hash) is None:
            hash_value = hash((self.id, self.fields))
            object.__setattr__(self, "_hash", hash_value)
        return hash_value

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    @property
    def names(self) -> tuple[str, ...]:
        """Column names in schema order."""
        if (names := self._names) is None:
            names = tuple(map(_NAME, self.fields))
            object.__setattr__(self, "_names", names)
        return names

    def field(self, name: str) -> Field:
        """Return the column with this name, or else the only one that differs in case only.

        UnknownColumn if there is none, or more than one that differs in case.
        """
        if (by_name := self._by_name) is None:
            by_name = {field.name: field for field in reversed(self.fields)}
            object.__setattr__(self, "_by_name", by_name)
        if (column := by_name.get(name)) is not None:
            return column
        folded = [field for field in self.fields if field.name.lower() == name.lower()]
        if len(folded) == 1:
            return folded[0]
        raise UnknownColumn(self._unknown(name, folded), name=name)

    def select(self, names: tuple[str, ...]) -> Schema:
        """Return the schema with only these columns, in this order."""
        return self if names == self.names else Schema(self.id, tuple(map(self.field, names)))

    def _unknown(self, name: str, folded: list[Field]) -> str:
        if folded:
            return (
                f"column {name!r} is ambiguous: it matches "
                f"{', '.join(repr(field.name) for field in folded)}; write the exact name"
            )
        hint = did_you_mean(name, self.names)
        return f"no column {name!r} in ({', '.join(self.names)}){hint}"


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return the documented JSON form."""
    return {"id": schema.id, "fields": [_field_to_json(field) for field in schema.fields]}


def schema_from_json(value: Mapping[str, Any]) -> Schema:
    """Decode the documented JSON form.

    UnsupportedProtocol for an unknown type, CorruptData for malformed JSON.
    """
    try:
        return Schema(int(value["id"]), tuple(_field_from_json(item) for item in value["fields"]))
    except (KeyError, TypeError, ValueError, SchemaMismatch) as error:
        raise CorruptData(
            f"a schema in the log is malformed: {error!r}; restore the log from a copy"
        ) from error


def named_type(text: str) -> LogicalType:
    """Return the type with this name, such as `int64`; InvalidInput for an unknown name."""
    try:
        parsed_type = named_enum(text) or _type_from_json(text.replace(", ", ","))
    except UnsupportedProtocol as error:
        raise InvalidInput(
            f"there is no type {text!r}; the types are {', '.join(_SIMPLE)}, decimal(10,2) and "
            "enum('a', 'b'); lists, structs and maps are given as pyarrow types"
        ) from error
    if isinstance(parsed_type, Decimal) and not (
        0 <= parsed_type.scale <= parsed_type.precision and 1 <= parsed_type.precision <= 38
    ):
        raise InvalidInput(
            f"there is no type {text!r}: a decimal has 1 to 38 digits, 0 to all of them after the "
            "point, as in decimal(10,2)"
        )
    return parsed_type


def _field_to_json(field: Field) -> dict[str, Any]:
    json_form: dict[str, Any] = {
        "id": field.id,
        "name": field.name,
        "type": _type_to_json(field.type),
        "nullable": field.nullable,
    }
    if isinstance(field.type, Timestamp) and field.type.zone != "UTC":
        json_form["zone"] = field.type.zone
    if field.added:
        json_form["added"] = field.added
    if field.fill is not None:
        json_form["fill"] = field.fill
    if field.default is not None:
        json_form["default"] = field.default
    if field.alias is not None:
        json_form["alias"] = field.alias
    if field.comment is not None:
        json_form["comment"] = field.comment
    if field.size is not None:
        json_form["size"] = field.size
    if field.float_since:
        json_form["float_since"] = field.float_since
    return json_form


def _field_from_json(value: Mapping[str, Any]) -> Field:
    type_ = _type_from_json(value["type"])
    if type_ == Timestamp(utc=True) and "zone" in value:
        type_ = Timestamp(utc=True, zone=str(value["zone"]))
    return Field(
        int(value["id"]),
        str(value["name"]),
        type_,
        bool(value["nullable"]),
        int(value.get("added", 0)),
        _text_or_none(value, "fill"),
        _text_or_none(value, "default"),
        _text_or_none(value, "alias"),
        _text_or_none(value, "comment"),
        int(value["size"]) if "size" in value else None,
        int(value.get("float_since", 0)),
    )


def _text_or_none(value: Mapping[str, Any], name: str) -> str | None:
    text = value.get(name)
    if not isinstance(text, str | None):
        raise TypeError(f"{name} of a column is {text!r}, not text")
    return text


def _type_to_json(type_: LogicalType) -> str | dict[str, Any]:
    match type_:
        case List(element=element):
            return {"list": _field_to_json(element)}
        case Struct(fields=fields):
            return {"struct": [_field_to_json(field) for field in fields]}
        case Map(key=key, value=value):
            return {"map": [_field_to_json(key), _field_to_json(value)]}
        case Enum():
            return spelled(type_)
        case (
            Bool()
            | Int()
            | Float()
            | Decimal()
            | String()
            | Binary()
            | Date()
            | Time()
            | Timestamp()
            | Nanos()
            | Uuid()
            | Json()
            | Interval()
            | Numeric()
        ):
            return type_name(type_)
        case _:
            assert_never(type_)


def _type_from_json(value: str | Mapping[str, Any]) -> LogicalType:
    if isinstance(value, str):
        if value in _SIMPLE:
            return _SIMPLE[value]
        if match := _DECIMAL.fullmatch(value):
            return Decimal(int(match[1]), int(match[2]))
        if (enum := named_enum(value)) is not None:
            return enum
        raise UnsupportedProtocol(
            f"the table has a column of type {value!r}, which this version of rowsieve does not "
            "know; upgrade rowsieve to read it"
        )
    if "list" in value:
        return List(_field_from_json(value["list"]))
    if "struct" in value:
        return Struct(tuple(_field_from_json(item) for item in value["struct"]))
    key, item = value["map"]
    return Map(_field_from_json(key), _field_from_json(item))


class ColumnNames:
    """Columns that names of data mean: the same one, else the only one that differs in case only.

    A name that is the exact name of a column never means another, so that `a` and `A` may both be
    columns, and data may have one without the other.
    """

    __slots__ = ("_exact", "_ignoring_case")

    def __init__(self, columns: Iterable[str]) -> None:
        self._exact = frozenset(columns)
        self._ignoring_case: dict[str, str | None] = {}
        for column in self._exact:
            folded = column.lower()
            self._ignoring_case[folded] = None if folded in self._ignoring_case else column

    def column(self, name: str) -> str:
        """Return the column that a name means; the name itself if it means none."""
        if name in self._exact:
            return name
        return self._ignoring_case.get(name.lower()) or name

    def columns(self, names: Iterable[str]) -> list[str]:
        """Return the column of each name."""
        return [self.column(name) for name in names]
