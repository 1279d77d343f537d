"""Reads the rows of a file that a command writes into a table."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.input_files.files import Input
    from rowsieve.table import Table


def rows_to_write(
    source: Input, table: Table, *, appends: bool = False, op: str | None = None
) -> pa.Table:
    """Read rows to write; a row of JSON that lacks a column does not set it to NULL."""
    from rowsieve.changes.data.absent_values import RequiredNames
    from rowsieve.input_files.files import read_rows

    schema = table.handle.pinned.schema
    required = RequiredNames(schema, source.name, appends, op)
    return read_rows(replace(source, check=required.check_rows), table.schema)
