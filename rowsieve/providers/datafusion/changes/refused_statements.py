"""Refuses statements on tables of ours that neither DataFusion nor we run, with the reason."""

from __future__ import annotations

import re
from typing import Final

from rowsieve.errors import InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES, split_metadata_name
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.statements.parse_statement import ExplainedChange, Statement
from rowsieve.statements.queries import Other
from rowsieve.statements.read_change import Change
from rowsieve.statements.refused import Refused
from rowsieve.statements.tokens import quoted_path

_NAME_WITH_DOLLAR: Final = re.compile(r"\w\$[A-Za-z]")  # not a parameter, such as $id
ENGINE_ERRORS: Final = (Exception, ValueError)
"""The classes of DataFusion's errors; subclasses of them are faults of ours or of Python."""


def refuse(session: OwnSession, statement: Statement) -> None:
    """Raise UnsupportedOperation for a statement that is not run; return for all others."""
    match statement:
        case Refused():
            raise statement.error
        case ExplainedChange(change=change) if _is_ours(session, change.name):
            raise UnsupportedOperation(
                f"sql: EXPLAIN ANALYZE {change.verb} is not available for a Rowsieve "
                "table, because it would change the table; EXPLAIN shows its plan, and EXPLAIN "
                "ANALYZE SELECT with the same condition how the rows are read"
            )
        case Other(verb=verb, schema=schema) if _is_in_ours(session, schema):
            raise UnsupportedOperation(
                f"sql: {verb} SCHEMA in a Rowsieve catalog is not available in this "
                "session; use the catalog's sql(), or its create_namespace and drop_namespace"
            )
        case Change(verb=verb, name=name) if verb != "CREATE" and _only_shows(session, name):
            raise UnsupportedOperation(
                f"sql: {verb} of {name[-1]} is not available: it only shows what is known of a "
                "table; nothing was changed"
            )


def planning_error(session: OwnSession, text: str, error: Exception) -> RowsieveError:
    """DataFusion's error about a statement as one of ours: that of a catalog, or InvalidInput."""
    for catalog in session.own_catalogs():
        if (failure := catalog.failure()) is not None:
            return failure
    hint = ""
    if _NAME_WITH_DOLLAR.search(text):
        hint = f"; metadata tables of a table t are t${', t$'.join(METADATA_TABLES)}"
    return InvalidInput(f"sql: {str(error).removeprefix('DataFusion error: ')}{hint}")


def _is_in_ours(session: OwnSession, schema: tuple[str, ...]) -> bool:
    """Return whether a schema is, or would be, in a catalog of ours; names fold as they do."""
    catalog = session.full_name((*schema, ""))[0] if schema else ""
    return any(session.catalog_named(name) is not None for name in (catalog, catalog.lower()))


def _is_ours(session: OwnSession, name: tuple[str, ...]) -> bool:
    """Return whether a table is ours, or would be one of a catalog of ours."""
    catalog = session.catalog_named(session.full_name(name)[0])
    return catalog is not None or session.changed_table(name) is not None


def _only_shows(session: OwnSession, name: tuple[str, ...]) -> bool:
    """Return whether a name is that of a metadata table of a table of ours."""
    if (split := split_metadata_name(name[-1])) is None:
        return False
    if session.changed_table((*name[:-1], split[0])) is None:
        return False
    return session.catalog_named(session.full_name(name)[0]) is not None or not (
        session.table_exist(quoted_path(name))
    )
