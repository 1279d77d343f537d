"""The one file through which a `Table` reaches the providers above it.

Providers import engines that may not be installed and stand above the table; each is imported when
first used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.extras import imported
from rowsieve.errors import MissingExtra

if TYPE_CHECKING:
    from rowsieve.metrics import Reporter
    from rowsieve.objects import ObjectStore
    from rowsieve.storage.log_entry import Commit
    from rowsieve.storage.snapshot import Snapshot
    from rowsieve.table import Table


def datafusion_table(table: Table, **options: Any) -> Any:
    """What `SessionContext.register_table` takes for this table, read with these options."""
    from rowsieve.providers.datafusion import table as provider  # noqa: PLC0415 - on first use

    return provider.catalog_table(table, provider.ReadOptions(**options))


def arrow_dataset(store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> Any:
    """A `pyarrow.dataset.Dataset` of one version of the table in this store."""
    from rowsieve.providers.arrow.dataset import dataset_of  # noqa: PLC0415 - upward, on first use

    return dataset_of(store, snapshot, reporter)


def pandas_frame(data: pa.Table) -> Any:
    """Arrow rows as a pandas DataFrame; integers beside NULL that no float holds are Int64."""
    try:
        frame = data.to_pandas()
    except ImportError as error:
        raise MissingExtra("reading into pandas needs pandas: pip install pandas") from error
    pandas = sys.modules["pandas"]  # pyarrow has imported it
    nullable = {pa.int64(): pandas.Int64Dtype(), pa.uint64(): pandas.UInt64Dtype()}
    for place, field in enumerate(data.schema):
        if field.type in nullable and _is_changed_by_floats(data.column(place)):
            column = data.select([place]).to_pandas(types_mapper=nullable.get)
            frame.isetitem(place, column.iloc[:, 0])
    return frame


def polars_frame(data: pa.Table) -> Any:
    """Arrow rows as a Polars DataFrame."""
    from rowsieve.providers.polars.frames import frame_of  # noqa: PLC0415 - upward, on first use

    return frame_of(data)


def polars_lazy_frame(store: ObjectStore, snapshot: Snapshot, reporter: Reporter | None) -> Any:
    """A Polars LazyFrame of one version of the table in this store."""
    from rowsieve.providers.polars.frames import lazy_frame  # noqa: PLC0415 - upward, on first use

    return lazy_frame(store, snapshot, reporter)


def spark_frame(table: Table, spark: Any, where: Any, columns: Sequence[str] | None) -> Any:
    """A Spark DataFrame over this table."""
    return _spark_frames().read_frame(table, spark, where, columns)


def spark_write(table: Table, frame: Any, mode: str) -> Commit:
    """Write a Spark DataFrame into this table in one commit."""
    commit: Commit = _spark_frames().write_frame(table, frame, mode)
    return commit


def _is_changed_by_floats(column: pa.ChunkedArray) -> bool:
    """Whether pandas, which makes floats of integers beside NULL, would change one of them."""
    if not column.null_count or column.null_count == len(column):
        return False
    bounds = pc.min_max(column)
    return bool(bounds["min"].as_py() < -(2**53) or bounds["max"].as_py() > 2**53)


def _spark_frames() -> Any:
    imported("pyspark", "spark")
    from rowsieve.providers.spark import frames  # noqa: PLC0415 - upward, on first use

    return frames
