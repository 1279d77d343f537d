"""Reports added up as Prometheus counters and histograms, and their text exposition (0.0.4).

Serve `text()` wherever the process answers scrapes, as `text/plain; version=0.0.4`. Counters only
grow, and start at 0 with the reporter.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from rowsieve.locks import ForkSafeLock
from rowsieve.metrics.counters import WriterMetrics
from rowsieve.metrics.reports import CommitReport, Report, ScanReport

Sample = tuple[str, tuple[tuple[str, str], ...], float]
"""Name, labels and value."""

SCAN: Final = {
    "parts_considered": ("scan_parts_considered_total", "Parts of the versions read."),
    "parts_read": ("scan_parts_read_total", "Parts whose rows were opened."),
    "bytes_considered": ("scan_considered_bytes_total", "Stored bytes of the versions read."),
    "bytes_pruned": ("scan_pruned_bytes_total", "Stored bytes of parts left out."),
    "bytes_read": ("scan_read_bytes_total", "Stored bytes of columns decoded."),
    "row_groups_considered": ("scan_row_groups_considered_total", "Row groups asked."),
    "row_groups_pruned": ("scan_row_groups_pruned_total", "Row groups refuted."),
    "pages_considered": ("scan_pages_considered_total", "Pages asked."),
    "pages_pruned": ("scan_pages_pruned_total", "Pages refuted."),
    "row_groups_read": ("scan_row_groups_read_total", "Row groups decoded."),
    "rows_decoded": ("scan_rows_decoded_total", "Rows decoded, keys and tombstones included."),
    "rows_returned": ("scan_rows_returned_total", "Rows handed out."),
    "audited": ("scan_audited_total", "Claims of pruning that were audited."),
    "audit_violations": ("scan_audit_violations_total", "Rows that contradicted pruning."),
    "rows_audited": ("scan_audited_rows_total", "Rows judged by audits."),
    "bytes_audited": ("scan_audited_bytes_total", "Stored bytes read by audits."),
    "statistics_contradicting": (
        "scan_statistics_contradicting_total",
        "Statistics of parts that contradicted themselves and were not believed.",
    ),
    "statistics_unreadable": (
        "scan_statistics_unreadable_total",
        "Statistics of parts that were asked for and lost.",
    ),
    "plans_reused": ("scan_plans_reused_total", "Scans whose plan was made before."),
    "planning_s": ("scan_planning_seconds_total", "Time spent making plans."),
    "reading_s": ("scan_reading_seconds_total", "Time that streams were open."),
    "cpu_s": ("scan_cpu_seconds_total", "CPU time of the process while streams were open."),
}
COMMIT: Final = {
    "rows_written": ("commit_rows_written_total", "Rows that commits wrote."),
    "rows_deleted": ("commit_rows_deleted_total", "Rows or keys that commits took away."),
    "parts_added": ("commit_parts_added_total", "Parts that commits added."),
    "parts_removed": ("commit_parts_removed_total", "Parts that commits removed."),
}
WRITER: Final = {
    "parts_written": ("writer_parts_total", "Parts written, committed or not."),
    "rows_written": ("writer_rows_total", "Rows and tombstones written."),
    "bytes_written": ("writer_bytes_total", "Stored bytes written."),
    "statistics_bytes": ("writer_statistics_bytes_total", "Bytes of statistics kept."),
    "statistics_s": ("writer_statistics_seconds_total", "Time spent taking statistics."),
    "statistics_trimmed": ("writer_statistics_trimmed_total", "Statistics cut or left out."),
    "statistics_mismatched": (
        "writer_statistics_mismatched_total",
        "Statistics left out as they had another type or contradicted themselves.",
    ),
}
_OTHERS: Final = {
    "scans_total": "Reads of scans.",
    "scan_errors_total": "Reads that ended by an error.",
    "scan_parts_pruned_total": "Parts left out, by reason.",
    "commits_total": "Commits, by operation.",
}
LATENCY: Final = "scan_duration_seconds"
BUCKETS_S: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)
_HELP: Final = _OTHERS | dict([*SCAN.values(), *COMMIT.values(), *WRITER.values()])


class PrometheusReporter:
    """Adds up what tables report, by table; safe to share by tables and threads."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self._latencies: dict[tuple[str, str], _Latency] = {}
        self._lock = ForkSafeLock()

    def report(self, report: Report) -> None:
        """Add one."""
        samples = _scan(report) if isinstance(report, ScanReport) else _commit(report)
        with self._lock:
            for name, labels, value in samples:
                self._counters[name, labels] = self._counters.get((name, labels), 0) + value
            if isinstance(report, ScanReport):
                key = (report.engine, report.table)
                self._latencies.setdefault(key, _Latency()).add(report.elapsed_s)

    def text(self) -> str:
        """All counters in the text format, sorted by name and labels, then the histogram."""
        with self._lock:
            counters = sorted(self._counters.items())
            latencies = [line for key in sorted(self._latencies) for line in self._lines(key)]
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
        if latencies:
            lines.append(f"# HELP rowsieve_{LATENCY} Time from planning to the end of a read.")
            lines.append(f"# TYPE rowsieve_{LATENCY} histogram")
        lines += latencies
        return "".join(f"{line}\n" for line in lines)

    def _lines(self, key: tuple[str, str]) -> Iterator[str]:
        labels = (("engine", key[0]), ("table", key[1]))
        found = self._latencies[key]
        for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), found.cumulative(), strict=True):
            yield _line(f"{LATENCY}_bucket", (*labels, ("le", bound)), count)
        yield _line(f"{LATENCY}_sum", labels, found.total_s)
        yield _line(f"{LATENCY}_count", labels, sum(found.counts))


class _Latency:
    """How many reads took how long: one count per bucket, the last one beyond all bounds."""

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
    yield "commits_total", (table, ("operation", report.operation)), 1
    for counter, (name, _) in COMMIT.items():
        yield name, (table,), getattr(report, counter)
    yield from _writer(report.writer, table)


def _writer(metrics: WriterMetrics, table: tuple[str, str]) -> Iterator[Sample]:
    for counter, (name, _) in WRITER.items():
        yield name, (table,), getattr(metrics, counter)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
