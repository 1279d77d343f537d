"""Tracks what a command has committed, to report it when the command is stopped.

Soundness: it reports "nothing was committed" only if the table is still at the version at which the
command began. It reports that a newer version exists, but not who committed it if that is unknown.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import rowsieve
from rowsieve.errors import RowsieveError, TableNotFound

if TYPE_CHECKING:
    from rowsieve.metrics.reports import Report
    from rowsieve.table import Table


@dataclass(slots=True)
class ChangeInProgress:
    """A change in progress: its table, the version at its begin, and its commit if it has one."""

    uri: str
    began: int | None = None  # None: there was no table
    options: Mapping[str, Any] = field(default_factory=dict)
    committed: int | None = None

    def report(self, report: Report) -> None:
        """Remember the commit."""
        if isinstance(report, rowsieve.metrics.CommitReport) and report.error is None:
            self.committed = report.version


@dataclass(frozen=True, slots=True)
class CatalogChange:
    """A change in progress of a catalog's names, or of a table that a statement names."""

    uri: str


_PATIENCE_S: Final = 10.0  # how long to wait for the store when looking for the commit
_CURRENT: ContextVar[ChangeInProgress | CatalogChange | None] = ContextVar("change", default=None)


def begin(change: ChangeInProgress | CatalogChange | None) -> None:
    """Set the change that the command makes from now on; None: it changes nothing."""
    _CURRENT.set(change)


def watch(table: Table) -> Table:
    """Return the table, and track its commits as those of the command."""
    change = ChangeInProgress(table.uri, table.version, dict(table.handle.storage_options))
    table.report_to(change)
    begin(change)
    return table


def what_the_command_did() -> str:
    """Describe the command's commits as far as they are known; reads nothing."""
    change = _CURRENT.get()
    if change is None:
        return "nothing was changed"
    if isinstance(change, CatalogChange):
        return f"see the tables of {change.uri} and their history for what was changed"
    if change.committed is not None:
        return f"version {change.committed} exists: this command committed it"
    return "see rowsieve history for what was committed"


def what_was_committed() -> str:
    """Describe the command's commits; reads the table if they are unknown."""
    change = _CURRENT.get()
    if not isinstance(change, ChangeInProgress) or change.committed is not None:
        return what_the_command_did()
    versions: list[int | None] = []
    looking = threading.Thread(target=_append_newest, args=(change, versions), daemon=True)
    looking.start()
    looking.join(_PATIENCE_S)
    if not versions:
        return "whether it was committed is not known: see rowsieve history"
    now = versions[0]
    if now == change.began:
        return "nothing was committed"
    return f"version {now} exists, committed by this command or another: see rowsieve history"


def _append_newest(change: ChangeInProgress, versions: list[int | None]) -> None:
    """Append the newest version to `versions`; appends nothing if the table cannot be read."""
    with suppress(RowsieveError, OSError):
        try:
            versions.append(rowsieve.open_table(change.uri, storage_options=change.options).version)
        except TableNotFound:
            versions.append(None)
