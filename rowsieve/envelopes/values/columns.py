"""Values of one column, as msgspec decoded them or as Arrow has them, become the column's type.

The values of one JSON kind are converted at once. Where that fails, halves are tried until the
failing rows are known, so an error names its event and the loop over rows is never in Python.
"""

from __future__ import annotations

import datetime
import decimal
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.envelopes.row_structs import NumberText, integers
from rowsieve.envelopes.values.nested_values import read_nested
from rowsieve.envelopes.values.readings import (
    WITH_FRACTIONS,
    TargetColumn,
    is_single,
    nearest_single,
    reading_of,
)
from rowsieve.envelopes.values.unsent import unsent_in_arrow, unsent_places
from rowsieve.errors import RowsieveError, SchemaMismatch, repr_of
from rowsieve.types import logical
from rowsieve.types.conform import conform_values
from rowsieve.types.encodings import arrow_type, is_bytes, is_text
from rowsieve.types.logical import Field

Indices = npt.NDArray[np.int64]

_CONVERSION_ERRORS: Final = (
    RowsieveError,
    pa.ArrowException,
    ValueError,
    TypeError,
    OverflowError,
    ArithmeticError,
    AttributeError,
)
_KINDS: Final[Mapping[type, str]] = {
    int: "int",
    bool: "bool",
    str: "str",
    NumberText: "number",
    float: "float",
    list: "list",
    dict: "dict",
    bytes: "bytes",
    msgspec.Raw: "raw",
    decimal.Decimal: "decimal",
    datetime.date: "date",
    datetime.datetime: "time",
    datetime.time: "time",
    datetime.timedelta: "time",
}
_ARROW_OF: Final[Mapping[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "str": pa.string(),
    "number": pa.string(),
    "float": pa.float64(),
    "bytes": pa.binary(),
}


@dataclass(slots=True)
class Column:
    """Values in the column's type; NULL where `unchanged` and where a reason says why not."""

    values: Any
    unchanged: Indices
    reasons: dict[int, str] = field(default_factory=dict)


def read_column(values: Sequence[Any] | pa.Array, target: TargetColumn) -> Column:
    """Convert values; a row that cannot be is in `reasons`, by its place."""
    if isinstance(values, pa.Array):
        return _of_arrow(values, target)
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if len(kinds) == 1 and (kind := _KINDS.get(next(iter(kinds)))) is not None:
        return _of_kind(kind, values, target)
    return _of_mixed(values, target)


def _of_mixed(values: Sequence[Any], target: TargetColumn) -> Column:
    """Convert the values of each kind, and put them together again."""
    by_type: dict[type, list[int]] = {}
    for place, value in enumerate(values):
        by_type.setdefault(type(value), []).append(place)
    by_type.pop(type(None), None)
    unchanged = by_type.pop(msgspec.UnsetType, [])
    column = Column(None, np.array(unchanged, np.int64))
    taken = np.full(len(values), -1, np.int64)
    arrays: list[pa.Array] = []
    for type_, places in by_type.items():
        kind = _KINDS.get(type_, type_.__name__)
        part = _of_kind(kind, [values[place] for place in places], target)
        index = np.array(places, np.int64)
        taken[index] = sum(map(len, arrays)) + np.arange(len(places))
        arrays.append(part.values)
        column.unchanged = np.concatenate([column.unchanged, index[part.unchanged]])
        column.reasons.update({places[at]: reason for at, reason in part.reasons.items()})
    stored = arrow_type(target.field.type)
    if arrays:
        column.values = pa.concat_arrays(arrays).take(pa.array(taken, mask=taken < 0))
    else:
        column.values = pa.nulls(len(values), stored)
    return column


def _of_kind(kind: str, values: Sequence[Any], target: TargetColumn) -> Column:
    unchanged = np.empty(0, np.int64)
    reasons: dict[int, str] = {}
    sent: Sequence[Any] | pa.Array = values
    if kind == "str" and not (logical.is_nested(target.field.type) or _is_document(target)):
        with suppress(UnicodeEncodeError):  # which is refused when it is converted
            sent = pa.array(values, pa.string())
    if target.rules.unavailable:
        unchanged = unsent_places(kind, sent, target.field.type)
        sent = _without(sent, unchanged)
    converted = _converted_or_halves(kind, sent, target, 0, reasons)
    return Column(converted, unchanged, reasons)


def _without(values: Any, places: Indices) -> Any:
    """The values, with NULL at these places."""
    if not len(places):
        return values
    if isinstance(values, pa.Array):
        taken = np.arange(len(values))
        return values.take(pa.array(taken, mask=np.isin(taken, places)))
    values = list(values)
    for place in places:
        values[place] = None
    return values


def _converted_or_halves(
    kind: str, values: Any, target: TargetColumn, start: int, reasons: dict[int, str]
) -> pa.Array:
    """Convert all values, or each half if that fails; a single one that fails is NULL."""
    try:
        return _converted(kind, values, target)
    except _CONVERSION_ERRORS as error:
        if _null_count(values) == len(values):
            return pa.nulls(len(values), arrow_type(target.field.type))
        if len(values) == 1:
            reasons[start] = _reason(error, target, values[0])
            return pa.nulls(1, arrow_type(target.field.type))
    middle = len(values) // 2
    return pa.concat_arrays(
        [
            _converted_or_halves(kind, values[:middle], target, start, reasons),
            _converted_or_halves(kind, values[middle:], target, start + middle, reasons),
        ]
    )


def _null_count(values: Any) -> int:
    return int(values.null_count if isinstance(values, pa.Array) else values.count(None))


def _converted(kind: str, values: Any, target: TargetColumn) -> pa.Array:
    field_ = target.field
    if kind == "null":
        return pa.nulls(len(values), arrow_type(field_.type))
    if isinstance(field_.type, logical.Json) and kind != "raw":
        return conform_values(_decoded_documents(kind, values, target), field_.type, field_.name)
    if not isinstance(values, pa.Array):
        kind, values = _numbers(kind, values, field_.type)
    if kind == "raw":
        return conform_values(_documents(values, target), field_.type, field_.name)
    if logical.is_nested(field_.type):
        if not isinstance(values, pa.Array):
            values = read_nested(values, field_.type, partial(_member, target))
        return conform_values(values, field_.type, field_.name)
    reading = reading_of(kind, target)
    if reading is None:
        advice = ""
        if kind in ("float", "decimal") and isinstance(field_.type, logical.Int):
            advice = f", {WITH_FRACTIONS}"
        raise SchemaMismatch(
            f"a value of the kind {kind} is not one of {_expected(target)}{advice}"
        )
    if kind == "float" and not isinstance(values, pa.Array) and is_single(field_.type):
        values = nearest_single(pa.array(values, pa.float64()))
    elif kind in _ARROW_OF and not isinstance(values, pa.Array):
        values = pa.array(values, _ARROW_OF[kind])
    elif kind in ("decimal", "date", "time") and not isinstance(values, pa.Array):
        values = pa.array(values)
    if kind == "dict":
        return _of_structs(values, target, reading)
    return conform_values(reading(values, target), field_.type, field_.name)


def _member(target: TargetColumn, items: list[Any], member: Field) -> pa.Array:
    """Convert the values of a member of a nested column; ValueError if one does not fit."""
    column = read_column(items, replace(target, field=member, declared=None, declared_text=False))
    for reason in column.reasons.values():
        raise ValueError(reason)
    if len(column.unchanged):
        raise ValueError(f"a part of it, {member.name!r}, was not sent")
    return column.values


def _of_structs(values: Sequence[Any], target: TargetColumn, reading: Any) -> pa.Array:
    present = [each for each in values if each is not None]
    converted = conform_values(reading(present, target), target.field.type, target.field.name)
    valid = np.array([each is not None for each in values])
    places = np.maximum(np.cumsum(valid) - 1, 0)
    return converted.take(pa.array(places, mask=~valid))


def _numbers(kind: str, values: Any, type_: logical.LogicalType) -> tuple[str, Any]:
    """Numbers of Python as those of Arrow, or as text where the column is to take the nearest."""
    if kind == "int":
        kind, values = _integers(values)
        if is_single(type_):
            return "number", values.cast(pa.string())
    elif kind == "decimal" and isinstance(type_, logical.Float):
        digits = [None if value is None else str(value) for value in values]
        return "number", pa.array(digits, pa.string())
    return kind, values


def _integers(values: Sequence[Any]) -> tuple[str, pa.Array]:
    try:
        return "int", integers(values)
    except OverflowError:
        digits = [None if value is None else str(value) for value in values]
        return "number", pa.array(digits, pa.string())


def _documents(values: Sequence[Any], target: TargetColumn) -> pa.Array:
    """JSON documents as text: those in JSON text, or the JSON itself."""
    raws = [None if each is None else bytes(each) for each in values]
    if target.rules.nested_json:
        return pa.array([None if raw == b"null" else raw for raw in raws], pa.binary()).cast(
            pa.string()
        )
    texts = [None if raw is None else msgspec.json.decode(raw, type=str | None) for raw in raws]
    return pa.array(texts, pa.string())


def _decoded_documents(kind: str, values: Any, target: TargetColumn) -> pa.Array:
    """JSON documents of events that were dicts or Arrow data, not text: as `_documents` has them.

    Of a document that is written as it is, its decoded value is what there is.
    """
    if _is_document(target) and not isinstance(values, pa.Array):
        values = [None if each is None else _document(each) for each in values]
    elif _is_document(target) or kind != "str":
        raise SchemaMismatch(f"a value of the kind {kind} is not one of {_expected(target)}")
    return values if isinstance(values, pa.Array) else pa.array(values, pa.string())


def _is_document(target: TargetColumn) -> bool:
    """Whether values of a column are JSON documents themselves, and not their text."""
    return target.rules.nested_json and isinstance(target.field.type, logical.Json)


def _document(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _reason(error: Exception, target: TargetColumn, value: Any) -> str:
    shown = bytes(value).decode("utf-8", "replace") if isinstance(value, msgspec.Raw) else value
    if isinstance(shown, pa.Scalar):
        shown = shown.as_py()
    text = repr_of(shown)
    text = text if len(text) <= 80 else f"{text[:80]}…"
    return f"column {target.field.name!r} cannot be {text}: {error}"


def _expected(target: TargetColumn) -> str:
    return f"the type {logical.type_name(target.field.type)}"


def _of_arrow(values: pa.Array, target: TargetColumn) -> Column:
    """Convert values of Arrow structs; a type that says what it is needs no reading."""
    kind = _arrow_kind(values.type)
    reasons: dict[int, str] = {}
    unchanged = np.empty(0, np.int64)
    if target.rules.unavailable:
        unchanged = unsent_in_arrow(values)
        values = _without(values, unchanged)
    return Column(_converted_or_halves(kind, values, target, 0, reasons), unchanged, reasons)


def _arrow_kind(type_: pa.DataType) -> str:
    for kind, is_kind in (
        ("null", pa.types.is_null),
        ("int", pa.types.is_integer),
        ("str", is_text),
        ("bytes", is_bytes),
        ("bool", pa.types.is_boolean),
        ("float", pa.types.is_floating),
        ("decimal", pa.types.is_decimal),
        ("date", pa.types.is_date),
        ("time", pa.types.is_temporal),
    ):
        if is_kind(type_):
            return kind
    return str(type_)
