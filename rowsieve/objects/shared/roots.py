"""Write the pages of a version: those of tables and names that changed since the last root."""

from __future__ import annotations

from rowsieve.objects.durable import put_if_absent
from rowsieve.objects.shared.shared_entry import packed
from rowsieve.objects.shared.shared_reader import SharedReader
from rowsieve.objects.shared.shared_state import State
from rowsieve.objects.shared.table_pages import (
    Page,
    Root,
    carrying,
    hash_of_name,
    hash_of_table,
    page_count,
    put_page,
    root_path,
    split,
)


def write_root(reader: SharedReader, state: State) -> Root:
    """Put the pages, read them back, then put the root that names them."""
    before, refs = state.root, list(state.root.pages)
    touched = {before.number_of(hash_of_table(table)) for table in state.changes}
    touched |= {before.number_of(hash_of_name(name)) for name in state.names}
    pages = {number: _changed(reader, state, number) for number in sorted(touched)}
    tables = sum(len(page.tables) for page in pages.values())
    tables += sum(ref.tables for i, ref in enumerate(refs) if ref is not None and i not in pages)
    count = max(page_count(tables), len(refs))
    if count == len(refs):
        for number, page in pages.items():
            refs[number] = put_page(reader.store, page)
    else:
        for number in range(len(refs)):
            pages.setdefault(number, reader.page_at(before, number))
        refs = [put_page(reader.store, page) for page in split(pages, count)]
    root = Root(state.version, state.commit_id, state.timestamp_us, state.database, tuple(refs))
    # A root of the same version, which another process has written, says the same.
    put_if_absent(reader.store, root_path(state.version), packed("root", root))
    return root


def _changed(reader: SharedReader, state: State, number: int) -> Page:
    """A page as it is at the state's version."""
    before = reader.page_at(state.root, number)
    tables, names = dict(before.tables), dict(before.names)
    for table, changes in state.changes.items():
        if state.root.number_of(hash_of_table(table)) != number:
            continue
        log = reader.table(table, state)
        assert log is not None
        if log.is_purged:
            tables.pop(table, None)  # it is purged
            continue
        numbers = [each.section.number for each in changes if each.section.number is not None]
        entry_numbers = [each for each in numbers if log.place(each) is not None]
        tables[table] = carrying(log, [reader.data(log, each, state) for each in entry_numbers])
    for name, table_id in state.names.items():
        if state.root.number_of(hash_of_name(name)) == number:
            names.pop(name, None)
            if table_id is not None:
                names[name] = table_id
    return Page(tables, names)
