"""Read and write the column that says by which sequence each value of a row was set.

Soundness: a row without entries is whole, so each of its values has the row's sequence. A partial
row has an entry for each value that is older, and a last one for all columns that come later: the
sequence of the last event that set all columns, as whole rows and deletes do.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.column_order.ranked_sequences import RankedSequences, Ranks
from rowsieve.types.ordering.keys import KeyOrder, flat


@dataclass(frozen=True, slots=True)
class ColumnEntries:
    """Entries of rows: (k,) the row of each, the field id of its column, and its sequence."""

    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    sequences: pa.Table

    @classmethod
    def read(cls, column: pa.ChunkedArray, order: KeyOrder) -> ColumnEntries:
        """Read the entries of all rows."""
        lists = flat(column)
        rows = np.asarray(pc.list_parent_indices(lists).to_numpy(), dtype=np.int64)
        ids, *sequences = pc.list_flatten(lists).flatten()
        names = list(order.names)
        return cls(rows, np.asarray(ids.to_numpy(), np.int64), pa.table(sequences, names=names))

    def ranks_of(self, field_id: int, rows: Ranks, ranks: Ranks) -> Ranks:
        """(n,) the ranks of a column's values, `rows` being those of the rows, `ranks` of entries.

        Of a row that has no entry for the column, the value has the row's sequence, unless the
        column is younger than the row: then it has that of the row's last entry.
        """
        result, is_last = rows.copy(), self._is_last()
        later = is_last & (self.columns <= field_id)
        mask = ~is_last & (self.columns == field_id)
        for chosen in (later, mask):
            result[self.rows[chosen]] = ranks[chosen]
        return result

    def _is_last(self) -> npt.NDArray[np.bool_]:
        """(k,) whether an entry is the last one of its row: that of all later columns."""
        return np.append(self.rows[1:] != self.rows[:-1], True)[: len(self.rows)]


def entries_column(
    values: Mapping[int, Ranks], rows: Ranks, sequences: RankedSequences, type_: pa.DataType
) -> pa.Array:
    """(n,) the column of rows whose values have these ranks, by field id.

    The greatest id is that of columns which do not exist yet; none of its ranks is above others.
    """
    ids = np.array(sorted(values), dtype=np.int64)
    matrix = np.stack([values[each] for each in ids], axis=1)
    is_older = matrix < rows[:, None]
    owners, places = np.nonzero(is_older)  # row by row, ids ascending
    taken = sequences.taken(matrix[owners, places])
    children = [pa.array(ids[places].astype(np.int32)), *map(flat, taken.columns)]
    item = type_.value_type
    fields = [item.field(place) for place in range(item.num_fields)]
    cast = [child.cast(field.type) for child, field in zip(children, fields, strict=True)]
    structs = pa.StructArray.from_arrays(cast, fields=fields)
    counts = is_older.sum(axis=1)
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, structs, mask=pa.array(counts == 0)).cast(type_)
