"""Puts barriers above scans, so that the optimiser cannot push conditions into them.

DataFusion 55 pushes conditions down a second time, in the physical plan. There it finds columns by
name alone, so a condition above an outer join may reach the wrong side of the join (decision 60).
A cross join with one row without columns stops these conditions, and costs nothing. It does not
stop conditions of the logical plan, which knows the table of each column, nor projections, limits
and statistics.

A limit that no table reaches stops the conditions of the logical plan, too: a *fence*, for
statements whose conditions DataFusion cannot push to a dataset of Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import datafusion

from rowsieve.providers.datafusion.part_choice.named_scans import named_frame

_MORE_ROWS_THAN_A_TABLE: Final = 2**62


def behind_barrier(
    context: datafusion.SessionContext, frame: datafusion.DataFrame
) -> datafusion.DataFrame:
    """Return the frame below a cross join with one row; the result has no order."""
    return context.create_dataframe_from_logical_plan(_one_row()).join_on(frame, how="inner")


def views_behind_barriers(
    context: datafusion.SessionContext, providers: Mapping[str, Any], *, fenced: bool = False
) -> dict[str, Any]:
    """Return a view of each table provider behind a barrier, to register in its place."""
    frames = {name: named_frame(context, name, each) for name, each in providers.items()}
    if fenced:
        frames = {name: each.limit(_MORE_ROWS_THAN_A_TABLE) for name, each in frames.items()}
    return {name: behind_barrier(context, each).into_view() for name, each in frames.items()}


@cache
def _one_row() -> Any:
    return datafusion.SessionContext().sql("SELECT 1").select().logical_plan()
