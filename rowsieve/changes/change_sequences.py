"""The order of changes by their sequence column, whose text is parsed before it is compared.

As text, "9" is above "10" and "0/9A" above "0/16B". Text is digits, hexadecimal numbers after `0x`,
a position in a log file of MySQL (`binlog.000003:154`), or the log sequence numbers of PostgreSQL
(`0/16B3748`), SQL Server (`0000002c:00000a30:0003`) or Db2, whose last number has 16 digits, all of
one of these forms. Their hexadecimal or decimal numbers are padded to one width, in which the order
of text is theirs. Text of any other form has no order that we know of, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidData, SchemaMismatch, repr_of

_FORMS: Final[Mapping[str, str]] = {
    r"^[0-9]+$": r"^(?P<a>[0-9]+)$",
    r"^0[xX][0-9A-Fa-f]+$": r"^0[xX](?P<a>[0-9A-Fa-f]+)$",
    r"^[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}$": r"^(?P<a>[0-9A-Fa-f]+)/(?P<b>[0-9A-Fa-f]+)$",
    r"^[0-9A-Fa-f]{8}:[0-9A-Fa-f]{8}:(?:[0-9A-Fa-f]{4}|[0-9A-Fa-f]{16})$": (
        r"^(?P<a>[0-9A-Fa-f]+):(?P<b>[0-9A-Fa-f]+):(?P<c>[0-9A-Fa-f]+)$"
    ),
    r"^[^:/]*[A-Za-z][^:/]*\.[0-9]{1,18}:[0-9]{1,18}$": (
        r"^(?P<log>.*)\.(?P<a>[0-9]{1,18}):(?P<b>[0-9]{1,18})$"
    ),
}
"""The forms of text, with a pattern that captures its numbers, and the name of its log."""


def comparable_sequences(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return values in the order of the changes; they are equal where the sequences are.

    SchemaMismatch for a type without an order, InvalidData for a value without one: NaN, text of
    another form, and bytes of several lengths.
    """
    type_ = column.type
    try:
        pc.sort_indices(column.slice(0, 0))
    except (pa.ArrowException, TypeError) as error:
        raise SchemaMismatch(
            f"apply_changes: column {name!r} (sequence=) has the type {type_}, which cannot be "
            "sorted; use a number, a time, or text of digits or of log sequence numbers"
        ) from error
    if pa.types.is_floating(type_) and pc.any(pc.is_nan(column)).as_py():
        raise InvalidData(
            f"apply_changes: column {name!r} (sequence=) holds NaN, which has no order; give "
            "every change a number"
        )
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return _padded(column, name)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        _refuse_lengths(column, name)
    return column


def _padded(texts: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    for form, pattern in _FORMS.items():
        if not pc.all(pc.match_substring_regex(texts, form), min_count=0).as_py():
            continue
        parts = pc.extract_regex(pc.ascii_lower(texts.cast(pa.string())), pattern)
        names = [field.name for field in parts.type]
        if "log" in names:
            _refuse_two_logs(pc.struct_field(pc.extract_regex(texts, pattern), "log"), name)
        numbers = [_to_width(pc.struct_field(parts, each)) for each in names if each != "log"]
        return numbers[0] if len(numbers) == 1 else pc.binary_join_element_wise(*numbers, "/")
    known = pc.match_substring_regex(texts, "|".join(_FORMS))
    odd = [*texts.filter(pc.invert(known)).slice(0, 1), *texts.slice(0, 1)][0]
    raise InvalidData(
        f"apply_changes: column {name!r} (sequence=) is text, such as {repr_of(odd.as_py())}, and "
        "its order as text need not be that of the changes. Text must be digits or log sequence "
        "numbers ('0/16B3748', '0000002c:00000a30:0003', '0x2c', 'binlog.000003:154'), all of one "
        "form; cast any other to a number or a time"
    )


def _refuse_two_logs(logs: pa.ChunkedArray, name: str) -> None:
    """Files of two servers, or of a log that was renamed, are numbered apart."""
    known = pc.unique(logs.drop_null())
    if len(known) > 1:
        raise InvalidData(
            f"apply_changes: column {name!r} (sequence=) has positions of the logs "
            f"{known[0].as_py()!r} and {known[1].as_py()!r}, whose files are numbered apart; apply "
            "the changes of each log in a call of its own"
        )


def _to_width(numbers: Any) -> Any:
    """Pad numbers with zeros to the width of the longest, without zeros of their own."""
    plain = pc.utf8_ltrim(numbers, "0")
    width = pc.max(pc.utf8_length(plain)).as_py() or 0
    return pc.utf8_lpad(plain, width, "0")


def _refuse_lengths(column: pa.ChunkedArray, name: str) -> None:
    ends = pc.min_max(pc.binary_length(column)).as_py()
    if ends["min"] != ends["max"]:
        raise InvalidData(
            f"apply_changes: column {name!r} (sequence=) has bytes of {ends['min']} to "
            f"{ends['max']}, which have no order as numbers; pad them to one length"
        )
