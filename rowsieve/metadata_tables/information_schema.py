"""The information schema of a catalog: its namespaces, tables, columns and constraints as rows.

Names of columns, and YES and NO, are those of the SQL standard. `tables` and `schemata` open no
table, the others all of them. The places of columns count from 1; the types are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from rowsieve.types.logical import type_name

if TYPE_CHECKING:
    from rowsieve.table import Table

INFORMATION_SCHEMA: Final = "information_schema"
_PRIMARY_KEY: Final = "primary_key"
_Row = dict[str, Any]


class TablesByName(Protocol):
    """What is needed of a catalog."""

    def namespaces(self) -> list[str]:
        """The namespaces."""

    def tables(self, namespace: str | None = None) -> list[str]:
        """The tables as `namespace.name`."""

    def open_table(self, name: str) -> Table:
        """Open a table by `namespace.name`."""


def view_of(catalog: TablesByName, catalog_name: str, name: str) -> pa.Table | None:
    """The view of the information schema with this name; None if there is none."""
    if (view := _VIEWS.get(name.lower())) is None:
        return None
    columns, rows = view
    types = [(each, pa.int32() if each in _NUMBERS else pa.string()) for each in columns]
    schema = pa.schema(types)
    return pa.Table.from_pylist(list(rows(catalog, catalog_name)), schema)


def _schemata(catalog: TablesByName, catalog_name: str) -> Iterator[_Row]:
    for namespace in catalog.namespaces():
        yield {"catalog_name": catalog_name, "schema_name": namespace}


def _tables(catalog: TablesByName, catalog_name: str) -> Iterator[_Row]:
    for namespace in catalog.namespaces():
        for name in catalog.tables(namespace):
            yield {**_names(catalog_name, name), "table_type": "BASE TABLE"}


def _columns(catalog: TablesByName, catalog_name: str) -> Iterator[_Row]:
    for names, table in _opened(catalog, catalog_name):
        for place, field in enumerate(table.handle.pinned.schema, start=1):
            yield {
                **names,
                "column_name": field.name,
                "ordinal_position": place,
                "column_default": field.default,
                "is_nullable": "YES" if field.nullable else "NO",
                "data_type": type_name(field.type),
                "comment": field.comment,
            }


def _table_constraints(catalog: TablesByName, catalog_name: str) -> Iterator[_Row]:
    for names, table in _opened(catalog, catalog_name):
        kinds = [(_PRIMARY_KEY, "PRIMARY KEY")] if table.key else []
        for name, kind in (*kinds, *((name, "CHECK") for name in table.constraints)):
            yield {**_constraint(names, name), **names, "constraint_type": kind}


def _key_column_usage(catalog: TablesByName, catalog_name: str) -> Iterator[_Row]:
    for names, table in _opened(catalog, catalog_name):
        for place, column in enumerate(table.key, start=1):
            constraint = _constraint(names, _PRIMARY_KEY)
            yield {**constraint, **names, "column_name": column, "ordinal_position": place}


def _check_constraints(catalog: TablesByName, catalog_name: str) -> Iterator[_Row]:
    for names, table in _opened(catalog, catalog_name):
        for name, condition in table.constraints.items():
            yield {**_constraint(names, name), "check_clause": condition}


def _no_rows(_: TablesByName, __: str) -> Iterable[_Row]:
    return ()  # a catalog has no views


def _opened(catalog: TablesByName, catalog_name: str) -> Iterator[tuple[_Row, Table]]:
    for namespace in catalog.namespaces():
        for name in catalog.tables(namespace):
            yield _names(catalog_name, name), catalog.open_table(name)


def _names(catalog_name: str, name: str) -> _Row:
    namespace, _, table = name.partition(".")
    return {"table_catalog": catalog_name, "table_schema": namespace, "table_name": table}


def _constraint(names: _Row, name: str) -> _Row:
    return {
        "constraint_catalog": names["table_catalog"],
        "constraint_schema": names["table_schema"],
        "constraint_name": name,
    }


_TABLE: Final = ("table_catalog", "table_schema", "table_name")
_CONSTRAINT: Final = ("constraint_catalog", "constraint_schema", "constraint_name")
_NUMBERS: Final = frozenset({"ordinal_position"})
_VIEWS: Final[
    Mapping[str, tuple[tuple[str, ...], Callable[[TablesByName, str], Iterable[_Row]]]]
] = {
    "schemata": (("catalog_name", "schema_name"), _schemata),
    "tables": ((*_TABLE, "table_type"), _tables),
    "views": ((*_TABLE, "view_definition"), _no_rows),
    "columns": (
        (
            *_TABLE,
            *("column_name", "ordinal_position", "column_default", "is_nullable", "data_type"),
            "comment",
        ),
        _columns,
    ),
    "table_constraints": ((*_CONSTRAINT, *_TABLE, "constraint_type"), _table_constraints),
    "key_column_usage": (
        (*_CONSTRAINT, *_TABLE, "column_name", "ordinal_position"),
        _key_column_usage,
    ),
    "check_constraints": ((*_CONSTRAINT, "check_clause"), _check_constraints),
}
VIEWS: Final = frozenset(_VIEWS)
