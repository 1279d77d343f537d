"""The parts that a plan reads."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.split import PlannedPart, Split
from rowsieve.storage.manifests.manifest import FileRef


def read_parts(plan: ScanPlan) -> list[PlannedPart]:
    """The parts with data that the plan reads, each once."""
    pieces = (piece for split in plan.splits for piece in split.pieces)
    parts = (piece.parts[read.part] for piece in pieces for read in piece.reads)
    return [part for part in dict.fromkeys(parts) if part.data is not None]


def files_of(plan: ScanPlan) -> list[FileRef]:
    """The files of the parts that the plan reads; those in memory have none."""
    refs = (part.data for part in read_parts(plan))
    return [ref for ref in refs if ref is not None and not ref.in_memory]


def only_parts(plan: ScanPlan, part_ids: Collection[str]) -> ScanPlan:
    """Keep only the reads of these parts in the plan; all other parts still hide rows."""
    splits = []
    for split in plan.splits:
        pieces = [
            msgspec.structs.replace(
                piece,
                reads=tuple(r for r in piece.reads if piece.parts[r.part].part_id in part_ids),
            )
            for piece in split.pieces
        ]
        if remaining := tuple(piece for piece in pieces if piece.reads):
            splits.append(Split(remaining))
    return msgspec.structs.replace(plan, splits=tuple(splits))
