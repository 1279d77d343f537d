"""Reporters are told of every read and commit, once, and change nothing."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.changes.placed_commits import commit_added, commit_rewrite
from rowsieve.errors import (
    CommitConflict,
    EvaluationError,
    InvalidInput,
    KeyViolation,
    RowsieveError,
    TableExists,
    UnsupportedOperation,
)
from rowsieve.metrics import (
    CommitReport,
    LoggingReporter,
    PrometheusReporter,
    ScanMetrics,
    ScanReport,
    WriterMetrics,
    prometheus,
)
from rowsieve.metrics.caches import GAUGES
from rowsieve.metrics.reports import Report
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.manifests.manifest import PartTable
from tests.small_tables import KV, fresh_uri, keyed, kv

LINE = re.compile(r'(rowsieve_\w+)\{((?:\w+="(?:[^"\\]|\\.)*",?)*)\} ([0-9.e+-]+)')
REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "python.md"


class Kept:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.scans: list[ScanReport] = []
        self.commits: list[CommitReport] = []

    def report(self, report: Report) -> None:
        (self.scans if isinstance(report, ScanReport) else self.commits).append(report)  # type: ignore[arg-type]


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def table(kept: Kept) -> Table:
    made = keyed({"k": [1, 2], "v": [1, 2]}, {"k": [11, 12], "v": [None, 20]})
    made.report_to(kept)
    return made


def test_each_read_is_reported_once_at_its_end(table: Table, kept: Kept) -> None:
    scan = table.scan("k > 10")
    assert kept.scans == []
    batches = scan.to_batches()
    assert kept.scans == []
    assert sum(batch.num_rows for batch in batches) == 2
    (report,) = kept.scans
    assert report == ScanReport(table.uri, table.version, scan.metrics)
    assert (report.metrics.parts_pruned, report.metrics.rows_returned) == (1, 2)
    assert scan.count() == 2
    assert scan.to_reader().read_all().num_rows == 2
    assert [each.error for each in kept.scans] == [None, None, None]


def test_a_read_that_ends_early_says_so(table: Table, kept: Kept) -> None:
    batches = table.scan().to_batches()
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    with pytest.raises(EvaluationError):
        table.scan("1 / (v - 1) > 0").to_arrow()
    assert [each.error for each in kept.scans] == ["GeneratorExit", "EvaluationError"]


def test_commits_are_reported_with_what_was_written(table: Table, kept: Kept) -> None:
    before = table.writer_metrics.bytes_written
    table.upsert(kv((3, 3), (4, 4)))
    table.delete(keys=pa.table({"k": [1]}))
    table.delete("v = 20")
    table.delete("v = 999")  # nothing to do is no commit
    table.compact()
    found = [(c.operation, c.rows_written, c.rows_deleted, c.parts_added) for c in kept.commits]
    assert found == [
        ("upsert", 2, 0, 1),
        ("delete_keys", 0, 1, 1),
        ("delete", 0, 1, 1),
        ("compact", 4, 0, 1),
    ]
    assert [c.version for c in kept.commits] == [3, 4, 5, 6]
    assert [c.writer.rows_written for c in kept.commits] == [2, 1, 1, 4]
    assert [c.writer.parts_written for c in kept.commits] == [1, 1, 1, 1]
    wrote = sum(c.writer.bytes_written for c in kept.commits)
    sizes = table.handle.pinned.parts.table.column("data.size_bytes").to_pylist()
    assert kept.commits[-1].writer.bytes_written == sum(sizes)
    assert wrote == table.writer_metrics.bytes_written - before > 0


def test_a_reporter_that_raises_is_logged_and_changes_nothing(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def report(self, report: Report) -> None:
            raise RuntimeError("no")

    table.report_to(Broken())
    assert table.upsert(kv((5, 5))).rows_written == 1
    assert table.scan("k = 5").to_arrow().num_rows == 1
    assert [record.message.split()[0] for record in caplog.records] == ["Broken", "Broken"]
    table.report_to(None)
    table.upsert(kv((6, 6)))
    assert len(caplog.records) == 2


def test_the_log_has_a_line_for_each(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    table.report_to(LoggingReporter())
    with caplog.at_level(logging.INFO, logger="rowsieve"):
        table.scan("k > 10").to_arrow()
        table.upsert(kv((5, 5)))
    scan, upsert = (record.message for record in caplog.records)
    assert scan.startswith(f"scan of {table.uri} version 2: parts_considered=2 parts_pruned=1")
    assert "pruned_by={'key': 1}" in scan
    assert upsert.startswith(f"upsert of {table.uri} version 3: rows_written=1 parts_added=1")
    assert "audited" not in scan


def samples(text: str) -> dict[tuple[str, str], float]:
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = LINE.fullmatch(line)
            assert match, line
            found[match[1], match[2]] = float(match[3])
    return found


def test_prometheus_text_adds_up(table: Table) -> None:
    reporter = PrometheusReporter()
    table.report_to(reporter)
    assert "_total" not in reporter.text()
    first, second = table.scan("k > 10"), table.scan("v > 15")
    read = sum(scan.to_arrow().num_rows and scan.metrics.bytes_read for scan in (first, second))
    table.upsert(kv((5, 5)))
    with pytest.raises(EvaluationError):
        table.scan("1 / (v - 1) > 0").to_arrow()
    found = samples(reporter.text())
    label = f'table="{table.uri}"'
    assert found["rowsieve_scans_total", label] == 3
    assert found["rowsieve_scan_errors_total", label + ',error="EvaluationError"'] == 1
    assert found["rowsieve_scan_parts_pruned_total", label + ',by="key"'] == 1
    assert (
        found["rowsieve_scan_parts_pruned_total", label + ',by="statistics"'] == 3
    )  # two of the last scan
    assert found["rowsieve_scan_read_bytes_total", label] >= read > 0
    assert found["rowsieve_commits_total", label + ',operation="upsert"'] == 1
    assert 0 < found["rowsieve_writer_bytes_total", label] < table.writer_metrics.bytes_written


def test_prometheus_text_is_well_formed() -> None:
    reporter = PrometheusReporter()
    read = ScanMetrics(parts_read=2, rows_returned=4, batches_returned=1, bytes_returned=8)
    reporter.report(ScanReport('s3://b/"x"\\y\n', 1, read))
    writer = WriterMetrics(rows_written=1, arrow_bytes=16)
    reporter.report(CommitReport("memory:///t", 1, "upsert", writer=writer))
    text = reporter.text()
    assert text.endswith("\n")
    assert '{table="s3://b/\\"x\\"\\\\y\\n"} 2' in text
    typed = [line.split()[2:] for line in text.splitlines() if line.startswith("# TYPE")]
    gauges = [name for name, kind in typed if kind == "gauge"]
    assert gauges == [f"rowsieve_{name}" for name in GAUGES]
    names = [name for name, kind in typed if kind != "gauge"]
    histograms = sorted(f"rowsieve_{n}" for n in prometheus.LATENCIES if "ingest" not in n)
    assert names[:-6] == sorted(set(names[:-6]))
    assert names[-6:] == histograms
    helped = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]
    assert [*names, *gauges] == helped
    series = {name for name, _ in samples(text)} - set(gauges)
    bare = {re.sub(r"_(bucket|sum|count)$", "", name) for name in series}
    assert bare == set(names)
    assert all(name.endswith("_total") for name in names[:-6])
    described = REFERENCE.read_text()
    described_names = (*prometheus._HELP, *prometheus.LATENCIES, *GAUGES)
    everything = [f"rowsieve_{name}" for name in described_names]
    assert [name for name in everything if f"`{name}`" not in described] == []


def test_every_counter_reaches_prometheus() -> None:
    of_scans = {f.name for f in dataclasses.fields(ScanMetrics) if not f.name.startswith("_")}
    assert of_scans - set(prometheus.SCAN) == {"parts_pruned", "pruned_by", "flags"}
    assert set(prometheus.WRITER) == {f.name for f in dataclasses.fields(WriterMetrics)}


def test_statistics_that_contradict_themselves_are_counted(kept: Kept) -> None:
    table = keyed({"k": [1], "v": [1]}, {"k": [11], "v": [2]})
    snapshot = table.handle.pinned
    name = f"stats.{snapshot.schema.field('v').id}.lower"
    columns = snapshot.parts.table
    lie = pa.array([100, 2], pa.int64())  # above its upper bound
    parts = columns.set_column(columns.schema.get_field_index(name), name, lie)
    wrong = dataclasses.replace(snapshot, parts=PartTable(parts), commit_id="another")
    table.handle.newest = table.handle.pinned = wrong
    table.handle.read_only = True
    table.report_to(kept)
    scan = table.scan("v = 1")
    assert scan.to_arrow().to_pylist() == [{"k": 1, "v": 1}]
    assert kept.scans[0].metrics.statistics_contradicting == 1
    reporter = PrometheusReporter()
    reporter.report(kept.scans[0])
    assert "rowsieve_scan_statistics_contradicting_total" in reporter.text()


def test_a_rejected_scan_is_not_reported_as_a_read(table: Table, kept: Kept) -> None:
    with pytest.raises(InvalidInput):
        table.scan("k > 10", limit=-1)
    assert kept.scans == []


def test_latency_is_a_histogram_by_engine_and_table() -> None:
    reporter = PrometheusReporter()
    for engine, elapsed_s in (("python", 0.0005), ("python", 0.3), ("python", 90), ("spark", 1.0)):
        reporter.report(ScanReport("m:///t", 1, ScanMetrics(), engine=engine, elapsed_s=elapsed_s))
    lines = [line for line in reporter.text().splitlines() if "duration_seconds" in line]
    assert lines[1] == "# TYPE rowsieve_scan_duration_seconds histogram"
    python = [line.rsplit(" ", 1)[1] for line in lines if 'engine="python"' in line]
    assert python == ["1", *["1"] * 4, "2", "2", "2", "2", "2", "3", "90.3005", "3"]
    one = 'rowsieve_scan_duration_seconds_bucket{engine="spark",table="m:///t",le="1.0"} 1'
    assert one in lines
    assert lines[-1] == 'rowsieve_scan_duration_seconds_count{engine="spark",table="m:///t"} 1'


def test_the_time_of_a_read_is_reported(table: Table, kept: Kept) -> None:
    table.scan("k > 10").to_arrow()
    table.scan("k > 10").count()
    assert all(0 < report.elapsed_s < 60 for report in kept.scans)


def test_counters_of_parts_of_a_scan_add_up() -> None:
    first, second = ScanMetrics(rows_returned=1, pruned_by={"key": 2}), ScanMetrics(cpu_s=0.5)
    for metrics, group in ((first, 0), (second, 0), (second, 1)):
        metrics.note_row_group("p", ("f", group), rows=10, size=5)
    first.add(second)
    assert (first.parts_read, first.row_groups_read, first.bytes_read) == (1, 2, 15)
    assert (first.rows_returned, first.cpu_s, first.pruned_by) == (1, 0.5, {"key": 2})


def failing_changes(table: Table) -> dict[str, Callable[[], object]]:
    """A call of each changing method that raises, by the operation that it is reported as."""
    return {
        "upsert": lambda: table.upsert({"k": [1, 1], "v": [1, 2]}),
        "append": lambda: table.append(kv((1, 1))),
        "apply": lambda: table.apply_changes(kv((1, 1)), op="op", sequence="n"),
        "delete": lambda: table.delete("nothing = 1"),
        "update": lambda: table.update({}),
        "overwrite": lambda: table.overwrite(kv()),
        "restore": lambda: table.restore(99),
        "cherry_pick": lambda: table.cherry_pick(99),
        "set_properties": lambda: table.set_properties({"nothing": "1"}),
        "unset_properties": lambda: table.unset_properties(["nothing"]),
        "fast_forward": lambda: table.fast_forward("nothing"),
        "drop_ref": lambda: table.drop_ref("nothing"),
        "drop_branch": lambda: table.drop_branch("nothing"),
        "drop_tag": lambda: table.drop_tag("nothing"),
        "write_spark": lambda: table.write_spark(object(), "append"),
        "merge_spark": lambda: table.merge_spark(object(), ["k"], when_matched="delete"),
        "rewrite_data_files": lambda: commit_rewrite(
            table.handle,
            table.handle.pinned,
            CommitRequest("rewrite_data_files", removed=("nothing",)),
            0.0,
        ),
    }


def failing_alterations(table: Table) -> dict[str, Callable[[], object]]:
    """A call of each method that changes columns that raises; all are reported as `alter`."""
    return {
        "add_column": lambda: table.add_column("v", "int64"),
        "drop_column": lambda: table.drop_column("nothing"),
        "rename_column": lambda: table.rename_column("nothing", "w"),
        "widen_column": lambda: table.widen_column("v", "string"),
        "reorder_columns": lambda: table.reorder_columns(["nothing"]),
        "relax_not_null": lambda: table.relax_not_null("k"),
        "set_default": lambda: table.set_default("v", "x"),
        "set_not_null": lambda: table.set_not_null("nothing"),
        "set_comment": lambda: table.set_comment("nothing", "x"),
        "add_constraint": lambda: table.add_constraint("c", "nothing > 0"),
        "drop_constraint": lambda: table.drop_constraint("nothing"),
        "sql": lambda: table.sql("ALTER TABLE this DROP COLUMN nothing"),
        "evolve": lambda: table.evolve(pa.schema([("v", pa.string())])),
    }


def test_each_change_of_columns_that_fails_is_reported(table: Table, kept: Kept) -> None:
    def alter() -> None:
        with table.alter() as change:
            change.drop_column("nothing")

    calls = [*failing_alterations(table).values(), alter]
    for number, call in enumerate(calls, 1):
        with pytest.raises(RowsieveError) as raised:
            call()
        report = kept.commits[-1]
        assert (report.operation, report.error) == ("alter", raised.type.__name__)
        assert len(kept.commits) == number


def test_parts_that_cannot_be_added_are_reported(table: Table, kept: Kept) -> None:
    request = CommitRequest("append", removed=("nothing",))
    with pytest.raises(CommitConflict):
        commit_added(table.handle, table.handle.pinned, request, 0.0)
    assert (kept.commits[-1].operation, kept.commits[-1].error) == ("append", "CommitConflict")


def test_a_change_that_cannot_be_computed_is_reported(table: Table, kept: Kept) -> None:
    def build(_change: object, _snapshot: object) -> None:
        raise UnsupportedOperation("not today")

    with pytest.raises(UnsupportedOperation):
        table.handle.commit_computed("merge", build)
    assert (kept.commits[-1].operation, kept.commits[-1].error) == ("merge", "UnsupportedOperation")


def test_each_change_that_fails_is_reported_with_its_error(table: Table, kept: Kept) -> None:
    version = table.version
    calls = failing_changes(table)
    for operation, call in calls.items():
        with pytest.raises(Exception) as raised:  # noqa: PT011 - each its own
            call()
        report = kept.commits[-1]
        assert (report.operation, report.error) == (operation, raised.type.__name__)
        assert (report.version, report.rows_written, report.parts_added) == (version, 0, 0)
        assert 0 < report.elapsed_s < 60
    assert len(kept.commits) == len(calls)
    old = rowsieve.open_table(table.uri, version=1)
    old.report_to(kept)
    with pytest.raises(UnsupportedOperation):
        old.compact()
    assert (kept.commits[-1].operation, kept.commits[-1].error) == (
        "compact",
        "UnsupportedOperation",
    )
    for change in (old.build_deletion_vectors, old.rewrite_position_delete_files, old.analyze):
        with pytest.raises(UnsupportedOperation):
            change()
        assert kept.commits[-1].operation == change.__name__


def test_events_that_cannot_be_read_are_reported_once(table: Table, kept: Kept) -> None:
    for data in (["{"], ['{"op":"c","after":{"k":null}}']):
        with pytest.raises(InvalidInput):
            table.apply_events(data, format="debezium")
    assert [each.error for each in kept.commits[-2:]] == ["InvalidData"] * 2
    assert kept.commits[-1].operation == "apply"


def test_every_changing_method_reports_what_it_raises() -> None:
    changing = set(failing_changes(keyed({"k": [1], "v": [1]}))) - {
        "apply",
        "rewrite_data_files",
    } | {"apply_changes", "compact", "analyze"}
    changing |= {"build_deletion_vectors", "rewrite_position_delete_files"}
    changing |= set(failing_alterations(keyed({"k": [1], "v": [1]})))
    returns_commit = {
        name
        for name, method in vars(Table).items()
        if not name.startswith("_")
        and getattr(method, "__annotations__", {}).get("return") == "Commit"
    }
    assert returns_commit == changing | set(failing_times())


def failing_times() -> dict[str, Callable[[Table], object]]:
    """Changes of a differential table that fail."""
    return {
        "append_updates": lambda table: table.append_updates([{"time": 0}], upper=1),
        "advance_since": lambda table: table.advance_since(9),
    }


@pytest.mark.parametrize("operation", failing_times())
def test_failed_changes_of_differential_tables_are_reported(operation: str, kept: Kept) -> None:
    schema = pa.schema([("x", pa.int64())])
    table = rowsieve.create_table(fresh_uri(), schema, mode="differential", time="uint64")
    table.report_to(kept)
    with pytest.raises(rowsieve.errors.RowsieveError) as raised:
        failing_times()[operation](table)
    assert (kept.commits[-1].operation, kept.commits[-1].error) == (
        operation,
        raised.type.__name__,
    )


def test_changes_are_counted_by_error_and_timed_in_prometheus(table: Table) -> None:
    reporter = PrometheusReporter()
    table.report_to(reporter)
    table.upsert(kv((5, 5)))
    table.set_properties({"pruning": "soft"})
    table.compact()
    for _ in range(2):
        with pytest.raises(InvalidInput):
            table.update({})
    found = samples(reporter.text())
    label = f'table="{table.uri}"'
    errors = label + ',operation="update",error="InvalidInput"'
    assert found["rowsieve_commit_errors_total", errors] == 2
    for operation, count in {"upsert": 1, "set_properties": 1, "compact": 1, "update": 2}.items():
        by = f'operation="{operation}",{label}'
        assert found["rowsieve_commit_duration_seconds_count", by] == count
        assert found["rowsieve_commit_duration_seconds_bucket", f'{by},le="+Inf"'] == count
        assert found["rowsieve_commit_duration_seconds_sum", by] > 0
        commits = found.get(("rowsieve_commits_total", f'{label},operation="{operation}"'), 0)
        assert commits == (count if operation != "update" else 0)


def test_creating_a_table_is_reported_to_the_reporter_of_the_process(kept: Kept) -> None:
    uri = fresh_uri()
    former = rowsieve.configure(rowsieve.Config(reporter=kept))
    try:
        table = rowsieve.create_table(uri, kv((1, 1), (2, 2)), key=["k"])
        with pytest.raises(TableExists):
            rowsieve.create_table(uri, kv((1, 1)), key=["k"])
        with pytest.raises(KeyViolation):
            rowsieve.create_table(fresh_uri(), kv((1, 1), (1, 2)), key=["k"])
        rowsieve.create_table(uri, kv((1, 1)), key=["k"], if_exists="ignore")
    finally:
        rowsieve.configure(former)
    made, exists, repeated = kept.commits
    assert (made.operation, made.version, made.table) == ("create", 0, table.uri)
    assert (made.rows_written, made.parts_added, made.writer.rows_written) == (2, 1, 2)
    assert made.writer.bytes_written > 0
    assert (exists.error, repeated.error) == ("TableExists", "KeyViolation")


def test_a_change_that_was_interrupted_is_reported(table: Table, kept: Kept) -> None:
    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.compact(progress=interrupt)
    assert kept.commits[-1].error == "KeyboardInterrupt"


def test_a_reporter_that_raises_hides_no_error_of_a_change(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken:
        def report(self, report: Report) -> None:
            raise RuntimeError("no")

    table.report_to(Broken())
    with pytest.raises(KeyViolation):
        table.upsert(kv((1, 1), (1, 2)))
    assert [record.message.split()[0] for record in caplog.records] == ["Broken"]


def test_sizes_of_rows_and_batches_are_measured(kept: Kept) -> None:
    rows = pa.table({"k": range(70_000), "v": range(70_000)}, schema=KV)
    reporter = PrometheusReporter()
    for in_memory in (0, 999_999):
        table = keyed(properties={"inline_bytes": in_memory})
        table.report_to(kept)
        table.upsert(rows)
        table.delete(keys={"k": [1]})
        assert table.writer_metrics.arrow_bytes == rows.nbytes + 8
        table.scan().to_arrow()
        metrics = kept.scans[-1].metrics
        assert (metrics.rows_returned, metrics.bytes_returned) == (69_999, 69_999 * 16)
        assert metrics.batches_returned == 2
        table.scan("k < 0").to_arrow()
    reports: list[Report] = [*kept.commits, *kept.scans]
    for report in reports:
        reporter.report(report)
    text = reporter.text()
    for name, total in (("scan_batch_rows", 69_999 / 2), ("scan_row_bytes", 16.0)):
        assert f'rowsieve_{name}_sum{{table="{table.uri}"}} {total}' in text
    assert f'rowsieve_commit_rows_sum{{table="{table.uri}"}} 70001.0' in text
    assert f'rowsieve_commit_row_bytes_sum{{table="{table.uri}"}} 24.0' in text
