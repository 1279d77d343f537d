"""The properties of a table that a database creates, beyond those that its creator gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rowsieve.config import current
from rowsieve.storage.log.inline_parts import INLINE_BYTES

SMALL_CHANGE_BYTES: Final = 16 * 1024
"""A change of at most so many bytes has no file: its rows are in the log of all tables."""


def properties_of_new(given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the properties of a new table; those that are given have precedence."""
    small = current().inline_bytes or SMALL_CHANGE_BYTES
    return {INLINE_BYTES: small, **(given or {})}
