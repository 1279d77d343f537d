"""Filters Spark's scan of a file to its visible rows, by the row numbers of Spark's Parquet reader.

The reader fills a column of a certain name with them. `_metadata.row_index` has the same numbers,
but Spark makes a struct of them for every row, which takes longer than the condition.

Soundness: row numbers count from the start of the file, also if Spark skips row groups. A row
number that the condition does not know is not visible.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.spark.plans import UnknownInternals, longs_frame, row_numbers_name
from rowsieve.providers.spark.reads.file_names import ROW_NUMBERS

_FEW_RUNS: Final = 4  # comparing is cheaper than a bit up to here
_WORD_BITS: Final = 64


def row_numbers(spark: Any) -> spark_types.StructField:
    """The column to read of a file, so that `are_visible` knows the numbers of its rows."""
    if (name := row_numbers_name(spark)) != ROW_NUMBERS:  # it would be read as a column of NULLs
        raise UnknownInternals(f"Spark {spark.version} numbers the rows of a file as {name!r}")
    return spark_types.StructField(ROW_NUMBERS, spark_types.LongType())


def are_visible(spark: Any, rows: RowSet) -> Any:
    """A Spark column that is TRUE on the rows of the set, over a scan with `row_numbers`."""
    starts, stops = rows.ranges()
    row = sql.col(ROW_NUMBERS)
    if len(starts) <= _FEW_RUNS:
        found = sql.lit(False)  # noqa: FBT003 - the name of the parameter depends on the version
        for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
            found = found | ((row >= start) & (row < stop))
        return found
    # A subquery, whose result is one block of memory in each task. As a literal the words would be
    # objects, which every copy, comparison and text of the plan visits.
    words = longs_frame(spark, "visible", _words(rows)).scalar()
    word = sql.get(words, sql.shiftright(row, 6).cast("int"))
    return sql.getbit(word, row.bitwiseAND(_WORD_BITS - 1).cast("int")) == 1


def _words(rows: RowSet) -> bytes:
    """The set as big-endian words of 64 bits, the first row in the lowest bit."""
    bits = np.packbits(rows.to_mask(), bitorder="little")
    padded = np.zeros(-(-len(bits) // 8) * 8, dtype=np.uint8)
    padded[: len(bits)] = bits
    return padded.view("<u8").astype(">u8").tobytes()
