"""Truncates long bounds: a lower bound may only decrease, an upper bound may only increase.

Text is cut at a character boundary, so a bound stays valid UTF-8. Text sorts by bytes, which equals
the order of code points. The lower bound of a long value is its prefix. The upper bound is the
prefix up to its last character that can be incremented, with that character incremented. If no
character can be incremented within the limit, there is no upper bound.
"""

from __future__ import annotations

from typing import Final

LIMIT_BYTES: Final = 100

_LAST_CODE_POINT = 0x10FFFF
_BEFORE_SURROGATES = 0xD7FF
_AFTER_SURROGATES = 0xE000


def lower_text(value: str, limit: int = LIMIT_BYTES) -> str:
    """Text of at most `limit` bytes that is not above `value`: its prefix."""
    if len(value) * 4 <= limit:
        return value
    encoded = value[:limit].encode()  # a character is at least one byte
    if len(encoded) <= limit and len(value) <= limit:
        return value
    return encoded[:limit].decode(errors="ignore")  # drops an incomplete last character


def upper_text(value: str, limit: int = LIMIT_BYTES) -> str | None:
    """Text of at most `limit` bytes that is not below `value`; None if there is none."""
    prefix = lower_text(value, limit)
    if len(prefix) == len(value):
        return value
    for i in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[i])
        if code == _LAST_CODE_POINT:
            continue
        raised = chr(_AFTER_SURROGATES if code == _BEFORE_SURROGATES else code + 1)
        bound = prefix[:i] + raised
        if len(bound.encode()) <= limit:  # the next code point may need one byte more
            return bound
    return None


def lower_bytes(value: bytes, limit: int = LIMIT_BYTES) -> bytes:
    """At most `limit` bytes that are not above `value`."""
    return value[:limit]


def upper_bytes(value: bytes, limit: int = LIMIT_BYTES) -> bytes | None:
    """At most `limit` bytes that are not below `value`; None if there are none."""
    if len(value) <= limit:
        return value
    prefix = value[:limit].rstrip(b"\xff")
    return prefix[:-1] + bytes([prefix[-1] + 1]) if prefix else None
