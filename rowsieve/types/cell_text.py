"""Values as the cells of a text table, for people.

Soundness: NULL and the text 'NULL' look different, and so do '' and a space. Control characters are
escaped, so a value cannot move the cursor or break the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import msgspec

from rowsieve.shown import printable


class CellText(str):
    """A cell that is formatted already."""

    __slots__ = ()


def cell(value: Any) -> str:
    """Format a value for people; text is quoted if it looks like another value."""
    match value:
        case None:
            return "NULL"
        case CellText():
            return str(value)
        case bool():
            return str(value).lower()
        case float():
            return repr(value)
        case int() | Decimal() | date() | time() if not isinstance(value, datetime):
            return str(value)
        case datetime():
            return value.isoformat(sep=" ")
        case bytes():
            return f"\\x{value.hex()}"
        case Mapping() | list() | tuple():
            return printable(msgspec.json.encode(value, enc_hook=str).decode())
        case _:
            return _text(str(value))


def is_number(value: Any) -> bool:
    """Return whether the value's cell is aligned as a number; NULL is."""
    return value is None or (isinstance(value, int | float | Decimal) and value is not True)


def _text(text: str) -> str:
    plain = text and text.strip() == text and text.upper() != "NULL" and text[0] not in "'\\"
    shown = printable(text)
    return shown if plain else "'" + shown.replace("'", "''") + "'"
