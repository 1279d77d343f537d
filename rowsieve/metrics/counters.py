"""Counters of scans and writers.

A scan fills one `ScanMetrics`, which is complete once the scan's stream is exhausted. Times are in
seconds, sizes in bytes of stored files. The threads of a scan must update counters by methods.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from rowsieve.errors import EncodingsDiffer
from rowsieve.locks import ForkSafeLock
from rowsieve.metrics.encoding_differences import Difference
from rowsieve.metrics.metrics_table import ShownAsTable

MAX_DIFFERENCES: Final = 1_000  # that a read keeps; all are counted
_LOGGED: Final = 10
_LOG: Final = logging.getLogger("rowsieve")

FlagValues: TypeAlias = Mapping[str, Mapping[str, str | int | float]]
"""By name of a flag: its value, and the source of it, which is `UNSET` for the default."""
UNSET: Final = "process default"


@dataclass(slots=True)
class ScanMetrics(ShownAsTable):
    """Counters of one scan; `pruned_by` counts skipped parts by reason.

    `flags` has the value of each flag of the read, and where it came from.
    `rows_shadowed` counts rows whose columns were compared with their codec, and
    `encoding_differences` the values that differed; `differences` has the first of them.
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
    rows_shadowed: int = 0
    encoding_differences: int = 0
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
    _compared: dict[str, npt.NDArray[np.bool_]] = field(
        default_factory=dict, repr=False, compare=False
    )
    _differences: list[Difference] = field(default_factory=list, repr=False, compare=False)
    _lock: ForkSafeLock = field(default_factory=ForkSafeLock, repr=False, compare=False)

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The first differences between columns and codec that a shadow read saw."""
        return tuple(self._differences)

    def note_compared(
        self, path: str, row_count: int, rows: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Count rows of a file as compared; return which of them were not compared before."""
        with self._lock.mutex:
            known = self._compared.setdefault(path, np.zeros(row_count, np.bool_))
            fresh = ~known[rows]
            known[rows] = True
            self.rows_shadowed += int(fresh.sum())
        return fresh

    def note_differences(self, differences: Sequence[Difference], *, raises: bool) -> None:
        """Count and log differences; EncodingsDiffer at the first one if the read `raises`."""
        if not differences:
            return
        with self._lock.mutex:
            before = self.encoding_differences
            self.encoding_differences += len(differences)
            self._differences += differences[: MAX_DIFFERENCES - len(self._differences)]
        if raises:
            raise EncodingsDiffer(
                f"{differences[0]}; {len(differences):,} values differ in the rows read so far. "
                "Read with on_encoding_difference='report' to see all of them"
            )
        for each in differences[: max(0, _LOGGED - before)]:
            _LOG.warning("%s", each)

    def note_pruned(self, row_groups: int, refuted: int, pages: int, refuted_pages: int) -> None:
        """Count row groups and pages that a predicate was checked against, and those it refuted."""
        with self._lock.mutex:
            self.row_groups_considered += row_groups
            self.row_groups_pruned += refuted
            self.pages_considered += pages
            self.pages_pruned += refuted_pages

    def note_row_group(self, part_id: str, place: tuple[str, int], rows: int, size: int) -> None:
        """Count a read of `size` bytes of a row group's columns; `place` is (path, number).

        Each read adds its bytes. The part, the row group and its rows count only once.
        """
        with self._lock.mutex:
            self.bytes_read += size
            self._parts_read.add(part_id)
            self.parts_read = len(self._parts_read)
            if place not in self._row_groups_read:
                self._row_groups_read.add(place)
                self.row_groups_read = len(self._row_groups_read)
                self.rows_decoded += rows

    def add(self, other: ScanMetrics) -> None:
        """Add the counters of another portion of this scan; parts and row groups count once."""
        with self._lock.mutex:
            for counter in fields(self):
                if counter.type in ("int", "float"):
                    total = getattr(self, counter.name) + getattr(other, counter.name)
                    setattr(self, counter.name, total)
            for reason, parts in other.pruned_by.items():
                self.pruned_by[reason] = self.pruned_by.get(reason, 0) + parts
            self._parts_read |= other._parts_read
            self._row_groups_read |= other._row_groups_read
            self._differences += other._differences[: MAX_DIFFERENCES - len(self._differences)]
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
class WriterMetrics(ShownAsTable):
    """Counters of a writer: rows with tombstones, bytes, and the cost of statistics.

    `arrow_bytes` are those of the rows in memory, `bytes_written` those of their files.
    Parts count even if their commit failed. `statistics_trimmed` counts subjects that were cut or
    dropped to fit the budget. `statistics_mismatched` counts subjects that were dropped because a
    collector's result had the wrong type or contradicted itself. `column_bytes` and `codec_bytes`
    are the uncompressed bytes of the two forms of rows, in tables that write a codec's.
    """

    parts_written: int = 0
    rows_written: int = 0
    arrow_bytes: int = 0
    bytes_written: int = 0
    statistics_bytes: int = 0
    statistics_s: float = 0.0
    statistics_trimmed: int = 0
    statistics_mismatched: int = 0
    column_bytes: int = 0
    codec_bytes: int = 0

    def since(self, earlier: WriterMetrics) -> WriterMetrics:
        """Return the difference to an earlier state of the same counters."""
        names = [counter.name for counter in fields(self)]
        return WriterMetrics(*(getattr(self, name) - getattr(earlier, name) for name in names))

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values, for JSON."""
        return asdict(self)
