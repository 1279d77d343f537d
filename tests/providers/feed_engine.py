"""Runs a stream reader as Spark's micro-batch engine does, in this process, and stops it anywhere.

The offset of a batch is kept before the batch is read, and what was written after it: a query that
is started again repeats the batch between the two.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from rowsieve.providers.spark.reads.stream_source import RowsieveStreamReader
from rowsieve.providers.spark.source import RowsieveSource


class Stopped(Exception):
    """The query is stopped in the middle."""


def load(uri: str, **options: Any) -> RowsieveSource:
    """What `spark.readStream...load(uri)` keeps."""
    named = {name: str(value) for name, value in options.items()}
    source = RowsieveSource({"path": uri, "readchangefeed": "true", **named})
    source.schema()
    found: RowsieveSource = pickle.loads(pickle.dumps(source))
    return found


def reader_of(source: RowsieveSource) -> RowsieveStreamReader:
    """The reader of a new query."""
    reader = source.streamReader(None)  # type: ignore[arg-type]
    assert isinstance(reader, RowsieveStreamReader)
    return reader


def rows_between(reader: RowsieveStreamReader, start: Any, end: Any) -> list[pa.RecordBatch]:
    """The rows of a batch, read by another reader, as in tasks."""
    tasks = pickle.loads(pickle.dumps(reader.partitions(start, end)))
    return [batch for task in tasks for batch in reader.read(task)]


class Query:
    """A query with its checkpoint: the offsets of all batches, and how many are done."""

    def __init__(self, write: Callable[[int, list[pa.RecordBatch]], None]) -> None:
        self.offsets: list[str] = []
        self.done = 0
        self.write = write

    def run(self, source: RowsieveSource, stop: Callable[[str], None] = lambda _: None) -> None:
        """Take all that is there, as with the trigger availableNow; `stop` may raise."""
        reader = reader_of(source)
        try:
            reader.prepareForTriggerAvailableNow()
            if self.offsets:
                last = json.loads(self.offsets[-1])
                assert reader.partitions(last, last) == []
            for _ in self._batches(reader, stop):
                pass
        finally:
            reader.stop()

    def _batches(self, reader: RowsieveStreamReader, stop: Callable[[str], None]) -> Iterator[None]:
        while True:
            if len(self.offsets) == self.done:
                start = self.start(reader)
                end = json.dumps(reader.latestOffset(start, reader.getDefaultReadLimit()))
                if self.offsets and end == self.offsets[-1]:
                    return
                stop("before the offset")
                self.offsets.append(end)
                stop("after the offset")
            start, end = self.start(reader), self.offsets[self.done]
            rows = rows_between(reader, start, json.loads(end))
            stop("before the write")
            self.write(self.done, rows)
            stop("after the write")
            self.done += 1
            if end == json.dumps(start):
                return
            yield

    def start(self, reader: RowsieveStreamReader) -> Any:
        """Spark does not keep the offset that a query begins with."""
        return json.loads(self.offsets[self.done - 1]) if self.done else reader.initialOffset()
