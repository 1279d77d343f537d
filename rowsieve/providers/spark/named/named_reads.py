"""Puts our tables in place of their names in a plan that Spark's parser has read.

Spark resolves everything else, under the settings of its session: functions, columns, common table
expressions, temporary views. The text of the statement is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import functions

from rowsieve.bridges.sql.spark.settings import TIME_ZONE
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.metadata_tables.table_kinds import METADATA_TABLES
from rowsieve.opening import open_table
from rowsieve.providers.spark.change_frames import read_changes
from rowsieve.providers.spark.frames import read_frame
from rowsieve.providers.spark.job_errors import error_from_worker
from rowsieve.providers.spark.named.table_names import NamedTable, Names
from rowsieve.providers.spark.plan_trees import TreeChanger
from rowsieve.providers.spark.plans import class_of, column_of, internal_class, items, sequence
from rowsieve.providers.spark.store_options import passed_on
from rowsieve.statements.calls import name_parts
from rowsieve.types.instants import from_microseconds
from rowsieve.types.time_zones import in_zone

if TYPE_CHECKING:
    from rowsieve.table import Table

_ANALYSIS: Final = "org.apache.spark.sql.catalyst.analysis."
RELATION: Final = _ANALYSIS + "UnresolvedRelation"
_TIME_TRAVEL: Final = _ANALYSIS + "RelationTimeTravel"
_FUNCTION: Final = _ANALYSIS + "UnresolvedTableValuedFunction"
_IDENTIFIER: Final = _ANALYSIS + "PlanWithUnresolvedIdentifier"
_PATTERNS: Final = (
    "UNRESOLVED_RELATION",
    "RELATION_TIME_TRAVEL",
    "UNRESOLVED_TABLE_VALUED_FUNCTION",
    "PLAN_WITH_UNRESOLVED_IDENTIFIER",
    "UNRESOLVED_WITH",  # which does not know what its common table expressions contain
)
_CHANGES: Final = "table_changes"


class NamedReads:
    """Reads of our tables, for the plan of one statement; `count` is how many it has."""

    def __init__(self, session: Any, names: Names) -> None:
        self._session = session
        self._names = names
        self._shown: tuple[tuple[str, ...], str] | None = None
        self.count = 0
        patterns = internal_class(session, "catalyst.trees.TreePattern")
        self._changer = TreeChanger(
            session, [getattr(patterns, name)() for name in _PATTERNS], self._read
        )

    def changed(self, plan: Any) -> Any:
        """The plan of a query with our tables in place of their names."""
        return self._changer.changed(plan)

    def inside(self, statement: Any) -> Any:
        """The plan of a statement, such as EXPLAIN, with our tables in its queries."""
        return self._changer.inside(statement)

    def show(self, parts: Sequence[str], view: str) -> None:
        """Read the table of this name from a temporary view, which a change of it moves."""
        self._shown = tuple(parts), view

    def _read(self, node: Any) -> Any | None:
        match class_of(node):
            case kind if kind == RELATION:
                parts = relation_parts(node)
                if (named := self._names.find(parts)) is not None:
                    return self._relation(node, named)
                if (rows := self._names.information(parts)) is not None:
                    return self._aliased(parts, self._frame(rows))
                self._names.required(parts)
            case kind if kind == _TIME_TRAVEL and class_of(node.relation()) == RELATION:
                named = self._names.required(relation_parts(node.relation()))
                return None if named is None else self._version(node, named)
            case kind if kind == _FUNCTION and self._is_changes(node):
                return self._changes(node)
            case kind if kind == _IDENTIFIER and not items(node.children()):
                return self._identified(node)
        return None

    def _identified(self, node: Any) -> Any | None:
        """The table of `IDENTIFIER(expression)`, which Spark computes; None if it is not ours."""
        parser = self._session._jsparkSession.sessionState().sqlParser()
        try:
            name = column_of(self._session, node.identifierExpr())
            text = self._session.sql("SELECT 1").select(name).first()[0]
            parts = [str(part) for part in items(parser.parseMultipartIdentifier(text))]
        except PySparkException:  # which Spark raises again
            return None
        plan = node.planBuilder().apply(
            sequence(self._session, parts), sequence(self._session, list[str]())
        )
        return self._read(plan) if class_of(plan) == RELATION else None

    def _relation(self, node: Any, named: NamedTable) -> Any:
        if self._shown is not None and not named.view and self._is_shown(named):
            self.count += 1
            one_part, is_streaming = sequence(self._session, [self._shown[1]]), False
            view = internal_class(self._session, "catalyst.analysis.UnresolvedRelation")(
                one_part, node.options(), is_streaming
            )
            return self._alias(named.parts, view)
        if node.isStreaming():
            raise UnsupportedOperation(
                f"sql: STREAM {named.name} is not available: spark.readStream.format('rowsieve') "
                "with readChangeFeed is a stream of its changes"
            )
        if node.options().size():
            raise UnsupportedOperation(
                f"sql: {named.name} WITH (...) is not available: give the options to "
                "spark.read.format('rowsieve')"
            )
        return self._rows(named, named.table)

    def _rows(self, named: NamedTable, table: Table) -> Any:
        """The plan of the rows of a version of the table, or of what is known of it."""
        if named.view:
            return self._aliased(named.parts, self._frame(METADATA_TABLES[named.view](table)))
        return self._aliased(named.parts, read_frame(table, self._session, None, None))

    def _version(self, node: Any, named: NamedTable) -> Any:
        table, options = named.table, named.table.handle.storage_options
        if node.version().isDefined():
            text = str(node.version().get())
            version = int(text) if text.isdecimal() else text  # a text is the name of a tag
            old = open_table(table.uri, version=version, storage_options=options)
        else:
            moment = self._moment(node.timestamp().get(), named.name)
            old = open_table(table.uri, as_of=moment, storage_options=options)
        return self._rows(named, old)

    def _moment(self, expression: Any, name: str) -> Any:
        """The time that an expression has in this session, which Spark computes."""
        value = functions.unix_micros(column_of(self._session, expression).cast("timestamp"))
        try:
            moment_us = self._session.sql("SELECT 1").select(value).first()[0]
        except PySparkException as error:
            first = next((line for line in str(error).splitlines() if line), "")
            raise InvalidInput(f"sql: {name} TIMESTAMP AS OF: {first}") from error
        if moment_us is None:
            raise InvalidInput(
                f"sql: {name} TIMESTAMP AS OF {expression.sql()} is not a time; write one such as "
                "'2026-01-31 12:00:00'"
            )
        return from_microseconds(moment_us)

    def _is_changes(self, node: Any) -> bool:
        return [str(part).lower() for part in items(node.name())] == [_CHANGES]

    def _changes(self, node: Any) -> Any | None:
        """The rows of `table_changes('db.t', from[, to])`; None if the table is not ours."""
        arguments = [_value(each) for each in items(node.functionArgs())]
        parts = name_parts(arguments[0]) if arguments and isinstance(arguments[0], str) else ()
        named = self._names.required(parts) if parts else None
        if named is None:
            return None
        bounds = arguments[1:]
        if named.view or len(bounds) not in (1, 2):
            raise InvalidInput(
                "sql: table_changes takes the name of a table as text, the first version and "
                "maybe the last one, such as table_changes('db.t', 5, 9)"
            )
        return self._aliased((_CHANGES,), self._changed_rows(named.table, bounds))

    def _changed_rows(self, table: Table, bounds: Sequence[Any]) -> Any:
        stored = table.handle.storage_options
        if all(isinstance(bound, int) for bound in bounds):
            return read_changes(self._session, table.uri, *bounds, storage_options=stored)
        options = {"readChangeFeed": "true", **passed_on(stored)}
        for end, bound in zip(("starting", "ending"), bounds, strict=False):
            if isinstance(bound, int):
                options[f"{end}Version"] = str(bound)
            else:
                options[f"{end}Timestamp"] = self._time_of(bound)
        try:
            return self._session.read.format("rowsieve").options(**options).load(table.uri)
        except PySparkException as error:
            if (cause := error_from_worker(str(error))) is not None:
                raise cause from error
            raise

    def _time_of(self, text: str | None) -> str:
        """A time with its offset: without one, it is a time of the session's zone."""
        try:
            return in_zone(text or "", str(self._session.conf.get(TIME_ZONE)))
        except ValueError as error:
            raise InvalidInput(
                f"sql: table_changes from or to {text!r}: give versions as whole numbers, or times "
                "as text, such as '2026-01-31 12:00:00'"
            ) from error

    def _frame(self, rows: pa.Table) -> Any:
        return self._session.createDataFrame(rows)

    def _is_shown(self, named: NamedTable) -> bool:
        """Return whether a name means the table that is shown by a view, maybe by another name."""
        assert self._shown is not None
        shown = self._names.find(self._shown[0])
        return shown is not None and shown.table.uri == named.table.uri

    def _aliased(self, parts: Sequence[str], frame: Any) -> Any:
        """The plan of a frame, whose columns may be qualified by the name of the table."""
        self.count += 1
        return self._alias(parts, frame._jdf.queryExecution().analyzed())

    def _alias(self, parts: Sequence[str], plan: Any) -> Any:
        name = internal_class(self._session, "catalyst.AliasIdentifier")(
            parts[-1], sequence(self._session, list(parts[:-1]))
        )
        return internal_class(self._session, "catalyst.plans.logical.SubqueryAlias")(name, plan)


def relation_parts(relation: Any) -> list[str]:
    """The parts of the name that a relation has in a statement."""
    return [str(part) for part in items(relation.multipartIdentifier())]


def _value(argument: Any) -> Any:
    """The value of a literal: a text or a whole number; None for another expression."""
    if not class_of(argument).endswith(".Literal"):
        return None
    value = argument.value()
    return value if isinstance(value, int) else str(value)
