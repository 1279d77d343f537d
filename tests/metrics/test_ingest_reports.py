"""Writers count what they acknowledge, log and commit, and report it."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import SchemaMismatch, StoreError
from rowsieve.metrics import IngestMetrics, IngestReport, LoggingReporter, PrometheusReporter
from rowsieve.metrics.histograms import Histogram
from rowsieve.metrics.prometheus import INGEST, INGEST_HISTOGRAMS
from rowsieve.metrics.reports import Report
from rowsieve.objects import LocalStore
from tests.faults.stores import EveryStore
from tests.faults.vocabulary import Fault


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
    return rs.create_table(tmp_path / "t", schema, key=["id"])


class Kept:
    """Keeps the reports of writers."""

    def __init__(self) -> None:
        self.reports: list[IngestReport] = []

    def report(self, report: Report) -> None:
        if isinstance(report, IngestReport):
            self.reports.append(report)


def test_a_writer_counts_calls_groups_and_flushes(table: rs.Table, tmp_path: Path) -> None:
    kept, adding = Kept(), PrometheusReporter()
    table.report_to(kept)
    with table.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600) as writer:
        writer._intake.pause()
        calls = [writer.upsert({"id": number, "name": "a"}) for number in range(5)]
        bad = writer.upsert({"id": 9, "name": 5})
        writer._intake.resume()
        for call in calls:
            call.result()
        with pytest.raises(SchemaMismatch):
            bad.result()
        found = writer.metrics
        assert (found.calls_acknowledged, found.calls_failed, found.rows_acknowledged) == (5, 1, 5)
        assert (found.groups, found.wal_syncs, found.flushes) == (1, 1, 0)
        assert found.wal_bytes > 5 * 8
        assert found.group_rows.as_dict()["count"] == 1
        assert found.group_rows.total == 5
        assert sum(found.acknowledge_s.counts) == 5
        writer.flush()
        writer.delete(keys={"id": [1, 2]}).result()
    assert [r.metrics.rows_flushed for r in kept.reports] == [5, 2, 0]
    assert [r.metrics.flushes for r in kept.reports] == [1, 1, 0]
    assert [r.version for r in kept.reports] == [1, 2, 2]
    for report in kept.reports:
        adding.report(report)
    text = adding.text()
    labels = f'{{table="{table.uri}"}}'
    assert f"rowsieve_ingest_rows_total{labels} 7\n" in text
    assert f"rowsieve_ingest_group_rows_sum{labels} 7.0\n" in text
    assert f"rowsieve_ingest_wal_sync_seconds_count{labels} 2\n" in text
    assert f"rowsieve_ingest_flush_seconds_count{labels} 2\n" in text


def test_recovered_rows_and_failed_flushes_are_counted(
    table: rs.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = table.writer(wal_dir=tmp_path / "wal", flush_interval_s=3600)
    writer.upsert({"id": 1, "name": "a"}).result()
    with monkeypatch.context() as patch:
        EveryStore(patch, LocalStore).meet_where(Fault.NO_SPACE, "put_new")
        with pytest.raises(StoreError):
            writer.close()
    assert writer.metrics.flushes_failed >= 1
    with table.writer(wal_dir=tmp_path / "wal") as again:
        assert again.metrics.rows_recovered == 1
    assert again.metrics.rows_flushed == 1


def test_group_commits_are_counted(table: rs.Table) -> None:
    with table.writer(durability="commit") as writer:
        writer.upsert([{"id": 1, "name": "a"}, {"id": 2, "name": "b"}]).result()
        found = writer.metrics
    assert (found.groups, found.rows_acknowledged, found.flushes, found.wal_syncs) == (1, 2, 1, 0)


def test_the_log_has_a_line_for_a_writer(
    table: rs.Table, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table.report_to(LoggingReporter())
    with caplog.at_level(logging.INFO), table.writer(wal_dir=tmp_path / "wal") as writer:
        writer.upsert({"id": 1, "name": "a"})
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("writer of")]
    assert any("rows_flushed=1" in line for line in lines)


def test_every_counter_reaches_prometheus() -> None:
    counted = set(IngestMetrics().as_dict())
    assert counted == {*INGEST, *INGEST_HISTOGRAMS}


def test_differences_of_histograms() -> None:
    now, then = Histogram((1.0, 2.0)), Histogram((1.0, 2.0))
    then.add(1.0)
    now.merge(then)
    now.add(1.5)
    now.add(9)
    assert now.since(then).counts == [0, 1, 1]
    assert now.since(then).total == pytest.approx(10.5)
    assert now.as_dict() == {"count": 3, "sum": 11.5, "1.0": 1, "2.0": 2, "+Inf": 3}
