"""A Rowsieve table registered in our `SessionContext`, pinned to one version.

Soundness: objects that were built for a version are dropped when the name moves to another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

import datafusion

from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.datafusion.hybrid_table import (
    HybridTable,
    VisibleParts,
    find_visible,
    hybrid_table,
    is_bitmap,
    may_be_bitmaps,
    may_be_hybrid,
    may_skip,
    planned,
)
from rowsieve.providers.datafusion.native_scan import NativeParts, native_parts
from rowsieve.providers.datafusion.registered_table import (
    ReadOptions,
    TableDataset,
    registrable,
)
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.statements.tokens import folded
from rowsieve.storage.differential import is_differential
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.catalog_tables import CatalogTables

Made = TypeVar("Made")
_CACHE_SIZE: Final = 16  # objects for DataFusion that are kept per table
_NAME_PART: Final = re.compile(r'"(?:[^"]|"")*"|[^."]+')


def follows_versions(table: object) -> TypeGuard[Table]:
    """Return whether statements refresh an object; a differential table stays at its time."""
    return isinstance(table, Table) and not is_differential(table.handle.pinned.table)


@dataclass(slots=True)
class OwnTable:
    """A registered table: its name, and the version that statements read under this name.

    `name` is the quoted name with catalog and schema, so that session settings do not change its
    meaning; `given_name` is the name that the user gave. Our dataset reads all parts of a table of
    `catalog`, in which it is `name_there`. While `table` is inside a transaction of the session,
    `outside` is the table that was registered.
    """

    name: str
    given_name: str
    table: Table
    snapshot: Snapshot
    is_fixed: bool = False
    catalog: CatalogTables | None = None
    name_there: str = ""
    outside: Table | None = None
    cache: dict[Hashable, Any] = field(default_factory=dict)  # the newest objects for this version
    visible: dict[str, RowSet | None] = field(default_factory=dict)  # visible rows by part id

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the name as DataFusion resolves them."""
        return name_parts(self.name)

    @property
    def last_name(self) -> str:
        """The last part of the name."""
        return self.parts[-1]

    def refresh(self, *, commits: bool) -> None:
        """Let the table move to the newest version.

        With `commits`, the statement reads commits, so an open writer first makes one of its calls.
        """
        if commits:
            self.table.handle.committed()
        self.table.refresh()

    def at(self, snapshot: Snapshot) -> OwnTable:
        """The same name at another version, with a cache of its own."""
        return OwnTable(self.name, self.given_name, self.table, snapshot, self.is_fixed)

    @property
    def has_choice(self) -> bool:
        """True if conditions may leave only some of the parts."""
        return len(self.snapshot.parts.part_ids) > 1 and may_skip(self.snapshot)

    @property
    def may_be_hybrid(self) -> bool:
        """True if DataFusion may scan parts."""
        return self.catalog is None and may_be_hybrid(self.table, self.snapshot)

    def provider(self, part_ids: frozenset[str] | None = None, *, views: bool = True) -> Any:
        """Our dataset, limited to these parts if they are given.

        With `views`, text and bytes have the view types that DataFusion's own scans return, except
        in a table of a catalog.
        """
        views &= self.catalog is None

        def make() -> Any:
            return registrable(
                TableDataset(self.pinned_table(), ReadOptions(), part_ids, views=views)
            )

        return self._cached(("dataset", part_ids, views), make)

    def dataset(self, *, views: bool = True) -> TableDataset:
        """A dataset of ours for one statement, whose conditions may choose its parts."""
        return TableDataset(self.pinned_table(), ReadOptions(), views=views)

    def hybrid(
        self,
        context: datafusion.SessionContext,
        part_ids: frozenset[str] | None,
        target_partitions: int,
        visible: VisibleParts | None = None,
        *,
        is_checked: bool = False,
    ) -> HybridTable | None:
        """The table with DataFusion's own scans for some parts; None if our dataset reads all.

        `visible` has the rows to scan of parts with hidden rows. Files are checked before
        DataFusion opens one, because opening a FIFO would block. `is_checked`: the caller checks
        the files, before and after DataFusion plans a query.
        """
        if not self.may_be_hybrid:
            return None
        table: HybridTable | None = self._cached(
            ("hybrid", part_ids, target_partitions, bool(visible), is_checked),
            lambda: hybrid_table(
                context,
                self.name,
                self.pinned_table(),
                self._native_parts(),
                part_ids,
                target_partitions,
                visible or {},
                is_checked=is_checked,
            ),
        )
        if table is not None and not is_checked:
            check_files(self.table.handle.store, self.snapshot.version, table.files)
        return table

    def may_have_hidden_rows(self, part_ids: frozenset[str] | None) -> bool:
        """Return whether one of these parts that DataFusion can scan may have hidden rows."""
        if not self.may_be_hybrid:
            return False
        unproven = self._native_parts().unproven
        return bool(unproven) if part_ids is None else not part_ids.isdisjoint(unproven)

    def visible_rows(self, part_ids: frozenset[str] | None) -> VisibleParts:
        """The visible rows of parts that DataFusion may scan under a filter on row numbers.

        Reads the keys of each such part once. Empty if our dataset should read these parts.
        """
        unproven = self._native_parts().unproven
        wanted = {each for each in unproven if part_ids is None or each in part_ids}
        if not may_be_bitmaps([unproven[each].rows for each in wanted]):
            return {}
        if missing := wanted - self.visible.keys():
            self.visible |= find_visible(self.pinned_table(), missing)
        by_part = {each: self.visible[each] for each in wanted if each in self.visible}
        return {each: rows for each, rows in by_part.items() if rows is None or is_bitmap(rows)}

    def _native_parts(self) -> NativeParts:
        def find() -> NativeParts:
            store = self.table.handle.store
            with missing_files_named(store, self.snapshot.version):
                return native_parts(planned(self.snapshot, self.table.uri), self.snapshot, store)

        return self._cached(("native",), find)

    def is_at(self, snapshot: Snapshot) -> bool:
        """Return whether statements read this version already."""
        now = self.snapshot
        return (now.table.uuid, now.commit_id) == (snapshot.table.uuid, snapshot.commit_id)

    def move(self, snapshot: Snapshot) -> None:
        """Pin another version."""
        self.snapshot = snapshot
        self.cache.clear()
        self.visible = {}

    def pinned_table(self) -> Table:
        """The table at the version that statements read, read-only."""
        return self._cached(("pinned",), lambda: Table(self.table.handle.fixed_at(self.snapshot)))

    def _cached(self, key: Hashable, make: Callable[[], Made]) -> Made:
        if key not in self.cache:
            while len(self.cache) >= _CACHE_SIZE:
                self.cache.pop(next(iter(self.cache)))
            self.cache[key] = make()
        item: Made = self.cache[key]
        return item

    def provider_near(self, condition: Predicate) -> Any:
        """Our dataset for a reader to whom only rows that match the condition matter."""
        part_ids = self.read_parts(condition)  # which logs the condition, in a transaction
        logged = self.at(replace(self.snapshot, on_read=None))
        return logged.provider(part_ids, views=False)

    def read_parts(self, condition: Predicate) -> frozenset[str]:
        """The ids of the parts that may have a row that matches the condition."""
        plan = planned(self.snapshot, self.table.uri, condition)
        return frozenset(part.part_id for part in read_parts(plan))


def name_parts(name: str) -> tuple[str, ...]:
    """Split a name as DataFusion does: unquoted parts are folded to lower case."""
    return tuple(map(folded, _NAME_PART.findall(name)))
