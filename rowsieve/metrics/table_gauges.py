"""The state of tables as gauges in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.metrics.text_format import line

TABLE_GAUGES: Final = {
    "version": "The newest version.",
    "last_commit_timestamp_seconds": "When the newest version was committed, in Unix time.",
    "parts": "Parts of the newest version.",
    "small_parts": "Parts below half of the target size.",
    "rows": "Stored rows, hidden ones included.",
    "hidden_rows": "Stored rows that deletes hide.",
    "size_bytes": "Stored bytes of the newest version.",
    "read_amplification": "Parts that a read looks at for a row, on average.",
    "recommendations": "Kinds of maintenance that are due.",
    "disk_files": "Files of all versions, the log and checkpoints included.",
    "disk_bytes": "Bytes of all versions, the log and checkpoints included.",
}


def gauges_text(tables: Mapping[str, Mapping[str, float]]) -> str:
    """The gauges of several tables, by what to call each, as `Table.gauges` returns them.

    `gauges_text({t.uri: t.gauges() for t in tables})` is text for the same endpoint as that of a
    `PrometheusReporter`, or for a file that a collector reads. InvalidInput for a table itself.
    """
    if not isinstance(tables, Mapping):
        raise InvalidInput(
            f"gauges_text takes the gauges of tables by name, as {{t.uri: t.gauges()}}, not "
            f"{type(tables).__name__}"
        )
    lines: list[str] = []
    for name, help_text in TABLE_GAUGES.items():
        metric = f"table_{name}"
        samples = [
            line(metric, (("table", table),), gauges[name])
            for table, gauges in tables.items()
            if name in gauges
        ]
        if samples:
            head = [f"# HELP rowsieve_{metric} {help_text}", f"# TYPE rowsieve_{metric} gauge"]
            lines += head + samples
    return "".join(f"{each}\n" for each in lines)
