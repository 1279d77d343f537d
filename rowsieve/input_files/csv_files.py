"""Reads CSV text; columns without a known type are inferred, and keep every digit and character.

pyarrow infers a type by the values that it can parse: `01234` as 1234, and 19 digits as the nearest
double. So inferred columns are compared with their text: a column with text that its values do not
express is text, and a number that a double would round is refused.

pyarrow reads a quote that is not closed as a field that extends to the end of the file, so all
following rows would become text of one row. `open_quote` finds every such quote under the rules of
pyarrow's reader: a quote opens at the start of a field, `""` inside quotes is a quote, any other
quote is text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_INT64_DIGITS: Final = 18
_TRUE: Final = ("true", "True", "TRUE", "1")
_FALSE: Final = ("false", "False", "FALSE", "0")
_MOMENT: Final = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[ T][0-9:]{2,8}(?:\.[0-9]{1,6})?(?:Z|[+-][0-9:]{2,5})?)?$"
)


def parse_csv(
    text: bytes,
    types: Mapping[str, pa.DataType],
    delimiter: str,
    nulls: Sequence[str],
    block_bytes: int,
) -> pa.Table:
    """Parse CSV; an empty field is NULL, `""` is empty text. Columns without a type are inferred.

    A boolean column may have `t` and `f`, as PostgreSQL writes them.
    """
    read = partial(_read, text, delimiter=delimiter, nulls=nulls, block_bytes=block_bytes)
    table = read(types)
    wide = [
        field.name
        for field, texts in zip(table.schema, table.columns, strict=True)
        if field.name not in types and pa.types.is_string(field.type) and _are_moments(texts)
    ]
    for name in wide:
        for moment in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
            with suppress(pa.ArrowInvalid):  # local times beside instants, or an invalid date
                table, types = read({**types, name: moment}), {**types, name: moment}
                break
    return table


def _are_moments(texts: pa.ChunkedArray) -> bool:
    """Whether texts look like timestamps with fractions: Arrow infers only years 1677 to 2262."""
    first = texts.drop_null()[:1]
    if not len(first) or not pc.match_substring_regex(first, _MOMENT)[0].as_py():
        return False
    every = pc.all(pc.match_substring_regex(texts, _MOMENT)).as_py()
    return bool(every and pc.any(pc.match_substring(texts, ".")).as_py())


def _read(
    text: bytes,
    types: Mapping[str, pa.DataType],
    delimiter: str,
    nulls: Sequence[str],
    block_bytes: int,
) -> pa.Table:
    letters = any(map(pa.types.is_boolean, types.values()))
    converting = pyarrow.csv.ConvertOptions(
        column_types=types,
        null_values=["", *nulls],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=[*_TRUE, "t", "T"] if letters else _TRUE,
        false_values=[*_FALSE, "f", "F"] if letters else _FALSE,
    )
    return pyarrow.csv.read_csv(
        pa.BufferReader(text),
        read_options=pyarrow.csv.ReadOptions(block_size=block_bytes),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=converting,
    )


def inexact_columns(guessed: pa.Table, texts: pa.Table) -> list[str]:
    """The columns whose text says more than the inferred values: `01234`, `+5`, `0x10`."""
    return [
        name
        for name in guessed.column_names
        if (form := _form_of(guessed.schema.field(name).type)) is not None
        and not pc.all(pc.match_substring_regex(texts[name], form), min_count=0).as_py()
    ]


def first_rounded(texts: pa.ChunkedArray) -> tuple[int, str] | None:
    """The first number, with its row, that a double does not hold with all of its digits."""
    long = pc.match_substring_regex(texts, r"(?:[0-9]\.?){16}|[eE]")
    shortest = texts.cast(pa.float64()).cast(pa.string())
    for row in pc.indices_nonzero(pc.and_(long, pc.not_equal(texts, shortest))).to_pylist():
        if is_rounded(text := texts[row].as_py()):
            return row, text
    return None


def first_lost(texts: pa.ChunkedArray, values: pa.ChunkedArray) -> tuple[int, str] | None:
    """The first whole number, with its row, that is another one in a column of floats.

    A fraction has the nearest float, as in any column of a table.
    """
    whole = pc.indices_nonzero(pc.match_substring_regex(texts, r"^[+-]?[0-9]{8,}$"))
    numbers, written = values.take(whole).cast(pa.float64()), texts.take(whole)
    short = pc.if_else(pc.less_equal(pc.utf8_length(written), _INT64_DIGITS), written, "")
    ints = pc.replace_substring_regex(short, r"^\+?$|^\+", "0").cast(pa.int64())
    same = pc.equal(ints, numbers.cast(pa.int64(), safe=False))
    for place in pc.indices_nonzero(pc.invert(same)).to_pylist():
        if int(text := written[place].as_py()) != numbers[place].as_py():
            return whole[place].as_py(), text
    return None


def is_rounded(number: str) -> bool:
    """Return whether the nearest double is another number, also by its shortest text."""
    value = float(number)
    return math.isinf(value) or Decimal(number) not in (Decimal(value), Decimal(repr(value)))


def _form_of(type_: pa.DataType) -> str | None:
    """The texts that values of an inferred type express completely; None if they express all."""
    if pa.types.is_integer(type_):
        return r"^(?:0|-?[1-9][0-9]*)$"
    if pa.types.is_floating(type_):
        decimal = r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
        return rf"^(?:{decimal}|[+-]?(?:[nN][aA][nN]|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?))$"
    if pa.types.is_boolean(type_):
        return r"^(?:true|True|TRUE|false|False|FALSE)$"
    return None


def open_quote(text: bytes, delimiter: str) -> int | None:
    """The line, from 1, of the quote that is not closed; None if all are. Linear time, in C."""
    ends = re.escape(delimiter.encode()) + rb"\r\n"
    opening = rb'(?:\A|(?<=[%s]))"' % ends
    closed = rb'[^"]*(?:""[^"]*)*"(?!")'
    start = len(_BYTE_ORDER_MARK) if text.startswith(_BYTE_ORDER_MARK) else 0
    body = memoryview(text)[start:]
    # Not by possessive quantifiers: Python's are wrong before 3.11.5.
    if re.search(opening, re.sub(opening + closed, b"x", body)) is None:
        return None
    fields = re.finditer(rb"%s(%s)?" % (opening, closed), body)
    read = next(field.start() for field in fields if field[1] is None)
    before = text[: start + read]
    return 1 + before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
