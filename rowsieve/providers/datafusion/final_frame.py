"""A DataFrame that runs a checked plan, and hands out another plan to build on.

DataFusion merges conditions of a query with the filter on visible rows. `plan_checks` has checked
the conditions of the statement, but cannot check conditions that the user adds to the frame later.

Soundness: only calls that run the statement unchanged use the checked plan. Every call that makes
another frame, view or plan starts from the open frame, which our dataset reads. DataFusion lists
the files of its scans when it makes the physical plan. It treats a missing file as an empty one,
and fails if it cannot open a file that it has listed. So each call checks the files after
DataFusion has made the plan: file names are never reused, so a file that exists then was listed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import datafusion


class FinalFrame(datafusion.DataFrame):
    """Runs the plan of `final`; derived frames start from `open_frame`, which has the same rows.

    `check_files` raises if a file of DataFusion's scans is missing.
    """

    def __init__(
        self,
        open_frame: datafusion.DataFrame,
        final: datafusion.DataFrame,
        check_files: Callable[[], None],
    ) -> None:
        super().__init__(open_frame.df)
        self._final = final
        self._check_files = check_files

    def _run(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a call that plans, and may run, the statement; then check the files."""
        try:
            return call(*arguments, **options)
        finally:
            self._check_files()  # its error for a missing file is clearer than DataFusion's

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._run(self._final.__arrow_c_stream__, requested_schema)

    def collect(self) -> Any:
        """Run the statement; return its batches."""
        return self._run(self._final.collect)

    def collect_partitioned(self) -> Any:
        """Run the statement; return the batches of each partition."""
        return self._run(self._final.collect_partitioned)

    def collect_column(self, column_name: str) -> Any:
        """Run the statement; return one column."""
        return self._run(self._final.collect_column, column_name)

    def execute_stream(self) -> Any:
        """Run the statement; return a stream of batches."""
        return self._run(self._final.execute_stream)

    def execute_stream_partitioned(self) -> Any:
        """Run the statement; return a stream for each partition."""
        return self._run(self._final.execute_stream_partitioned)

    def execution_plan(self) -> Any:
        """The physical plan of the statement."""
        return self._run(self._final.execution_plan)

    def explain(self, *arguments: Any, **options: Any) -> None:
        """Print the plans of the statement."""
        self._run(self._final.explain, *arguments, **options)

    def to_arrow_table(self) -> Any:
        """Run the statement; return an Arrow table."""
        return self._run(self._final.to_arrow_table)

    def to_pandas(self) -> Any:
        """Run the statement; return a DataFrame of pandas."""
        return self._run(self._final.to_pandas)

    def to_polars(self) -> Any:
        """Run the statement; return a DataFrame of Polars."""
        return self._run(self._final.to_polars)

    def to_pydict(self) -> Any:
        """Run the statement; return a list of values for each column."""
        return self._run(self._final.to_pydict)

    def to_pylist(self) -> Any:
        """Run the statement; return a dictionary for each row."""
        return self._run(self._final.to_pylist)
