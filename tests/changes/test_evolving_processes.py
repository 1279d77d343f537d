"""Processes write and read while another one changes the columns: no row has a wrong value."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs

ROUNDS = 5
WRITER = """
import sys, time
import pyarrow as pa
import rowsieve as rs
from rowsieve.errors import CommitConflict, SchemaMismatch

uri, number = sys.argv[1], int(sys.argv[2])
table = rs.open_table(uri)
written = 0
while written < 8:
    table.refresh()
    names = table.schema.names
    if written == 4 and names == ["id", "c1"]:
        time.sleep(0.005)  # the other half comes after the first change of the columns
        continue
    row = {"id": number * 1_000 + written}
    row |= {name: int(name[1:]) for name in names if name != "id"}  # column c7 holds 7
    try:
        table.upsert(pa.Table.from_pylist([row], schema=table.schema))
        written += 1
    except (CommitConflict, SchemaMismatch):
        continue
"""


@pytest.mark.parametrize("compacting", [False, True])
def test_values_stay_in_their_columns(tmp_path: Path, compacting: bool) -> None:
    """Column cN holds N in every row, by default or written; cN is dropped, cM takes its place."""
    uri = str(tmp_path / "t")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("c1", pa.int64())])
    table = rs.create_table(uri, schema, key=["id"])
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, uri, str(number)]) for number in range(2)
    ]
    known = table.version
    for number in range(2, 2 + ROUNDS):
        while table.refresh() <= known and any(writer.poll() is None for writer in writers):
            time.sleep(0.005)  # until a writer has committed since the last round
        with table.alter() as change:
            change.add_column(f"c{number}", "int64", default=number)
            if number > 3:
                change.drop_column(f"c{number - 2}")
        if compacting:
            table.compact()
        known = table.version
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0]
    final = rs.open_table(uri)
    assert final.count() == 16
    operations = [commit.operation for commit in reversed(final.history())]
    assert "upsert" in operations[: operations.index("alter")]
    assert "upsert" in operations[operations.index("alter") :]
    for version in range(final.version + 1):
        rows = rs.open_table(uri, version=version).scan().to_arrow()
        for name in rows.column_names[1:]:
            held = set(rows.column(name).to_pylist())
            assert held <= {int(name[1:])}, (version, name)
