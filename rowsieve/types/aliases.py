"""Aliases: types of other systems that are stored as a type of ours, named by an extension.

A column with an alias is stored, shown and read as its storage; the alias stays in the schema and
in the metadata of its field, as in `rowsieve.range.1`. Soundness: most systems order these values
in ways of their own, so conditions may not compare them; their fields and items may be compared.

`<type>.0` is an opaque form of any type: bytes that only their writer can read, which may not be
compared and have no statistics.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rowsieve.types.logical import Binary, Bool, Int, List, LogicalType, Struct

PREFIX: Final = "rowsieve."
GEOMETRY: Final = "geometry.1"


@dataclass(frozen=True, slots=True)
class Alias:
    """The storage type of an alias as text, its test, and whether values sort as stored."""

    form: str
    fits: Callable[[LogicalType], bool]
    compares: bool = False


def _names(type_: LogicalType) -> tuple[str, ...]:
    return tuple(field.name for field in type_.fields) if isinstance(type_, Struct) else ()


def _is_range(type_: LogicalType) -> bool:
    if _names(type_) != ("lower", "upper", "lower_inclusive", "upper_inclusive", "empty"):
        return False
    assert isinstance(type_, Struct)
    lower, upper, *flags = (field.type for field in type_.fields)
    return lower == upper and flags == [Bool()] * 3


def _is_array(type_: LogicalType) -> bool:
    if _names(type_) != ("dimensions", "elements"):
        return False
    assert isinstance(type_, Struct)
    dimensions, elements = (field.type for field in type_.fields)
    if not (isinstance(dimensions, List) and isinstance(elements, List)):
        return False
    one = dimensions.element.type
    return (
        isinstance(one, Struct)
        and _names(one) == ("lower", "length")
        and all(field.type == Int(32) for field in one.fields)
    )


def _is_int2vector(type_: LogicalType) -> bool:
    return isinstance(type_, List) and type_.element.type == Int(16)


def _is_opaque(type_: LogicalType) -> bool:
    return type_ == Binary()


ALIASES: Final[Mapping[str, Alias]] = {
    "range.1": Alias(
        "a struct of lower, upper, lower_inclusive, upper_inclusive and empty", _is_range
    ),
    "array.1": Alias(
        "a struct of dimensions, a list of structs of lower and length (int32), and elements, a "
        "list",
        _is_array,
    ),
    "system_timestamp.1": Alias(
        "uint64", lambda type_: type_ == Int(64, signed=False), compares=True
    ),
    "acl_item.1": Alias("bytes", _is_opaque),
    "int2vector.1": Alias("a list of int16", _is_int2vector),
    GEOMETRY: Alias("bytes, WKB", _is_opaque),
}
_TYPES: Final = ("numeric", "interval", "uuid", "json", *(name[:-2] for name in ALIASES))
OPAQUES: Final[Mapping[str, Alias]] = {f"{name}.0": Alias("bytes", _is_opaque) for name in _TYPES}
"""The opaque forms."""


def find_alias(name: str) -> Alias | None:
    """Return the alias of this name, such as `range.1`; None if there is none."""
    return ALIASES.get(name) or OPAQUES.get(name)


def may_compare(name: str) -> bool:
    """Return whether conditions may compare values of a column with this alias."""
    alias = find_alias(name)
    return alias is not None and alias.compares


def is_opaque(name: str | None) -> bool:
    """Return whether a column with this alias holds bytes without statistics."""
    return name in OPAQUES
