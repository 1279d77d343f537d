"""What is derived from texts of users, such as SQL and patterns: one cache for all functions."""

from __future__ import annotations

from typing import Any, Final

from rowsieve.byte_cache import ByteCache, cached_in
from rowsieve.types.schema import Schema

_CACHE: Final[ByteCache[Any, Any]] = ByteCache(
    16 * 1024 * 1024, "texts", once_bytes=4 * 1024 * 1024
)
_BYTES: Final = 1_024
_BYTES_PER_CHARACTER: Final = 250  # of tokens and tree of a SQL text; measured: 90 to 230
_BYTES_PER_COLUMN: Final = 400  # of a schema that may live on in a key alone


def _size_bytes(_result: object, text: str | None, *arguments: object) -> int:
    columns = sum([len(each) for each in arguments if isinstance(each, Schema)])
    return _BYTES + _BYTES_PER_CHARACTER * len(text or "") + _BYTES_PER_COLUMN * columns


cached_by_text = cached_in(_CACHE, _size_bytes)
"""Decorate a function of a text and other hashable arguments: its results are cached."""
