"""A reporter that Spark's processes import: a line of JSON for each read, beside the table."""

from __future__ import annotations

import json
from pathlib import Path

from rowsieve.metrics import ScanReport
from rowsieve.metrics.reports import Report


class FileReporter:
    def report(self, report: Report) -> None:
        if isinstance(report, ScanReport):
            line = {
                "engine": report.engine,
                "error": report.error,
                "elapsed_s": report.elapsed_s,
                **report.metrics.as_dict(),
            }
            with Path(report.table.removeprefix("file://") + ".reports").open("a") as file:
                file.write(json.dumps(line) + "\n")


class RaisingReporter:
    """Fails on each report."""

    def report(self, report: Report) -> None:
        raise RuntimeError("no")
