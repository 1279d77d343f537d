"""What is derived from schemas: one cache for all functions of a schema."""

from __future__ import annotations

from typing import Any, Final

from rowsieve.byte_cache import ByteCache, cached_in
from rowsieve.types.schema import Schema

_CACHE: Final[ByteCache[Any, Any]] = ByteCache(32 * 1024 * 1024, "schemas")
_BYTES_PER_COLUMN: Final = 1_024  # of the schema in the key, and of the result
_TIMES_ARROW: Final = 8  # memory of a schema, in bytes of its serialized form


def _size_bytes(_result: object, schema: Schema, *_arguments: object) -> int:
    return _BYTES_PER_COLUMN * (1 + len(schema.fields))


def _arrow_size_bytes(_result: object, serialized: bytes) -> int:
    return _TIMES_ARROW * len(serialized)


cached_by_schema = cached_in(_CACHE, _size_bytes)
"""Decorate a function of a schema and other hashable arguments: its results are cached."""
cached_by_arrow_schema = cached_in(_CACHE, _arrow_size_bytes)
"""Decorate a function of a serialized schema of Arrow's: its results are cached."""
