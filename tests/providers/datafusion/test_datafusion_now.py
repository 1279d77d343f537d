"""Conditions on the current time leave only recent parts of a table, and lose no row."""

from __future__ import annotations

import datetime
import itertools
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from tests.profiles import some

FILES = 300
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("day", pa.date32()),
    ]
)
RECENT = [
    "at > now() - interval '30 days'",
    "at > now() - interval '30 days' AND at <= now()",
    "at > current_timestamp - interval '30 days'",
    "at > current_timestamp() - interval '30 days'",
    "local > now() - interval '30 days'",
    "day > current_date - interval '30 days'",
    "day > current_date() - interval '30 days'",
    "day > today() - interval '30 days'",
    "at >= current_date - interval '30 days'",
    "at >= current_date - 30",
    "day > current_date() - 30",
    "day + 30 > current_date",
    "at > date_trunc('day', now()) - interval '30 days'",
    "at + interval '30 days' > now()",
    "now() - at < interval '720 hours'",
    "interval '720 hours' >= current_timestamp - local",
    "at - now() > interval '-720 hours'",
    "EXISTS (SELECT 1 WHERE t.at > now() - interval '30 days')",
]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    """300 files of one row: the first of an hour ago, and each next 61 days older."""
    folder = tmp_path_factory.mktemp("now")
    now = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    for number in range(FILES):
        at = now - datetime.timedelta(days=61 * number)
        row = {"id": number, "at": at, "local": at.replace(tzinfo=None), "day": at.date()}
        pq.write_table(pa.Table.from_pylist([row], schema=SCHEMA), folder / f"{number:03}.parquet")
    return rs.from_parquet(str(folder / "*.parquet"), str(folder / "t"))


def session(table: rs.Table) -> SessionContext:
    made = SessionContext()
    made.register_table("t", table)
    return made


def parts_read(context: SessionContext, query: str) -> str:
    rows = context.sql(f"EXPLAIN {query}").to_pylist()
    return str(next(row["plan"] for row in rows if row["plan_type"] == "rowsieve"))


@pytest.mark.parametrize("where", RECENT)
def test_one_of_300_files_is_recent(where: str, files: rs.Table) -> None:
    context, memory = session(files), datafusion.SessionContext()
    memory.from_arrow(files.scan().to_arrow().select(SCHEMA.names), "t")
    query = f"SELECT id FROM t WHERE {where}"
    assert f"leave 1 of {FILES} parts" in parts_read(context, query)
    assert context.sql(query).to_pylist() == memory.sql(query).to_pylist() == [{"id": 0}]


def test_views_and_prepared_statements_read_recent_files(files: rs.Table) -> None:
    context = session(files)
    context.sql(f"CREATE VIEW recent AS SELECT * FROM t WHERE {RECENT[0]}")
    context.sql(f"PREPARE old AS SELECT count(*) AS n FROM t WHERE NOT ({RECENT[0]})")
    assert f"leave 1 of {FILES} parts" in parts_read(context, "SELECT id FROM recent")
    assert context.sql("SELECT id FROM recent").to_pylist() == [{"id": 0}]
    assert context.sql("EXECUTE old").to_pylist() == [{"n": FILES - 1}]


@pytest.mark.parametrize(
    ("where", "key"), some([*itertools.product(RECENT[:5], (["id"], None))], 3)
)
def test_changes_by_the_current_time(where: str, key: Any, files: rs.Table, tmp_path: Path) -> None:
    rows = files.scan().to_arrow().select(SCHEMA.names).slice(0, 4)
    table = rs.create_table(tmp_path / "t", rows, key=key)
    context = session(table)
    context.sql(f"UPDATE t SET local = NULL WHERE NOT ({where})")
    assert context.sql(f"DELETE FROM t WHERE {where}").to_pylist() == [{"count": 1}]
    left = context.sql("SELECT id, local FROM t ORDER BY id").to_pylist()
    assert left == [{"id": number, "local": None} for number in (1, 2, 3)]
