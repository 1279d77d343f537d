"""Counters and histograms of a `Table.writer`, and their report."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from rowsieve.metrics.histograms import BUCKETS_ROWS, Histogram
from rowsieve.metrics.metrics_table import ShownAsTable


@dataclass(slots=True)
class IngestMetrics(ShownAsTable):
    """What a writer has acknowledged, logged and committed.

    A group is the calls that were made durable together, by one sync of the log or by one commit.
    `group_rows`, `acknowledge_s` (from a call to its acknowledgement), `sync_s` and `flush_s` are
    histograms.
    """

    calls_acknowledged: int = 0
    calls_failed: int = 0
    rows_acknowledged: int = 0
    groups: int = 0
    wal_bytes: int = 0
    wal_syncs: int = 0
    rows_recovered: int = 0
    flushes: int = 0
    flushes_failed: int = 0
    rows_flushed: int = 0
    group_rows: Histogram = field(default_factory=lambda: Histogram(BUCKETS_ROWS))
    acknowledge_s: Histogram = field(default_factory=Histogram)
    sync_s: Histogram = field(default_factory=Histogram)
    flush_s: Histogram = field(default_factory=Histogram)

    def since(self, earlier: IngestMetrics | None) -> IngestMetrics:
        """Return the difference to an earlier copy; a copy without one."""
        later = IngestMetrics()
        for each in fields(self):
            now = getattr(self, each.name)
            then = None if earlier is None else getattr(earlier, each.name)
            value = now.since(then) if isinstance(now, Histogram) else now - (then or 0)
            setattr(later, each.name, value)
        return later

    def as_dict(self) -> dict[str, Any]:
        """The counters as plain values, for JSON."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: value.as_dict() if isinstance(value, Histogram) else value
            for name, value in values.items()
        }


@dataclass(frozen=True, slots=True)
class IngestReport:
    """What a writer did since its last report: sent after each flush, and when it is closed.

    `version` is the newest version that the writer knew.
    """

    table: str
    version: int
    metrics: IngestMetrics
