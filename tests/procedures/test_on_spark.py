"""Procedures on Spark's workers: tasks that fail or run twice, and one commit."""

from __future__ import annotations

import gc
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.arguments.annotations import StorageOptions
from rowsieve.errors import CallCancelled, InvalidInput, StoreError
from rowsieve.procedures.engine import Job
from rowsieve.procedures.procedure import DistributedProcedure
from rowsieve.procedures.task_reports import fragments_by_task
from tests.faults.tasks import Endless, FailingOnce
from tests.faults.vocabulary import Fault
from tests.procedures.cluster_subjects import SUBJECTS, described, expected, with_small_tasks
from tests.profiles import IS_DEEP

pytest.importorskip("pyspark")
from pyspark import TaskContext
from pyspark.serializers import CloudPickleSerializer

from rowsieve.providers.spark.procedure_engine import SparkEngine, _freeze_modules, _runner

pytestmark = pytest.mark.spark

REWRITE = """
    CALL system.rewrite_data_files(
        table => 'db.t', options => map('rewrite-all', 'true', 'max-file-group-size-bytes', '4kb'))
"""


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "catalog")
    table = catalog.create_table("db.t", pa.schema([("id", pa.int64())]), ["id"])
    for start in range(0, 40, 20):  # two overlap groups of two parts each
        table.upsert(pa.table({"id": range(start, start + 15)}))
        table.upsert(pa.table({"id": range(start + 10, start + 18)}))
    return catalog


def in_order(table: rs.Table) -> list[int]:
    found: list[int] = table.scan(order_by_key=True).to_arrow().column("id").to_pylist()
    return found


@pytest.mark.parametrize("kind", ["spark", "client"])
def test_tasks_run_on_workers_and_commit_once(
    kind: str, request: pytest.FixtureRequest, catalog: rs.Catalog
) -> None:
    engine = SparkEngine(request.getfixturevalue(kind))
    before = in_order(catalog.open_table("db.t"))
    (row,) = catalog.call(REWRITE, engine=engine).to_pylist()
    after = catalog.open_table("db.t")
    assert row["rewritten_data_files_count"] == 4
    assert row["version"] == after.version == 5
    assert after.history(1)[0].parts_added == row["added_data_files_count"]
    assert in_order(after) == before


class Echo(DistributedProcedure):
    """Reports the bytes of its tasks."""

    name = "echo"

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Report the bytes, and who runs the task."""
        context = TaskContext.get()
        assert context is not None
        yield 1, task
        yield 0, str(context.partitionId()).encode()


class Bytes(DistributedProcedure):
    """Reports the bytes of its tasks, and no more."""

    name = "bytes"

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Report the bytes."""
        yield 1, task


@pytest.mark.parametrize("kind", ["spark", "client"])
@pytest.mark.parametrize("most", [None, 3])
def test_each_task_gets_its_own_bytes_in_its_own_partition(
    kind: str, request: pytest.FixtureRequest, most: int | None
) -> None:
    tasks = [bytes([number]) * number for number in range(7)]
    engine = SparkEngine(request.getfixturevalue(kind))
    found = fragments_by_task(engine.run(Job(Echo(), tasks, {}, "echoes", most)), len(tasks))
    assert [each[0] for each in found] == tasks
    partitions = Counter(each[1] for each in found)
    assert sorted(partitions.values()) == ([1] * 7 if most is None else [2, 2, 3])


def test_modules_are_frozen_once_after_the_first_task_of_a_worker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frozen: list[bool] = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    _freeze_modules.cache_clear()
    run = _runner(Job(Bytes(), [], {}, ""))
    assert len([run(number, b"task") for number in range(3)]) == 3
    assert frozen == [True]
    _freeze_modules.cache_clear()


def test_what_runs_a_task_does_not_hold_the_others() -> None:
    serializer: Any = CloudPickleSerializer  # untyped
    jobs = [Job(Echo(), [b"x" * 1000] * count, {}, "") for count in (1, 1000)]
    sizes = [len(serializer().dumps(_runner(job))) for job in jobs]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize(("failures", "fails"), [(1, False), (99, True)])
def test_failed_tasks_are_run_again_and_their_files_belong_to_nothing(
    spark: Any, catalog: rs.Catalog, tmp_path: Path, failures: int, *, fails: bool
) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    catalog.procedures.remove("rewrite_data_files")
    catalog.procedures.add(FailingOnce(marks, attempts=failures))
    table = catalog.open_table("db.t")
    before, version = in_order(table), table.version
    if fails:
        with pytest.raises(StoreError, match=Fault.TASK_FAILED.value):
            catalog.call(REWRITE, engine=SparkEngine(spark))
        assert table.refresh() == version
    else:
        (row,) = catalog.call(REWRITE, engine=SparkEngine(spark)).to_pylist()
        assert table.refresh() == version + 1
        assert table.files().num_rows == row["added_data_files_count"]
    assert in_order(table) == before
    assert len(list(marks.iterdir())) >= min(failures, 4)


@pytest.mark.parametrize(
    "name",
    sorted(SUBJECTS.keys() - {"rewrite"}) if IS_DEEP else ["analyze", "vectors", "merged vectors"],
)
def test_other_calls_survive_that_each_task_fails_once(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    with_small_tasks(monkeypatch)
    subject, place, twin = SUBJECTS[name], tmp_path / "place", tmp_path / "twin"
    for each in (tmp_path / "marks", place, twin):
        each.mkdir()
    wanted, catalog = expected(subject, twin), subject.lake(place)
    faulty = FailingOnce(tmp_path / "marks", subject.procedure())
    catalog.procedures.remove(faulty.name)
    catalog.procedures.add(faulty)
    catalog.call(subject.call.format(folder=place), engine=SparkEngine(spark))
    assert described(catalog) == wanted
    assert any((tmp_path / "marks").iterdir())
    removed = catalog.open_table("db.t").remove_orphans(grace_s=0)
    assert bool({"data", "vector"} & removed.files.keys()) is subject.writes_files
    assert described(catalog)["rows"] == wanted["rows"]


def test_engine_needs_a_session() -> None:
    with pytest.raises(InvalidInput, match="needs a SparkSession, not str"):
        SparkEngine("local")


def test_function_of_a_job_is_dropped(spark: Any, catalog: rs.Catalog) -> None:
    catalog.call(REWRITE, engine=SparkEngine(spark))
    names = [row.function for row in spark.sql("SHOW USER FUNCTIONS").collect()]
    assert not [name for name in names if "rowsieve_" in name]


def cancelled_by_context(spark: Any, engine: SparkEngine) -> None:
    del engine
    spark.sparkContext.cancelAllJobs()


def cancelled_by_engine(spark: Any, engine: SparkEngine) -> None:
    del spark
    engine.cancel()


@pytest.mark.parametrize(
    ("cancel", "staged"), [(cancelled_by_context, "true"), (cancelled_by_engine, "false")]
)
def test_cancelled_call_commits_nothing_and_begins_no_further_stage(
    spark: Any,
    catalog: rs.Catalog,
    tmp_path: Path,
    cancel: Callable[[Any, SparkEngine], None],
    staged: str,
) -> None:
    endless, engine = Endless(tmp_path), SparkEngine(spark)
    catalog.procedures.remove("rewrite_data_files")
    catalog.procedures.add(endless)
    table = catalog.open_table("db.t")
    version = table.version

    def cancel_later() -> None:
        endless.wait_for("waiting")
        cancel(spark, engine)

    thread = threading.Thread(target=cancel_later)
    thread.start()
    statement = REWRITE.replace("'4kb'", f"'1', 'partial-progress.enabled', '{staged}'")
    wanted = "0 of its 2 stages" if staged == "true" else "nothing was committed"
    with pytest.raises(CallCancelled, match=wanted):
        catalog.call(statement, engine=engine)
    thread.join()
    assert table.refresh() == version


def test_a_call_tells_its_progress_and_names_its_job(spark: Any, catalog: rs.Catalog) -> None:
    context, told = spark.sparkContext, list[tuple[int, int]]()
    context.setJobDescription("the user's own")
    engine = SparkEngine(spark, progress=lambda done, all_: told.append((done, all_)))
    catalog.call(REWRITE.replace("4kb", "1"), engine=engine)
    assert context.getLocalProperty("spark.job.description") == "the user's own"
    context.setJobDescription(None)
    assert told[-1] == (4, 4)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert engine._finished(frozenset()) == 4
    assert engine._finished(frozenset(engine._jobs())) == 0  # another call counts from zero
    jobs = context._jsc.sc().statusStore().jobsList(None)
    last = jobs.apply(0).description().get()
    assert last.startswith("rowsieve: CALL rewrite_data_files on ")
    assert last.endswith("at version 4")
    catalog.call("CALL system.rewrite_manifests('db', 't')", engine=engine)  # no task of Spark's
    assert told[-1] == (1, 1)


def test_a_client_of_connect_takes_no_progress(client: Any) -> None:
    with pytest.raises(InvalidInput, match="Spark Connect does not see the tasks"):
        SparkEngine(client, progress=lambda done, all_: None)
