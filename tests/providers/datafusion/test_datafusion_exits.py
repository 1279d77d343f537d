"""However a query ended, Python leaves with the exit code that the program gave."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence

import datafusion
import numpy as np
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion.open_reads import foreign_threads
from tests import profiles

RUNS = 13 if profiles.IS_DEEP else 1  # of each of the programs: 117 exits
ROWS = 300_000
PARTS = 4

START = """
import asyncio, atexit, os, sys, threading

class NoPandas:
    "pyarrow imports pandas with its first scalar, if it can: half of what a program takes here."
    def find_spec(self, name, path=None, target=None):
        if name == "pandas":
            raise ImportError(name)

sys.meta_path.insert(0, NoPandas())
import datafusion, rowsieve
import pyarrow as pa

context = datafusion.SessionContext()

def query(text):
    return context.sql(text)

def exit_handler():
    assert query("SELECT count(*) AS n FROM t WHERE v < 2").to_pylist() == [{"n": 1_200_000}]

if "later handler" in sys.argv:
    atexit.register(exit_handler)
context.register_table("t", rowsieve.open_table(sys.argv[1]))
"""

PROGRAMS = {
    "a limit is reached": """
query("SELECT * FROM t LIMIT 2").to_pylist()
""",
    "a query fails": """
try:
    query("SELECT 1 / (id - 5) FROM t UNION ALL SELECT id FROM t").collect()
except Exception:
    pass
else:
    sys.exit(1)
""",
    "a stream is dropped": """
stream = query("SELECT * FROM t").execute_stream()
next(stream)
del stream
query("SELECT * FROM t").execute_stream()
""",
    "streams are kept, one never read, one as a reader": """
unread = query("SELECT * FROM t").execute_stream()
stream = query("SELECT a.* FROM t a JOIN t b USING (id)").repartition(3).execute_stream()
next(stream)
reader = pa.RecordBatchReader.from_stream(query("SELECT * FROM t"))
reader.read_next_batch()
""",
    "threads query": """
def ask():
    query("SELECT * FROM t LIMIT 3").collect()

for thread in [threading.Thread(target=ask) for _ in range(4)]:
    thread.start()
""",
    "daemon threads are in the middle of queries": """
answered = [threading.Event() for _ in range(2)]

def ask(once):
    while True:
        try:
            query("SELECT sum(v) FROM t WHERE v > 0.5").collect()
            once.set()
        except Exception:
            pass

for once in answered:
    threading.Thread(target=ask, args=[once], daemon=True).start()
for once in answered:
    once.wait()
""",
    "an asynchronous reader stops early": """
async def first():
    async for batch in query("SELECT * FROM t"):
        return

asyncio.run(first())
""",
    "a forked child leaves while a stream is open": """
stream = query("SELECT * FROM t").execute_stream()
next(stream)
if (child := os.fork()) == 0:
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    "a later handler": """
query("SELECT * FROM t LIMIT 2").to_pylist()
""",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """Large enough that DataFusion's threads are still reading when the first rows are there."""
    values = np.random.default_rng(1).random(ROWS)
    first, *others = (
        pa.table({"id": np.arange(start, start + ROWS), "v": values})
        for start in range(0, PARTS * ROWS, ROWS)
    )
    table = rs.create_table(str(tmp_path_factory.mktemp("exits") / "t"), first, key=["id"])
    for rows in others:
        table.upsert(rows)
    return table


def run(program: str, arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", START + program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize("story", PROGRAMS)
def test_the_interpreter_ends_in_peace_though(story: str, table: rs.Table) -> None:
    for _ in range(RUNS):
        ended = run(PROGRAMS[story], [table.uri, story])
        assert (ended.returncode, ended.stderr) == (0, "")


def test_a_thread_of_datafusion_inside_python_is_seen_and_those_of_python_are_not() -> None:
    seen: list[tuple[int, set[int]]] = []

    def note(values: pa.Array) -> pa.Array:
        seen.append((threading.get_ident(), foreign_threads()))
        return values

    context = datafusion.SessionContext()
    context.register_udf(datafusion.udf(note, [pa.int64()], pa.int64(), "immutable", "note"))
    context.from_pydict({"n": [1]}, name="t")
    context.sql("SELECT note(n) FROM t UNION ALL SELECT note(n + 1) FROM t").collect()
    seen = [each for each in seen if each[0] != threading.get_ident()]
    assert seen
    assert all(thread in foreign for thread, foreign in seen)
    stays = threading.Event()
    ends = threading.Thread(target=stays.wait)
    ends.start()
    assert ends.ident not in foreign_threads()
    assert threading.get_ident() not in foreign_threads()
    stays.set()
    ends.join()


def test_the_program_keeps_its_own_exit_code(table: rs.Table) -> None:
    for _ in range(RUNS):
        ended = run(PROGRAMS["a limit is reached"] + "sys.exit(7)", [table.uri])
        assert ended.returncode == 7


def test_the_command_line_ends_in_peace_when_a_limit_is_reached(table: rs.Table) -> None:
    command = [sys.executable, "-m", "rowsieve", "query", "SELECT * FROM t LIMIT 1", table.uri]
    for _ in range(RUNS):
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert (ended.returncode, ended.stderr) == (0, "")
