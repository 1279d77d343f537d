"""Reports of scans, commits and writers, and the reporters that receive them.

Set a reporter for a table by `Table.report_to`, or for the process by `Config`; without one,
nothing is reported. The reporter is called once per read and per change, after it ends, in the same
thread, and by a writer in its threads. Exceptions of a reporter are logged; they affect neither the
result nor the commit.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rowsieve.metrics.counters import UNSET, FlagValues, ScanMetrics, WriterMetrics
from rowsieve.metrics.ingest_metrics import IngestReport
from rowsieve.metrics.json_logs import FIELDS
from rowsieve.metrics.running_operations import current_id

_LOG = logging.getLogger("rowsieve")


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One read of a scan, complete or ended early.

    `error` is the name of the exception that ended it; "GeneratorExit" if the reader stopped early.
    `engine` is the reading engine: "python", "datafusion" or "spark". `elapsed_s` is the time from
    the start of planning to the end of the read, with the reader's time between batches.
    `operation_id` is that of the read, which its log records have, too.
    """

    table: str
    version: int
    metrics: ScanMetrics
    error: str | None = None
    engine: str = "python"
    elapsed_s: float = field(default=0.0, compare=False)
    operation_id: str = field(default_factory=current_id, compare=False)


@dataclass(frozen=True, slots=True)
class CommitReport:
    """One change: a commit, or a failure with `error`, the name of the exception.

    `writer` counts the writes of the `Table` object since its last report. These exceed the
    commit's if the change was retried, or other threads write. `elapsed_s` is the duration of the
    call. `version` is the commit's; after a failure, the newest version that the object knew.
    `flags` has the value of each flag of the write, and where it came from; not after a failure.
    `commit_id` is that of the log, empty after a failure; `operation_id` that of the call, which
    its log records have, too.
    """

    table: str
    version: int
    operation: str
    rows_written: int = 0
    rows_deleted: int = 0
    parts_added: int = 0
    parts_removed: int = 0
    writer: WriterMetrics = field(default_factory=WriterMetrics)
    error: str | None = None
    flags: FlagValues = field(default_factory=dict)
    elapsed_s: float = field(default=0.0, compare=False)
    commit_id: str = field(default="", compare=False)
    operation_id: str = field(default_factory=current_id, compare=False)


Report: TypeAlias = ScanReport | CommitReport | IngestReport


class Reporter(Protocol):
    """Receives reports; must be thread-safe and fast."""

    def report(self, report: Report) -> None:
        """Receive a report."""


class LoggingReporter:
    """Writes a line for each report to a logger, by default `rowsieve`."""

    def __init__(self, logger: logging.Logger = _LOG, level: int = logging.INFO) -> None:
        self._logger = logger
        self._level = level

    def report(self, report: Report) -> None:
        """Write the line; counters that are 0 are omitted."""
        if not self._logger.isEnabledFor(self._level):
            return
        ended = "" if isinstance(report, IngestReport) else report.error
        if isinstance(report, ScanReport):
            counts = report.metrics.as_dict() | {"flags": _flags_set(report.metrics.flags)}
            what = "scan" if report.engine == "python" else f"scan by {report.engine}"
        elif isinstance(report, IngestReport):
            counts = dict(report.metrics.as_dict())
            for name in ("group_rows", "acknowledge_s", "sync_s", "flush_s"):
                counts[name] = counts[name]["sum"]
            what = "writer"
        else:
            names = ("rows_written", "rows_deleted", "parts_added", "parts_removed")
            counts = {name: getattr(report, name) for name in names} | {
                f"writer_{name}": count for name, count in report.writer.as_dict().items()
            }
            counts["flags"] = _flags_set(report.flags)
            what = report.operation
        shown = " ".join(f"{name}={_shown(count)}" for name, count in counts.items() if count)
        self._logger.log(
            self._level,
            "%s of %s version %d%s: %s",
            what,
            report.table,
            report.version,
            f", ended by {ended}" if ended else "",
            shown,
            extra={FIELDS: _fields(report, counts)},
        )


def send(reporter: Reporter | None, report: Report) -> None:
    """Send the report to the reporter, if any; log the exceptions that it raises."""
    if reporter is None:
        return
    try:
        reporter.report(report)
    except Exception:
        _LOG.exception("%s failed on a report of %s", type(reporter).__name__, report.table)


def _fields(report: Report, counts: Mapping[str, object]) -> dict[str, object]:
    """The report as fields of a JSON log; counters that are 0 are omitted."""
    fields: dict[str, object] = {"table": report.table, "version": report.version}
    if isinstance(report, ScanReport):
        fields |= {"report": "scan", "scan_id": report.operation_id, "engine": report.engine}
    elif isinstance(report, CommitReport):
        fields |= {"report": "commit", "operation": report.operation}
        fields |= {"commit_id": report.commit_id, "operation_id": report.operation_id}
    else:
        fields["report"] = "writer"
    if not isinstance(report, IngestReport):
        fields |= {"elapsed_s": report.elapsed_s, "error": report.error}
    return fields | {"counts": {name: count for name, count in counts.items() if count}}


def _flags_set(flags: FlagValues) -> str:
    """The flags that have a value by something else than the process's default."""
    values = ((name, flag["value"], flag["source"]) for name, flag in flags.items())
    return ",".join(
        f"{name}:{value}({source})" for name, value, source in values if source != UNSET
    )


def _shown(count: object) -> str:
    return f"{count:.6f}" if isinstance(count, float) else str(count)
