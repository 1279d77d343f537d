"""What is known of a footer is worked out once, and goes when the footer goes."""

from __future__ import annotations

import gc
import io
import weakref
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.objects import open_store
from rowsieve.parquet.footer import Tail, read_footer
from rowsieve.parquet.footer_cache import cached_per_footer
from rowsieve.parquet.leaf_columns import dictionary_columns, leaves_of
from rowsieve.parquet.mini_file import FileSchema
from rowsieve.parquet.pages import page_directory
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics
from tests.parquet.test_pages import SCHEMA, rows, write


def footer() -> pq.FileMetaData:
    sink = io.BytesIO()
    pq.write_table(pa.table({"a": [1, 2]}), sink)
    return read_footer(sink.getvalue())


def test_each_footer_is_computed_once() -> None:
    asked = []

    @cached_per_footer
    def count(metadata: pq.FileMetaData, more: int) -> int:
        asked.append(metadata)
        return more + len(asked)

    first, second = footer(), footer()
    assert first.equals(second)
    assert [count(first, 10), count(first, 10), count(second, 20)] == [11, 11, 22]
    assert len(asked) == 2


def test_another_footer_at_the_same_place_is_another() -> None:
    @cached_per_footer
    def rows_of(metadata: pq.FileMetaData) -> int:
        return int(metadata.num_rows)

    for count in range(50):  # memory that was freed is soon used again
        sink = io.BytesIO()
        pq.write_table(pa.table({"a": list(range(count))}), sink)
        assert rows_of(read_footer(sink.getvalue())) == count


def test_nothing_that_is_remembered_holds_its_footer(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    ref = write(store, rows(50, 1))
    data = memoryview((tmp_path / ref.path).read_bytes())
    tail = Tail(data[ref.tail_start :], read_footer(data))
    assert page_directory(tail.metadata) is not None
    assert leaves_of(tail.metadata)
    dictionary_columns(tail.metadata)
    FileSchema.of(tail)
    RowGroupStatistics(tail.metadata, SCHEMA)
    gone = weakref.ref(tail.metadata)
    del tail
    gc.collect()
    assert gone() is None
