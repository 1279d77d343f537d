"""Commit to several tables in one entry: each table's own commit runs until all can be put.

Each task commits to one table as it always does, in a thread of its own. Its entry is held until
every other task has one, or has ended without one; then all entries go into one ticket. If a table
has gone on meanwhile, its task alone learns that its number is taken, resolves the conflict as it
always does, and comes back with another entry. If a task fails, nothing is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rowsieve.errors import RowsieveError, UnsupportedOperation
from rowsieve.objects.fetching import in_thread
from rowsieve.objects.shared.group_commit import GroupCommit, Overtaken
from rowsieve.objects.shared.shared_entry import Section

T = TypeVar("T")


class Abandoned(RowsieveError):
    """Another part of a commit to several tables failed, so that nothing was committed."""


Prove = Callable[[], int]
"""Proves what was read of a table against its newest version; the number of its next entry."""


class JointCommit:
    """One commit to several tables; `read` are other tables, by id, that it has read."""

    def __init__(self, group: GroupCommit, read: Mapping[str, Prove]) -> None:
        self._group = group
        self._read = read
        self._next: dict[str, int] = {}
        self._changed = threading.Condition()
        self._running = 0
        self._waiting: dict[str, Section] = {}
        self._overtaken: frozenset[str] = frozenset()
        self._is_committed = False
        self._failed_task: BaseException | None = None
        self._failed_put: BaseException | None = None
        self.version: int | None = None
        """The version of the database that has the commits, once it is there."""

    def run(self, tasks: Mapping[str, Callable[[], T]]) -> dict[str, T]:
        """Run the commits of tables, by name; return their results, or raise the first error."""
        self._running = len(tasks)
        self._prove(self._read)
        futures = {name: in_thread(self._counted(task)) for name, task in tasks.items()}
        errors = [error for each in futures.values() if (error := each.exception()) is not None]
        if errors:
            known = (self._failed_task, self._failed_put, *errors)
            raise next(each for each in known if each is not None)
        return {name: future.result() for name, future in futures.items()}

    def hold(self, section: Section) -> None:
        """Hold an entry of a table until all are there; `Overtaken` if its number is taken."""
        with self._changed:
            if self._committed():
                raise UnsupportedOperation(
                    "a transaction has one commit for each table, and this table's was made"
                )
            self._waiting[section.table] = section
            while True:
                if self._failed_put is not None:
                    raise self._failed_put
                if self._failed_task is not None:
                    raise Abandoned(
                        "another table's part of the transaction failed; nothing was committed"
                    ) from self._failed_task
                if section.table in self._overtaken:
                    self._overtaken -= {section.table}
                    raise Overtaken(frozenset((section.table,)), section.table)
                if self._committed():
                    return
                if (
                    self._waiting.get(section.table) is section
                    and len(self._waiting) == self._running
                ):
                    self._put()
                    continue
                self._changed.wait()

    def _committed(self) -> bool:
        return self._is_committed

    def _put(self) -> None:
        """Commit what is held; all other tasks wait meanwhile."""
        try:
            version = self._group.commit(list(self._waiting.values()), list(self._next.items()))
        except Overtaken as error:
            self._overtaken = error.tables & self._waiting.keys()
            for table in self._overtaken:
                del self._waiting[table]
            try:
                self._prove(error.tables & self._read.keys())
            except BaseException as conflict:
                self._failed_task = conflict
        except BaseException as error:
            self._failed_put = error
        else:
            self._is_committed, self.version = True, version
        self._changed.notify_all()

    def _prove(self, tables: Iterable[str]) -> None:
        self._next |= {table: self._read[table]() for table in tables}

    def _counted(self, task: Callable[[], T]) -> Callable[[], T]:
        """The task, which all others learn the end of."""

        def run() -> T:
            try:
                return task()
            except BaseException as error:
                with self._changed:
                    self._failed_task = self._failed_task or error
                raise
            finally:
                with self._changed:
                    if not self._committed():
                        self._running -= 1
                        is_whole = self._failed_task is None and bool(self._waiting)
                        if is_whole and len(self._waiting) == self._running:
                            self._put()
                    self._changed.notify_all()

        return run
