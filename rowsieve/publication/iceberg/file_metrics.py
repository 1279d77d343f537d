"""The statistics of data files as Iceberg's metrics: counts, and bounds as bytes.

Soundness: readers skip files by them, and answer MIN, MAX and COUNT from them. So counts are exact,
and so are bounds, except those of text and bytes, which no reader takes for values. A float column
that may hold NaN has no bounds. Nor has one that ends at a zero: our statistics widen zeros to
those of the other sign, which are not exact. Unknown and contradictory facts are omitted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Context
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.publication.iceberg.iceberg_schema import flat_type
from rowsieve.stats.tabulate import statistics_name
from rowsieve.storage.manifests.manifest import PartTable
from rowsieve.types import logical
from rowsieve.types.encodings import arrow_type
from rowsieve.types.schema import Schema

_FIXED_WIDTH: Final[Mapping[str, tuple[pa.DataType, str]]] = {
    "boolean": (pa.int8(), "<i1"),
    "int": (pa.int32(), "<i4"),
    "long": (pa.int64(), "<i8"),
    "float": (pa.float32(), "<f4"),
    "double": (pa.float64(), "<f8"),
    "date": (pa.int32(), "<i4"),
    "time": (pa.int64(), "<i8"),
    "timestamp": (pa.int64(), "<i8"),
    "timestamptz": (pa.int64(), "<i8"),
}
_EXACT: Final = Context(prec=80)
_BYTES: Final = frozenset({"string", "binary", "fixed[16]"})
_TRUNCATED: Final = frozenset({"string", "binary"})
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class FileMetrics:
    """The known metrics of one file, by field id."""

    value_counts: dict[int, int] = field(default_factory=dict)
    null_value_counts: dict[int, int] = field(default_factory=dict)
    nan_value_counts: dict[int, int] = field(default_factory=dict)
    lower_bounds: dict[int, bytes] = field(default_factory=dict)
    upper_bounds: dict[int, bytes] = field(default_factory=dict)


def file_metrics(parts: PartTable, schema: Schema) -> list[FileMetrics]:
    """The metrics of the data file of each part, for columns without members."""
    metrics = [FileMetrics() for _ in range(len(parts))]
    rows = parts.numbers("data.rows")
    for column in schema:
        if not isinstance(column.type, logical.Json) and flat_type(column.type) is not None:
            _add(metrics, parts, column, rows)
    return metrics


def _add(
    all_metrics: Sequence[FileMetrics],
    parts: PartTable,
    column: logical.Field,
    rows: npt.NDArray[np.int64],
) -> None:
    facts = _Facts(parts, column.id)
    nulls = facts.counts("null_count")
    sane = (nulls >= 0) & (nulls <= rows)
    bounded = sane.copy()
    is_float = isinstance(column.type, logical.Float)
    nans = facts.counts("nan_count") if is_float else np.zeros_like(rows)
    sane_nans = sane & (nans >= 0) & (nulls + nans <= rows)
    bounded &= sane_nans & (nans == 0)
    lower, upper, known = _bounds(facts, column.type)
    bounded &= known
    for i, metrics in enumerate(all_metrics):
        if sane[i]:
            metrics.value_counts[column.id] = int(rows[i])
            metrics.null_value_counts[column.id] = int(nulls[i])
        if is_float and sane_nans[i]:
            metrics.nan_value_counts[column.id] = int(nans[i])
        if bounded[i]:
            metrics.lower_bounds[column.id] = lower[i]
            metrics.upper_bounds[column.id] = upper[i]


class _Facts:
    """The columns of the manifest with the statistics of one field."""

    def __init__(self, parts: PartTable, field_id: int) -> None:
        self._parts = parts
        self._id = field_id

    def column(self, fact: str) -> pa.Array | None:
        """The values of a fact of each part; None if no part has it."""
        name = statistics_name(self._id, fact)
        if self._parts.schema.get_field_index(name) < 0:
            return None
        values = self._parts.column(name)
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values

    def counts(self, fact: str) -> npt.NDArray[np.int64]:
        """A count of each part; -1 where it is unknown."""
        values = self.column(fact)
        if values is None:
            return np.full(len(self._parts), -1, dtype=np.int64)
        return np.asarray(pc.fill_null(values, -1).to_numpy(), dtype=np.int64)

    def flags(self, fact: str) -> Mask:
        """Return whether a fact holds for each part; False where it is unknown."""
        values = self.column(fact)
        if values is None:
            return np.zeros(len(self._parts), dtype=np.bool_)
        flags = pc.fill_null(values, pa.scalar(value=False))
        return np.asarray(flags.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _bounds(
    facts: _Facts, type_: logical.LogicalType
) -> tuple[Sequence[bytes], Sequence[bytes], Mask]:
    """Both bounds of each part as bytes, and which parts have them."""
    name = flat_type(type_) or ""
    lower, upper = facts.column("lower"), facts.column("upper")
    if lower is None or upper is None:
        none = np.zeros(len(facts.counts("null_count")), dtype=np.bool_)
        return [], [], none
    wide = arrow_type(type_)
    lower, upper = lower.cast(wide), upper.cast(wide)
    both = pc.and_(lower.is_valid(), upper.is_valid())
    in_order = pc.fill_null(pc.less_equal(lower, upper), pa.scalar(value=False))
    known = np.asarray(pc.and_(both, in_order).to_numpy(zero_copy_only=False), dtype=np.bool_)
    if name not in _TRUNCATED:
        known &= facts.flags("lower_exact") & facts.flags("upper_exact")
    encode = _encoder(name, type_)
    return encode(lower), encode(upper), known


def _encoder(name: str, type_: logical.LogicalType) -> Callable[[pa.Array], Sequence[bytes]]:
    """Return the function that encodes bounds as bytes: Iceberg's single-value serialization."""
    if isinstance(type_, logical.Decimal):
        return lambda values: _decimals(values, type_)
    if name in _BYTES:
        return lambda values: [
            b"" if value is None else value.encode() if isinstance(value, str) else value
            for value in values.to_pylist()
        ]
    storage, numbers = _FIXED_WIDTH[name]
    return lambda values: _fixed_width(values, storage, np.dtype(numbers))


def _fixed_width(values: pa.Array, storage: pa.DataType, numbers: np.dtype[Any]) -> list[bytes]:
    plain = np.asarray(pc.fill_null(values.cast(storage), 0).to_numpy()).astype(numbers)
    data, width = plain.tobytes(), numbers.itemsize
    return [data[start : start + width] for start in range(0, len(data), width)]


def _decimals(values: pa.Array, type_: logical.Decimal) -> list[bytes]:
    """The unscaled values in two's complement, big-endian, in as few bytes as they need."""
    unscaled = [
        0 if value is None else int(value.scaleb(type_.scale, _EXACT))
        for value in values.to_pylist()
    ]
    lengths = [((value + (value < 0)).bit_length() + 8) // 8 for value in unscaled]
    return [
        value.to_bytes(length, "big", signed=True)
        for value, length in zip(unscaled, lengths, strict=True)
    ]
