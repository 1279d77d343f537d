"""Where a table's own log entries are: for each number, the shared entry that holds it."""

from __future__ import annotations

import msgspec

from rowsieve.objects.shared.shared_entry import Entry, Section


class Place(msgspec.Struct, frozen=True, array_like=True):
    """The version of the shared log that holds an entry of a table, and the time of its commit.

    `data`: the entry itself, where a page keeps it.
    """

    version: int
    timestamp_us: int
    data: bytes | None = None


class TableLog(msgspec.Struct, frozen=True, omit_defaults=True):
    """A table of a database: its name, and where its own log entries are.

    `places` are those of the entries `first`, `first` + 1 and so on. `dropped_us`: when it was
    dropped; it keeps its entries until a vacuum.
    """

    table: str
    name: str | None = None
    dropped_us: int | None = None
    first: int = 0
    places: tuple[Place, ...] = ()

    @property
    def next_number(self) -> int:
        """The number that the table's next entry has."""
        return self.first + len(self.places)

    def place(self, number: int) -> Place | None:
        """Where an entry is; None if it does not exist or is gone."""
        index = number - self.first
        return self.places[index] if 0 <= index < len(self.places) else None

    def after(self, section: Section, entry: Entry) -> TableLog:
        """The table after a shared entry that has a section of it."""
        places, first = self.places, self.first
        if section.number is not None:
            first = first if places else section.number
            places = (*places, Place(entry.version, entry.timestamp_us))
        gone = max(0, (section.gone_below or 0) - first)
        return TableLog(
            self.table,
            None if section.is_dropped else section.name or self.name,
            entry.timestamp_us if section.is_dropped else self.dropped_us,
            first + gone,
            places[gone:],
        )
