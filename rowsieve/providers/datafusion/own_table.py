"""A table of ours that a name stands for in our `SessionContext`, at one version.

Soundness: what is made for a version is made anew when the name moves to another one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import datafusion
from datafusion.catalog import Table as CatalogTable

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
    planned,
)
from rowsieve.providers.datafusion.native_scan import NativeParts, native_parts
from rowsieve.providers.datafusion.registered_table import PinnedTable, ReadOptions, TableDataset
from rowsieve.providers.datafusion.scan_conditions import scan_of_nothing
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.storage.snapshot import Snapshot
from rowsieve.table import Table

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
    found: dict[str, RowSet | None] = field(default_factory=dict)  # visible rows of its parts

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
        self,
        context: datafusion.SessionContext,
        part_ids: frozenset[str] | None,
        target_partitions: int,
        visible: VisibleParts | None = None,
        *,
        is_checked: bool = False,
        only_counts: bool = False,
    ) -> HybridTable | None:
        """What DataFusion reads partly by itself; None if our dataset reads all parts.

        With `visible`, DataFusion reads these rows of parts with hidden rows; with `only_counts`,
        as many rows. Its files are checked before DataFusion opens one: it would wait for the
        writer of a FIFO. `is_checked`: the caller checks them, before and after DataFusion plans a
        query.
        """
        if not may_be_hybrid(self.table, self.snapshot):
            return None
        found: HybridTable | None = self._once(
            ("hybrid", part_ids, target_partitions, bool(visible), is_checked, only_counts),
            lambda: hybrid_table(
                context,
                self._pinned(),
                self._native_parts(),
                part_ids,
                target_partitions,
                visible or {},
                is_checked=is_checked,
                only_counts=only_counts,
            ),
        )
        if found is not None and not is_checked:
            check_files(self.table.store, self.snapshot.version, found.files)
        return found

    def has_other_parts(self, part_ids: frozenset[str] | None) -> bool:
        """Whether DataFusion may read one of these parts that may have hidden rows."""
        if not may_be_hybrid(self.table, self.snapshot):
            return False
        others = self._native_parts().others
        return bool(others) if part_ids is None else not part_ids.isdisjoint(others)

    def visible_rows(self, part_ids: frozenset[str] | None) -> VisibleParts:
        """The visible rows of parts that DataFusion may read without their hidden rows.

        Reads keys of parts, once for each. Empty if our dataset should read these parts.
        """
        others = self._native_parts().others
        wanted = {each for each in others if part_ids is None or each in part_ids}
        if not may_be_bitmaps([others[each].rows for each in wanted]):
            return {}
        if missing := wanted - self.found.keys():
            self.found |= find_visible(self._pinned(), missing)
        found = {each: self.found[each] for each in wanted if each in self.found}
        return {each: rows for each, rows in found.items() if rows is None or is_bitmap(rows)}

    def enough_rows(self, count: int) -> tuple[frozenset[str], VisibleParts] | None:
        """Parts that DataFusion may read and that have so many visible rows, and these rows.

        None if too few are known. Clean parts come first.
        """
        if not may_be_hybrid(self.table, self.snapshot):
            return None
        native = self._native_parts()
        chosen: set[str] = set()
        for part_id, file in native.clean.items():
            if count <= 0:
                break
            chosen.add(part_id)
            count -= file.rows
        visible: dict[str, RowSet | None] = {}
        for part_id, rows in self.found.items():
            if count <= 0:
                break
            if rows is None or is_bitmap(rows):
                visible[part_id] = rows
                count -= native.others[part_id].rows if rows is None else len(rows)
        if count > 0 or not may_be_bitmaps([native.others[each].rows for each in visible]):
            return None
        return frozenset(chosen | visible.keys()), visible

    def _native_parts(self) -> NativeParts:
        def find() -> NativeParts:
            plan = planned(self.snapshot, self.table.uri)
            return native_parts(plan, self.snapshot, self.table.store)

        return self._once(("native",), find)

    def stub(self, name: str) -> Any:
        """A view of a scan of this name over no file."""
        return self._once(("stub", name), lambda: scan_of_nothing(name, self.snapshot.schema))

    def move(self, snapshot: Snapshot) -> None:
        """Stand for another version from now on."""
        self.snapshot = snapshot
        self.made.clear()
        self.found = {}

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
