"""Filters Spark's scan of several files to their visible rows, by file and row number.

One scan reads all files of a shape, and one block of words of 64 bits serves all its rows: first a
directory, then the bitmaps of the files one after another. A row finds the directory entry of its
file by the file's size modulo the length of the directory, which is chosen so that no two files of
the scan share an entry. The entry is the position of the file's bitmap, in which the number of the
row is looked up. If the scan has one file, that position is a literal.

Soundness: the files of one scan differ in size, and Spark lists them with these sizes, which
`hybrid` checks. Row numbers count from the start of the file, also if Spark skips row groups. A row
that no bitmap knows is not visible.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from pyspark.sql import functions as sql

from rowsieve.predicate.rowset import RowSet
from rowsieve.providers.spark.plans import longs_frame

_WORD_BITS: Final = 64
_WORD: Final = ">i8"  # as Java reads the block
_METADATA: Final = "_metadata"


@dataclass(frozen=True, slots=True)
class FileRows:
    """The visible rows of a file of `size_bytes`."""

    size_bytes: int
    rows: RowSet


def visible_rows(spark: Any, frame: Any, files: Sequence[FileRows]) -> Any:
    """Keep the visible rows of a scan of these files, whose sizes differ; all columns stay."""
    modulus = _modulus(np.array([file.size_bytes for file in files], dtype=np.int64))
    metadata = frame.metadataColumn(_METADATA)
    size, row = metadata.getField("file_size"), metadata.getField("row_index")
    # A subquery, whose result is one block of memory in each task. As a literal the words would be
    # objects, which every copy, comparison and text of the plan visits.
    words = longs_frame(spark, "visible", _words(files, modulus)).scalar()
    # The bitmap of a single file follows a directory of one entry: no row is asked for its file.
    start = sql.get(words, (size % modulus).cast("int")) if len(files) > 1 else sql.lit(modulus)
    word = sql.get(words, (start + sql.shiftright(row, 6)).cast("int"))
    return frame.filter(sql.getbit(word, row.bitwiseAND(_WORD_BITS - 1).cast("int")) == 1)


def places(spark: Any, frame: Any, starts: Mapping[int, int]) -> Any:
    """The place of each row of a scan: its number in the file plus the start of the file.

    The starts are by the size of the file; no two files have one size.
    """
    sizes = np.array(list(starts), dtype=np.int64)
    modulus = _modulus(sizes)
    directory = np.zeros(modulus, dtype=np.int64)
    directory[sizes % modulus] = list(starts.values())
    words = longs_frame(spark, "starts", directory.astype(_WORD).tobytes()).scalar()
    metadata = frame.metadataColumn(_METADATA)
    size, row = metadata.getField("file_size"), metadata.getField("row_index")
    return sql.get(words, (size % modulus).cast("int")) + row


def _modulus(sizes: np.ndarray) -> int:
    """The smallest known number by which these different sizes have different remainders.

    n sizes need about n² / 8 entries, so shorter directories are not tried.
    """
    modulus = max(len(sizes), len(sizes) ** 2 // 8)
    while len(np.unique(sizes % modulus)) < len(sizes):
        modulus += 1
    return modulus


def _words(files: Sequence[FileRows], modulus: int) -> bytes:
    """The directory and the bitmaps, the first row of a file in the lowest bit of its word."""
    bitmaps = [_bitmap(file.rows) for file in files]
    stops = modulus + np.cumsum([len(bitmap) for bitmap in bitmaps])
    directory = np.zeros(modulus, dtype=np.int64)
    for file, bitmap, stop in zip(files, bitmaps, stops.tolist(), strict=True):
        directory[file.size_bytes % modulus] = stop - len(bitmap)
    return np.concatenate([directory, *bitmaps]).astype(_WORD).tobytes()


def _bitmap(rows: RowSet) -> np.ndarray:
    bits = np.packbits(rows.to_mask(), bitorder="little")
    padded = np.zeros(-(-len(bits) // 8) * 8, dtype=np.uint8)
    padded[: len(bits)] = bits
    return padded.view("<i8")
