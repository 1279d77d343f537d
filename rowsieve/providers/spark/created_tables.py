"""`CREATE TABLE … USING rowsieve` with columns or a query, in our `sql`.

Spark gives a Python source neither the path nor the options of a table of its catalog, so it cannot
write the rows itself. Here Spark's parser reads the statement, a write creates the table with all
its rows in one commit, and then Spark's catalog gets a name for its version. Without columns and
query the statement names a table that exists, and Spark runs it.

Soundness: a part of the statement that would be ignored is refused before anything is written, and
so is a type that a table cannot keep, such as text with a collation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql.types import StructType

from rowsieve.bridges.sql.constraint_actions import AddConstraint, numbered
from rowsieve.changes.data.spark_data import refuse_spark_types
from rowsieve.errors import InvalidInput, TableExists, UnsupportedOperation
from rowsieve.providers.spark.job_errors import own_error
from rowsieve.providers.spark.plans import (
    class_of,
    empty_frame,
    frame_of,
    items,
    parsed_plan,
)
from rowsieve.providers.spark.row_types import arrow_schema_of
from rowsieve.providers.spark.text_literals import text_literal
from rowsieve.statements.parse_statement import split_verb
from rowsieve.statements.query_words import may_use_rowsieve

_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."
_SOURCE: Final = "rowsieve"
_KEY: Final = "PrimaryKeyConstraint"
_CHECK: Final = "CheckConstraint"
_OF_TABLE: Final = frozenset({"key", "sequence"})
_PLAIN_METADATA: Final = frozenset({"comment"})


def create_table(session: Any, statement: str) -> bool:
    """Run a statement that creates a table of ours with columns or a query; False for others."""
    if split_verb(statement)[0] not in ("CREATE", "REPLACE"):
        return False
    if not (may_use_rowsieve(statement) and hasattr(session, "_jsparkSession")):
        return False
    plan = parsed_plan(session, statement)
    kind = class_of(plan).removeprefix(_LOGICAL)
    if kind not in ("CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"):
        return False
    spec = plan.tableSpec()
    if not spec.provider().isDefined() or str(spec.provider().get()).lower() != _SOURCE:
        return False
    if kind == "CreateTable" and not items(plan.columns()):
        return False  # a name for a table that exists
    name = ".".join(f"`{part.replace('`', '``')}`" for part in items(plan.name().nameParts()))
    if kind.startswith("Replace"):
        raise UnsupportedOperation(
            "CREATE TABLE ... USING rowsieve does not take OR REPLACE with a path; nothing was "
            "created. Write INSERT OVERWRITE rowsieve.`/path`, or CREATE OR REPLACE TABLE "
            "rowsieve.`/path`"
        )
    refuse_others(plan, spec)
    if checks_of(spec):
        raise UnsupportedOperation(
            "CREATE TABLE ... USING rowsieve with a path does not take CHECK; nothing was created. "
            "Add it later: sql(spark, 'ALTER TABLE rowsieve.`/path` ADD CONSTRAINT name CHECK "
            "(...)'), or create the table in a catalog"
        )
    options = _options(spec)
    path = options.pop("path")
    if session.catalog.tableExists(name):
        if plan.ignoreIfExists():
            return True
        raise TableExists(f"create_table: {name} already exists in Spark's catalog")
    query = plan.query() if kind == "CreateTableAsSelect" else None
    frame = created_rows(session, plan, kind, query)
    arrow_schema_of(frame.schema)  # refuses a type that a table cannot keep, by the column
    write_new(frame, path, options)
    session.sql(f"CREATE TABLE {name} USING {_SOURCE} OPTIONS (path {text_literal(path)})")
    return True


def refuse_others(plan: Any, spec: Any) -> None:
    """Refuse the parts of a statement that have no meaning for our tables."""
    others = {
        "PARTITIONED BY, CLUSTERED BY; give the option property.cluster_by": bool(
            items(plan.partitioning())
        ),
        "COMMENT; set it by the table's methods": spec.comment().isDefined(),
        "DEFAULT COLLATION: text of a table is compared by its bytes": (
            spec.collation().isDefined() and str(spec.collation().get()) != "UTF8_BINARY"
        ),
    }
    for part, is_given in others.items():
        if is_given:
            raise UnsupportedOperation(
                f"CREATE TABLE ... USING rowsieve does not take {part}; nothing was created"
            )


def creation_options(spec: Any) -> dict[str, str]:
    """The options of a statement that creates a table, with its path if it has one.

    Table properties are options `property.NAME`; `key` and `sequence` may be among them.
    """
    options = {
        str(pair._1()).lower(): str(pair._2().eval(None)) if hasattr(pair._2(), "eval") else ""
        for pair in items(spec.optionExpression().options())
    }
    if spec.location().isDefined():
        options["path"] = str(spec.location().get())
    of_key = {"PRIMARY KEY": {"key": key} if (key := _primary_key(spec)) is not None else {}}
    for words, more in {**of_key, "TBLPROPERTIES": _properties(spec)}.items():
        if twice := options.keys() & more.keys():
            raise InvalidInput(
                f"CREATE TABLE: give the option {min(twice)} or {words}; nothing was created"
            )
        options |= more
    return options


def _properties(spec: Any) -> dict[str, str]:
    """What TBLPROPERTIES give, as options."""
    pairs = {str(pair._1()): str(pair._2()) for pair in items(spec.properties().toSeq())}
    return {
        name.lower()
        if name.lower() in _OF_TABLE
        else f"property.{name.removeprefix('property.')}": text
        for name, text in pairs.items()
    }


def _primary_key(spec: Any) -> str | None:
    """The columns of PRIMARY KEY, as the option `key` has them; None without one."""
    keys = [each for each in items(spec.constraints()) if class_of(each).endswith(_KEY)]
    return json.dumps([str(column) for column in items(keys[0].columns())]) if keys else None


def checks_of(spec: Any) -> list[AddConstraint]:
    """The CHECK constraints of a statement; UnsupportedOperation for others but PRIMARY KEY."""
    checks = []
    for each in items(spec.constraints()):
        if class_of(each).endswith(_KEY):
            continue
        if not class_of(each).endswith(_CHECK):
            raise UnsupportedOperation(
                "CREATE TABLE ... USING rowsieve does not take UNIQUE and FOREIGN KEY: a table has "
                "one key, and a constraint is a condition on one row; nothing was created"
            )
        name = str(each.userProvidedName() or "")
        checks.append(AddConstraint(name or "check", str(each.condition()), "spark", bool(name)))
    return numbered(checks)


def _options(spec: Any) -> dict[str, str]:
    """The options of the write that creates the table, with its path."""
    options = creation_options(spec)
    if not options.get("path"):
        raise InvalidInput(
            "CREATE TABLE ... USING rowsieve: the table is not named, and nothing was created; add "
            "OPTIONS (path '...') or LOCATION '...'"
        )
    options.setdefault("key", "")
    return options


def created_rows(session: Any, plan: Any, kind: str, query: Any) -> Any:
    """The rows of the query, or none with the columns of the statement."""
    if kind.endswith("AsSelect"):
        return frame_of(session, query)
    schema = StructType.fromJson(json.loads(str(plan.tableSchema().json())))
    for column in schema:
        if set(column.metadata or {}) - _PLAIN_METADATA:
            raise UnsupportedOperation(
                f"CREATE TABLE ... USING rowsieve: the column {column.name!r} has a default or is "
                "computed, which Spark alone would apply; nothing was created"
            )
    refuse_spark_types(schema, "CREATE TABLE")
    return empty_frame(session, schema)


def write_new(frame: Any, path: str, options: Mapping[str, str]) -> None:
    """Create the table with the rows of the frame; TableExists if there is one."""
    writer = frame.write.format(_SOURCE).mode("append").options(if_exists="error", **options)
    try:
        writer.save(path)
    except Exception as error:
        if (known := own_error(error, f"CREATE TABLE at {path}")) is not None:
            raise known from error
        raise
