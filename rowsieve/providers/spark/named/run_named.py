"""Runs a statement of Spark's SQL that names a table of ours; others are Spark's, untouched.

Spark's parser reads the statement, and Spark resolves all that is not ours. Commands that Spark's
grammar lacks, such as OPTIMIZE, are read by `rowsieve.statements`. Nothing is run before each name
has turned out to be ours or Spark's, and never both.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from rowsieve.bridges.sql.dialects import dialect_named
from rowsieve.changes.computed import emptied
from rowsieve.errors import TableNotFound, UnsupportedOperation
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES
from rowsieve.properties import settings_among
from rowsieve.providers.spark.frames import read_frame
from rowsieve.providers.spark.named.commands import no_table_of, run_command
from rowsieve.providers.spark.named.definitions import (
    alter_named,
    create_named,
    create_statement,
    drop_named,
    is_source_of_spark,
    kind_of,
    rename_named,
)
from rowsieve.providers.spark.named.inserts import insert
from rowsieve.providers.spark.named.named_reads import RELATION, NamedReads, relation_parts
from rowsieve.providers.spark.named.namespaces import run_on_namespace
from rowsieve.providers.spark.named.table_names import NamedTable, Names, dotted
from rowsieve.providers.spark.plans import class_of, frame_of, items, parsed_plan
from rowsieve.providers.spark.writes.batch_tokens import labels_of
from rowsieve.providers.spark.writes.statement_changes import (
    change_by_plan,
    target_of,
    writable_view,
)
from rowsieve.statements.alter import AlterTable
from rowsieve.statements.calls import name_parts
from rowsieve.statements.parse_statement import Statement
from rowsieve.statements.table_commands import read_table_command

_SETTINGS: Final = pa.schema([("key", pa.string()), ("value", pa.string())])
_CHANGES: Final = frozenset({"MergeIntoTable", "UpdateTable", "DeleteFromTable"})
_CREATES: Final = frozenset(
    {"CreateTable", "CreateTableAsSelect", "ReplaceTable", "ReplaceTableAsSelect"}
)
_KEPT: Final = frozenset(
    {
        *("CreateView", "CreateViewCommand", "CreateV2ViewCommand", "AlterViewAs"),
        *("CacheTable", "CacheTableAsSelect"),
    }
)
"""Statements whose text Spark keeps, and reads again."""
_KEPT_NAMES: Final = frozenset({"SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "RENAME TO"})
"""ALTER TABLE that leaves a name in Spark's catalog readable."""
_ON_TABLE: Final = "named table "
_READ_AS_COLUMN: Final = "DescribeColumn"
"""As Spark reads `DESCRIBE HISTORY db.t`: a column of a table HISTORY."""


def run_named(session: Any, text: str, statement: Statement, catalogs: Any) -> Any | None:
    """Run a statement on tables of ours; return a DataFrame, or None for one that is Spark's."""
    names = Names(session, catalogs)
    command = read_table_command(text, dialect_named("spark"))
    if command is not None and (named := names.find(command.target.parts)) is not None:
        return session.createDataFrame(run_command(session, named, command))
    if isinstance(statement, AlterTable):
        return _altered(session, names, statement)
    try:
        plan = parsed_plan(session, text)
    except PySparkException:  # which Spark raises again
        if command is not None:
            raise no_table_of(command, names) from None
        return None
    kind, reads = kind_of(plan), NamedReads(session, names)
    if command is not None and kind == _READ_AS_COLUMN and not _describes_spark(names, plan):
        raise no_table_of(command, names)
    if kind == "UnresolvedWith" and kind_of(plan.child()) in {*_CHANGES, "InsertIntoStatement"}:
        return _changed_with(session, names, plan)
    if kind == "InsertIntoStatement":
        return _inserted(session, names, reads, plan)
    if kind in _CHANGES:
        return _changed(session, names, reads, plan)
    if kind in _CREATES:
        return _created(session, names, reads, kind, plan)
    try:
        named = _of_table(names, kind, plan)
    except TableNotFound:
        if kind == "DropTable" and plan.ifExists():
            return _nothing(session)
        raise
    if named is not None:
        return _run_on(session, named, kind, plan)
    if (rows := run_on_namespace(names, kind, plan)) is not None:
        return session.createDataFrame(rows) if rows.num_columns else _nothing(session)
    return _queried(session, names, reads, kind, plan)


def _queried(session: Any, names: Names, reads: NamedReads, kind: str, plan: Any) -> Any | None:
    """Run a query, or a statement with one, whose tables are partly ours."""
    if kind == "ExplainCommand":
        _check_explained(names, plan.logicalPlan())
        changed = reads.inside(reads.changed(plan))
    else:
        changed = reads.changed(plan)
    if not reads.count:
        return None
    if kind in _KEPT:
        raise UnsupportedOperation(
            "sql: Spark keeps the text of a view or a cached table, which would not find our "
            "tables; nothing was created. Make a temporary view of a frame: "
            "sql(spark, 'SELECT ...', catalog).createOrReplaceTempView('name')"
        )
    return frame_of(session, changed)


def _check_explained(names: Names, plan: Any) -> None:
    """Refuse EXPLAIN of a statement that changes a table of ours: Spark has no plan for it."""
    if kind_of(plan) == "UnresolvedWith":
        plan = plan.child()
    if kind_of(plan) == "InsertIntoStatement":
        target = plan.table()
    elif kind_of(plan) in _CHANGES:
        target = target_of(plan)
    else:
        return
    relation = target.child() if kind_of(target) == "SubqueryAlias" else target
    if (named := _of_relation(names, relation)) is not None:
        raise UnsupportedOperation(
            f"sql: EXPLAIN of a change of {named.name} is not available; nothing was changed. "
            "EXPLAIN SELECT with its condition shows how its rows are read"
        )


def _inserted(session: Any, names: Names, reads: NamedReads, plan: Any) -> Any | None:
    target = plan.table()
    named = _of_relation(names, target)
    if named is not None:
        _check_table(named, "INSERT")
        insert(session, named.table, plan, reads.changed(plan.query()))
        return _nothing(session)
    if (view := writable_view(session, target)) is not None:
        try:
            insert(session, view.table, plan, reads.changed(plan.query()))
        finally:
            view.show()
        return _nothing(session)
    changed = reads.inside(plan)
    return frame_of(session, changed) if reads.count else None


def _changed(session: Any, names: Names, reads: NamedReads, plan: Any) -> Any | None:
    """Run a MERGE, UPDATE or DELETE: on a table of ours by a temporary view of it."""
    target = target_of(plan)
    relation = target.child() if kind_of(target) == "SubqueryAlias" else target
    named = _of_relation(names, relation)
    if named is None:
        changed = reads.inside(plan) if writable_view(session, target) is not None else plan
        return _nothing(session) if change_by_plan(session, changed) else None
    _check_table(named, "a change")
    with _viewed(session, named) as view:
        reads.show(named.parts, view)
        if not change_by_plan(session, reads.inside(plan)):
            raise UnsupportedOperation(
                f"sql: {named.name} cannot be changed by this statement; nothing was changed. Use "
                "MERGE, UPDATE or DELETE, or a method of the table"
            )
    return _nothing(session)


def _changed_with(session: Any, names: Names, plan: Any) -> Any | None:
    target = target_of(plan.child())
    relation = target.child() if kind_of(target) == "SubqueryAlias" else target
    if (named := _of_relation(names, relation)) is None:
        return _nothing(session) if change_by_plan(session, plan) else None
    raise UnsupportedOperation(
        f"sql: WITH before a change of {named.name} is not available; nothing was changed. Write "
        "its queries as subqueries"
    )


@contextmanager
def _viewed(session: Any, named: NamedTable) -> Iterator[str]:
    """A temporary view of a whole table, which is dropped in the end."""
    view = f"{_ON_TABLE}{uuid.uuid4().hex}"
    read_frame(named.table, session, None, None).createOrReplaceTempView(f"`{view}`")
    try:
        yield view
    finally:
        session.catalog.dropTempView(view)


def _created(session: Any, names: Names, reads: NamedReads, kind: str, plan: Any) -> Any | None:
    """Create a table of ours; or one of Spark's from a query over ours."""
    query = reads.changed(plan.query()) if kind.endswith("AsSelect") else None
    if create_named(session, names, kind, plan, query):
        return _nothing(session)
    return frame_of(session, reads.inside(plan)) if reads.count else None


def _altered(session: Any, names: Names, statement: AlterTable) -> Any | None:
    """Run ALTER TABLE; refuse it for a name of Spark's catalog that shows a table of ours."""
    parts = name_parts(statement.target.name)
    words = " ".join(statement.actions.upper().split()[:2])
    if (named := names.required(parts)) is None:
        if words not in _KEPT_NAMES and names.is_own_of_spark(parts):
            _refuse_broken_name(session, parts)
        return None
    _check_table(named, "ALTER TABLE")
    if words == "RENAME TO":
        rename_named(named, statement.actions)
        return _nothing(session)
    alter_named(session, named, statement.actions)
    return _nothing(session)


def _refuse_broken_name(session: Any, parts: Sequence[str]) -> None:
    """Refuse ALTER TABLE for a name in Spark's catalog that it would make unreadable."""
    if is_source_of_spark(session, parts):
        raise UnsupportedOperation(
            f"sql: ALTER TABLE {dotted(parts)}: the name in Spark's catalog shows one version "
            "of a table, and would no longer be readable; nothing was changed. Change the table "
            "itself by its methods, then DROP TABLE and CREATE TABLE ... USING rowsieve name its "
            "new version"
        )


def _run_on(session: Any, named: NamedTable, kind: str, plan: Any) -> Any:
    """Run a statement that concerns one table of ours."""
    match kind:
        case "TruncateTable":
            _check_table(named, "TRUNCATE")
            with labels_of(named.table, session, "overwrite", None, None) as labels:
                handle = named.table.handle
                handle.commit_computed("overwrite", emptied, token=labels.token)
        case "DropTable":
            _check_table(named, "DROP TABLE")
            drop_named(named, purge=bool(plan.purge()))
        case "ShowCreateTable":
            _check_table(named, "SHOW CREATE TABLE")
            rows = pa.table({"createtab_stmt": [create_statement(named)]})
            return session.createDataFrame(rows)
        case "DescribeRelation":
            return _described(session, named)
        case "ShowColumns":
            return _described(session, named).select("col_name")
        case "ShowTableProperties":
            settings = dict(settings_among(named.table.handle.pinned.table.properties))
            rows = pa.table({"key": [*settings], "value": [*settings.values()]}, _SETTINGS)
            return session.createDataFrame(rows)
        case "RefreshTable":
            pass  # each statement reads the newest version
        case _:
            raise UnsupportedOperation(
                f"sql: {split_words(kind)} of {named.name} is not available for a Rowsieve table; "
                "nothing was changed. Use a method of the table, such as alter"
            )
    return _nothing(session)


def _described(session: Any, named: NamedTable) -> Any:
    shown = METADATA_TABLES[named.view](named.table).slice(0, 0) if named.view else None
    frame = read_frame(named.table, session, None, None)
    columns = (frame if shown is None else session.createDataFrame(shown)).schema
    rows = [
        {"col_name": c.name, "data_type": c.dataType.simpleString(), "comment": _comment(c)}
        for c in columns
    ]
    names = ("col_name", "data_type", "comment")
    return session.createDataFrame(
        pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names]))
    )


def _comment(column: Any) -> str | None:
    return (column.metadata or {}).get("comment")


def split_words(kind: str) -> str:
    """The name of a class of Spark's as words, such as SHOW CREATE TABLE."""
    return "".join(f" {c}" if c.isupper() else c for c in kind).strip().upper()


def _of_relation(names: Names, relation: Any) -> NamedTable | None:
    if class_of(relation) != RELATION:
        return None
    return names.required(relation_parts(relation))


def _of_table(names: Names, kind: str, plan: Any) -> NamedTable | None:
    """The table of ours that a statement on one table names; None if it names another."""
    for child in items(plan.children()):
        match kind_of(child):
            case "UnresolvedTable" | "UnresolvedTableOrView":
                return names.required([str(part) for part in items(child.multipartIdentifier())])
            case "UnresolvedIdentifier":
                parts = [str(part) for part in items(child.nameParts())]
                return names.required(parts) if kind == "DropTable" else names.find(parts)
    return None


def _describes_spark(names: Names, plan: Any) -> bool:
    """Return whether Spark has the table of a DESCRIBE, maybe one that is called HISTORY."""
    return names.is_of_spark([str(part) for part in items(plan.relation().multipartIdentifier())])


def _check_table(named: NamedTable, what: str) -> None:
    if named.view:
        raise UnsupportedOperation(
            f"sql: {what} of {named.name} is not available: it only shows what is known of a table"
        )


def _nothing(session: Any) -> Any:
    return session.createDataFrame([], StructType([]))
