"""Engines over rows in memory, as judges of what SQL text means to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import pyarrow as pa

from tests.bridges.sql.postgres import postgres_rows
from tests.duckdb_sessions import duckdb_session

Judge = Callable[[str, pa.RecordBatch], list[int] | None]
ROW = "row number"


@cache
def _duckdb() -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def duckdb_rows(
    text: str, batch: pa.RecordBatch, disabled_optimizers: str = ""
) -> list[int] | None:
    """The numbers of the rows that DuckDB keeps; None where it fails on a value."""
    import duckdb

    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int64()))
    connection = _duckdb()
    connection.register("t", _with_uuids(pa.table(numbered)))
    connection.execute(f"SET disabled_optimizers = '{disabled_optimizers}'")
    try:
        found = connection.sql(f'SELECT "{ROW}" FROM t WHERE {text}').fetchall()
    except (duckdb.ConversionException, duckdb.OutOfRangeException):
        return None
    except duckdb.InvalidInputException as error:
        if "Division by zero" not in str(error):
            raise
        return None
    return sorted(row for (row,) in found)


def _with_uuids(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if field.type == pa.binary(16):
            storage = table.column(place).combine_chunks()
            uuids = pa.ExtensionArray.from_storage(pa.uuid(), storage)
            table = table.set_column(place, field.name, uuids)
    return table


def datafusion_rows(text: str, batch: pa.RecordBatch) -> list[int] | None:
    """The numbers of the rows that DataFusion keeps; None where it fails on a value."""
    import datafusion

    numbered = batch.append_column(ROW, pa.array(range(batch.num_rows), pa.int64()))
    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    context.register_record_batches("t", [[numbered]])
    try:
        batches = context.sql(f'SELECT "{ROW}" FROM t WHERE {text}').collect()
    except Exception as error:
        if not any(word in str(error) for word in FAILURES):
            raise
        return None
    return sorted(row for found in batches for row in found.column(0).to_pylist())


FAILURES = (
    "verflow",
    "Divide by zero",
    "Cast error",
    "not fit",
    "out of range",
    "Cannot cast",
    "Parser error",
)
JUDGES: Mapping[str, Judge] = {
    "duckdb": duckdb_rows,
    "datafusion": datafusion_rows,
    "postgres": postgres_rows,
}


def duckdb_values(rows: pa.Table) -> Callable[[str], list[Any]]:
    """What DuckDB gives for a text on each of the rows, which stay in memory."""
    connection = duckdb_session()
    connection.register("rows", rows)
    return lambda text: list(connection.sql(f"SELECT ({text}) FROM rows").fetchall())


def datafusion_values(rows: pa.Table) -> Callable[[str], list[Any]]:
    """What DataFusion gives for a text on each of the rows, which stay in memory."""
    import datafusion

    context = datafusion.SessionContext()
    context.register_record_batches("rows", [rows.to_batches()])
    return lambda text: list(
        context.sql(f"SELECT ({text}) AS x FROM rows").to_arrow_table()["x"].to_pylist()
    )
