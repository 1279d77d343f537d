"""Pruning, audits and reports of reads through DataFusion."""

from __future__ import annotations

import gc
from dataclasses import replace
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.config import current
from rowsieve.errors import InvalidInput, UnsoundPruning
from rowsieve.metrics import PrometheusReporter, ScanReport
from rowsieve.metrics.reports import Report
from rowsieve.providers.datafusion import SessionContext
from tests.executor.planted import lie


class QueryDefinition:
    def __init__(self) -> None:
        self.scans: list[ScanReport] = []

    def report(self, report: Report) -> None:
        if isinstance(report, ScanReport):
            self.scans.append(report)


pytestmark = pytest.mark.usefixtures("former_config")


@pytest.fixture
def table(request: pytest.FixtureRequest) -> rs.Table:
    return made(request.node.name)


def made(name: str, properties: dict[str, str] | None = None) -> rs.Table:
    rows = [pa.table({"id": [i * 10, i * 10 + 1], "v": [i * 100, i * 100 + 1]}) for i in range(4)]
    table = rs.create_table(f"memory://switches-{name}", rows[0], key=["id"], properties=properties)
    for each in rows[1:]:
        table.upsert(each)
    return table


def lying(name: str, properties: dict[str, str] | None = None) -> rs.Table:
    """Its statistics say that no v is above 150, so that pruning loses rows."""
    return lie(lie(made(name, properties), "stats.2.upper", 150), "stats.2.lower", 0)


def ask(given: Any, query: str) -> list[dict[str, Any]]:
    context = datafusion.SessionContext()
    context.register_table("t", given)
    found: list[dict[str, Any]] = context.sql(query).to_pylist()
    return found


QUERY = "SELECT id FROM t WHERE v >= 200 ORDER BY id"
RIGHT = [{"id": i} for i in (20, 21, 30, 31)]


def test_a_lie_is_believed_without_an_audit() -> None:
    assert ask(lying("believed"), QUERY) == []
    assert ask(made("true"), QUERY) == RIGHT


def test_an_option_prunes_and_audits() -> None:
    table = lying("option")
    assert ask(table.to_datafusion(pruning="off"), QUERY) == RIGHT
    for options in ({"pruning": "soft"}, {"audit": 100}):
        with pytest.raises(Exception, match="pruning is unsound"):
            ask(table.to_datafusion(**options), QUERY)
        assert isinstance(table.engine_error, UnsoundPruning)
        reported = table.to_datafusion(**options, on_violation="report")
        assert ask(reported, QUERY) == RIGHT
        assert ask(reported, "SELECT count(*) AS n FROM t WHERE v >= 200") == [{"n": 4}]


def test_the_option_beats_the_property_which_beats_the_config() -> None:
    off = lying("order-off", {"pruning": "off"})
    assert ask(off, QUERY) == RIGHT
    assert ask(off.to_datafusion(pruning="on"), QUERY) == []
    plain = lying("order-plain")
    rs.configure(replace(current(), pruning="off"))
    assert ask(plain, QUERY) == RIGHT
    assert ask(lying("order-on", {"pruning": "on"}), QUERY) == []
    rs.configure(replace(current(), pruning="soft", audit_on_violation="report"))
    assert ask(plain, QUERY) == RIGHT


@pytest.mark.parametrize("options", [{"pruning": "x"}, {"audit": 101}, {"on_violation": "y"}])
def test_a_wrong_option_is_refused_at_once(table: rs.Table, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        table.to_datafusion(**options)


def test_each_scan_of_a_statement_is_reported_once(table: rs.Table) -> None:
    kept = QueryDefinition()
    table.report_to(kept)
    assert ask(table, QUERY) == RIGHT
    (report,) = kept.scans
    assert (report.engine, report.error, report.version) == ("datafusion", None, table.version)
    metrics = report.metrics
    assert (metrics.parts_considered, metrics.parts_pruned, metrics.parts_read) == (4, 2, 2)
    assert (metrics.rows_returned, metrics.pruned_by) == (4, {"statistics": 2})
    assert metrics.bytes_read > 0
    assert report.elapsed_s > 0
    ask(table, "SELECT a.id FROM t a JOIN t b ON a.id = b.id")
    assert len(kept.scans) == 3
    ask(table, "EXPLAIN SELECT * FROM t")
    assert len(kept.scans) == 3


def test_counted_rows_are_reported_too(table: rs.Table) -> None:
    kept = QueryDefinition()
    assert ask(table.to_datafusion(reporter=kept), "SELECT count(*) AS n FROM t") == [{"n": 8}]
    assert [report.error for report in kept.scans] == [None]


def test_reporters_are_by_option_then_table_then_config(table: rs.Table) -> None:
    option, own, process = QueryDefinition(), QueryDefinition(), QueryDefinition()
    rs.configure(rs.Config(reporter=process))
    ask(table, QUERY)
    table.report_to(own)
    ask(table, QUERY)
    ask(table.to_datafusion(reporter=option), QUERY)
    assert [len(each.scans) for each in (option, own, process)] == [1, 1, 1]


def test_an_error_is_reported_by_its_class() -> None:
    table, reporter = lying("error"), PrometheusReporter()
    with pytest.raises(Exception, match="unsound"):
        ask(table.to_datafusion(audit=100, reporter=reporter), QUERY)
    gc.collect()
    datafusion.lit(0)  # gives back what Rust dropped
    assert 'error="UnsoundPruning"} 1' in reporter.text()


def test_a_read_that_a_limit_ends_is_reported_when_it_is_dropped(table: rs.Table) -> None:
    kept = QueryDefinition()
    table.report_to(kept)
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_table("t", table)
    stream = context.sql("SELECT * FROM t").execute_stream()
    next(stream)
    del stream
    for _ in range(1000):
        datafusion.lit(0)
        if kept.scans:
            break
        gc.collect()
    assert len(kept.scans) == 1


def test_the_report_of_a_scan_includes_its_audit(table: rs.Table) -> None:
    kept = QueryDefinition()
    assert ask(table.to_datafusion(audit=100, reporter=kept), QUERY) == RIGHT
    (report,) = kept.scans
    assert report.metrics.audited > 0
    assert report.metrics.audit_violations == 0


class Raising:
    """A reporter that fails on each report."""

    def __init__(self) -> None:
        self.told = 0

    def report(self, report: Report) -> None:
        self.told += 1
        raise RuntimeError("no")


@pytest.mark.parametrize("audit", [0, 100])
def test_a_reporter_that_raises_changes_no_answer(
    table: rs.Table, audit: int, caplog: pytest.LogCaptureFixture
) -> None:
    raising = Raising()
    given = table.to_datafusion(reporter=raising, audit=audit)
    assert ask(given, "SELECT id FROM t WHERE v = 301") == [{"id": 31}]
    assert ask(given, "SELECT count(*) AS n FROM t") == [{"n": 8}]
    gc.collect()
    assert raising.told == 2
    assert [record.message.split()[0] for record in caplog.records] == ["Raising", "Raising"]


def test_an_audit_that_fails_a_read_is_reported_with_its_time() -> None:
    kept = QueryDefinition()
    table = lying("audit-error-reported")
    with pytest.raises(Exception, match="unsound"):
        ask(table.to_datafusion(reporter=kept, audit=100), "SELECT id FROM t WHERE v = 301")
    gc.collect()
    assert [report.error for report in kept.scans] == ["UnsoundPruning"]
    assert all(0 < report.elapsed_s < 60 for report in kept.scans)


def ask_session(table: rs.Table, query: str) -> list[dict[str, Any]]:
    context = SessionContext()
    context.register_table("t", table)
    found: list[dict[str, Any]] = context.sql(query).to_pylist()
    return found


OWN_QUERY = "SELECT id FROM t WHERE v % 100 < 2 AND v + 0 >= 200 ORDER BY id"


@pytest.mark.parametrize("query", [QUERY, OWN_QUERY])
def test_the_switches_reach_the_conditions_by_which_our_session_skips_parts(query: str) -> None:
    name = f"session-{query is QUERY}"
    assert ask_session(lying(name), query) == []
    assert ask_session(lying(f"{name}-off", {"pruning": "off"}), query) == RIGHT
    rs.configure(replace(current(), pruning="off"))
    assert ask_session(lying(f"{name}-config"), query) == RIGHT
    assert ask_session(lying(f"{name}-on", {"pruning": "on"}), query) == []
    rs.configure(replace(current(), pruning="on", audit_on_violation="raise"))
    for checked in ({"pruning": "soft"}, {"audit_percent": "100"}):
        name = "-".join([name, *checked])
        if query == QUERY:  # DataFusion hands the condition to the dataset, which audits it
            with pytest.raises(Exception, match="pruning is unsound"):
                ask_session(lying(name, checked), query)
        else:
            assert ask_session(lying(name, checked), query) == RIGHT
