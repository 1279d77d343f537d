"""Processes write and read while another one changes the columns: no row has a wrong value."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import CommitConflict, SchemaMismatch
from tests.processes import start
from tests.profiles import IS_DEEP

ROUNDS = 5


def write(uri: str, number: int) -> None:
    """Eight rows, each with the columns that the table has just then."""
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


@pytest.mark.parametrize("compacting", [False, True])
def test_values_stay_in_their_columns(tmp_path: Path, compacting: bool) -> None:
    """Column cN holds N in every row, by default or written; cN is dropped, cM takes its place."""
    uri = str(tmp_path / "t")
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("c1", pa.int64())])
    table = rs.create_table(uri, schema, key=["id"])
    writers = [start(write, uri, number) for number in range(2)]
    known = table.version
    for number in range(2, 2 + ROUNDS):
        while table.refresh() <= known and any(writer.is_alive() for writer in writers):
            time.sleep(0.005)  # until a writer has committed since the last round
        with table.alter() as change:
            change.add_column(f"c{number}", "int64", default=number)
            if number > 3:
                change.drop_column(f"c{number - 2}")
        if compacting:
            table.compact()
        known = table.version
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0, 0]
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


EVERY_OPERATION = """
import random, sys
import pyarrow as pa
import rowsieve as rs
from rowsieve.errors import (
    CommitConflict, InvalidPredicate, SchemaMismatch, UnknownColumn, UnsupportedOperation,
)

uri, number = sys.argv[1], int(sys.argv[2])
drawn = random.Random(number)
table = rs.open_table(uri)
first = number * 1_000


def changes(rows):
    table.apply_changes(
        rows.append_column("op", pa.array(["u"])).append_column("at", pa.array([1])),
        op="op", sequence="at",
    )


for _ in range(40):
    if drawn.random() < 0.7:  # else the handle may not know the newest columns
        table.refresh()
    name = drawn.choice([each for each in table.schema.names if each != "id"])
    key, value = first + drawn.randint(0, 9), name[1:]
    row = {"id": key} | {each: int(each[1:]) for each in table.schema.names if each != "id"}
    rows = pa.Table.from_pylist([row], schema=table.schema)
    few = f"id >= {first} AND id < {first + 5}"
    operations = [
        lambda: table.upsert(rows),
        lambda: table.update({name: value}, where=few),
        lambda: table.delete(f"id = {key} AND {name} = {value}"),
        lambda: table.delete(keys=pa.table({"id": [key]})),
        lambda: table.overwrite(rows, where=f"id = {key}"),
        lambda: changes(rows),
        lambda: table.compact(retry_timeout_s=5),
        lambda: table.build_deletion_vectors(),
        lambda: table.analyze(),
    ]
    try:
        drawn.choice(operations)()
    except (
        CommitConflict, InvalidPredicate, SchemaMismatch, UnknownColumn, UnsupportedOperation,
    ):
        pass
"""


@pytest.mark.skipif(not IS_DEEP, reason="twenty seconds: in the deep run")
@pytest.mark.parametrize("seed", range(3))
def test_every_operation_beside_changes_of_columns(seed: int, tmp_path: Path) -> None:
    """Every value of column cN is N in every version, and a key is there once."""
    uri, drawn = str(tmp_path / "t"), random.Random(seed)
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("c1", pa.int64())])
    given = {"column_names": drawn.choice(["user", "tag"]), "checkpoint_interval": "4"}
    table = rs.create_table(uri, schema, key=["id"], properties=given)
    writers = [
        subprocess.Popen([sys.executable, "-c", EVERY_OPERATION, uri, str(10 * seed + number)])
        for number in range(1, 4)
    ]
    number = 2
    while any(writer.poll() is None for writer in writers):
        time.sleep(drawn.random() / 4)
        table.refresh()
        names = [name for name in table.schema.names if name != "id"]
        narrow = [field.name for field in table.schema if field.type == pa.int32()]
        with suppress(CommitConflict), table.alter() as change:
            type_ = drawn.choice(["int32", "int64"])
            change.add_column(f"c{number}", type_, default=number, after=drawn.choice(["id", None]))
            number += 1
            if narrow:
                change.widen_column(narrow[0], "int64")
            if len(names) > 2:
                change.drop_column(drawn.choice(names))
    assert [writer.wait(timeout=120) for writer in writers] == [0, 0, 0]
    for version in range(rs.open_table(uri).version + 1):
        rows = rs.open_table(uri, version=version).to_arrow()
        assert len(rows["id"].unique()) == rows.num_rows
        for name in set(rows.column_names) - {"id"}:
            values = set(rows[name].to_pylist())
            assert values <= {int(name[1:])}, (version, name)
