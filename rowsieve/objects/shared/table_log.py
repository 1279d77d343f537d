"""Where a table's own log entries are: for each number, the shared entry that holds it."""

from __future__ import annotations

import msgspec

from rowsieve.objects.shared.shared_entry import FIRST_FORMAT, Section, SharedEntry


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
    dropped; it keeps its entries until a vacuum. `place`: the URI where it was, and has its objects
    and its entries before `starts_at`, if it has moved in. `has_left`: later entries are in its
    folder, and in the end all of them.
    """

    table: str
    name: str | None = None
    dropped_us: int | None = None
    first: int = 0
    places: tuple[Place, ...] = ()
    place_uri: str | None = None
    starts_at: int = 0
    has_left: bool = False

    @property
    def format(self) -> int:
        """The first format that has what is said of the table."""
        return 2 if self.place_uri is not None or self.has_left else FIRST_FORMAT

    @property
    def is_purged(self) -> bool:
        """Whether the table was dropped, and its files are deleted."""
        is_kept = self.place_uri is not None and not self.has_left
        return self.dropped_us is not None and not self.places and not is_kept

    @property
    def next_number(self) -> int:
        """The number that the table's next entry has."""
        return self.first + len(self.places)

    def place(self, number: int) -> Place | None:
        """Where an entry is; None if it does not exist or is gone."""
        index = number - self.first
        return self.places[index] if 0 <= index < len(self.places) else None

    def keeps(self, number: int) -> bool:
        """Return whether an entry that is not here may be an object of the table's folder."""
        return self.has_left or number < self.starts_at

    def after(self, section: Section, entry: SharedEntry) -> TableLog:
        """The table after a shared entry that has a section of it."""
        places, first, starts_at = self.places, self.first, self.starts_at
        if section.starts_at is not None:
            first = starts_at = section.starts_at
        if section.number is not None:
            first = first if places else section.number
            places = (*places, Place(entry.version, entry.timestamp_us))
        gone = max(0, (section.gone_below or 0) - first)
        return TableLog(
            self.table,
            None if section.is_dropped or section.leaves else section.name or self.name,
            entry.timestamp_us if section.is_dropped else self.dropped_us,
            first + gone,
            places[gone:],
            section.place or self.place_uri,
            starts_at,
            section.leaves or self.has_left,
        )
