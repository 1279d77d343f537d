"""Runs a statement of `sql`: a query, a call, or a change of names or rows."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from rowsieve.cli.named import check_catalog
from rowsieve.cli.output import bar
from rowsieve.procedures.engine import LocalEngine
from rowsieve.statements.calls import CallStatement
from rowsieve.statements.catalog_names import CreateNamespace
from rowsieve.statements.parse_statement import parse
from rowsieve.statements.read_change import Change

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.arguments.annotations import StorageOptions
    from rowsieve.catalog import Catalog
    from rowsieve.database.database import Database


def run_statement(
    catalog: Catalog | Database,
    statement: str,
    options: StorageOptions | None,
    params: Mapping[str, Any] | None = None,
) -> pa.Table:
    """Run one statement; a change of rows is one commit. NotFound if there is no catalog.

    `params` are the values of its parameters.
    A statement that creates something makes the catalog.
    """
    parsed = parse(statement, "datafusion", names=True)
    if not isinstance(parsed, CreateNamespace | Change):
        check_catalog(catalog, options)
    with bar("done") if isinstance(parsed, CallStatement) else nullcontext() as progress:
        return catalog.sql(statement, engine=LocalEngine(progress=progress), params=params)
