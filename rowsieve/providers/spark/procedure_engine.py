"""Runs the tasks of a procedure on Spark's workers, in classic sessions and through Connect.

A task is one row, in a partition of its own unless the job limits how many run at a time. An Arrow
UDF runs it, so pandas is not needed. Spark repeats a task that failed, and may run one twice. Every
attempt writes files under names of its own, and the coordinator counts the report that Spark
returns, so the files of other attempts belong to nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions

from rowsieve.errors import CallCancelled, InvalidInput
from rowsieve.procedures.engine import Job, Progress
from rowsieve.procedures.task_reports import REPORT, run_task
from rowsieve.providers.spark.frames import error_from_worker

_REPORT: Final = "report"
_DESCRIPTION: Final = "spark.job.description"
_CANCELLED: Final = frozenset({"SPARK_JOB_CANCELLED", "OPERATION_CANCELED"})
"""The conditions of Spark's errors for a job that somebody cancelled: classic, and of Connect."""

_POLL_S: Final = 0.2


class SparkEngine:
    """Runs tasks on the workers of a Spark session, a partition for each."""

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
        # The tag of its jobs, and the function that runs their tasks. A registered function works
        # for classic sessions and for clients of Connect, also where a process has both.
        self._name = f"rowsieve_{uuid.uuid4().hex}"

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run all tasks as one Spark job; yield their reports. CallCancelled if it is cancelled."""
        for row in self._collected(job):
            yield from pa.ipc.open_stream(bytes(row[_REPORT]))

    def cancel(self) -> None:
        """Interrupt the tasks of this engine that still run, from any thread."""
        if self._is_classic:
            self._spark.sparkContext.cancelJobsWithTag(self._name)
        else:
            self._spark.interruptTag(self._name)

    def _collected(self, job: Job) -> Sequence[Any]:
        count = len(job.tasks)
        self._spark.udf.register(self._name, _runner(job))
        try:
            with self._marked(job.description), self._reported(count):
                partitions = min(count, job.max_concurrent or count)
                frame = self._spark.range(0, count, 1, partitions)
                rows: Sequence[Any] = frame.selectExpr(f"{self._name}(id) AS {_REPORT}").collect()
                return rows
        except Exception as error:
            if (own := error_from_worker(str(error))) is not None:
                raise own from error
            if _condition(error) in _CANCELLED:
                raise CallCancelled("the call was cancelled; nothing was committed") from error
            raise
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
    def _reported(self, count: int) -> Iterator[None]:
        """Tell the progress from a thread, as Spark's driver sees it."""
        if self._progress is None:
            yield
            return
        ended, tell, told = Event(), self._progress, 0

        def watch() -> None:
            nonlocal told
            while not ended.wait(_POLL_S):
                if (done := self._finished()) > told:
                    told = done
                    tell(min(done, count), count)

        thread = Thread(target=watch, name="rowsieve-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
        tell(count, count)

    def _finished(self) -> int:
        """The number of tasks of this engine's jobs that Spark has finished."""
        tracker = self._spark.sparkContext._jsc.sc().statusTracker()
        found = 0
        for job in tracker.getJobIdsForTag(self._name):
            if (info := self._spark.sparkContext.statusTracker().getJobInfo(job)) is None:
                continue
            for number in info.stageIds:
                stage = self._spark.sparkContext.statusTracker().getStageInfo(number)
                found += 0 if stage is None else stage.numCompletedTasks
        return found


def _condition(error: Exception) -> str | None:
    """The condition by which Spark classifies an error of its own."""
    java = getattr(error, "java_exception", None)
    source: Any = error if java is None else java
    try:
        found = source.getCondition()
    except Exception:
        return None  # an error that Spark does not classify
    return None if found is None else str(found).partition(".")[0]


def _runner(job: Job) -> Any:
    """The UDF that runs the tasks with the numbers that it is given."""
    procedure, tasks, storage_options = job.procedure, tuple(job.tasks), dict(job.storage_options)

    def run(numbers: pa.Array) -> pa.Array:
        return pa.array(
            [
                _stream(run_task(procedure, number, tasks[number], _attempt(), storage_options))
                for number in numbers.to_pylist()
            ],
            pa.binary(),
        )

    run.__annotations__ = {"numbers": pa.Array, "return": pa.Array}
    arrow_udf: Any = functions.arrow_udf  # type: ignore[attr-defined] # missing in its stubs
    return arrow_udf(run, "binary").asNondeterministic()


def _attempt() -> str:
    """The name of this attempt, unique among all attempts of all tasks."""
    found = TaskContext.get()
    return uuid.uuid4().hex if found is None else f"{found.taskAttemptId()}-{uuid.uuid4().hex}"


def _stream(report: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, REPORT) as writer:
        writer.write_batch(report)
    return bytes(sink.getvalue())
