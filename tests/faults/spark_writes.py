"""Spark's writes that meet a fault: the source `rowsieve_faulty`; workers import it from here.

Options of a write name faults: `metadata.task_faults` one for each attempt of a task, separated by
spaces, `metadata.partition` the only partition that meets them, `metadata.commit_fault` that of the
commit, and `metadata.overtaken_by` what another process does right before the commit. A stream
meets `TASK_FAULTS` and `COMMIT_FAULTS`.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import rowsieve as rs
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.job import WriteJob
from rowsieve.providers.spark.writes.stream_sink import RowsieveStreamWriter
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter
from tests.faults.marks import is_first
from tests.faults.vocabulary import Fault

BEFORE: Final = frozenset((Fault.TASK_FAILED_BEFORE, Fault.TASK_KILLED_BEFORE, Fault.UNAVAILABLE))
"""Met before a task or a commit has an effect; the others after it."""
KILLED: Final = frozenset((Fault.TASK_KILLED, Fault.TASK_KILLED_BEFORE, Fault.CRASH_AFTER))
"""End the process; the others raise an error."""
STREAM_CYCLE: Final = 35
TASK_FAULTS: Final[Mapping[int, Fault]] = {7: Fault.TASK_FAILED, 14: Fault.TASK_KILLED}
"""What the tasks of a stream's batch meet once, by its number modulo `STREAM_CYCLE`."""
COMMIT_FAULTS: Final[Mapping[int, Fault]] = {
    3: Fault.CRASH_AFTER,
    21: Fault.UNAVAILABLE,
    28: Fault.LOST_ANSWER,
}
"""What its commit meets once."""


@contextmanager
def meeting(fault: Fault | None) -> Iterator[None]:
    """Meet a fault before the block or after it."""
    if fault in BEFORE:
        _meet(fault)
    yield
    if fault is not None:
        _meet(fault)


def _meet(fault: Fault) -> None:
    if fault in KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    raise ValueError(fault.value)


def _folder(job: WriteJob) -> Path:
    return Path(job.table_uri.removeprefix("file://"))


def _upsert(job: WriteJob) -> None:
    """Commit id 1 as 'other', and then id 100."""
    rs.open_table(job.table_uri).upsert(pa.table({"id": [1, 100], "s": ["other"] * 2}))


def _create_table(job: WriteJob) -> None:
    """Replace the table by another one."""
    _folder(job).rename(_folder(job).with_name("before"))
    rs.create_table(str(_folder(job)), pa.table({"id": [7], "s": ["new"]}), key=["id"])


OVERTAKING: Final[Mapping[str, Callable[[WriteJob], None]]] = {
    "upsert": _upsert,
    "create_table": _create_table,
}


class FaultyWriter(RowsieveWriter):
    """Meets the faults that the options of the write name; `abort` notes that it was called."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        with meeting(self._task_fault()):
            return super().write(iterator)

    def _task_fault(self) -> Fault | None:
        context: Any = TaskContext.get()
        of_attempts = str(self._job.metadata.get("task_faults", "")).split()
        partition = self._job.metadata.get("partition")
        if partition not in (None, str(context.partitionId())):
            return None
        attempt = int(context.attemptNumber())
        return Fault[of_attempts[attempt]] if attempt < len(of_attempts) else None

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        metadata = self._job.metadata
        if "overtaken_by" in metadata:
            OVERTAKING[metadata["overtaken_by"]](self._job)
        name = metadata.get("commit_fault")
        with meeting(None if name is None else Fault[name]):
            super().commit(messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        super().abort(messages)
        (_folder(self._job).parent / "aborted").write_text(str(len(messages)))


class FaultyStreamWriter(RowsieveStreamWriter):
    """A stream with a fault in every seventh batch, once, of tasks and of commits by turns."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context: Any = TaskContext.get()
        batch = int(context.getLocalProperty("streaming.sql.batchId"))
        with meeting(self._first_fault(TASK_FAULTS, batch)):
            return super().write(iterator)

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        with meeting(self._first_fault(COMMIT_FAULTS, batchId)):
            super().commit(messages, batchId)

    def _first_fault(self, faults: Mapping[int, Fault], batch: int) -> Fault | None:
        """The fault of a batch if it is its first; the folder of the table keeps a note."""
        if (fault := faults.get(batch % STREAM_CYCLE)) is None:
            return None
        mark = _folder(self._job).parent / f"{fault.name} {batch}"
        return fault if is_first(mark) else None


class FaultySource(RowsieveSource):
    """The source whose writes meet faults."""

    @classmethod
    def name(cls) -> str:
        return "rowsieve_faulty"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        options = WriteOptions.parse(self.options)
        return FaultyWriter.begin(options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        options = WriteOptions.parse_stream(self.options)
        return FaultyStreamWriter.begin(options, schema, overwrite=overwrite)
