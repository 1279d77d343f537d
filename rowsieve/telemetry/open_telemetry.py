"""A reporter that gives reports to OpenTelemetry, as spans and metrics.

It stands on the interface alone (the extra `otel`): the program chooses what takes spans and
metrics, and without that they cost little and go nowhere. Names are those of the semantic
conventions of database clients where these have one.

It never affects a result or a commit; it keeps no values of rows and no text of conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from rowsieve import clock
from rowsieve.bridges.extras import imported
from rowsieve.metrics import CommitReport, IngestReport, ScanReport
from rowsieve.metrics.reports import Report
from rowsieve.metrics.running_operations import Operation, current_operation
from rowsieve.telemetry.attributes import (
    ERROR,
    attributes_of_commit,
    attributes_of_scan,
    attributes_of_target,
    span_name,
)
from rowsieve.telemetry.instruments import Instruments

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

EXTRA: Final = "otel"
SCOPE: Final = "rowsieve"


class OpenTelemetryReporter:
    """Makes a span of each read, change and procedure, and adds their counters to metrics.

    Without providers, those of the process are taken. MissingExtra without opentelemetry-api.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
    ) -> None:
        self._trace = imported("opentelemetry.trace", EXTRA)
        self._context = imported("opentelemetry.context", EXTRA)
        metrics = imported("opentelemetry.metrics", EXTRA)
        self._tracer = self._trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        self._instruments = Instruments(metrics.get_meter(SCOPE, meter_provider=meter_provider))

    def begun(self, operation: Operation) -> Callable[[], None]:
        """Start the span of an operation, as the current one of its context."""
        span = self._tracer.start_span(
            span_name(operation.name, operation.table),
            kind=self._trace.SpanKind.CLIENT,
            attributes=attributes_of_target(operation.name, operation.table)
            | {"rowsieve.operation.id": operation.id},
            start_time=_now() - _nanoseconds(operation.planned_s),
        )
        if operation.planned_s:
            self._phase(span, "plan", _now(), operation.planned_s)
        operation.states[self] = span
        identity = span.get_span_context()
        if identity.is_valid:
            operation.log_fields["trace_id"] = f"{identity.trace_id:032x}"
            operation.log_fields["span_id"] = f"{identity.span_id:016x}"
        token = self._context.attach(self._trace.set_span_in_context(span))
        return lambda: self._context.detach(token)

    def ended(self, operation: Operation, error: BaseException | None) -> None:
        """End the span, with the error if it is one: a reader that stops early makes none."""
        span: Span = operation.states.pop(self)  # type: ignore[assignment]
        if error is not None and not isinstance(error, GeneratorExit):
            span.record_exception(error)
            self._failed(span, type(error).__name__, str(error))
        span.end()

    def report(self, report: Report) -> None:
        """Add the counters of a report to its span and to the metrics."""
        self._instruments.add(report)
        if isinstance(report, IngestReport):
            return
        end = _now()
        live = self._span_of(report)
        span = self._late_span(report, end) if live is None else live
        if isinstance(report, ScanReport):
            span.set_attributes(attributes_of_scan(report))
            self._phase(span, "read", end, report.metrics.reading_s)
        else:
            span.set_attributes(attributes_of_commit(report))
        if report.error and report.error != "GeneratorExit":
            self._failed(span, report.error, "")
        if live is None:
            span.end(end)

    def _span_of(self, report: ScanReport | CommitReport) -> Any:
        """Return the span of the operation that a report ends; None if it has none of its own."""
        operation = current_operation()
        kind = "scan" if isinstance(report, ScanReport) else "change"
        if operation is None or (operation.kind, operation.table) != (kind, report.table):
            return None
        return operation.states.get(self)

    def _late_span(self, report: ScanReport | CommitReport, end: int) -> Span:
        """Start the span of an operation of which only the report is known."""
        name = "scan" if isinstance(report, ScanReport) else report.operation
        start = end - _nanoseconds(report.elapsed_s)
        span: Span = self._tracer.start_span(
            span_name(name, report.table),
            kind=self._trace.SpanKind.CLIENT,
            attributes=attributes_of_target(name, report.table),
            start_time=start,
        )
        if isinstance(report, ScanReport):
            planned_s = report.metrics.planning_s
            self._phase(span, "plan", start + _nanoseconds(planned_s), planned_s)
        return span

    def _phase(self, parent: Span, name: str, end: int, elapsed_s: float) -> None:
        """Make a span of a phase that has ended."""
        context = self._trace.set_span_in_context(parent)
        phase = self._tracer.start_span(
            name, context=context, start_time=end - _nanoseconds(elapsed_s)
        )
        phase.end(end)

    def _failed(self, span: Span, kind: str, message: str) -> None:
        status = self._trace.Status(self._trace.StatusCode.ERROR, message or kind)
        span.set_status(status)
        span.set_attribute(ERROR, kind)


def _nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)


def _now() -> int:
    """Return the time in nanoseconds from 1970, as spans have it."""
    return clock.now_us() * 1_000
