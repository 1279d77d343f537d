"""Prometheus counters and histograms of reports, in the text exposition format (0.0.4).

Serve `text()` from the process's scrape endpoint as `text/plain; version=0.0.4`. Counters start at
0 with the reporter and never decrease.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, TypeAlias

from rowsieve.locks import ForkSafeLock
from rowsieve.metrics.caches import gauge_lines
from rowsieve.metrics.counters import WriterMetrics
from rowsieve.metrics.reports import CommitReport, Report, ScanReport

Labels: TypeAlias = tuple[tuple[str, str], ...]
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
    "audited": ("scan_audited_total", "Claims of pruning that were audited."),
    "audit_violations": ("scan_audit_violations_total", "Rows that contradicted pruning."),
    "rows_audited": ("scan_audited_rows_total", "Rows judged by audits."),
    "bytes_audited": ("scan_audited_bytes_total", "Stored bytes read by audits."),
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
    "bytes_written": ("writer_bytes_total", "Stored bytes written."),
    "statistics_bytes": ("writer_statistics_bytes_total", "Bytes of statistics kept."),
    "statistics_s": ("writer_statistics_seconds_total", "Time spent collecting statistics."),
    "statistics_trimmed": ("writer_statistics_trimmed_total", "Statistics cut or dropped."),
    "statistics_mismatched": (
        "writer_statistics_mismatched_total",
        "Statistics dropped because of a wrong type or a contradiction.",
    ),
}
_OTHERS: Final = {
    "scans_total": "Reads of scans.",
    "scan_errors_total": "Reads that ended with an error.",
    "scan_parts_pruned_total": "Pruned parts, by reason.",
    "commits_total": "Commits, by operation.",
    "commit_errors_total": "Changes that ended with an error, by operation.",
}
LATENCIES: Final = {
    "commit_duration_seconds": "Time from the call of a change to its end, also if it failed.",
    "scan_duration_seconds": "Time from planning to the end of a read.",
}
BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
_HELP: Final = _OTHERS | dict([*SCAN.values(), *COMMIT.values(), *WRITER.values()])


class PrometheusReporter:
    """Adds up the reports of tables, by table. Thread-safe; several tables may share it."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, Labels], float] = {}
        self._latencies: dict[tuple[str, Labels], _Latency] = {}
        self._lock = ForkSafeLock()

    def report(self, report: Report) -> None:
        """Add a report to the counters."""
        samples = _scan(report) if isinstance(report, ScanReport) else _commit(report)
        with self._lock:
            for name, labels, value in samples:
                self._counters[name, labels] = self._counters.get((name, labels), 0) + value
            self._latencies.setdefault(_histogram(report), _Latency()).add(report.elapsed_s)

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
            lines.append(_line(name, labels, value))
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
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), latency.cumulative(), strict=True):
            yield _line(f"{name}_bucket", (*labels, ("le", bound)), count)
        yield _line(f"{name}_sum", labels, latency.total_s)
        yield _line(f"{name}_count", labels, sum(latency.counts))


class _Latency:
    """A histogram of durations: one count per bucket; the last bucket is above all bounds."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.total_s = 0.0

    def add(self, elapsed_s: float) -> None:
        self.counts[bisect_left(BUCKETS_S, elapsed_s)] += 1
        self.total_s += elapsed_s

    def cumulative(self) -> Iterator[int]:
        return accumulate(self.counts)


def _line(name: str, labels: tuple[tuple[str, str], ...], value: float) -> str:
    shown = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"rowsieve_{name}{{{shown}}} {value}"


def _histogram(report: Report) -> tuple[str, Labels]:
    """Return the name and labels of the histogram for a report's duration."""
    table = ("table", report.table)
    if isinstance(report, ScanReport):
        return "scan_duration_seconds", (("engine", report.engine), table)
    return "commit_duration_seconds", (("operation", report.operation), table)


def _scan(report: ScanReport) -> Iterator[Sample]:
    table = ("table", report.table)
    yield "scans_total", (table,), 1
    if report.error and report.error != "GeneratorExit":
        yield "scan_errors_total", (table, ("error", report.error)), 1
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


def _writer(metrics: WriterMetrics, table: tuple[str, str]) -> Iterator[Sample]:
    for counter, (name, _) in WRITER.items():
        yield name, (table,), getattr(metrics, counter)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
