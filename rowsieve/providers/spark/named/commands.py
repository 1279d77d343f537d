"""Runs commands on one table of ours: OPTIMIZE, VACUUM, RESTORE, DESCRIBE HISTORY and DETAIL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final, assert_never

import pyarrow as pa

from rowsieve import clock
from rowsieve.bridges.sql.spark.settings import TIME_ZONE
from rowsieve.errors import RowsieveError, TableNotFound, UnsupportedOperation
from rowsieve.metadata_tables.table_facts import detail_of
from rowsieve.metadata_tables.version_list import commits_of
from rowsieve.opening import open_table
from rowsieve.providers.spark.named.table_names import NamedTable, Names
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.providers.spark.text_literals import text_literal
from rowsieve.providers.spark.writes.batch_tokens import labels_of
from rowsieve.statements.table_commands import (
    DescribeDetail,
    DescribeHistory,
    Optimize,
    Restore,
    TableCommand,
    Vacuum,
)
from rowsieve.types.instants import from_microseconds, has_offset
from rowsieve.types.time_zones import in_zone

DEFAULT_HOURS: Final = 168
"""The age up to which VACUUM keeps versions unless it says RETAIN, as in Delta Lake."""


def run_command(session: Any, named: NamedTable, command: TableCommand) -> pa.Table:
    """Run a command on a table; return its result as rows."""
    table = named.table
    if named.view:
        raise UnsupportedOperation(
            f"sql: {named.name} is a view of a table, and commands take tables; name the table"
        )
    match command:
        case DescribeHistory(limit=limit):
            return commits_of(table, limit)
        case DescribeDetail():
            return detail_of(table)
        case Optimize():
            return _optimized(session, named, command)
        case Vacuum(hours=hours, dry_run=dry_run):
            interval = timedelta(hours=DEFAULT_HOURS if hours is None else hours)
            before = from_microseconds(clock.now_us()) - interval
            removed = table.vacuum(older_than=before, dry_run=dry_run)
            counts = {"files": len(removed.sizes), "bytes": sum(removed.sizes.values())}
            return pa.Table.from_pylist([{**counts, "versions": removed.versions}])
        case Restore():
            version = command.version
            if version is None:
                version = _version_at(session, named, command.timestamp)
            with labels_of(table, session, "restore", None, None) as labels:
                commit = table.restore(version, token=labels.token)
            return pa.table({"version": [commit.version], "restored": [version]})
        case _:
            assert_never(command)


def no_table_of(command: TableCommand, names: Names) -> RowsieveError:
    """The error of a command whose table is not one of ours."""
    try:
        names.required(command.target.parts)
    except TableNotFound as error:
        return error
    return TableNotFound(
        f"sql: {command.target.name} is not a Rowsieve table of this session; nothing was changed. "
        "Name it as db.t with the catalog of sql, or as rowsieve.`/path`"
    )


def _optimized(session: Any, named: NamedTable, command: Optimize) -> pa.Table:
    """Rewrite parts with Spark's tasks; by this process for a table without a catalog."""
    if named.home is None:
        if command.where or command.columns:
            raise UnsupportedOperation(
                f"sql: OPTIMIZE {named.name} with WHERE or ZORDER BY runs in a catalog: give sql "
                "the catalog of the table, and name it there"
            )
        commit = named.table.compact()
        return pa.table(
            {"parts_added": [commit.parts_added], "parts_removed": [commit.parts_removed]}
        )
    catalog, name = named.home
    arguments = {"table": name}
    if command.where:
        arguments["where"] = command.where
    if command.columns:
        columns = ", ".join(command.columns)
        order = columns if len(command.columns) == 1 else f"zorder({columns})"
        arguments |= {"strategy": "sort", "sort_order": order}
    shown = ", ".join(f"{key} => {text_literal(value)}" for key, value in arguments.items())
    statement = f"CALL system.rewrite_data_files({shown})"
    rows: pa.Table = catalog.call(statement, engine=SparkEngine(session), dialect="spark")
    return rows


def _version_at(session: Any, named: NamedTable, text: str) -> int:
    """The version of a time in the session's zone."""
    moment = text if has_offset(text) else in_zone(text, str(session.conf.get(TIME_ZONE)))
    options = named.table.handle.storage_options
    return open_table(named.table.uri, as_of=moment, storage_options=options).version
