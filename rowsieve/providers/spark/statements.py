"""SQL in Spark over a catalog: statements on procedures, and temporary views of its tables."""

from __future__ import annotations

from typing import Any

from rowsieve.errors import InvalidInput
from rowsieve.procedures.call_statement import classify
from rowsieve.providers.spark.procedure_engine import SparkEngine
from rowsieve.providers.spark.reads.pruning import pruned


def sql(spark: Any, statement: str, catalog: Any = None) -> Any:
    """Run a statement; return a Spark DataFrame.

    CALL, ALTER TABLE … EXECUTE, SHOW PROCEDURES and DESCRIBE PROCEDURE run in `catalog`, a
    `rowsieve.Catalog`, with their tasks on the session's workers; filters are Spark SQL. Spark runs
    every other statement, and queries are pruned as `prune` does it.
    """
    if not hasattr(spark, "sql"):
        raise InvalidInput(f"sql: spark must be a SparkSession, not {type(spark).__name__}")
    if not isinstance(statement, str):
        raise InvalidInput(f"sql: a statement is text, not {type(statement).__name__}")
    if classify(statement) is None:
        return pruned(spark.sql(statement))
    if catalog is None:
        raise InvalidInput(
            "sql: a statement on procedures needs a catalog; give rowsieve.Catalog(uri) as catalog"
        )
    rows = catalog.call(statement, engine=SparkEngine(spark), dialect="spark")
    return spark.createDataFrame(rows)


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
