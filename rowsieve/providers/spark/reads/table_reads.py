"""Reads a table by its URI into a Spark DataFrame, and explains how Spark reads it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rowsieve import engines
from rowsieve.bridges.sql.spark.settings import TIME_ZONE
from rowsieve.types.instants import has_offset
from rowsieve.types.time_zones import in_zone

if TYPE_CHECKING:
    from rowsieve.providers.spark.reads.prune_report import PruneReport
    from rowsieve.providers.spark.reads.routes import SparkRoutes
    from rowsieve.providers.spark.reads.spark_read import SparkRead

_ALL = ("native", "bitmap", "source")


def read(
    spark: Any,
    uri: str,
    *,
    version: int | None = None,
    as_of: datetime | str | None = None,
    where: Any = None,
    columns: Sequence[str] | None = None,
    storage_options: Any = None,
    spark_path: str | None = None,
    routes: Collection[str] = _ALL,
) -> Any:
    """A DataFrame of one version of a table, as `Table.to_spark` makes it.

    Text of `as_of` without an offset is a time in the session's zone. `spark_path` is the table's
    folder as this session names it, instead of the table property `spark.path`.

    Spark reads a part with its own Parquet reader where that is proved to give the same rows, else
    through our data source. `routes` excludes routes, for tests and comparisons: `native` of files
    without hidden rows, `bitmap` of files with some. The source is always allowed.
    """
    engines.spark()  # MissingExtra without PySpark
    from rowsieve.providers.spark.reads.hybrid import hybrid_frame  # noqa: PLC0415 - PySpark is optional

    asked = _read(spark, uri, version, as_of, where, columns, storage_options, spark_path)
    return hybrid_frame(asked, routes)


def explain(
    spark: Any,
    uri: str,
    *,
    version: int | None = None,
    as_of: datetime | str | None = None,
    where: Any = None,
    columns: Sequence[str] | None = None,
    storage_options: Any = None,
    spark_path: str | None = None,
    routes: Collection[str] = _ALL,
) -> SparkRoutes:
    """The route of each part that `read` with these arguments needs, and why; reads no rows.

    `str()` sums them up. It finds hidden rows from keys, as `read` does.
    """
    engines.spark()
    from rowsieve.providers.spark.reads.hybrid import routes_of  # noqa: PLC0415 - PySpark is optional

    asked = _read(spark, uri, version, as_of, where, columns, storage_options, spark_path)
    return routes_of(asked, routes)


def _read(
    spark: Any,
    uri: str,
    version: int | None,
    as_of: datetime | str | None,
    where: Any,
    columns: Sequence[str] | None,
    storage_options: Any,
    spark_path: str | None,
) -> SparkRead:
    from rowsieve.opening import open_table  # noqa: PLC0415 - Spark's workers do not need it
    from rowsieve.providers.spark.frames import spark_read  # noqa: PLC0415 - PySpark is optional

    if isinstance(as_of, str) and not has_offset(as_of):
        as_of = in_zone(as_of, str(spark.conf.get(TIME_ZONE)))
    table = open_table(uri, version=version, as_of=as_of, storage_options=storage_options)
    return spark_read(table, spark, where, columns, spark_path)


def prune(frame: Any) -> Any:
    """Return a frame with the same rows, whose reads of our tables skip parts by its conditions.

    Conditions of the whole query count: above joins, views and common table expressions. Frames of
    `to_spark`, `read` and `create_views` are recognised. A frame that cannot be pruned, such as one
    of Spark Connect, is returned as it is.
    """
    engines.spark()
    from rowsieve.providers.spark.reads.pruning import pruned  # noqa: PLC0415 - PySpark is optional

    return pruned(frame)


def explain_prune(frame: Any) -> PruneReport:
    """Report what `prune` skips in the frame, by read: parts, conditions, and why not more.

    `str()` sums it up. Reads no rows.
    """
    engines.spark()
    from rowsieve.providers.spark.reads.pruning import explained  # noqa: PLC0415 - PySpark is optional

    return explained(frame)


def sql(spark: Any, statement: str, catalog: Any = None) -> Any:
    """Run a statement; return a Spark DataFrame. Queries are pruned as `prune` does it.

    Queries and changes may name tables of `catalog`, a `rowsieve.Catalog` or several by their
    names, as `db.t` or `lake.db.t`, and a table at a path as ``rowsieve.`/path` ``. CALL, ALTER
    TABLE … EXECUTE, SHOW PROCEDURES and DESCRIBE PROCEDURE run in it, with their tasks on the
    session's workers; filters are Spark SQL. INSERT, MERGE, UPDATE and DELETE also change the table
    of a temporary view that shows all of it. Spark runs every other statement. A name that is ours
    and Spark's is refused.
    """
    engines.spark()
    from rowsieve.providers.spark import statements  # noqa: PLC0415 - PySpark is optional

    return statements.sql(spark, statement, catalog)
