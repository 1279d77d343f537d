"""What a scan considered, pruned and read, as counters.

A scan fills one `ScanMetrics`; it is complete when the scan's stream is exhausted. Times are
seconds, sizes are bytes of stored files. What the threads of a scan count, they count by methods.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from rowsieve.locks import ForkSafeLock


@dataclass(slots=True)
class ScanMetrics:
    """Counters of one scan; `pruned_by` counts parts by the reason they were left out."""

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
    audited: int = 0
    audit_violations: int = 0
    rows_audited: int = 0
    bytes_audited: int = 0
    pruned_by: dict[str, int] = field(default_factory=dict)
    statistics_contradicting: int = 0
    statistics_unreadable: int = 0
    plans_reused: int = 0
    planning_s: float = 0.0
    reading_s: float = 0.0
    cpu_s: float = 0.0
    _parts_read: set[str] = field(default_factory=set, repr=False, compare=False)
    _row_groups_read: set[tuple[str, int]] = field(default_factory=set, repr=False, compare=False)
    _lock: ForkSafeLock = field(default_factory=ForkSafeLock, repr=False, compare=False)

    def note_row_groups(self, considered: int, pruned: int) -> None:
        """Count row groups that a predicate was held against."""
        with self._lock:
            self.row_groups_considered += considered
            self.row_groups_pruned += pruned

    def note_pages(self, considered: int, pruned: int) -> None:
        """Count pages that a predicate was held against."""
        with self._lock:
            self.pages_considered += considered
            self.pages_pruned += pruned

    def note_row_group(self, part_id: str, place: tuple[str, int], rows: int, size: int) -> None:
        """Count columns of a row group, at (path, number), that were read: `size` bytes of them.

        Bytes count each time, the part, the row group and its rows only once.
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
        """Add the counters of another part of the same scan; a part or row group counts once."""
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
    """What a writer wrote, tombstones among its rows, and what its statistics cost.

    Parts count although their commit may have failed. `statistics_trimmed` counts subjects that
    were cut or dropped to fit the budget, `statistics_mismatched` those that a collector gave in
    another type, or that contradicted themselves, and that were left out.
    """

    parts_written: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    statistics_bytes: int = 0
    statistics_s: float = 0.0
    statistics_trimmed: int = 0
    statistics_mismatched: int = 0

    def since(self, earlier: WriterMetrics) -> WriterMetrics:
        """What was added to an earlier state of the same counters."""
        names = [counter.name for counter in fields(self)]
        return WriterMetrics(*(getattr(self, name) - getattr(earlier, name) for name in names))

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values, for JSON."""
        return asdict(self)
