"""A FIFO in the place of any file of a table is an error of its name; nobody waits for its writer.

The commands run in processes of their own, which a test ends if they wait.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from tests.objects.background import finish_background

USES = """
import logging, os, shutil, sys
import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.providers.datafusion import SessionContext

logging.disable()
original, copies, *paths = sys.argv[1:]

def by_datafusion(table):
    context = SessionContext()
    context.register_table("t", table)
    context.sql("SELECT sum(id) FROM t").collect()

USES = {
    "read": lambda table: table.to_arrow(),
    "read an old version": lambda table: table.scan(version=0).to_arrow(),
    "read by DataFusion": by_datafusion,
    "write": lambda table: table.upsert([{"id": 1, "v": "x"}]),
    "delete": lambda table: table.delete("v = 'b'"),
    "compact": lambda table: table.compact(),
    "read changes": lambda table: table.changes(0).read_all(),
    "list": lambda table: (table.history(), table.detail(), table.files()),
    "vacuum": lambda table: table.vacuum(grace_s=0),
}
for path in paths:
    for name, use in USES.items():
        copy = f"{copies}/{path.replace('/', '-')} {name}"
        shutil.copytree(original, copy)
        os.unlink(f"{copy}/{path}")
        os.mkfifo(f"{copy}/{path}")
        try:
            use(rs.open_table(copy))
        except CorruptData as error:
            assert f"cannot read {path} in " in str(error), (path, name, error)
            assert "it is a FIFO, not a regular file" in str(error), (path, name, error)
        except Exception as error:  # of DataFusion, with our text
            assert name == "read by DataFusion", (path, name, error)
            assert f"CorruptData: cannot read {path} in " in str(error), (path, name, error)
"""


def passes(program: str, *arguments: str | Path) -> None:
    """Run a program; a test of ours would wait with it."""
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """A table with a file of every kind: rows, deletes, vectors, lists, statistics, checkpoints."""
    table = rs.create_table(
        tmp_path_factory.mktemp("special") / "t",
        pa.table({"id": list(range(6)), "v": ["a"] * 6}),
        key=["id"],
        properties={"checkpoint_interval": "2", "statistics_inline_bytes": "1"},
    )
    table.upsert([{"id": 1, "v": "b"}, {"id": 9, "v": "c"}])
    table.delete(keys=[{"id": 3}])
    table.build_deletion_vectors()
    finish_background()
    return table


def test_no_read_and_no_change_waits_for_a_fifo_in_the_place_of_a_file_of_a_table(
    table: rs.Table, tmp_path: Path
) -> None:
    folder = Path(table.uri.removeprefix("file://"))
    paths = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    kinds = {path.partition(".")[2] if "data" in path else path[:14] + path[-6:] for path in paths}
    assert len(kinds) >= 7, kinds
    passes(USES, folder, tmp_path, *paths)


def test_datafusion_opens_no_fifo_in_the_place_of_a_file_that_it_reads_itself(
    tmp_path: Path,
) -> None:
    program = """
import os, sys
import rowsieve as rs
from rowsieve.errors import CorruptData
from rowsieve.providers.datafusion import SessionContext

table = rs.create_table(sys.argv[1], [{"id": 1}], key=["id"], properties={"inline_bytes": 0})
context = SessionContext()
context.register_table("t", table)
assert context.sql("SELECT sum(id) AS n FROM t").to_pylist() == [{"n": 1}]
(path,) = table.files()["path"].to_pylist()
os.unlink(f"{sys.argv[1]}/{path}")
os.mkfifo(f"{sys.argv[1]}/{path}")
for read in (lambda: context.sql("SELECT sum(id) FROM t"), lambda: context.table("t")):
    try:
        read()
    except CorruptData as error:
        assert "it is a FIFO" in str(error)
    else:
        sys.exit("planned")
"""
    passes(program, tmp_path / "t")


def test_parquet_files_of_others_are_regular_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    for path in (tmp_path / "pipe.parquet", "/dev/zero"):
        with pytest.raises(InvalidInput, match="neither a regular file nor a directory"):
            rs.open_parquet(path)
        with pytest.raises(InvalidInput, match="neither a regular file nor a directory"):
            rs.from_parquet(path, tmp_path / "t")
    folder = tmp_path / "folder"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1]}), folder / "a.parquet")
    opened = rs.open_parquet(folder)
    assert opened.count() == 1
    shutil.move(tmp_path / "pipe.parquet", folder / "a.parquet")
    program = """
import sys
import rowsieve as rs
from rowsieve.errors import CorruptData
try:
    rs.open_parquet(sys.argv[1])
except CorruptData as error:
    assert "it is a FIFO" in str(error)
else:
    sys.exit("opened")
"""
    passes(program, folder)
