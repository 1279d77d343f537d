"""Builders of the rows of a bridge's table."""

from __future__ import annotations

from rowsieve.bridges.translation import Exactness, Row


def both(foreign: str, ours: str, note: str = "") -> Row:
    """Build the row of a construct that is read and written."""
    return Row(foreign, ours, Exactness.EXACT, Exactness.EXACT, note)


def reads(foreign: str, ours: str, note: str = "") -> Row:
    """Build the row of a construct that is read; writing uses another spelling."""
    return Row(foreign, ours, Exactness.EXACT, Exactness.UNSUPPORTED, note)


def refused(foreign: str, note: str) -> Row:
    """Build the row of a construct without a counterpart, with the reason."""
    return Row(foreign, "", Exactness.UNSUPPORTED, Exactness.UNSUPPORTED, note)


def refused_all(names: str, note: str) -> list[Row]:
    """Build rows of constructs without a counterpart, with one reason; names between spaces."""
    return [refused(name, note) for name in names.split()]
