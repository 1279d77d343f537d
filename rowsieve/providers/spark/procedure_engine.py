"""Runs the tasks of a procedure on Spark's workers, in classic sessions and through Connect.

A task is one row, in a partition of its own unless the job limits how many run at a time, and a
worker gets the bytes of its own tasks only. A classic session runs them as an RDD, a client of
Connect as a frame whose rows go to the partitions that a column names, and an Arrow UDF; neither
needs pandas. Spark repeats a task that failed, and may run one twice. Every attempt writes files
under names of its own, and the coordinator counts the report that Spark returns, so the files of
other attempts belong to nothing.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import Event, Thread
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions

from rowsieve.arguments import checked
from rowsieve.arguments.annotations import Progress
from rowsieve.bridges.sql.spark.settings import TIME_ZONE
from rowsieve.errors import CallCancelled, InvalidInput
from rowsieve.objects.storage_options import flat_options, options_elsewhere
from rowsieve.predicate.semantics import Semantics
from rowsieve.procedures.engine import Job
from rowsieve.procedures.task_reports import REPORT, run_task
from rowsieve.providers.spark.cluster.task_stores import check_reached
from rowsieve.providers.spark.job_errors import condition_of, own_error
from rowsieve.providers.spark.session_settings import semantics_of_session
from rowsieve.providers.spark.writes.batch_tokens import labels_of
from rowsieve.table import Table
from rowsieve.types.schema import Schema

_NUMBER, _PARTITION, _TASK = "number", "partition", "task"
_DESCRIPTION: Final = "spark.job.description"
_CANCELLED: Final = frozenset({"SPARK_JOB_CANCELLED", "OPERATION_CANCELED"})
"""The conditions of Spark's errors for a job that somebody cancelled: classic, and of Connect."""

_POLL_S: Final = 0.2


class SparkEngine:
    """Runs tasks on the workers of a Spark session, a partition for each."""

    dialect: Final = "spark"

    @checked
    def __init__(self, spark: Any, progress: Progress | None = None) -> None:
        if not hasattr(spark, "range"):
            raise InvalidInput(f"SparkEngine needs a SparkSession, not {type(spark).__name__}")
        self._spark = spark
        self._is_classic = hasattr(spark, "_jsparkSession")
        if progress is not None and not self._is_classic:
            raise InvalidInput(
                "SparkEngine: a client of Spark Connect does not see the tasks of a job, so it "
                "takes no progress="
            )
        self._progress = progress
        # The tag of its jobs, and for a client of Connect the function that runs their tasks: one
        # that is registered works also where a process has classic sessions.
        self._name = f"rowsieve_{uuid.uuid4().hex}"

    @contextmanager
    def batch_token(self, table: Table, operation: str) -> Iterator[tuple[str, int] | None]:
        """The token of the batch whose `foreachBatch` makes the call; None outside of one."""
        with labels_of(table, self._spark, operation, None, None) as labels:
            yield labels.token

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run all tasks as one Spark job; yield their reports. CallCancelled if it is cancelled."""
        count = len(job.tasks)
        partitions = min(count, job.max_concurrent or count)
        collect = self._collected if self._is_classic else self._collected_by_client
        try:
            with self._marked(job.description), self._reported(count, partitions):
                reports = collect(job, partitions)
        except Exception as error:
            if (condition_of(error) or "").partition(".")[0] in _CANCELLED:
                raise CallCancelled("the call was cancelled; nothing was committed") from error
            if (known := own_error(error, job.description)) is not None:
                raise known from error
            raise
        for report in reports:
            yield from pa.ipc.open_stream(report)

    def cancel(self) -> None:
        """Interrupt the tasks of this engine that still run, from any thread."""
        if self._is_classic:
            self._spark.sparkContext.cancelJobsWithTag(self._name)
        else:
            self._spark.interruptTag(self._name)

    def tell(self, done: int, total: int) -> None:
        """Call `progress` unless it is None."""
        if self._progress is not None:
            self._progress(done, total)

    @property
    def time_zone(self) -> str:
        """The time zone of the session."""
        return str(self._spark.conf.get(TIME_ZONE))

    def semantics_of(self, text: str, schema: Schema) -> Semantics:
        """The semantics of a filter under the settings of the session, as of `where=` of a read."""
        return semantics_of_session(self._spark, text, schema)

    def _collected(self, job: Job, partitions: int) -> Sequence[bytes]:
        """The reports of all tasks, run as an RDD: each partition carries its own tasks."""
        run = _runner(job)

        def run_all(tasks: Iterator[tuple[int, bytes]]) -> Iterator[bytes]:
            return (run(number, task) for number, task in tasks)

        tasks = self._spark.sparkContext.parallelize(list(enumerate(job.tasks)), partitions)
        reports: Sequence[bytes] = tasks.mapPartitions(run_all).collect()
        return reports

    def _collected_by_client(self, job: Job, partitions: int) -> Sequence[bytes]:
        """The reports of all tasks: rows of a frame, each in the partition that it names."""
        numbers = range(len(job.tasks))
        tasks = pa.table(
            {
                _NUMBER: pa.array(numbers, pa.int64()),
                _PARTITION: pa.array([number % partitions for number in numbers], pa.int32()),
                _TASK: pa.array(job.tasks, pa.binary()),
            }
        )
        self._spark.udf.register(self._name, _udf(_runner(job)))
        try:
            frame = self._spark.createDataFrame(tasks).repartitionById(partitions, _PARTITION)
            rows = frame.selectExpr(f"{self._name}({_NUMBER}, {_TASK})").collect()
            return [bytes(row[0]) for row in rows]
        finally:
            self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {self._name}")

    @contextmanager
    def _marked(self, description: str) -> Iterator[None]:
        """Tag the jobs of this thread, and name them in Spark's UI; restore what was there.

        A client of Spark Connect cannot name them.
        """
        if not self._is_classic:
            self._spark.addTag(self._name)
            try:
                yield
            finally:
                self._spark.removeTag(self._name)
            return
        context = self._spark.sparkContext
        before = context.getLocalProperty(_DESCRIPTION)
        context.addJobTag(self._name)
        context.setLocalProperty(_DESCRIPTION, description)
        try:
            yield
        finally:
            context.setLocalProperty(_DESCRIPTION, before)
            context.removeJobTag(self._name)

    @contextmanager
    def _reported(self, count: int, partitions: int) -> Iterator[None]:
        """Report the progress that Spark's driver sees, from a thread."""
        if self._progress is None:
            yield
            return
        ended, tell, reported, earlier = Event(), self._progress, 0, frozenset(self._jobs())

        def watch() -> None:
            nonlocal reported
            while not ended.wait(_POLL_S):
                done = min(self._finished(earlier), partitions) * count // partitions
                if reported < done:
                    reported = done
                    tell(done, count)

        thread = Thread(target=watch, name="rowsieve-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        if reported < count:
            tell(count, count)

    def _jobs(self) -> list[int]:
        """The numbers of this engine's jobs, earlier ones included."""
        return list(self._spark.sparkContext._jsc.sc().statusTracker().getJobIdsForTag(self._name))

    def _finished(self, earlier: frozenset[int]) -> int:
        """The number of tasks that Spark has finished, without those of earlier jobs."""
        tracker, count = self._spark.sparkContext.statusTracker(), 0
        for job in set(self._jobs()) - earlier:
            if (info := tracker.getJobInfo(job)) is None:
                continue
            stages = map(tracker.getStageInfo, info.stageIds)
            count += sum(stage.numCompletedTasks for stage in stages if stage is not None)
        return count


def _runner(job: Job) -> Callable[[int, bytes], bytes]:
    """Return the function that runs a task on a worker; holds no task, as each task gets it."""
    procedure, storage_options = job.procedure, options_elsewhere(job.storage_options)
    table_uri, flat = job.table_uri, flat_options(job.storage_options)

    def run(number: int, task: bytes) -> bytes:
        if table_uri:
            check_reached(table_uri, flat)
        report = run_task(procedure, number, task, _attempt(), storage_options)
        _freeze_modules()
        return _stream(report)

    return run


@cache
def _freeze_modules() -> None:
    """Exempt what a worker has imported from garbage collections, once.

    PySpark collects after every task. Going through all objects of our modules, none of them
    garbage, took 40 to 80 ms each time.
    """
    gc.collect()
    gc.freeze()


def _udf(run: Callable[[int, bytes], bytes]) -> Any:
    """The function over columns of numbers and tasks."""

    def run_all(numbers: pa.Array, tasks: pa.Array) -> pa.Array:
        pairs = zip(numbers.to_pylist(), tasks.to_pylist(), strict=True)
        return pa.array([run(number, task) for number, task in pairs], pa.binary())

    run_all.__annotations__ = {"numbers": pa.Array, "tasks": pa.Array, "return": pa.Array}
    arrow_udf: Any = functions.arrow_udf  # type: ignore[attr-defined] # missing in its stubs
    return arrow_udf(run_all, "binary").asNondeterministic()


def _attempt() -> str:
    """The name of this attempt, unique among all attempts of all tasks."""
    context = TaskContext.get()
    return uuid.uuid4().hex if context is None else f"{context.taskAttemptId()}-{uuid.uuid4().hex}"


def _stream(report: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, REPORT) as writer:
        writer.write_batch(report)
    return bytes(sink.getvalue())
