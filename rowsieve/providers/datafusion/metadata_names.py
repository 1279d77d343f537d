"""Names of metadata tables, versions, branches and tags in a statement over tables of a session.

A session lists only what is registered in it, so `"flights$files"`, `"flights@v12"` and
`flights@audit` are registered while a statement that may name them is planned. Those of a catalog
are served by the catalog (`catalog_tables.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

import pyarrow as pa

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.providers.datafusion.rows_in_memory import rows_table
from rowsieve.statements.parse_statement import Statement
from rowsieve.statements.queries import QueryDefinition, read_definition
from rowsieve.statements.query_words import may_name, searchable
from rowsieve.statements.read_change import Change
from rowsieve.statements.tokens import quoted_path
from rowsieve.storage.log.version_arguments import resolve_snapshot
from rowsieve.table import Table


def other_tables_in(
    text: str, own_tables: Iterable[OwnTable]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the full, quoted name of each such table that a text may name, and its provider."""
    plain = searchable(text)
    tables = list(own_tables) if "$" in plain or "@" in plain else []
    if "@" in plain:
        yield from _versions_in(plain, tables)
        yield from _refs_in(plain, tables)
    if "$" in plain:
        for name, rows in _metadata_tables_in(plain, tables):
            yield name, partial(_provider, rows)


def _provider(rows: Callable[[], pa.Table]) -> Any:
    return rows_table(rows())


def _versions_in(
    plain: str, own_tables: Iterable[OwnTable]
) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the versions that a text names by a number, in quotes as FOR VERSION AS OF does."""
    for own in own_tables:
        pattern = rf'"({re.escape(own.last_name.casefold())})@v(\d{{1,18}})"'
        for number in sorted({int(match[2]) for match in re.finditer(pattern, plain)}):
            place = quoted_path((*own.parts[:-1], f"{own.last_name}@v{number}"))
            yield place, partial(_at_version, own, number)


def _at_version(own: OwnTable, number: int) -> Any:
    handle = (own.outside or own.table).handle
    return Table(handle.fixed_at(resolve_snapshot(handle.log, number, None))).to_datafusion()


def _refs_in(plain: str, own_tables: Iterable[OwnTable]) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield the branches and tags that a text may name, each at its newest version."""
    for own in own_tables:
        if re.search(rf"{re.escape(own.last_name.casefold())}(\$\w+)?@", plain) is None:
            continue
        for ref in own.table.refs().column("name").to_pylist():
            table = partial(own.table.at_ref, ref)
            if may_name(plain, name := f"{own.last_name}@{ref}"):
                yield quoted_path((*own.parts[:-1], name)), partial(_newest, table)
            for kind in METADATA_TABLES if "$" in plain else ():
                if may_name(plain, name := f"{own.last_name}${kind}@{ref}"):
                    yield quoted_path((*own.parts[:-1], name)), partial(_known, table, kind)


def _newest(table: Callable[[], Table]) -> Any:
    return table().to_datafusion()


def _known(table: Callable[[], Table], kind: str) -> Any:
    return rows_table(METADATA_TABLES[kind](table()))


def _metadata_tables_in(
    plain: str, own_tables: Iterable[OwnTable]
) -> Iterator[tuple[str, Callable[[], pa.Table]]]:
    """Yield the metadata tables that a text may name, and their rows.

    The rows are those of the version that the statement reads.
    """
    for own in own_tables:
        for kind, rows in METADATA_TABLES.items():
            name = f"{own.last_name}${kind}"
            if may_name(plain, name):
                yield quoted_path((*own.parts[:-1], name)), partial(rows, own.pinned_table())


def created_name(statement: Statement) -> tuple[str, ...] | None:
    """The name of the table or view that a statement creates, if any."""
    match statement:
        case Change(verb="CREATE", name=name):
            return name
        case QueryDefinition(is_view=True):
            with suppress(InvalidInput, UnsupportedOperation):
                return read_definition(statement).name
    return None
