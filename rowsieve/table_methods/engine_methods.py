"""The methods of `Table` that let DataFusion and Spark read it, and write Spark's data frames."""

from __future__ import annotations

import time
from typing import Any, Literal, Self

from rowsieve import engines
from rowsieve.arguments.annotations import (
    ColumnNames,
    MergeClauses,
    Metadata,
    Percentage,
    RetryTimeout,
    Token,
)
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.method_base import TableMethods, changes
from rowsieve.config import OnViolation, Pruning
from rowsieve.encodings.file_encoding import OnDifference, ReadEncoding
from rowsieve.metrics import Reporter
from rowsieve.storage.differential import read_at
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.parts.reading_views import with_options


class EngineMethods(TableMethods):
    """Reads by DataFusion and Spark, and writes of Spark's data frames."""

    @property
    def _inner(self) -> Any:
        """The attribute that DataFusion's `register_table` reads."""
        return self.to_datafusion()._inner

    def to_datafusion(
        self,
        *,
        pruning: Pruning | None = None,
        audit: Percentage | None = None,
        on_violation: OnViolation | None = None,
        reporter: Reporter | None = None,
        at: Any = None,
        expanded: bool = False,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
    ) -> Any:
        """Return an object for DataFusion's `register_table`, with read options of its own.

        All are as in `scan`. A differential table stays at its time, and with `read_encoding` or
        `on_encoding_difference` any table at its version. `reporter` receives the reports of these
        reads instead of the table's own.
        """
        table = self.read_at(
            at,
            expanded=expanded,
            read_encoding=read_encoding,
            on_encoding_difference=on_encoding_difference,
        )
        return engines.datafusion().catalog_table(
            table, pruning=pruning, audit=audit, on_violation=on_violation, reporter=reporter
        )

    def to_spark(
        self,
        spark: Any,
        where: Any = None,
        columns: ColumnNames | None = None,
        *,
        at: Any = None,
        expanded: bool = False,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
    ) -> Any:
        """Return a Spark DataFrame of the pinned version; text in `where` is Spark SQL.

        `at`, `expanded`, `read_encoding` and `on_encoding_difference` are as in `scan`. With an
        open writer, all its earlier calls are committed first, and that version is read.
        """
        view: dict[str, Any] = {
            "at": at,
            "expanded": expanded,
            "read_encoding": read_encoding,
            "on_encoding_difference": on_encoding_difference,
        }
        handle = self.handle
        handle.require_committed("to_spark")
        if handle.writer is not None:  # tasks read commits only (rule 20)
            pinned = type(self)(handle.fixed_at(handle.committed()))
            return pinned.to_spark(spark, where, columns, **view)
        table = self.read_at(**view)
        if isinstance(handle.read_only, str) or table is not self:  # not known by its URI
            return engines.spark().read_planned(table, spark, where, columns)
        return engines.spark().read_frame(self, spark, where, columns)

    def read_at(
        self,
        at: Any = None,
        *,
        expanded: bool = False,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
    ) -> Self:
        """Return the pinned version as it is read, as a read-only table, for engines.

        A differential table is read `at` a time. The arguments are as in `scan`, and so are the
        columns. A table that is no other without them is returned itself.
        """
        pinned = self.handle.pinned
        reading = with_options(
            read_at(pinned, at, expanded=expanded), read_encoding, on_encoding_difference
        )
        return self if reading is pinned else type(self)(self.handle.fixed_at(reading))

    @changes("write_spark")
    def write_spark(
        self,
        frame: Any,
        mode: Literal["upsert", "append", "delete", "overwrite"],
        *,
        where: Any = None,
        presorted: bool | None = None,
        schema_mode: SchemaMode = "strict",
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Write a Spark DataFrame in one commit; Spark's tasks write disjoint key ranges.

        `where` limits an overwrite to the rows that match it, as in `overwrite`. `presorted`: the
        frame's tasks already hold rows in the order of the key, in disjoint ranges, so no shuffle
        is needed; where they do not, the frame is computed again and shuffled. None: it is tried if
        the frame reads local Parquet files whose footers show such ranges. In the function of
        `foreachBatch` a write without a token has that of its batch, so that a repeated batch is
        committed once. `schema_mode="merge"` first adds the columns that the table lacks.
        """
        started_s = time.perf_counter()
        self.handle.require_writable("write_spark")
        commit = engines.spark().write_frame(
            self,
            frame,
            mode,
            where,
            presorted=presorted,
            schema_mode=schema_mode,
            token=token,
            metadata=metadata,
        )
        return self.handle.reported(commit, started_s) if commit.parts_added else commit

    @changes("merge_spark")
    def merge_spark(
        self,
        frame: Any,
        on: ColumnNames,
        *,
        when_matched: MergeClauses | None = None,
        when_not_matched: MergeClauses | None = None,
        when_not_matched_by_source: MergeClauses | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Merge a Spark DataFrame in one commit; of each row, the first clause that fits applies.

        `on` is the key; of a table without one, columns that are equal in matching rows. Clauses
        are "update", "insert" or "delete", or a dict such as
        `{"update": {"n": "source.n + target.n"}, "where": "source.n > 0"}` in Spark's SQL.
        KeyViolation if clauses apply to two rows of the source with one key. Serializable; the
        merge runs again after a conflicting commit, for `retry_timeout_s` seconds. The token of a
        batch is as in `write_spark`.
        """
        started_s = time.perf_counter()
        self.handle.require_writable("merge_spark")
        clauses = {
            "when_matched": when_matched,
            "when_not_matched": when_not_matched,
            "when_not_matched_by_source": when_not_matched_by_source,
        }
        commit = engines.spark_merge().merge_frame(
            self, frame, on, clauses, retry_timeout_s, token, metadata
        )
        return self.handle.reported(commit, started_s) if commit.parts_added else commit
