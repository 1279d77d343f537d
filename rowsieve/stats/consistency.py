"""Checks whether statistics of a custom collector are consistent with their column.

Soundness: the check covers types, signs and order. It cannot detect bounds that are too narrow: the
author of a custom collector is responsible for these, and an audit finds them.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from rowsieve.stats.subjects import Described, derived, describe
from rowsieve.types.logical import Field


def is_consistent(
    subject: Subject, statistics: ColumnStatistics, field: Field, row_count: int
) -> bool:
    """Return whether the subject belongs to the field, and its facts have valid types and agree."""
    described = _described(subject, field)
    if described is None:
        return False
    counts = (statistics.null_count, statistics.nan_count, statistics.value_count)
    if any(count is not None and count < 0 for count in counts):
        return False
    cells = statistics.value_count if described.repeated else row_count
    if cells is not None and sum(count or 0 for count in counts[:2]) > cells:
        return False
    return _are_bounds((statistics.lower, statistics.upper), described.bound_type)


def _described(subject: Subject, field: Field) -> Described | None:
    of_field = {described.subject: described for described in describe([field])}
    if subject in of_field or not isinstance(subject, Derived):
        return of_field.get(subject)
    return derived(subject) if subject.field_id == field.id else None


def _are_bounds(bounds: Iterable[pa.Scalar | None], type_: pa.DataType | None) -> bool:
    known = [bound for bound in bounds if bound is not None]
    if any(not bound.is_valid or bound.type != type_ for bound in known):
        return False
    return len(known) < 2 or not pc.greater(*known).as_py()
