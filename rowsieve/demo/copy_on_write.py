"""Applies the demo's changes with deltalake's merge, which rewrites every affected file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.progress import track

from rowsieve.demo.effort import Effort, measured
from rowsieve.demo.flights import KEY, by_month, departed_by_week, late_corrections, schedule


def merge_with_deltalake(folder: Path, flights: pa.Table, console: Console) -> Effort | None:
    """Load the schedule, then measure the changes; None if deltalake is not installed."""
    try:
        from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 - optional
    except ImportError:
        return None
    for month in by_month(schedule(flights)):
        write_deltalake(str(folder), month, mode="append")
    with measured(str(folder)) as effort:
        effort.rows_written = 0
        for changes in track(
            [*departed_by_week(flights), *_corrections(flights)],
            "  the same with deltalake's merge",
            console=console,
        ):
            if changes is None:
                metrics = DeltaTable(str(folder)).delete("dep_time IS NULL")
                effort.rows += metrics["num_deleted_rows"]
                effort.rows_written += metrics["num_copied_rows"]
            else:
                effort.rows += changes.num_rows
                effort.rows_written += _merge(DeltaTable(str(folder)), changes)
    return effort


def _corrections(flights: pa.Table) -> Iterator[pa.Table | None]:
    """None for the delete of cancelled flights, then the late corrections."""
    yield None
    yield from late_corrections(flights)


def _merge(table: Any, changes: pa.Table) -> int:
    """Merge the changes; returns the number of rows written."""
    match = " AND ".join(f"t.{name} = s.{name}" for name in KEY)
    metrics = (
        table.merge(changes, match, source_alias="s", target_alias="t")
        .when_matched_update_all()
        .when_not_matched_insert_all()
        .execute()
    )
    return int(metrics["num_output_rows"])
