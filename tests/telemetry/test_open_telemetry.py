"""Spans and metrics that OpenTelemetry's SDK takes: names, parents, errors, and threads."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import rowsieve as rs
from rowsieve.config import current
from rowsieve.metrics import JsonFormatter, LoggingReporter, SeveralReporters
from rowsieve.metrics.running_operations import current_operation
from rowsieve.providers.datafusion import SessionContext
from rowsieve.telemetry import OpenTelemetryReporter
from rowsieve.threads import Threads, in_context


@dataclass
class Telemetry:
    """A reporter whose spans and metrics stay in memory."""

    provider: TracerProvider
    exporter: InMemorySpanExporter
    reader: InMemoryMetricReader
    reporter: OpenTelemetryReporter

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == name]

    def span(self, name: str) -> ReadableSpan:
        (span,) = self.spans(name)
        return span

    def totals(self) -> dict[str, float]:
        """The sum of each counter, and the number of values of each histogram."""
        data = self.reader.get_metrics_data()
        assert data is not None
        metrics = data.resource_metrics[0].scope_metrics[0].metrics
        points: dict[str, list[Any]] = {each.name: list(each.data.data_points) for each in metrics}
        return {
            name: sum(point.value if hasattr(point, "value") else point.count for point in found)
            for name, found in points.items()
        }


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    meters = MeterProvider(metric_readers=[reader])
    reporter = OpenTelemetryReporter(tracer_provider=provider, meter_provider=meters)
    former = rs.configure(replace(current(), reporter=reporter))
    yield Telemetry(provider, exporter, reader, reporter)
    rs.configure(former)
    meters.shutdown()


def stock(uri: str) -> rs.Table:
    rows = pa.table({"id": [1, 2], "v": ["a", "b"]})
    return rs.create_table(uri, rows, key=["id"], if_exists="replace")


URI = "memory:///shop/stock"


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


def identity(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def test_a_read_is_a_span_with_its_plan_and_its_counts(telemetry: Telemetry) -> None:
    table = stock(URI)
    with telemetry.provider.get_tracer("app").start_as_current_span("request"):
        table.scan("id = 2").to_arrow()
    span, request = telemetry.span("scan stock"), telemetry.span("request")
    assert parent_of(span) == identity(request)
    assert span.kind is trace.SpanKind.CLIENT
    attributes = dict(span.attributes or {})
    assert attributes["db.system.name"] == "rowsieve"
    assert attributes["db.operation.name"] == "scan"
    assert attributes["db.collection.name"] == "stock"
    assert attributes["db.response.returned_rows"] == 1
    assert attributes["rowsieve.scan.parts_read"] == 1
    assert attributes["rowsieve.table.uri"] == table.uri
    assert span.status.status_code is StatusCode.UNSET
    assert parent_of(telemetry.span("plan stock")) == identity(request)
    assert parent_of(telemetry.span("read")) == identity(span)


def test_a_condition_that_cannot_be_planned_is_an_error_of_its_plan(telemetry: Telemetry) -> None:
    table = stock(URI)
    with pytest.raises(rs.errors.UnknownColumn):
        table.scan("missing = 1")
    plan = telemetry.span("plan stock")
    assert plan.status.status_code is StatusCode.ERROR
    assert dict(plan.attributes or {})["error.type"] == "UnknownColumn"
    assert telemetry.spans("scan stock") == []


def test_a_change_has_its_commit_and_a_failure_its_error(telemetry: Telemetry) -> None:
    table = stock(URI)
    commit = table.upsert(pa.table({"id": [2], "v": ["c"]}))
    attributes = dict(telemetry.span("upsert stock").attributes or {})
    assert attributes["rowsieve.commit.id"] == commit.commit_id
    assert (attributes["rowsieve.table.version"], attributes["rowsieve.commit.rows_written"]) == (
        1,
        1,
    )
    with pytest.raises(rs.errors.RowsieveError):
        table.append(pa.table({"id": [3], "v": ["c"]}))
    failed = telemetry.span("append stock")
    assert failed.status.status_code is StatusCode.ERROR
    assert dict(failed.attributes or {})["error.type"] == "UnsupportedOperation"
    (event,) = failed.events
    assert event.name == "exception"
    assert "append" in str(dict(event.attributes or {})["exception.message"])


def test_an_error_of_a_read_is_recorded_and_an_early_end_is_none(telemetry: Telemetry) -> None:
    table = stock(URI)
    next(stream := table.scan().to_batches())
    stream.close()  # type: ignore[attr-defined]
    assert telemetry.span("scan stock").status.status_code is StatusCode.UNSET
    telemetry.exporter.clear()
    with pytest.raises(rs.errors.EvaluationError):
        table.scan("1 / (id - 1) = 1").to_arrow()
    failed = telemetry.span("scan stock")
    assert failed.status.status_code is StatusCode.ERROR
    assert [event.name for event in failed.events] == ["exception"]


def test_the_commits_of_a_procedure_are_below_it(telemetry: Telemetry) -> None:
    stock("memory:///shop/n/stock").upsert(pa.table({"id": [2], "v": ["c"]}))
    catalog = rs.Catalog("memory:///shop")
    catalog.call("CALL compact(schema => 'n', table_name => 'stock')")
    call, compact = telemetry.span("CALL compact n.stock"), telemetry.span("compact stock")
    assert parent_of(compact) == identity(call)


def test_statements_of_datafusion_belong_to_their_caller(telemetry: Telemetry) -> None:
    context = SessionContext()
    context.register_table("t", stock(URI))
    with telemetry.provider.get_tracer("app").start_as_current_span("request"):
        context.sql("SELECT * FROM t").to_pylist()
    scan = telemetry.span("scan stock")
    assert parent_of(scan) == identity(telemetry.span("request"))
    assert dict(scan.attributes or {})["rowsieve.engine"] == "datafusion"
    telemetry.exporter.clear()
    context.sql("UPDATE t SET v = 'q' WHERE id = 1").collect()
    update = telemetry.span("update stock")
    assert {parent_of(each) for each in telemetry.spans("scan stock")} <= {identity(update)}


def test_the_counters_are_those_of_prometheus(telemetry: Telemetry) -> None:
    table = stock(URI)
    table.scan("id = 2").to_arrow()
    totals = telemetry.totals()
    assert totals["rowsieve.scan.parts_considered"] == 1
    assert totals["rowsieve.scan.rows_returned"] == 1
    assert totals["rowsieve.commit.rows_written"] == 2
    assert totals["db.client.operation.duration"] == 2  # the creation and the read
    assert totals["db.client.response.returned_rows"] == 1


def test_context_reaches_our_threads(telemetry: Telemetry) -> None:
    tracer = telemetry.provider.get_tracer("app")
    with tracer.start_as_current_span("request") as request, Threads(1) as pool:
        here = request.get_span_context().span_id
        seen = pool.submit(lambda: trace.get_current_span().get_span_context().span_id).result()
        alone: list[int] = []
        thread = threading.Thread(
            target=in_context(
                lambda: alone.append(trace.get_current_span().get_span_context().span_id)
            )
        )
        thread.start()
        thread.join()
    assert [seen, *alone] == [here, here]


def test_an_observer_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def begun(self, operation: object) -> None:
            raise RuntimeError(f"begun {operation}")

        def ended(self, operation: object, error: object) -> None:
            raise RuntimeError("ended")

        def report(self, report: object) -> None:
            raise RuntimeError("report")

    table = stock(URI)
    table.report_to(Broken())
    with caplog.at_level(logging.CRITICAL, "rowsieve"):
        assert table.upsert(pa.table({"id": [7], "v": ["c"]})).version == 1
        assert table.scan().to_arrow().num_rows == 3
    assert current_operation() is None


def test_nothing_is_current_outside_of_an_operation() -> None:
    table = stock(URI)
    stream = table.scan().to_batches()
    next(stream)
    assert current_operation() is None
    list(stream)
    assert current_operation() is None


def test_json_logs_have_the_ids_of_commits_and_scans() -> None:
    log, text = logging.Logger("rowsieve-json"), io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    log.addHandler(handler)
    table = stock(URI)
    table.report_to(LoggingReporter(log))
    commit = table.upsert(pa.table({"id": [2], "v": ["c"]}))
    table.scan("id = 2").to_arrow()
    table.scan("id = 2").count()
    change, scan, count = map(json.loads, text.getvalue().splitlines())
    assert change["commit_id"] == commit.commit_id
    assert (change["version"], change["operation"], change["kind"]) == (1, "upsert", "change")
    assert scan["scan_id"] == scan["operation_id"] != count["scan_id"]
    assert scan["counts"]["rows_returned"] == 1
    assert {len(each) for each in (change["operation_id"], scan["scan_id"])} == {16}


def test_a_log_record_of_a_trace_names_it(telemetry: Telemetry) -> None:
    log, text = logging.Logger("rowsieve-json"), io.StringIO()
    handler = logging.StreamHandler(text)
    handler.setFormatter(JsonFormatter())
    log.addHandler(handler)

    class Logging:
        def report(self, report: Any) -> None:
            try:
                raise ValueError(object())
            except ValueError:
                log.exception("seen %s", report.table)

    class Broken:
        def report(self, report: Any) -> None:
            raise RuntimeError("report")

        begun = ended = report

    table = stock(URI)
    table.report_to(SeveralReporters(Broken(), telemetry.reporter, Logging()))
    table.scan().to_arrow()
    assert current_operation() is None
    record = json.loads(text.getvalue())
    span = telemetry.span("scan stock")
    assert span.context is not None
    assert record["trace_id"] == f"{span.context.trace_id:032x}"
    assert record["operation_id"] == dict(span.attributes or {})["rowsieve.operation.id"]
    assert "ValueError" in record["exception"]


def test_a_commit_has_one_span_wherever_it_is_reported(telemetry: Telemetry) -> None:
    table = stock(URI)
    telemetry.exporter.clear()
    with table.transaction() as change:
        change.upsert(pa.table({"id": [6], "v": ["x"]}))
    table.branch("b")
    table.restore(0)
    table.compact()
    commits = [
        str((span.attributes or {})["rowsieve.commit.id"])
        for span in telemetry.exporter.get_finished_spans()
        if "rowsieve.commit.id" in (span.attributes or {})
    ]
    assert len(set(commits)) == len(commits)
    (transaction,) = telemetry.spans("transaction stock")
    assert str((transaction.attributes or {})["rowsieve.operation.id"])
