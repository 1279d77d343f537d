"""The methods of `Table` that return pictures of it."""

from __future__ import annotations

from typing import Any

from rowsieve.arguments.annotations import Version
from rowsieve.bridges.session import Session
from rowsieve.changes.table_methods import TableMethods
from rowsieve.picture_facts.key_range_facts import part_bars, shown_column
from rowsieve.pictures.key_ranges import KeyRanges, Panel
from rowsieve.scan import Scan
from rowsieve.storage.snapshot import Snapshot


class PictureMethods(TableMethods):
    """Pictures: a notebook shows them, and their `save` writes a page of HTML."""

    def key_ranges(
        self,
        where: Any = None,
        *,
        column: str | None = None,
        version: Version | None = None,
        before: Version | None = None,
        dialect: str = "postgres",
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
