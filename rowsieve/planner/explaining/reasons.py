"""The reasons that an explanation of a plan has, as values; `str` gives the text of each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConditionReason:
    """One conjunct: the number of parts it refutes by itself, and a note on what limits it."""

    condition: str
    parts_refuted: int
    note: str

    def __str__(self) -> str:
        alone = f"refutes {_count(self.parts_refuted, 'part') if self.parts_refuted else 'no part'}"
        return f"{self.condition} {alone}{f': {self.note}' if self.note else ''}"


@dataclass(frozen=True, slots=True)
class PartReason:
    """A skipped part: the condition that none of its rows can satisfy, and its bounds."""

    part_id: str
    rows: int
    size_bytes: int
    by: str
    condition: str
    bounds: dict[str, str]

    def __str__(self) -> str:
        seen = "".join(f"; {name} in {bounds}" for name, bounds in self.bounds.items())
        return f"part {self.part_id[:8]} skipped by {self.by}: {self.condition}{seen}"


@dataclass(frozen=True, slots=True)
class RowGroupReason:
    """The number of row groups of a part that one condition skips."""

    row_groups: int
    by: str
    condition: str

    def __str__(self) -> str:
        return f"{self.row_groups} by {self.by} ({self.condition})"


@dataclass(frozen=True, slots=True)
class PartRowGroups:
    """Pruning of a part's row groups by its footer and Bloom filters; bytes of the columns read.

    `pages` counts the pages of the row groups to read, `pages_read` those that remain after page
    pruning.
    """

    total: int
    read: int
    pages: int
    pages_read: int
    bytes_total: int
    bytes_read: int
    skipped: tuple[RowGroupReason, ...]

    def __str__(self) -> str:
        by = f": {', '.join(map(str, self.skipped))}" if self.skipped else ""
        pages = f", {self.pages_read} of their {self.pages} pages" if self.pages else ""
        return (
            f"{self.read} of {self.total} row groups{pages}, {self.bytes_read:,} of "
            f"{self.bytes_total:,} bytes{by}"
        )


@dataclass(frozen=True, slots=True)
class GroupPart:
    """One part of a group: read, or kept because it may hide rows of older parts."""

    part_id: str
    rows: int
    tombstones: int
    size_bytes: int
    read: bool
    filtered: bool
    row_groups: PartRowGroups | None

    def __str__(self) -> str:
        counts = ((self.rows, "row"), (self.tombstones, "delete"))
        holds = " and ".join(_count(number, name) for number, name in counts if number)
        if not self.read:
            does = "hides rows of older parts"
        else:
            does = "read, rows are filtered" if self.filtered else "read, all rows match"
        row_groups = f"; {self.row_groups}" if self.row_groups is not None else ""
        return f"part {self.part_id[:8]} {does}: {holds}{row_groups}"


@dataclass(frozen=True, slots=True)
class GroupReason:
    """Parts that may share keys, newest first, and why they are read together or alone."""

    why: str
    size_bytes: int
    parts: tuple[GroupPart, ...]

    def __str__(self) -> str:
        return f"group of {_count(len(self.parts), 'part')}, {self.size_bytes:,} bytes: {self.why}"


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'' if number == 1 else 's'}"
