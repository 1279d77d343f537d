"""Sequences of several sources as integers that compare as they do, and back.

The sources are the stored versions of keys, the entries of their column orders and the events that
meet them. Rank -1 is below every sequence: that of a value that no event gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.types.ordering.keys import KeyOrder

Ranks = npt.NDArray[np.int64]
NEVER = -1


@dataclass(frozen=True, slots=True)
class RankedSequences:
    """`values` has the sequence of each rank, in the columns of the order."""

    values: pa.Table
    ranks: tuple[Ranks, ...]

    def taken(self, ranks: Ranks) -> pa.Table:
        """(n,) the sequences of ranks; NULL where one is NEVER."""
        return self.values.take(pa.array(ranks, mask=ranks == NEVER))


def ranked(sources: Sequence[pa.Table], order: KeyOrder) -> RankedSequences:
    """Rank the sequences of all sources together; a row with NULL in its first column is NEVER."""
    names = list(order.names)
    types = sources[0].select(names).schema.types
    schema = pa.schema([pa.field(name, type_) for name, type_ in zip(names, types, strict=True)])
    tables = [source.select(names).cast(schema) for source in sources]
    both = pa.concat_tables(tables).combine_chunks()
    valid = np.flatnonzero(both.column(0).is_valid().to_numpy(zero_copy_only=False))
    known = both.take(pa.array(valid))
    columns = order.columns(known)
    in_order = columns.sort()
    is_new = ~columns.repeats(in_order)
    ranks = np.full(both.num_rows, NEVER, dtype=np.int64)
    ranks[valid[in_order]] = np.cumsum(is_new) - 1
    stops = np.cumsum([table.num_rows for table in tables])
    return RankedSequences(
        known.take(pa.array(in_order[is_new])).combine_chunks(),
        tuple(np.split(ranks, stops[:-1])),
    )
