"""Runs a statement that changes one of our tables, or that creates or drops one in a catalog.

The statement runs when the session receives it, and only once: its result is stored, and reading
the result again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.defined_tables import create_from_statement, may_create
from rowsieve.errors import (
    InvalidInput,
    NotFound,
    UnknownColumn,
    UnsupportedOperation,
)
from rowsieve.providers.datafusion.changes.change_queries import Queries
from rowsieve.providers.datafusion.changes.returned_rows import ReturnedRows, returned_rows
from rowsieve.providers.datafusion.changes.sql_changes import (
    delete,
    insert,
    selected,
    truncate,
    update,
)
from rowsieve.providers.datafusion.changes.sql_merge import insert_or_update, merge
from rowsieve.providers.datafusion.changes.statement_queries import (
    StatementQueries,
    closing,
    read_only,
)
from rowsieve.providers.datafusion.changes.statement_time import (
    at_one_time,
    statement_time,
    with_assigned_times,
)
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import IDENTIFIERS, TIME_ZONE
from rowsieve.statements.merge_statement import Merge
from rowsieve.statements.read_change import (
    Change,
    ChangeStatement,
    CreateTable,
    Delete,
    DropTable,
    Insert,
    OnConflict,
    Truncate,
    Update,
    read_change,
    take_returning,
)

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.catalog_tables import CatalogTables

_READ_AS_WRITTEN: Final = {
    "datafusion.sql_parser.dialect": "generic",
    IDENTIFIERS: "true",
}
"""Required settings: with others, DataFusion parses statements in another way than we do."""


def changed_rows(
    session: OwnSession,
    change: Change,
    options: Any,
    values: Mapping[str, Any] | None,
    named_params: Mapping[str, Any],
) -> int | pa.Table | None:
    """Run a statement that changes a table; return the number of rows, or those of RETURNING.

    None if it is not one of our tables. An open writer has committed its earlier calls before.
    """
    target = session.changed_table(change.name)
    with nullcontext() if target is None else target.table.handle.turn():
        return _changed_rows(session, change, options, values, named_params)


def _changed_rows(
    session: OwnSession,
    change: Change,
    options: Any,
    values: Mapping[str, Any] | None,
    named_params: Mapping[str, Any],
) -> int | pa.Table | None:
    text, full = change.text, session.full_name(change.name)
    is_catalog = session.catalog_named(full[0]) is not None
    named = session.refreshed(" ".join([text, *(str(v) for v in named_params.values())]))
    changed = session.changed_table(change.name)
    if changed is None and not is_catalog:
        if change.uses_rowsieve:
            raise UnsupportedOperation(
                "sql: CREATE TABLE … USING rowsieve needs a name in a registered Rowsieve catalog, "
                "as in lake.db.t; or call rowsieve.create_table, and register the table"
            )
        if change.changes_rows and session.is_view(full):
            raise UnsupportedOperation(
                f"sql: {'.'.join(change.name)} is a view over a Rowsieve table, and {change.verb} "
                "changes tables only; name the table that the view reads"
            )
        return None
    time = statement_time(change, session.setting(TIME_ZONE)) if change.changes_rows else None
    if changed is not None and time is not None:
        change = at_one_time(change, changed.table.handle.pinned.schema, time)
        text = change.text
    returning = take_returning(change.tokens) if change.changes_rows else ""
    statement = read_change(change.tokens)
    if isinstance(statement, CreateTable | DropTable):
        return _create_or_drop(session, full, statement, options, (values, named_params))
    if changed is None or statement is None:
        return None
    _check_settings(session)
    changed.table.refresh()
    with closing(StatementQueries(session, changed, named, (values, named_params))) as queries:
        statement = spelled_out(queries, statement)
        if time is not None:
            schema = queries.table.handle.pinned.schema
            statement = with_assigned_times(statement, schema, time)
        returned = returned_rows(queries, statement, returning)
        if isinstance(statement, Delete) and statement.target.alias:
            queries.check(statement.query, None)  # DataFusion's DELETE does not know the alias
        elif not isinstance(statement, Insert):
            text = text if returned is None else change.tokens.whole
            queries.check(text_for_engine(statement) or text, options)
        if options is not None:  # all of an INSERT but its query is checked here
            queries.check(f"DELETE FROM {statement.target.name}", options)  # noqa: S608 - a name
        count = _run(queries, statement, returned)
        return count if returned is None else returned.result()


def _run(queries: Queries, statement: ChangeStatement, returned: ReturnedRows | None) -> int:
    match statement:
        case Insert(on_conflict=OnConflict.UPDATE):
            return insert_or_update(queries, statement)
        case Insert():
            return insert(queries, statement, returned)
        case Delete():
            return delete(queries, statement, returned)
        case Update():
            return update(queries, statement, returned)
        case Merge():
            return merge(queries, statement)
        case Truncate():
            return truncate(queries, statement)
        case _:
            raise AssertionError(statement)


def text_for_engine(statement: ChangeStatement) -> str:
    """The text of a statement whose written form DataFusion does not plan; empty for others."""
    match statement:
        case Merge() | Update(assigns_rows=True):  # also UPDATE … FROM and DELETE … USING
            return statement.text
        case _:
            return ""


def spelled_out(queries: StatementQueries, statement: ChangeStatement) -> ChangeStatement:
    """The statement with the columns that its source names: those of `*` and of BY NAME."""
    match statement:
        case Merge(takes_source=True):
            return with_columns(queries, statement)
        case Insert(by_name=True, source=source):
            columns = queries.columns(source, queries.table.handle.pinned)
            return replace(statement, columns=tuple(columns), by_name=False)
        case _:
            return statement


def with_columns(queries: StatementQueries, statement: Merge) -> Merge:
    """Spell out `*`, as Spark does: the source has a column of each name that the table has."""
    snapshot = queries.table.handle.pinned
    columns = queries.columns(selected("*", statement.source, ""), snapshot)
    names = without_order_column(snapshot.schema).names
    if missing := [name for name in names if name not in columns]:
        raise UnknownColumn(
            f"merge: * takes each column of the table from the source, and {missing[0]!r} is not "
            f"among its columns ({', '.join(columns)}); name columns and values instead of *",
            name=missing[0],
        )
    return statement.spelled_out(names)


def _check_settings(session: OwnSession) -> None:
    for name, value in _READ_AS_WRITTEN.items():
        if session.setting(name) != value:
            raise UnsupportedOperation(
                f"sql: statements that change a Rowsieve table need {name} = {value}; it is "
                f"{session.setting(name)}"
            )


def _create_or_drop(
    session: OwnSession,
    full: tuple[str, ...],
    statement: CreateTable | DropTable,
    options: Any,
    parameters: tuple[Mapping[str, Any] | None, Mapping[str, Any]],
) -> int | None:
    """Run CREATE TABLE or DROP TABLE in a Rowsieve catalog; None for other catalogs."""
    if (tables := session.catalog_named(full[0])) is None:
        return None
    _check_settings(session)
    catalog, name = tables.catalog, ".".join(full[1:])
    if isinstance(statement, DropTable):
        try:
            catalog.drop_table(name, purge=statement.purge)
        except NotFound:
            if not statement.if_exists:
                raise
        tables.refresh()
        return 0
    return _create(session, tables, name, statement, options, parameters)


def _create(
    session: OwnSession,
    tables: CatalogTables,
    name: str,
    statement: CreateTable,
    options: Any,
    parameters: tuple[Mapping[str, Any] | None, Mapping[str, Any]],
) -> int:
    """Create a table in a catalog, maybe from the rows of a query; return how many."""
    catalog = tables.catalog
    if options is not None:
        raise InvalidInput("sql: CREATE TABLE in a Rowsieve catalog takes no options=")
    if not may_create(catalog, name, statement):
        return 0
    values, named_params = parameters
    rows: pa.Table | None = None
    if statement.query is not None:
        frame = session.sql(statement.query, read_only(), dict(values or {}), **named_params)
        rows = frame.to_arrow_table()
    created = create_from_statement(catalog, name, statement, rows)
    tables.refresh()
    return 0 if rows is None or created is None else int(rows.num_rows)
