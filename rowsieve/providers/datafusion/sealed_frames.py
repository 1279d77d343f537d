"""Seals frames: the physical optimiser cannot push conditions into the scans below.

DataFusion 55 pushes conditions down a second time, in the physical plan. There it finds columns by
name alone, so a condition above an outer join may reach the wrong side of the join (decision 60).
A cross join with one row without columns stops these conditions, and costs nothing. It does not
stop conditions of the logical plan, which knows the table of each column, nor projections, limits
and statistics.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import datafusion

from rowsieve.providers.datafusion.part_choice.named_scans import named_frame


def sealed(context: datafusion.SessionContext, frame: datafusion.DataFrame) -> datafusion.DataFrame:
    """Return the frame below a cross join with one row; the result has no order."""
    return context.create_dataframe_from_logical_plan(_one_row()).join_on(frame, how="inner")


def sealed_views(
    context: datafusion.SessionContext, providers: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a sealed view of each table provider, to register in its place."""
    return {
        name: sealed(context, named_frame(context, name, provider)).into_view()
        for name, provider in providers.items()
    }


@cache
def _one_row() -> Any:
    return datafusion.SessionContext().sql("SELECT 1").select().logical_plan()
