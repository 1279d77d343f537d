"""What a table says of each scan and each commit, and to whom.

A reporter is given to a table by `Table.report_to`, or to the process by `Config`; nothing is
reported otherwise. It is called once per read and per change, in the thread that did it, after the
fact. What it raises is logged and changes neither the answer nor the commit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from rowsieve.metrics.counters import ScanMetrics, WriterMetrics

_LOG = logging.getLogger("rowsieve")


@dataclass(frozen=True, slots=True)
class ScanReport:
    """One read of a scan: all of it, or what there was until it ended.

    `error` is the name of what was raised, "GeneratorExit" where the reader did not want the rest.
    `engine` is who read: "python", "datafusion" or "spark". `elapsed_s` is the time from the start
    of planning to the end of the read, what the reader did between batches included.
    """

    table: str
    version: int
    metrics: ScanMetrics
    error: str | None = None
    engine: str = "python"
    elapsed_s: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class CommitReport:
    """One change: a commit, or with `error`, the name of what was raised, none.

    `writer` is what the table's object wrote since its last report: more than the commit holds
    where a change was tried again, or other threads write. `elapsed_s` is the time from the call to
    its end. `version` is the commit's; of a change that failed, the newest that the object knew.
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
    elapsed_s: float = field(default=0.0, compare=False)


Report: TypeAlias = ScanReport | CommitReport


class Reporter(Protocol):
    """Takes reports; must be safe to call from several threads, and quick."""

    def report(self, report: Report) -> None:
        """Take one."""
        ...


class LoggingReporter:
    """Writes a line for each report to a logger, `rowsieve` unless told otherwise."""

    def __init__(self, logger: logging.Logger = _LOG, level: int = logging.INFO) -> None:
        self._logger = logger
        self._level = level

    def report(self, report: Report) -> None:
        """Write the line; counters that are 0 are left out."""
        if not self._logger.isEnabledFor(self._level):
            return
        if isinstance(report, ScanReport):
            counts = report.metrics.as_dict()
            what = "scan" if report.engine == "python" else f"scan by {report.engine}"
        else:
            names = ("rows_written", "rows_deleted", "parts_added", "parts_removed")
            counts = {name: getattr(report, name) for name in names} | {
                f"writer_{name}": count for name, count in report.writer.as_dict().items()
            }
            what = report.operation
        ended = f", ended by {report.error}" if report.error else ""
        shown = " ".join(f"{name}={_shown(count)}" for name, count in counts.items() if count)
        self._logger.log(
            self._level,
            "%s of %s version %d%s: %s",
            what,
            report.table,
            report.version,
            ended,
            shown,
        )


def send(reporter: Reporter | None, report: Report) -> None:
    """Give the report to the reporter, if there is one; what it raises is logged."""
    if reporter is None:
        return
    try:
        reporter.report(report)
    except Exception:
        _LOG.exception("%s failed on a report of %s", type(reporter).__name__, report.table)


def _shown(count: object) -> str:
    return f"{count:.6f}" if isinstance(count, float) else str(count)
