"""A source without rows that reads what Spark pushes to it; Spark's workers import it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, Filter
from pyspark.sql.types import StructType

from rowsieve.bridges.spark_filters import from_spark_filters
from rowsieve.types.encodings import schema_of

COLUMNS = (
    "b boolean, i int, j int, k bigint, f double, g float, d decimal(8,2), s string, t string, "
    "y binary, day date, n timestamp_ntz, ts timestamp, st struct<x: int>"
)
SCHEMA = schema_of(
    pa.schema(
        [
            *(("b", pa.bool_()), ("i", pa.int32()), ("j", pa.int32()), ("k", pa.int64())),
            *(("f", pa.float64()), ("g", pa.float32()), ("d", pa.decimal128(8, 2))),
            *(("s", pa.string()), ("t", pa.string()), ("y", pa.binary()), ("day", pa.date32())),
            *(("n", pa.timestamp("us")), ("ts", pa.timestamp("us", "UTC"))),
            ("st", pa.struct([("x", pa.int32())])),
        ]
    )
)[0]


class PushedSource(DataSource):
    """Its option `path` names a file: a line for each filter, and what is read of it."""

    @classmethod
    def name(cls) -> str:
        return "pushed"

    def schema(self) -> str:
        return COLUMNS

    def reader(self, schema: StructType) -> DataSourceReader:
        return PushedReader(Path(self.options["path"]))


class PushedReader(DataSourceReader):
    """Takes every filter, and has no rows that any of them could drop."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        with self._path.open("a") as lines:
            for item in filters:
                read = from_spark_filters([item], SCHEMA)
                lines.write("\t".join((repr(item), read.exactness.value, *read.notes)) + "\n")
        return ()

    def read(self, partition: object) -> Iterator[pa.RecordBatch]:
        return iter(())
