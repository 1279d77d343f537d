"""Convert plain Python data to Arrow: a list of dicts is rows, a dict of lists is columns.

Soundness: pyarrow infers the type of each column, and then the rules for Arrow data apply
(`rowsieve.types.conform`). Given a type, pyarrow would truncate 1.5 to 1 and read a naive datetime
as UTC. Mixed values that pyarrow would change are rejected (`mixed_values`). Messages name an
invalid value by column and row, counted from 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rowsieve.changes.data.absent_values import RequiredNames, nested_fields
from rowsieve.changes.data.mixed_values import advice_for, members_of, refuse_mixed
from rowsieve.changes.data.pandas_data import refuse_mixed_series
from rowsieve.changes.data.polars_data import refuse_polars_objects
from rowsieve.errors import InvalidData, InvalidInput, repr_of
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Map

_FAILURES = (pa.ArrowException, OverflowError, TypeError, ValueError, NotImplementedError)


def is_python_data(data: object) -> bool:
    """Return whether this is a list of dicts or a dict of lists."""
    return isinstance(data, Mapping) or (
        isinstance(data, list | tuple) and all(isinstance(row, Mapping) for row in data)
    )


def gives(data: object, protocol: str) -> bool:
    """Return whether this object has the protocol's method; a class itself does not count."""
    return not isinstance(data, type) and hasattr(data, protocol)


def kind_of(data: object) -> str:
    """Return the name of an object's type, or of a class, for a message; of a list its items'."""
    if isinstance(data, type):
        return f"the class {data.__name__}"
    if isinstance(data, list) and data:
        return f"a list of {type(data[0]).__name__}"
    return type(data).__name__


def from_python(data: Any, operation: str, required: RequiredNames | None) -> pa.Table:
    """Convert rows or columns to a table; the schema of `required` says which columns are maps."""
    columns = data if isinstance(data, Mapping) else members_of(data)
    for name in columns:
        if not (isinstance(name, str) and (name.isascii() or _is_text(name))):
            raise InvalidInput(
                f"{operation}: column names must be text that can be encoded as UTF-8, not {name!a}"
            )
    nested = () if required is None else nested_fields(required.schema)
    if required is not None and not isinstance(data, Mapping):
        required.check_rows(data)
    elif required is not None and nested:
        required.check_columns(data)
    maps: dict[str, Map] = {}
    if nested:
        maps = {field.name: field.type for field in nested if isinstance(field.type, Map)}
    arrays = {}
    for name, values in columns.items():
        arrays[name] = _array(values, f"{operation}: column {name!r}", maps.get(name))
    if len(set(map(len, arrays.values()))) > 1:
        shown = ", ".join(f"{name!r} has {len(array)}" for name, array in arrays.items())
        raise InvalidData(f"{operation}: all columns must have the same number of values; {shown}")
    if not columns and data:  # rows of what the table has by default
        return pa.table({"": pa.nulls(len(data))}).select([])
    return pa.table(arrays)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _array(values: Any, what: str, map_type: Map | None) -> Any:
    if type(values) is not list and (exported := _exported(values, what)) is not None:
        return exported
    if isinstance(values, str | bytes | bytearray) or not isinstance(values, Sequence):
        raise InvalidData(f"{what} must be a list of values, not {kind_of(values)}")
    values = list(values)
    if map_type is not None:
        return _map_array(values, what, map_type)
    refuse_mixed(values, what)
    return _inferred(values, what)


def _exported(values: Any, what: str) -> Any:
    """Return the array of another library's object; None if the object has no values."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if gives(values, "__arrow_c_stream__"):
        if type(values).__module__.partition(".")[0] == "pandas":
            refuse_mixed_series(values, what)
        return _handed_over(values, what, pa.chunked_array)
    if gives(values, "__arrow_c_array__"):
        return _handed_over(values, what, pa.array)
    if _is_numpy_like(values):
        if getattr(getattr(values, "dtype", None), "kind", None) == "O":
            refuse_mixed(values, what)
        return _inferred(values, what)
    return None


def _handed_over(values: Any, what: str, take: Callable[[Any], Any]) -> Any:
    """Import the Arrow data that another library's object exports."""
    refuse_polars_objects(values, what)
    try:
        return take(values)
    except _FAILURES as error:
        raise InvalidData(
            f"{what}: the {kind_of(values)} could not be read as Arrow values: {error}"
        ) from error


def _is_numpy_like(values: Any) -> bool:
    """Return whether this is a one-dimensional array; False for a NumPy scalar."""
    return (
        gives(values, "__array__") and getattr(values, "ndim", 1) == 1 and gives(values, "__len__")
    )


def _inferred(values: Any, what: str) -> pa.Array:
    try:
        return pa.array(values)
    except OverflowError:  # beyond int64
        for type_ in (pa.uint64(), pa.decimal128(38, 0)):
            try:
                return pa.array(values, type_)
            except _FAILURES:
                continue
        row = next(i for i, value in enumerate(values) if _is_too_long(value))
        raise InvalidData(
            f"{what}, row {row}: {_short(values[row])} has more than 38 digits; give it as text "
            "for a numeric column, or as a float"
        ) from None
    except _FAILURES as error:
        if not _is_array(values[:0]):
            raise InvalidData(
                f"{what}: a {kind_of(values)} of {values.dtype} cannot be converted to Arrow: "
                f"{error}"
            ) from error
        row = _first_failing(values)
        raise InvalidData(
            f"{what}, row {row}: {_short(values[row])} does not fit the values before it: {error}; "
            f"{advice_for(error)}"
        ) from error


def _map_array(values: list[Any], what: str, type_: Map) -> pa.Array:
    """Convert dicts, or lists of pairs, to a map array."""
    pairs = [_pairs(value, f"{what}, row {row}") for row, value in enumerate(values)]
    flat = [pair for entry in pairs if entry is not None for pair in entry]
    if not flat:
        return pa.array(pairs, arrow_type(type_))
    keys, items = [key for key, _ in flat], [item for _, item in flat]
    for side in (keys, items):
        refuse_mixed(side, what)
    types = [_inferred(side, what).type for side in (keys, items)]
    return pa.array(pairs, pa.map_(*types))


def _pairs(value: Any, what: str) -> list[tuple[Any, Any]] | None:
    """Return the entries of one map, None for NULL."""
    if value is None:
        return None
    entries = list(value.items()) if isinstance(value, Mapping) else value
    if not isinstance(entries, list | tuple) or any(
        not isinstance(pair, list | tuple) or len(pair) != 2 for pair in entries
    ):
        raise InvalidData(f"{what}: a map must be a dict or a list of pairs, not {_short(value)}")
    return [(key, item) for key, item in entries]


def _first_failing(values: Any) -> int:
    """Return the index of the first value that pyarrow cannot convert with those before it."""
    fine, failing = 0, len(values)
    while failing - fine > 1:
        middle = (fine + failing) // 2
        fine, failing = (middle, failing) if _is_array(values[:middle]) else (fine, middle)
    return failing - 1


def _is_array(values: Any) -> bool:
    try:
        pa.array(values)
    except _FAILURES:
        return False
    return True


def _is_too_long(value: object) -> bool:
    try:
        pa.array([value], pa.decimal128(38, 0))
    except _FAILURES:
        return not isinstance(value, float)
    return False


def _short(value: object) -> str:
    text = " ".join(repr_of(value).split())
    return text if len(text) <= 60 else f"{text[:59]}…"
