"""Values of lists, structs and maps: their members are read as values of a column are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from rowsieve.types.encodings import arrow_type, member_field
from rowsieve.types.logical import Field, List, LogicalType, Map, Struct

ReadMember: TypeAlias = Callable[[list[Any], Field], pa.Array]


def read_nested(values: Sequence[Any], type_: LogicalType, read: ReadMember) -> pa.Array:
    """Return an array of a nested type; `read` converts the values of a member.

    ValueError for a value of another kind, and for a struct that lacks a field or has another one.
    """
    absent = np.array([value is None for value in values], bool)
    present = [value for value in values if value is not None]
    match type_:
        case List(element=element):
            _check_kind(present, list, "a list")
            items = read([item for value in present for item in value], element)
            return pa.ListArray.from_arrays(
                _offsets(values), items, type=arrow_type(type_), mask=pa.array(absent)
            )
        case Struct(fields=fields):
            return _structs(values, fields, read, absent)
        case Map(key=key, value=value):
            _check_kind(present, dict, "an object")
            keys = read([name for each in present for name in each], key)
            items = read([item for each in present for item in each.values()], value)
            return pa.MapArray.from_arrays(
                _offsets(values), keys, items, type=arrow_type(type_), mask=pa.array(absent)
            )
        case _:
            raise TypeError(type_)


def _structs(
    values: Sequence[Any], fields: Sequence[Field], read: ReadMember, absent: Any
) -> pa.Array:
    present = [value for value in values if value is not None]
    _check_kind(present, dict, "an object")
    names = {field.name for field in fields}
    for value in present:
        if value.keys() != names:
            other = sorted(value.keys() ^ names)
            raise ValueError(f"a struct has or lacks the field {other[0]!r}")
    empty: Mapping[str, Any] = dict.fromkeys(names)
    rows = [empty if value is None else value for value in values]
    members = [read([row[field.name] for row in rows], field) for field in fields]
    return pa.StructArray.from_arrays(
        members, fields=[member_field(field) for field in fields], mask=pa.array(absent)
    )


def _check_kind(values: Sequence[Any], kind: type, name: str) -> None:
    if not all(isinstance(value, kind) for value in values):
        raise ValueError(f"a value is not {name}")


def _offsets(values: Sequence[Any]) -> pa.Array:
    lengths = [0 if value is None else len(value) for value in values]
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
