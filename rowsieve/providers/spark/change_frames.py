"""Reads the changes of a table, by its URI, into a Spark DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rowsieve import engines
from rowsieve.errors import InvalidInput


def read_changes(
    spark: Any,
    uri: str,
    from_version: int,
    to_version: int | None = None,
    *,
    where: Any = None,
    columns: Sequence[str] | None = None,
    net: bool = False,
    storage_options: Any = None,
) -> Any:
    """A DataFrame of the rows that the commits of a range changed, as `Table.changes` returns them.

    Both ends are inclusive; without `to_version` the range ends at the newest version. `where` may
    use the columns of the feed, under the session's current settings. Rows have no order. `net` is
    as in `Table.changes`.
    """
    engines.spark()  # MissingExtra without PySpark
    from rowsieve.change_feed.feed import checked_range  # noqa: PLC0415 - as `open_table`
    from rowsieve.opening import open_table  # noqa: PLC0415 - Spark's workers do not need it
    from rowsieve.providers.spark.frames import changes_frame  # noqa: PLC0415 - needs PySpark

    if isinstance(columns, str):
        raise InvalidInput(f"columns= must be a list of names, not the text {columns!r}")
    table = open_table(uri, storage_options=storage_options)
    versions = checked_range(table.handle.pinned, from_version, to_version)
    if to_version is not None:
        table = open_table(uri, version=to_version, storage_options=storage_options)
    return changes_frame(table, spark, versions, where, columns, net=net)
