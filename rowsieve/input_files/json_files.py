"""Reads JSON lines, and `.json` files of one array of objects.

pyarrow converts the rows. It cannot tell an absent name from NULL, which an upsert must: where a
column has NULL, the documents are read again for their names. A name that no document has is not a
column of the result, and one that only some have is for the caller to accept (`absent_values.py`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from rowsieve.input_files.csv_files import is_rounded
from rowsieve.input_files.json_values import (
    NumberText,
    convert,
    first_of_another_kind,
    type_to_read,
)

Documents: TypeAlias = Sequence[Mapping[str, Any]]
_MAYBE_NULL: Final = re.compile(rb"(?:^|[\n\r}])[ \t\n\r]*null")
_WHITE: Final = re.compile(r"[ \t\n\r]*")
DEEPEST: Final = 500  # levels; pyarrow's parser slows down, and ends the process at some 20,000
_MARKS_AT_ONCE: Final = 1 << 20
_QUOTE, _END_OF_LINE = b'"\n'
_NO_MARKS: Final = bytes(byte for byte in range(256) if byte not in b'[]{}"\n')
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")


def refuse_deep(text: bytes) -> None:
    """Raise ValueError for documents that are nested too deep: a parser would end the process.

    Lines before a deep one may be damaged, since parsers read blocks of lines concurrently: a line
    begins outside of strings, and a bracket that closes nothing is not counted.
    """
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = np.frombuffer(text.translate(None, _NO_MARKS), np.uint8)
    quotes = before_line = depth = 0
    for start in range(0, len(marks), _MARKS_AT_ONCE):
        block = marks[start : start + _MARKS_AT_ONCE]
        before = quotes + np.cumsum(block == _QUOTE, dtype=np.int32)
        of_lines = np.where(block == _END_OF_LINE, before, np.int32(before_line))
        of_lines = np.maximum.accumulate(of_lines)
        steps = np.where((before - of_lines) % 2 == 0, _STEPS[block], np.int8(0))
        sums = depth + np.cumsum(steps, dtype=np.int32)
        depths = sums - np.minimum(np.minimum.accumulate(sums), 0)
        if int(depths.max()) > DEEPEST:
            raise ValueError(f"a document is nested deeper than {DEEPEST} levels")
        quotes, before_line, depth = int(before[-1]), int(of_lines[-1]), int(depths[-1])


def as_lines(text: bytes) -> bytes:
    """Return the objects of a JSON array, or of several lines each, as JSON lines."""
    is_array = text.lstrip().startswith(b"[")
    if is_array:
        items = [bytes(item) for item in msgspec.json.decode(text, type=list[msgspec.Raw])]
    elif not (items := _single(text)):
        return text
    # a line break inside an item is between its tokens: text has it escaped
    return b"\n".join(item.translate(_SPACES) for item in items)


def _single(text: bytes) -> list[bytes]:
    """The text if it is one document, such as an object on several lines."""
    try:
        return [bytes(msgspec.json.decode(text, type=msgspec.Raw))]
    except msgspec.DecodeError:
        return []


def read_lines(
    text: bytes,
    fields: Sequence[pa.Field],
    block_bytes: int,
    check: Callable[[Documents], None] | None = None,
) -> pa.Table:
    """Read JSON lines; `fields` are known columns. `check` gets the documents if it may matter.

    ValueError if a document is null: pyarrow takes it for a row of NULLs, or ends the process. Also
    if a value is not one of its column's type.
    """
    _refuse_null(text)
    table = _converted(_parsed_as_known(text, fields, block_bytes), fields)
    if not fields or not any(_has_null(column) for column in table.columns):
        return table
    rows = documents(text)
    if check is not None:
        check(rows)
    present = [field for field in fields if any(field.name in row for row in rows)]
    present = [_present(field, [row.get(field.name) for row in rows]) for field in present]
    if present == list(fields):
        return table
    return _converted(_parsed_as_known(text, present, block_bytes), present)


def _refuse_null(text: bytes) -> None:
    """Raise ValueError if a document is null, or if it may be and a document is malformed."""
    if _MAYBE_NULL.search(text) is None:
        return
    decoder, document = json.JSONDecoder(), text.decode()
    at, row = _after_spaces(document, 0), 0
    while at < len(document):
        value, at = decoder.raw_decode(document, at)
        if value is None:
            raise ValueError(f"row {row}, counted from 0, is null, and a row is an object")
        at, row = _after_spaces(document, at), row + 1


def _after_spaces(text: str, at: int) -> int:
    match = _WHITE.match(text, at)
    return at if match is None else match.end()


def documents(text: bytes) -> Documents:
    """The objects of JSON lines, as Python reads them; a float is the text of its digits.

    ValueError if a document is not an object.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [json.loads(line, parse_float=NumberText) for line in lines]
    for row, document in enumerate(rows):
        if not isinstance(document, dict):
            raise ValueError(
                f"row {row}, counted from 0, is {lines[row][:40].decode()}, and a row is an object"
            )
    return rows


def first_number(
    value: Any, type_: pa.DataType, is_lost: Callable[[Any, pa.DataType], bool]
) -> str | None:
    """The first number of a document's value, at any depth, that a float column would lose."""
    if pa.types.is_floating(type_):
        return str(value) if is_lost(value, type_) else None
    if pa.types.is_list(type_) and isinstance(value, list):
        inner = [(item, type_.value_type) for item in value]
    elif pa.types.is_struct(type_) and isinstance(value, dict):
        inner = [(value.get(member.name), member.type) for member in type_]
    else:
        return None
    return next((text for each in inner if (text := first_number(*each, is_lost))), None)


def is_inexact(value: Any, _type: pa.DataType) -> bool:
    """Return whether a number of which a double was inferred is not one."""
    return isinstance(value, NumberText | int) and is_rounded(str(value))


def is_another(value: Any, type_: pa.DataType) -> bool:
    """Return whether a whole number is another one as a float; a fraction has the nearest float."""
    if not isinstance(value, int) or isinstance(value, bool):
        return False
    try:
        return (np.float32(value).item() if type_ == pa.float32() else float(value)) != value
    except OverflowError:
        return True


def _parsed_as_known(text: bytes, fields: Sequence[pa.Field], block_bytes: int) -> pa.Table:
    """Parse the text with the types that are to be read for these; what is inferred is text."""
    read = [field.with_type(type_to_read(field.type)) for field in fields]
    try:
        return _parsed_as_text(text, read, block_bytes)
    except pa.ArrowInvalid as error:
        try:
            rows = documents(text)
        except json.JSONDecodeError:
            raise error from None
        of_names = [[row.get(field.name) for row in rows] for field in fields]
        again = [
            field.with_type(type_to_read(field.type, values))
            for field, values in zip(fields, of_names, strict=True)
        ]
        if (difference := first_of_another_kind(rows, fields, again)) is not None:
            raise ValueError(difference) from error
        if again == read:
            raise
        return _parsed_as_text(text, again, block_bytes)


def _parsed_as_text(text: bytes, read: Sequence[pa.Field], block_bytes: int) -> pa.Table:
    table = _parsed(text, read, block_bytes)
    texts = [field.with_type(type_to_read(field.type)) for field in table.schema]
    return table if texts == list(table.schema) else _parsed(text, texts, block_bytes)


def _converted(table: pa.Table, fields: Sequence[pa.Field]) -> pa.Table:
    """Convert texts to the types of the known columns, and infer dates and times of others."""
    known = {field.name: field.type for field in fields}
    for place, field in enumerate(table.schema):
        if field.type == known.get(field.name) or not _has_text(field.type):
            continue
        values = table.column(place).combine_chunks()
        try:
            values = convert(values, known.get(field.name))
        except ValueError as error:
            raise ValueError(f"column {field.name!r}: {error}") from error
        table = table.set_column(place, field.with_type(values.type), values)
    return table


def _has_text(type_: pa.DataType) -> bool:
    if pa.types.is_list(type_):
        return _has_text(type_.value_type)
    if pa.types.is_struct(type_):
        return any(_has_text(member.type) for member in type_)
    return bool(pa.types.is_string(type_))


def _parsed(text: bytes, fields: Sequence[pa.Field], block_bytes: int) -> pa.Table:
    options = pyarrow.json.ParseOptions(
        explicit_schema=pa.schema(fields) if fields else None,
        unexpected_field_behavior="infer",
    )
    blocks = pyarrow.json.ReadOptions(block_size=block_bytes)
    return pyarrow.json.read_json(pa.BufferReader(text), read_options=blocks, parse_options=options)


def _has_null(values: Any) -> bool:
    """Return whether a value, or a field of a struct at any depth, is NULL."""
    if values.null_count:
        return True
    if pa.types.is_list(values.type):
        return _has_null(pc.list_flatten(values))
    if pa.types.is_struct(values.type):
        return any(_has_null(member) for member in values.flatten())
    return False


def _present(field: pa.Field, values: Iterable[Any]) -> pa.Field:
    """The field without members of structs that none of these values has."""
    if pa.types.is_list(field.type):
        items = [item for value in values if isinstance(value, list) for item in value]
        item = _present(field.type.value_field, items)
        return field.with_type(pa.list_(item))
    if not pa.types.is_struct(field.type):
        return field
    rows = [value for value in values if isinstance(value, dict)]
    members = [
        _present(member, [row.get(member.name) for row in rows])
        for member in field.type
        if not rows or any(member.name in row for row in rows)
    ]
    return field.with_type(pa.struct(members))
