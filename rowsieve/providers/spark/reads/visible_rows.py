"""Filters Spark's scan of several files to their visible rows, by file and row number.

One block of words of 64 bits has the bitmaps of all files of the scan, one after another. The scan
has two more columns: the number of the row in its file, and the position of the file's bitmap,
which is a constant of the file.

Soundness: row numbers count from the start of the file, also if Spark skips row groups. A row that
no bitmap knows is not visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from pyspark.sql import functions as sql
from pyspark.sql import types as spark_types

from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.spark.plans import UnknownInternals, longs_frame, row_numbers_name
from rowsieve.providers.spark.reads.file_names import FIRST_WORD, ROW_NUMBERS

_WORD_BITS: Final = 64
_WORD: Final = ">i8"  # as Java reads the block


def with_row_numbers(spark: Any, schema: spark_types.StructType) -> spark_types.StructType:
    """The columns to read of a file, and the numbers of its rows.

    Spark's Parquet reader fills a column of a certain name with them. `_metadata.row_index` has the
    same numbers, but Spark makes a struct of them for every row.
    """
    if (name := row_numbers_name(spark)) != ROW_NUMBERS:  # it would be read as a column of NULLs
        raise UnknownInternals(f"Spark {spark.version} numbers the rows of a file as {name!r}")
    return spark_types.StructType([*schema, spark_types.StructField(name, spark_types.LongType())])


def first_words(files: Sequence[RowSet]) -> list[int]:
    """The position of the first word of each file's bitmap: the constants of `FIRST_WORD`."""
    stops = np.cumsum([0, *(-(-file.row_count // _WORD_BITS) for file in files)])
    return [int(stop) for stop in stops[:-1]]


def visible_rows(spark: Any, frame: Any, files: Sequence[RowSet]) -> Any:
    """Keep the visible rows of a scan `with_row_numbers` and `FIRST_WORD`; all columns stay."""
    # A subquery, whose result is one block of memory in each task. As a literal the words would be
    # objects, which every copy, comparison and text of the plan visits.
    words = longs_frame(spark, "visible", _words(files)).scalar()
    first, row = sql.col(FIRST_WORD), sql.col(ROW_NUMBERS)
    word = sql.get(words, (first + sql.shiftright(row, 6)).cast("int"))
    return frame.filter(sql.getbit(word, row.bitwiseAND(_WORD_BITS - 1).cast("int")) == 1)


def _words(files: Sequence[RowSet]) -> bytes:
    """The bitmaps, the first row of a file in the lowest bit of its first word."""
    return np.concatenate([_bitmap(file) for file in files]).astype(_WORD).tobytes()


def _bitmap(rows: RowSet) -> np.ndarray:
    bits = np.packbits(rows.to_mask(), bitorder="little")
    padded = np.zeros(-(-len(bits) // 8) * 8, dtype=np.uint8)
    padded[: len(bits)] = bits
    return padded.view("<i8")
