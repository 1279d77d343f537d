"""The table function `last_changed('t', since)` of our session: rows with the version of each.

Its rows are those of `Table.last_changed`. Parts of earlier commits are not read; the conditions
that DataFusion pushes are evaluated exactly, under its semantics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowsieve import clock
from rowsieve.change_feed.last_changes import last_changes
from rowsieve.errors import InvalidInput
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.datafusion.pushdown_dataset import RowsDataset
from rowsieve.providers.datafusion.table_functions.changes_function import ChangesFunction
from rowsieve.storage.parts.row_versions import with_versions
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import zoned_schema

if TYPE_CHECKING:
    from rowsieve.table import Table

NAME: Final = "last_changed"


class LastChangedFunction(ChangesFunction):
    """The function to register."""

    def _dataset(self, values: list[Any]) -> RowsDataset:
        if [type(value) for value in values] != [str, int]:
            raise InvalidInput(
                "last_changed takes the name of a table and the number of a version, as constants: "
                "last_changed('table', since)"
            )
        table, head = self._table(values[0], NAME)
        table.handle.require_committed(NAME)
        return LastChangedDataset(table, head, values[1])


class LastChangedDataset(RowsDataset):
    """The Dataset of the rows that were changed since a version, in one partition."""

    def __init__(self, table: Table, head: Snapshot, since: int) -> None:
        self.table = table
        self._head = head
        self._since = since
        self.rows((), TRUE)  # refuses before the statement is planned
        super().__init__(table, zoned_schema(with_versions(head).schema))

    def rows(self, names: Sequence[str], where: Predicate) -> Iterator[pa.RecordBatch]:
        """Batches with these columns and those of the condition; `_commit_version` is the last."""
        schema, now_us = with_versions(self._head).schema, clock.now_us()
        bound = None
        if (condition := normalize(where, Semantics.DATAFUSION)) != TRUE:
            bound = bind(condition, schema, Semantics.DATAFUSION, now_us=now_us)
        asked = {column.name for column in bound.columns} if bound is not None else set()
        columns = [n for n in self._head.schema.names if n in asked or n in names]
        batches = last_changes(
            self.table.handle.store,
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
