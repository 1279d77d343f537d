"""The engines that tables are handed to: what each provider offers, and where it is.

A provider stands above the table and imports an engine that may not be installed. The table asks
for it by name and knows its protocol alone; its module is imported when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Protocol, cast

import pyarrow as pa

from rowsieve.bridges.extras import imported
from rowsieve.metrics import Reporter
from rowsieve.objects import ObjectStore
from rowsieve.storage.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

# A provider takes a `Table`, which stands above this file: `Any` here, typed where it is defined.


class DataFusionProvider(Protocol):
    """DataFusion reads a table that is registered in a session."""

    def catalog_table(self, table: Any, **options: Any) -> Any:
        """What `SessionContext.register_table` takes for this table, read with these options."""


class ArrowProvider(Protocol):
    """Readers of `pyarrow.dataset` push filters into one version of a table."""

    def dataset_of(self, store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> Any:
        """A `pyarrow.dataset.Dataset` of that version."""


class PandasProvider(Protocol):
    """pandas takes rows as a DataFrame."""

    def frame_of(self, data: pa.Table) -> Any:
        """Arrow rows as a DataFrame."""


class PolarsProvider(Protocol):
    """Polars takes rows as a DataFrame, or reads one version of a table lazily."""

    def frame_of(self, data: pa.Table) -> Any:
        """Arrow rows as a DataFrame."""

    def lazy_frame(self, store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> Any:
        """A LazyFrame of that version."""


class SparkProvider(Protocol):
    """Spark reads a table as a DataFrame and writes one into it."""

    def read_frame(self, table: Any, spark: Any, where: Any, columns: Sequence[str] | None) -> Any:
        """A DataFrame over the table."""

    def write_frame(self, table: Any, frame: Any, mode: str) -> Commit:
        """Write a DataFrame into the table in one commit."""


PROVIDERS: Final = {
    "datafusion": "rowsieve.providers.datafusion.table",
    "arrow": "rowsieve.providers.arrow.dataset",
    "pandas": "rowsieve.providers.pandas.frames",
    "polars": "rowsieve.providers.polars.frames",
    "spark": "rowsieve.providers.spark.frames",
}
"""The module of each provider, which has the functions of its protocol."""


def datafusion() -> DataFusionProvider:
    """The provider for DataFusion."""
    return cast("DataFusionProvider", import_module(PROVIDERS["datafusion"]))


def arrow() -> ArrowProvider:
    """The provider for readers of `pyarrow.dataset`."""
    return cast("ArrowProvider", import_module(PROVIDERS["arrow"]))


def pandas() -> PandasProvider:
    """The provider for pandas."""
    return cast("PandasProvider", import_module(PROVIDERS["pandas"]))


def polars() -> PolarsProvider:
    """The provider for Polars."""
    return cast("PolarsProvider", import_module(PROVIDERS["polars"]))


def spark() -> SparkProvider:
    """The provider for Spark; MissingExtra without PySpark."""
    imported("pyspark", "spark")
    return cast("SparkProvider", import_module(PROVIDERS["spark"]))
