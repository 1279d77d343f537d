"""Changes that are in the write-ahead log and not yet in a commit: one mutable and older memtables.

The mutable memtable takes new records. Once it is large or old it becomes immutable, and a flush
commits all immutable ones together. A memtable is dropped once its commit is the newest version of
the handle.

Soundness (invariant 20): `after` returns all changes that a version lacks, or None if it is older
than the version at which some of them were dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rowsieve import clock
from rowsieve.changes.data.ingest import Changes
from rowsieve.locks import ForkSafeLock
from rowsieve.writer.combining import combined
from rowsieve.writer.records import Form, adapted


@dataclass(frozen=True, slots=True)
class MemtableEntry:
    """The changes of one record of the log."""

    sequence: int
    changes: Changes
    form: Form
    rows: int
    size_bytes: int
    base_version: int = 0
    """The version whose constraints and columns they were checked against."""


@dataclass(frozen=True, slots=True)
class Unflushed:
    """Changes that a version lacks, as one, and the last sequence that they have."""

    through: int
    changes: Changes
    base_version: int


@dataclass(slots=True)
class _Memtable:
    entries: list[MemtableEntry] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0
    since_s: float = field(default_factory=clock.monotonic_s)

    @property
    def last_sequence(self) -> int:
        return self.entries[-1].sequence


@dataclass(frozen=True, slots=True)
class _View:
    """Changes that were combined before: they began after `after` and end with `through`."""

    after: int
    form: Form
    unflushed: Unflushed


class Memtables:
    """The memtables of one writer. Thread-safe."""

    def __init__(self, version: int = 0) -> None:
        self._lock = ForkSafeLock()
        self._immutable: list[_Memtable] = []
        self._mutable = _Memtable()
        self._version = version
        self._view: _View | None = None

    def add(self, entry: MemtableEntry) -> None:
        """Add the changes of the next record, which is durable."""
        with self._lock:
            if not self._mutable.entries:
                self._mutable = _Memtable()
            self._mutable.entries.append(entry)
            self._mutable.rows += entry.rows
            self._mutable.size_bytes += entry.size_bytes

    @property
    def mutable(self) -> tuple[int, int, float]:
        """Rows and bytes of the mutable memtable, and the seconds since its first record."""
        with self._lock:
            table = self._mutable
            age_s = clock.monotonic_s() - table.since_s if table.entries else 0.0
            return table.rows, table.size_bytes, age_s

    def freeze(self) -> None:
        """Make the mutable memtable immutable, if it has changes."""
        with self._lock:
            if self._mutable.entries:
                self._immutable.append(self._mutable)
                self._mutable = _Memtable()

    @property
    def immutable_through(self) -> int:
        """The last sequence of the immutable memtables; 0 without any."""
        with self._lock:
            return self._immutable[-1].last_sequence if self._immutable else 0

    def between(self, after: int, through: int) -> list[MemtableEntry]:
        """Return the entries with sequences above `after`, up to `through`."""
        with self._lock:
            tables = (*self._immutable, self._mutable)
            return [
                entry
                for table in tables
                for entry in table.entries
                if after < entry.sequence <= through
            ]

    def drop(self, through: int, version: int) -> int:
        """Drop immutable memtables up to this sequence, which this version has; count their rows.

        A version has an event, too, that it had overtaken.
        """
        with self._lock:
            gone = [table for table in self._immutable if table.last_sequence <= through]
            self._immutable = self._immutable[len(gone) :]
            self._version, self._view = max(self._version, version), None
            return sum(table.rows for table in gone)

    def after(self, version: int, sequence: int, form: Form) -> Unflushed | None:
        """Return the changes that a version lacks.

        The version has the records through `sequence`. None if it is outdated.
        The result is kept until the next record: a scan between two records combines nothing.
        """
        with self._lock:
            if version < self._version:
                return None
            tables = [table for table in (*self._immutable, self._mutable) if table.entries]
            entries = [entry for table in tables for entry in table.entries]
            view = self._view
        entries = [entry for entry in entries if entry.sequence > sequence]
        through = entries[-1].sequence if entries else sequence
        reduced: Sequence[Changes] = ()
        base_version = min((entry.base_version for entry in entries), default=version)
        if view is not None and view.after == sequence and view.form == form:
            if view.unflushed.through == through:
                return view.unflushed
            reduced = (view.unflushed.changes,)
            entries = [entry for entry in entries if entry.sequence > view.unflushed.through]
        changes = combined([*reduced, *(adapted(e.changes, e.form, form) for e in entries)], form)
        unflushed = Unflushed(through, changes, base_version)
        with self._lock:
            self._view = _View(sequence, form, unflushed)
        return unflushed
