"""What a change by SQL asks of the engine while it runs: queries over pinned versions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from rowsieve.table import Table


class Queries(Protocol):
    """Runs the queries of one statement, over one version of each table."""

    @property
    def table(self) -> Table:
        """The table that the statement changes."""

    def rows(self, query: str, at: Snapshot, near: Predicate = TRUE) -> pa.Table:
        """Run a query; rows of the changed table that do not match `near` may be missing."""

    def types(self, query: str, at: Snapshot) -> list[pa.DataType]:
        """The types of the columns of a query; InvalidInput if DataFusion cannot plan it."""

    def condition(self, query: str, at: Snapshot) -> Predicate | None:
        """Translate the condition of a query on one table; return None if it has no exact form."""

    def matching_rows(self, query: str, at: Snapshot) -> tuple[pa.Table, Predicate | None]:
        """Run a query of one relation; return its rows and its condition, as `condition` does."""

    def cast_rows(self, statement: str, at: Snapshot) -> pa.Table:
        """The rows of an INSERT with all columns, cast by DataFusion."""

    def reads_table(self, *texts: str) -> bool:
        """Return whether a clause may have a subquery that reads the changed table."""

    def register_rows(self, rows: pa.Table) -> str:
        """Register rows under a new name until the statement ends; return the name."""

    def register_numbered(self, at: Snapshot) -> str:
        """Register the rows of the changed table with their places; return the name."""
