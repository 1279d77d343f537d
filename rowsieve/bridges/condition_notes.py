"""Notes on the conditions of a top-level AND that a translation omits, with their text as SQL."""

from __future__ import annotations

from typing import Any

from rowsieve.bridges.sql import to_sql
from rowsieve.bridges.translation import Note
from rowsieve.errors import RowsieveError
from rowsieve.predicate import ir
from rowsieve.predicate.spelled import MAX_CHARACTERS

_MAX_SHOWN = 80  # characters of a condition
_MAX_MEMBERS = 20  # of a list that is formatted as SQL


def note_on(index: int, count: int, condition: Any, reason: object) -> Note:
    """Build the note on one condition; its position counts from 0."""
    text = brief(condition) if isinstance(condition, ir.Predicate) else str(condition)
    note = Note()
    note.shown = text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
    note.reason = str(reason)
    note.cause = reason if isinstance(reason, RowsieveError) else None
    return note.at(index, count)


def brief(predicate: ir.Predicate) -> str:
    """Format a predicate as SQL for messages; long ones are truncated."""
    shown = repr(predicate)
    try:
        return shown if len(shown) > MAX_CHARACTERS or _is_long(predicate) else to_sql(predicate)
    except RowsieveError:
        return shown


def _is_long(predicate: ir.Predicate) -> bool:
    return any(
        isinstance(node, ir.InList) and len(node.values) > _MAX_MEMBERS
        for node in ir.walk(predicate)
    )
