"""Keeps conditions of other tables out of the scans below a frame.

DataFusion 55 pushes conditions down once more in the physical plan. It finds their columns by name,
so that a condition above an outer join may reach the wrong side of it (decision 85). A cross join
with one row that has no columns stops them, and costs nothing: conditions of the logical plan,
which knows the tables of columns, pass it, as do projections, limits and statistics.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import datafusion


def sealed(context: datafusion.SessionContext, frame: datafusion.DataFrame) -> datafusion.DataFrame:
    """The frame, whose scans no condition of another table reaches; it loses its order."""
    return context.create_dataframe_from_logical_plan(_one_row()).join_on(frame, how="inner")


def sealed_view(context: datafusion.SessionContext, provider: Any) -> Any:
    """What to register in place of the table `provider`."""
    return sealed(context, context.read_table(provider)).into_view()


@cache
def _one_row() -> Any:
    return datafusion.SessionContext().sql("SELECT 1").select().logical_plan()
