"""Counters of scans and writers.

A scan fills one `ScanMetrics`, which is complete once the scan's stream is exhausted. Times are in
seconds, sizes in bytes of stored files. The threads of a scan must update counters by methods.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeAlias

from rowsieve.locks import ForkSafeLock

FlagValues: TypeAlias = Mapping[str, Mapping[str, str | int | float]]
"""By name of a flag: its value, and the source of it, which is `UNSET` for the default."""
UNSET: Final = "process default"


@dataclass(slots=True)
class ScanMetrics:
    """Counters of one scan; `pruned_by` counts skipped parts by reason.

    `flags` has the value of each flag of the read, and where it came from.
    """

    parts_considered: int = 0
    parts_pruned: int = 0
    parts_read: int = 0
    bytes_considered: int = 0
    bytes_pruned: int = 0
    bytes_read: int = 0
    row_groups_considered: int = 0
    row_groups_pruned: int = 0
    row_groups_read: int = 0
    pages_considered: int = 0
    pages_pruned: int = 0
    rows_decoded: int = 0
    rows_returned: int = 0
    batches_returned: int = 0
    bytes_returned: int = 0
    audited: int = 0
    audit_violations: int = 0
    rows_audited: int = 0
    bytes_audited: int = 0
    pruned_by: dict[str, int] = field(default_factory=dict)
    flags: FlagValues = field(default_factory=dict)
    statistics_contradicting: int = 0
    statistics_unreadable: int = 0
    plans_reused: int = 0
    planning_s: float = 0.0
    reading_s: float = 0.0
    cpu_s: float = 0.0
    _parts_read: set[str] = field(default_factory=set, repr=False, compare=False)
    _row_groups_read: set[tuple[str, int]] = field(default_factory=set, repr=False, compare=False)
    _lock: ForkSafeLock = field(default_factory=ForkSafeLock, repr=False, compare=False)

    def note_pruned(self, row_groups: int, refuted: int, pages: int, refuted_pages: int) -> None:
        """Count row groups and pages that a predicate was checked against, and those it refuted."""
        with self._lock:
            self.row_groups_considered += row_groups
            self.row_groups_pruned += refuted
            self.pages_considered += pages
            self.pages_pruned += refuted_pages

    def note_row_group(self, part_id: str, place: tuple[str, int], rows: int, size: int) -> None:
        """Count a read of `size` bytes of a row group's columns; `place` is (path, number).

        Each read adds its bytes. The part, the row group and its rows count only once.
        """
        with self._lock:
            self.bytes_read += size
            self._parts_read.add(part_id)
            self.parts_read = len(self._parts_read)
            if place not in self._row_groups_read:
                self._row_groups_read.add(place)
                self.row_groups_read = len(self._row_groups_read)
                self.rows_decoded += rows

    def add(self, other: ScanMetrics) -> None:
        """Add the counters of another portion of this scan; parts and row groups count once."""
        with self._lock:
            for counter in fields(self):
                if counter.type in ("int", "float"):
                    total = getattr(self, counter.name) + getattr(other, counter.name)
                    setattr(self, counter.name, total)
            for reason, parts in other.pruned_by.items():
                self.pruned_by[reason] = self.pruned_by.get(reason, 0) + parts
            self._parts_read |= other._parts_read
            self._row_groups_read |= other._row_groups_read
            self.parts_read = len(self._parts_read)
            self.row_groups_read = len(self._row_groups_read)

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values, for JSON."""
        return {
            counter.name: getattr(self, counter.name)
            for counter in fields(self)
            if not counter.name.startswith("_")
        }


@dataclass(slots=True)
class WriterMetrics:
    """Counters of a writer: rows with tombstones, bytes, and the cost of statistics.

    `arrow_bytes` are those of the rows in memory, `bytes_written` those of their files.
    Parts count even if their commit failed. `statistics_trimmed` counts subjects that were cut or
    dropped to fit the budget. `statistics_mismatched` counts subjects that were dropped because a
    collector's result had the wrong type or contradicted itself.
    """

    parts_written: int = 0
    rows_written: int = 0
    arrow_bytes: int = 0
    bytes_written: int = 0
    statistics_bytes: int = 0
    statistics_s: float = 0.0
    statistics_trimmed: int = 0
    statistics_mismatched: int = 0

    def since(self, earlier: WriterMetrics) -> WriterMetrics:
        """Return the difference to an earlier state of the same counters."""
        names = [counter.name for counter in fields(self)]
        return WriterMetrics(*(getattr(self, name) - getattr(earlier, name) for name in names))

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values, for JSON."""
        return asdict(self)
