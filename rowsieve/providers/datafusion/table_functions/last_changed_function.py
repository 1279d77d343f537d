"""The table function `last_changed('t', since)` of our session: rows with the version of each.

Its rows are those of `Table.last_changed`. Parts of earlier commits are not read; the conditions
that DataFusion pushes are evaluated exactly, under its semantics.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowsieve import clock
from rowsieve.change_feed.last_changes import last_changes
from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.open_reads import OPEN_READS
from rowsieve.providers.datafusion.pushdown_dataset import (
    PushdownDataset,
    PushdownFragment,
    pushed_filter,
)
from rowsieve.providers.datafusion.table_functions.changes_function import ChangesFunction
from rowsieve.storage.parts.row_versions import with_versions
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import relabelled, zoned_schema

if TYPE_CHECKING:
    from rowsieve.table import Table

NAME: Final = "last_changed"


class LastChangedFunction(ChangesFunction):
    """The function to register."""

    def _dataset(self, values: list[Any]) -> PushdownDataset:
        if [type(value) for value in values] != [str, int]:
            raise InvalidInput(
                "last_changed takes the name of a table and the number of a version, as constants: "
                "last_changed('table', since)"
            )
        table, head = self._table(values[0], NAME)
        table.handle.require_committed(NAME)
        return LastChangedDataset(table, head, values[1])


class LastChangedDataset(PushdownDataset):
    """The Dataset of the rows that were changed since a version, in one partition."""

    def __init__(self, table: Table, head: Snapshot, since: int) -> None:
        self._table = table
        self._head = head
        self._since = since
        self.read((), TRUE)  # refuses before the statement is planned
        super().__init__(zoned_schema(with_versions(head).schema))

    @property
    def table(self) -> Table:
        """The table whose rows are read."""
        return self._table

    def read(self, names: tuple[str, ...], where: Predicate) -> Iterator[pa.RecordBatch]:
        """Batches with these columns and those of the condition; `_commit_version` is the last."""
        schema, now_us = with_versions(self._head).schema, clock.now_us()
        bound = None
        if (condition := normalize(where, Semantics.DATAFUSION)) != TRUE:
            bound = bind(condition, schema, Semantics.DATAFUSION, now_us=now_us)
        asked = {column.name for column in bound.columns} if bound is not None else set()
        columns = [n for n in self._head.schema.names if n in asked or n in names]
        batches = last_changes(
            self._table.handle.store,
            self._head,
            self._since,
            columns=columns,
            predicate=TRUE,
            semantics=Semantics.DATAFUSION,
            now_us=now_us,
        )
        if bound is None:
            return iter(batches)
        return (batch.filter(pa.array(matching(bound, batch))) for batch in batches)

    def get_fragments(self, filter: Any = None) -> list[LastChangedFragment]:  # noqa: A002
        """Return one fragment."""
        OPEN_READS.check_planning()
        return [LastChangedFragment(self, pushed_filter(filter))]


class LastChangedFragment(PushdownFragment):
    """The rows that match the pushed condition."""

    __slots__ = ("_rows", "_where")

    def __init__(self, rows: LastChangedDataset, where: Predicate) -> None:
        super().__init__()
        self._rows = rows
        self._where = where

    def _read(self, output: pa.Schema) -> Iterator[pa.RecordBatch]:
        try:
            for batch in self._rows.read(tuple(output.names), self._where):
                if output.names:
                    yield relabelled(batch.select(output.names), output)
                else:
                    yield pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows)], ["row"]).select([])
        except RowsieveError as error:
            self._rows.table.handle.engine_error = error
            raise
