"""SQL in Spark over a catalog: its tables by name, procedures, and temporary views of tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql.types import StructType

from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.procedures.bound_call import named_catalog
from rowsieve.providers.spark.created_tables import create_table
from rowsieve.providers.spark.job_errors import condition_of, error_from_worker
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.providers.spark.reads.pruning import pruned
from rowsieve.statements.calls import Call, CallStatement, ExplainCall
from rowsieve.statements.parse_statement import Statement, parse, split_verb
from rowsieve.statements.query_words import RETURNING
from rowsieve.statements.refused import Refused

_DIALECT: Final = "spark"

_NO_STATEMENT: Final = "PARSE_SYNTAX_ERROR"
_CHANGES: Final = frozenset({"DELETE", "UPDATE", "MERGE", "INSERT", "TRUNCATE", "ALTER", "WITH"})
_CANNOT_CHANGE: Final = frozenset(
    {
        *("INTERNAL_ERROR", "UNSUPPORTED_FEATURE", "UNSUPPORTED_INSERT", "EXPECT_TABLE_NOT_VIEW"),
        "_LEGACY_ERROR_TEMP_1121",  # a table that "does not support deletes"
    }
)
"""Spark's error conditions for a statement that does not change a table of its catalogs."""
_UNKNOWN_TABLE: Final = frozenset(
    {"TABLE_OR_VIEW_NOT_FOUND", "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY"}
)


def sql(spark: Any, statement: str, catalog: Any = None) -> Any:
    """Run a statement; return a Spark DataFrame.

    `catalog` is a `rowsieve.Catalog`, or several by the names that statements put first. Queries
    and changes may name its tables, `db.t` or `lake.db.t`, and those at a path, ``rowsieve.`/p` ``.
    CALL, ALTER TABLE … EXECUTE, SHOW PROCEDURES and DESCRIBE PROCEDURE run in it, with their tasks
    on the session's workers; filters are Spark SQL. CREATE TABLE … USING rowsieve with a path
    creates the table there and its name in Spark's catalog. INSERT, MERGE, UPDATE and DELETE on a
    view of a whole table change the table in one commit, which the view then shows. Spark runs
    every other statement, also a call that names one of its own catalogs, and queries are pruned
    as `prune` does it. A name that is ours and Spark's is refused.
    """
    if not hasattr(spark, "sql"):
        raise InvalidInput(f"sql: spark must be a SparkSession, not {type(spark).__name__}")
    if not isinstance(statement, str):
        raise InvalidInput(f"sql: a statement is text, not {type(statement).__name__}")
    call = parse(statement, _DIALECT)
    if not isinstance(call, CallStatement):
        if _may_be_named(spark, statement, catalog):
            from rowsieve.providers.spark.named.run_named import run_named  # noqa: PLC0415 - classic

            if (frame := run_named(spark, statement, call, catalog)) is not None:
                return pruned(frame)
        if create_table(spark, statement):
            return spark.createDataFrame([], StructType([]))
        return pruned(_run(spark, statement, call, catalog))
    if _is_for_spark(spark, call, catalog):
        return spark.sql(statement)
    if catalog is None:
        raise InvalidInput(
            "sql: a statement on procedures needs a catalog; give rowsieve.Catalog(uri) as catalog"
        )
    chosen = _catalog_of(call, catalog)
    rows = chosen.call(statement, engine=SparkEngine(spark), dialect=_DIALECT)
    return spark.createDataFrame(rows)


def _may_be_named(spark: Any, statement: str, catalog: Any) -> bool:
    """Return whether a statement may name a table of ours; a client has no parser to find out."""
    if not hasattr(spark, "_jsparkSession"):
        return False
    if split_verb(statement)[0] in _CHANGES:
        return True
    return _may_name_ours(statement, catalog)


def _may_name_ours(statement: str, catalog: Any) -> bool:
    """Return whether a statement may name a table of a Rowsieve catalog, or one at a path."""
    return catalog is not None or "rowsieve" in statement.casefold()


def _catalog_of(statement: CallStatement, catalog: Any) -> Any:
    """The catalog in which a call runs: the only one, or the one that it names."""
    if not isinstance(catalog, Mapping):
        return catalog
    call = statement.call if isinstance(statement, ExplainCall) else statement
    known = ", ".join(catalog)
    name = None
    if isinstance(call, Call):
        names = {named_catalog(each.procedures, call) for each in catalog.values()}
        name = next((each for each in names if each is not None), None)
    if name is None and len(catalog) == 1:
        return next(iter(catalog.values()))
    if name not in catalog:
        what = "names no catalog" if name is None else f"names the catalog {name!r}"
        raise InvalidInput(f"sql: the call {what}; nothing was run. Name one of {known}")
    return catalog[name]


def _is_for_spark(spark: Any, statement: CallStatement, catalog: Any) -> bool:
    """Return whether a call names a catalog that the session has, such as one of Iceberg."""
    call = statement.call if isinstance(statement, ExplainCall) else statement
    if not isinstance(call, Call):
        return False
    catalogs = list(catalog.values()) if isinstance(catalog, Mapping) else [catalog]
    names = {
        call.catalog if each is None else named_catalog(each.procedures, call) for each in catalogs
    }
    of_spark = {
        name
        for name in names - {None}
        if spark.conf.get(f"spark.sql.catalog.{name}", None) is not None
    }
    if isinstance(catalog, Mapping) and (both := of_spark & set(catalog)):
        raise InvalidInput(
            f"sql: {next(iter(both))} is a Rowsieve catalog and one of Spark's; nothing was "
            "run. Give ours another name"
        )
    return bool(of_spark)


def _run(spark: Any, statement: str, parsed: Statement, catalog: Any) -> Any:
    """Run a statement in Spark; our error if our source refuses it, or Spark a change of ours."""
    try:
        return spark.sql(statement)
    except Exception as error:
        if (known := error_from_worker(str(error))) is not None:
            raise known from error
        if isinstance(parsed, Refused) and condition_of(error) == _NO_STATEMENT:
            raise parsed.error from error
        if condition_of(error) in _UNKNOWN_TABLE and _may_name_ours(statement, catalog):
            _refuse_names_of_a_client(spark, error)
        if _is_change(error, statement):
            raise UnsupportedOperation(
                "sql: Spark does not change this table or view, and has no RETURNING. MERGE, "
                "UPDATE and DELETE change a table by a temporary view of all its columns and rows; "
                "otherwise use a method of the table: delete, update, write_spark or merge_spark"
            ) from error
        raise


def _refuse_names_of_a_client(spark: Any, error: Exception) -> None:
    """Raise UnsupportedOperation if the session is a client, in which only Spark's names work."""
    if not hasattr(spark, "_jsparkSession"):
        raise UnsupportedOperation(
            "sql: a client of Spark Connect has no parser to find our tables by their names, and "
            "Spark does not know this one; nothing was run. Query a temporary view: "
            "table.to_spark(spark).createOrReplaceTempView('name'); change the table by its "
            "methods: write_spark, merge_spark, update or delete"
        ) from error


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
