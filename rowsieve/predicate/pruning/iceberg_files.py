"""Bounds of Iceberg's manifests: binary single values by field id, as pyiceberg's `DataFile` has.

Soundness: a value of another length than its type's is unknown, such as one from before the type
was promoted in a way that changes its meaning; a pyiceberg schema with other types is refused.
Iceberg's bounds leave NaN out, and an upper bound of text that was truncated was raised.
"""

from __future__ import annotations

import decimal
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from rowsieve.errors import InvalidInput
from rowsieve.predicate.pruning.file_bounds import FileBounds, leaves
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import LogicalType, type_name
from rowsieve.types.schema import Schema


def iceberg_bounds(
    files: Iterable[Any], schema: Schema | pa.Schema, ids: Mapping[int, str] | Any
) -> FileBounds:
    """Return the facts of Iceberg's data files, in their order.

    `files`: objects with the fields of `pyiceberg.manifest.DataFile`. `ids`: the names of columns
    by field id, with dots for fields of structs, or the pyiceberg schema of the table.
    """
    listed = list(files)
    fields = leaves(schema)
    bounds = FileBounds(
        min={}, max={}, nulls={}, nans={}, rows=[file.record_count for file in listed]
    )
    used = {
        id_
        for file in listed
        for facts in (file.lower_bounds, file.upper_bounds, file.null_value_counts)
        for id_ in facts or ()
    }
    for id_ in sorted(used):
        name = _name(ids, id_)
        if name is None or name not in fields:
            continue
        type_ = fields[name][1].type
        _check_type(ids, id_, name, type_)
        sides = (("min", "lower_bounds"), ("max", "upper_bounds"))
        if (read := _reader(type_)) is not None:
            for side, attribute in sides:
                bounds[side][name] = _bounds(listed, attribute, id_, type_, read)  # type: ignore[literal-required]
        counts = (("nulls", "null_value_counts"), ("nans", "nan_value_counts"))
        for side, attribute in counts:
            bounds[side][name] = [  # type: ignore[literal-required]
                (getattr(file, attribute) or {}).get(id_) for file in listed
            ]
    return bounds


def _name(ids: Mapping[int, str] | Any, id_: int) -> str | None:
    if isinstance(ids, Mapping):
        return ids.get(id_)
    if (find := getattr(ids, "find_column_name", None)) is None:
        raise InvalidInput(
            "iceberg_bounds: ids= takes the names of columns by field id, or a schema of "
            f"pyiceberg, not {type(ids).__name__}"
        )
    name: str | None = find(id_)
    return name


def _check_type(ids: Any, id_: int, name: str, type_: LogicalType) -> None:
    """Raise InvalidInput if a schema of pyiceberg has another type for a column."""
    if isinstance(ids, Mapping):
        return
    theirs = str(ids.find_type(id_)).replace(" ", "")
    if theirs.partition("<")[0] in ("struct", "list", "map"):
        return
    if theirs.partition("[")[0] not in _NAMES.get(type(type_), lambda _: ())(type_):
        raise InvalidInput(
            f"iceberg_bounds: the column {name!r} is {theirs} in Iceberg and {type_name(type_)} "
            "in the schema; pass the schema of the table, such as table.schema().as_arrow()"
        )


def _bounds(
    files: list[Any],
    attribute: str,
    id_: int,
    type_: LogicalType,
    read: Callable[[bytes], Any],
) -> pa.Array:
    values = [(getattr(file, attribute) or {}).get(id_) for file in files]
    return pa.array(
        [None if value is None else read(bytes(value)) for value in values], _storage(type_)
    )


def _storage(type_: LogicalType) -> pa.DataType:
    """Return the type of the stored bounds, which `prune` converts to the column's type."""
    match type_:
        case logical.Int():
            return pa.int64()
        case logical.Float():
            return pa.float64()
        case _:
            return arrow_type(type_)


def _number(formats: Mapping[int, str]) -> Callable[[bytes], Any]:
    """Read a little-endian number by its length; others are unknown."""
    readers = {length: struct.Struct(f"<{code}") for length, code in formats.items()}

    def read(value: bytes) -> Any:
        reader = readers.get(len(value))
        return None if reader is None else reader.unpack(value)[0]

    return read


def _text(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _reader(type_: LogicalType) -> Callable[[bytes], Any] | None:
    """Return how a single value of a type is read; None if the type has no bounds here."""
    if isinstance(type_, logical.Decimal):
        scale, digits = type_.scale, type_.precision

        def unscaled(value: bytes) -> decimal.Decimal | None:
            number = int.from_bytes(value, "big", signed=True)
            if not value or abs(number) >= 10**digits:
                return None
            return decimal.Decimal(number).scaleb(-scale, decimal.Context(prec=40))

        return unscaled
    if isinstance(type_, logical.Int) and not type_.signed and type_.bits == 64:
        return None  # Iceberg has no such type
    return _READERS.get(type(type_))


_READERS: Final[Mapping[type[LogicalType], Callable[[bytes], Any]]] = {
    logical.Bool: lambda value: bool(value[0]) if len(value) == 1 else None,
    logical.Int: _number({4: "i", 8: "q"}),
    logical.Float: _number({4: "f", 8: "d"}),
    logical.Date: _number({4: "i"}),
    logical.Time: _number({8: "q"}),
    logical.Timestamp: _number({8: "q"}),
    logical.Nanos: _number({8: "q"}),
    logical.String: _text,
    logical.Binary: bytes,
    logical.Uuid: lambda value: value if len(value) == 16 else None,
}
_ZONED: Final = ("timestamp", "timestamptz")
_NAMES: Final[Mapping[type[LogicalType], Callable[[Any], tuple[str, ...]]]] = {
    logical.Bool: lambda _: ("boolean",),
    logical.Int: lambda _: ("int", "long"),
    logical.Float: lambda _: ("float", "double"),
    logical.Decimal: lambda type_: (f"decimal({type_.precision},{type_.scale})",),
    logical.Date: lambda _: ("date",),
    logical.Time: lambda _: ("time",),
    logical.Timestamp: lambda type_: (_ZONED[type_.utc],),
    logical.Nanos: lambda type_: (f"{_ZONED[type_.utc]}_ns",),
    logical.String: lambda _: ("string",),
    logical.Binary: lambda _: ("binary", "fixed"),
    logical.Uuid: lambda _: ("uuid",),
}
"""Iceberg's names of the types whose single values are read as those of a type of ours."""
