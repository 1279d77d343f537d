"""Bar: many small tables in one log, compared with as many tables alone, of a file each.

Small changes stay in the log. Requests are those of the database's store and of its tables.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from benchmarks.bars.sizes import Sizes
from benchmarks.data import FILES
from benchmarks.measure import Series, sampled
from benchmarks.result import Bar, Case, WrongAnswer

AT_ONCE = 100
LONGEST_CREATION_S = 1.0
LONGEST_OPENING_S = 0.020
MOST_REQUESTS = 4
FEWER_OBJECTS = 50
ROWS = 100
_OPEN = """
import sys, time
import pyarrow as pa
import rowsieve as rs
from rowsieve.objects.local import LocalStore

rs.Database(sys.argv[1] + "-other").create_table("t", pa.table({"id": [1]}), if_exists="ignore")
requests = []
for name in ("get", "get_range", "list", "details", "size", "exists", "open_input"):
    method = getattr(LocalStore, name)
    def counted(self, *args, method=method, name=name, **options):
        requests.append(name)
        return method(self, *args, **options)
    setattr(LocalStore, name, counted)
start = time.perf_counter()
table = rs.Database(sys.argv[1]).open_table(sys.argv[2])
elapsed = time.perf_counter() - start
opened = len(requests)
print(elapsed, opened, len(table.to_arrow()))
"""


def measure(sizes: Sizes, folder: Path) -> Bar:
    """Create tables, a hundred in a transaction; open some in a process of their own."""
    count = max(sizes.rows // 500, 2 * AT_ONCE) // AT_ONCE * AT_ONCE
    database = rs.Database(folder / "database")
    series = Series(f"{AT_ONCE} tables at once")
    for first in range(0, count, AT_ONCE):
        with sampled() as sample, database.transaction() as tx:
            for number in range(first, first + AT_ONCE):
                tx.create_table(f"t{number}", _rows(), ["id"], properties={"inline_bytes": 16_384})
        series.samples.append(sample)
    database.vacuum(retain_s=0)
    objects = _objects(folder / "database")
    alone = rs.create_table(folder / "alone", _rows(), ["id"], properties=FILES)
    of_one = _objects(folder / "alone")
    rs.create_table(folder / "inline", _rows(), ["id"])
    of_inline = _objects(folder / "inline")
    openings = [_opened(folder / "database", f"t{number}") for number in (1, count // 2, count - 1)]
    if any(rows != ROWS for _, _, rows in openings) or alone.count() != ROWS:
        raise WrongAnswer("databases: a table has lost rows")
    before = database.version
    with database.transaction() as tx:
        for number in range(3):
            tx.table(f"t{number}").upsert(_rows().slice(0, 1))
    puts = database.version - before
    case = Case("databases", [series])
    slowest = max(seconds for seconds, _, _ in openings)
    requests = max(number for _, number, _ in openings)
    fewer = count * of_one / objects
    creation_s = series.wall_s()
    return Bar(
        name="databases",
        promise=f"{AT_ONCE} tables of {ROWS} rows at once in {LONGEST_CREATION_S:.0f} s, one "
        f"opened cold in {LONGEST_OPENING_S * 1000:.0f} ms and {MOST_REQUESTS} requests, "
        f"{FEWER_OBJECTS}x fewer objects than tables of files have, a transaction over 3 tables "
        "in one put",
        found=f"of {count:,} tables: {creation_s:.2f} s, {slowest * 1000:.1f} ms and {requests} "
        f"requests, {objects:,} objects instead of {count * of_one:,} ({fewer:.0f}x; tables with "
        f"rows in their logs {count * of_inline:,}), {puts} put",
        met=creation_s <= LONGEST_CREATION_S
        and slowest <= LONGEST_OPENING_S
        and requests <= MOST_REQUESTS
        and fewer >= FEWER_OBJECTS
        and puts == 1,
        cases=[case],
    )


def _rows() -> pa.Table:
    return pa.table({"id": range(ROWS), "v": [i * 1.5 for i in range(ROWS)]})


def _objects(folder: Path) -> int:
    return sum(each.is_file() for each in folder.rglob("*"))


def _opened(database: Path, name: str) -> tuple[float, int, int]:
    """Seconds, requests and rows of a table that a new process opens."""
    arguments = [sys.executable, "-c", _OPEN, str(database), name]
    answer = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    seconds, requests, rows = answer.split()
    return float(seconds), int(requests), int(rows)
