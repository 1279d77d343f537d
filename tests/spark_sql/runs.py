"""Run SQL files of Spark's over our tables; as a program it prints what it found.

    python -m tests.spark_sql.runs FOLDER [--only GLOB] [--appended] [--report FILE]

The files of `spark/sql/core/src/test/resources/sql-tests/inputs` are such. A file that the report
already has is counted as it stands there, and not run again. Last come the sums.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from rowsieve.providers.spark import spark_session
from tests.spark_sql.given_tables import tables_named_in
from tests.spark_sql.pair import Outcome, Pair
from tests.spark_sql.statements import settings, statements

_ZONE = {"spark.sql.session.timeZone": "America/Los_Angeles"}  # as in Spark's own runs of them
_LEGACY = {"spark.sql.ansi.enabled": "false"}
_SESSION = {
    "spark.log.level": "OFF",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def run_file(spark: Any, path: Path, folder: Path, *, merges: bool) -> Outcome:
    """Compare Spark over our tables with Spark over its own on one file."""
    given = _ZONE | (_LEGACY if "nonansi" in path.parts else {}) | settings(path)
    pair = Pair(spark, folder, given, merges=merges)
    try:
        found = list(statements(path))
        for name, rows in tables_named_in("\n".join(each.sql for each in found)).items():
            pair.give(name, rows)
        for statement in found:
            pair.run(statement.line, statement.sql)
    finally:
        pair.end()
    return pair.outcome


def main() -> int:
    """Exit code 1 where an answer was wrong or only one side failed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="glob of names below the folder")
    parser.add_argument("--appended", action="store_true", help="tables without a key")
    parser.add_argument("--report", type=Path, help="append one line of JSON a file")
    given = parser.parse_args()
    spark = spark_session("Spark's SQL files", _SESSION)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    sums: Counter[str] = Counter()
    known = _reported(given.report)
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(given.folder.rglob("*.sql")):
            name = str(path.relative_to(given.folder))
            if not fnmatch(name, given.only):
                continue
            outcome = known.get(name) or asdict(
                run_file(spark, path, Path(folder), merges=not given.appended)
            )
            found = {key: v if isinstance(v, int) else len(v) for key, v in outcome.items()}
            sums.update(Counter({"files": 1, **found}))
            _say(f"{name}: {_shown(found)}")
            for kind in ("wrong", "raised", "answered"):
                for line, message in outcome[kind]:
                    _say(f"  {kind}, line {line}: {message}")
            if given.report is not None and name not in known:
                with given.report.open("a") as written:
                    written.write(json.dumps({"file": name, **outcome}) + "\n")
    _say(f"all: {_shown(sums)}")
    spark.stop()
    return 1 if sums["wrong"] or sums["raised"] or sums["answered"] else 0


def _reported(report: Path | None) -> dict[str, dict[str, Any]]:
    """The outcomes that the report has already: these files are not run again."""
    if report is None or not report.exists():
        return {}
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return {line.pop("file"): line for line in lines}


def _shown(found: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in found.items())


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
