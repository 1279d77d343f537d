"""The column that says by which sequence each value of a row was set, where that is not the row's.

A table with an event order and the property `column_order = "each"` has it as its last column. It
is NULL in a row whose values all have the row's sequence, as whole rows do. Otherwise it is a list
of entries, each a column's field id and the sequence of its value, which is below the row's; with
NULL in all sequence columns no event has set the value yet. The last entry, with an id that no
column had when the row was written, says the same of all columns from that id on: its sequence is
that of the last event which set all columns, as whole rows and deletes do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

COLUMN_ORDER: Final = "_rowsieve_column_order"


def column_order_type(sequence: Sequence[pa.DataType]) -> pa.DataType:
    """The type of the column, for sequence columns of these types."""
    places = enumerate(sequence, 1)
    sequences = [pa.field(f"sequence_{place}", type_) for place, type_ in places]
    return pa.list_(pa.struct([pa.field("column", pa.int32(), nullable=False), *sequences]))


def with_column_order(rows: Any, type_: pa.DataType) -> Any:
    """Add the column to whole rows that lack it."""
    if COLUMN_ORDER in rows.schema.names:
        return rows
    kind = pa.RecordBatch if isinstance(rows, pa.RecordBatch) else pa.Table
    columns = [*rows.columns, pa.nulls(rows.num_rows, type_)]
    return kind.from_arrays(columns, names=[*rows.schema.names, COLUMN_ORDER])
