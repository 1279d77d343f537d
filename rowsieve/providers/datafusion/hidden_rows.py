"""Filters a DataFusion scan of one file to its visible rows, by `file_row_index()`.

Soundness: `file_row_index()` counts rows from the start of the file, whatever row groups, pages or
byte ranges DataFusion reads. A row number beyond the file's row count is an error.
"""

from __future__ import annotations

import threading
import time
import uuid
from typing import Any, Final

import datafusion
import numpy as np
import pyarrow as pa

from rowsieve.errors import CorruptData
from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.datafusion.open_reads import OPEN_READS, EngineUse

ROW_NUMBER: Final = "file_row_index"
_PREFIX: Final = "rowsieve_visible_"


class VisibleRows(EngineUse):
    """A user-defined function: row numbers of one file to TRUE where visible. Thread-safe."""

    __slots__ = ("_bits", "_callers", "_path", "_row_count")

    def __init__(self, path: str, rows: RowSet) -> None:
        mask = rows.to_mask()
        self._path = path
        self._row_count = len(mask)
        self._bits = pa.py_buffer(np.packbits(mask, bitorder="little").tobytes())
        self._callers: set[int] = set()
        super().__init__()

    def __call__(self, numbers: pa.Array) -> pa.Array:
        """Return a boolean array: TRUE for each visible row."""
        caller = threading.get_ident()
        self._callers.add(caller)
        self.is_called = True
        try:
            OPEN_READS.check_open(self)
            return self._visible(numbers.to_numpy(zero_copy_only=True))
        finally:
            self.last_call_s = time.monotonic()
            self._callers.discard(caller)
            self.is_called = bool(self._callers)

    def _visible(self, numbers: Any) -> pa.Array:
        count = len(numbers)
        if not count:
            return pa.array([], pa.bool_())
        first, last = int(numbers[0]), int(numbers[-1])
        is_run = last - first == count - 1 and bool((numbers[1:] > numbers[:-1]).all())
        least, most = (first, last) if is_run else (int(numbers.min()), int(numbers.max()))
        if least < 0 or most >= self._row_count:
            raise CorruptData(
                f"{self._path} has a row {most if least >= 0 else least}, and the manifest says "
                f"that it has {self._row_count:,} rows; restore the file from a copy"
            )
        if is_run:
            return pa.Array.from_buffers(pa.bool_(), count, [None, self._bits], 0, first)
        bits = np.frombuffer(self._bits, np.uint8)[numbers >> 3] >> (numbers & 7)
        return pa.array((bits & 1).astype(bool))


def only_visible(
    context: datafusion.SessionContext, frame: datafusion.DataFrame, path: str, rows: RowSet
) -> datafusion.DataFrame:
    """Filter a frame that scans one file to its visible rows."""
    name = f"{_PREFIX}{uuid.uuid4().hex}"
    function = datafusion.udf(VisibleRows(path, rows), [pa.int64()], pa.bool_(), "stable", name)
    return frame.filter(function(context.udf(ROW_NUMBER)()))


def is_visibility_filter(function: str) -> bool:
    """Return whether `only_visible` made the function with this name."""
    return function.startswith(_PREFIX)
