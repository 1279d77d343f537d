"""Build a plan's pieces from the result of pruning: the only step with Python objects per part."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, pairwise

import numpy as np

from rowsieve.planner.plan import Piece, PlannedPart, Pruned, Read
from rowsieve.planner.prune_parts import Indices, Pruning, Reason, Verdicts
from rowsieve.predicate.interpret import Verdict
from rowsieve.storage.manifest import PartEntry, PartTable

_FACTS = ("part_id", "commit_ts_max")
_FILES = ("data.", "deletes.", "dv.")


def planned_part(entry: PartEntry) -> PlannedPart:
    """Return the fields that a read needs of a committed part, which has a commit_ts (I1)."""
    assert entry.commit_ts_max is not None
    return PlannedPart(entry.part_id, entry.commit_ts_max, entry.data, entry.deletes, entry.dv)


def pieces_of(parts: PartTable, pruning: Pruning, *, filtered: bool) -> list[Piece]:
    """Return a piece per group, in order; `filtered`: whether the scan has a predicate."""
    members, starts = pruning.groups.members, pruning.groups.starts.tolist()
    chosen = _planned_parts(parts, members)
    undecided = np.zeros(len(members), dtype=np.bool_)
    if filtered:
        undecided = pruning.verdicts != Verdict.ALL
    reads, residual = pruning.reads.tolist(), undecided.tolist()
    has_rows = parts.data_rows()[members] > 0
    sizes = stored_bytes(parts)[members]
    if not len(pruning.groups):
        return []
    first = pruning.groups.starts[:-1]
    merged_residual = np.logical_or.reduceat(undecided & has_rows, first).tolist()
    size_bytes = np.add.reduceat(sizes, first).tolist()
    return [
        Piece(
            tuple(chosen[start:stop]),
            tuple(
                Read(place, residual=needed)
                for place, needed in compress(zip(count(), residual[start:stop]), reads[start:stop])
            ),
            merged_residual[i],
            size_bytes[i],
        )
        for i, (start, stop) in enumerate(pairwise(starts))
    ]


def summary(parts: PartTable, reasons: Verdicts) -> tuple[Pruned, ...]:
    """Count the skipped parts by reason."""
    rows, sizes = parts.data_rows(), stored_bytes(parts)
    found = []
    for reason in Reason:
        mask = reasons == reason
        if reason is not Reason.KEPT and mask.any():
            found.append(
                Pruned(
                    reason.name.lower(),
                    int(mask.sum()),
                    int(rows[mask].sum()),
                    int(sizes[mask].sum()),
                )
            )
    return tuple(found)


def stored_bytes(parts: PartTable) -> Indices:
    """(n,) stored bytes of the rows and tombstones of each part."""
    return parts.numbers("data.size_bytes") + parts.numbers("deletes.size_bytes")


def _planned_parts(parts: PartTable, indices: Indices) -> Sequence[PlannedPart]:
    taken = parts.select(*_FACTS, *_FILES).take(indices)
    return [
        PlannedPart(*values)
        for values in zip(
            *(taken.column(name).to_pylist() for name in _FACTS),
            taken.files("data"),
            taken.files("deletes"),
            taken.deletion_vectors(),
            strict=True,
        )
    ]
