"""A table of ours that a name stands for in our `SessionContext`, at one version.

Soundness: what is made for a version is made anew when the name moves to another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

from datafusion.catalog import Table as CatalogTable

from rowsieve.predicate.ir import Predicate
from rowsieve.providers.datafusion.hybrid_table import (
    HybridTable,
    hybrid_table,
    may_be_hybrid,
    planned,
)
from rowsieve.providers.datafusion.registered_table import PinnedTable, ReadOptions, TableDataset
from rowsieve.providers.datafusion.scan_conditions import scan_of_nothing
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.sql_session import SessionContext

Made = TypeVar("Made")
_MOST_MADE: Final = 16  # objects for DataFusion that a table keeps, by the parts that they read
_NAME_PART: Final = re.compile(r'"(?:[^"]|"")*"|[^."]+')


@dataclass(slots=True)
class OwnTable:
    """A table of ours, its name, and the version that the name stands for.

    `name` has all three parts, in quotes: it stands for the same table whatever the settings say.
    """

    name: str
    given_name: str
    table: Table
    snapshot: Snapshot
    is_fixed: bool = False
    made: dict[Hashable, Any] = field(default_factory=dict)  # for this version, the last few

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name, as DataFusion knows them."""
        return name_parts(self.name)

    @property
    def last_name(self) -> str:
        """The last part of the name."""
        return self.parts[-1]

    def at(self, snapshot: Snapshot) -> OwnTable:
        """The same name for a version, with objects for DataFusion of its own."""
        return OwnTable(self.name, self.given_name, self.table, snapshot, self.is_fixed)

    def provider(self, part_ids: frozenset[str] | None = None, *, views: bool = True) -> Any:
        """Our dataset; it has the rows of these parts alone if they are given.

        With `views`, text and bytes have the types that DataFusion's own scans give them.
        """

        def make() -> Any:
            return CatalogTable(TableDataset(self._pinned(), ReadOptions(), part_ids, views=views))

        return self._once(("dataset", part_ids, views), make)

    def hybrid(
        self, context: SessionContext, part_ids: frozenset[str] | None, target_partitions: int
    ) -> HybridTable | None:
        """What DataFusion reads partly by itself; None if our dataset reads all parts.

        Its files are checked before DataFusion opens one: it would wait for the writer of a FIFO.
        """
        if not may_be_hybrid(self.table, self.snapshot):
            return None
        found: HybridTable | None = self._once(
            ("hybrid", part_ids, target_partitions),
            lambda: hybrid_table(context, self._pinned(), part_ids, target_partitions),
        )
        if found is not None:
            check_files(self.table.store, self.snapshot.version, found.files)
        return found

    def stub(self, name: str) -> Any:
        """A view of a scan of this name over no file."""
        return self._once(("stub", name), lambda: scan_of_nothing(name, self.snapshot.schema))

    def move(self, snapshot: Snapshot) -> None:
        """Stand for another version from now on."""
        self.snapshot = snapshot
        self.made.clear()

    def _pinned(self) -> Any:
        return PinnedTable(self.table, self.snapshot)

    def _once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self.made:
            while len(self.made) >= _MOST_MADE:
                self.made.pop(next(iter(self.made)))
            self.made[key] = make()
        found: Made = self.made[key]
        return found

    def read_parts(self, condition: Predicate) -> frozenset[str]:
        """The parts that may have rows that meet the condition."""
        plan = planned(self.snapshot, self.table.uri, condition)
        return frozenset(part.part_id for part in read_parts(plan))


def name_parts(name: str) -> tuple[str, ...]:
    """The parts of a name as DataFusion knows them: folded to lower case if not quoted."""
    parts = _NAME_PART.findall(name)
    return tuple(
        part[1:-1].replace('""', '"') if part[:1] == '"' else part.lower() for part in parts
    )
