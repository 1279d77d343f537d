"""What a writer counts, and the reports of it. Each counter has one thread that writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rowsieve.changes.table_handle import Handle
from rowsieve.locks import ForkSafeLock
from rowsieve.metrics import Histogram, IngestMetrics, IngestReport, send
from rowsieve.writer.queued_calls import QueuedCall


class Counting:
    """The metrics of one writer. Thread-safe."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._lock = ForkSafeLock()
        self._total = IngestMetrics()
        self._reported: IngestMetrics | None = None

    def metrics(self) -> IngestMetrics:
        """Return a copy of all counters."""
        with self._lock:
            return self._total.since(None)

    def note_group(self, calls: Sequence[QueuedCall], size_bytes: int = 0) -> None:
        """Count calls that are acknowledged now, and the bytes of their record."""
        now_s, rows = time.perf_counter(), sum(call.rows for call in calls)
        with self._lock:
            total = self._total
            total.groups += 1
            total.calls_acknowledged += len(calls)
            total.rows_acknowledged += rows
            total.wal_bytes += size_bytes
            total.group_rows.add(rows)
            for call in calls:
                total.acknowledge_s.add(now_s - call.begun_s)

    def note_failed(self, calls: int = 1) -> None:
        """Count calls that failed."""
        with self._lock:
            self._total.calls_failed += calls

    def note_recovered(self, rows: int) -> None:
        """Count rows that the log had when it was opened."""
        with self._lock:
            self._total.rows_recovered += rows

    def note_flushed(self, rows: int) -> None:
        """Count rows of memtables that are committed."""
        with self._lock:
            self._total.flushes += 1
            self._total.rows_flushed += rows

    def note_failed_flush(self) -> None:
        """Count a commit of memtables that failed."""
        with self._lock:
            self._total.flushes_failed += 1

    @contextmanager
    def sync_timed(self) -> Iterator[None]:
        """Count a sync, which is the block, and its time."""
        with self._timed(self._total.sync_s):
            yield
        with self._lock:
            self._total.wal_syncs += 1

    @contextmanager
    def flush_timed(self) -> Iterator[None]:
        """Count the time of a commit of memtables, which is the block."""
        with self._timed(self._total.flush_s):
            yield

    @contextmanager
    def _timed(self, histogram: Histogram) -> Iterator[None]:
        begun_s = time.perf_counter()
        yield
        with self._lock:
            histogram.add(time.perf_counter() - begun_s)

    def report(self) -> None:
        """Send what was counted since the last report."""
        if (reporter := self._handle.reporter) is None:
            return
        with self._lock:
            now = self._total.since(None)
            since, self._reported = now.since(self._reported), now
        send(reporter, IngestReport(self._handle.store.uri, self._handle.newest.version, since))
