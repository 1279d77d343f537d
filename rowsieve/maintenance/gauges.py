"""The state of a table as numbers for a monitor: from its manifest, and a listing if asked."""

from __future__ import annotations

from rowsieve.maintenance.advice import advise
from rowsieve.maintenance.disk_usage import usage_of
from rowsieve.objects import ObjectStore
from rowsieve.storage.snapshot import Snapshot


def gauges_of(store: ObjectStore, snapshot: Snapshot, *, disk: bool) -> dict[str, float]:
    """The gauges of `rowsieve.metrics.table_gauges` by name; those of the disk only if asked."""
    advice = advise(snapshot)
    gauges: dict[str, float] = {
        "version": snapshot.version,
        "last_commit_timestamp_seconds": snapshot.timestamp_us / 1e6,
        "parts": advice.parts,
        "small_parts": advice.small_parts,
        "rows": advice.rows,
        "hidden_rows": advice.hidden_rows,
        "size_bytes": advice.size_bytes,
        "read_amplification": advice.read_amplification,
        "recommendations": len(advice.recommendations),
    }
    if disk:
        usage = usage_of(store)
        gauges |= {"disk_files": usage.files, "disk_bytes": usage.size_bytes}
    return gauges
