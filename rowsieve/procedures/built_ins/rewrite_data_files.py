"""`rewrite_data_files`: rewrite small, large and overlapping parts into parts of the target size.

The filter selects every part that may hold a matching row; rows that do not match are rewritten
with them and never lost. With `strict`, a filter that whole parts cannot enforce is refused. Tables
without a key can be sorted by columns or along a curve; parts of a table with a key are always in
its order. Partial progress commits groups of parts one after the other.

Soundness: only whole overlap groups are rewritten, and a task rewrites neighbouring groups, so no
other part of the version holds any of its keys. Its rows may get the newest commit_ts of its inputs
(invariant 11), and its tombstones delete nothing any more (trap T28): only an event order keeps
them (`rewrite_tombstones`). A commit fails if one of its inputs is no longer live (rule 13, trap
T25).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.changes.event_order.stored_floors import floor_row
from rowsieve.changes.placed_commits import commit_rewrite
from rowsieve.compaction.late_horizon import reached_horizon, with_raised_floor
from rowsieve.decoded_types import described
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.executor.consolidation.advanced_updates import advanced_updates
from rowsieve.executor.execute import Execution
from rowsieve.executor.sorted_rows import sorted_rows
from rowsieve.objects import ObjectStore, open_store
from rowsieve.planner.plan import ScanPlan, table_columns
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.procedures.built_ins.key_cuts import key_ranges
from rowsieve.procedures.built_ins.rewrite_options import RewriteOptions
from rowsieve.procedures.built_ins.rewrite_selection import groups_to_rewrite, has_deletes
from rowsieve.procedures.built_ins.rewrite_tombstones import (
    KeptTombstones,
    TaskResult,
    TombstoneTask,
    tombstone_task,
)
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
    TargetScan,
)
from rowsieve.properties import SINCE
from rowsieve.statements.call_values import Value
from rowsieve.storage.differential import as_updates, check_mode
from rowsieve.storage.log.commit_request import CommitRequest
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.storage.manifests.part_sketches import sketched_fields
from rowsieve.storage.parts.file_forms import target_part_bytes
from rowsieve.storage.parts.part_writer import PartWriter
from rowsieve.storage.parts.row_versions import to_rewrite
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.ordering.sort_order import SortOrder, cluster_order

Rows: TypeAlias = pa.Table | pa.RecordBatch


class RewriteTask(msgspec.Struct, frozen=True):
    """One task: the plan of its input parts, the table's properties, and the order to sort by.

    `notes` are for `RewriteDataFiles.changed`; `sketched` names the columns with sketches,
    `sequence` those of an event order, whose tombstones are kept.
    """

    plan: bytes
    properties: dict[str, str]
    order: SortOrder | None = None
    notes: dict[str, str] = {}
    sketched: tuple[str, ...] = ()
    sequence: tuple[str, ...] = ()
    tombstones: TombstoneTask | None = None


@dataclass(frozen=True, slots=True)
class _Group:
    """Parts that are replaced together, by the rows of one or more tasks."""

    parts: PartTable
    task_count: int

    @property
    def newest(self) -> int:
        """The newest commit_ts of the parts."""
        commit_ts: int = pc.max(self.parts.column("commit_ts_max")).as_py()
        return commit_ts


@dataclass(slots=True)
class _Rewrite:
    """The decisions of `begin`, and the results of the stages so far.

    `base` is the version of the table itself, because the version of a commit is made of it, with
    its checkpoint: never the one with the columns that only the files have.
    """

    base: Snapshot
    groups: Sequence[_Group]
    stages: Sequence[Sequence[_Group]]
    started_s: float
    dropped: list[pa.Table] = field(default_factory=list)  # greatest sequences of tombstones
    added: list[PartTable] = field(default_factory=list)
    removed: list[PartTable] = field(default_factory=list)
    failed_parts: int = 0
    commit_ids: list[str] = field(default_factory=list)
    version: int = 0


_STRATEGIES = ("binpack", "sort", "zorder", "hilbert")
_COUNTS = (
    "rewritten_data_files_count",
    "added_data_files_count",
    "rewritten_bytes_count",
    "added_bytes_count",
    "failed_data_files_count",
    "removed_delete_files_count",
    "version",
)


class RewriteDataFiles(DistributedProcedure):
    """Rewrites data files on workers and commits once, or once for each stage."""

    name = "rewrite_data_files"
    meaning = "rewrite small, large and overlapping parts into parts of the target size"
    moving_operation = "rewrite_data_files"  # in the log, if values stay as they are
    parameters: tuple[Parameter, ...] = (
        SCHEMA,
        TABLE_NAME,
        FILTER,
        Parameter(
            "options",
            ParameterType.OPTIONS,
            default={},
            meaning="target-file-size-bytes, min-input-files, rewrite-all and others",
        ),
        Parameter(
            "strategy", ParameterType.TEXT, meaning="'binpack', 'sort', 'zorder' or 'hilbert'"
        ),
        Parameter(
            "sort_order",
            ParameterType.TEXT,
            meaning="'a DESC NULLS LAST, b', 'zorder(a, b)', 'hilbert(a, b)'; or cluster_by's",
        ),
        Parameter(
            "dry_run",
            ParameterType.FLAG,
            default=False,
            meaning="only count the files that would be rewritten",
        ),
        Parameter(
            "strict",
            ParameterType.FLAG,
            default=False,
            meaning="refuse a filter that matches only some rows of a part; an option, too",
        ),
    )
    columns = pa.schema([(name, pa.int64()) for name in _COUNTS])

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin the version, select parts, and cut them into tasks of neighbouring parts."""
        started_s = time.perf_counter()
        pinned = context.table.handle.pinned
        check_mode(self.operation, pinned.table)
        snapshot = as_updates(pinned)
        texts = arguments.get("options") or {}
        assert isinstance(texts, Mapping)
        if arguments.get("strict"):
            texts = {**texts, "strict": "true"}
        options = RewriteOptions.of(texts, target_part_bytes(snapshot.table.properties))
        order = _sort_order(snapshot, arguments.get("strategy"), arguments.get("sort_order"))
        log = context.table.handle.log
        horizon = reached_horizon(snapshot, lambda moment: log.as_of(moment).version)
        part_groups = groups_to_rewrite(
            snapshot,
            context.target,
            options,
            self.only(snapshot),
            None if order is None else order.to_text(snapshot.schema),
            horizon,
        )
        if arguments.get("dry_run"):
            groups = [_Group(parts, 0) for parts in part_groups]
            rewrite = _Rewrite(pinned, groups, (), started_s)
            rewrite.removed += part_groups
            return Handle(snapshot.version, (), rewrite)
        if self.operation != "rewrite_rows":
            snapshot = to_rewrite(snapshot)
        tasks: list[bytes] = []
        groups = []
        encode = _task_encoder(snapshot, options, order, self.notes(arguments))
        for parts in part_groups:
            plans = _plans(snapshot, context.target, parts, options)
            groups.append(_Group(parts, len(plans)))
            tombstones = tombstone_task(snapshot, parts, horizon)
            tasks += (encode(plan, tombstones) for plan in plans)
            context.scanned.update(parts.part_ids)
        stages = _stages(groups, options.max_commits) if options.partial_progress else []
        return Handle(
            snapshot.version,
            tuple(tasks),
            _Rewrite(pinned, groups, stages, started_s),
            stages=tuple(sum(group.task_count for group in stage) for stage in stages),
            max_concurrent=options.max_concurrent,
        )

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Rewrite the visible rows of the task's parts into new files."""
        work = msgspec.msgpack.decode(task, type=described(RewriteTask))
        plan = ScanPlan.from_bytes(work.plan)
        store = open_store(plan.table_uri, storage_options)
        key = KeyOrder.of(plan.schema, plan.key).fields if plan.key else ()
        order = work.order or cluster_order(work.properties, plan.schema)
        sequence = KeyOrder(tuple(map(plan.schema.field, work.sequence)))
        writer = PartWriter(
            store,
            plan.schema,
            key,
            work.properties,
            plan.version,
            sorted_by=order,
            sketched=map(plan.schema.field, work.sketched),
            sequence=sequence.fields,
            checked=self.operation != "rewrite_rows",
        )
        tombstones = KeptTombstones.of(plan, store, work.tombstones, sequence)
        row_count = 0
        updates: Iterable[Rows] = _rows(plan, store, order)
        if SINCE in work.properties:
            updates = advanced_updates(updates, int(work.properties[SINCE]))
        for rows in updates:
            row_count += rows.num_rows
            changed = self.changed(rows, work.notes)
            if changed is not rows:
                _check_changed(self.name, rows, changed, (*plan.key, *work.sequence))
                writer.forget_order()
            writer.write(changed)
            writer.write_deletes(tombstones.take(rows))
        writer.write_deletes(tombstones.remaining())
        yield row_count, tombstones.result(writer.finish())

    def only(self, snapshot: Snapshot) -> frozenset[int] | None:
        """The indices of the parts to rewrite, with those of their overlap groups; None for all."""
        del snapshot
        return None

    def notes(self, arguments: Mapping[str, Value]) -> dict[str, str]:
        """Return notes for `changed`, which workers get with their tasks; called by `begin`."""
        del arguments
        return {}

    def changed(self, rows: Rows, notes: Mapping[str, str]) -> Rows:
        """Return the rows to write in place of the rows read; by default the same.

        A subclass may change values, but not the order, keys and columns of the rows. Runs on
        workers.
        """
        del notes
        return rows

    @property
    def operation(self) -> str:
        """The operation of its commits in the log: it says whether values change."""
        changes_values = type(self).changed is not RewriteDataFiles.changed
        return "rewrite_rows" if changes_values else self.moving_operation

    def commit_stage(
        self,
        context: CallContext,
        handle: Handle,
        number: int,
        fragments: Sequence[Sequence[bytes]],
    ) -> None:
        """Replace the parts of the stage's groups in one commit."""
        rewrite = handle.details
        assert isinstance(rewrite, _Rewrite)
        self._commit(context, rewrite, rewrite.stages[number], fragments)

    def stage_failed(self, handle: Handle, number: int) -> None:
        """Count the parts of a stage that was not committed."""
        rewrite = handle.details
        assert isinstance(rewrite, _Rewrite)
        rewrite.failed_parts += sum(_file_count(group.parts) for group in rewrite.stages[number])

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Replace the scanned parts by the new ones in one commit, unless stages have done it."""
        rewrite = handle.details
        assert isinstance(rewrite, _Rewrite)
        if fragments:
            self._commit(context, rewrite, rewrite.groups, fragments)
        removed, added = PartTable.empty().append(*rewrite.removed), rewrite.added
        row = {
            "rewritten_data_files_count": _file_count(removed),
            "added_data_files_count": sum(map(_file_count, added)),
            "rewritten_bytes_count": _size_bytes(removed),
            "added_bytes_count": sum(map(_size_bytes, added)),
            "failed_data_files_count": rewrite.failed_parts,
            "removed_delete_files_count": max(
                0, sum(has_deletes(removed)) - sum(map(sum, map(has_deletes, rewrite.added)))
            ),
            "version": rewrite.version or handle.version,
        }
        return pa.Table.from_pylist([row], schema=self.columns)

    def _commit(
        self,
        context: CallContext,
        rewrite: _Rewrite,
        groups: Sequence[_Group],
        fragments: Sequence[Sequence[bytes]],
    ) -> None:
        removed = PartTable.empty().append(*(group.parts for group in groups))
        newest = [group.newest for group in groups for _ in range(group.task_count)]
        base, results = rewrite.base, list(_results(newest, fragments))
        added = PartTable.empty().append(*(parts for parts, _ in results))
        dropped = [floor_row(texts, base.sequence_fields) for _, texts in results if texts]
        request = CommitRequest(
            operation=self.operation,
            added=added,
            removed=tuple(sorted(removed.part_ids)),
            metadata={} if self.name == self.operation else {"procedure": self.name},
            rows_written=int(added.numbers("data.rows").sum()),
            info=with_raised_floor(base, [*rewrite.dropped, *dropped]),
            keeps_order=True,
        )
        commit = commit_rewrite(
            context.table.handle, base, request, rewrite.started_s, own_commits=rewrite.commit_ids
        )
        rewrite.commit_ids.append(commit.commit_id)
        rewrite.version = commit.version
        rewrite.dropped += dropped
        rewrite.removed.append(removed)
        rewrite.added.append(added)
        marked = zip(removed.part_ids, has_deletes(removed), strict=True)
        context.applied_deletes.update(part_id for part_id, has in marked if has)


def _results(
    newest: Sequence[int], fragments: Sequence[Sequence[bytes]]
) -> Iterator[tuple[PartTable, tuple[str, ...]]]:
    """The parts of each task, with the newest commit_ts of its group, and `TaskResult.dropped`."""
    for commit_ts, of_task in zip(newest, fragments, strict=True):
        for fragment in of_task:
            result = msgspec.msgpack.decode(fragment, type=described(TaskResult))
            yield PartTable.from_ipc(result.parts).with_commit_ts(commit_ts), result.dropped


def _check_changed(procedure: str, before: Rows, after: Rows, key: Sequence[str]) -> None:
    """Raise InvalidInput unless the rows have the columns and keys that they had (invariant I5)."""
    if before.schema != after.schema or before.num_rows != after.num_rows:
        raise InvalidInput(
            f"{procedure}: the changed rows have {after.num_rows} rows and the columns "
            f"{after.schema.names}; keep {before.num_rows} rows, and names and types of columns"
        )
    for name in key:
        if not before.column(name).equals(after.column(name)):
            raise InvalidInput(
                f"{procedure}: the column {name} belongs to the key or to the sequence, "
                "which no rewrite can change"
            )


def _task_encoder(
    snapshot: Snapshot, options: RewriteOptions, order: SortOrder | None, notes: dict[str, str]
) -> Callable[[ScanPlan, TombstoneTask | None], bytes]:
    """Return a function that encodes the task which rewrites the rows of a plan."""
    sketched = tuple(f.name for f in sketched_fields(snapshot.parts, snapshot.schema))
    properties = dict(snapshot.table.settings)
    properties["target_part_bytes"] = str(options.target_file_size_bytes)

    def encode(plan: ScanPlan, tombstones: TombstoneTask | None) -> bytes:
        sequence = snapshot.table.sequence
        task = RewriteTask(
            plan.to_bytes(), properties, order, notes, sketched, sequence, tombstones
        )
        return msgspec.msgpack.encode(task)

    return encode


def _sort_order(snapshot: Snapshot, strategy: Value, text: Value) -> SortOrder | None:
    """The order to sort by; None for bin-packing, which keeps the order of the table."""
    if strategy is None:
        strategy = "binpack" if text is None else "sort"
    name = str(strategy).lower()
    if name not in _STRATEGIES:
        raise InvalidInput(
            f"rewrite_data_files: strategy is {strategy!r}; give one of {', '.join(_STRATEGIES)}"
        )
    if name == "binpack":
        if text is not None:
            raise InvalidInput(
                "rewrite_data_files: sort_order is for the other strategies, and strategy is "
                "'binpack'; remove one of them"
            )
        return None
    key = snapshot.table.key
    if text is None and name == "sort":
        order = cluster_order(snapshot.table.properties, snapshot.schema)
        if key or order is not None:
            return order  # rows of a table with a key are always in the order of the key
    if text is None:
        raise InvalidInput(
            f"rewrite_data_files: strategy {strategy!r} needs an order; give for example "
            "sort_order => 'a DESC NULLS LAST, b' for 'sort', or sort_order => 'a, b' for 'zorder' "
            "and 'hilbert'"
        )
    order = SortOrder.of(str(text) if name == "sort" else f"{name}({text})", snapshot.schema)
    if not key:
        return order
    if order.is_prefix_of(key):
        return None
    raise UnsupportedOperation(
        f"rewrite_data_files: sort_order {text!r} differs from the key ({', '.join(key)}); parts "
        "of a table with a key are always in its order. Create a table with another key, or "
        "without one"
    )


def _stages(groups: Sequence[_Group], count: int) -> list[Sequence[_Group]]:
    """Cut the groups into at most `count` runs of about equal length."""
    size = max(1, -(-len(groups) // count))
    return [groups[start : start + size] for start in range(0, len(groups), size)]


def _rows(plan: ScanPlan, store: ObjectStore, order: SortOrder | None) -> Iterator[Rows]:
    """The visible rows of the plan, sorted if there is an order."""

    def read(columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        only = plan if columns is None else replace(plan, columns=table_columns(columns))
        return Execution(only, store, threads=1).read()

    return read(None) if order is None else sorted_rows(read, order, plan.schema)


def _plans(
    snapshot: Snapshot, scan: TargetScan, parts: PartTable, options: RewriteOptions
) -> list[ScanPlan]:
    """Plans of all visible rows of the parts, one for each task; in key order if there is a key.

    With a key there is one task for each new file, so that tasks run concurrently.
    """
    only = replace(snapshot, parts=parts)
    ranges: list[Predicate] = [TRUE]
    if snapshot.table.key:
        most = min(options.max_file_group_size_bytes, options.target_file_size_bytes)
        count = -(-_size_bytes(parts) // most)
        ranges = key_ranges(scan.table.handle.store, snapshot, parts, count)
    return [
        plan_scan(
            only,
            scan.table.uri,
            predicate=keys,
            now_us=scan.now_us,
            ordered=bool(snapshot.table.key),
        )
        for keys in ranges
    ]


def _file_count(parts: PartTable) -> int:
    return int(parts.numbers("data.rows").astype(bool).sum())


def _size_bytes(parts: PartTable) -> int:
    if not len(parts):
        return 0
    return int((parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")).sum())
