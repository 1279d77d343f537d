"""The members of an IN list, held as one Arrow array."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.types.logical import LogicalType


class ValueSet:
    """The members of an IN list as one immutable Arrow array, which may contain NULLs."""

    __slots__ = ("_hash", "_ordered", "array", "type")

    def __init__(self, array: pa.Array, type_: LogicalType | None = None) -> None:
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        self.array: Final[pa.Array] = array
        """The members in the order given."""
        self.type = type_
        self._hash: int | None = None
        self._ordered: pa.Array | None = None

    @property
    def ordered(self) -> pa.Array:
        """The members without NULLs, ascending; sorted at first use and cached."""
        if self._ordered is None:
            members = self.array.drop_null()
            self._ordered = members.take(pc.sort_indices(members))
        return self._ordered

    def __len__(self) -> int:
        return len(self.array)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ValueSet):
            return NotImplemented
        if self.type != other.type or self.array.type != other.array.type:
            return False
        return bool(_bits(self.array).equals(_bits(other.array)))

    def __hash__(self) -> int:
        if self._hash is None:
            head = tuple(map(_shown, self.array[:8]))
            self._hash = hash((len(self.array), str(self.array.type), head))
        return self._hash

    def __repr__(self) -> str:
        shown = ", ".join(_shown(value) for value in self.array[:5])
        return f"ValueSet({shown}{', …' if len(self) > 5 else ''}; {len(self)} values)"


def _bits(array: pa.Array) -> pa.Array:
    """Cast floats to the integers of their bits, so NaN equals itself and -0.0 differs from 0.0."""
    if pa.types.is_float64(array.type):
        return array.view(pa.int64())
    return array.view(pa.int32()) if pa.types.is_float32(array.type) else array


def _shown(value: pa.Scalar) -> str:
    try:
        return str(value)
    except (OverflowError, ValueError):  # a time that Python cannot represent
        return str(value.value)
