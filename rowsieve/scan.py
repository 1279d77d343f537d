"""The public `Scan` class: pins one version when built, and reads on demand.

A scan can be read any number of times; each read starts from the beginning. It returns Arrow data
(a table, a reader, the C stream), row counts, its plan, and the explanation of the plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import msgspec
import pyarrow as pa

from rowsieve import clock
from rowsieve.arguments import Example, checked, checked_methods
from rowsieve.arguments.annotations import ColumnNames, StorageOptions
from rowsieve.arguments.peer_names import SCAN, unknown_attribute
from rowsieve.arguments.short_tracebacks import with_short_tracebacks
from rowsieve.bridges.condition_notes import brief
from rowsieve.bridges.session import Session
from rowsieve.bridges.sql import to_sql
from rowsieve.bridges.where import locating_errors, semantics_of, to_operand, to_predicate
from rowsieve.config import OnViolation, Pruning, current
from rowsieve.encodings.file_encoding import OnDifference, ReadEncoding
from rowsieve.errors import InvalidInput, UnprunablePredicate, UnsupportedOperation
from rowsieve.executor.audit import Auditor
from rowsieve.executor.execute import Execution
from rowsieve.executor.execute import resolve as resolve_plan
from rowsieve.executor.read_settings import ReadSwitches
from rowsieve.metrics import Reporter, ScanMetrics, ScanReport, send
from rowsieve.metrics.running_operations import Operation, opened
from rowsieve.metrics.running_operations import operation as begun_operation
from rowsieve.objects import ObjectStore, open_store
from rowsieve.planner.cache import PLANS
from rowsieve.planner.explain import explain
from rowsieve.planner.explanation import Explanation
from rowsieve.planner.failures import may_fail
from rowsieve.planner.plan import OutputColumn, ScanPlan, check_fits
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.planner.prunable import Unprunable, unprunable
from rowsieve.planner.statistics import ScanStatistics, plan_statistics
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.ir import TRUE, Operand, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.progress_bars import ShownProgress, shown
from rowsieve.shown import Shown, html
from rowsieve.storage.parts.reading_views import as_read, with_options
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.encodings import EXTENSION_KEYS, without_metadata
from rowsieve.types.schema import Schema

_PART_ID: Final = attrgetter("part_id")

Columns: TypeAlias = Annotated[
    ColumnNames | Mapping[str, Any],
    Example("['id']", "a list of names or a mapping of names to expressions"),
]
GivenPlan: TypeAlias = Annotated[ScanPlan, Example("ScanPlan.from_bytes(data)")]


@checked_methods
class Scan:
    """A scan of one table version.

    `pruning="off"` reads every part, for comparison. `"soft"` does too, and first checks everything
    that pruning would have skipped; `audit` checks a percentage of it. A row that contradicts
    pruning raises `UnsoundPruning`; with `on_violation="report"` it is counted and logged, and the
    rows are read without pruning. `read_encoding` and `on_encoding_difference` replace the table's
    properties. `semantics` overrides the evaluation rules of the dialect or
    engine. `session` holds the session settings that text depends on. `check_usable` raises as a
    read begins that may not be made any more; reads for which `is_current` is False are not
    reported, because their rows are dropped.
    """

    def __init__(
        self,
        store: ObjectStore,
        snapshot: Snapshot,
        *,
        where: Any = None,
        columns: Columns | None = None,
        limit: int | None = None,
        order_by_key: bool = False,
        pruning: Pruning | None = None,
        audit: float | None = None,
        on_violation: OnViolation | None = None,
        read_encoding: ReadEncoding | None = None,
        on_encoding_difference: OnDifference | None = None,
        dialect: str = "postgres",
        session: Session | None = None,
        semantics: Semantics | None = None,
        plan: ScanPlan | None = None,
        memory_bytes: int | None = None,
        threads: int | None = None,
        reporter: Reporter | None = None,
        check_usable: Callable[[str], None] | None = None,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        config = current()
        if read_encoding is not None or on_encoding_difference is not None:
            snapshot = with_options(snapshot, read_encoding, on_encoding_difference)
        snapshot = as_read(snapshot)
        memory_bytes = config.memory_bytes if memory_bytes is None else memory_bytes
        _check_numbers(memory_bytes, threads, limit)
        if order_by_key:
            _check_order(snapshot)
        self._store = store
        self._snapshot = snapshot
        self._memory_bytes = memory_bytes
        self._threads = threads
        self._check_usable, self._is_current = check_usable, is_current
        self._reporter = config.reporter if reporter is None else reporter
        switches = ReadSwitches(pruning, audit, on_violation, read_encoding, on_encoding_difference)
        self._settings = switches.settings(snapshot.table)
        self._percent = self._settings.audited_percent
        semantics = semantics or semantics_of(dialect, where, session)
        output = None
        if columns is not None:
            output = _output_columns(columns, snapshot, dialect, session)
        started = time.perf_counter()
        if plan is None:
            with (
                begun_operation("plan", "plan", store.uri, self._reporter),
                locating_errors(where, dialect, snapshot.schema, semantics),
            ):
                self._plan, self._reused = PLANS.plan(
                    snapshot,
                    store.uri,
                    predicate=to_predicate(where, dialect, snapshot.schema, semantics, session),
                    columns=output,
                    limit=limit,
                    ordered=order_by_key,
                    semantics=semantics,
                    now_us=clock.now_us(),
                    pruning=self._settings.skips,
                    split_bytes=config.split_bytes,
                )
            self._planning_s = time.perf_counter() - started
        else:
            others = (order_by_key, pruning, audit, read_encoding, on_encoding_difference)
            _check_given(plan, snapshot, where is not None or limit is not None or any(others))
            self._percent = 0.0  # one split does not tell which parts the whole plan skips
            self._plan = plan if output is None else msgspec.structs.replace(plan, columns=output)
            self._planning_s, self._reused = 0.0, True
        self._unread: Execution | None = None
        self._execution = self._unread = self._new_execution(self._plan)

    def __repr__(self) -> str:
        return self._shown().text()

    def _repr_html_(self) -> str:
        return html(self._shown())

    def _shown(self) -> Shown:
        """Summarise the request and the plan; reads nothing."""
        plan, metrics = self._plan, planned_metrics(self._plan)
        facts = {
            "version": str(self.version),
            "where": "all rows" if plan.predicate == TRUE else brief(plan.predicate),
            "limit": "none" if plan.limit is None else f"{plan.limit:,} rows",
            "planned": f"{metrics.parts_considered - metrics.parts_pruned:,} of "
            f"{metrics.parts_considered:,} parts to read",
        }
        columns = [(field.name, str(field.type)) for field in self.schema]
        return Shown(f"rowsieve.Scan of {self._store.uri}", facts, columns)

    @property
    def version(self) -> int:
        """The table version that this scan reads."""
        return self._snapshot.version

    if not TYPE_CHECKING:  # a checker would believe every name

        def __getattr__(self, name: str) -> object:
            """Say what to write in place of a method of another library."""
            return unknown_attribute(self, name, SCAN)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the result."""
        return self._execution.schema

    @property
    def metrics(self) -> ScanMetrics:
        """Counters of the last read; complete once its stream is exhausted."""
        return self._execution.metrics

    def plan(self, *, resolve: bool = False) -> ScanPlan:
        """Return the plan: self-contained and serialisable.

        With `resolve`, the plan also holds the rows to read of each part. Footers, Bloom filters
        and page indexes are read and hidden rows are resolved now, not by each reader of the plan.
        """
        if not resolve:
            return self._plan
        return PLANS.resolved(self._plan, lambda plan: resolve_plan(plan, self._store))

    def to_arrow(self, *, progress: ShownProgress | None = None) -> pa.Table:
        """Return all rows as a table; `progress=True` shows a bar of the parts that were read."""
        batches = self.to_batches() if progress is None else self._with_bar(progress)
        return pa.Table.from_batches(batches, schema=self._execution.schema)

    def _with_bar(self, progress: ShownProgress | None) -> Iterator[pa.RecordBatch]:
        with shown(progress, "parts read") as show:
            for batch in self.to_batches():
                if show is not None:
                    metrics = self.metrics
                    show(metrics.parts_read, metrics.parts_considered - metrics.parts_pruned)
                yield batch
            if show is not None:  # some may not have been needed
                parts = self.metrics.parts_considered - self.metrics.parts_pruned
                show(parts, parts)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows as a stream of batches of up to 65,536 rows."""
        if self._check_usable is not None:
            self._check_usable("scan")
        started_s = time.perf_counter()
        operation = opened("scan", "scan", self._store.uri, self._reporter)
        if self._percent:
            with self._reported_if_failing(operation, started_s):
                self._execution = operation.run(self._audited)
        else:
            self._execution = self._new_execution(self._plan)
        return with_short_tracebacks(self._reported(self._execution, operation, started_s))

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream, which reads while it is consumed."""
        return pa.RecordBatchReader.from_batches(self.schema, self.to_batches())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows as an Arrow C stream.

        Field ids are removed: engines compare field metadata, and ids would make equal types
        differ.
        """
        schema = without_metadata(self.schema, keep=EXTENSION_KEYS)
        batches = (
            pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in self.to_batches()
        )
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return reader.__arrow_c_stream__(requested_schema)

    def count(self) -> int:
        """Return the number of rows; from the manifest alone where its counts are exact.

        Raises EvaluationError where reading the rows would: an expression of `columns` that may
        fail is evaluated.
        """
        if self._check_usable is not None:
            self._check_usable("scan")
        started_s = time.perf_counter()
        operation = opened("scan", "scan", self._store.uri, self._reporter)
        with self._reported_if_failing(operation, started_s):
            count = operation.run(self._counted)
        self._report(operation, self._execution.metrics, None, started_s)
        return count

    def _counted(self) -> int:
        self._execution = self._audited() if self._percent else self._new_execution(self._plan)
        if self._columns_may_fail():
            return sum(batch.num_rows for batch in self._execution.read())
        return self._execution.count()

    def _columns_may_fail(self) -> bool:
        """Return whether an expression of `columns` may fail on a row, by the statistics."""
        plan = self._plan
        expressions = [
            column.operand for column in plan.columns or () if column.operand is not None
        ]
        return any(
            may_fail(
                self._snapshot,
                bind_operand(operand, self._snapshot.schema, plan.semantics, now_us=plan.now_us),
            )
            for operand in expressions
        )

    def statistics(self) -> ScanStatistics:
        """Return estimates of the result from the manifest alone: rows, bytes, bounds, NULLs.

        They say which of them are exact.
        """
        return plan_statistics(self._plan, self._snapshot)

    def explain(self, *, row_groups: bool = False, analyze: bool = False) -> Explanation:
        """Explain which parts are skipped and why; `str()` gives text, `.as_dict()` plain values.

        With `row_groups`, also explain the row groups of the parts to read; this reads the footers
        of these parts. With `analyze`, all rows are read once and dropped; `measured` has the
        counters of that read, and row groups are explained. A notebook shows the picture.
        """
        store = self._store if row_groups or analyze else None
        explanation = explain(
            self._plan, self._snapshot, _text, store=store, flags=self._settings.flags
        )
        if not analyze:
            return explanation
        for _ in self.to_batches():
            pass
        return replace(explanation, measured=self.metrics.as_dict())

    def require_pruning(self) -> Explanation:
        """Return `explain()`, or raise UnprunablePredicate if a conjunct cannot skip any part.

        Each conjunct must refute a part of the table, or be able to refute a part whose statistics
        lie far from the conjunct's values. Reads no files.
        """
        plan = self._plan
        reasons = unprunable(
            plan.predicate, self._snapshot, _text, semantics=plan.semantics, now_us=plan.now_us
        )
        if not plan.pruning:
            reasons = [Unprunable(_text(plan.predicate), "the scan was created with pruning='off'")]
        if reasons:
            raise UnprunablePredicate(
                f"{self._store.uri} at version {self.version} cannot be pruned by "
                f"{'; nor by '.join(map(str, reasons))}",
                conditions=tuple(each.condition for each in reasons),
            )
        return self.explain()

    def _audited(self) -> Execution:
        """Audit, then return a new execution: without pruning if the audit detected a violation.

        The audit checks the plan that is read. A plan with a limit is planned again without it,
        because pruning makes no claim about rows that a limit leaves out.
        """
        plan = self._plan
        is_whole = plan.pruning and plan.limit is None
        outcome = Auditor(
            (lambda: plan) if is_whole else partial(self._replanned, pruning=True),
            partial(self._replanned, pruning=False),
            lambda audited: Execution(
                audited, self._store, threads=self._threads, memory_bytes=self._memory_bytes
            ),
            self._percent,
            self._settings.on_violation,
        ).run()
        if outcome.violations:
            plan = self._replanned(pruning=False, limit=plan.limit)
        execution = self._new_execution(plan)
        outcome.count_in(execution.metrics)
        return execution

    def _reported(
        self, execution: Execution, operation: Operation, started_s: float
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, and send a report when they end or the consumer stops."""
        try:
            yield from operation.each(execution.read())
        except BaseException as error:
            self._report(operation, execution.metrics, error, started_s)
            raise
        self._report(operation, execution.metrics, None, started_s)

    @contextmanager
    def _reported_if_failing(self, operation: Operation, started_s: float) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._report(operation, self._execution.metrics, error, started_s)
            raise

    def _report(
        self,
        operation: Operation,
        metrics: ScanMetrics,
        error: BaseException | None,
        started_s: float,
    ) -> None:
        """End the operation, with a report if there is a reporter."""
        if (reporter := self._reporter) is not None and self._is_current():
            elapsed_s = self._planning_s + time.perf_counter() - started_s
            uri, name = self._store.uri, None if error is None else type(error).__name__
            operation.run(
                lambda: send(
                    reporter, ScanReport(uri, self.version, metrics, name, elapsed_s=elapsed_s)
                )
            )
        if operation.observer is not None:
            operation.end(error)

    def _replanned(self, *, pruning: bool, limit: int | None = None) -> ScanPlan:
        """Plan the same query again; the plan cache does not keep the result, it can be large."""
        return plan_scan(
            self._snapshot,
            self._store.uri,
            predicate=self._plan.predicate,
            columns=self._plan.columns,
            limit=limit,
            ordered=self._plan.ordered,
            semantics=self._plan.semantics,
            now_us=self._plan.now_us,
            pruning=pruning,
            constrained=True,
        )

    def _new_execution(self, plan: ScanPlan) -> Execution:
        if plan is self._plan and self._unread is not None:
            unread, self._unread = self._unread, None
            return unread
        metrics = planned_metrics(plan)
        metrics.planning_s = self._planning_s
        metrics.flags = {name: {**shown} for name, shown in self._settings.flags_shown.items()}
        metrics.plans_reused = int(self._reused and plan is self._plan)
        return Execution(
            plan, self._store, metrics, threads=self._threads, memory_bytes=self._memory_bytes
        )


@checked
def read_split(
    split: bytes | ScanPlan, *, storage_options: StorageOptions | None = None
) -> pa.RecordBatchReader:
    """Read one split of a plan, in any process that can access the table's store.

    `split` is an item of `ScanPlan.splits_to_bytes`, or a plan decoded from one. Does not read the
    log: the split names its files. InvalidInput for other bytes, UnsupportedProtocol for a newer
    format.
    """
    plan = split if isinstance(split, ScanPlan) else ScanPlan.from_bytes(split)
    execution = Execution(plan, open_store(plan.table_uri, storage_options), threads=1)
    return pa.RecordBatchReader.from_batches(execution.schema, execution.read())


def planned_metrics(plan: ScanPlan) -> ScanMetrics:
    """Return the counters that are known from the plan, before any read."""
    metrics = ScanMetrics()
    part_ids: set[str] = set()
    for split in plan.splits:
        for piece in split.pieces:
            part_ids.update(map(_PART_ID, piece.parts))
            metrics.bytes_considered += piece.size_bytes
    for group in plan.pruned:
        metrics.parts_pruned += group.parts
        metrics.bytes_pruned += group.size_bytes
        metrics.pruned_by[group.by] = group.parts
    metrics.parts_considered = len(part_ids) + metrics.parts_pruned
    metrics.bytes_considered += metrics.bytes_pruned
    metrics.statistics_contradicting = plan.statistics_contradicting
    metrics.statistics_unreadable = plan.statistics_unreadable
    for part in plan.resolved or ():
        refuted = part.row_groups_by_statistics + part.row_groups_by_bloom
        metrics.note_pruned(part.row_groups, refuted, part.pages, part.pages_by_index)
    return metrics


def _text(predicate: Predicate) -> str:
    try:
        return to_sql(predicate)
    except UnsupportedOperation:  # it contains an expression of another engine
        return str(predicate)


def _check_numbers(memory_bytes: int, threads: int | None, limit: int | None) -> None:
    if memory_bytes < 1:
        raise InvalidInput(f"scan: memory_bytes must be at least 1, got {memory_bytes}")
    if threads is not None and threads < 1:
        raise InvalidInput(
            f"scan: threads must be at least 1, or None for all cores, got {threads}"
        )
    if limit is not None and limit < 0:
        raise InvalidInput(
            f"scan: limit must not be negative, got {limit}; leave it out for all rows"
        )


def _check_given(plan: ScanPlan, snapshot: Snapshot, has_others: bool) -> None:
    """Raise InvalidInput for a plan that does not fit, or has arguments which it fixes."""
    if has_others:
        raise InvalidInput(
            "scan: plan= can be combined with columns= only. The plan fixes the condition, "
            "limit and order, and is not audited again; remove the other arguments"
        )
    check_fits(plan, snapshot)


def _check_order(snapshot: Snapshot) -> None:
    if not snapshot.table.key:
        raise InvalidInput(
            "scan: order_by_key needs a table with a key, and this table has none; "
            "remove order_by_key"
        )


def _output_columns(
    columns: Columns, snapshot: Snapshot, dialect: str, session: Session | None
) -> tuple[OutputColumn, ...]:
    if isinstance(columns, str):
        raise InvalidInput(
            f"scan: columns= must be a list of names or a mapping, not the text {columns!r}; "
            f"write columns=[{columns!r}]"
        )
    if isinstance(columns, Mapping):
        semantics = semantics_of(dialect, None, session)
        return tuple(
            OutputColumn(name, _computed(expression, dialect, snapshot.schema, semantics))
            for name, expression in columns.items()
        )
    names = [snapshot.schema.field(name).name for name in columns]
    if len(set(names)) < len(names):
        raise InvalidInput(
            f"scan: columns= contains a column twice: {', '.join(names)}; remove the duplicate"
        )
    return tuple(OutputColumn(name) for name in names)


def _computed(expression: Any, dialect: str, schema: Schema, semantics: Semantics) -> Operand:
    """Read an expression of `columns=`."""
    with locating_errors(expression, dialect, schema, semantics, is_value=True):
        operand = to_operand(expression, dialect, schema, semantics)
        if isinstance(expression, str):
            bind_operand(operand, schema, semantics, now_us=0)
    return operand
