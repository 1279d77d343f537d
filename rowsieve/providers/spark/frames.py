"""Implements `table.to_spark` and `table.write_spark`.

Both check their arguments in this process first, so errors are ours, not Spark's report of a
worker's error. A write range-partitions and sorts the rows by key, unless the caller says that
they are so already (`one_pass.py`): each task then writes one range of keys, and the commit proves
from the ranges that no key is repeated, without reading keys.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql.types import StructType

from rowsieve.arguments.annotations import Metadata, Token
from rowsieve.bridges.spark_columns import is_spark_column
from rowsieve.bridges.spark_columns.java_classes import spark_class
from rowsieve.bridges.spark_columns.sessions import using
from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.change_feed.feed_columns import feed_schema
from rowsieve.changes.change import nothing_done
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.executor.read_settings import ReadSwitches
from rowsieve.flags.flag import FLAGS, text_of
from rowsieve.flags.resolution import FlagSource
from rowsieve.providers.spark.job_errors import own_error
from rowsieve.providers.spark.option_values import check_reachable, predicate_option
from rowsieve.providers.spark.reads.feed_options import FeedOptions
from rowsieve.providers.spark.reads.feed_reads import pin_feed
from rowsieve.providers.spark.reads.hybrid import hybrid_frame
from rowsieve.providers.spark.reads.planned_source import planned_frame
from rowsieve.providers.spark.reads.routes import ALL_ROUTES
from rowsieve.providers.spark.reads.spark_read import SparkRead
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.session_settings import semantics_of_session
from rowsieve.providers.spark.source import check_read
from rowsieve.providers.spark.source_options import MODES, ReadOptions, WriteOptions
from rowsieve.providers.spark.store_options import passed_on
from rowsieve.providers.spark.writes.batch_tokens import Labels, labels_of
from rowsieve.providers.spark.writes.input_order import tasks_are_in_order
from rowsieve.providers.spark.writes.write_tasks import RowsieveWriter
from rowsieve.storage.log.log_entry import Commit
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from rowsieve.table import Table


def read_frame(table: Table, spark: Any, where: Any, columns: Sequence[str] | None) -> Any:
    """A DataFrame of the version that the table has pinned; Spark reads clean files itself."""
    return hybrid_frame(spark_read(table, spark, where, columns), ALL_ROUTES)


def read_planned(table: Table, spark: Any, where: Any, columns: Sequence[str] | None) -> Any:
    """A DataFrame of a table without a log, which only this process can open."""
    return planned_frame(spark_read(table, spark, where, columns))


def spark_read(
    table: Table,
    spark: Any,
    where: Any,
    columns: Sequence[str] | None,
    spark_path: str | None = None,
) -> SparkRead:
    """Check a read of the version that the table has pinned.

    SQL text and Spark Columns use the session's current settings, as in Spark's own `where`. Any
    other condition is sent as a predicate tree with its own semantics.
    """
    check_reachable(table.uri)
    if not hasattr(spark, "read"):
        raise InvalidInput(f"to_spark: spark must be a SparkSession, not {type(spark).__name__}")
    if isinstance(columns, str):
        raise InvalidInput(f"columns= must be a list of names, not the text {columns!r}")
    options = {"version": str(table.version), **passed_on(table.handle.storage_options)}
    schema = table.handle.pinned.schema
    options |= _condition_options(spark, where, schema, "where")
    if columns is not None:
        options["columns"] = msgspec.json.encode(list(columns)).decode()
    options |= _process_switches(table)
    checked = ReadOptions.parse({"path": table.uri, **options})
    check_read(checked, schema)
    is_sparks = isinstance(where, str) or is_spark_column(where)
    return SparkRead(
        table,
        spark,
        options,
        checked,
        where=where if is_sparks else None,
        foreign_condition=where is not None and not is_sparks,
        spark_path=spark_path,
    )


def changes_frame(
    table: Table,
    spark: Any,
    versions: range,
    where: Any,
    columns: Sequence[str] | None,
    *,
    net: bool,
) -> Any:
    """A DataFrame of the change feed of some versions, the last of which the table has pinned.

    Conditions follow the session's current settings, as in `spark_read`.
    """
    check_reachable(table.uri)
    target = table.handle.pinned
    options = {
        "readChangeFeed": "true",
        "startingVersion": str(versions.start),
        "endingVersion": str(target.version),
        **passed_on(table.handle.storage_options),
        **_condition_options(spark, where, feed_schema(target), "where"),
    }
    if net:
        options["netChanges"] = "true"
    if columns is not None:
        options["columns"] = msgspec.json.encode(list(columns)).decode()
    pin_feed(FeedOptions.parse({"path": table.uri, **_lower(options)}))
    return spark.read.format("rowsieve").options(**options).load(table.uri)


def _lower(options: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in options.items()}


def _condition_options(spark: Any, where: Any, schema: Schema, text: str) -> dict[str, str]:
    """The options of a condition; SQL text of Spark is passed as the option `text`."""
    if where is None:
        return {}
    if isinstance(where, str):
        semantics = semantics_of_session(spark, where, schema)
        return {
            text: where,
            "time_zone": semantics.time_zone,
            "ansi": str(semantics.is_ansi).lower(),
        }
    with using(spark):  # Columns use this session's settings, even if another is active
        predicate = to_predicate(where, "spark", schema)
        return {"predicate": predicate_option(predicate, semantics_of("spark", where))}


def arrow_schema(columns: Any) -> pa.Schema:
    """Convert the schema of a DataFrame, for a new table."""
    return arrow_schema_of(columns)


def write_frame(
    table: Table,
    frame: Any,
    mode: str,
    where: Any = None,
    *,
    presorted: bool | None = None,
    schema_mode: str = "strict",
    token: Token | None = None,
    metadata: Metadata | None = None,
) -> Commit:
    """Write a DataFrame in one commit and pin its version; an empty one commits nothing.

    A write whose token was committed returns that commit. `where` limits an overwrite to the rows
    that match it. `presorted`: the frame is first written without a shuffle, which commits nothing
    if ranges of keys overlap; None: decide by its files. `schema_mode="merge"` adds columns.
    """
    check_reachable(table.uri)
    if mode not in (*MODES, "overwrite"):
        known = ", ".join((*MODES, "overwrite"))
        raise InvalidInput(f"write_spark: mode is one of {known}, not {mode!r}")
    overwrite = mode == "overwrite"
    if where is not None and not overwrite:
        raise InvalidInput(f"write_spark: where= is for mode='overwrite', not {mode!r}; remove it")
    check_rows(frame, "write_spark")
    table.refresh()
    schema = table.handle.pinned.schema
    options = {} if overwrite else {"mode": mode}
    if schema_mode == "merge":
        options["mergeSchema"] = "true"
    options |= _condition_options(frame.sparkSession, where, schema, "replacewhere")
    operation = "delete_keys" if mode == "delete" else mode
    if presorted and not table.key:
        raise InvalidInput("write_spark: presorted= is for tables with a key; leave it out")
    if presorted is None:
        presorted = bool(table.key) and tasks_are_in_order(frame, table.key)
    with labels_of(table, frame.sparkSession, operation, token, metadata) as labels:
        if (done := table.handle.committed_before(labels.token)) is not None:
            return done
        return write_rows(table, frame, operation, options, labels, presorted=presorted)


def check_frame(frame: Any, operation: str) -> None:
    """Raise InvalidInput unless it is a DataFrame, classic or of Spark Connect."""
    if not isinstance(getattr(frame, "schema", None), StructType):
        kind = type(frame).__name__
        raise InvalidInput(f"{operation}: frame must be a Spark DataFrame, not {kind}")


def check_rows(frame: Any, operation: str) -> None:
    """Raise InvalidInput unless it is a DataFrame; UnsupportedOperation if it is a stream."""
    check_frame(frame, operation)
    if frame.isStreaming:
        raise UnsupportedOperation(
            f"{operation}: the frame is a stream; write it with df.writeStream.format('rowsieve')"
        )


def write_rows(
    table: Table,
    frame: Any,
    operation: str,
    how: dict[str, str],
    labels: Labels,
    *,
    presorted: bool = False,
) -> Commit:
    """Write a DataFrame by key with these options; if it is empty, return the newest commit."""
    before, write_id = table.refresh(), uuid.uuid4().hex
    options = {
        "write_id": write_id,
        **how,
        **labels.options(),
        **passed_on(table.handle.storage_options),
    }
    checked = WriteOptions.parse({"path": table.uri, **options})
    overwrite = operation == "overwrite"
    RowsieveWriter.begin(checked, frame.schema, overwrite=overwrite)
    mode = "overwrite" if overwrite else "append"
    _activate(frame.sparkSession)
    passes = [(_by_key(frame, table.key), options)]
    if presorted:
        passes.insert(0, (frame, {**options, "one_pass": "true"}))
    for rows, passed in passes:
        try:
            rows.write.format("rowsieve").mode(mode).options(**passed).save(table.uri)
        except Exception as error:
            if (landed := _find(table, write_id, before)) is not None:
                return landed  # the error occurred after the commit
            if (cause := own_error(error, f"write_spark into {table.uri}")) is not None:
                raise cause from error
            raise
        if (commit := _find(table, write_id, before)) is not None:
            return commit
    if (done := table.handle.committed_before(labels.token)) is not None:
        return done  # by another process, in the meantime
    return nothing_done(operation, table.handle.pinned)


def _activate(spark: Any) -> None:
    """Make this the thread's active session, in which Spark looks up the data source of a write.

    A thread that is not the main one has none, and Spark then finds no source of Python's.
    """
    if hasattr(spark, "_jsparkSession"):  # a client of Spark Connect has a session of its server
        spark_class(spark, "SparkSession").setActiveSession(spark._jsparkSession)


def _by_key(frame: Any, key: Sequence[str]) -> Any:
    if not key:
        return frame
    names = [
        name
        if name in frame.columns
        else next(c for c in frame.columns if c.lower() == name.lower())
        for name in key
    ]
    quoted = [f"`{name.replace('`', '``')}`" for name in names]
    return frame.repartitionByRange(*quoted).sortWithinPartitions(*quoted)


def _find(table: Table, write_id: str, before: int) -> Commit | None:
    """Find the commit of this write among those after version `before`."""
    now = table.refresh()
    for commit in table.history(now - before):
        if commit.metadata.get("write_id") == write_id:
            return commit
    return None


def _process_switches(table: Table) -> dict[str, str]:
    """The flags that this process gives the table, which Spark's workers do not know."""
    return {
        FLAGS[each.name].argument: text_of(each.value)
        for each in ReadSwitches().settings(table.handle.pinned.table).flags
        if each.value != FLAGS[each.name].default and each.source is not FlagSource.PROPERTY
    }
