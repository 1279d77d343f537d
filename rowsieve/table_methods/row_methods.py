"""The methods of `Table` that change its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from rowsieve import clock
from rowsieve.arguments import Example
from rowsieve.arguments.annotations import (
    HistoryColumns,
    Metadata,
    RetryTimeout,
    Token,
)
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql.assignments import assigned, noting_that_text_is_sql
from rowsieve.bridges.sql.dialects import DialectName
from rowsieve.bridges.text_with_values import with_values
from rowsieve.bridges.where import locating_errors, semantics_of, to_predicate
from rowsieve.changes.change import Change, Question
from rowsieve.changes.column_changes import columns_read
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.data.ingest import (
    OnDuplicate,
    prepare_appended,
    prepare_rows,
    read_data,
)
from rowsieve.changes.data.whole_rows import append_rows, apply_whole, delete_keys, upsert_whole
from rowsieve.changes.event_order.too_late import OnTooLate
from rowsieve.changes.history.history_calls import apply_history
from rowsieve.changes.method_base import TableMethods, changes
from rowsieve.changes.mutation import Mutation, Stale
from rowsieve.changes.operations import (
    delete_planned,
    delete_where,
    overwrite_where,
    update_planned,
    update_where,
)
from rowsieve.changes.partial.combine_rules import Combine
from rowsieve.changes.partial.partial_calls import apply_given, upsert_given
from rowsieve.envelopes.applying import (
    AppliedEvents,
    Decimals,
    EventOptions,
    OnBad,
    Times,
    apply_events,
)
from rowsieve.envelopes.event_formats import EventFormat
from rowsieve.errors import EmptyData, InvalidInput, StalePlan, UnsupportedOperation
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.ir import Cast
from rowsieve.progress_bars import ShownProgress
from rowsieve.properties import HISTORY, resolves_upserts
from rowsieve.scan import GivenPlan
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.schema import Schema


class RowMethods(TableMethods):
    """Changes of rows; each is one commit."""

    @changes("upsert", shows_rows=True)
    def upsert(
        self,
        data: Any,
        *,
        on_duplicate: OnDuplicate = "error",
        columns: Literal["all", "given"] = "all",
        unchanged: str | None = None,
        combine: Combine | None = None,
        schema_mode: SchemaMode = "strict",
        on_too_late: OnTooLate | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        progress: ShownProgress | None = None,  # noqa: ARG002 - `changes` takes it
    ) -> Commit:
        """Insert rows, or replace the rows that have the same key.

        The data must have every column. A duplicate key is a KeyViolation unless
        `on_duplicate="last"`. Upserts never conflict: for each key the later commit wins. In a
        table with an event order, the row with the greatest sequence wins instead, within the data
        too, and `Commit.rows_late` counts those that change nothing; `on_too_late="drop"` counts
        rows beyond the late horizon, too, which are an error otherwise. `schema_mode="merge"` adds
        the columns that the table lacks, and widens those whose type does not hold the data, in the
        same commit.

        With `columns="given"`, what the data lacks keeps the value of the row that the table has; a
        new row gets the default. `unchanged` names a column of lists, the names of each row's
        columns that keep their value. `combine={"visits": "sum"}` combines a value with that of the
        row: by sum, min, max, first, last, last_not_null, union_of_lists or json_merge; the rules
        of the table's property `combine` hold for other columns. Each of these reads the rows with
        these keys, and commits again after a conflict; `on_duplicate="last"` then applies all rows
        of a key in their order. `progress=True` shows a bar of the rows written.
        """
        table = self.handle.newest.table
        brings = schema_mode == "merge" and bool(table.sequence)
        combines = combine or resolves_upserts(table.properties)
        if columns == "given" or unchanged is not None or combines or brings:
            return upsert_given(
                self.handle,
                data,
                keeps=columns == "given",
                combine=combine,
                unchanged=unchanged,
                on_duplicate=on_duplicate,
                schema_mode=schema_mode,
                on_too_late=on_too_late,
                metadata=metadata,
                token=token,
            )
        change = self.handle.change("upsert", metadata, token, on_too_late=on_too_late)
        return upsert_whole(self.handle, change, data, on_duplicate, schema_mode)

    @changes("append", shows_rows=True)
    def append(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        metadata: Metadata | None = None,
        token: Token | None = None,
        progress: ShownProgress | None = None,  # noqa: ARG002 - `changes` takes it
    ) -> Commit:
        """Add rows to a table without a key; columns that the data lacks get their default.

        `schema_mode="merge"` adds the columns that the table lacks, and widens those whose type
        does not hold the data, in the same commit.
        """
        if key := self.handle.newest.table.key:
            raise UnsupportedOperation(
                f"append: the table has the key ({', '.join(key)}), and appended rows could "
                "duplicate existing keys; use upsert"
            )
        change = self.handle.change("append", metadata, token)
        return append_rows(self.handle, change, data, schema_mode)

    @changes("apply")
    def apply_changes(
        self,
        data: Any,
        *,
        op: str,
        sequence: str | Sequence[str] | None = None,
        missing: Literal["error", "keep"] = "error",
        unchanged: str | None = None,
        combine: Combine | None = None,
        schema_mode: SchemaMode = "strict",
        history: HistoryColumns | None = None,
        on_too_late: OnTooLate | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Apply a change stream in one commit: per key, the action with the highest `sequence`.

        `op` names the column of actions: i, u, c, r, insert, update, upsert, create and read write
        the row; d and delete remove its key. A deleted row needs only its key columns, and in a
        table with an event order its sequence, which is `sequence` then. `Commit.rows_late` counts
        changes that a newer one in the table has overtaken, and with `on_too_late="drop"` those
        beyond the late horizon.

        With `missing="keep"`, what the data lacks keeps its value, and all changes of a key apply
        in their order; `unchanged` and `combine` are as in `upsert`. `schema_mode="merge"` adds the
        columns that the table lacks, and widens those whose type does not hold the data, in the
        same commit; a column that the data, or a dict of it, lacks gets its default or NULL.

        `history=("valid_from", "valid_to")` keeps every version of a row, with the interval of
        `sequence` in which it held; the key of the table ends with the first of these columns.
        """
        if history is not None or HISTORY in self.handle.newest.table.properties:
            if missing == "keep" or unchanged is not None or combine or schema_mode == "merge":
                raise UnsupportedOperation(
                    "apply_changes: history= takes whole rows and known columns; nothing was "
                    "written. Leave out missing=, unchanged=, combine= and schema_mode="
                )
            return apply_history(self.handle, data, op, sequence, history, metadata, token)
        combines = combine or resolves_upserts(self.handle.newest.table.properties)
        if missing == "keep" or unchanged is not None or combines or schema_mode == "merge":
            return apply_given(
                self.handle,
                data,
                op=op,
                sequence=sequence,
                keeps=missing == "keep",
                combine=combine,
                unchanged=unchanged,
                schema_mode=schema_mode,
                on_too_late=on_too_late,
                metadata=metadata,
                token=token,
            )
        change = self.handle.change("apply", metadata, token, on_too_late=on_too_late)
        return apply_whole(self.handle, change, data, op, sequence)

    def apply_events(
        self,
        data: Any,
        *,
        format: EventFormat,  # noqa: A002 - the word of the field, as in --format
        source: str | None = None,
        times: Times | None = None,
        decimals: Decimals | None = None,
        on_bad: OnBad = "error",
        bad: Any = None,
        schema_mode: SchemaMode = "strict",
        on_too_late: OnTooLate | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> AppliedEvents:
        """Apply events of a change data capture tool in one commit, in the order of their source.

        `data` is JSON lines, a list of JSON texts or dicts, or Arrow data with a column `value`, or
        with the envelope's columns. `source` is the table that all events must be of. `times` is
        the unit of numbers in columns of times, and `decimals` what text in columns of numbers is,
        where the events do not declare it. A bad event refuses the call; with `on_bad="collect"`
        the others are applied, and the bad ones are returned and first appended to the table `bad`.

        `schema_mode="merge"` adds the columns that the events bring, and widens those whose type
        does not hold a value, in the same commit. In Debezium's rows, which are whole, a column of
        the table that is absent is NULL then: the source has dropped it.
        """
        options = EventOptions(
            format,
            source,
            times=times,
            decimals=decimals,
            on_too_late=on_too_late,
            schema_mode=schema_mode,
            on_bad=on_bad,
            bad_table=bad,
            metadata=metadata,
            token=token,
        )
        return apply_events(self, data, options)

    @changes("delete", shows_rows=True)
    def delete(
        self,
        where: Any = None,
        *,
        keys: Any = None,
        plan: GivenPlan | None = None,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        on_too_late: OnTooLate | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
        progress: ShownProgress | None = None,  # noqa: ARG002 - `changes` takes it
    ) -> Commit:
        """Delete rows by predicate, by key (`keys`: Arrow data with the key columns), or by plan.

        A delete by key reads nothing and never conflicts; in a table with an event order, `keys`
        may have the sequence columns, and otherwise the rows that are there are deleted;
        `on_too_late` is as in `apply_changes`. A delete by predicate deletes the rows that match in
        the version right before its own commit; under snapshot isolation, rows that concurrent
        commits insert survive. A delete by plan deletes exactly the rows that the plan returns, and
        raises StalePlan if the table has a newer version, or a concurrent commit changes the plan's
        result. CommitConflict if concurrent commits prevent the delete for `retry_timeout_s`
        seconds. `progress=True` shows a bar of the deletes written.
        """
        where = with_values(where, params, "delete")
        if (where is not None) + (keys is not None) + (plan is not None) != 1:
            raise InvalidInput(
                "delete takes exactly one of a predicate, keys= and plan=; "
                "delete('TRUE') deletes all rows"
            )
        semantics_of(dialect, where, session)  # refuses wrong ones also if they are not used
        if plan is not None:
            change = self.handle.change("delete", metadata, token, retry_timeout_s)
            return self._commit_planned(
                change, plan, lambda head: delete_planned(change, head, plan)
            )
        if keys is None:
            change = self.handle.change("delete", metadata, token, retry_timeout_s)
            schema = self.handle.newest.schema
            question = _question(where, dialect, schema, session)
            return self.handle.commit_mutation(
                change,
                lambda snapshot: delete_where(change, snapshot, question),
                reads=(schema, lambda: columns_read(schema, question, {})),
            )
        change = self.handle.change("delete_keys", metadata, token, retry_timeout_s, on_too_late)
        return delete_keys(self.handle, change, keys, metadata, token)

    @changes("update", shows_rows=True)
    def update(
        self,
        assignments: Annotated[Mapping[str, Any], Example("{'delay': 'delay + 5'}")],
        *,
        where: Any = None,
        plan: GivenPlan | None = None,
        params: Mapping[str, Any] | None = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
        progress: ShownProgress | None = None,  # noqa: ARG002 - `changes` takes it
    ) -> Commit:
        """Assign columns in every matching row: `{"delay": "delay + 5"}`.

        Text is a SQL expression over the row's old values. Everything else is a value: numbers,
        booleans, None, dates, times, decimals, bytes, Arrow scalars, and text by `rs.lit`. With
        `plan`, changes exactly the rows that the plan returns, and evaluates with the plan's
        semantics and time; StalePlan as for `delete`. CommitConflict if concurrent commits prevent
        the update for `retry_timeout_s` seconds. `progress=True` shows a bar of the rows written.
        """
        where = with_values(where, params, "update")
        if not assignments:
            raise InvalidInput("update: assignments is empty; give e.g. {'delay': 'delay + 5'}")
        if where is not None and plan is not None:
            raise InvalidInput("update takes where= or plan=, not both; remove one of them")
        change = self.handle.change("update", metadata, token, retry_timeout_s)
        schema, semantics = self.handle.newest.schema, semantics_of(dialect, None, session)
        operands = {
            field.name: assigned(value, field, dialect, schema, semantics)
            for field, value in ((schema.field(name), v) for name, v in assignments.items())
        }
        if len(operands) < len(assignments):
            raise InvalidInput(
                f"update: two values for one column: {', '.join(assignments)}; give it one"
            )
        if plan is not None:
            return self._commit_planned(
                change, plan, lambda head: update_planned(change, head, plan, operands)
            )
        for name, value in assignments.items():
            with (
                noting_that_text_is_sql(value),
                locating_errors(value, dialect, schema, semantics, is_value=True),
            ):
                field = schema.field(name)
                bind_operand(Cast(operands[field.name], field.type), schema, semantics, now_us=0)
        question = _question(where, dialect, schema, session)
        return self.handle.commit_mutation(
            change,
            lambda snapshot: update_where(change, snapshot, question, operands),
            reads=(schema, lambda: columns_read(schema, question, operands)),
        )

    @changes("overwrite", shows_rows=True)
    def overwrite(
        self,
        data: Any,
        *,
        where: Any = None,
        dialect: DialectName = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
        progress: ShownProgress | None = None,  # noqa: ARG002 - `changes` takes it
    ) -> Commit:
        """Replace all rows, or the rows that match `where`, with `data`.

        With `where`, every row of the data must match it, and no key of the data may belong to an
        existing row that does not match. CommitConflict if concurrent commits prevent the
        overwrite for `retry_timeout_s` seconds.
        """
        change = self.handle.change("overwrite", metadata, token, retry_timeout_s)
        schema = self.handle.newest.schema
        table = read_data(
            data,
            "overwrite",
            schema,
            appends=not self.handle.newest.table.key,
            storage_options=self.handle.storage_options,
        )
        if not table.num_rows:
            raise EmptyData(
                "overwrite: the data has no rows; nothing was written. Use delete to remove rows; "
                "delete('TRUE') removes all of them"
            )
        if self.handle.newest.table.key:
            order, sequence = self.handle.order("overwrite"), self.handle.newest.table.sequence
            rows = prepare_rows(table, schema, order, "error", "overwrite", sequence)
        else:
            rows = prepare_appended(table, schema)
        if where is not None:
            question = _question(where, dialect, self.handle.newest.schema, session)
            return self.handle.commit_mutation(
                change, lambda snapshot: overwrite_where(change, snapshot, question, rows)
            )
        return self.handle.commit_overwrite(change, rows)

    def _commit_planned(
        self, change: Change, plan: ScanPlan, build: Callable[[Snapshot], Mutation | None]
    ) -> Commit:
        try:
            return self.handle.commit_mutation(change, build, recompute=False)
        except Stale as error:
            raise StalePlan(
                f"{change.operation}: a concurrent commit changed the result of the plan, made at "
                f"version {plan.version}; nothing was changed. Plan the scan again"
            ) from error


def _question(where: Any, dialect: str, schema: Schema, session: Session | None) -> Question:
    semantics = semantics_of(dialect, where, session)
    now_us = clock.now_us()
    with locating_errors(where, dialect, schema, semantics):
        predicate = to_predicate(where, dialect, schema, semantics, session)
        if isinstance(where, str):
            bind(predicate, schema, semantics, now_us=now_us, simplified=False)
    return Question(predicate, semantics, now_us)
