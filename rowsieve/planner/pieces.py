"""Build a plan's pieces from the result of pruning: the only step with Python objects per part."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress, count, pairwise
from typing import Final

import numpy as np

from rowsieve.planner.part_facts import PartFacts, Verdicts
from rowsieve.planner.plan import Pruned
from rowsieve.planner.prune_parts import Pruning, Reason
from rowsieve.planner.split import Piece, PlannedPart, Read
from rowsieve.predicate.interpret import Verdict
from rowsieve.storage.manifests.manifest import PartEntry
from rowsieve.storage.parts.reading_views import read_as

_ALL: Final = int(Verdict.ALL)  # numpy compares with an int faster than with an enum


def planned_part(entry: PartEntry, properties: Mapping[str, str] | None = None) -> PlannedPart:
    """Return the fields that a read needs of a committed part, which has a commit_ts (I1).

    `properties`: those of the version whose rows are read, which say in what form they are read;
    None for the index columns, and for what a file's columns hold.
    """
    assert entry.commit_ts_max is not None
    data = entry.data
    if data is not None and properties is not None:
        data = read_as(data, properties)
    return PlannedPart(
        entry.part_id, entry.commit_ts_max, data, entry.deletes, entry.dv, entry.vector
    )


def pieces_of(facts: PartFacts, pruning: Pruning, *, filtered: bool) -> list[Piece]:
    """Return a piece per group, in order; `filtered`: whether the scan has a predicate."""
    members, starts = pruning.groups.members, pruning.groups.starts.tolist()
    chosen = facts.planned(members)
    undecided = np.zeros(len(members), dtype=np.bool_)
    if filtered:
        undecided = pruning.verdicts != _ALL
    reads, residual = pruning.reads.tolist(), undecided.tolist()
    has_rows = facts.rows[members] > 0
    sizes = facts.size_bytes[members]
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


def summary(facts: PartFacts, reasons: Verdicts) -> tuple[Pruned, ...]:
    """Count the skipped parts by reason."""
    counts = np.bincount(reasons, minlength=len(Reason))
    pruned = []
    for number in counts.nonzero()[0].tolist():
        if number != Reason.KEPT:
            mask = reasons == number
            rows, sizes = int(facts.rows[mask].sum()), int(facts.size_bytes[mask].sum())
            pruned.append(Pruned(Reason(number).name.lower(), int(counts[number]), rows, sizes))
    return tuple(pruned)
