"""CPU of statements over a table with thousands of columns, in our session and in DataFusion alone.

    python -m benchmarks.wide_statements 2000 4000

The table has ten rows in each of two parts, one of them with hidden rows. DataFusion alone runs the
same statement over a table in memory. It plans a statement in time that grows with the square of
the number of columns that the statement returns or writes; the last column is our growth.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import datafusion
import pyarrow as pa

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext

ROWS = 10
ROUNDS = 3

STATEMENTS = {
    "select": "SELECT * FROM wide",
    "select where": "SELECT * FROM wide WHERE c5 > 3",
    "one column": "SELECT c7 FROM wide WHERE c5 > 3",
    "insert": "INSERT INTO wide (id, c1) VALUES ({number}, 1.5)",
    "insert select": "INSERT INTO wide SELECT {number} + 500 AS id, * FROM source LIMIT 1",
    "update": "UPDATE wide SET c3 = c4 + {number} WHERE id = 4",
    "delete": "DELETE FROM wide WHERE c5 = {number}",
}


def main(widths: list[int], show: Callable[[str], None] = print) -> dict[str, list[float]]:
    """Print the CPU of each statement for each number of columns; return ours in seconds."""
    ours: dict[str, list[float]] = {name: [] for name in STATEMENTS}
    show("columns  statement      ours, s  DataFusion alone, s  growth")
    for width in widths:
        with tempfile.TemporaryDirectory() as folder:
            sessions = _sessions(f"{folder}/wide", width)
            for name, statement in STATEMENTS.items():
                own, alone = (_least_cpu(session, statement) for session in sessions)
                growth = f"{own / ours[name][-1]:6.2f}" if ours[name] else ""
                ours[name].append(own)
                show(f"{width:>7}  {name:<13}  {own:>7.2f}  {alone:>19.2f}  {growth}")
    return ours


def _sessions(uri: str, width: int) -> tuple[Any, Any]:
    """Our session over the table, and DataFusion's over the same rows in memory."""
    table = rs.create_table(uri, _rows(0, width), key=["id"])
    table.upsert(_rows(ROWS // 2, width))
    own, alone = SessionContext(), datafusion.SessionContext()
    own.register_table("wide", table)
    alone.register_record_batches("wide", [table.scan().to_arrow().to_batches()])
    for each in (own, alone):
        each.register_record_batches("source", [_rows(0, width).drop_columns(["id"]).to_batches()])
        each.sql("SELECT id FROM wide").collect()
    return own, alone


def _rows(first: int, width: int) -> pa.Table:
    columns = {f"c{n}": [float(row) for row in range(ROWS)] for n in range(width - 1)}
    return pa.table({"id": range(first, first + ROWS), **columns})


def _least_cpu(session: Any, statement: str) -> float:
    """The least CPU of some runs, in seconds."""
    found = []
    for number in range(ROUNDS):
        text = statement.format(number=1_000 + number)
        started_s = time.process_time()
        session.sql(text).collect()
        found.append(time.process_time() - started_s)
    return min(found)


if __name__ == "__main__":
    main([int(each) for each in sys.argv[1:]] or [2_000, 4_000])
