"""The metrics of reports, as instruments of OpenTelemetry: the counters that Prometheus gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from rowsieve.metrics import CommitReport, IngestReport, ScanReport
from rowsieve.metrics.prometheus import COMMIT, INGEST, SCAN, WRITER
from rowsieve.metrics.reports import Report
from rowsieve.telemetry.attributes import ERROR, Attributes, attributes_of_target

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Meter

GROUPS: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "scan": SCAN,
    "commit": COMMIT,
    "writer": WRITER,
    "ingest": INGEST,
}
SECONDS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0)
"""Bounds of durations, as the conventions advise."""


class Instruments:
    """The instruments of one meter. Thread-safe, as those of OpenTelemetry are."""

    def __init__(self, meter: Meter) -> None:
        self._duration = meter.create_histogram(
            "db.client.operation.duration",
            unit="s",
            description="Duration of reads and changes.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._returned = meter.create_histogram(
            "db.client.response.returned_rows",
            unit="{row}",
            description="Rows that reads returned.",
        )
        self._counters: dict[tuple[str, str], Counter] = {
            (group, name): meter.create_counter(
                f"rowsieve.{group}.{name}", unit=_unit(name), description=meaning
            )
            for group, counters in GROUPS.items()
            for name, (_, meaning) in counters.items()
        }

    def add(self, report: Report) -> None:
        """Add a report to the instruments."""
        if isinstance(report, IngestReport):
            self._count("ingest", report.metrics, attributes_of_target("writer", report.table))
            return
        name = "scan" if isinstance(report, ScanReport) else report.operation
        known = attributes_of_target(name, report.table)
        if report.error and report.error != "GeneratorExit":
            known[ERROR] = report.error
        self._duration.record(report.elapsed_s, known)
        if isinstance(report, ScanReport):
            self._count("scan", report.metrics, known)
            self._returned.record(report.metrics.rows_returned, known)
        elif isinstance(report, CommitReport) and not report.error:
            self._count("commit", report, known)
            self._count("writer", report.writer, known)

    def _count(self, group: str, counts: Any, known: Attributes) -> None:
        for name in GROUPS[group]:
            if value := getattr(counts, name):
                self._counters[group, name].add(value, known)


def _unit(name: str) -> str:
    """Return the unit of a counter, by its name, as the metric system of UCUM has it."""
    if name.endswith("_s"):
        return "s"
    return "By" if "bytes" in name else "1"
