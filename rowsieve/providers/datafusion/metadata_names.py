"""Names of metadata tables in a statement over tables that are registered in a session.

A session lists only what is registered in it, so these tables are registered while a statement that
may name them is planned. Those of a catalog are served by the catalog (`catalog_tables.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial

import pyarrow as pa

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES
from rowsieve.providers.datafusion.own_table import OwnTable
from rowsieve.statements.parse_statement import Statement
from rowsieve.statements.queries import Kept, read_kept
from rowsieve.statements.query_words import may_name, searchable
from rowsieve.statements.read_change import Change
from rowsieve.statements.tokens import quoted_path


def metadata_tables_in(
    text: str, own_tables: Iterable[OwnTable]
) -> Iterator[tuple[str, Callable[[], pa.Table]]]:
    """Yield the full, quoted name of each metadata table that a text may name, and its rows.

    The rows are those of the version that the statement reads.
    """
    plain = searchable(text)
    if "$" not in plain:
        return
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
        case Kept(is_view=True):
            with suppress(InvalidInput, UnsupportedOperation):
                return read_kept(statement).name
    return None
