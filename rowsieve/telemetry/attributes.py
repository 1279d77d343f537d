"""Attributes of spans, by the semantic conventions of database clients, and ours beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from rowsieve.metrics import CommitReport, ScanReport

Attributes: TypeAlias = dict[str, str | int | float | bool]

SYSTEM: Final = "rowsieve"
ERROR: Final = "error.type"
SCAN: Final = (
    *("parts_considered", "parts_pruned", "parts_read", "row_groups_considered"),
    *("row_groups_pruned", "row_groups_read", "pages_considered", "pages_pruned", "bytes_read"),
    *("rows_decoded", "rows_returned", "audit_violations", "plans_reused"),
)
COMMIT: Final = ("rows_written", "rows_deleted", "parts_added", "parts_removed")


def span_name(operation: str, table: str) -> str:
    """Return the name of a span: the operation, and the table without its folder."""
    target = _name(table)
    return f"{operation} {target}" if target else operation


def attributes_of_target(operation: str, table: str) -> Attributes:
    """Return what is known when an operation begins."""
    known: Attributes = {"db.system.name": SYSTEM, "db.operation.name": operation}
    if name := _name(table):
        known["db.collection.name"] = name
    if folder := table.rstrip("/").rpartition("/")[0]:  # a procedure names no URI
        known |= {"db.namespace": folder, "rowsieve.table.uri": table}
    return known


def attributes_of_scan(report: ScanReport) -> Attributes:
    """Return what a read adds: what it considered, skipped and read."""
    counts = {f"rowsieve.scan.{name}": getattr(report.metrics, name) for name in SCAN}
    pruned = {f"rowsieve.scan.pruned_by.{name}": n for name, n in report.metrics.pruned_by.items()}
    return {
        "rowsieve.table.version": report.version,
        "rowsieve.engine": report.engine,
        "db.response.returned_rows": report.metrics.rows_returned,
        **counts,
        **pruned,
    }


def attributes_of_commit(report: CommitReport) -> Attributes:
    """Return what a change adds: its version, and what it wrote."""
    counts: Mapping[str, int] = {f"rowsieve.commit.{n}": getattr(report, n) for n in COMMIT}
    known: Attributes = {"rowsieve.table.version": report.version, **counts}
    if report.commit_id:
        known["rowsieve.commit.id"] = report.commit_id
    return known


def _name(table: str) -> str:
    return table.rstrip("/").rpartition("/")[2]
