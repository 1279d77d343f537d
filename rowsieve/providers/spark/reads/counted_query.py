"""A query that needs no column of some of our tables, only how many rows they have.

`SELECT count(*)` over a table with hidden rows numbers all rows of its files and looks each number
up. The number of visible rows is known, so a range with the same number of rows replaces the table.

Soundness: a plan that Spark optimised for any contents of a table, and that selects none of its
columns, depends only on the number of its rows. But the user may add `filter("id > 3")` to the
frame of `SELECT 1 FROM t`, which Spark resolves below the selection. So only the calls that run the
query unchanged use the range; all other calls start from the plan that reads the files. That plan
also runs if the frame is cached, or if a file is missing or has another size, so that Spark reports
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.classic.dataframe import DataFrame

from rowsieve.errors import RowsieveError
from rowsieve.providers.native_files.planned_parts import files_of
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.providers.spark.plans import frame_of, rows_of_nulls
from rowsieve.providers.spark.reads.spark_read import SparkRead
from rowsieve.providers.spark.source import plan_read

_MAX_COLUMNS: Final = 100  # the JVM gets each in calls of its own


@dataclass(frozen=True, slots=True)
class UnreadTable:
    """A read that a query needs no column of: its attributes in the plan, and its rows."""

    read: SparkRead
    output: Any
    row_count: int

    def check_files(self) -> None:
        """Raise unless its files exist and have their sizes."""
        table = self.read.table
        plan = plan_read(self.read.options, table.handle.pinned, table.handle.store.uri, 0)
        check_files(table.handle.store, table.version, files_of(plan))


def with_known_counts(
    frame: Any, unread: Mapping[int, UnreadTable], planned: Callable[[Mapping[int, Any]], Any]
) -> Any:
    """The frame, which runs without these tables; `planned` puts plans into their places."""
    session, plans = frame.sparkSession, {}
    for place, table in unread.items():
        if table.output.length() > _MAX_COLUMNS:
            return frame
        if (plan := rows_of_nulls(session, table.row_count, table.output)) is None:
            return frame
        plans[place] = plan
    return CountedQuery(frame, frame_of(session, planned(plans)), tuple(unread.values()))


class CountedQuery(DataFrame):
    """The frame of a query; `counted` has the same rows, without reading the tables."""

    def __init__(self, frame: Any, counted: Any, tables: tuple[UnreadTable, ...]) -> None:
        super().__init__(frame._jdf, frame.sparkSession)
        self._counted = counted
        self._tables = tables

    def collect(self) -> Any:
        """All rows."""
        return self._to_run().collect()

    def first(self) -> Any:
        """The first row; None if there is none."""
        return self._to_run().first()

    def toArrow(self) -> Any:  # noqa: N802 - Spark's name
        """All rows as an Arrow table."""
        return self._to_run().toArrow()

    def toPandas(self) -> Any:  # noqa: N802 - Spark's name
        """All rows as a pandas frame."""
        return self._to_run().toPandas()

    def _to_run(self) -> Any:
        if not self.is_cached:
            try:
                for table in self._tables:
                    table.check_files()
            except RowsieveError:
                pass  # Spark reports a file that it reads and does not find
            else:
                return self._counted
        # Anew: Spark decides once for a frame whether it reads the cache, and may have already.
        return frame_of(self.sparkSession, self._jdf.queryExecution().analyzed())
