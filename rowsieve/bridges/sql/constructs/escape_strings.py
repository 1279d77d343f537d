r"""Reads `E'…'`, a string with escapes, as PostgreSQL, DuckDB and DataFusion read it.

Soundness: only escapes that mean one character in all three. `\u0041` and bytes beyond ASCII do
not, and neither does a backslash before another character.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(
    r"\\(?:([bfnrt])|([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|([\\']))|(\\)|('')", re.DOTALL
)
_CONTROLS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ASCII: Final = range(1, 128)


def escaped_text(written: str) -> str | None:
    """The text of `E'…'` as written; None for any other literal, and for other escapes."""
    if written[:2].upper() != "E'" or written[-1:] != "'":
        return None
    try:
        return _ESCAPE.sub(_character, written[2:-1])
    except ValueError:
        return None


def _character(escape: re.Match[str]) -> str:
    """The character of an escape; ValueError for one that engines read differently."""
    control, octal, hexadecimal, itself, _, quote = escape.groups()
    if control:
        return _CONTROLS[control]
    if itself or quote:
        return itself or "'"
    code = int(octal, 8) if octal else int(hexadecimal or "0", 16)
    if code not in _ASCII:
        raise ValueError(escape[0])
    return chr(code)
