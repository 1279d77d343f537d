"""MERGE, UPDATE and DELETE statements on temporary views of our tables, in our `sql`.

Spark's parser reads the statement. It becomes a merge by clauses, whose conditions and values are
Spark's own expressions: a row to update or to delete is one that a source without rows does not
match. The view then shows the version of the commit.

Soundness: the view and all subqueries read the version into which the merge is made, again after
each conflict (invariants I7 and 23). A part of a statement that a merge does not have is refused
before anything is written. A view of a fixed version is never changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions
from pyspark.sql.types import ArrayType, MapType, StructField, StructType, VariantType

from rowsieve.errors import UnsupportedOperation
from rowsieve.opening import open_table
from rowsieve.providers.spark.frames import check_rows, spark_read
from rowsieve.providers.spark.plans import (
    class_of,
    column_of,
    empty_frame,
    frame_of,
    items,
)
from rowsieve.providers.spark.reads.hybrid import hybrid_frame
from rowsieve.providers.spark.reads.marked_reads import PREFIX, MarkedRead, read_named
from rowsieve.providers.spark.reads.native_columns import quoted
from rowsieve.providers.spark.writes.batch_tokens import labels_of
from rowsieve.providers.spark.writes.clauses import Aliases
from rowsieve.providers.spark.writes.merge_frame import SourceMerge, merge_source
from rowsieve.statements.merge_statement import Action, MergeClause, When
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S

if TYPE_CHECKING:
    from rowsieve.table import Table

_CATALYST: Final = "org.apache.spark.sql.catalyst."
_LOGICAL: Final = _CATALYST + "plans.logical."
_ALIAS: Final = _LOGICAL + "SubqueryAlias"
_NAMES: Final = frozenset({_ALIAS, _LOGICAL + "View"})
_RELATION: Final = _CATALYST + "analysis.UnresolvedRelation"
_ATTRIBUTE: Final = _CATALYST + "analysis.UnresolvedAttribute"
_WITH: Final = _LOGICAL + "UnresolvedWith"
_AND, _EQUALS = (f"{_CATALYST}expressions.{name}" for name in ("And", "EqualTo"))
_DEFAULT: Final = "default"  # the word for a column's default, which is parsed as a name
_NO_ROW: Final = "_rowsieve_no_row"  # the column of a source without rows
_NOT_COMPARED: Final = (ArrayType, MapType, StructType, VariantType)


@dataclass(slots=True)
class _View:
    """A temporary view that shows a whole table of ours, and the version that it shows."""

    session: Any
    name: str
    alias: str  # its name in the statement
    marked: MarkedRead
    table: Table
    shown: int

    def show(self, version: int | None = None) -> None:
        """Let the view show a version of the table; None: the newest one, for later statements."""
        table = self.table
        if version is None:
            table.refresh()
        elif version == self.shown:
            return
        elif version != table.version:
            table = open_table(
                table.uri, version=version, storage_options=table.handle.storage_options
            )
        read = spark_read(table, self.session, None, None)
        hybrid_frame(read, self.marked.allowed).createOrReplaceTempView(quoted(self.name))
        self.shown = table.version

    @property
    def columns(self) -> StructType:
        """The columns of the version that it shows."""
        columns: StructType = self.session.table(quoted(self.name)).schema
        return columns


def change_by_plan(session: Any, plan: Any) -> bool:
    """Run the parsed plan of a MERGE, UPDATE or DELETE on a view of a table of ours.

    False for other statements.
    """
    has_queries = class_of(plan) == _WITH
    plan = plan.child() if has_queries else plan
    kind = class_of(plan).removeprefix(_LOGICAL)
    if (reader := _READERS.get(kind)) is None:
        return False
    if (view := writable_view(session, target_of(plan))) is None:
        return False
    if has_queries:
        raise _refused(kind, "WITH; write its queries as subqueries")
    try:
        view.show(view.table.version)
        with labels_of(view.table, session, "merge", None, None) as labels:
            merge_source(view.table, reader(view, plan), RETRY_TIMEOUT_S, labels)
    finally:
        view.show()
    return True


def target_of(statement: Any) -> Any:
    """The plan of the table that a MERGE, UPDATE, DELETE or INSERT changes."""
    is_merge = class_of(statement) == _LOGICAL + "MergeIntoTable"
    return statement.targetTable() if is_merge else statement.table()


def writable_view(session: Any, target: Any) -> _View | None:
    """The view that a statement names, if it shows a whole table that may be changed."""
    alias, relation = None, target
    while class_of(relation) == _ALIAS:  # the alias in the statement, and its name in a catalog
        alias, relation = alias or str(relation.alias()), relation.child()
    if class_of(relation) != _RELATION:
        return None
    names = [str(name) for name in items(relation.multipartIdentifier())]
    if len(names) != 1 or not session.catalog.tableExists(quoted(names[0])):
        return None
    plan = session.table(quoted(names[0]))._jdf.queryExecution().analyzed()
    is_temporary = False
    while class_of(plan) in _NAMES:
        if class_of(plan) == _ALIAS and str(plan.alias()).startswith(PREFIX):
            mark = read_named(str(plan.alias()))
            if mark is None or not (is_temporary and mark.is_writable and mark.is_whole_table):
                return None
            table = open_table(mark.uri, storage_options=mark.storage_options or None)
            if table.handle.pinned.table.uuid != mark.table_uuid:
                return None
            return _View(session, names[0], alias or names[0], mark, table, mark.version)
        is_temporary |= class_of(plan) != _ALIAS and plan.isTempView()
        plan = plan.child()
    return None


def _merge_into(view: _View, plan: Any) -> SourceMerge:
    """The merge of a MERGE statement."""
    if plan.withSchemaEvolution():
        raise _refused("MERGE", "WITH SCHEMA EVOLUTION; add the columns with alter")
    source = plan.sourceTable()
    alias = _alias_of(source)
    if alias.lower() == view.alias.lower():
        raise _refused("MERGE", f"two tables named {alias}; write USING ... AS another name")
    aliases = Aliases(alias, view.alias)

    def frame_at(version: int) -> Any:
        view.show(version)
        return _source(view.session, source)

    columns = frame_at(view.shown).columns
    whens = {
        When.MATCHED: plan.matchedActions(),
        When.NOT_MATCHED: plan.notMatchedActions(),
        When.NOT_MATCHED_BY_SOURCE: plan.notMatchedBySourceActions(),
    }
    clauses = [
        _clause(view, when, number, action)
        for when, actions in whens.items()
        for number, action in enumerate(items(actions), 1)
    ]
    pairs = list(_equal_columns(view, alias, columns, plan.mergeCondition()))
    on = dict(pairs)
    if len(on) < len(pairs):
        raise _refused("MERGE", "ON with two conditions on one column of the table")
    return SourceMerge(frame_at, on, clauses, aliases, depends_on_version=True)


def _source(session: Any, plan: Any) -> Any:
    frame = frame_of(session, plan)
    check_rows(frame, "MERGE")
    return frame


def _alias_of(source: Any) -> str:
    """The name of the source of a MERGE in its clauses."""
    if class_of(source) == _ALIAS:
        return str(source.alias())
    if class_of(source) == _RELATION:
        return str(items(source.multipartIdentifier())[-1])
    return "source"


def _clause(view: _View, when: When, number: int, action: Any) -> MergeClause:
    """A clause of a MERGE statement; its kind is the name of the class of Spark's action."""
    kind = class_of(action).removeprefix(_LOGICAL).removesuffix("Action").lower()
    where = action.condition()
    condition = column_of(view.session, where.get()) if where.isDefined() else None
    name = kind.removesuffix("star")
    if name not in {each.value for each in Action}:
        raise _refused("MERGE", f"the action {kind}")
    does = Action(name)
    if kind != name or does is Action.DELETE:
        return MergeClause(when, number, does, None, condition)
    values = dict(_assigned(view, "MERGE", action.assignments()))
    if does is Action.INSERT:  # as in Spark, a column without a value is NULL
        columns = view.table.handle.pinned.schema.names
        assigned = {column.lower() for column in values}
        values |= {column: "NULL" for column in columns if column.lower() not in assigned}
    return MergeClause(when, number, does, values, condition)


def _assigned(view: _View, statement: str, assignments: Any) -> Iterator[tuple[str, Any]]:
    """The values by column; refuses members of structs, defaults and a column that occurs twice."""
    names: set[str] = set()
    for each in items(assignments):
        parts = _parts(each.key())
        if len(parts) > 1 and parts[0].lower() == view.alias.lower():
            parts = parts[1:]
        if len(parts) != 1:
            raise _refused(
                statement,
                f"an assignment to {each.key().sql()}; assign a whole column of the table",
            )
        value = each.value()
        if [part.lower() for part in _parts(value)] == [_DEFAULT]:
            raise _refused(statement, f"DEFAULT as the value of {parts[0]}; write the value")
        if parts[0].lower() in names:
            raise _refused(statement, f"two values for {parts[0]}")
        names.add(parts[0].lower())
        yield parts[0], column_of(view.session, value)


def _equal_columns(
    view: _View, source: str, columns: list[str], condition: Any
) -> Iterator[tuple[str, str]]:
    """Columns of the table with those of the source that the condition of a MERGE compares."""
    target = view.table.handle.pinned.schema.names
    sides = {view.alias.lower(): target, source.lower(): columns}
    for each in _conjuncts(condition):
        names: dict[str, str] = {}
        if class_of(each) == _EQUALS:
            for parts in (_parts(each.left()), _parts(each.right())):
                if parts and (side := _side(parts, sides)) is not None:
                    names[side] = parts[-1]
        if len(names) != len(sides):
            raise _refused(
                "MERGE",
                f"ON {each.sql()}; write {view.alias}.column = {source}.column for each column of "
                "the key, and other conditions in WHEN ... AND",
            )
        yield names[view.alias.lower()], names[source.lower()]


def _side(parts: list[str], sides: Mapping[str, Any]) -> str | None:
    """The side of a MERGE to which a name belongs; None if it is not known."""
    if len(parts) > 1:
        return parts[0].lower() if len(parts) == 2 and parts[0].lower() in sides else None
    has = [side for side, names in sides.items() if parts[0].lower() in [n.lower() for n in names]]
    return has[0] if len(has) == 1 else None


def _conjuncts(condition: Any) -> Iterator[Any]:
    if class_of(condition) == _AND:
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _parts(expression: Any) -> list[str]:
    """The parts of a name, such as a table and its column; none if it is not a name."""
    if class_of(expression) != _ATTRIBUTE:
        return []
    return [str(part) for part in items(expression.nameParts())]


def _delete(view: _View, plan: Any) -> SourceMerge:
    """The merge of a DELETE statement."""
    return _of_rows(view, Action.DELETE, None, column_of(view.session, plan.condition()))


def _update(view: _View, plan: Any) -> SourceMerge:
    """The merge of an UPDATE statement."""
    values = dict(_assigned(view, "UPDATE", plan.assignments()))
    where = plan.condition()
    condition = column_of(view.session, where.get()) if where.isDefined() else None
    return _of_rows(view, Action.UPDATE, values, condition)


def _of_rows(
    view: _View, action: Action, values: Mapping[str, Any] | None, condition: Any
) -> SourceMerge:
    """The merge that changes the rows of the table that match a condition."""
    columns = view.columns
    comparable = [c.name for c in columns if not isinstance(c.dataType, _NOT_COMPARED)]
    compared = view.table.key or comparable[:1]
    if not compared:
        raise _refused(action.name, "a table with nested columns only")
    on = {name: f"{_NO_ROW}_{place}" for place, name in enumerate(compared)}
    schema = StructType([StructField(on[name], columns[name].dataType) for name in compared])

    def frame_at(version: int) -> Any:
        view.show(version)
        return empty_frame(view.session, schema)

    where = functions.lit(True) if condition is None else condition  # noqa: FBT003
    clause = MergeClause(When.NOT_MATCHED_BY_SOURCE, 1, action, values, where)
    aliases = Aliases(_NO_ROW, view.alias)
    return SourceMerge(frame_at, on, [clause], aliases, depends_on_version=True)


def _refused(statement: str, what: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"sql: {statement} on a view of a table does not take {what}. Nothing was changed; "
        "merge_spark, update and delete of the table are the other ways"
    )


_READERS: Final[Mapping[str, Callable[[_View, Any], SourceMerge]]] = {
    "MergeIntoTable": _merge_into,
    "UpdateTable": _update,
    "DeleteFromTable": _delete,
}
"""By the class of Spark's plan of the statement."""
