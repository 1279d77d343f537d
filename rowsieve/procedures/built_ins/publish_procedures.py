"""Procedures that publish a table as Iceberg or Delta, and end a publication."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, Procedure
from rowsieve.statements.call_values import Value
from rowsieve.table import Table

_FORMAT: Final = Parameter(
    "format", ParameterType.TEXT, required=True, meaning="'iceberg' or 'delta'"
)
_LOCATION: Final = Parameter(
    "location", ParameterType.TEXT, meaning="the folder of the metadata, instead of the table's"
)


class Publish(Procedure):
    """Writes metadata with which readers of another format read the newest version."""

    name = "publish"
    meaning = "write metadata with which readers of Iceberg or Delta read the newest version"
    parameters = (SCHEMA, TABLE_NAME, _FORMAT, _LOCATION)
    columns = pa.schema(
        [
            ("version", pa.int64()),
            ("location", pa.string()),
            ("metadata_location", pa.string()),
            ("snapshot_id", pa.int64()),
        ]
    )

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Publish it; the result says what was published."""
        published = table.publish(*_format_and_location(arguments))
        row = {name: getattr(published, name) for name in self.columns.names}
        return pa.Table.from_pylist([row], schema=self.columns)


class Unpublish(Procedure):
    """Deletes what was published."""

    name = "unpublish"
    meaning = "delete the metadata of a publication, after which retention keeps nothing for it"
    parameters = (SCHEMA, TABLE_NAME, _FORMAT, _LOCATION)
    columns = pa.schema([("files", pa.int64())])

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Delete it; the result is the number of files."""
        files = table.unpublish(*_format_and_location(arguments))
        return pa.Table.from_pylist([{"files": files}], schema=self.columns)


def _format_and_location(arguments: Mapping[str, Value]) -> list[Any]:
    """The format, and the folder if there is one."""
    return [value for name in ("format", "location") if (value := arguments.get(name)) is not None]
