"""What a command that changes a table has committed so far, for when it is stopped.

Soundness: "nothing was committed" is said only where the table stands as it did when the command
began; of a newer version that others may have made it is said only that it is there.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from rowsieve.errors import RowsieveError, TableNotFound
from rowsieve.metrics import CommitReport, ScanReport
from rowsieve.opening import open_table
from rowsieve.table import Table


@dataclass(slots=True)
class Change:
    """A change that is being made: of which table, from which version, and its commit if any."""

    uri: str
    began: int | None = None  # None: there was no table
    options: Mapping[str, Any] = field(default_factory=dict)
    committed: int | None = None

    def report(self, report: ScanReport | CommitReport) -> None:
        """Remember the commit."""
        if isinstance(report, CommitReport) and report.error is None:
            self.committed = report.version


_PATIENCE_S: Final = 10.0  # with a store that does not answer, when asked what was committed
_CURRENT: ContextVar[Change | None] = ContextVar("change", default=None)


def begin(change: Change | None) -> None:
    """From now on the command makes this change; None: it changes nothing."""
    _CURRENT.set(change)


def watch(table: Table) -> Table:
    """The table, whose commits from now on are those of the command."""
    change = Change(table.uri, table.version, dict(table.storage_options))
    table.report_to(change)
    begin(change)
    return table


def what_the_command_did() -> str:
    """A few words on what the command knows that it has committed; reads nothing."""
    change = _CURRENT.get()
    if change is None:
        return "nothing was changed"
    if change.committed is not None:
        return f"version {change.committed} is committed and stands"
    return "see rowsieve history for what was committed"


def what_was_committed() -> str:
    """A few words on what the command has committed; looks at the table unless it knows."""
    change = _CURRENT.get()
    if change is None or change.committed is not None:
        return what_the_command_did()
    found: list[int | None] = []
    looking = threading.Thread(target=_look, args=(change, found), daemon=True)
    looking.start()
    looking.join(_PATIENCE_S)
    if not found:
        return "whether it was committed is not known: see rowsieve history"
    now = found[0]
    if now == change.began:
        return "nothing was committed"
    return f"version {now} stands, committed by this command or another: see rowsieve history"


def _look(change: Change, found: list[int | None]) -> None:
    """Find the newest version; nothing where that cannot be found out."""
    with suppress(RowsieveError, OSError):
        try:
            found.append(open_table(change.uri, storage_options=change.options).version)
        except TableNotFound:
            found.append(None)
