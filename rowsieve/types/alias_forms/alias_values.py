"""Check values of ranges and arrays of other systems, and give each range one form.

Soundness: what PostgreSQL could not hold is a ValueError: a lower bound above the upper one, or
dimensions that do not multiply to the number of elements. As in PostgreSQL, a range without values
is `empty`, without bounds; an infinite bound is not inclusive; ranges of whole numbers and days are
`[lower, upper)`. So equal ranges have equal fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.encodings import logical_type
from rowsieve.types.logical import Date, Int, is_ordered

_MAX_DIMENSIONS: Final = 6
_INT32_MAX: Final = 2**31 - 1


def checked(alias: str, values: pa.Array) -> pa.Array:
    """Return the values in their form; ValueError if one is not a value of the alias."""
    check = _CHECKS.get(alias)
    return values if check is None or not len(values) else check(values)


def _ranges(values: pa.StructArray) -> pa.Array:
    lower, upper, from_lower, to_upper, empty = values.flatten()
    valid = values.is_valid()
    for flag, name in ((from_lower, "lower_inclusive"), (to_upper, "upper_inclusive"),
                       (empty, "empty")):  # fmt: skip
        if _any(pc.and_(valid, flag.is_null())):
            raise ValueError(f"a range has NULL in its field {name}; write true or false")
    type_ = logical_type(values.type.field(0), lambda: 0)
    if not is_ordered(type_):
        return values
    bounded = pc.and_(pc.and_(lower.is_valid(), upper.is_valid()), pc.invert(empty))
    if _any(pc.and_(bounded, pc.greater(lower, upper))):
        raise ValueError("the lower bound of a range is above its upper bound")
    from_lower = pc.and_(from_lower, lower.is_valid())
    to_upper = pc.and_(to_upper, upper.is_valid())
    empty = pc.or_(empty, _without_values(lower, upper, pc.and_(from_lower, to_upper)))
    if isinstance(type_, Int | Date):
        lower = _next_where(pc.and_(pc.invert(from_lower), pc.invert(empty)), lower)
        upper = _next_where(pc.and_(to_upper, pc.invert(empty)), upper)
        from_lower = lower.is_valid()
        to_upper = pc.and_(to_upper, pa.scalar(value=False))
        empty = pc.or_(empty, _without_values(lower, upper, pc.and_(from_lower, to_upper)))
    none = pa.scalar(None, lower.type)
    members = [
        pc.if_else(empty, none, lower),
        pc.if_else(empty, none, upper),
        pc.and_(from_lower, pc.invert(empty)),
        pc.and_(to_upper, pc.invert(empty)),
        empty,
    ]
    return pa.StructArray.from_arrays(members, fields=list(values.type), mask=values.is_null())


def _without_values(lower: pa.Array, upper: pa.Array, has_bounds: pa.Array) -> pa.Array:
    """True where no value is between the bounds; `has_bounds`: both bounds are inclusive."""
    same = pc.and_(pc.equal(lower, upper), pc.invert(has_bounds))
    return pc.fill_null(pc.or_(pc.greater(lower, upper), same), pa.scalar(value=False))


def _next_where(where: pa.Array, values: pa.Array) -> pa.Array:
    """The values, and the next whole number or day where `where`; ValueError beyond the type."""
    is_date = pa.types.is_date32(values.type)
    plain = values.view(pa.int32()) if is_date else values
    step = pc.if_else(where, pa.scalar(1, plain.type), pa.scalar(0, plain.type))
    sums = pc.add_checked(plain, step)
    return sums.view(values.type) if is_date else sums


def _arrays(values: pa.StructArray) -> pa.Array:
    dimensions, elements = values.flatten()
    valid = values.is_valid()
    if _any(pc.and_(valid, pc.or_(dimensions.is_null(), elements.is_null()))):
        raise ValueError("an array has NULL instead of its dimensions or elements")
    one = dimensions.flatten()
    lower, length = one.flatten()
    if lower.null_count or length.null_count or one.null_count:
        raise ValueError("a dimension of an array has NULL in its lower bound or length")
    starts, lengths = (np.asarray(each, dtype=np.int64) for each in (lower, length))
    if (lengths < 1).any() or (starts + lengths - 1 > _INT32_MAX).any():
        raise ValueError("a dimension of an array has no length, or ends beyond 32 bits")
    rows = np.asarray(pc.list_parent_indices(dimensions), dtype=np.int64)
    counts = np.bincount(rows, minlength=len(values))
    if (counts > _MAX_DIMENSIONS).any():
        raise ValueError(f"an array has more than {_MAX_DIMENSIONS} dimensions")
    sizes = np.where(counts > 0, 1.0, 0.0)  # floats: products of lengths exceed 64 bits
    np.multiply.at(sizes, rows, lengths)
    element_counts = pc.fill_null(pc.list_value_length(elements), 0)
    wrong = np.flatnonzero((sizes != np.asarray(element_counts)) & np.asarray(valid))
    if len(wrong):
        raise ValueError(
            f"the dimensions of an array multiply to {sizes[wrong[0]]:.0f}, and it has "
            f"{element_counts[int(wrong[0])]} elements"
        )
    return values


def _any(mask: pa.Array) -> bool:
    return bool(pc.any(mask, min_count=0).as_py())


_CHECKS: Mapping[str, Callable[[pa.Array], pa.Array]] = {"range.1": _ranges, "array.1": _arrays}
