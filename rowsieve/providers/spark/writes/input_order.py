"""Guesses whether the tasks of a DataFrame hold disjoint ranges of keys, by its files' footers.

`write_spark` writes such a frame without a shuffle (`one_pass.py`). The guess may be wrong: row
groups may be unsorted inside, and files may change. The commit decides by the rows that were
written, so a wrong guess costs time, but no row.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from itertools import chain, pairwise
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError

from rowsieve.parquet.chunks import chunk_span
from rowsieve.providers.spark.plans import FileSpan, UnknownInternals, files_of_tasks
from rowsieve.providers.spark.writes.one_pass import ONE_PASS_MAX_PARTS, ONE_PASS_MIN_PART_BYTES

Range: TypeAlias = tuple[Any, Any]
"""The least and the greatest value of the first key column in a row group."""

_LOG: Final = logging.getLogger("rowsieve")
MAX_FILES: Final = 1_000  # to ask Spark for more, one by one, and to read their footers takes long
_LOCAL: Final = "file:"


def tasks_are_in_order(frame: Any, key: Sequence[str]) -> bool:
    """Return whether the frame reads local Parquet files whose row groups are in ascending order.

    False if that is unknown: for other inputs, computed keys, joins, and Spark Connect.
    """
    try:
        spans = files_of_tasks(frame, key[0], MAX_FILES)
        if spans is None:
            return False
        column, tasks = spans
        return _are_large(tasks) and _are_disjoint([_ranges(task, column) for task in tasks])
    except (Py4JError, UnknownInternals, OSError, pa.ArrowException) as error:
        _LOG.debug("the ranges of the frame's files are not known: %s", error)
        return False  # the write itself reports what is wrong with the files


def _are_large(tasks: Sequence[Sequence[FileSpan]]) -> bool:
    """Return whether the tasks would write large parts; a shuffle joins the rows of small ones."""
    size_bytes = sum(span.size_bytes for span in chain.from_iterable(tasks))
    return (
        len(tasks) <= ONE_PASS_MAX_PARTS or size_bytes >= 2 * len(tasks) * ONE_PASS_MIN_PART_BYTES
    )


def _are_disjoint(tasks: Sequence[Sequence[Range] | None]) -> bool:
    """Return whether the row groups of each task ascend, and the ranges of tasks are disjoint."""
    known = [ranges for ranges in tasks if ranges is not None]
    if len(known) < len(tasks):
        return False
    kinds = {type(value) for bounds in chain.from_iterable(known) for value in bounds}
    if len(kinds) > 1:  # of files that were written with other types
        return False
    hulls = sorted((ranges[0][0], ranges[-1][1]) for ranges in known if ranges)
    return all(map(_ascend, known)) and _ascend(hulls)


def _ascend(ranges: Sequence[Range]) -> bool:
    """Return whether each range begins where the one before ends, or later; NaN is in no order."""
    ascends = all(low <= high for low, high in ranges)
    return ascends and all(before[1] <= after[0] for before, after in pairwise(ranges))


def _ranges(task: Sequence[FileSpan], column: str) -> list[Range] | None:
    """The ranges of the row groups that a task reads, in its order; None if one is not known."""
    ranges = []
    for span in task:
        if not span.path.startswith(_LOCAL):
            return None
        metadata = pq.read_metadata(span.path.removeprefix(_LOCAL))
        leaf = _leaves(metadata).get(column.lower())
        if leaf is None:
            return None
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            if not span.start <= _middle(group) < span.stop:
                continue  # another task reads it
            statistics = group.column(leaf).statistics
            if statistics is None or not statistics.has_min_max:
                return None
            ranges.append((statistics.min, statistics.max))
    return ranges


def _leaves(metadata: pq.FileMetaData) -> Mapping[str, int]:
    """The leaf numbers of the file's columns, by their names in lower case."""
    schema = metadata.schema
    return {schema.column(leaf).path.lower(): leaf for leaf in range(metadata.num_columns)}


def _middle(group: pq.RowGroupMetaData) -> int:
    """The position by which Spark gives a row group to one of the tasks that read its file."""
    start = chunk_span(group.column(0))[0]
    columns = (group.column(leaf) for leaf in range(group.num_columns))
    return int(start + sum(column.total_compressed_size for column in columns) // 2)
