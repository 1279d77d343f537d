"""Faults of Spark; each probe takes the session of the tests."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from threading import Thread
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.engine_faults.fault import Fault, Probe, raises


def pushed_filters_leak(spark: Any) -> bool:
    from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo

    class Reader(DataSourceReader):
        kept: list[int]

        def __init__(self) -> None:
            self.kept = list(range(5))

        def pushFilters(self, filters: Any) -> Iterator[Any]:  # noqa: N802 - Spark's name
            for each in filters:
                if isinstance(each, EqualTo):
                    self.kept = [value for value in self.kept if value == each.value]
                else:
                    yield each

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            for value in self.kept:
                yield (value,)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "leaking_filters"

        def schema(self) -> str:
            return "id int"

        def reader(self, schema: Any) -> Reader:
            return Reader()

    spark.dataSource.register(Source)
    setting = "spark.sql.python.filterPushdown.enabled"
    before = spark.conf.get(setting)
    spark.conf.set(setting, "true")
    try:
        frame = spark.read.format("leaking_filters").load()
        return bool((frame.filter("id = 1").count(), frame.count()) != (1, 5))
    finally:
        spark.conf.set(setting, before)


def old_bounds_are_shifted(spark: Any) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        day = pa.array([date(1582, 10, 10), date(1582, 10, 11)])
        pq.write_table(pa.table({"day": day}), f"{folder}/days.parquet")
        frame = spark.read.parquet(folder)
        return bool(frame.filter("day = DATE'1582-10-10'").count() == 0)


def names_are_substituted(spark: Any) -> bool:
    return bool(_read(spark, {"${user.name}": [1]}, "*")["${user.name}"] != [1])


def negative_zero_is_not_zero(spark: Any) -> bool:
    return not _read(spark, {"x": [-0.0, -0.0]}, "x", where="x = 0.0")["x"]


def bounds_without_nan_skip_rows(spark: Any) -> bool:
    return not _read(spark, {"x": [1.0, float("nan")]}, "x", where="x > 2")["x"]


def named_tables_lose_their_options(spark: Any) -> bool:
    from pyspark.sql.datasource import DataSource, DataSourceReader

    class Reader(DataSourceReader):
        def __init__(self, options: Mapping[str, str]) -> None:
            self.seen = len(options)

        def read(self, partition: Any) -> Iterator[tuple[int]]:
            yield (self.seen,)

    class Source(DataSource):
        @classmethod
        def name(cls) -> str:
            return "counting_options"

        def schema(self) -> str:
            return "options int"

        def reader(self, schema: Any) -> Reader:
            return Reader(self.options)

    spark.dataSource.register(Source)
    name = f"fault_{uuid.uuid4().hex}"
    spark.sql(f"CREATE TABLE {name} USING counting_options OPTIONS (kept 'yes')")
    try:
        return bool(spark.table(name).first()[0] == 0)
    finally:
        spark.sql(f"DROP TABLE {name}")


def other_threads_find_no_source(spark: Any) -> bool:
    errors: list[str] = []

    def write() -> None:
        try:
            spark.range(1).write.format("rowsieve").mode("append").save("/nonexistent/table")
        except Exception as error:
            errors.append(str(error))

    thread = Thread(target=write)
    thread.start()
    thread.join()
    return any("DATA_SOURCE_NOT_FOUND" in error for error in errors)


def _read(
    spark: Any, columns: Mapping[str, list[Any]], *names: str, where: str = "true"
) -> dict[str, list[Any]]:
    """Columns of a Parquet file, as Spark's own reader reads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "file.parquet"))
        pq.write_table(pa.table(columns), path)
        frame = spark.read.parquet(path).filter(where)
        selected = [each if each == "*" else frame[each] for each in names]
        read: dict[str, list[Any]] = frame.select(*selected).toArrow().to_pydict()
        return read


def comparisons_of_local_times_miss_one_hour(spark: Any) -> bool:
    first = int(datetime(2024, 10, 27, 0, 30, tzinfo=UTC).timestamp())
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        frame = spark.range(2).selectExpr(f"timestamp_seconds({first} + id * 3600) AS t")
        same = "CAST(t AS TIMESTAMP_NTZ) = TIMESTAMP_NTZ '2024-10-27 02:30:00'"
        return len(frame.where(same).collect()) != 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


def negation_rounds_long_decimals(spark: Any) -> bool:
    number = "12345678901234567890123456789012345678"
    row = spark.range(1).selectExpr(f"-CAST('{number}' AS DECIMAL(38,0)) AS d").first()
    return str(row.d) != f"-{number}"


def whole_numbers_are_compared_without_null(spark: Any) -> bool:
    frame = spark.sql("SELECT CAST(NULL AS BIGINT) AS x")
    return bool(frame.where("x < 9223372036854775808").collect())


def streams_of_timestamps_fail(spark: Any) -> bool:
    frame = spark.sql("SELECT TIMESTAMP '2020-01-01' AS t")
    return raises("", lambda: pa.table(frame))


def continuous_streams_lose_rows(spark: Any) -> bool:
    from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

    class Writer(DataSourceStreamWriter):
        def __init__(self, folder: str) -> None:
            self.folder = Path(folder)

        def write(self, iterator: Any) -> WriterCommitMessage:
            (self.folder / "written").touch()
            return WriterCommitMessage()

        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803 - Spark's name
            (self.folder / "committed").touch()

    class Sink(DataSource):
        @classmethod
        def name(cls) -> str:
            return "marking_rows"

        def streamWriter(self, schema: Any, overwrite: bool) -> Writer:  # noqa: N802 - Spark's name
            return Writer(self.options["folder"])

    spark.dataSource.register(Sink)
    with tempfile.TemporaryDirectory() as folder:
        writer = spark.readStream.format("rate").load().writeStream.format("marking_rows")
        writer = writer.option("checkpointLocation", f"{folder}/checkpoint")
        query = writer.option("folder", folder).trigger(continuous="100 milliseconds").start()
        try:
            while not Path(folder, "committed").exists() and query.isActive:
                query.awaitTermination(0.1)
        finally:
            query.stop()
        return not Path(folder, "written").exists()


_READS: Final = "rowsieve.providers.spark.reads"


def _row(probe: Probe, does: str, *here: str) -> Fault:
    return Fault("pyspark", does, here, probe)


FAULTS: Final = (
    _row(
        pushed_filters_leak,
        "(4.1 to 4.3) keeps the filters that were pushed into a Python source for its other scans, "
        "which lose rows. Our source accepts none: `where` prunes, and `to_spark` lets Spark read "
        "files itself.",
        "rowsieve.providers.spark.source:RowsieveReader",
    ),
    _row(
        old_bounds_are_shifted,
        "hands a bound of October 1582, and some instants before 1900, to its Parquet reader as "
        "another one, which skips row groups with matching rows. Columns with such values are "
        "hidden from the reader, except in conditions with other bounds.",
        "rowsieve.providers.spark.jvm.old_times_rule:hidden_from_reader",
    ),
    _row(
        names_are_substituted,
        "replaces `${…}` in names of columns of a file by settings, and reads NULL. Our source "
        "reads files with such a name.",
        f"{_READS}.file_names:is_misread",
    ),
    _row(
        negative_zero_is_not_zero,
        "skips a row group whose dictionary has -0.0 for the condition `x = 0.0`. Columns of "
        "floats that Spark reads itself have no dictionary.",
        "rowsieve.storage.parts.part_file:FileOptions",
    ),
    _row(
        bounds_without_nan_skip_rows,
        "skips row groups by bounds without NaN, which it takes for the greatest number. Our "
        "files have no statistics of columns with NaN.",
        "rowsieve.storage.parts.part_writer:_nan_columns",
    ),
    _row(
        named_tables_lose_their_options,
        "keeps the options of `CREATE TABLE … USING` from a Python source when the table is read. "
        "They stand in the metadata of its columns.",
        "rowsieve.providers.spark.source:_reader_of_catalog",
    ),
    _row(
        other_threads_find_no_source,
        "finds no Python source for `df.write` in a thread that is not the main one "
        "(`DATA_SOURCE_NOT_FOUND`). `write_spark` works there.",
        "rowsieve.providers.spark.frames:_activate",
    ),
    _row(
        comparisons_of_local_times_miss_one_hour,
        "compares instants for `CAST(t AS TIMESTAMP_NTZ) = …`, and finds one of the two hours "
        "where a clock is set back. Such a condition is refused.",
        "rowsieve.bridges.differences.repeated_times:_compares_repeated",
    ),
    _row(
        negation_rounds_long_decimals,
        "rounds the negative and the absolute value of a decimal of more than 34 digits. Such a "
        "condition is refused.",
        "rowsieve.bridges.differences.differing_numbers:_long_sign",
    ),
    _row(
        whole_numbers_are_compared_without_null,
        "replaces the comparison of an integer with a constant outside of 64 bits by TRUE or "
        "FALSE, also for NULL. Such a condition is refused.",
        "rowsieve.bridges.sql.spark.types.numbers_and_times:check_whole_numbers",
    ),
    _row(
        streams_of_timestamps_fail,
        "(4.1 to 4.3) fails in the Arrow stream of a DataFrame with timestamps. We collect "
        "the rows by `toArrow`.",
        "rowsieve.changes.data.spark_data:from_spark_frame",
    ),
    _row(
        continuous_streams_lose_rows,
        "hands no rows to a Python sink of a stream with `trigger(continuous=...)`, and notes them "
        "as written. Our sink refuses each batch, which Spark logs.",
        "rowsieve.providers.spark.writes.stream_sink:_check_all_written",
    ),
)
