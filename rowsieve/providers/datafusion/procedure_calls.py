"""Runs statements on procedures in a session: `CALL lake.system.compact('db', 't')` and others.

A statement runs in the Rowsieve catalog that it names, else in the session's default catalog, else
in its only one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.errors import InvalidInput
from rowsieve.predicate.semantics import Semantics
from rowsieve.procedures.bound_call import named_catalog
from rowsieve.procedures.engine import LocalEngine
from rowsieve.providers.datafusion.catalog_tables import CatalogTables
from rowsieve.statements.calls import Call, CallStatement, ExplainCall
from rowsieve.types.schema import Schema

DIALECT: Final = "datafusion"


class SessionEngine(LocalEngine):
    """Runs tasks in this process; times without a zone are those of a session."""

    dialect: Final = DIALECT

    def __init__(self, time_zone: str | None) -> None:
        super().__init__()
        self._time_zone = time_zone

    @property
    def time_zone(self) -> str:
        """The time zone of the session; UTC if it has none."""
        return self._time_zone or "UTC"

    def semantics_of(self, text: str, schema: Schema) -> Semantics:
        """The semantics of a condition: only its constants depend on the zone, which they name."""
        del text, schema
        return dialect_named(DIALECT).semantics


def run_procedure_statement(
    text: str,
    statement: CallStatement,
    catalogs: Mapping[str, CatalogTables],
    default: str,
    sql_arguments: tuple[Any, ...],
    zone: str | None,
) -> pa.Table:
    """Run a statement on procedures and return its rows; `text` is that of the statement.

    `sql_arguments` are the options and parameter values of the call to `sql`; these statements take
    none. `zone` is the time zone of the session.
    """
    if any(sql_arguments):
        raise InvalidInput("sql: a statement on procedures takes no options and no values")
    call = statement.call if isinstance(statement, ExplainCall) else statement
    name = _named(catalogs, call) if isinstance(call, Call) else None
    tables = _chosen(catalogs, name, default)
    rows: pa.Table = tables.catalog.call(text, dialect=DIALECT, engine=SessionEngine(zone))
    return rows


def _named(catalogs: Mapping[str, CatalogTables], call: Call) -> str | None:
    """The catalog that a call or its table names; None without one."""
    names = (named_catalog(tables.catalog.procedures, call) for tables in catalogs.values())
    return next((name for name in names if name is not None), call.catalog)


def _chosen(catalogs: Mapping[str, CatalogTables], name: str | None, default: str) -> CatalogTables:
    if not catalogs:
        raise InvalidInput(
            "sql: procedures belong to a catalog, and the session has none of Rowsieve; "
            'register one: ctx.register_catalog_provider("lake", catalog.to_datafusion())'
        )
    if name is None and len(catalogs) == 1:
        return next(iter(catalogs.values()))
    for each in (default,) if name is None else (name, name.lower()):
        if each in catalogs:
            return catalogs[each]
    known = ", ".join(sorted(catalogs))
    raise InvalidInput(
        f"sql: the session has no Rowsieve catalog {name!r}, but {known}"
        if name is not None
        else f"sql: name the catalog, one of {known}, as in CALL {min(catalogs)}.system.compact(…)"
    )
