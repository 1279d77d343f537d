"""Commit sections to a shared log: those of several threads, and of several tables, in one put.

A thread that commits while another one does waits for it; what has gathered meanwhile goes into the
next entry. A section is committed only under the number that follows the table's last one, and a
ticket whole or not at all.

Soundness (invariant 21): no lock is held across I/O, and an error reaches all threads that wait.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Sequence
from typing import Final

from rowsieve import clock
from rowsieve.errors import TableExists, TableNotFound
from rowsieve.locks import ForkSafeLock
from rowsieve.objects.durable import stating_outcome
from rowsieve.objects.shared.shared_entry import Section, SharedEntry
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.store import ObjectExists

_GROUP_BYTES: Final = 16 * 1024 * 1024
_RECENT_TABLES: Final = 1_024  # for more, readers read the entries since the last root


class Overtaken(ObjectExists):
    """The next numbers of these tables are taken by other commits; nothing was committed."""

    def __init__(self, tables: frozenset[str], uri: str) -> None:
        super().__init__(f"other commits changed {len(tables)} tables of {uri}", path=uri)
        self.tables = tables


class _Ticket:
    """Sections that are committed together; `unchanged` are the next numbers of other tables."""

    __slots__ = ("done", "error", "is_done", "leads", "sections", "unchanged", "version")

    def __init__(self, sections: Sequence[Section], unchanged: Sequence[tuple[str, int]]) -> None:
        self.sections, self.unchanged = tuple(sections), tuple(unchanged)
        self.done = threading.Event()
        self.leads = False
        self.is_done = False
        self.error: BaseException | None = None
        self.version = 0

    @property
    def tables(self) -> frozenset[str]:
        """The ids of the tables that the ticket changes or has read."""
        return frozenset((*(each.table for each in self.sections), *dict(self.unchanged)))

    @property
    def size(self) -> int:
        """The bytes of its sections."""
        return sum(len(each.data) for each in self.sections)

    def end(self, error: BaseException | None = None, version: int = 0) -> None:
        """Wake the thread that waits, with the version of the entry that has the sections."""
        self.error, self.version, self.is_done = error, version, True
        self.done.set()


class GroupCommit:
    """The queue of one process to one shared log. Thread-safe."""

    def __init__(self, log: SharedLog) -> None:
        self._log = log
        self._lock = ForkSafeLock()
        self._waiting: list[_Ticket] = []
        self._is_led = False

    def commit(self, sections: Sequence[Section], unchanged: Sequence[tuple[str, int]] = ()) -> int:
        """Commit all sections in one entry; Overtaken if a table has gone on meanwhile.

        Returns the entry's version; without sections, the one that is known. `unchanged`: ids of
        tables, and the numbers that their next entries must still have. After a StoreError the
        sections may be committed or not.
        """
        if not sections and not unchanged:
            return self._log.known().version
        ticket = _Ticket(sections, unchanged)
        with self._lock.mutex:
            self._waiting.append(ticket)
            if not self._is_led:
                self._is_led = ticket.leads = True
        if not ticket.leads:
            ticket.done.wait()
        if not ticket.is_done:
            self._lead(ticket)
        if ticket.error is not None:
            raise ticket.error
        return ticket.version

    def change(
        self,
        operation: str,
        sections: Sequence[Section],
        unchanged: Sequence[tuple[str, int]] = (),
    ) -> None:
        """Commit as `commit` does; errors of a disk say whether something was committed."""
        with stating_outcome(operation, "Look at the tables of the database"):
            self.commit(sections, unchanged)

    def _lead(self, lead_ticket: _Ticket) -> None:
        """Publish what waits until our own ticket is done; then hand over."""
        batch: list[_Ticket] = []
        try:
            while not lead_ticket.is_done:
                with self._lock.mutex:
                    batch, self._waiting = self._waiting, []
                self._publish(batch)
        except BaseException as error:
            for ticket in batch:
                if not ticket.is_done:
                    ticket.end(error)
            raise
        finally:
            with self._lock.mutex:
                following = self._waiting[0] if self._waiting else None
                self._is_led = following is not None
                if following is not None:
                    following.leads = True
            if following is not None:
                following.done.set()

    def _publish(self, batch: list[_Ticket]) -> None:
        """Commit tickets, in as few entries as possible."""
        log = self._log
        state, left = log.known(), batch
        while left:
            ready, left = self._one_entry(left, state)
            if not ready:
                continue
            entry = SharedEntry(
                state.version + 1,
                uuid.uuid4().hex,
                state.commit_id,
                state.database,
                max(clock.now_us(), state.timestamp_us + 1),
                tuple(section for ticket in ready for section in ticket.sections),
                state.recent if len(state.changes) <= _RECENT_TABLES else (),
            )
            try:
                is_ours = log.put(entry)
            except BaseException as error:
                for ticket in (*ready, *left):
                    ticket.end(error)
                raise
            if is_ours:
                state = log.advance(entry, state)
                for ticket in ready:
                    ticket.end(version=entry.version)
            else:
                state, left = log.latest(), ready + left

    def _one_entry(
        self, tickets: list[_Ticket], state: State
    ) -> tuple[list[_Ticket], list[_Ticket]]:
        """The tickets that one entry can commit, and those of later ones; the others end here."""
        ready: list[_Ticket] = []
        later: list[_Ticket] = []
        used: set[str] = set()
        size = 0
        for ticket in tickets:
            names = {each.name for each in ticket.sections if each.name is not None}
            claims = ticket.tables | names
            if claims & used or (ready and size + ticket.size > _GROUP_BYTES):
                later.append(ticket)
            elif (error := self._refusal(ticket, state)) is not None:
                ticket.end(error)
            else:
                ready.append(ticket)
                used |= claims
                size += ticket.size
        return ready, later

    def _refusal(self, ticket: _Ticket, state: State) -> Exception | None:
        """Why a ticket cannot be committed at a version; None if it can be."""
        uri, overtaken = self._log.store.uri, set()
        freed = {each.former for each in ticket.sections}
        for section in ticket.sections:
            log, name = self._log.table(section.table, state), section.name
            if name is not None and name not in freed and self._log.id_of(name, state) is not None:
                return TableExists(
                    f"{uri} has a table {name!r} already; open it, or choose another name"
                )
            former = section.former
            if former is not None and self._log.id_of(former, state) != section.table:
                return TableNotFound(f"{uri} has no table {former!r} any more")
            if section.place is not None and log is not None:
                return TableExists(f"{section.place} is in the database {uri} already")
            if log is None and name is None:
                return TableNotFound(f"{uri} has no table of id {section.table}")
            if log is not None and log.dropped_us is not None and section.gone_below is None:
                return TableNotFound(f"table {section.table} of {uri} was dropped")
            if log is None or section.number is None:
                continue
            if section.number < log.next_number or log.has_left:
                overtaken.add(section.table)
        for table, number in ticket.unchanged:
            log = self._log.table(table, state)
            if log is None or log.dropped_us is not None or log.has_left:
                return TableNotFound(f"table {table} of {uri} was dropped")
            if log.next_number != number:
                overtaken.add(table)
        return Overtaken(frozenset(overtaken), uri) if overtaken else None
