"""The table function `changes('t', from_version[, to_version][, net])` of our session.

DataFusion pushes conditions and columns into it as into a table. We evaluate the conditions exactly
under DataFusion's semantics, and read only these columns. The range of versions is fixed when the
statement is planned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from datafusion.catalog import Table as CatalogTable

from rowsieve import clock
from rowsieve.change_feed.feed import ChangeFeed, open_feed
from rowsieve.change_feed.feed_columns import ADDED
from rowsieve.errors import InvalidInput, RowsieveError, without_frames
from rowsieve.predicate.ir import Predicate
from rowsieve.providers.datafusion.open_reads import OPEN_READS
from rowsieve.providers.datafusion.pushdown_dataset import RowsDataset
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import zoned_schema

if TYPE_CHECKING:
    from rowsieve.table import Table

NAME: Final = "changes"


class ChangesFunction:
    """The function to register; `find_table` returns the table with a name, and its version.

    `refusals.last` is the error of the thread's last call, because DataFusion keeps only its text.
    """

    def __init__(
        self,
        find_table: Callable[[str], tuple[Table, Snapshot] | None],
        refusals: threading.local | None = None,
    ) -> None:
        self._find_table = find_table
        self.refusals = threading.local() if refusals is None else refusals

    def __call__(self, *arguments: Any) -> Any:
        """Return a table provider of the changes; the arguments are constant expressions."""
        try:
            return CatalogTable(self._dataset([_constant(argument) for argument in arguments]))
        except RowsieveError as error:
            self.refusals.last = without_frames(error)
            raise

    def _table(self, name: str, function: str) -> tuple[Table, Snapshot]:
        if (table_head := self._find_table(name)) is None:
            raise InvalidInput(f"{function}: the session has no Rowsieve table {name!r}")
        OPEN_READS.wait_at_exit()
        return table_head

    def _dataset(self, values: list[Any]) -> RowsDataset:
        net = len(values) > 2 and values[-1] is True
        if len(values) > 2 and isinstance(values[-1], bool):
            values = values[:-1]
        kinds = [type(value) for value in values]
        if kinds not in ([str, int], [str, int, int]):
            raise InvalidInput(
                "changes takes the name of a table and the numbers of versions, as constants: "
                "changes('table', from_version[, to_version]), and true at the end for net changes"
            )
        table, head = self._table(values[0], NAME)
        table.handle.require_committed(NAME)
        last = values[2] if len(values) == 3 else max(head.version, values[1])
        if len(values) == 2 and values[1] == head.version + 1:
            last = None  # empty: no commit yet
        return ChangesDataset(table, head, values[1], last, net=net)


def _constant(argument: Any) -> Any:
    try:
        return argument.python_value().as_py()
    except Exception:  # not a constant
        return None


class ChangesDataset(RowsDataset):
    """The Dataset of a range of changes, in one partition."""

    def __init__(
        self, table: Table, head: Snapshot, first: int, last: int | None, *, net: bool
    ) -> None:
        self.table = table
        self._head = head
        self._range = (first, last)
        self._net = net
        feed = self.feed(None, None)
        added = [feed.schema.field(name) for name in ADDED]
        super().__init__(table, pa.schema([*zoned_schema(feed.target.schema), *added]))

    def feed(self, columns: Sequence[str] | None, where: Predicate | None) -> ChangeFeed:
        """Open the feed with these columns and this condition; reads no rows yet."""
        first, last = self._range
        return open_feed(
            self.table.handle.store,
            self.table.handle.log,
            self._head,
            first,
            last,
            columns=columns,
            where=where,
            dialect="datafusion",
            session=None,
            now_us=clock.now_us(),
            net=self._net,
        )

    def rows(self, names: Sequence[str], where: Predicate) -> Iterator[pa.RecordBatch]:
        """Read the changes that match, in the order of their versions."""
        return self.feed([name for name in names if name not in ADDED], where).to_batches()
