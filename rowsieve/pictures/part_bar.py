"""`PartBar`: a part as pictures of key ranges draw it."""

from __future__ import annotations

from typing import Any, NamedTuple


class PartBar(NamedTuple):
    """A part: its bounds of the column, None if unknown, and what a read does with it."""

    part_id: str
    lower: Any
    upper: Any
    rows: int
    hidden: int
    tombstones: int
    size_bytes: int
    commits: tuple[int, int]
    outcome: str = "stored"
    reason: str = ""
