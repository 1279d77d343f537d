"""Delete what no kept version of a database needs: old entries, roots and pages.

Soundness (invariants, rules 6 and 39): an entry goes only below a root that was read back, once the
pages of that root hold what it says of each table, or the table has no use for it. One root more is
kept as a fallback. Entries go in ascending order.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from rowsieve.objects.shared.shared_entry import LOG, entry_path, listed_versions
from rowsieve.objects.shared.shared_log import SharedLog
from rowsieve.objects.shared.shared_reader import SharedReader
from rowsieve.objects.shared.table_pages import PAGES, Root, read_root, root_path


class Cleaned(NamedTuple):
    """How many objects of the shared log were deleted."""

    entries: int
    roots: int
    pages: int


def clean(log: SharedLog, before_us: int) -> Cleaned:
    """Delete what only versions from before a time need; the newest version stays whole."""
    state = log.write_pages(log.latest())
    _, versions = listed_versions(log.store.list(LOG))
    roots = [read_root(log.store, version) for version in versions if version <= state.version]
    old = [root for root in roots[:-1] if root.timestamp_us < before_us]
    if not old:
        return Cleaned(0, 0, 0)
    needed_roots = roots[len(old) - 1 :]
    needed = {version for root in needed_roots for version in _entries_of(log, root)}
    details = log.store.details(LOG)
    entries, _ = listed_versions(details)
    gone = [
        entry_path(version)
        for version in entries
        if version <= needed_roots[0].version
        and version not in needed
        and details[entry_path(version)].modified_us < before_us
        and version != state.version
    ]
    log.store.delete(gone)
    gone_roots = [root_path(root.version) for root in old[:-1]]
    log.store.delete(gone_roots)
    files = {
        f"{PAGES}/{ref.file}" for root in needed_roots for ref in root.pages if ref is not None
    }
    gone_pages = [
        path
        for path, detail in log.store.details(PAGES).items()
        if path not in files and detail.modified_us < before_us
    ]
    log.store.delete(gone_pages)
    return Cleaned(len(gone), len(gone_roots), len(gone_pages))


def _entries_of(reader: SharedReader, root: Root) -> Iterable[int]:
    """The versions whose entries hold what the pages of a root do not."""
    for page in reader.pages(root):
        for table in page.tables.values():
            yield from (place.version for place in table.places if place.data is None)
