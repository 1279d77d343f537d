"""`rewrite_data_files`: rewrite small, large and overlapping parts into parts of the target size.

The filter selects every part that may hold a matching row; rows that do not match are rewritten
with them and never lost. With `strict`, a filter that whole parts cannot enforce is refused.

Soundness: only whole overlap groups are rewritten, and a task rewrites neighbouring groups, so no
other part of the version holds any of its keys. Its rows may get the newest commit_ts of its inputs
(invariant 11), and its tombstones have nothing left to delete (trap T28). The commit fails if one
of the inputs is no longer live (rule 13, trap T25).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.annotations import StorageOptions
from rowsieve.compaction.pick import Unit, runs_of, units_of
from rowsieve.errors import InvalidInput
from rowsieve.executor.execute import Execution
from rowsieve.objects import open_store
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.procedures.key_cuts import key_ranges
from rowsieve.procedures.parameters import Parameter, ParameterType, Value
from rowsieve.procedures.procedure import (
    FILTER,
    SCHEMA,
    TABLE_NAME,
    CallContext,
    DistributedProcedure,
    Handle,
    TargetScan,
)
from rowsieve.procedures.rewrite_options import RewriteOptions
from rowsieve.storage.commit_request import CommitRequest
from rowsieve.storage.manifest import PartTable
from rowsieve.storage.part_writer import ROW_GROUP_ROWS, PartWriter, target_part_bytes
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.keys import KeyOrder


class RewriteTask(msgspec.Struct, frozen=True):
    """One task: the plan of its input parts, and the properties of the table to write with."""

    plan: bytes
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Rewrite:
    """What `begin` decided: the version, its parts to replace, and the newest commit_ts by task."""

    base: Snapshot
    newest: tuple[int, ...]
    removed: PartTable
    started_s: float


class RewriteDataFiles(DistributedProcedure):
    """Rewrites data files on workers and commits once."""

    name = "rewrite_data_files"
    meaning = "rewrite small, large and overlapping parts into parts of the target size"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        FILTER,
        Parameter(
            "options",
            ParameterType.OPTIONS,
            default={},
            meaning="target-file-size-bytes, min-input-files, rewrite-all and others",
        ),
    )
    columns = pa.schema(
        [
            ("rewritten_data_files_count", pa.int64()),
            ("added_data_files_count", pa.int64()),
            ("rewritten_bytes_count", pa.int64()),
            ("added_bytes_count", pa.int64()),
            ("removed_delete_files_count", pa.int64()),
            ("version", pa.int64()),
        ]
    )

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Pin the version, select parts, and cut them into tasks of neighbouring parts."""
        started_s = time.perf_counter()
        snapshot = context.table.snapshot_for_engines()
        given = arguments["options"]
        assert isinstance(given, Mapping)
        target = target_part_bytes(snapshot.table.properties)
        options = RewriteOptions.of(given, target)
        properties = dict(snapshot.table.properties)
        properties["target_part_bytes"] = str(options.target_file_size_bytes)
        plans: list[ScanPlan] = []
        newest: list[int] = []
        removed: list[PartTable] = []
        for group in _task_units(snapshot, context.target, options):
            parts = snapshot.parts.take([part for unit in group for part in unit.parts])
            found = _plans(snapshot, context.target, parts, options)
            plans += found
            newest += [pc.max(parts.column("commit_ts_max")).as_py()] * len(found)
            removed.append(parts)
            _record(context, parts)
        tasks = (RewriteTask(plan.to_bytes(), properties) for plan in plans)
        return Handle(
            snapshot.version,
            tuple(msgspec.msgpack.encode(task) for task in tasks),
            _Rewrite(snapshot, tuple(newest), PartTable.empty().append(*removed), started_s),
        )

    def work(self, task: bytes, storage_options: StorageOptions) -> Iterator[tuple[int, bytes]]:
        """Rewrite the visible rows of the task's parts into new files."""
        work = msgspec.msgpack.decode(task, type=RewriteTask)
        plan = ScanPlan.from_bytes(work.plan)
        store = open_store(plan.table_uri, storage_options)
        key = KeyOrder.of(plan.schema, plan.key).fields if plan.key else ()
        writer = PartWriter(store, plan.schema, key, work.properties, plan.version)
        row_count = 0
        for batch in Execution(plan, store, threads=1).read():
            row_count += batch.num_rows
            writer.write(batch)
        yield row_count, writer.finish().to_ipc()

    def finish(
        self, context: CallContext, handle: Handle, fragments: Sequence[Sequence[bytes]]
    ) -> pa.Table:
        """Replace the scanned parts by the new ones in one commit; without tasks commit nothing."""
        rewrite = handle.details
        assert isinstance(rewrite, _Rewrite)
        if not handle.tasks:
            return self._result(PartTable.empty(), PartTable.empty(), 0, handle.version)
        added = PartTable.empty().append(
            *(
                PartTable.from_ipc(fragment).with_commit_ts(newest)
                for newest, found in zip(rewrite.newest, fragments, strict=True)
                for fragment in found
            )
        )
        request = CommitRequest(
            operation=self.name,
            added=added,
            removed=tuple(sorted(context.scanned)),
            rows_written=int(added.numbers("data.rows").sum()),
        )
        commit = context.table.commit_rewrite(rewrite.base, request, rewrite.started_s)
        deletes = len(context.applied_deletes)
        return self._result(rewrite.removed, added, deletes, commit.version)

    def _result(
        self, removed: PartTable, added: PartTable, delete_files: int, version: int
    ) -> pa.Table:
        row = {
            "rewritten_data_files_count": _file_count(removed),
            "added_data_files_count": _file_count(added),
            "rewritten_bytes_count": _size_bytes(removed),
            "added_bytes_count": _size_bytes(added),
            "removed_delete_files_count": delete_files,
            "version": version,
        }
        return pa.Table.from_pylist([row], schema=self.columns)


def _task_units(snapshot: Snapshot, scan: TargetScan, options: RewriteOptions) -> list[list[Unit]]:
    """The units of each task: neighbouring, selected by the filter, and worth a rewrite."""
    key = snapshot.table.key
    units = units_of(snapshot.parts, KeyOrder.of(snapshot.schema, key) if key else None)
    selected = _selected(snapshot, scan, strict=options.strict)

    def is_candidate(unit: Unit) -> bool:
        if selected is not None and selected.isdisjoint(unit.parts):
            return False
        divides = unit.row_count > ROW_GROUP_ROWS  # parts consist of whole row groups
        fits = options.min_file_size_bytes <= unit.size_bytes and not (
            divides and unit.size_bytes > options.max_file_size_bytes
        )
        return options.rewrite_all or unit.dirty or not fits

    worth = (run for run in runs_of(units, is_candidate) if _is_worth(run, options))
    return [group for run in worth for group in _cut(run, options.max_file_group_size_bytes)]


def _selected(snapshot: Snapshot, scan: TargetScan, *, strict: bool) -> frozenset[int] | None:
    """The indices of the parts that may hold a row that matches the filter; None for all."""
    if scan.predicate == TRUE:
        return None
    plan = plan_scan(
        snapshot,
        scan.table.uri,
        predicate=scan.predicate,
        semantics=scan.semantics,
        now_us=scan.now_us,
    )
    pieces = [piece for split in plan.splits for piece in split.pieces]
    if strict and any(
        piece.residual or any(read.residual for read in piece.reads) for piece in pieces
    ):
        raise InvalidInput(
            "rewrite_data_files: strict is set, and some parts hold rows that match the filter "
            "beside rows that may not; rewrite whole parts without strict, or use a filter on the "
            "key that whole parts match"
        )
    index = {part_id: i for i, part_id in enumerate(snapshot.parts.part_ids)}
    return frozenset(index[part.part_id] for piece in pieces for part in piece.parts)


def _is_worth(run: Sequence[Unit], options: RewriteOptions) -> bool:
    parts = sum(len(unit.parts) for unit in run)
    rows = sum(unit.row_count for unit in run)
    hidden = sum(unit.hidden_row_count for unit in run)
    return (
        options.rewrite_all
        or parts >= options.min_input_files
        or sum(unit.size_bytes for unit in run) > options.max_file_size_bytes
        or 0 < options.delete_ratio * rows <= hidden
    )


def _cut(run: Sequence[Unit], most_bytes: int) -> Iterator[list[Unit]]:
    """Cut a run into tasks of at most `most_bytes`, unless a single unit has more."""
    group: list[Unit] = []
    size = 0
    for unit in run:
        if group and size + unit.size_bytes > most_bytes:
            yield group
            group, size = [], 0
        group.append(unit)
        size += unit.size_bytes
    if group:
        yield group


def _plans(
    snapshot: Snapshot, scan: TargetScan, parts: PartTable, options: RewriteOptions
) -> list[ScanPlan]:
    """Plans of all visible rows of the parts, one for each task; in key order if there is a key."""
    only = replace(snapshot, parts=parts)
    ranges: list[Predicate] = [TRUE]
    if snapshot.table.key:
        count = -(-_size_bytes(parts) // options.max_file_group_size_bytes)
        ranges = key_ranges(scan.table.store, snapshot, parts, count)
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


def _record(context: CallContext, parts: PartTable) -> None:
    """Record the parts as scanned, and their deletes as applied to every row that they hide."""
    context.scanned.update(parts.part_ids)
    marked = parts.column("deletes.path").is_valid().to_pylist()
    context.applied_deletes.update(
        part_id for part_id, has in zip(parts.part_ids, marked, strict=True) if has
    )


def _file_count(parts: PartTable) -> int:
    return int(parts.numbers("data.rows").astype(bool).sum())


def _size_bytes(parts: PartTable) -> int:
    if not len(parts):
        return 0
    return int((parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")).sum())
