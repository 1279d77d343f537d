"""`History`: the commits of a table as a list, which prints as a table.

A notebook shows the table below a timeline.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from rowsieve.arguments.peer_names import HISTORY, unknown_attribute
from rowsieve.changes.table_handle import Handle
from rowsieve.frame_text import frame_html, frame_text
from rowsieve.picture_facts.timeline_facts import calls_of, marks_of
from rowsieve.pictures.timeline import Timeline
from rowsieve.storage.log.log_entry import Commit

PRINTED_COMMITS: Final = 20  # commits that are printed
_COLUMNS: Final = (
    *("version", "timestamp", "operation", "rows_written", "rows_deleted"),
    *("parts_added", "parts_removed", "metadata"),
)


class History(list[Commit]):
    """Commits, newest first."""

    def __init__(self, commits: Iterable[Commit], handle: Handle) -> None:
        super().__init__(commits)
        self._handle = handle

    if not TYPE_CHECKING:  # a checker would believe every name

        def __getattr__(self, name: str) -> object:
            """Say what to write in place of a method of another library."""
            return unknown_attribute(self, name, HISTORY)

    def picture(self) -> Timeline:
        """Return the timeline of these commits; reads nothing, so bytes are left out."""
        marks = marks_of(self, {}, {}, calls_of(self._handle))
        return Timeline(self._handle.store.uri, marks)

    def to_arrow(self) -> pa.Table:
        """Return the commits as rows, newest first; metadata as text."""
        return _rows(self)

    def __repr__(self) -> str:
        title = f"{len(self):,} commit{'' if len(self) == 1 else 's'}, newest first"
        return frame_text(_rows(self[:PRINTED_COMMITS]), title) + _more(self)

    def _repr_html_(self) -> str:
        table = frame_html(_rows(self[:PRINTED_COMMITS]), "the newest commits")
        return f"{self.picture()._repr_html_()}{table}"


def _rows(commits: Iterable[Commit]) -> pa.Table:
    values = [[getattr(commit, name) for name in _COLUMNS] for commit in commits]
    columns = list(zip(*values, strict=True)) or [()] * len(_COLUMNS)
    *facts, metadata = columns
    counts = [pa.array(column, pa.int64()) for column in (facts[0], *facts[3:])]
    texts = [", ".join(f"{name}={value}" for name, value in each.items()) for each in metadata]
    times = pa.array(facts[1], pa.timestamp("us", "UTC"))
    arrays = [counts[0], times, pa.array(facts[2], pa.string()), *counts[1:]]
    return pa.table([*arrays, pa.array(texts, pa.string())], list(_COLUMNS))


def _more(commits: list[Commit]) -> str:
    left_out = len(commits) - PRINTED_COMMITS
    return f"\n… and {left_out:,} older commits" if left_out > 0 else ""
