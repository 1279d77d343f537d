"""A table as users hold it: changed, scanned, registered in engines.

A `Table` keeps one version pinned for the engines it is registered in; that moves with its own
commits and with `refresh()`, so that two scans of one statement never see two versions (invariant
23). `scan` and every change look for the newest version first. A table opened at a version is
read-only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal

import pyarrow as pa

from rowsieve import engines
from rowsieve.arguments import Example, checked_methods
from rowsieve.arguments.annotations import (
    ColumnNames,
    Metadata,
    Moment,
    Percentage,
    Properties,
    PropertyNames,
    RetryTimeout,
    StorageOptions,
    Token,
)
from rowsieve.bridges.session import Session
from rowsieve.bridges.where import semantics_of, to_operand, to_predicate
from rowsieve.changes.change import Change, Question
from rowsieve.changes.handle import changes, nothing_done
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
    overwrite_all,
    overwrite_where,
    restore_to,
    update_planned,
    update_where,
)
from rowsieve.changes.settings import change_properties, checked_settings, is_set
from rowsieve.compaction.run import COMPACTION_RETRY_TIMEOUT_S, Progress, plan_compaction
from rowsieve.config import OnViolation, Pruning, current
from rowsieve.errors import EmptyData, InvalidInput, StalePlan, UnsupportedOperation
from rowsieve.metrics import Reporter, WriterMetrics
from rowsieve.objects import ObjectStore
from rowsieve.planner.explanation import Explanation
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.ir import Literal as LiteralNode
from rowsieve.predicate.ir import Operand
from rowsieve.predicate.semantics import Semantics
from rowsieve.properties import check_name
from rowsieve.reading import Reading
from rowsieve.scan import Columns, GivenPlan, Scan
from rowsieve.stats.collect import MakeCollector
from rowsieve.storage.log_entry import Commit
from rowsieve.storage.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.instants import from_microseconds
from rowsieve.types.schema import Schema


@checked_methods
class Table(Reading):
    """A handle on one table; made by `create_table` and `open_table`. Safe to share by threads."""

    # What it is

    @property
    def uri(self) -> str:
        """Where the table stands, without credentials."""
        return self._store.uri

    @property
    def version(self) -> int:
        """The pinned version: what engines that hold this table read."""
        return self._pinned.version

    @property
    def schema(self) -> pa.Schema:
        """The columns as an Arrow schema; field ids are in the fields' metadata."""
        return arrow_schema(self._pinned.schema)

    @property
    def key(self) -> tuple[str, ...]:
        """The key columns, empty for a table without a key."""
        return self._pinned.table.key

    @property
    def writer_metrics(self) -> WriterMetrics:
        """What taking statistics has cost in all that this object wrote."""
        return self._collecting.metrics

    def collect_with(self, column: str, make: MakeCollector) -> None:
        """Take a column's statistics by a collector of your own in what this object writes.

        `make` gives one for each part, of the column's `Field`. What it says is held against the
        column's type; that its bounds hold for all values is its own to answer for.
        """
        self._collecting.overrides[self._newest.schema.field(column).name] = make

    def report_to(self, reporter: Reporter | None) -> None:
        """Tell a reporter of each read of this object's scans and of each of its commits.

        One that is there is replaced; None tells nobody. Scans that were made before are not told.
        """
        with self._lock:
            self._reporter, self._told = reporter, replace(self._collecting.metrics)

    def detail(self) -> dict[str, Any]:
        """Facts of the pinned version, as plain values; `rows_stored` counts hidden ones too."""
        snapshot = self._pinned
        parts = snapshot.parts
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
            "size_bytes": sum(
                int(parts.numbers(name).sum())
                for name in ("data.size_bytes", "deletes.size_bytes", "dv.size_bytes")
            ),
        }

    def history(self, limit: int | None = None) -> list[Commit]:
        """The commits, newest first."""
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
        """A read of the newest version, or of the one asked for.

        `where` is SQL text in `dialect`, one of our predicates or an engine's expression; `session`
        has the settings by which text is meant: UTC and the dialect's defaults unless given.
        `columns` is a list of names, or names with SQL expressions. Rows come in no particular
        order unless `order_by_key`. `pruning="soft"` checks pruning against all rows, "off" does
        without; `audit` checks that percentage of what pruning skips. What does not hold raises
        UnsoundPruning, or is logged and the rows read without pruning (`on_violation="report"`).
        With `plan`, an earlier scan's plan is read again at its version; only `columns` may differ.
        `memory_bytes` bounds what a read holds at once; too little for a batch of every part that
        is merged makes it decode row groups several times. `threads` decode at a time: as many as
        there are cores, or the number given; one costs the least CPU.
        """
        if plan is not None and (version is not None or as_of is not None):
            raise InvalidInput("a scan with plan= reads the plan's version: leave out the other")
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
        """Refuse a condition that skips nothing, whatever the data; else explain its scan.

        UnprunablePredicate names each condition of the conjunction that can refute no part, why,
        and what would help. What depends on pruning by a condition asks this beforehand.
        """
        return self.scan(where, dialect=dialect, session=session).require_pruning()

    @property
    def reporter(self) -> Reporter | None:
        """Who is told of reads and commits: the table's own reporter, else the process's."""
        return self._reporter or current().reporter

    def snapshot_for_engines(self) -> Snapshot:
        """The pinned snapshot."""
        return self._pinned

    @property
    def store(self) -> ObjectStore:
        """The store that the table lives in."""
        return self._store

    @property
    def storage_options(self) -> StorageOptions:
        """How the store is opened in another process; may hold secrets."""
        return self._storage_options

    @property
    def _inner(self) -> Any:
        """DataFusion's `register_table` asks for this."""
        return self.to_datafusion()._inner

    def to_datafusion(
        self,
        *,
        pruning: Pruning | None = None,
        audit: Percentage | None = None,
        on_violation: OnViolation | None = None,
        reporter: Reporter | None = None,
    ) -> Any:
        """What DataFusion's `register_table` takes, where its reads are to differ from others.

        `pruning`, `audit` and `on_violation` are those of `scan`; `reporter` is told of these reads
        in place of the table's own.
        """
        return engines.datafusion().catalog_table(
            self, pruning=pruning, audit=audit, on_violation=on_violation, reporter=reporter
        )

    def to_spark(self, spark: Any, where: Any = None, columns: ColumnNames | None = None) -> Any:
        """A Spark DataFrame of the pinned version; `where` as text is Spark's SQL."""
        return engines.spark().read_frame(self, spark, where, columns)

    # Changing

    @changes("upsert")
    def upsert(
        self,
        data: Any,
        *,
        on_duplicate: OnDuplicate = "error",
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Write rows: each becomes the row of its key, whether there was one or not.

        The data has every column. A key twice is a KeyViolation unless `on_duplicate="last"`. Never
        conflicts with another upsert: of two, the later commit wins per key.
        """
        order = self._order("upsert")
        change = self._change("upsert", metadata, token)
        schema = self._newest.schema
        table = read_data(data, "upsert", schema)
        rows = prepare_rows(table, schema, order, on_duplicate, "upsert")
        return self._commit_blind(change, Changes(rows, None))

    @changes("append")
    def append(
        self,
        data: Any,
        *,
        metadata: Metadata | None = None,
        token: Token | None = None,
    ) -> Commit:
        """Add rows to a table without a key. Columns that the data lacks are NULL."""
        if self.key:
            raise UnsupportedOperation(
                f"append: the table has the key ({', '.join(self.key)}), so rows may meet rows "
                "that are there; use upsert"
            )
        change = self._change("append", metadata, token)
        schema = self._newest.schema
        rows = prepare_appended(read_data(data, "append", schema), schema)
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
        """Apply a change stream in one commit: per key the action with the highest `sequence`.

        Column `op` says i, u, c, r, insert, update, upsert, create or read to write the row, d or
        delete to take its key away; a deleted row needs its key columns only.
        """
        order = self._order("apply_changes")
        change = self._change("apply", metadata, token)
        schema = self._newest.schema
        table = read_data(data, "apply_changes", schema)
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

        By key it reads nothing and never conflicts. By predicate it deletes the rows that match in
        the version right before its own commit; under snapshot isolation, rows that others insert
        meanwhile survive. By plan it deletes exactly the rows that the plan returns: StalePlan if
        the table has moved past it, or another commit changes what the plan would return.
        CommitConflict if others commit first until `retry_timeout_s` seconds have passed.
        """
        if (where is not None) + (keys is not None) + (plan is not None) != 1:
            raise InvalidInput(
                "delete takes one of a predicate, keys= and plan=; to delete all rows: 'TRUE'"
            )
        if plan is not None:
            change = self._change("delete", metadata, token, retry_timeout_s)
            return self._commit_planned(
                change, plan, lambda head: delete_planned(change, head, plan)
            )
        if keys is None:
            change = self._change("delete", metadata, token, retry_timeout_s)
            question = _question(where, dialect, self._newest.schema, session)
            return self._commit_mutation(
                change, lambda snapshot: delete_where(change, snapshot, question)
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

        Text is a SQL expression over the row's old values; numbers, booleans and None stand for
        themselves. CommitConflict if others commit first until `retry_timeout_s` seconds have
        passed. By plan it changes exactly the rows that the plan returns, and computes by the
        plan's semantics and time; StalePlan as for `delete`.
        """
        if not assignments:
            raise InvalidInput("update needs assignments, such as {'delay': 'delay + 5'}")
        if where is not None and plan is not None:
            raise InvalidInput("update takes one of where= and plan=")
        schema, meant = self._newest.schema, semantics_of(dialect, None, session)
        operands = {
            schema.field(name).name: _assigned(value, dialect, schema, meant)
            for name, value in assignments.items()
        }
        change = self._change("update", metadata, token, retry_timeout_s)
        if plan is not None:
            return self._commit_planned(
                change, plan, lambda head: update_planned(change, head, plan, operands)
            )
        question = _question(where, dialect, self._newest.schema, session)
        return self._commit_mutation(
            change, lambda snapshot: update_where(change, snapshot, question, operands)
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
        """Put `data` in the place of all rows, or of those that match `where`.

        With `where`, every row of the data must match it, and no key of the data may belong to a
        row that does not. CommitConflict if others commit first until `retry_timeout_s` seconds
        have passed.
        """
        change = self._change("overwrite", metadata, token, retry_timeout_s)
        schema = self._newest.schema
        table = read_data(data, "overwrite", schema)
        if not table.num_rows:
            raise EmptyData(
                "overwrite got no rows to put in the place of others; nothing was written: to take "
                "rows away use delete, all of them with delete('TRUE')"
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
        base = self._latest()
        if (done := self._log.committed_before(change.token, base)) is not None:
            return done
        added = change.write(base, Changes(rows, None)).added
        assert added is not None
        return self._commit(
            change, base, lambda head: overwrite_all(change, head, added, rows.num_rows)
        )

    @changes("restore")
    def restore(
        self,
        version: int,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Make the rows what they were at `version`, as a new commit; history is kept.

        CommitConflict if others commit first until `retry_timeout_s` seconds have passed.
        """
        notes = {**(metadata or {}), "restored": str(version)}
        change = self._change("restore", notes, None, retry_timeout_s)
        target = self._log.at(version)
        return self._commit(change, self._latest(), lambda head: restore_to(change, head, target))

    @changes("compact")
    def compact(
        self,
        *,
        metadata: Metadata | None = None,
        progress: Progress | None = None,
        retry_timeout_s: RetryTimeout = COMPACTION_RETRY_TIMEOUT_S,
    ) -> Commit:
        """Rewrite parts that hold several versions of keys, deletes or little, each row once.

        Readers of older versions are not disturbed: nothing is deleted. Memory is bounded by one
        output part and a batch per input part. If others change these parts it is done again, and
        CommitConflict once `retry_timeout_s` seconds have passed.
        """
        self._writable("compact")
        notes = dict(metadata or {})
        return self._commit_mutation(
            self._change("compact", notes, None, retry_timeout_s),
            lambda snapshot: plan_compaction(
                self._store, snapshot, notes, progress, self._collecting
            ),
        )

    @changes("set_properties")
    def set_properties(
        self,
        properties: Properties,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Set table properties from the next version on; those that are not named stay.

        Each applies to what is written, or read, on that version or later. InvalidInput for one
        that does not exist or does not fit. Nothing is committed if all have these values already.
        """
        self._writable("set_properties")
        head = self._latest()
        return self._set(
            "set_properties", checked_settings(properties, head), metadata, retry_timeout_s
        )

    @changes("unset_properties")
    def unset_properties(
        self,
        names: PropertyNames,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Give table properties their defaults again, from the next version on.

        Nothing is committed if none of them is set.
        """
        self._writable("unset_properties")
        for name in names:
            check_name(name)
        return self._set("unset_properties", dict.fromkeys(names), metadata, retry_timeout_s)

    def _set(
        self,
        operation: str,
        wanted: Mapping[str, str | None],
        metadata: Metadata | None,
        retry_timeout_s: float | None,
    ) -> Commit:
        if not wanted:
            raise InvalidInput(f"{operation} names no property")
        notes: dict[str, Any] = {**(metadata or {}), "properties": dict(wanted)}
        change = self._change(operation, notes, None, retry_timeout_s)
        head = self._latest()
        if is_set(head, wanted):
            return nothing_done(operation, head)
        return self._commit(change, head, lambda head: change_properties(change, head, wanted))

    @changes("write_spark")
    def write_spark(self, frame: Any, mode: Literal["upsert", "append", "delete"]) -> Commit:
        """Write a Spark DataFrame in one commit; its tasks write disjoint key ranges."""
        started_s = time.perf_counter()
        self._writable("write_spark")
        commit = engines.spark().write_frame(self, frame, mode)
        return self._reported(commit, started_s) if commit.parts_added else commit

    def _commit_planned(
        self, change: Change, plan: ScanPlan, build: Callable[[Snapshot], Mutation | None]
    ) -> Commit:
        try:
            return self._commit_mutation(change, build, recompute=False)
        except Stale as error:
            raise StalePlan(
                f"{change.operation}: another commit changed what the plan returns, which is of "
                f"version {plan.version}; nothing was changed: plan the scan again"
            ) from error

    def _version_of(self, plan: ScanPlan) -> Snapshot:
        with self._lock:
            known = (self._pinned, self._newest)
        for snapshot in known:
            if self._read_only or snapshot.version == plan.version:
                return snapshot
        if plan.table_uuid != self._pinned.table.uuid:
            return self._pinned  # found not to fit
        return self._log.at(plan.version)


def _question(where: Any, dialect: str, schema: Schema, session: Session | None) -> Question:
    semantics = semantics_of(dialect, where, session)
    predicate = to_predicate(where, dialect, schema, semantics, session)
    return Question(predicate, semantics, time.time_ns() // 1000)


def _assigned(value: Any, dialect: str, schema: Schema, semantics: Semantics) -> Operand:
    if value is None or isinstance(value, bool | int | float):
        return LiteralNode(value)
    return to_operand(value, dialect, schema, semantics)
