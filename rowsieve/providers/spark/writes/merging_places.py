"""Merges a DataFrame into a table without a key: hides rows by their places, and appends rows.

Spark joins the source to the rows of one version by the columns of `on`, which may be equal in any
number of rows, and evaluates the clauses. This process receives the result: the places of changed
rows, and the new rows.

Soundness: the commit conflicts with every commit that changed rows since the version that was read
(invariants I7 and 13), and then the merge runs again. If several rows of the source change a row of
the table, the result would depend on their order, unless they all delete it: KeyViolation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.change import Change
from rowsieve.changes.computed import changes_rows
from rowsieve.changes.data.ingest import prepare_appended
from rowsieve.changes.hiding import hide_places
from rowsieve.changes.mutation import Mutation
from rowsieve.errors import InvalidInput, KeyViolation
from rowsieve.providers.spark.frames import spark_read
from rowsieve.providers.spark.job_errors import own_error
from rowsieve.providers.spark.reads.native_columns import quoted
from rowsieve.providers.spark.reads.placed_rows import placed_frame
from rowsieve.providers.spark.row_types import from_spark
from rowsieve.providers.spark.writes.batch_tokens import Labels
from rowsieve.providers.spark.writes.clauses import Aliases
from rowsieve.providers.spark.writes.merging import Merge, free_name
from rowsieve.statements.merge_statement import MergeClause
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from rowsieve.table import Table


def merge_places(
    table: Table,
    frame_at: Callable[[int], Any],
    on: Mapping[str, str],
    clauses: Sequence[MergeClause],
    aliases: Aliases,
    retry_timeout_s: float | None,
    labels: Labels,
) -> Commit:
    """Merge in one commit; runs again after a conflict, for `retry_timeout_s` seconds."""

    def build(change: Change, snapshot: Snapshot) -> Mutation | None:
        version = snapshot.version
        merge = PlacedMerge(table, version, frame_at(version), on, clauses, aliases)
        places, rows = merge.places_and_rows()
        return hide_places(change, snapshot, places, rows, changes_rows)

    return table.handle.commit_computed(
        "merge", build, retry_timeout_s, token=labels.token, metadata=labels.metadata
    )


class PlacedMerge(Merge):
    """A merge into one version of a table without a key."""

    def places_and_rows(self) -> tuple[np.ndarray, pa.Table | None]:
        """The places of the rows to hide, and the rows to append."""
        place = self._functions.col(self._place)
        try:
            changed = self._changed_rows([place]).toArrow()
        except Exception as error:
            if (known := own_error(error, f"merge_spark into {self._uri}")) is not None:
                raise known from error
            raise
        new_rows = changed.filter(pc.invert(changed.column(self.deletes)))
        rows = from_spark(new_rows.select(self._schema.names), self._schema.fields)
        places = changed.column(self._place).drop_null().to_numpy()
        return self._once(places), prepare_appended(rows, self._schema) if rows.num_rows else None

    def _compared(self, on: Sequence[str]) -> tuple[str, ...]:
        """The columns that are equal in matching rows, as the table names them."""
        names = tuple(self._schema.field(name).name for name in on)
        if not names:
            raise InvalidInput(
                "merge_spark: on= names no column; name those that matching rows share"
            )
        return names

    def _source_rows(self) -> Any:
        self._marker = free_name("_rowsieve_source", (*self._schema.names, *self._frame.columns))
        return self._frame.withColumn(self._marker, self._functions.lit(True))  # noqa: FBT003

    def _target_rows(self, pinned: Table) -> Any:
        self._uri = pinned.uri
        self._place = free_name("_rowsieve_place", (*self._schema.names, *self._frame.columns))
        read = spark_read(pinned, self._frame.sparkSession, None, None)
        return placed_frame(read, self._place)

    def _sides(self) -> tuple[Any, Any]:
        """Whether a joined row has a row of the table, and one of the source."""
        marker = self._functions.col(f"{quoted(self._aliases.source)}.{self._marker}")
        return self._target_column(self._place).isNotNull(), marker.isNotNull()

    def _once(self, places: np.ndarray) -> np.ndarray:
        """The places without repetition; KeyViolation if it matters which row changes one."""
        unique, counts = np.unique(places, return_counts=True)
        if (counts > 1).any() and not self.deletes_all_matched:
            raise KeyViolation(
                f"merge: clauses apply to {counts.max()} rows of the source with one row of the "
                "table, so the result would depend on their order; nothing was committed. Keep one "
                f"row for each {', '.join(self._on)}, for example with dropDuplicates"
            )
        return unique
