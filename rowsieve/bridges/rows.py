"""Builders of the rows of a bridge's table."""

from __future__ import annotations

from rowsieve.bridges.translation import Exactness, Row


def both(foreign: str, ours: str, note: str = "") -> Row:
    """A construct that is read and written."""
    return Row(foreign, ours, Exactness.EXACT, Exactness.EXACT, note)


def reads(foreign: str, ours: str, note: str = "") -> Row:
    """A construct that is read; writing uses another spelling."""
    return Row(foreign, ours, Exactness.EXACT, Exactness.UNSUPPORTED, note)


def refused(foreign: str, note: str) -> Row:
    """A construct without a counterpart, and the reason."""
    return Row(foreign, "", Exactness.UNSUPPORTED, Exactness.UNSUPPORTED, note)


def refused_all(names: str, note: str) -> list[Row]:
    """Constructs without a counterpart, for one reason; names are separated by spaces."""
    return [refused(name, note) for name in names.split()]
