"""Exact sums of integers and decimals by key.

Soundness: a sum never wraps around. Numbers are added as four limbs of 32 bits, whose sums 64 bits
hold for two billion numbers, and a total that the type does not have is an error. Floats have no
such sum: it would depend on the order in which they are added.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rowsieve.changes.partial.meeting_values import Candidates, Places
from rowsieve.types.encodings import arrow_type

_LIMBS = 4
_LIMB_BITS = 32


class SumOverflow(Exception):
    """A sum that its type does not have; `owner` is the number of its key."""

    def __init__(self, owner: int) -> None:
        super().__init__(owner)
        self.owner = owner


def total(candidates: Candidates) -> pa.Array:
    """The sum of the values of each key, NULL aside; SumOverflow if the type does not have it."""
    known = candidates.without_nulls()
    target = arrow_type(known.type)
    values = known.values()
    wide = values if pa.types.is_decimal(target) else values.cast(pa.decimal128(20, 0))
    scale = wide.type.scale
    sums = _carried(_summed_limbs(wide, known.owners, known.count))
    has_value = np.bincount(known.owners, minlength=known.count) > 0
    exact = _decimals(sums, has_value, scale)
    try:
        return _narrowed(exact, target)
    except (pa.ArrowException, ValueError) as error:
        raise SumOverflow(_first_failing(exact, target)) from error


def _summed_limbs(values: pa.Array, owners: Places, count: int) -> np.ndarray:
    """(count, limbs) the sum of each limb; the highest one has the sign."""
    data = values.buffers()[1]
    limbs = np.zeros((0, _LIMBS), dtype=np.uint32)
    if len(values):
        whole = np.frombuffer(data, dtype=np.uint32)
        start = values.offset * _LIMBS
        limbs = whole[start : start + len(values) * _LIMBS].reshape(-1, _LIMBS)
    sums = np.zeros((count, _LIMBS), dtype=np.int64)
    for place in range(_LIMBS):
        limb = limbs[:, place]
        signed = limb.view(np.int32) if place == _LIMBS - 1 else limb
        np.add.at(sums[:, place], owners, signed.astype(np.int64))
    return sums


def _carried(sums: np.ndarray) -> np.ndarray:
    """Carry what exceeds a limb into the next; the highest limb may exceed its 32 bits."""
    carried = sums.copy()
    for place in range(_LIMBS - 1):
        carried[:, place + 1] += carried[:, place] >> _LIMB_BITS
        carried[:, place] &= (1 << _LIMB_BITS) - 1
    return carried


def _decimals(sums: np.ndarray, has_value: np.ndarray, scale: int) -> pa.Array:
    highest = sums[:, -1]
    too_large = (highest < -(1 << 31)) | (highest >= 1 << 31)
    if (has_value & too_large).any():
        raise SumOverflow(int(np.argmax(has_value & too_large)))
    limbs = np.ascontiguousarray((sums & 0xFFFFFFFF).astype(np.uint32))
    validity = pa.array(has_value).buffers()[1]
    type_ = pa.decimal128(38, scale)
    return pa.Array.from_buffers(type_, len(sums), [validity, pa.py_buffer(limbs.tobytes())])


def _narrowed(exact: pa.Array, target: pa.DataType) -> pa.Array:
    exact.validate(full=True)  # 39 digits fit 128 bits, and no decimal
    if pa.types.is_decimal(target):
        narrowed = exact.cast(target)
        narrowed.validate(full=True)
        return narrowed
    return exact.cast(target)


def _first_failing(exact: pa.Array, target: pa.DataType) -> int:
    for place in range(len(exact)):  # an error follows
        try:
            _narrowed(exact.slice(place, 1), target)
        except (pa.ArrowException, ValueError):
            return place
    return 0
