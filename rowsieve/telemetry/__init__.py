"""OpenTelemetry: spans and metrics of reads, changes and procedures, off unless asked for."""

from rowsieve.telemetry.open_telemetry import OpenTelemetryReporter

__all__ = ["OpenTelemetryReporter"]
