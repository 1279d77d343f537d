"""The one file through which a `Table` reaches the providers above it.

Providers import engines that may not be installed and stand above the table; each is imported when
first used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from rowsieve.metrics import Reporter
    from rowsieve.storage.log_entry import Commit
    from rowsieve.storage.snapshot import Snapshot
    from rowsieve.table import Table


def datafusion_inner(table: Table) -> Any:
    """What `SessionContext.register_table` takes for this table."""
    from rowsieve.providers.datafusion.table import inner  # noqa: PLC0415 - upward, on first use

    return inner(table)


def arrow_dataset(table: Table, snapshot: Snapshot, reporter: Reporter | None) -> Any:
    """A `pyarrow.dataset.Dataset` of one version of this table."""
    from rowsieve.providers.arrow.dataset import dataset_of  # noqa: PLC0415 - upward, on first use

    return dataset_of(table, snapshot, reporter)


def polars_frame(data: pa.Table) -> Any:
    """Arrow rows as a Polars DataFrame."""
    from rowsieve.providers.polars.frames import frame_of  # noqa: PLC0415 - upward, on first use

    return frame_of(data)


def polars_lazy_frame(table: Table, snapshot: Snapshot, reporter: Reporter | None) -> Any:
    """A Polars LazyFrame of one version of this table."""
    from rowsieve.providers.polars.frames import lazy_frame  # noqa: PLC0415 - upward, on first use

    return lazy_frame(table, snapshot, reporter)


def spark_frame(table: Table, spark: Any, where: Any, columns: Sequence[str] | None) -> Any:
    """A Spark DataFrame over this table."""
    from rowsieve.providers.spark.frames import read_frame  # noqa: PLC0415 - upward, on first use

    return read_frame(table, spark, where, columns)


def spark_write(table: Table, frame: Any, mode: str) -> Commit:
    """Write a Spark DataFrame into this table in one commit."""
    from rowsieve.providers.spark.frames import write_frame  # noqa: PLC0415 - upward, on first use

    commit: Commit = write_frame(table, frame, mode)
    return commit
