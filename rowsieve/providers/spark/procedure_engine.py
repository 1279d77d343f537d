"""Runs the tasks of a procedure on Spark's workers, in classic sessions and through Connect.

A task is one row, in a partition of its own unless the job limits how many run at a time. An Arrow
UDF runs it, so pandas is not needed. Spark repeats a task that failed, and may run one twice. Every
attempt writes files under names of its own, and the coordinator counts the report that Spark
returns, so the files of other attempts belong to nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions

from rowsieve.errors import InvalidInput
from rowsieve.procedures.engine import Job
from rowsieve.procedures.task_reports import REPORT, run_task
from rowsieve.providers.spark.frames import error_from_worker

_REPORT = "report"


class SparkEngine:
    """Runs tasks on the workers of a Spark session, a partition for each."""

    def __init__(self, spark: Any) -> None:
        if not hasattr(spark, "range"):
            raise InvalidInput(f"SparkEngine needs a SparkSession, not {type(spark).__name__}")
        self._spark = spark
        # The tag of its jobs, and the function that runs their tasks. A registered function works
        # for classic sessions and for clients of Connect, also where a process has both.
        self._name = f"rowsieve_{uuid.uuid4().hex}"

    def run(self, job: Job) -> Iterator[pa.RecordBatch]:
        """Run all tasks as one Spark job; yield their reports."""
        count = len(job.tasks)
        self._spark.udf.register(self._name, _runner(job))
        self._spark.addTag(self._name)
        self._describe(job.description)
        try:
            partitions = min(count, job.max_concurrent or count)
            frame = self._spark.range(0, count, 1, partitions)
            rows = frame.selectExpr(f"{self._name}(id) AS {_REPORT}").collect()
        except Exception as error:
            if (own := error_from_worker(str(error))) is not None:
                raise own from error
            raise
        finally:
            self._describe(None)
            self._spark.removeTag(self._name)
            self._spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {self._name}")
        for row in rows:
            yield from pa.ipc.open_stream(bytes(row[_REPORT]))

    def cancel(self) -> None:
        """Interrupt the tasks of this engine that still run."""
        self._spark.interruptTag(self._name)

    def _describe(self, text: str | None) -> None:
        """Name the job in Spark's UI; a client of Spark Connect cannot."""
        if hasattr(self._spark, "_jsparkSession"):
            self._spark.sparkContext.setJobDescription(text)


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
