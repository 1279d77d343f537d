"""`register_table` and `move_out`: give a table that exists elsewhere a name, or take it."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, CatalogProcedure, TablesByName
from rowsieve.statements.call_values import Value


class RegisterTable(CatalogProcedure):
    """Names a table; its files stay where they are."""

    name = "register_table"
    meaning = "give a table that exists elsewhere a name in this catalog"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        Parameter(
            "uri", ParameterType.TEXT, required=True, meaning="the folder or URI of the table"
        ),
    )
    columns = pa.schema([("version", pa.int64()), ("data_files_count", pa.int64())])

    def call(self, catalog: TablesByName, arguments: Mapping[str, Value]) -> pa.Table:
        """Register the table; TableNotFound if there is none, TableExists if the name is taken."""
        name = f"{arguments['schema']}.{arguments['table_name']}"
        table = catalog.register_table(name, str(arguments["uri"]))
        row = {"version": table.version, "data_files_count": table.files().num_rows}
        return pa.Table.from_pylist([row], schema=self.columns)


class MoveOut(CatalogProcedure):
    """Lets a table of a database have a log of its own again; its files stay where they are."""

    name = "move_out"
    meaning = "let a table of this database have a log of its own, and no name here"
    parameters = (SCHEMA, TABLE_NAME)
    columns = pa.schema([("uri", pa.string()), ("version", pa.int64())])

    def call(self, catalog: TablesByName, arguments: Mapping[str, Value]) -> pa.Table:
        """Move the table out; TableNotFound if there is none."""
        table = catalog.move_out(f"{arguments['schema']}.{arguments['table_name']}")
        return pa.Table.from_pylist([{"uri": table.uri, "version": table.version}], self.columns)
