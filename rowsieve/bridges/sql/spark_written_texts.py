"""What reads text, written for a session of Spark: casts, `to_timestamp(s, format)` and its kin.

Soundness: the rules must be Spark's own already, which `with_meaning_kept` checks for casts; here
is decided which form fails, or is NULL, in the mode of the session there as it is meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.logical import Bool, Date, Decimal, Float, Int, LogicalType, Timestamp

READ: Final[tuple[type[LogicalType], ...]] = (Bool, Int, Float, Decimal, Date, Timestamp)
_NO_ERROR: Final = "a failing cast gives no error where ANSI mode is off"
# The functions, with what follows the text, by whether they try.
_FORMS: Final[Mapping[str, str]] = {
    "parse_java_instant": "to_timestamp({0}, {1})",
    "try_parse_java_instant": "try_to_timestamp({0}, {1})",
    "parse_java_timestamp": "to_timestamp_ntz({0}, {1})",
}


def is_tried(node: ir.Cast, meant: Semantics, *, ansi: bool) -> bool:
    """Whether a cast of text is written as TRY_CAST; `ansi`: the mode of the session there."""
    if node.try_:
        return True
    if meant.failed_cast is not OnFailure.NULL:
        _check_fails(ansi=ansi)
        return False
    if ansi and isinstance(node.type, Int):
        raise UnsupportedOperation("text with a fraction is an integer only if ANSI mode is off")
    return ansi


def instant_of_text(name: str, text: ir.Operand, *, ansi: bool) -> ir.Operand:
    """`text_instant` or `try_text_instant` in the zone of the session there."""
    tried = name.startswith("try_")
    if not tried:
        _check_fails(ansi=ansi)
    return ir.Cast(text, Timestamp(utc=True), tried)


def time_of_format(name: str, text: ir.Operand, form: ir.Operand, *, ansi: bool) -> ir.Operand:
    """Text read by a Java format, an instant in the zone of the session there."""
    if not name.startswith("try_"):
        _check_fails(ansi=ansi)
    elif name == "try_parse_java_timestamp":
        if ansi:
            raise UnsupportedOperation("spark has no function that tries to read a timestamp_ntz")
        name = name.removeprefix("try_")
    return ir.Call(_FORMS[name], (text, form))


def _check_fails(*, ansi: bool) -> None:
    if not ansi:
        raise UnsupportedOperation(_NO_ERROR)
