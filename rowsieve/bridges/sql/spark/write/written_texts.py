"""Write conversions of text for a Spark session: casts, `to_timestamp(s, format)` and similar.

Soundness: `keep_meaning` has checked that both sides read the same texts. This module chooses
the form that fails, or gives NULL, in the session's ANSI mode as the condition does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.bridges.sql.constructs.templates import Templated
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import OnFailure, Semantics
from rowsieve.types.logical import Bool, Date, Decimal, Float, Int, LogicalType, Timestamp

READ: Final[tuple[type[LogicalType], ...]] = (Bool, Int, Float, Decimal, Date, Timestamp)
_NO_ERROR: Final = "a failing cast gives no error where ANSI mode is off"
# Spark's functions for ours, with text and format.
_FORMS: Final[Mapping[str, str]] = {
    "parse_java_instant": "to_timestamp({0}, {1})",
    "try_parse_java_instant": "try_to_timestamp({0}, {1})",
    "parse_java_timestamp": "to_timestamp_ntz({0}, {1})",
}


def is_tried(node: ir.Cast, semantics: Semantics, *, ansi: bool) -> bool:
    """Whether a cast of text is written as TRY_CAST; `ansi`: the session's ANSI mode."""
    if node.try_:
        return True
    if semantics.failed_cast is not OnFailure.NULL:
        _check_fails(ansi=ansi)
        return False
    if ansi and isinstance(node.type, Int):
        raise UnsupportedOperation("text with a fraction is an integer only if ANSI mode is off")
    return ansi


def instant_of_text(name: str, text: ir.Operand, *, ansi: bool) -> ir.Operand:
    """Write `text_instant` or `try_text_instant` for a session in their time zone."""
    tried = name.startswith("try_")
    if not tried:
        _check_fails(ansi=ansi)
    return ir.Cast(text, Timestamp(utc=True), tried)


def time_of_format(name: str, text: ir.Operand, form: ir.Operand, *, ansi: bool) -> ir.Operand:
    """Write a conversion of text by a Java format, for a session in the time zone of an instant."""
    if not name.startswith("try_"):
        _check_fails(ansi=ansi)
    elif name == "try_parse_java_timestamp":
        if ansi:
            raise UnsupportedOperation("spark has no function that tries to read a timestamp_ntz")
        name = name.removeprefix("try_")
    return Templated(_FORMS[name], (text, form))


def _check_fails(*, ansi: bool) -> None:
    if not ansi:
        raise UnsupportedOperation(_NO_ERROR)
