"""Runs the statement of `query` through DataFusion; it may only read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import pyarrow as pa

from rowsieve import errors
from rowsieve.bridges.extras import imported
from rowsieve.errors import InvalidInput, RowsieveError, UnsupportedOperation
from rowsieve.statements.calls import CallStatement
from rowsieve.statements.parse_statement import parse
from rowsieve.statements.query_words import VERSION
from rowsieve.statements.read_change import Change
from rowsieve.statements.refused import Refused
from rowsieve.statements.statement_parameters import bound_statement
from rowsieve.statements.tokens import quoted
from rowsieve.table import Table


def run_query(
    sql: str, tables: dict[str, Table], params: Mapping[str, Any] | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The columns and rows of a query; UnsupportedOperation for other statements.

    `params` are the values of its parameters.
    """
    _check_reads(sql)
    text, values = bound_statement(sql, params)
    datafusion = imported("datafusion", "datafusion")
    context = import_module("rowsieve.providers.datafusion").SessionContext()
    for name, table in tables.items():
        context.register_table(quoted(name), table)
    only_read = datafusion.SQLOptions().with_allow_ddl(allow=False)
    only_read = only_read.with_allow_dml(allow=False).with_allow_statements(allow=False)
    try:
        frame = context.sql(text, only_read, values)
        stream = frame.execute_stream()
        schema = frame.schema()
    except Exception as error:
        if VERSION.search(sql):
            raise UnsupportedOperation(
                "query: the text names no versions; give --version or --as-of, or query a catalog"
            ) from error
        if params is None:
            bound_statement(sql, {})  # raises for a parameter, in the words of `--param`
        raise _as_ours(error, f"; the tables of the query are {', '.join(tables)}") from error
    return schema, _batches(stream)


def _check_reads(sql: str) -> None:
    """Raise UnsupportedOperation for a statement that is not a query, such as DELETE or CALL."""
    statement = parse(sql, "datafusion")
    if isinstance(statement, Refused):
        raise statement.error
    if isinstance(statement, Change):
        raise UnsupportedOperation(
            f"query: {statement.verb} changes tables, and query only reads them; the commands "
            "upsert, delete, update, overwrite and apply change a table"
        )
    if isinstance(statement, CallStatement):
        raise UnsupportedOperation(
            "query: procedures belong to a catalog: rowsieve --catalog CATALOG call …"
        )


def _batches(stream: Any) -> Iterator[pa.RecordBatch]:
    try:
        for batch in stream:
            yield batch.to_pyarrow()
    except Exception as error:
        raise _as_ours(error) from error


def _as_ours(error: Exception, known: str = "") -> RowsieveError:
    """Recover our error: DataFusion passes it on only as text that begins with its class name."""
    if isinstance(error, RowsieveError):
        return InvalidInput(f"{error}{known}") if type(error) is InvalidInput else error
    text = str(error)
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, RowsieveError) and f"{name}: " in text:
            message = text.partition(f"{name}: ")[2]
            try:
                return kind(message)
            except TypeError:  # its constructor needs attributes that the text does not have
                return InvalidInput(text)
    return InvalidInput(f"query: {text.removeprefix('DataFusion error: ')}{known}")
