"""INSERT INTO and INSERT OVERWRITE: Spark reads the query, and we write its rows in one commit.

Values are cast as Spark stores them in a column: without loss, or with an error (ANSI), under all
settings of the session. Into a table with a key a row is inserted only if its key is new.

Soundness: an INSERT whose query reads the table itself is refused, because the rows that it read
might be changed before the commit; MERGE is made again then.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions
from pyspark.sql.types import DayTimeIntervalType, StructType

from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.changes.data.spark_data import refuse_spark_types
from rowsieve.errors import InvalidInput, SchemaMismatch, UnsupportedOperation
from rowsieve.providers.spark.frames import check_rows, write_frame
from rowsieve.providers.spark.plans import class_of, frame_of, items
from rowsieve.providers.spark.reads.marked_reads import PREFIX, read_named
from rowsieve.providers.spark.reads.native_columns import quoted
from rowsieve.providers.spark.row_types import arrow_schema_of, to_spark
from rowsieve.providers.spark.writes.batch_tokens import labels_of
from rowsieve.providers.spark.writes.clauses import Aliases
from rowsieve.providers.spark.writes.merge_frame import SourceMerge, merge_source
from rowsieve.statements.merge_statement import Action, MergeClause, When
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.logical import Interval
from rowsieve.types.stored_defaults import constant

if TYPE_CHECKING:
    from rowsieve.table import Table
    from rowsieve.types.schema import Schema

_ALIAS: Final = "org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias"
_QUERIES: Final = frozenset({"ScalarSubquery", "ListQuery", "Exists"})
_KEY_EXISTS: Final = (  # Spark's error ends with this text, from which we make ours
    "rowsieve.errors.KeyViolation: INSERT: the table has a row with the key ({names}) of a row of "
    "the query; nothing was inserted. MERGE INTO ... WHEN MATCHED THEN UPDATE replaces it: "
)


def insert(session: Any, table: Table, statement: Any, query: Any) -> None:
    """Insert the rows of a query, as the statement says."""
    _check_clauses(statement)
    frame = frame_of(session, query)
    check_rows(frame, "INSERT")
    refuse_own_rows(table, frame)
    rows = _stored(table, statement, frame)
    if statement.overwrite():
        write_frame(table, rows, "overwrite", _replaced(statement))
    elif not table.key:
        write_frame(table, rows, "append")
    else:
        with labels_of(table, session, "insert", None, None) as labels:
            merge_source(table, _new_keys(table, rows), RETRY_TIMEOUT_S, labels)


def refuse_own_rows(table: Table, frame: Any) -> None:
    """Refuse a query that reads the table into which its rows go."""
    if table.handle.pinned.table.uuid in set(_tables_read(frame)):
        raise UnsupportedOperation(
            "sql: INSERT from a query that reads the same table is not available, because its rows "
            "may change meanwhile; nothing was changed. Write MERGE, UPDATE or DELETE"
        )


def _check_clauses(statement: Any) -> None:
    """Refuse the parts of an INSERT that have no meaning for our tables."""
    others = {
        "PARTITION": bool(statement.partitionSpec().size()) or statement.ifPartitionNotExists(),
        "WITH SCHEMA EVOLUTION; add the columns with ALTER TABLE": statement.withSchemaEvolution(),
    }
    for clause, is_given in others.items():
        if is_given:
            raise UnsupportedOperation(
                f"sql: INSERT does not take {clause}; nothing was changed. Tables here have no "
                "partitions: INSERT INTO ... REPLACE WHERE replaces the rows of a condition"
            )


def _replaced(statement: Any) -> str | None:
    """The condition of REPLACE WHERE; None for an overwrite of all rows."""
    criteria = statement.replaceCriteriaOpt()
    if not criteria.isDefined():
        return None
    if not class_of(replacement := criteria.get()).endswith("InsertReplaceWhere"):
        raise UnsupportedOperation(
            f"sql: INSERT with {replacement} is not available; nothing was changed. Write MERGE"
        )
    condition = replacement.cond()
    if _has_query(condition):
        raise UnsupportedOperation(
            "sql: REPLACE WHERE takes a condition on the columns of the table, without a query; "
            "nothing was changed. Run the query first, and write its values"
        )
    return str(condition.sql())


def _has_query(expression: Any) -> bool:
    """Whether a subquery is part of an expression as the parser returns it."""
    return class_of(expression).rpartition(".")[2] in _QUERIES or any(
        map(_has_query, items(expression.children()))
    )


def _stored(table: Table, statement: Any, frame: Any) -> Any:
    """The rows with the columns and the types of the table."""
    columns: StructType = spark_schema(table.handle.pinned.schema)
    names = _given_names(statement, columns, frame)
    named = frame.toDF(*names)
    refuse_spark_types(named.schema, "sql: INSERT")
    schema = table.handle.pinned.schema
    _refuse_intervals(schema, named)
    if others := tuple(name for name in schema.names if name not in names):
        named = named.crossJoin(_defaults(frame.sparkSession, schema.select(others)))
    try:
        return named.to(columns.toNullable())
    except PySparkException as error:
        first = next((line for line in str(error).splitlines() if line), "")
        raise SchemaMismatch(
            f"sql: INSERT: nothing was changed; cast the value: {first}"
        ) from error


def _refuse_intervals(schema: Schema, rows: Any) -> None:
    """Refuse intervals: such a column is binary to Spark, which casts no interval to it."""
    for column in rows.schema:
        is_interval = isinstance(column.dataType, DayTimeIntervalType)
        if is_interval and isinstance(schema.field(column.name).type, Interval):
            raise UnsupportedOperation(
                f"sql: INSERT of an interval into the column {column.name!r} is not available, "
                "because Spark reads such a column as binary; nothing was changed. Write a "
                "DataFrame with Table.write_spark"
            )


def _defaults(session: Any, schema: Schema) -> Any:
    """A frame of one row: the defaults of these columns.

    They are converted as rows are read. PySpark's `lit` takes a time without a zone for one in the
    zone of this process, and has no UUID.
    """
    types = spark_schema(schema).toNullable()
    values = [pa.repeat(constant(field.default, field.type), 1) for field in schema]
    row = pa.RecordBatch.from_arrays(values, schema=arrow_schema(schema))
    row = to_spark(row, schema, arrow_schema_of(types))
    return session.createDataFrame(pa.Table.from_batches([row]), types)


def _given_names(statement: Any, columns: StructType, frame: Any) -> list[str]:
    """The columns of the table that the columns of the query are for, in the query's order."""
    listed = [str(name) for name in items(statement.userSpecifiedCols())]
    query_names = frame.columns if statement.byName() else listed or columns.names
    names: list[str] = []
    for name in query_names:
        matching = [name] if name in columns.names else _folded(columns.names, name)
        if len(matching) != 1:
            raise SchemaMismatch(
                f"sql: INSERT: the table has no column {name!r}, but ({', '.join(columns.names)})"
            )
        names += matching
    if len(set(names)) < len(names):
        raise InvalidInput(f"sql: INSERT names a column twice: {', '.join(names)}")
    if len(frame.columns) != len(names):
        raise SchemaMismatch(
            f"sql: INSERT: the query has {len(frame.columns)} columns for {len(names)} of the "
            f"table ({', '.join(names)}); nothing was changed. Name them: INSERT INTO t (a, b)"
        )
    return names


def _folded(names: list[str], name: str) -> list[str]:
    return [each for each in names if each.lower() == name.lower()]


def _new_keys(table: Table, rows: Any) -> SourceMerge:
    """The merge that inserts rows, and fails for a key that the table has."""
    names = ", ".join(table.key)
    texts = [
        functions.concat_ws(
            ", ", *[functions.col(f"source.{quoted(name)}").cast("string") for name in table.key]
        )
    ]
    refusal = functions.raise_error(
        functions.concat(functions.lit(_KEY_EXISTS.format(names=names)), *texts)
    )
    clauses = [
        MergeClause(When.MATCHED, 1, Action.DELETE, None, refusal),
        MergeClause(When.NOT_MATCHED, 1, Action.INSERT, None, None),
    ]
    on = {name: name for name in table.key}
    return SourceMerge(lambda _: rows, on, clauses, Aliases(), depends_on_version=False)


def _tables_read(frame: Any) -> Iterator[str]:
    """The identities of our tables that a frame reads, also in its subqueries and views."""
    plan = frame._jdf.queryExecution().analyzed()
    for each in (plan, *items(plan.subqueriesAll())):
        stack = [each]
        while stack:
            node = stack.pop()
            if class_of(node) == _ALIAS and str(node.alias()).startswith(PREFIX):
                mark = read_named(str(node.alias()))
                if mark is not None:
                    yield mark.table_uuid
            stack += items(node.children())
