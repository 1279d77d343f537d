"""What a scan considered, pruned and read, as counters.

A scan fills one `ScanMetrics`; it is complete when the scan's stream is exhausted. Times are
seconds, sizes are bytes of stored files.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


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
    rows_decoded: int = 0
    rows_returned: int = 0
    pruned_by: dict[str, int] = field(default_factory=dict)
    planning_s: float = 0.0
    reading_s: float = 0.0
    cpu_s: float = 0.0
    _read_ids: set[str] = field(default_factory=set, repr=False)

    def note_read(self, part_id: str) -> None:
        """Count a part of which something was read; again and again counts once."""
        self._read_ids.add(part_id)
        self.parts_read = len(self._read_ids)

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values, for JSON."""
        return {name: value for name, value in asdict(self).items() if name != "_read_ids"}
