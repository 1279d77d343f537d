"""Creates tables in a catalog as a CREATE TABLE defines them: columns, key, order, constraints.

Soundness: a table that cannot get its defaults and constraints is dropped again, with its files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rowsieve.errors import InvalidInput, TableExists, UnsupportedOperation
from rowsieve.statements.name_lists import names_of

if TYPE_CHECKING:
    from rowsieve.bridges.sql.alterations import TableChange
    from rowsieve.statements.read_change import CreateTable
    from rowsieve.table import Table

_PROPERTY = "property."


class TableMaker(Protocol):
    """What is needed of a catalog."""

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables as `namespace.name`."""

    def create_table(
        self,
        name: str,
        schema_or_data: Any,
        key: list[str] | None = None,
        *,
        properties: Mapping[str, Any] | None = None,
        sequence: list[str] | None = None,
    ) -> Table:
        """Create a table."""

    def drop_table(self, name: str, *, purge: bool = False) -> None:
        """Drop a table."""


def create_from_statement(
    catalog: TableMaker, name: str, statement: CreateTable, rows: Any = None
) -> Table | None:
    """Create the table of a statement; None if it exists and the statement ignores that.

    `rows` are those of its query.
    """
    from rowsieve.bridges.sql.table_definitions import table_definition_of  # noqa: PLC0415 - slow

    may_create(catalog, name, statement)
    defined = table_definition_of(statement.definition, "datafusion", folds=True)
    if len(defined.schema) and rows is not None:
        raise UnsupportedOperation(
            "sql: CREATE TABLE with types of columns and AS query; leave the types out, and cast "
            "in the query"
        )
    if rows is None and not len(defined.schema):
        raise InvalidInput(
            "sql: CREATE TABLE needs columns, as in CREATE TABLE db.t (id BIGINT PRIMARY KEY, n "
            "INT), or AS query"
        )
    options = dict(statement.options)
    if defined.key and "key" in options:
        raise InvalidInput("sql: give PRIMARY KEY or the option key, not both")
    key = defined.key or names_in(options, "key")
    try:
        return create_defined(
            catalog,
            name,
            defined.schema if rows is None else rows,
            key,
            names_in(options, "sequence"),
            properties_in(options),
            defined.changes,
        )
    except TableExists:
        if statement.if_not_exists:  # another process has created it
            return None
        raise


def may_create(catalog: TableMaker, name: str, statement: CreateTable) -> bool:
    """Return whether a statement has something to create; raise if it cannot."""
    if statement.format not in ("", "rowsieve"):
        raise UnsupportedOperation(
            f"sql: a Rowsieve catalog has no tables USING {statement.format}; leave USING out"
        )
    namespace, dot, _ = name.partition(".")
    if name not in catalog.tables(namespace if dot else None):
        return True
    if statement.if_not_exists:
        return False
    if statement.replaces:
        raise UnsupportedOperation(
            f"sql: {name!r} exists, and CREATE OR REPLACE would lose its history; replace its "
            "rows with table.overwrite, or DROP TABLE it first"
        )
    raise TableExists(f"create_table: {name!r} already exists in {catalog!r}")


def create_defined(
    catalog: TableMaker,
    name: str,
    schema_or_data: Any,
    key: Sequence[str],
    sequence: Sequence[str],
    properties: Mapping[str, str],
    changes: Sequence[TableChange],
) -> Table:
    """Create a table, and alter it by a second commit; if that fails, drop it again."""
    table = catalog.create_table(
        name,
        schema_or_data,
        list(key) or None,
        properties=properties or None,
        sequence=list(sequence) or None,
    )
    if not changes:
        return table
    try:
        with table.alter() as alteration:
            alteration.extend(changes)
    except BaseException:
        catalog.drop_table(name, purge=True)
        raise
    return table


def names_in(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The names that an option lists; none without it."""
    text = options.get(name, "").strip()
    return names_of(text, name) if text else ()


def properties_in(options: Mapping[str, str]) -> dict[str, str]:
    """The properties of the table among its options, with `property.` before the name or not."""
    return {
        option.removeprefix(_PROPERTY): value
        for option, value in options.items()
        if option not in ("key", "sequence")
    }
