"""A collector of statistics that Spark's processes have by an entry point, and the driver not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.stats.model import ColumnStatistics
from rowsieve.types.logical import Field


class Hundreds:
    """Bounds of integers, rounded outward to hundreds."""

    def __init__(self, field: Field) -> None:
        self.field, self.ends, self.nulls = field, list[int](), 0

    def add(self, values: Any) -> None:
        self.nulls += values.null_count
        self.ends += [end for end in pc.min_max(values).as_py().values() if end is not None]

    def finish(self) -> Iterator[tuple[int, ColumnStatistics]]:
        low, high = min(self.ends) // 100 * 100, -(-max(self.ends) // 100) * 100
        bounds = pa.scalar(low, pa.int64()), pa.scalar(high, pa.int64())
        yield self.field.id, ColumnStatistics(self.nulls, lower=bounds[0], upper=bounds[1])
