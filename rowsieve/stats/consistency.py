"""Whether statistics that somebody else made can be true of a column.

Soundness: only types, signs and order can be told; bounds that are too narrow cannot. Whoever
overrides a collector answers for those, and auditing finds them out.
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
    """Whether the subject is of this field, and its facts have the right types and agree."""
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
