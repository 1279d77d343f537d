"""Converts texts of JSON to dates, times, instants and booleans, as the values of CSV are.

pyarrow's JSON reader converts too freely: an instant loses its zone in a column of local times, a
local time becomes an instant, and a number is a date. So columns of these types are read as text,
and the texts are parsed by the reader of CSV, which refuses all of this. Inferred types are CSV's.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from rowsieve.input_files.csv_files import parse_csv

_BEGINS_AS_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
_FRACTION_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}


class NumberText(str):
    """A number of a document with a point or an exponent, as it is written there."""

    __slots__ = ()


def type_to_read(type_: pa.DataType, values: Iterable[Any] = ()) -> pa.DataType:
    """The type that pyarrow's reader parses for a known type: text where it converts too freely.

    A boolean is text if all of the values, of documents, are.
    """
    if pa.types.is_list(type_):
        items = [item for value in values if isinstance(value, list) for item in value]
        return pa.list_(type_.value_field.with_type(type_to_read(type_.value_type, items)))
    if pa.types.is_struct(type_):
        rows = [value for value in values if isinstance(value, dict)]
        return pa.struct(
            [
                member.with_type(type_to_read(member.type, [row.get(member.name) for row in rows]))
                for member in type_
            ]
        )
    if pa.types.is_boolean(type_):
        kinds = {type(value) for value in values if value is not None}
        return pa.string() if kinds == {str} else type_
    return pa.string() if pa.types.is_temporal(type_) else type_


def convert(values: pa.Array, known: pa.DataType | None) -> pa.Array:
    """Parse the texts, at any depth, as the known type; without one, as dates and times.

    ValueError with the first text that the type does not represent.
    """
    type_ = values.type
    if type_ == known:
        return values
    if pa.types.is_struct(type_) and type_.num_fields:
        of_known = {} if known is None else {member.name: member.type for member in known}
        members = [
            convert(member, of_known.get(field.name))
            for field, member in zip(type_, values.flatten(), strict=True)
        ]
        fields = [field.with_type(each.type) for field, each in zip(type_, members, strict=True)]
        return pa.StructArray.from_arrays(members, fields=fields, mask=values.is_null())
    if pa.types.is_list(type_):
        items = convert(values.values, None if known is None else known.value_type)
        list_type = pa.list_(type_.value_field.with_type(items.type))
        mask = values.is_null() if values.null_count else None
        return pa.ListArray.from_arrays(values.offsets, items, type=list_type, mask=mask)
    if not pa.types.is_string(type_):
        return values
    return _inferred(values) if known is None else _parsed(values, known)


def _inferred(texts: pa.Array) -> pa.Array:
    """The texts as dates or timestamps, if all are of one of these types; else as they are."""
    first = texts.drop_null()[:1]
    if not len(first) or not pc.match_substring_regex(first, _BEGINS_AS_DATE)[0].as_py():
        return texts
    encoded = texts.dictionary_encode()
    values = _parse(encoded.dictionary, None)
    if pa.types.is_timestamp(values.type):
        try:
            values = values.cast(pa.timestamp("us", values.type.tz))
        except pa.ArrowInvalid:  # nanoseconds
            return texts
    elif not pa.types.is_date(values.type):
        return texts
    return values.take(encoded.indices)


def _parsed(texts: pa.Array, type_: pa.DataType) -> pa.Array:
    encoded = texts.dictionary_encode()
    distinct = encoded.dictionary
    try:
        return _parse(distinct, type_).take(encoded.indices)
    except pa.ArrowInvalid as error:
        text = _first_invalid(distinct, type_)
        raise ValueError(f"{text!r} is not {_form_of(type_)}") from error


def _parse(texts: pa.Array, type_: pa.DataType | None) -> pa.Array:
    sink = io.BytesIO()
    as_written = pyarrow.csv.WriteOptions(quoting_style="all_valid")
    pyarrow.csv.write_csv(pa.table({"v": texts}), sink, as_written)
    types = {} if type_ is None else {"v": type_}
    text = sink.getvalue()
    return parse_csv(text, types, ",", (), max(1 << 20, len(text)))["v"].combine_chunks()


def _first_invalid(texts: pa.Array, type_: pa.DataType) -> str:
    """The first text that cannot be parsed, of texts of which one cannot; by bisection."""
    while len(texts) > 1:
        half = texts[: len(texts) // 2]
        try:
            _parse(half, type_)
        except pa.ArrowInvalid:
            texts = half
        else:
            texts = texts[len(half) :]
    return str(texts[0].as_py())


def _form_of(type_: pa.DataType) -> str:
    """What a text of the type must be, with an example."""
    if pa.types.is_boolean(type_):
        return "a boolean: true, false, t or f"
    if pa.types.is_date(type_):
        return "a date such as 2026-01-31"
    digits = _FRACTION_DIGITS.get(getattr(type_, "unit", ""), 0)
    if pa.types.is_time(type_):
        return f"a time such as 10:00:00, with at most {digits} digits of a second"
    if not pa.types.is_timestamp(type_):
        return f"a value of the type {type_}"
    kind, offset = ("a local time with no", "") if type_.tz is None else ("an instant with a", "Z")
    return (
        f"{kind} zone offset and at most {digits} digits of a second, such as "
        f"2026-01-31T10:00:00{offset}"
    )


_Kind = tuple[Callable[[pa.DataType], bool], Callable[[Any], bool], str]


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, NumberText)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_whole(value) or isinstance(value, NumberText | float)


_KINDS: Final[Sequence[_Kind]] = (
    (pa.types.is_boolean, lambda value: isinstance(value, bool), "true and false"),
    (pa.types.is_integer, _is_whole, "whole numbers"),
    (pa.types.is_floating, _is_number, "numbers"),
    (pa.types.is_decimal, lambda value: _is_number(value) or _is_text(value), "numbers"),
    (pa.types.is_string, _is_text, "text in quotes"),
    (pa.types.is_large_string, _is_text, "text in quotes"),
    (pa.types.is_binary, _is_text, "text in quotes"),
    (pa.types.is_list, lambda value: isinstance(value, list), "arrays"),
    (pa.types.is_struct, lambda value: isinstance(value, dict), "objects"),
)
"""What pyarrow's reader takes for a type: is it the type, is it such a value, what they are."""

_NAMES: Final[Sequence[tuple[Callable[[Any], bool], str]]] = (
    (lambda value: isinstance(value, bool), "a boolean"),
    (_is_number, "a number"),
    (_is_text, "text"),
    (lambda value: isinstance(value, list), "an array"),
    (lambda value: isinstance(value, dict), "an object"),
)


def first_of_another_kind(
    rows: Sequence[Mapping[str, Any]], fields: Sequence[pa.Field], read: Sequence[pa.Field]
) -> str | None:
    """Describe the first value that pyarrow's reader refuses for these types, `read` by it."""
    for row, document in enumerate(rows):
        for field, as_read in zip(fields, read, strict=True):
            if (mismatch := _mismatch(document.get(field.name), as_read.type)) is not None:
                value, expected = mismatch
                name = next(name for is_kind, name in _NAMES if is_kind(value))
                text = value if isinstance(value, NumberText) else json.dumps(value)
                return (
                    f"column {field.name!r}, row {row}: {text} is {name}; the column's type "
                    f"{field.type} is read from {expected}"
                )
    return None


def _mismatch(value: Any, type_: pa.DataType) -> tuple[Any, str] | None:
    if value is None:
        return None
    for is_type, is_kind, expected in _KINDS:
        if is_type(type_) and not is_kind(value):
            return value, expected
    inner: Iterable[tuple[Any, pa.DataType]] = ()
    if pa.types.is_list(type_):
        inner = ((item, type_.value_type) for item in value)
    elif pa.types.is_struct(type_):
        inner = ((value.get(member.name), member.type) for member in type_)
    return next((each for pair in inner if (each := _mismatch(*pair)) is not None), None)
