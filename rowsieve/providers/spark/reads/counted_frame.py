"""A DataFrame of a version of a table whose rows are counted without a job of Spark's.

To count rows of a file with hidden rows, Spark numbers all of them and looks each number up. But
the number of visible rows is known when the frame is made.

Soundness (invariant 26): only the frame of a whole version is counted without Spark, and only while
Spark would read the files: a cached frame is counted by Spark, which fills the cache, and a missing
file is an error. Every call that makes another frame makes one of Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyspark.sql.classic.dataframe import DataFrame

from rowsieve.objects import ObjectStore
from rowsieve.providers.native_files.present_files import check_files
from rowsieve.storage.manifests.manifest import FileRef


class CountedFrame(DataFrame):
    """The frame of a version that has `row_count` rows, in these files."""

    def __init__(
        self, frame: Any, row_count: int, store: ObjectStore, version: int, files: Sequence[FileRef]
    ) -> None:
        super().__init__(frame._jdf, frame.sparkSession)
        self._row_count = row_count
        self._store = store
        self._version = version
        self._files = files

    def count(self) -> int:
        """The number of rows; raises if one of the files is missing."""
        if self.is_cached:
            return int(super().count())
        check_files(self._store, self._version, self._files)
        return self._row_count
