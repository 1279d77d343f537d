"""The methods of `Table` that only differential tables have."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from rowsieve.arguments.annotations import Metadata, RetryTimeout, Token
from rowsieve.changes.method_base import TableMethods, changes
from rowsieve.differential.advancing import ADVANCE, advance_since
from rowsieve.differential.appending import APPEND, append_updates
from rowsieve.differential.subscriptions import Updates, subscription
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

    @changes(ADVANCE)
    def advance_since(
        self,
        to: Any,
        *,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Give up the times before `to` of a differential table; `compact` then merges them.

        `to` is a time that can be read, below `upper`. Leases hold it back: `since` goes no further
        than that of the oldest leased version. Commits nothing if it stays.
        """
        change = self.handle.change(ADVANCE, metadata, token, retry_timeout_s)
        return advance_since(self.handle, change, to)

    def subscribe(
        self,
        from_time: Any,
        *,
        snapshot: bool = True,
        follow: bool = True,
        interval_s: float = 0.25,
    ) -> Iterator[Updates]:
        """Yield the updates of a differential table in the order of their times, with progress.

        The first item has the rows at `from_time` with their multiplicities, unless `snapshot` is
        False. Each further one has all updates of the times since the last one, added up by row and
        time; it may have none, as the frontier alone moves. With `follow`, looks for new versions
        every `interval_s` seconds, without end; otherwise ends with the newest version.
        """
        if not is_differential(self.handle.newest.table):
            self._frontier("subscribe", 0)
        return subscription(
            self.handle, from_time, snapshot=snapshot, interval_s=interval_s if follow else None
        )

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
