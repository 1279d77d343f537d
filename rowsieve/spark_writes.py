"""The methods of `Table` that write a Spark DataFrame into it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from rowsieve import engines
from rowsieve.arguments import Example
from rowsieve.arguments.annotations import ColumnNames, RetryTimeout
from rowsieve.changes.table_handle import Handle, changes
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S

MergeClause: TypeAlias = str | Mapping[str, Any]
MergeClauses: TypeAlias = Annotated[
    MergeClause | Sequence[MergeClause],
    Example("'update'", "'update', 'insert' or 'delete', a dict, or a list of these"),
]


class SparkWrites(Handle):
    """Writes by Spark's tasks, each in one commit."""

    @changes("write_spark")
    def write_spark(
        self,
        frame: Any,
        mode: Literal["upsert", "append", "delete", "overwrite"],
        *,
        where: Any = None,
        presorted: bool | None = None,
    ) -> Commit:
        """Write a Spark DataFrame in one commit; Spark's tasks write disjoint key ranges.

        `where` limits an overwrite to the rows that match it, as in `overwrite`. `presorted`: the
        frame's tasks already hold rows in the order of the key, in disjoint ranges, so no shuffle
        is needed; where they do not, the frame is computed again and shuffled. None: it is tried if
        the frame reads local Parquet files whose footers show such ranges.
        """
        started_s = time.perf_counter()
        self._writable("write_spark")
        commit = engines.spark().write_frame(self, frame, mode, where, presorted=presorted)
        return self._reported(commit, started_s) if commit.parts_added else commit

    @changes("merge_spark")
    def merge_spark(
        self,
        frame: Any,
        on: ColumnNames,
        *,
        when_matched: MergeClauses | None = None,
        when_not_matched: MergeClauses | None = None,
        when_not_matched_by_source: MergeClauses | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Merge a Spark DataFrame in one commit; of each row, the first clause that fits applies.

        `on` is the key; of a table without one, columns that are equal in matching rows. Clauses
        are "update", "insert" or "delete", or a dict such as
        `{"update": {"n": "source.n + target.n"}, "where": "source.n > 0"}` in Spark's SQL.
        KeyViolation if clauses apply to two rows of the source with one key. Serializable; the
        merge runs again after a conflicting commit, for `retry_timeout_s` seconds.
        """
        started_s = time.perf_counter()
        self._writable("merge_spark")
        clauses = {
            "when_matched": when_matched,
            "when_not_matched": when_not_matched,
            "when_not_matched_by_source": when_not_matched_by_source,
        }
        commit = engines.spark_merge().merge_frame(self, frame, on, clauses, retry_timeout_s)
        return self._reported(commit, started_s) if commit.parts_added else commit
