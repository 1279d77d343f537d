"""`Table.merge`: a MERGE that is built clause by clause, as in deltalake and Lance.

It is the MERGE of SQL (`rowsieve.statements.merge_statement`), which DataFusion computes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

from rowsieve import engines
from rowsieve.arguments import ANY_TEXT, Example, checked_methods
from rowsieve.arguments.annotations import ColumnNames, Metadata, RetryTimeout, Token
from rowsieve.arguments.peer_names import MERGING, unknown_attribute
from rowsieve.bridges.python_constants import constant_of
from rowsieve.bridges.sql.assignments import refuse_number
from rowsieve.changes.column_order.order_column import without_order_column
from rowsieve.changes.data.ingest import read_data
from rowsieve.changes.method_base import TableMethods
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, UnknownColumn
from rowsieve.progress_bars import ShownProgress, shown_rows_written
from rowsieve.statements.merge_statement import Action, Merge, MergeClause, Values, When
from rowsieve.statements.tokens import Target, quoted
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S

On: TypeAlias = Annotated[
    str | Sequence[str],
    Example("'target.id = source.id'", "a column, a list of columns, or a condition as SQL text"),
]
Condition: TypeAlias = Annotated[str, Example("'source.n > target.n'", "SQL text")]
NewValues: TypeAlias = Annotated[
    Mapping[str, Any], Example("{'n': 'source.n'}", "values or SQL text by column")
]
Alias: TypeAlias = Annotated[str, ANY_TEXT, Example("'source'")]
_SOURCE_ROWS: Final = "rowsieve_merge_source"
_NUMBER: Final = re.compile(r"[+-]?[0-9]*(?:[0-9]|[0-9]\.|\.[0-9])[0-9]*(?:[eE][+-]?[0-9]+)?")
_FLOAT: Final = re.compile(r"[.eE]")


@dataclass(frozen=True, slots=True)
class MergeCall:
    """The arguments of `Table.merge`."""

    on: str | Sequence[str] | None
    source_alias: str
    target_alias: str
    metadata: Metadata | None
    token: Token | None
    retry_timeout_s: float | None


class MergeMethods(TableMethods):
    """The merge of rows into a table."""

    def merge(
        self,
        data: Any,
        on: On | None = None,
        *,
        source_alias: Alias = "source",
        target_alias: Alias = "target",
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Merging:
        """Begin a merge of the data by columns that are equal; `execute` makes one commit.

        `on` are columns, or a condition on `source` and `target` as SQL text; without it, the key.
        Clauses are added in order, and of those that fit a row the first applies:

            table.merge(rows).when_matched_update_all().when_not_matched_insert_all().execute()

        Conditions and new values are SQL of DataFusion, which folds names without quotes to lower
        case; values that are not text are constants, and `rs.lit` makes a constant of text.
        Serializable: the merge is computed again after a conflicting commit. MissingExtra without
        DataFusion.
        """
        self.handle.require_writable("merge")
        call = MergeCall(on, source_alias, target_alias, metadata, token, retry_timeout_s)
        return Merging(self, data, call)


@checked_methods
class Merging:
    """A merge that has not been executed: clauses, in their order."""

    if not TYPE_CHECKING:  # a checker would believe every name

        def __getattr__(self, name: str) -> object:
            """Say what to write in place of a method of another library."""
            return unknown_attribute(self, name, MERGING)

    def __init__(self, table: MergeMethods, data: Any, call: MergeCall) -> None:
        self._table = table
        self._handle: Handle = table.handle
        self._rows = read_data(
            data, "merge", self._handle.newest.schema, storage_options=self._handle.storage_options
        )
        self._call = call
        self._clauses: list[MergeClause] = []
        self._constants: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"<rowsieve.Merging of {self._rows.num_rows:,} rows, {len(self._clauses)} clauses, "
            "not executed yet: call execute()>"
        )

    def when_matched_update_all(
        self, condition: Condition | None = None, *, except_cols: ColumnNames | None = None
    ) -> Merging:
        """Update matched rows: each column gets the value of the source's column of its name."""
        self._keep_sequence(except_cols or ())
        values = self._own_columns(except_cols)
        return self._with(When.MATCHED, Action.UPDATE, values, condition)

    def when_matched_update(
        self, updates: NewValues, condition: Condition | None = None
    ) -> Merging:
        """Update matched rows: set these columns."""
        return self._with(When.MATCHED, Action.UPDATE, self._texts(updates), condition)

    def when_matched_delete(self, condition: Condition | None = None) -> Merging:
        """Delete matched rows."""
        return self._with(When.MATCHED, Action.DELETE, None, condition)

    def when_not_matched_insert_all(
        self, condition: Condition | None = None, *, except_cols: ColumnNames | None = None
    ) -> Merging:
        """Insert the rows of the source that match no row of the table."""
        values = self._own_columns(except_cols)
        return self._with(When.NOT_MATCHED, Action.INSERT, values, condition)

    def when_not_matched_insert(
        self, values: NewValues, condition: Condition | None = None
    ) -> Merging:
        """Insert a row of these values for each row of the source that matches none of the table.

        Other columns get their default, or NULL.
        """
        return self._with(When.NOT_MATCHED, Action.INSERT, self._texts(values), condition)

    def when_not_matched_by_source_update(
        self, updates: NewValues, condition: Condition | None = None
    ) -> Merging:
        """Update the rows of the table that match no row of the source."""
        when = When.NOT_MATCHED_BY_SOURCE
        return self._with(when, Action.UPDATE, self._texts(updates), condition)

    def when_not_matched_by_source_delete(self, condition: Condition | None = None) -> Merging:
        """Delete the rows of the table that match no row of the source."""
        return self._with(When.NOT_MATCHED_BY_SOURCE, Action.DELETE, None, condition)

    def execute(self, *, progress: ShownProgress | None = None) -> Commit:
        """Merge in one commit; a merge that changes nothing commits nothing.

        `progress=True` shows a bar of the rows written.

        KeyViolation if clauses change a row of the table for two rows of the source, or insert a
        key twice, or one that the table has.
        """
        if not self._clauses:
            raise InvalidInput(
                "merge: there is no clause; call when_matched_update_all(), "
                "when_not_matched_insert_all() or another one before execute()"
            )
        call, handle = self._call, self._handle
        with handle.changing("merge"), shown_rows_written(progress):
            if (done := handle.committed_before(call.token)) is not None:
                return done
            return engines.datafusion_merge().merge_rows(
                self._table,
                {_SOURCE_ROWS: self._rows},
                self._statement(),
                self._constants,
                call.retry_timeout_s,
                call.token,
                call.metadata,
            )

    def _statement(self) -> Merge:
        call = self._call
        target = Target(quoted("rowsieve_merge_target"), ("rowsieve_merge_target",), self._target)
        source = f"{_SOURCE_ROWS} AS {self._source}"
        return Merge(target, source, self._source, self._on(call.on), tuple(self._clauses))

    @property
    def _source(self) -> str:
        return quoted(self._call.source_alias)

    @property
    def _target(self) -> str:
        return quoted(self._call.target_alias)

    def _on(self, on: str | Sequence[str] | None) -> str:
        """The condition; a column's name alone is this column, whatever it would be as SQL."""
        names = self._handle.newest.schema.names
        if isinstance(on, str) and on not in names:
            return on
        columns = (on,) if isinstance(on, str) else tuple(on or self._handle.newest.table.key)
        if not columns:
            raise InvalidInput(
                "merge: the table has no key, so name the columns that are equal in matching "
                "rows, as in on=['id'], or give a condition on source and target"
            )
        for name in columns:
            for place, known in (("table", names), ("data", self._rows.column_names)):
                if name not in known:
                    raise UnknownColumn(
                        f"merge: on= names {name!r}, and the {place} has ({', '.join(known)})",
                        name=name,
                    )
        same = (f"{self._target}.{quoted(n)} = {self._source}.{quoted(n)}" for n in columns)
        return " AND ".join(same)

    def _with(self, when: When, action: Action, values: Values, where: str | None) -> Merging:
        number = 1 + sum(each.when is when for each in self._clauses)
        self._clauses.append(MergeClause(when, number, action, values, where))
        return self

    def _own_columns(self, left_out: Sequence[str] | None) -> dict[str, str] | None:
        """The values of `*`; without some columns, those of the others."""
        if not left_out:
            return None
        names = without_order_column(self._handle.newest.schema).names
        for name in left_out:
            if name not in names:
                raise UnknownColumn(
                    f"merge: except_cols= names {name!r}, and the table has ({', '.join(names)})",
                    name=name,
                )
        return {n: f"{self._source}.{quoted(n)}" for n in names if n not in left_out}

    def _keep_sequence(self, left_out: Sequence[str]) -> None:
        """Refuse to update rows by the source and yet without its sequence."""
        for name in self._handle.newest.table.sequence:
            if name in left_out and name in self._rows.column_names:
                raise InvalidInput(
                    f"merge: except_cols= names {name!r}, by which the table orders changes, and "
                    "the data has it; let it be updated, or leave the column out of the data to "
                    "keep the sequence of the row"
                )

    def _texts(self, values: Mapping[str, Any]) -> dict[str, str]:
        """SQL by column; what is not text is a parameter of the statement."""
        if not values:
            raise InvalidInput("merge: the clause names no column; give {column: value}")
        names = self._handle.newest.schema.names
        texts = {}
        for name, value in values.items():
            if name not in names:
                raise UnknownColumn(
                    f"merge: there is no column {name!r}; the table has ({', '.join(names)})",
                    name=name,
                )
            if isinstance(value, str):
                if _NUMBER.fullmatch(value.strip()):
                    number = float(value) if _FLOAT.search(value) else int(value)
                    refuse_number(value, number, self._handle.newest.schema.field(name), "merge")
                texts[name] = value
                continue
            constant = constant_of(value)
            parameter = f"rowsieve_{len(self._constants)}"
            texts[name] = f"${parameter}" if constant.is_valid else "NULL"
            if constant.is_valid:
                self._constants[parameter] = constant
        return texts
