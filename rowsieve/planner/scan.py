"""From a snapshot and a question to a `ScanPlan`: bind, prune, group, cut into splits."""

from __future__ import annotations

from itertools import pairwise

from rowsieve.config import DEFAULT
from rowsieve.errors import CorruptData
from rowsieve.planner.plan import (
    OutputColumn,
    Piece,
    PlannedPart,
    PrunedPart,
    Read,
    ScanPlan,
    encode_predicate,
    table_columns,
)
from rowsieve.planner.prune_parts import Group, prune_parts
from rowsieve.planner.splits import cut_splits
from rowsieve.predicate.bind import bind
from rowsieve.predicate.interpret import Verdict
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.normalize import normalize
from rowsieve.predicate.semantics import Semantics
from rowsieve.storage.manifest import FileRef, PartEntry
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import schema_to_json


def plan_scan(
    snapshot: Snapshot,
    table_uri: str,
    *,
    predicate: Predicate = TRUE,
    columns: tuple[OutputColumn, ...] | None = None,
    limit: int | None = None,
    ordered: bool = False,
    semantics: Semantics = Semantics.SQL,
    now_us: int,
    pruning: bool = True,
    split_bytes: int = DEFAULT.split_bytes,
    in_process: bool = True,
) -> ScanPlan:
    """Plan a read of `snapshot`; reads no file. O(parts), vectorised over them.

    `now_us` is the statement's time in microseconds since 1970, one for all its branches.
    `in_process`: whether one process reads all splits.
    """
    schema, parts = snapshot.schema, snapshot.parts
    order = KeyOrder.of(schema, snapshot.table.key) if snapshot.table.key else None
    predicate = normalize(predicate, semantics)
    bound = None if predicate == TRUE else bind(predicate, schema, semantics, now_us=now_us)
    outcome = prune_parts(parts, schema, order, bound if pruning else None)
    kept = [i for group in outcome.groups for i in group.parts]
    entries = dict(zip(kept, parts.entries(kept), strict=True))
    pieces = [_piece(group, entries, bound is not None) for group in outcome.groups]
    needed = {part.part_id for piece in pieces for part in piece.parts}
    pruned_by = outcome.pruned_by | {
        i: "statistics" if entries[i].data is not None else "visibility"
        for i in kept
        if entries[i].part_id not in needed
    }
    left_out = sorted(pruned_by.items())
    return ScanPlan(
        table_uri=table_uri,
        table_uuid=snapshot.table.uuid,
        version=snapshot.version,
        schema_json=schema_to_json(schema),
        key=snapshot.table.key,
        columns=table_columns(schema.names) if columns is None else columns,
        predicate_json=encode_predicate(predicate),
        semantics_name=semantics.name,
        now_us=now_us,
        limit=limit,
        ordered=ordered,
        pruning=pruning,
        splits=cut_splits(
            [piece for piece in pieces if piece.reads],
            split_bytes,
            ordered=ordered,
            in_process=in_process,
        ),
        pruned=tuple(
            _pruned(entry, by)
            for entry, (_, by) in zip(
                parts.entries([i for i, _ in left_out]), left_out, strict=True
            )
        ),
    )


def planned_part(entry: PartEntry) -> PlannedPart:
    """What a read needs to know of a committed part."""
    newest, _ = _commit_range(entry)
    return PlannedPart(entry.part_id, newest, entry.data, entry.deletes, entry.dv)


def _piece(group: Group, entries: dict[int, PartEntry], filtered: bool) -> Piece:
    verdicts = dict(zip(group.parts, group.verdicts, strict=True))
    newest_first = sorted(group.parts, key=lambda i: _commit_range(entries[i]), reverse=True)
    for newer, older in pairwise(newest_first):
        _check_order(entries[newer], entries[older])
    reads = tuple(
        Read(place, residual=filtered and verdicts[i] is not Verdict.ALL)
        for place, i in enumerate(newest_first)
        if entries[i].data is not None and verdicts[i] is not Verdict.NONE
    )
    needed = newest_first[: reads[-1].part + 1] if reads else []  # older ones hide nothing
    with_rows = [i for i in needed if entries[i].data is not None]
    return Piece(
        tuple(planned_part(entries[i]) for i in needed),
        reads,
        residual=filtered and any(verdicts[i] is not Verdict.ALL for i in with_rows),
        size_bytes=sum(_size(entries[i].data) + _size(entries[i].deletes) for i in needed),
    )


def _commit_range(entry: PartEntry) -> tuple[int, int]:
    """(newest, oldest) commit_ts; a snapshot's parts all have them (invariant I1)."""
    assert entry.commit_ts_min is not None
    assert entry.commit_ts_max is not None
    return entry.commit_ts_max, entry.commit_ts_min


def _check_order(newer: PartEntry, older: PartEntry) -> None:
    """Overlapping parts must be ordered by commit as wholes (invariant 11).

    Parts of one commit share a commit_ts but no key, so their order does not matter.
    """
    (newest, start), (end, oldest) = _commit_range(newer), _commit_range(older)
    if end > start or (end == start and (newest, start) != (end, oldest)):
        raise CorruptData(
            f"parts {newer.part_id} and {older.part_id} overlap in keys and their commits "
            f"[{start}, {newest}] and [{oldest}, {end}] interleave, but they carry no commit_ts by "
            "row; the manifest is damaged"
        )


def _pruned(entry: PartEntry, by: str) -> PrunedPart:
    rows = 0 if entry.data is None else entry.data.rows
    return PrunedPart(entry.part_id, rows, _size(entry.data) + _size(entry.deletes), by)


def _size(ref: FileRef | None) -> int:
    return 0 if ref is None else ref.size_bytes
