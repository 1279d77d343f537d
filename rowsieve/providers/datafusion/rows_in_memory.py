"""Rows in memory as a table for DataFusion, which evaluates conditions and limits itself."""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa

from rowsieve.bridges.extras import imported
from rowsieve.objects import in_thread


def rows_table(rows: pa.Table) -> Any:
    """Return the object to register in any session.

    Safe to call while DataFusion resolves a name in a catalog of ours: its thread may not wait for
    DataFusion again, so another thread creates the table.
    """
    return in_thread(partial(_created, rows)).result()


def _created(rows: pa.Table) -> Any:
    session = imported("datafusion", "datafusion").SessionContext()
    batches = batches_of(rows.combine_chunks())
    return session.create_dataframe([batches]).into_view(temporary=True)


def batches_of(rows: pa.Table) -> list[pa.RecordBatch]:
    """The batches of the rows; at least one, from which DataFusion takes the columns."""
    return rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
