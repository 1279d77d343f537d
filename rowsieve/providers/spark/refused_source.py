"""The source of releases of Spark that Rowsieve does not support: each use of it is an error."""

from __future__ import annotations

from typing import NoReturn

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from rowsieve.bridges.extras import imported
from rowsieve.errors import UnsupportedOperation


class RefusedSource(DataSource):
    """Raises UnsupportedOperation, which names the release and the one to install."""

    @classmethod
    def name(cls) -> str:
        """The name in `format(...)`."""
        return "rowsieve"

    def schema(self) -> NoReturn:
        """Refuse a read."""
        _refuse()

    def writer(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002 - Spark's names
        """Refuse a write."""
        _refuse()

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoReturn:  # noqa: ARG002, N802 - Spark's names
        """Refuse a stream."""
        _refuse()


def _refuse() -> NoReturn:
    imported("pyspark", "spark")
    raise UnsupportedOperation(
        "this release of PySpark is not supported: pip install 'rowsieve[spark]' installs one that "
        "is"
    )
