"""Partitions a DataFrame by ranges of its key, and sorts each partition by key.

Spark's `repartitionByRange` computes a frame once more to sample its keys, with all its columns:
the sample is taken behind the read. Here a query of its own samples a frame that only selects from
files, so Spark reads the key columns alone for it. The sampled bounds then number the range of each
row. Other frames are left to Spark, whose sample uses the results of shuffles that it has computed.

Soundness: bounds are a guess. Whatever they are, equal keys get one number, and the commit checks
the ranges that tasks have written (`committing.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.sql import functions as sql
from pyspark.sql import types as spark

from rowsieve.providers.spark.plans import (
    UnknownInternals,
    bytes_of_files,
    partitioned_by_number,
    shuffle_partitions,
)

MOST_RANGES: Final = 64  # for more, Java would not compile the method that numbers the rows
MOST_BYTES: Final = MOST_RANGES * 256 * 1024 * 1024  # of the files
KEYS_PER_RANGE: Final = 100  # as Spark samples
_ROW_BYTES: Final = 16  # a guess of the stored bytes of a row, low so that samples are large
_COMPARED: Final = (
    spark.ByteType,
    spark.ShortType,
    spark.IntegerType,
    spark.LongType,
    spark.StringType,
    spark.BinaryType,
    spark.DateType,
    spark.DecimalType,
    spark.TimestampType,
)
_JOINS_SMALL: Final = (
    "spark.sql.adaptive.enabled",
    "spark.sql.adaptive.coalescePartitions.enabled",
)


def in_key_ranges(frame: Any, key: Sequence[str]) -> Any:
    """The frame in partitions of disjoint ranges of the key, each sorted by it."""
    if not key:
        return frame
    names = [_name_in(frame, name) for name in key]
    ranged = _by_sampled_keys(frame, names)
    if ranged is None:
        ranged = frame.repartitionByRange(*map(_quoted, names))
    return ranged.sortWithinPartitions(*map(_quoted, names))


def _by_sampled_keys(frame: Any, names: Sequence[str]) -> Any | None:
    """The frame in ranges between sampled keys; None where Spark should sample."""
    types = [frame.schema[name].dataType for name in names]
    if not all(isinstance(type_, _COMPARED) for type_ in types):
        return None
    ranges, size_bytes = _ranges(frame, len(names))
    if ranges < 2:
        return None
    values = [_value(name, type_) for name, type_ in zip(names, types, strict=True)]
    try:
        bounds = _bounds(frame.select(*values), ranges, size_bytes)
    except (OverflowError, ValueError):  # a key that Python cannot hold, such as the year 10000
        return None
    if not bounds:
        return None
    try:
        return partitioned_by_number(frame, _number(values, bounds, 0))
    except (Py4JError, UnknownInternals):
        return None


def _ranges(frame: Any, key_columns: int) -> tuple[int, int]:
    """How many ranges to make at most, 0 where Spark should sample; and the size of the files."""
    try:
        size_bytes = bytes_of_files(frame)
        if size_bytes is None or size_bytes > MOST_BYTES:
            return 0, 0
        most, setting = MOST_RANGES // key_columns, frame.sparkSession.conf.get
        partitions = shuffle_partitions(frame.sparkSession)
        if partitions > most and any(setting(each).lower() != "true" for each in _JOINS_SMALL):
            return 0, 0  # Spark would run tasks without rows
        return min(partitions, most), size_bytes
    except (Py4JError, UnknownInternals):
        return 0, 0


def _value(name: str, type_: spark.DataType) -> Any:
    """A column in the order of the key that Python's values can be compared with."""
    column = sql.col(_quoted(name))
    return sql.unix_micros(column) if isinstance(type_, spark.TimestampType) else column


def _bounds(keys: Any, ranges: int, size_bytes: int) -> list[tuple[Any, ...]]:
    """Keys between ranges of about as many rows, by a random sample; without NULL."""
    wanted = ranges * KEYS_PER_RANGE
    share = wanted * _ROW_BYTES / max(size_bytes, 1)
    found = _sample(keys, share)
    if share < 1 and len(found) < wanted // 4:  # rows are longer
        found = _sample(keys, share * wanted / max(len(found), 1))
    cuts = [found[len(found) * number // ranges] for number in range(1, ranges) if found]
    return [cut for cut, _ in groupby(cuts)]


def _sample(keys: Any, share: float) -> list[tuple[Any, ...]]:
    """About this share of the keys in ascending order."""
    rows = map(tuple, keys.where(sql.rand() < share).collect())
    return sorted(row for row in rows if None not in row)


def _number(values: Sequence[Any], bounds: Sequence[tuple[Any, ...]], first: int) -> Any:
    """The number of a row's range, counted from `first`, by binary search.

    It grows with the key, in whatever order the bounds are.
    """
    if not bounds:
        return sql.lit(first)
    middle = len(bounds) // 2
    below = _number(values, bounds[:middle], first)
    above = _number(values, bounds[middle + 1 :], first + middle + 1)
    return sql.when(_is_below(values, bounds[middle]), below).otherwise(above)


def _is_below(values: Sequence[Any], bound: Sequence[Any]) -> Any:
    """Whether the values come before the bound, compared one after the other."""
    pairs = [(value, sql.lit(each)) for value, each in zip(values, bound, strict=True)]
    value, each = pairs.pop()
    below = value < each
    for value, each in reversed(pairs):
        below = (value < each) | ((value == each) & below)
    return below


def _name_in(frame: Any, name: str) -> str:
    """The name of a column of the table in the frame, which may have another case."""
    if name in frame.columns:
        return name
    return str(next(each for each in frame.columns if each.lower() == name.lower()))


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
