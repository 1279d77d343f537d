"""Compaction in the background of a writer: after its commits, of what is due by then."""

from __future__ import annotations

import logging
import threading
from typing import Final

from rowsieve.changes.table_handle import Handle
from rowsieve.compaction.pace import Pace, Stopped
from rowsieve.maintenance.steps import compact_in_passes

_LOG: Final = logging.getLogger("rowsieve")


class Compacting:
    """The work of one thread. A failed compaction is logged, and due again after the next commit.

    Compaction needs no turn among the writer's calls: it changes no rows, and memtables are newer
    than all parts.
    """

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._due = threading.Event()
        self._pace = Pace(None)
        self._is_stopped = False

    def note_commit(self) -> None:
        """Look again at what is due."""
        self._due.set()

    def run(self) -> None:
        """Compact after commits until `stop`."""
        while True:
            self._due.wait()
            self._due.clear()
            if self._is_stopped:
                return
            try:
                compact_in_passes(self._handle, None, None, self._pace)
            except Stopped:
                return
            except Exception as error:
                _LOG.warning("a compaction of %s failed: %s", self._handle.store.uri, error)

    def stop(self) -> None:
        """End the work at its next batch; what it committed stays."""
        self._is_stopped = True
        self._pace.stop()
        self._due.set()
