"""DuckDB reads what is published, by its extensions for Iceberg and Delta.

They come as packages for one release of DuckDB, so they run in an environment of their own.
"""

from __future__ import annotations

import json
import random
import subprocess
import venv
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import rowsieve as rs
from tests import profiles

pytestmark = pytest.mark.skipif(
    not profiles.IS_DEEP, reason="DuckDB's extensions are installed in the deep profile"
)
RELEASE = "1.5.5"
SHOWN = 'SELECT * REPLACE (CAST(epoch_us("at") AS VARCHAR) AS "at")'  # as the judge shows them
PACKAGES = ("duckdb", *(f"duckdb-extension-{x}" for x in ("httpfs", "avro", "iceberg", "delta")))
TABLES = 24
SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("amount", pa.decimal128(9, 2)),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("score", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.int32()), ("y", pa.string())])),
    ]
)


def rows_of(ids: list[int], draw: random.Random) -> pa.Table:
    def some(value: Any) -> Any:
        return draw.choice([None, value, value])

    rows = [
        {
            "id": number,
            "name": some(f"é{draw.randrange(5)}"),
            "amount": some(Decimal(draw.randrange(-999, 999)) / 100),
            "day": some(date(1960 + draw.randrange(90), 2, 3)),
            "at": some(datetime(1960 + draw.randrange(90), 5, 6, tzinfo=UTC)),
            "score": some(draw.choice([0.5, -0.25, 1e300])),
            "tags": some([draw.choice(["a", "b"]), None]),
            "place": some({"x": draw.randrange(9), "y": "z"}),
        }
        for number in ids
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def published(folder: Path, seed: int) -> list[str]:
    """Change a table at random and publish it as both; the rows as DuckDB shows them in memory."""
    draw = random.Random(seed)
    with_key = seed % 3 > 0
    properties = {"inline_bytes": "16384"} if seed % 2 else {}
    table = rs.create_table(folder, SCHEMA, key=["id"] if with_key else None, properties=properties)
    for step in range(10):
        match draw.choice(["write", "write", "write", "delete", "update", "compact", "publish"]):
            case "delete":
                table.delete(f"id % 5 = {draw.randrange(5)}")
            case "update":
                table.update({"name": f"'u{step}'"}, where=f"id < {draw.randrange(40)}")
            case "compact":
                table.compact()
            case "publish":
                table.publish("iceberg")
                table.publish("delta")
            case _:
                ids = draw.sample(range(60), draw.randrange(1, 20))
                (table.upsert if with_key else table.append)(rows_of(ids, draw))
    table.publish("iceberg")
    table.publish("delta")
    with duckdb.connect() as connection:
        connection.register("content", table.scan().to_arrow())
        return sorted(map(repr, connection.execute(f"{SHOWN} FROM content").fetchall()))


@pytest.fixture(scope="module")
def duckdb_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment with DuckDB's extensions."""
    folder = tmp_path_factory.mktemp("duckdb")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    wanted = [f"{name}=={RELEASE}" for name in PACKAGES]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    return python


def test_duckdb_reads_the_rows_of_each_publication(duckdb_python: Path, tmp_path: Path) -> None:
    expected = {}
    for seed in range(TABLES):
        folder = tmp_path / f"t{seed}"
        expected[str(folder)] = published(folder, seed)
    script = Path(__file__).with_name("duckdb_judge.py")
    command = [str(duckdb_python), str(script), *expected]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == 2 * TABLES
    for folder, function, rows in answers:
        assert rows == expected[folder], (folder, function)
