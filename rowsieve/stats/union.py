"""Combines the statistics of several parts into those of all their rows.

Soundness: a fact that is unknown for one part is unknown for the union, unless that part has no
values of the subject. Counts are added, bounds are the outermost, kinds are combined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.json_kinds import Kind, path_of_subject
from rowsieve.stats.model import UNKNOWN, ColumnStatistics, Derived, Subject


@dataclass(frozen=True, slots=True)
class PartFacts:
    """The number of a part's rows, with tombstones where they count, and their statistics."""

    row_count: int
    statistics: Mapping[Subject, ColumnStatistics]


def union(parts: Sequence[PartFacts]) -> PartFacts:
    """The statistics of all rows of these parts."""
    parts = [part for part in parts if part.row_count]
    subjects = dict.fromkeys(subject for part in parts for subject in part.statistics)
    joined = {subject: _joined(subject, parts) for subject in subjects}
    known = {subject: facts for subject, facts in joined.items() if facts != UNKNOWN}
    return PartFacts(sum(part.row_count for part in parts), known)


def _joined(subject: Subject, parts: Sequence[PartFacts]) -> ColumnStatistics:
    facts = [part.statistics.get(subject, UNKNOWN) for part in parts]
    with_values = [
        each for each, part in zip(facts, parts, strict=True) if not _is_empty(subject, each, part)
    ]
    lower = _outermost([(each.lower, each.lower_exact) for each in with_values], "min")
    upper = _outermost([(each.upper, each.upper_exact) for each in with_values], "max")
    kinds = [each.kinds for each in facts]
    return ColumnStatistics(
        null_count=_sum([each.null_count for each in facts]),
        nan_count=_sum([each.nan_count for each in facts]),
        value_count=_sum([each.value_count for each in facts]),
        lower=lower[0],
        upper=upper[0],
        lower_exact=lower[1],
        upper_exact=upper[1],
        kinds=_or([kind for kind in kinds if kind is not None]) if None not in kinds else None,
    )


def _is_empty(subject: Subject, facts: ColumnStatistics, part: PartFacts) -> bool:
    """Return whether the part has no value of the subject that bounds would include."""
    if isinstance(subject, Derived) and (path := path_of_subject(subject)) not in (None, subject):
        assert path is not None
        kinds = part.statistics.get(path, UNKNOWN).kinds
        kind = Kind[subject.what.rpartition(":")[2].upper()]
        return kinds is not None and not kinds & (kind | Kind.OTHER)
    cells = part.row_count if facts.value_count is None else facts.value_count
    return facts.null_count is not None and facts.null_count + (facts.nan_count or 0) == cells


def _outermost(
    bounds: Sequence[tuple[pa.Scalar | None, bool]], which: str
) -> tuple[pa.Scalar | None, bool]:
    """The least or greatest bound, and whether a row has this value; None if one is unknown."""
    known = [bound for bound, _ in bounds if bound is not None]
    if not known or len(known) < len(bounds) or len({bound.type for bound in known}) > 1:
        return None, False
    values = pa.concat_arrays([pa.repeat(bound, 1) for bound in known])
    best = pc.min_max(values)[which]
    exact = any(is_exact and best.equals(bound) for bound, is_exact in bounds)
    return best, exact


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known and len(known) == len(counts) else None


def _or(kinds: Sequence[int]) -> int | None:
    joined = 0
    for kind in kinds:
        joined |= kind
    return joined or None
