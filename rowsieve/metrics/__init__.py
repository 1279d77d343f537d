"""What scans and writers count, and where the counts go: counters, reports, reporters."""

from rowsieve.metrics.counters import ScanMetrics, WriterMetrics
from rowsieve.metrics.prometheus import PrometheusReporter
from rowsieve.metrics.reports import CommitReport, LoggingReporter, Reporter, ScanReport, send

__all__ = [
    "CommitReport",
    "LoggingReporter",
    "PrometheusReporter",
    "Reporter",
    "ScanMetrics",
    "ScanReport",
    "WriterMetrics",
    "send",
]
