"""The public `Table` class: scans, changes, and registration in engines.

A `Table` pins one version for the engines that it is registered in. The pinned version moves only
with the table's own commits and with `refresh()`, so two scans of one statement never see two
versions (invariant 23). `scan` and every change look up the newest version first. A table opened
at a version is read-only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import pyarrow as pa

from rowsieve import clock, engines
from rowsieve.arguments import Example, checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Percentage,
    RetryTimeout,
    StorageOptions,
    Token,
)
from rowsieve.bridges.session import Session
from rowsieve.bridges.where import locating_errors, semantics_of, to_operand, to_predicate
from rowsieve.changes.change import Change, Question
from rowsieve.changes.cherry_picks import (
    PICKED,
    AlreadyPicked,
    changes_of,
    is_picked,
    operation_of,
)
from rowsieve.changes.column_changes import columns_read
from rowsieve.changes.column_methods import SchemaMode
from rowsieve.changes.ingest import (
    Changes,
    OnDuplicate,
    prepare_appended,
    prepare_keys,
    prepare_rows,
    read_data,
    reduce_changes,
)
from rowsieve.changes.mutation import Mutation, Stale
from rowsieve.changes.operations import (
    delete_planned,
    delete_where,
    overwrite_where,
    restore_to,
    update_planned,
    update_where,
)
from rowsieve.changes.table_handle import changes, nothing_done
from rowsieve.config import OnViolation, Pruning, current
from rowsieve.errors import EmptyData, InvalidInput, StalePlan, UnsupportedOperation
from rowsieve.metrics import Reporter, WriterMetrics
from rowsieve.objects import ObjectStore, in_thread
from rowsieve.planner.explanation import Explanation
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.bind import bind, bind_operand
from rowsieve.predicate.ir import Cast, Operand
from rowsieve.predicate.ir import Literal as LiteralNode
from rowsieve.predicate.semantics import Semantics
from rowsieve.reading import Reading
from rowsieve.scan import Columns, GivenPlan, Scan
from rowsieve.spark_writes import SparkWrites
from rowsieve.stats.collect import MakeCollector
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.log.floors import check_kept
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.manifests.part_sketches import distinct_count, sketched_fields
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import commented_schema
from rowsieve.types.instants import from_microseconds
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema


@checked_methods
class Table(Reading, SparkWrites):
    """A handle on one table, from `create_table` or `open_table`. Thread-safe."""

    # Properties

    @property
    def uri(self) -> str:
        """The table's location, without credentials."""
        return self._store.uri

    @property
    def version(self) -> int:
        """The pinned version, which engines read when this table is registered in them."""
        return self._pinned.version

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema; field ids and comments are in the fields' metadata."""
        return commented_schema(self._pinned.schema)

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns, empty for a table without a key."""
        return self._pinned.table.key

    @property
    def writer_metrics(self) -> WriterMetrics:
        """Counters of all writes by this object, with the cost of collecting statistics."""
        return self._collecting.metrics

    def collect_with(self, column: str, make: MakeCollector) -> None:
        """Use your own statistics collector for a column in the parts that this object writes.

        `make` takes the column's `Field` and returns a new collector for each part. The types of
        its statistics are checked against the column. Soundness: whether its bounds cover every
        value is not checked; the collector must guarantee that.
        """
        self._collecting.overrides[self._newest.schema.field(column).id] = make

    def report_to(self, reporter: Reporter | None) -> None:
        """Send a report to `reporter` for each read of a scan and for each commit of this object.

        Replaces the current reporter; with None, reports go to the process's reporter, if any.
        Scans that exist already keep their reporter.
        """
        with self._lock:
            self._reporter = reporter
            self._reported_metrics = replace(self._collecting.metrics)

    def detail(self) -> dict[str, Any]:
        """Return facts about the pinned version as plain values.

        `rows_stored` includes rows that newer versions, deletes or deletion vectors hide.
        `distinct_counts` has the columns that were analyzed: see the method of that name.
        """
        snapshot = self._pinned
        parts = snapshot.parts
        sketched = sketched_fields(parts, snapshot.schema)
        return {
            "uri": self.uri,
            "uuid": snapshot.table.uuid,
            "version": snapshot.version,
            "timestamp": from_microseconds(snapshot.timestamp_us).isoformat(),
            "mode": snapshot.table.mode,
            "key": list(snapshot.table.key),
            "properties": dict(snapshot.table.properties),
            "parts": len(parts),
            "rows_stored": int(parts.numbers("data.rows").sum()),
            "tombstones": int(parts.numbers("deletes.rows").sum()),
            "size_bytes": parts.stored_bytes,
            "distinct_counts": {field.name: distinct_count(parts, field) for field in sketched},
        }

    def history(self, limit: int | None = None) -> list[Commit]:
        """Return the commits, newest first; at most `limit` of them."""
        return self._log.history(limit)

    def refresh(self) -> int:
        """Pin the newest version and return its number."""
        if self._read_only:
            return self.version
        self._pin(self._latest())
        return self.version

    # Reading

    def scan(
        self,
        where: Any = None,
        columns: Columns | None = None,
        *,
        limit: int | None = None,
        order_by_key: bool = False,
        version: int | None = None,
        as_of: Moment | None = None,
        pruning: Pruning | None = None,
        audit: Percentage | None = None,
        on_violation: OnViolation | None = None,
        dialect: str = "postgres",
        session: Session | None = None,
        plan: GivenPlan | None = None,
        memory_bytes: int | None = None,
        threads: int | None = None,
    ) -> Scan:
        """Return a `Scan` of the newest version, or of `version` or `as_of`.

        `where` is SQL text in `dialect`, a Rowsieve predicate or an engine's expression. `session`
        holds the session settings that text depends on (default: UTC, the dialect's defaults).
        `columns` is a list of names, or a mapping of names to SQL expressions. Without
        `order_by_key`, rows have no defined order. `pruning="off"` reads every part; "soft" does
        too, and checks pruning against all rows. `audit` is the percentage of skipped data to
        check. A violation raises UnsoundPruning; with `on_violation="report"` it is logged and the
        rows are read without pruning. `plan` reads an earlier scan's plan at its version; only
        `columns` may differ. `memory_bytes` limits the memory of a read; if it cannot hold a batch
        of every part in a merge, row groups are decoded several times. `threads` is the number of
        decoding threads (default: one per core); one thread costs the least CPU.
        """
        if plan is not None and (version is not None or as_of is not None):
            raise InvalidInput(
                "scan: plan= reads the plan's own version; remove version= and as_of="
            )
        return Scan(
            self._store,
            self._resolve(version, as_of) if plan is None else self._version_of(plan),
            where=where,
            columns=columns,
            limit=limit,
            order_by_key=order_by_key,
            pruning=pruning,
            audit=audit,
            on_violation=on_violation,
            dialect=dialect,
            session=session,
            plan=plan,
            memory_bytes=memory_bytes,
            threads=threads,
            reporter=self._reporter,
        )

    def require_pruning(
        self, where: Any, *, dialect: str = "postgres", session: Session | None = None
    ) -> Explanation:
        """Explain the scan of a predicate; reject a predicate that can never skip a part.

        UnprunablePredicate names each conjunct that cannot refute any part, the reason, and the
        remedy. Call this first where an application depends on pruning.
        """
        return self.scan(where, dialect=dialect, session=session).require_pruning()

    @property
    def reporter(self) -> Reporter | None:
        """The reporter of reads and commits: the table's own, else the process's."""
        return self._reporter or current().reporter

    def snapshot_for_engines(self) -> Snapshot:
        """The pinned snapshot."""
        return self._pinned

    @property
    def store(self) -> ObjectStore:
        """The object store that holds the table."""
        return self._store

    @property
    def storage_options(self) -> StorageOptions:
        """The options with which another process opens the store; may hold secrets."""
        return self._storage_options

    @property
    def _inner(self) -> Any:
        """The attribute that DataFusion's `register_table` reads."""
        return self.to_datafusion()._inner

    def to_datafusion(
        self,
        *,
        pruning: Pruning | None = None,
        audit: Percentage | None = None,
        on_violation: OnViolation | None = None,
        reporter: Reporter | None = None,
    ) -> Any:
        """Return an object for DataFusion's `register_table`, with read options of its own.

        `pruning`, `audit` and `on_violation` are as in `scan`. `reporter` receives the reports of
        these reads instead of the table's own.
        """
        return engines.datafusion().catalog_table(
            self, pruning=pruning, audit=audit, on_violation=on_violation, reporter=reporter
        )

    def to_spark(self, spark: Any, where: Any = None, columns: ColumnNames | None = None) -> Any:
        """Return a Spark DataFrame of the pinned version; text in `where` is Spark SQL."""
        if isinstance(self._read_only, str):  # Spark cannot open the table by its URI
            return engines.spark().read_planned(self, spark, where, columns)
        return engines.spark().read_frame(self, spark, where, columns)

    # Changing

    @changes("upsert")
    def upsert(
        self,
        data: Any,
        *,
        on_duplicate: OnDuplicate = "error",
        schema_mode: SchemaMode = "strict",
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Insert rows, or replace the rows that have the same key.

        The data must have every column. A duplicate key is a KeyViolation unless
        `on_duplicate="last"`. Upserts never conflict: for each key the later commit wins.
        `schema_mode="merge"` adds the columns that the table lacks, in the same commit.
        """
        change = self._change("upsert", metadata, token)
        order = self._order("upsert")
        schema = self._newest.schema
        table = read_data(data, "upsert", schema)
        if schema_mode == "merge":
            return self._commit_merging(
                change,
                table,
                lambda rows, schema: prepare_rows(
                    rows,
                    schema,
                    KeyOrder.of(schema, self._newest.table.key),
                    on_duplicate,
                    "upsert",
                ),
            )
        rows = prepare_rows(table, schema, order, on_duplicate, "upsert")
        return self._commit_blind(change, Changes(rows, None))

    @changes("append")
    def append(
        self,
        data: Any,
        *,
        schema_mode: SchemaMode = "strict",
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Add rows to a table without a key; columns that the data lacks get their default.

        `schema_mode="merge"` adds the columns that the table lacks, in the same commit.
        """
        if self.key:
            raise UnsupportedOperation(
                f"append: the table has the key ({', '.join(self.key)}), and appended rows could "
                "duplicate existing keys; use upsert"
            )
        change = self._change("append", metadata, token)
        schema = self._newest.schema
        table = read_data(data, "append", schema, appends=True)
        if schema_mode == "merge":
            return self._commit_merging(change, table, prepare_appended)
        rows = prepare_appended(table, schema)
        return self._commit_blind(change, Changes(rows, None))

    @changes("apply")
    def apply_changes(
        self,
        data: Any,
        *,
        op: str,
        sequence: str,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Apply a change stream in one commit: per key, the action with the highest `sequence`.

        `op` names the column of actions: i, u, c, r, insert, update, upsert, create and read write
        the row; d and delete remove its key. A deleted row needs only its key columns.
        """
        change = self._change("apply", metadata, token)
        order = self._order("apply_changes")
        schema = self._newest.schema
        table = read_data(data, "apply_changes", schema, op=op)
        return self._commit_blind(
            change, reduce_changes(table, schema, order, op=op, sequence=sequence)
        )

    @changes("delete")
    def delete(
        self,
        where: Any = None,
        *,
        keys: Any = None,
        plan: GivenPlan | None = None,
        dialect: str = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Delete rows by predicate, by key (`keys`: Arrow data with the key columns), or by plan.

        A delete by key reads nothing and never conflicts. A delete by predicate deletes the rows
        that match in the version right before its own commit; under snapshot isolation, rows that
        concurrent commits insert survive. A delete by plan deletes exactly the rows that the plan
        returns, and raises StalePlan if the table has a newer version, or a concurrent commit
        changes the plan's result. CommitConflict if concurrent commits prevent the delete for
        `retry_timeout_s` seconds.
        """
        if (where is not None) + (keys is not None) + (plan is not None) != 1:
            raise InvalidInput(
                "delete takes exactly one of a predicate, keys= and plan=; "
                "delete('TRUE') deletes all rows"
            )
        if plan is not None:
            change = self._change("delete", metadata, token, retry_timeout_s)
            return self._commit_planned(
                change, plan, lambda head: delete_planned(change, head, plan)
            )
        if keys is None:
            change = self._change("delete", metadata, token, retry_timeout_s)
            schema = self._newest.schema
            question = _question(where, dialect, schema, session)
            return self._commit_mutation(
                change,
                lambda snapshot: delete_where(change, snapshot, question),
                reads=(schema, lambda: columns_read(schema, question, {})),
            )
        change = self._change("delete_keys", metadata, token, retry_timeout_s)
        order = self._order("delete by key")
        schema = self._newest.schema.select(order.names)
        table = prepare_keys(read_data(keys, "delete", schema), schema, order, "delete")
        return self._commit_blind(change, Changes(None, table))

    @changes("update")
    def update(
        self,
        assignments: Annotated[Mapping[str, Any], Example("{'delay': 'delay + 5'}")],
        *,
        where: Any = None,
        plan: GivenPlan | None = None,
        dialect: str = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Assign columns in every matching row: `{"delay": "delay + 5"}`.

        Text is a SQL expression over the row's old values; numbers, booleans and None are
        literals. With `plan`, changes exactly the rows that the plan returns, and evaluates with
        the plan's semantics and time; StalePlan as for `delete`. CommitConflict if concurrent
        commits prevent the update for `retry_timeout_s` seconds.
        """
        if not assignments:
            raise InvalidInput("update: assignments is empty; give e.g. {'delay': 'delay + 5'}")
        if where is not None and plan is not None:
            raise InvalidInput("update takes where= or plan=, not both; remove one of them")
        change = self._change("update", metadata, token, retry_timeout_s)
        schema, semantics = self._newest.schema, semantics_of(dialect, None, session)
        operands = {
            schema.field(name).name: _assigned(value, dialect, schema, semantics)
            for name, value in assignments.items()
        }
        if len(operands) < len(assignments):
            raise InvalidInput(f"update: two values for one column: {', '.join(assignments)}")
        if plan is not None:
            return self._commit_planned(
                change, plan, lambda head: update_planned(change, head, plan, operands)
            )
        for name, value in assignments.items():
            with locating_errors(value, dialect, schema, semantics, is_value=True):
                field = schema.field(name)
                bind_operand(Cast(operands[field.name], field.type), schema, semantics, now_us=0)
        question = _question(where, dialect, schema, session)
        return self._commit_mutation(
            change,
            lambda snapshot: update_where(change, snapshot, question, operands),
            reads=(schema, lambda: columns_read(schema, question, operands)),
        )

    @changes("overwrite")
    def overwrite(
        self,
        data: Any,
        *,
        where: Any = None,
        dialect: str = "postgres",
        session: Session | None = None,
        metadata: Metadata | None = None,
        token: Token | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Replace all rows, or the rows that match `where`, with `data`.

        With `where`, every row of the data must match it, and no key of the data may belong to an
        existing row that does not match. CommitConflict if concurrent commits prevent the
        overwrite for `retry_timeout_s` seconds.
        """
        change = self._change("overwrite", metadata, token, retry_timeout_s)
        schema = self._newest.schema
        table = read_data(data, "overwrite", schema, appends=not self.key)
        if not table.num_rows:
            raise EmptyData(
                "overwrite: the data has no rows; nothing was written. Use delete to remove rows; "
                "delete('TRUE') removes all of them"
            )
        if self.key:
            rows = prepare_rows(table, schema, self._order("overwrite"), "error", "overwrite")
        else:
            rows = prepare_appended(table, schema)
        if where is not None:
            question = _question(where, dialect, self._newest.schema, session)
            return self._commit_mutation(
                change, lambda snapshot: overwrite_where(change, snapshot, question, rows)
            )
        return self._commit_overwrite(change, rows)

    @changes("restore")
    def restore(
        self,
        version: int,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Restore the rows of `version` in a new commit; the history is kept.

        CommitConflict if concurrent commits prevent the restore for `retry_timeout_s` seconds.
        """
        notes = {**(metadata or {}), "restored": str(version)}
        change = self._change("restore", notes, None, retry_timeout_s)
        reading = in_thread(partial(self._log.at, version)) if self._store.overlaps else None
        head = self._latest()
        target = self._log.at(version) if reading is None else reading.result()
        return self._commit(change, head, lambda head: restore_to(change, head, target))

    @changes("cherry_pick")
    def cherry_pick(
        self, version: int, *, retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S
    ) -> Commit:
        """Repeat the changes of the commit of `version`, which a restore has undone.

        A second call changes nothing. UnsupportedOperation with the reason if it cannot be sound:
        the commit is not undone, it depended on other rows, the columns have changed, or newer rows
        have keys in its ranges. All rows of the commit are held in memory.
        """
        picked = self._log.at(version)
        operation, notes = operation_of(self._log, version), {PICKED: str(version)}
        change = self._change(operation, notes, None, retry_timeout_s)
        try:
            return self._commit(change, self._latest(), partial(self._picking, change, picked))
        except AlreadyPicked:
            return nothing_done("cherry_pick", self._latest())

    def _picking(self, change: Change, picked: Snapshot, head: Snapshot) -> CommitRequest:
        check_kept(picked.version, head)
        if is_picked(self._log, head, picked.version):
            raise AlreadyPicked
        return change.write(head, changes_of(self._store, picked, change.operation, head))

    def _commit_planned(
        self, change: Change, plan: ScanPlan, build: Callable[[Snapshot], Mutation | None]
    ) -> Commit:
        try:
            return self._commit_mutation(change, build, recompute=False)
        except Stale as error:
            raise StalePlan(
                f"{change.operation}: a concurrent commit changed the result of the plan, made at "
                f"version {plan.version}; nothing was changed. Plan the scan again"
            ) from error

    def _version_of(self, plan: ScanPlan) -> Snapshot:
        with self._lock:
            known = (self._pinned, self._newest)
        for snapshot in known:
            if self._read_only or snapshot.version == plan.version:
                return snapshot
        if plan.table_uuid != self._pinned.table.uuid:
            return self._pinned  # check_fits rejects the plan of another table
        return self._log.at(plan.version)


def _question(where: Any, dialect: str, schema: Schema, session: Session | None) -> Question:
    semantics = semantics_of(dialect, where, session)
    now_us = clock.now_us()
    with locating_errors(where, dialect, schema, semantics):
        predicate = to_predicate(where, dialect, schema, semantics, session)
        if isinstance(where, str):
            bind(predicate, schema, semantics, now_us=now_us, simplified=False)
    return Question(predicate, semantics, now_us)


def _assigned(value: Any, dialect: str, schema: Schema, semantics: Semantics) -> Operand:
    if value is None or isinstance(value, bool | int | float):
        return LiteralNode(value)
    return to_operand(value, dialect, schema, semantics)
