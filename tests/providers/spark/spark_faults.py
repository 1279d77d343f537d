"""Sources whose writes go wrong on purpose; Spark's workers import them from here."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter, WriterCommitMessage
from pyspark.sql.types import StructType

import rowsieve as rs
from rowsieve.providers.spark.source import RowsieveSource
from rowsieve.providers.spark.source_options import WriteOptions
from rowsieve.providers.spark.writes.stream_sink import RowsieveStreamWriter
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter


class FailingTasks(RowsieveWriter):
    """Every task fails once after it has put its files."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        message = super().write(iterator)
        context: Any = TaskContext.get()
        if context.attemptNumber() == 0:
            raise ValueError("the first attempt fails")
        return message


class DyingTasks(RowsieveWriter):
    """The process of every task dies once after it has put its files."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        message = super().write(iterator)
        context: Any = TaskContext.get()
        if context.attemptNumber() == 0:
            os._exit(137)
        return message


class FailingTwice(RowsieveWriter):
    """Every task fails twice: once after it has put its files, and once before its last row."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context: Any = TaskContext.get()
        if context.attemptNumber() == 1:
            next(iterator, None)
            raise ValueError("the second attempt fails")
        message = super().write(iterator)
        if context.attemptNumber() == 0:
            raise ValueError("the first attempt fails")
        return message


class KilledTasks(RowsieveWriter):
    """The process of every task is killed twice: before it puts files, and after."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context: Any = TaskContext.get()
        if context.attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        message = super().write(iterator)
        if context.attemptNumber() == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return message


class OneFailsForGood(RowsieveWriter):
    """The task of the least key fails whenever it runs; the others succeed."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        message = super().write(iterator)
        context: Any = TaskContext.get()
        if context.partitionId() == 0:
            raise ValueError("it always fails")
        return message


class FailingAfterCommit(RowsieveWriter):
    """The commit lands, and then its process fails; `abort` notes that it was called."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        super().commit(messages)
        raise ValueError("after the commit")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        super().abort(messages)
        folder = Path(self._job.table_uri.removeprefix("file://")).parent
        (folder / "aborted").write_text(str(len(messages)))


class BehindAnother(RowsieveWriter):
    """Another writer commits id 1 as 'other', and then id 100, just before this commit."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        rs.open_table(self._job.table_uri).upsert(pa.table({"id": [1, 100], "s": ["other"] * 2}))
        super().commit(messages)


class BehindAnotherTable(RowsieveWriter):
    """The table is replaced by another one just before this commit."""

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        folder = Path(self._job.table_uri.removeprefix("file://"))
        folder.rename(folder.with_name("before"))
        rs.create_table(str(folder), pa.table({"id": [7], "s": ["new"]}), key=["id"])
        super().commit(messages)


FAULTS: dict[str, type[RowsieveWriter]] = {
    "failing_tasks": FailingTasks,
    "dying_tasks": DyingTasks,
    "failing_twice": FailingTwice,
    "killed_tasks": KilledTasks,
    "one_fails_for_good": OneFailsForGood,
    "failing_after_commit": FailingAfterCommit,
    "behind_another": BehindAnother,
    "behind_another_table": BehindAnotherTable,
}


class InterruptedStream(RowsieveStreamWriter):
    """A stream with a fault in every seventh batch, once: which one changes from fault to fault.

    The tasks fail or die after they have written, the commit fails before or after it lands, or its
    process dies then.
    """

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        message = super().write(iterator)
        context: Any = TaskContext.get()
        batch = int(context.getLocalProperty("streaming.sql.batchId"))
        if batch % 35 == 7 and self._first("task", batch):
            raise ValueError("this task fails once")
        if batch % 35 == 14 and self._first("task", batch):
            os.kill(os.getpid(), signal.SIGKILL)
        return message

    def commit(
        self,
        messages: Sequence[WriterCommitMessage | None],
        batchId: int,  # noqa: N803 - Spark's name
    ) -> None:
        if batchId % 35 == 21 and self._first("before", batchId):
            raise ValueError("before the commit")
        super().commit(messages, batchId)
        if batchId % 35 == 28 and self._first("after", batchId):
            raise ValueError("after the commit")
        if batchId % 35 == 3 and self._first("dies", batchId):
            os._exit(137)

    def _first(self, fault: str, batch: int) -> bool:
        """Whether this is the first time here; the folder of the table keeps a note."""
        folder = Path(self._job.table_uri.removeprefix("file://")).parent
        try:
            (folder / f"{fault} {batch}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class FaultySource(RowsieveSource):
    """The source with the fault that its option `metadata.fault` names."""

    @classmethod
    def name(cls) -> str:
        return "rowsieve_faulty"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        options = WriteOptions.parse(self.options)
        assert options.metadata is not None
        return FAULTS[options.metadata["fault"]].begin(options, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        options = WriteOptions.parse_stream(self.options)
        return InterruptedStream.begin(options, schema, overwrite=overwrite)
