"""The check on pruning: read everything, and hold what pruning said against what is there.

A plan made with pruning says of every part, and of every row group, that no row of it matches or
fails, or that all rows match, or neither. `audit` fetches all parts, resolves visibility first
(invariant 28), asks the predicate of every visible row, and raises `UnsoundPruning` at the first
claim that does not hold. Bounds of parts, of row groups, and blooms are covered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.errors import EvaluationError, UnsoundPruning
from rowsieve.executor.execute import Execution
from rowsieve.executor.sources import PartSource
from rowsieve.planner.plan import ScanPlan
from rowsieve.predicate.arrays import Mask
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import evaluate, matching
from rowsieve.predicate.rowset import RowSet


@dataclass(frozen=True, slots=True)
class Claims:
    """What a pruned plan says: parts that it reads, and those of them whose rows all match."""

    read: frozenset[str]
    certain: frozenset[str]

    @classmethod
    def of(cls, plan: ScanPlan) -> Claims:
        """The claims of a plan."""
        reads = [
            (piece.parts[read.part].part_id, read.residual)
            for split in plan.splits
            for piece in split.pieces
            for read in piece.reads
        ]
        return cls(
            read=frozenset(part_id for part_id, _ in reads),
            certain=frozenset(part_id for part_id, residual in reads if not residual),
        )


def audit(pruned: ScanPlan, unpruned: Execution) -> None:
    """Read all of `unpruned`, an execution of the same question, against the claims of `pruned`.

    Costs a read of the predicate's columns of every part. A row that pruning leaves in may fail as
    it likes; whoever reads it will see.
    """
    predicate = unpruned.predicate
    if predicate is None:
        return
    claims = Claims.of(pruned)
    for source, visible in unpruned.visible_parts():
        _judge_part(source, visible, predicate, claims)


def _judge_part(
    source: PartSource, visible: RowSet | None, predicate: BoundPredicate, claims: Claims
) -> None:
    part_id = source.part.part_id
    candidates = source.candidates(predicate) if part_id in claims.read else None
    for start, batch in source.rows(source.columns_of(predicate), visible):
        ids = np.arange(start, start + batch.num_rows, dtype=np.int64)
        if visible is not None:
            shown = visible.slice(start, start + batch.num_rows).to_mask()
            ids, batch = ids[shown], batch.filter(pa.array(shown))  # noqa: PLW2901
        kept = np.zeros(len(ids), dtype=bool) if candidates is None else candidates.contains(ids)
        if part_id in claims.certain:
            kept[:] = True
        _judge_rows(part_id, ids, batch, kept, predicate, certain=part_id in claims.certain)


def _judge_rows(
    part_id: str,
    ids: npt.NDArray[np.int64],
    batch: pa.RecordBatch,
    kept: Mask,
    predicate: BoundPredicate,
    *,
    certain: bool,
) -> None:
    try:
        skipped_matches = matching(predicate, batch.filter(pa.array(~kept)))
    except EvaluationError as error:
        raise UnsoundPruning(
            f"pruning skipped rows of part {part_id} on which the filter fails: {error}"
        ) from error
    if skipped_matches.any():
        row = ids[~kept][int(np.argmax(skipped_matches))]
        raise UnsoundPruning(_message(part_id, int(row), "was skipped, but it matches"))
    if not certain:
        return
    matches = evaluate(predicate, batch).true
    if not matches.all():
        row = ids[int(np.argmin(matches))]
        raise UnsoundPruning(_message(part_id, int(row), "was taken to match, but it does not"))


def _message(part_id: str, row: int, what: str) -> str:
    return (
        f"pruning is unsound: row {row} of part {part_id} {what}; the statistics are not those of "
        "the file, or this is a bug: read with pruning='off', and report it"
    )
