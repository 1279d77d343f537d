"""`History`: the commits of a table as a list, which a notebook shows as a timeline."""

from __future__ import annotations

from collections.abc import Iterable

from rowsieve.changes.table_handle import Handle
from rowsieve.picture_facts.timeline_facts import calls_of, marks_of
from rowsieve.pictures.timeline import Timeline
from rowsieve.storage.log.log_entry import Commit


class History(list[Commit]):
    """Commits, newest first."""

    def __init__(self, commits: Iterable[Commit], handle: Handle) -> None:
        super().__init__(commits)
        self._handle = handle

    def picture(self) -> Timeline:
        """Return the timeline of these commits; reads nothing, so bytes are left out."""
        marks = marks_of(self, {}, {}, calls_of(self._handle))
        return Timeline(self._handle.store.uri, marks)

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()
