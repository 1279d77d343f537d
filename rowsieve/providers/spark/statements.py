"""SQL in Spark over a catalog: procedures, tables to create, and temporary views of its tables."""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql.types import StructType

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.procedures.bound_call import named_catalog
from rowsieve.providers.spark.created_tables import create_table
from rowsieve.providers.spark.job_errors import condition_of, error_from_worker
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.providers.spark.reads.pruning import pruned
from rowsieve.providers.spark.writes.statement_changes import change_view
from rowsieve.statements.calls import Call, CallStatement, ExplainCall
from rowsieve.statements.parse_statement import Statement, parse, split_verb
from rowsieve.statements.query_words import RETURNING
from rowsieve.statements.refused import Refused

_DIALECT: Final = "spark"

_NO_STATEMENT: Final = "PARSE_SYNTAX_ERROR"
_VIEW_CHANGES: Final = frozenset({"DELETE", "UPDATE", "MERGE", "WITH"})
_CHANGES: Final = frozenset({"DELETE", "UPDATE", "MERGE", "INSERT", "TRUNCATE", "ALTER"})
_CANNOT_CHANGE: Final = frozenset(
    {"INTERNAL_ERROR", "UNSUPPORTED_FEATURE", "UNSUPPORTED_INSERT", "EXPECT_TABLE_NOT_VIEW"}
)
"""Spark's error conditions for a statement that does not change a table of its catalogs."""


def sql(spark: Any, statement: str, catalog: Any = None) -> Any:
    """Run a statement; return a Spark DataFrame.

    CALL, ALTER TABLE … EXECUTE, SHOW PROCEDURES and DESCRIBE PROCEDURE run in `catalog`, a
    `rowsieve.Catalog`, with their tasks on the session's workers; filters are Spark SQL. CREATE
    TABLE … USING rowsieve with columns or a query creates the table at its path, with the options
    of a write, and its name. MERGE, UPDATE and DELETE on a view of a whole table change the table
    in one commit, which the view then shows. Spark runs every other statement, also a call that
    names one of its own catalogs, and queries are pruned as `prune` does it.
    """
    if not hasattr(spark, "sql"):
        raise InvalidInput(f"sql: spark must be a SparkSession, not {type(spark).__name__}")
    if not isinstance(statement, str):
        raise InvalidInput(f"sql: a statement is text, not {type(statement).__name__}")
    call = parse(statement, _DIALECT)
    if not isinstance(call, CallStatement):
        changes = split_verb(statement)[0] in _VIEW_CHANGES
        if create_table(spark, statement) or (changes and change_view(spark, statement)):
            return spark.createDataFrame([], StructType([]))
        return pruned(_run(spark, statement, call))
    if _is_for_spark(spark, call, catalog):
        return spark.sql(statement)
    if catalog is None:
        raise InvalidInput(
            "sql: a statement on procedures needs a catalog; give rowsieve.Catalog(uri) as catalog"
        )
    rows = catalog.call(statement, engine=SparkEngine(spark), dialect=_DIALECT)
    return spark.createDataFrame(rows)


def _is_for_spark(spark: Any, statement: CallStatement, catalog: Any) -> bool:
    """Return whether a call names a catalog that the session has, such as one of Iceberg."""
    call = statement.call if isinstance(statement, ExplainCall) else statement
    if not isinstance(call, Call):
        return False
    name = call.catalog if catalog is None else named_catalog(catalog.procedures, call)
    return name is not None and spark.conf.get(f"spark.sql.catalog.{name}", None) is not None


def _run(spark: Any, statement: str, parsed: Statement) -> Any:
    """Run a statement in Spark; our error if our source refuses it, or Spark a change of ours."""
    try:
        return spark.sql(statement)
    except Exception as error:
        if (own := error_from_worker(str(error))) is not None:
            raise own from error
        if isinstance(parsed, Refused) and condition_of(error) == _NO_STATEMENT:
            raise parsed.error from error
        if _is_change(error, statement):
            raise UnsupportedOperation(
                "sql: Spark does not change this table or view, and has no RETURNING. MERGE, "
                "UPDATE and DELETE change a table by a temporary view of all its columns and rows; "
                "otherwise use a method of the table: delete, update, write_spark or merge_spark"
            ) from error
        raise


def _is_change(error: Exception, statement: str) -> bool:
    """Return whether Spark refused a change of a view, or a RETURNING, which it does not have."""
    if split_verb(statement)[0] not in _CHANGES:
        return False
    condition = (condition_of(error) or "").partition(".")[0]
    if condition == _NO_STATEMENT:
        return RETURNING.search(statement) is not None
    return condition in _CANNOT_CHANGE


def create_views(spark: Any, catalog: Any, namespace: str | None = None) -> dict[str, str]:
    """Create or replace a temporary view of every table; return the tables by view.

    The view of `db.flights` is `db_flights`; with `namespace` it is `flights`, of only this
    namespace. Each view reads the version that is the newest now; call again for a newer one.
    """
    tables = catalog.tables(namespace)
    views = {
        name.partition(".")[2] if namespace is not None else name.replace(".", "_"): name
        for name in tables
    }
    if len(views) < len(tables):
        names = [name.replace(".", "_") for name in tables]
        twice = next(view for view in names if names.count(view) > 1)
        raise InvalidInput(
            f"create_views: two tables would have the view {twice}; create views of one namespace"
        )
    for view, name in views.items():
        catalog.open_table(name).to_spark(spark).createOrReplaceTempView(f"`{view}`")
    return views
