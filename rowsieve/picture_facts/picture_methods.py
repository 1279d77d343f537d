"""The methods of `Table` that return pictures of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rowsieve.arguments.annotations import Version
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql.dialects import DialectName
from rowsieve.bridges.where import semantics_of
from rowsieve.changes.method_base import TableMethods
from rowsieve.errors import InvalidInput
from rowsieve.picture_facts.difference_facts import difference_of
from rowsieve.picture_facts.health_facts import health_of
from rowsieve.picture_facts.key_range_facts import part_bars, shown_column
from rowsieve.picture_facts.timeline_facts import DEFAULT_VERSIONS, timeline_of
from rowsieve.pictures.difference import VersionDifference
from rowsieve.pictures.health import Health
from rowsieve.pictures.key_ranges import KeyRanges, Panel
from rowsieve.pictures.profile import ColumnProfile, Profile
from rowsieve.pictures.timeline import Timeline
from rowsieve.progress_bars import ShownProgress
from rowsieve.scan import Scan
from rowsieve.storage.snapshot import Snapshot

if TYPE_CHECKING:
    from rowsieve.table_methods.frame_methods import FrameMethods
    from rowsieve.table_methods.read_methods import ReadMethods


class PictureMethods(TableMethods):
    """Pictures: a notebook shows them, and their `save` writes a page of HTML."""

    def key_ranges(
        self,
        where: Any = None,
        *,
        column: str | None = None,
        version: Version | None = None,
        before: Version | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> KeyRanges:
        """Return a picture of the parts over a column, by default the first one of the key.

        With `where`, it shows what a read with this condition does with each part. With `before`,
        the parts of that version stand beside those of `version`, by default the newest one, on the
        same axis: two versions around a compaction show what it did. Reads the manifest alone.
        """
        newer = self.handle.readable(version)
        snapshots = [newer] if before is None else [self.handle.readable(before), newer]
        name = shown_column(newer, column)
        panels, text = [], None
        for snapshot in snapshots:
            explanation = None
            if where is not None:
                scan = self._scan_of(snapshot, where, dialect, session)
                explanation = scan.explain()
                text = explanation.where
            bars = part_bars(snapshot, name, explanation)
            panels.append(Panel(f"version {snapshot.version}", bars))
        return KeyRanges(self.handle.store.uri, name, tuple(panels), text)

    def timeline(self, limit: int = DEFAULT_VERSIONS) -> Timeline:
        """Return a picture of the newest versions: rows and bytes in and out, by operation.

        With what keeps them: the retention floor, leases, tags, branches and checkpoints. Each
        version has the call that opens it. Reads the lists of parts of `limit` entries.
        """
        if limit < 1:
            raise InvalidInput(f"timeline: limit must be at least 1, got {limit}")
        return timeline_of(self.handle, limit)

    def health(self) -> Health:
        """Return a picture of the newest version's health, with the advice and its statements.

        Lists the table's files, to tell bytes of the newest version from those of older ones and
        those that no version has. Opens no data file.
        """
        return health_of(self.handle)

    def difference(
        self,
        before: Version,
        after: Version | None = None,
        *,
        where: Any = None,
        samples: int = 10,
        dialect: DialectName = "postgres",
        session: Session | None = None,
    ) -> VersionDifference:
        """Return a picture of what turns version `before` into `after`, by default the newest.

        Net: each key counts once, with its row before and its row after. It has the rows that were
        inserted, updated and deleted, the updated rows by column, and `samples` rows of each kind.
        The table needs a key, and `before` is the older version. `where` is a condition on the rows
        of the change feed, of which an update has two.
        """
        if samples < 0:
            raise InvalidInput(f"difference: samples must not be negative, got {samples}")
        semantics_of(dialect, where, session)  # refuses wrong ones also between equal versions
        self.handle.require_committed("difference")
        first = self.handle.resolve(before)
        last = self.handle.committed() if after is None else self.handle.resolve(after)
        versions = first.version, last.version
        if first.version == last.version:
            return VersionDifference(self.handle.store.uri, *versions, 0, 0, 0)
        if first.version > last.version:
            raise InvalidInput(
                f"difference: version {first.version} is newer than {last.version}; give the older "
                "one first"
            )
        feed = cast("ReadMethods", self).changes(
            first.version + 1, last.version, where=where, dialect=dialect, session=session, net=True
        )
        return difference_of(self.handle.store.uri, versions, last.table.key, feed, samples)

    def profile(self, *, exact: bool = False, progress: ShownProgress | None = None) -> Profile:
        """Return a picture of the columns: NULLs, bounds, and how many values differ.

        The facts of `summarize`: from statistics, without reading a file; with `exact`, the rows
        are read where statistics are not exact. Different values are those of `distinct_counts`.
        """
        rows = (
            cast("FrameMethods", self)
            .summarize(exact=exact, progress=progress)
            .to_arrow()
            .to_pylist()
        )
        counts = cast("ReadMethods", self).distinct_counts()
        columns = [
            ColumnProfile(
                row["column"],
                row["type"],
                row["nulls"],
                row["lower"],
                row["upper"],
                counts.get(row["column"]),
                row["exact"],
            )
            for row in rows
        ]
        version = self.handle.readable().version
        return Profile(
            self.handle.store.uri, version, max((r["rows"] for r in rows), default=0), columns
        )

    def _scan_of(
        self, snapshot: Snapshot, where: Any, dialect: str, session: Session | None
    ) -> Scan:
        return Scan(
            self.handle.store,
            snapshot,
            where=where,
            dialect=dialect,
            session=session,
            reporter=self.handle.own_reporter,
        )
