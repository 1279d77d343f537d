"""The protocol and the module of each engine's provider.

A provider imports the table and an engine, which may not be installed. The table knows only the
provider's protocol and name; the provider's module is imported on first use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

import pyarrow as pa

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.bridges.extras import imported
from rowsieve.metrics import Reporter
from rowsieve.objects import ObjectStore
from rowsieve.statements.merge_statement import Merge
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.snapshot import Snapshot

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

# A provider takes a `Table`, which this file must not import: `Any` here, typed in the provider.


class DataFusionProvider(Protocol):
    """DataFusion reads a table that is registered in a session."""

    def catalog_table(self, table: Any, **options: Any) -> Any:
        """Return this table, with these read options, for `SessionContext.register_table`."""


class DataFusionMergeProvider(Protocol):
    """DataFusion computes the merge of rows into a table."""

    def merge_rows(
        self,
        table: Any,
        sources: Mapping[str, pa.Table],
        statement: Merge,
        constants: Mapping[str, Any],
        retry_timeout_s: float | None,
        token: Token | None,
        metadata: Metadata | None,
    ) -> Commit:
        """Merge the rows that the statement names into the table, in one commit or none."""


class DataFusionCatalogProvider(Protocol):
    """DataFusion reads all tables of a catalog."""

    def catalog_provider(self, catalog: Any) -> Any:
        """Return the catalog for `SessionContext.register_catalog_provider`."""

    def query(
        self,
        catalog: Any,
        statement: str,
        *,
        params: Mapping[str, Any] | None = None,
        changes: bool = False,
        creates: bool = False,
    ) -> pa.Table:
        """Run a query over the newest versions of its tables; `changes`: or a change of rows.

        `creates`: or CREATE TABLE … AS. `params` are the values of its parameters.
        """


class ArrowProvider(Protocol):
    """Readers of `pyarrow.dataset` push filters down to one version of a table."""

    def dataset_of(self, store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> Any:
        """Return a `pyarrow.dataset.Dataset` of that version."""


class PandasProvider(Protocol):
    """pandas takes rows as a DataFrame."""

    def frame_of(self, data: pa.Table) -> pd.DataFrame:
        """Convert Arrow rows to a DataFrame."""


class PolarsProvider(Protocol):
    """Polars takes rows as a DataFrame, or reads one version of a table lazily."""

    def frame_of(self, data: pa.Table) -> pl.DataFrame:
        """Convert Arrow rows to a DataFrame."""

    def lazy_frame(
        self, store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None
    ) -> pl.LazyFrame:
        """Return a LazyFrame of that version."""


class SparkProvider(Protocol):
    """Spark reads a table as a DataFrame and writes one into it."""

    def read_frame(self, table: Any, spark: Any, where: Any, columns: Sequence[str] | None) -> Any:
        """Return a DataFrame that reads the table."""

    def read_planned(
        self, table: Any, spark: Any, where: Any, columns: Sequence[str] | None
    ) -> Any:
        """Return a DataFrame that reads a table without a log."""

    def write_frame(
        self,
        table: Any,
        frame: Any,
        mode: str,
        where: Any,
        *,
        presorted: bool | None,
        schema_mode: str,
        token: Token | None,
        metadata: Metadata | None,
    ) -> Commit:
        """Write a DataFrame into the table in one commit; `where` limits an overwrite."""

    def arrow_schema(self, columns: Any) -> pa.Schema:
        """Convert the schema of a DataFrame."""


class SparkMergeProvider(Protocol):
    """Spark joins a DataFrame to a table and commits the result."""

    def merge_frame(
        self,
        table: Any,
        frame: Any,
        on: Sequence[str],
        clauses: Mapping[str, Any],
        retry_timeout_s: float | None,
        token: Token | None,
        metadata: Metadata | None,
    ) -> Commit:
        """Merge a DataFrame into the table in one commit."""


PROVIDERS: Final = {
    "datafusion": "rowsieve.providers.datafusion.registered_table",
    "datafusion_catalog": "rowsieve.providers.datafusion.session.catalog_queries",
    "datafusion_merge": "rowsieve.providers.datafusion.changes.merge_rows",
    "arrow": "rowsieve.providers.arrow.dataset",
    "pandas": "rowsieve.providers.pandas.frames",
    "polars": "rowsieve.providers.polars.frames",
    "spark": "rowsieve.providers.spark.frames",
    "spark_merge": "rowsieve.providers.spark.writes.merge_frame",
}
"""The module of each provider; it defines the functions of the provider's protocol."""


def datafusion() -> DataFusionProvider:
    """The provider for DataFusion."""
    return cast("DataFusionProvider", import_module(PROVIDERS["datafusion"]))


def datafusion_catalog() -> DataFusionCatalogProvider:
    """The provider of catalogs for DataFusion."""
    return cast("DataFusionCatalogProvider", import_module(PROVIDERS["datafusion_catalog"]))


def datafusion_merge() -> DataFusionMergeProvider:
    """The provider for merges by DataFusion; MissingExtra without it."""
    imported("datafusion", "datafusion")
    return cast("DataFusionMergeProvider", import_module(PROVIDERS["datafusion_merge"]))


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


def spark_merge() -> SparkMergeProvider:
    """The provider for merges by Spark; MissingExtra without PySpark."""
    imported("pyspark", "spark")
    return cast("SparkMergeProvider", import_module(PROVIDERS["spark_merge"]))
