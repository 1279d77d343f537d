"""Metrics: the counters of scans and writers, reports of them, and reporters."""

from rowsieve.byte_cache import CacheUsage
from rowsieve.metrics.caches import caches
from rowsieve.metrics.counters import ScanMetrics, WriterMetrics
from rowsieve.metrics.encoding_differences import Difference
from rowsieve.metrics.hedge_counts import HedgeCounts, hedge_counts
from rowsieve.metrics.histograms import Histogram
from rowsieve.metrics.ingest_metrics import IngestMetrics, IngestReport
from rowsieve.metrics.json_logs import JsonFormatter
from rowsieve.metrics.prometheus import PrometheusReporter
from rowsieve.metrics.reports import CommitReport, LoggingReporter, Reporter, ScanReport, send
from rowsieve.metrics.several_reporters import SeveralReporters
from rowsieve.metrics.store_cache import StoreCacheCounts, store_cache
from rowsieve.metrics.table_gauges import gauges_text

__all__ = [
    "CacheUsage",
    "CommitReport",
    "Difference",
    "HedgeCounts",
    "Histogram",
    "IngestMetrics",
    "IngestReport",
    "JsonFormatter",
    "LoggingReporter",
    "PrometheusReporter",
    "Reporter",
    "ScanMetrics",
    "ScanReport",
    "SeveralReporters",
    "StoreCacheCounts",
    "WriterMetrics",
    "caches",
    "gauges_text",
    "hedge_counts",
    "send",
    "store_cache",
]
