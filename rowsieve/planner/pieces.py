"""From what pruning left to the pieces of a plan: the only step with a Python object per part."""

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
    """What a read needs to know of a committed part; those have a commit_ts (invariant I1)."""
    assert entry.commit_ts_max is not None
    return PlannedPart(entry.part_id, entry.commit_ts_max, entry.data, entry.deletes, entry.dv)


def pieces_of(parts: PartTable, pruning: Pruning, *, filtered: bool) -> list[Piece]:
    """A piece per group, in the order of the groups; `filtered`: whether there is a predicate."""
    members, starts = pruning.groups.members, pruning.groups.starts.tolist()
    chosen = _planned_parts(parts, members)
    asked = pruning.verdicts != Verdict.ALL if filtered else np.zeros(len(members), dtype=np.bool_)
    reads, residual = pruning.reads.tolist(), asked.tolist()
    has_rows = parts.data_rows()[members] > 0
    sizes = stored_bytes(parts)[members]
    if not len(pruning.groups):
        return []
    first = pruning.groups.starts[:-1]
    merged_residual = np.logical_or.reduceat(asked & has_rows, first).tolist()
    size_bytes = np.add.reduceat(sizes, first).tolist()
    return [
        Piece(
            tuple(chosen[start:stop]),
            tuple(
                Read(place, residual=asked)
                for place, asked in compress(zip(count(), residual[start:stop]), reads[start:stop])
            ),
            merged_residual[i],
            size_bytes[i],
        )
        for i, (start, stop) in enumerate(pairwise(starts))
    ]


def summary(parts: PartTable, reasons: Verdicts) -> tuple[Pruned, ...]:
    """What is not read, counted by reason."""
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
    """(n,) bytes of the rows and tombstones of each part."""
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
