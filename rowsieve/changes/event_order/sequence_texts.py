"""Text and bytes as sequences: all values of a column have one length.

Soundness: they are compared as bytes, in which '9' is above '10', '-2' above '-1', and 'a' above
'F'. With one length, padded numbers, LSNs, ISO times and ULIDs are ordered as their source orders
them; hexadecimal digits have small letters. What could be ordered otherwise is refused, also
against what the table has.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidData, repr_of
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types.logical import Field, String
from rowsieve.types.shown_values import python_value

_NUMBER: Final = r"^[+-]|^[0-9]+$|^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$"
_HEXADECIMAL: Final = r"^(?:0[xX])?[0-9A-Fa-f:/.-]*$"
_ADVICE: Final = (
    "Give numbers to a column of a number: of '0/16B3748' 0x16B3748 in a uint64, of "
    "'binlog.000003:154' 3 and 154 in two columns; give times to a column of times, and any other "
    "text in one length, hexadecimal digits as small letters"
)
_MAX_CHARACTERS: Final = 80  # characters
_CAPITAL: Final = r"[A-F]"


def check_texts(
    column: pa.ChunkedArray, field: Field, parts: PartTable | None, operation: str
) -> None:
    """InvalidData unless the values have an order, with those of the parts too."""
    stored = _greatest_stored(parts, field)
    values = pa.chunked_array([*column.chunks, *stored.cast(column.type).chunks])
    if isinstance(field.type, String):
        _refuse(column, field, pc.match_substring_regex(column, _NUMBER), operation, "is a number")
        _refuse_capitals(values, field, operation)
    lengths = pc.binary_length(values)
    if len(values) and pc.count_distinct(lengths).as_py() > 1:
        others = pc.not_equal(lengths, lengths[0])
        what = f"has another length than {_shown(values[0])}"
        _refuse(values, field, others, operation, what)


def _greatest_stored(parts: PartTable | None, field: Field) -> pa.ChunkedArray:
    """The greatest sequence of each part that knows it."""
    name = f"order.{field.id}.upper"
    if parts is None or parts.schema.get_field_index(name) < 0:
        return pa.chunked_array([], pa.null())
    column = parts.column(name).drop_null()
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _refuse_capitals(values: pa.ChunkedArray, field: Field, operation: str) -> None:
    """Refuse capital hexadecimal digits, whatever the table has.

    The greatest sequences of its parts may have no letter and others letters of either case, so no
    look at them shows that all have one case.
    """
    hexadecimal = values.filter(pc.match_substring_regex(values, _HEXADECIMAL))
    capital = pc.match_substring_regex(hexadecimal, _CAPITAL)
    what = "has capital hexadecimal digits, which are below small ones"
    _refuse(hexadecimal, field, capital, operation, what)


def _refuse(
    values: pa.ChunkedArray, field: Field, wrong: pa.ChunkedArray, operation: str, what: str
) -> None:
    refused = values.filter(wrong)
    if len(refused):
        raise InvalidData(
            f"{operation}: sequence column {field.name!r} is compared byte by byte, and "
            f"{_shown(refused[0])} in it {what}, which need not be ordered so; "
            f"nothing was written. {_ADVICE}"
        )


def _shown(value: pa.Scalar) -> str:
    """A value as text of bounded length."""
    text = repr_of(python_value(value))
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}…"
