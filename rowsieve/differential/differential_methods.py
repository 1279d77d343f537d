"""The methods of `Table` that only differential tables have."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from rowsieve.arguments.annotations import Metadata, RetryTimeout, Token
from rowsieve.changes.table_methods import TableMethods, changes
from rowsieve.differential.appending import APPEND, append_updates
from rowsieve.errors import UnsupportedOperation
from rowsieve.storage.differential import TIME, frontiers_of, is_differential, shown_time
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S


class DifferentialMethods(TableMethods):
    """Updates and frontiers of a differential table."""

    @property
    def upper(self) -> int | datetime:
        """The frontier of the newest version: all updates of earlier times are there."""
        return self._frontier("upper", 1)

    @property
    def since(self) -> int | datetime:
        """The earliest time of the newest version that can be read."""
        return self._frontier("since", 0)

    @changes(APPEND)
    def append_updates(
        self,
        data: Any,
        *,
        upper: Any,
        lower: Any = None,
        time: str = "time",
        diff: str = "diff",
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Append updates of a differential table and move its frontier to `upper`, in one commit.

        Each row of the data is a row of the collection with a time, in the column `time`, and a
        difference in the column `diff`: 1 adds the row, -1 removes it. `lower` is the frontier that
        the updates begin at, by default the one that this object has seen last; lower <= time <
        upper. Of several writers with one `lower`, the first wins; the others get UpperMismatch,
        which has the frontier that is there. Without rows, only the frontier moves.
        """
        change = self.handle.change(APPEND, metadata, token, retry_timeout_s)
        return append_updates(self.handle, change, data, (time, diff), (lower, upper))

    def _frontier(self, name: str, place: int) -> int | datetime:
        snapshot = self.handle.resolve()
        if not is_differential(snapshot.table):
            raise UnsupportedOperation(
                f'{name}: the table has mode {snapshot.table.mode!r}; only mode="differential" has '
                "frontiers"
            )
        value = frontiers_of(snapshot.table)[place]
        frontier: int | datetime = shown_time(value, snapshot.schema.field(TIME).type)
        return frontier
