"""The last step of the demo: a CALL rewrites the parts, on threads or on Spark's workers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from rowsieve.catalog import Catalog
from rowsieve.table import Table

NAME = "demo.flights"


def rewrite_by_call(
    folder: Path, table: Table, console: Console, engine: Any = None
) -> dict[str, tuple[object, object]]:
    """Name the table in a catalog and rewrite it; return what to check, actual and expected."""
    catalog = Catalog(folder / "catalog")
    catalog.register_table(NAME, table.uri)
    table.refresh()
    rows, before = table.scan().count(), table.maintenance_advice()
    statement = f"CALL system.rewrite_data_files(table => '{NAME}')"
    (row,) = catalog.call(statement, engine=engine).to_pylist()
    table.refresh()
    after = table.maintenance_advice()
    console.print(f"[bold]{statement}[/bold]")
    console.print(
        f"  {before.parts} parts, {before.size_bytes / 1e6:.1f} MB, "
        f"{before.read_amplification:.1f} looked at for each row; now {after.parts} parts, "
        f"{after.size_bytes / 1e6:.1f} MB, {after.read_amplification:.1f}"
    )
    return {
        "rows after the rewrite": (table.scan().count(), rows),
        "parts rewritten": (row["rewritten_data_files_count"] > 1, True),
        "parts looked at for each row": (after.read_amplification, 1.0),
        "hidden rows": (after.hidden_rows, 0),
    }
