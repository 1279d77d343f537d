"""Prometheus counters and histograms of reports, in the text exposition format (0.0.4).

Serve `text()` from the process's scrape endpoint as `text/plain; version=0.0.4`. Counters start at
0 with the reporter and never decrease.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from rowsieve.locks import ForkSafeLock
from rowsieve.metrics.caches import gauge_lines
from rowsieve.metrics.counters import FlagValues, WriterMetrics
from rowsieve.metrics.histograms import BUCKETS_BYTES, BUCKETS_ROWS, Histogram
from rowsieve.metrics.ingest_metrics import IngestReport
from rowsieve.metrics.reports import CommitReport, Report, ScanReport
from rowsieve.metrics.text_format import Labels, line

Sample: TypeAlias = tuple[str, Labels, float]
"""(name, labels, value)."""

SCAN: Final = {
    "parts_considered": ("scan_parts_considered_total", "Parts of the versions read."),
    "parts_read": ("scan_parts_read_total", "Parts whose rows were opened."),
    "bytes_considered": ("scan_considered_bytes_total", "Stored bytes of the versions read."),
    "bytes_pruned": ("scan_pruned_bytes_total", "Stored bytes of pruned parts."),
    "bytes_read": ("scan_read_bytes_total", "Stored bytes of columns decoded."),
    "row_groups_considered": ("scan_row_groups_considered_total", "Row groups checked."),
    "row_groups_pruned": ("scan_row_groups_pruned_total", "Row groups refuted."),
    "pages_considered": ("scan_pages_considered_total", "Pages checked."),
    "pages_pruned": ("scan_pages_pruned_total", "Pages refuted."),
    "row_groups_read": ("scan_row_groups_read_total", "Row groups decoded."),
    "rows_decoded": ("scan_rows_decoded_total", "Rows decoded, keys and tombstones included."),
    "rows_returned": ("scan_rows_returned_total", "Rows returned."),
    "batches_returned": ("scan_batches_returned_total", "Batches of rows returned."),
    "bytes_returned": ("scan_returned_bytes_total", "Bytes of returned rows, as Arrow."),
    "audited": ("scan_audited_total", "Claims of pruning that were audited."),
    "audit_violations": ("scan_audit_violations_total", "Rows that contradicted pruning."),
    "rows_audited": ("scan_audited_rows_total", "Rows judged by audits."),
    "bytes_audited": ("scan_audited_bytes_total", "Stored bytes read by audits."),
    "rows_shadowed": ("scan_shadowed_rows_total", "Rows whose columns and codec were compared."),
    "encoding_differences": (
        "scan_encoding_differences_total",
        "Values that columns and codec hold differently.",
    ),
    "statistics_contradicting": (
        "scan_statistics_contradicting_total",
        "Statistics of parts that contradicted themselves and were ignored.",
    ),
    "statistics_unreadable": (
        "scan_statistics_unreadable_total",
        "Statistics of parts that were requested and could not be read.",
    ),
    "plans_reused": ("scan_plans_reused_total", "Scans whose plan was cached."),
    "planning_s": ("scan_planning_seconds_total", "Time spent making plans."),
    "reading_s": ("scan_reading_seconds_total", "Time that streams were open."),
    "cpu_s": ("scan_cpu_seconds_total", "CPU time of the process while streams were open."),
}
COMMIT: Final = {
    "rows_written": ("commit_rows_written_total", "Rows that commits wrote."),
    "rows_deleted": ("commit_rows_deleted_total", "Rows or keys that commits deleted."),
    "parts_added": ("commit_parts_added_total", "Parts that commits added."),
    "parts_removed": ("commit_parts_removed_total", "Parts that commits removed."),
}
WRITER: Final = {
    "parts_written": ("writer_parts_total", "Parts written, committed or not."),
    "rows_written": ("writer_rows_total", "Rows and tombstones written."),
    "arrow_bytes": ("writer_arrow_bytes_total", "Bytes of rows written, as Arrow."),
    "bytes_written": ("writer_bytes_total", "Stored bytes written."),
    "statistics_bytes": ("writer_statistics_bytes_total", "Bytes of statistics kept."),
    "statistics_s": ("writer_statistics_seconds_total", "Time spent collecting statistics."),
    "statistics_trimmed": ("writer_statistics_trimmed_total", "Statistics cut or dropped."),
    "statistics_mismatched": (
        "writer_statistics_mismatched_total",
        "Statistics dropped because of a wrong type or a contradiction.",
    ),
    "column_bytes": ("writer_column_bytes_total", "Bytes of columns beside a codec, plain."),
    "codec_bytes": ("writer_codec_bytes_total", "Bytes of rows encoded by a codec, plain."),
}
INGEST: Final = {
    "calls_acknowledged": ("ingest_calls_total", "Calls of writers that were acknowledged."),
    "calls_failed": ("ingest_calls_failed_total", "Calls of writers that failed."),
    "rows_acknowledged": ("ingest_rows_total", "Rows and deletes that were acknowledged."),
    "groups": ("ingest_groups_total", "Calls that were made durable together, as one."),
    "wal_bytes": ("ingest_wal_bytes_total", "Bytes of records in write-ahead logs."),
    "wal_syncs": ("ingest_wal_syncs_total", "Syncs of write-ahead logs."),
    "rows_recovered": ("ingest_rows_recovered_total", "Rows that opened logs had."),
    "flushes": ("ingest_flushes_total", "Commits of memtables."),
    "flushes_failed": ("ingest_flushes_failed_total", "Commits of memtables that failed."),
    "rows_flushed": ("ingest_rows_flushed_total", "Rows and deletes of committed memtables."),
}
INGEST_HISTOGRAMS: Final = {
    "group_rows": "ingest_group_rows",
    "acknowledge_s": "ingest_acknowledge_seconds",
    "sync_s": "ingest_wal_sync_seconds",
    "flush_s": "ingest_flush_seconds",
}
_OTHERS: Final = {
    "scans_total": "Reads of scans.",
    "scan_errors_total": "Reads that ended with an error.",
    "scan_parts_pruned_total": "Pruned parts, by reason.",
    "flags_total": "Reads and commits, by a flag's value and where it came from.",
    "commits_total": "Commits, by operation.",
    "commit_errors_total": "Changes that ended with an error, by operation.",
}
LATENCIES: Final = {
    "commit_duration_seconds": "Time from the call of a change to its end, also if it failed.",
    "scan_duration_seconds": "Time from planning to the end of a read.",
    "scan_batch_rows": "Rows of a batch that a read returned, on average.",
    "scan_row_bytes": "Bytes of a row that a read returned, as Arrow, on average.",
    "commit_rows": "Rows and tombstones of a change.",
    "commit_row_bytes": "Bytes of a row of a change, as Arrow, on average.",
    "ingest_group_rows": "Rows of calls that were made durable together.",
    "ingest_acknowledge_seconds": "Time from the call of a writer to its acknowledgement.",
    "ingest_wal_sync_seconds": "Time of a sync of the write-ahead log.",
    "ingest_flush_seconds": "Time to commit memtables.",
}
_HELP: Final = _OTHERS | dict(
    [*SCAN.values(), *COMMIT.values(), *WRITER.values(), *INGEST.values()]
)


class PrometheusReporter:
    """Adds up the reports of tables, by table. Thread-safe; several tables may share it."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, Labels], float] = {}
        self._latencies: dict[tuple[str, Labels], Histogram] = {}
        self._lock = ForkSafeLock()

    def report(self, report: Report) -> None:
        """Add a report to the counters."""
        samples, histograms = _samples(report), dict(_histograms(report))
        with self._lock:
            for name, labels, value in samples:
                self._counters[name, labels] = self._counters.get((name, labels), 0) + value
            for key, values in histograms.items():
                self._latencies.setdefault(key, Histogram(values.bounds)).merge(values)

    def text(self) -> str:
        """Return all counters in the text format, by name and labels, histograms, and gauges."""
        with self._lock:
            counters = sorted(self._counters.items())
            latencies = {key: list(self._lines(*key)) for key in sorted(self._latencies)}
        lines: list[str] = []
        last = ""
        for (name, labels), value in counters:
            if name != last:
                lines += [
                    f"# HELP rowsieve_{name} {_HELP[name]}",
                    f"# TYPE rowsieve_{name} counter",
                ]
                last = name
            lines.append(line(name, labels, value))
        for (name, _), histogram in latencies.items():
            if name != last:
                lines.append(f"# HELP rowsieve_{name} {LATENCIES[name]}")
                lines.append(f"# TYPE rowsieve_{name} histogram")
                last = name
            lines += histogram
        lines += gauge_lines()
        return "".join(f"{line}\n" for line in lines)

    def _lines(self, name: str, labels: Labels) -> Iterator[str]:
        latency = self._latencies[name, labels]
        bounds = (*map(str, latency.bounds), "+Inf")
        for bound, count in zip(bounds, latency.cumulative(), strict=True):
            yield line(f"{name}_bucket", (*labels, ("le", bound)), count)
        yield line(f"{name}_sum", labels, latency.total)
        yield line(f"{name}_count", labels, sum(latency.counts))


def _samples(report: Report) -> Iterator[Sample]:
    if isinstance(report, ScanReport):
        return _scan(report)
    if isinstance(report, IngestReport):
        return _ingest(report)
    return _commit(report)


def _histograms(report: Report) -> Iterator[tuple[tuple[str, Labels], Histogram]]:
    """Yield the histograms that a report adds to, by name and labels, with what it adds."""
    table = ("table", report.table)
    if isinstance(report, IngestReport):
        for field, name in INGEST_HISTOGRAMS.items():
            yield (name, (table,)), getattr(report.metrics, field)
        return
    duration = Histogram()
    duration.add(report.elapsed_s)
    if isinstance(report, ScanReport):
        yield ("scan_duration_seconds", (("engine", report.engine), table)), duration
        read = report.metrics
        yield from _means("scan_batch_rows", table, read.rows_returned, read.batches_returned)
        yield from _means("scan_row_bytes", table, read.bytes_returned, read.rows_returned)
    else:
        yield ("commit_duration_seconds", (("operation", report.operation), table)), duration
        written = report.writer
        yield from _means("commit_rows", table, written.rows_written, int(not report.error))
        yield from _means("commit_row_bytes", table, written.arrow_bytes, written.rows_written)


def _means(
    name: str, table: tuple[str, str], total: int, count: int
) -> Iterator[tuple[tuple[str, Labels], Histogram]]:
    """Yield the histogram of one mean; nothing if nothing was counted."""
    if not total or not count:
        return
    histogram = Histogram(BUCKETS_ROWS if name.endswith("_rows") else BUCKETS_BYTES)
    histogram.add(total / count)
    yield (name, (table,)), histogram


def _ingest(report: IngestReport) -> Iterator[Sample]:
    for counter, (name, _) in INGEST.items():
        yield name, (("table", report.table),), getattr(report.metrics, counter)


def _scan(report: ScanReport) -> Iterator[Sample]:
    table = ("table", report.table)
    yield "scans_total", (table,), 1
    if report.error and report.error != "GeneratorExit":
        yield "scan_errors_total", (table, ("error", report.error)), 1
    yield from _flags(report.metrics.flags, table)
    for reason, parts in report.metrics.pruned_by.items():
        yield "scan_parts_pruned_total", (table, ("by", reason)), parts
    for counter, (name, _) in SCAN.items():
        yield name, (table,), getattr(report.metrics, counter)


def _commit(report: CommitReport) -> Iterator[Sample]:
    table = ("table", report.table)
    if report.error:
        by = (("operation", report.operation), ("error", report.error))
        yield "commit_errors_total", (table, *by), 1
        return
    yield "commits_total", (table, ("operation", report.operation)), 1
    for counter, (name, _) in COMMIT.items():
        yield name, (table,), getattr(report, counter)
    yield from _writer(report.writer, table)
    yield from _flags(report.flags, table)


def _flags(flags: FlagValues, table: tuple[str, str]) -> Iterator[Sample]:
    for name, flag in flags.items():
        value, source = str(flag["value"]), str(flag["source"])
        yield "flags_total", (table, ("flag", name), ("value", value), ("source", source)), 1


def _writer(metrics: WriterMetrics, table: tuple[str, str]) -> Iterator[Sample]:
    for counter, (name, _) in WRITER.items():
        yield name, (table,), getattr(metrics, counter)
