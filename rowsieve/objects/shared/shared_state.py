"""What a shared log says at one version: names, and where each table's own entries are.

A state is a root of pages plus the entries after it, so that it costs what was touched since, and
never the number of tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rowsieve.objects.shared.shared_entry import Entry, Section
from rowsieve.objects.shared.table_pages import Root


@dataclass(frozen=True, slots=True)
class Change:
    """A section, and the entry that it stands in."""

    section: Section
    entry: Entry


@dataclass(frozen=True, slots=True)
class State:
    """The database at a version: a root, and by table and name what the entries after it say."""

    version: int
    commit_id: str
    timestamp_us: int
    database: str
    root: Root
    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=dict)
    names: Mapping[str, str | None] = field(default_factory=dict)

    @staticmethod
    def of(root: Root) -> State:
        """The state of a root's version."""
        return State(root.version, root.commit_id, root.timestamp_us, root.database, root)

    def after(self, entry: Entry) -> State:
        """The state of the next version."""
        changes, names = dict(self.changes), dict(self.names)
        for section in entry.sections:
            light = Change(_without_data(section), _without_sections(entry))
            changes[section.table] = (*changes.get(section.table, ()), light)
            if section.former is not None:
                names[section.former] = None
        names |= {each.name: each.table for each in entry.sections if each.name is not None}
        return replace(
            self,
            version=entry.version,
            commit_id=entry.commit_id,
            timestamp_us=entry.timestamp_us,
            changes=changes,
            names=names,
        )


def _without_data(section: Section) -> Section:
    if not section.data:
        return section
    return Section(
        section.table, section.number, b"", section.name, section.former, section.is_dropped,
        section.gone_below,
    )  # fmt: skip


def _without_sections(entry: Entry) -> Entry:
    return Entry(
        entry.version, entry.commit_id, entry.predecessor, entry.database, entry.timestamp_us, ()
    )
