"""A DataFrame of a statement whose plan no other condition may join.

DataFusion moves conditions of a query into those that leave out hidden rows. `plan_checks` has
checked the conditions of the statement; it does not know those that somebody adds to the frame
afterwards.

Soundness: only calls that run the statement as it is use the checked plan. Every call that makes
another frame, view or plan starts from the frame that our dataset reads. DataFusion lists the files
of its scans when it makes the physical plan, takes a missing one for an empty one, and fails if it
cannot open one that it has listed. So each call checks the files after DataFusion has made the
plan: no name is used twice, and a file that exists then was listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datafusion


class ClosedFrame(datafusion.DataFrame):
    """The frame `open_frame`, which runs as `closed`: both have the same rows.

    `check_files` raises if a file of DataFusion's scans is missing.
    """

    def __init__(
        self,
        open_frame: datafusion.DataFrame,
        closed: datafusion.DataFrame,
        check_files: Callable[[], None],
    ) -> None:
        super().__init__(open_frame.df)
        self._closed = closed
        self._check_files = check_files

    def _run(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """The result of a call that makes the physical plan, or also runs it."""
        try:
            return call(*arguments, **options)
        finally:
            self._check_files()  # says better than DataFusion that a file is missing

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._run(self._closed.__arrow_c_stream__, requested_schema)

    def collect(self) -> Any:
        """Run the statement; return its batches."""
        return self._run(self._closed.collect)

    def collect_partitioned(self) -> Any:
        """Run the statement; return the batches of each partition."""
        return self._run(self._closed.collect_partitioned)

    def collect_column(self, column_name: str) -> Any:
        """Run the statement; return one column."""
        return self._run(self._closed.collect_column, column_name)

    def execute_stream(self) -> Any:
        """Run the statement; return a stream of batches."""
        return self._run(self._closed.execute_stream)

    def execute_stream_partitioned(self) -> Any:
        """Run the statement; return a stream for each partition."""
        return self._run(self._closed.execute_stream_partitioned)

    def execution_plan(self) -> Any:
        """The physical plan of the statement."""
        return self._run(self._closed.execution_plan)

    def explain(self, *arguments: Any, **options: Any) -> None:
        """Print the plans of the statement."""
        self._run(self._closed.explain, *arguments, **options)

    def to_arrow_table(self) -> Any:
        """Run the statement; return an Arrow table."""
        return self._run(self._closed.to_arrow_table)

    def to_pandas(self) -> Any:
        """Run the statement; return a DataFrame of pandas."""
        return self._run(self._closed.to_pandas)

    def to_polars(self) -> Any:
        """Run the statement; return a DataFrame of Polars."""
        return self._run(self._closed.to_polars)

    def to_pydict(self) -> Any:
        """Run the statement; return a list of values for each column."""
        return self._run(self._closed.to_pydict)

    def to_pylist(self) -> Any:
        """Run the statement; return a dictionary for each row."""
        return self._run(self._closed.to_pylist)
