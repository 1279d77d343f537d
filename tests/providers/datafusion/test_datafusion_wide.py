"""Changes of tables with many columns plan only the columns that they assign."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.providers.datafusion import SessionContext
from rowsieve.providers.datafusion.changes.statement_queries import StatementQueries

COLUMNS = 30
MERGE = "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN"


def rows(*ids: int) -> pa.Table:
    others = {f"c{n}": [float(each + n) for each in ids] for n in range(COLUMNS)}
    return pa.table({"id": list(ids), **others})


@pytest.fixture(params=[["id"], None], ids=["key", "no key"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> rs.Table:
    """A table of several parts, with hidden rows and a column that older parts lack."""
    made = rs.create_table(tmp_path / "t", rows(1, 2, 3, 4), key=request.param)
    made.delete("id = 2")
    with made.alter() as alter:
        alter.sql("ADD COLUMN late bigint")
    (made.upsert if made.key else made.append)(rows(9, 8).append_column("late", [[90, 80]]))
    return made


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of columns of the queries that run."""
    counts: list[int] = []
    run = StatementQueries.run

    def counted(queries: StatementQueries, frame: Any) -> pa.Table:
        counts.append(len(frame.schema()))
        return run(queries, frame)

    monkeypatch.setattr(StatementQueries, "run", counted)
    return counts


def changed(table: rs.Table, statement: str) -> dict[int, dict[str, Any]]:
    """Run a statement; return the rows by id."""
    context = SessionContext()
    context.register_table("t", table)
    source = pa.table({"id": [1, 8, 8], "v": [0.5, 1.5, 1.5]})
    context.register_record_batches("s", [source.slice(0, 2).to_batches()])
    context.register_record_batches("twice", [source.to_batches()])
    context.sql(statement)
    table.refresh()
    return {row["id"]: row for row in table.scan().to_arrow().to_pylist()}


@pytest.mark.parametrize(
    ("statement", "ids"),
    [
        ("UPDATE t SET c3 = c4 + 1, late = id WHERE id IN (1, 9)", (1, 9)),
        ("UPDATE t SET c3 = c4 + 1, late = id WHERE id IN (SELECT id FROM s)", (1, 8)),
        ("UPDATE t SET late = id, c3 = c4 + 1", (1, 3, 4, 8, 9)),
        (f"{MERGE} UPDATE SET c3 = t.c4 + 1, late = t.id", (1, 8)),
    ],
)
def test_an_update_plans_only_what_it_assigns(
    statement: str, ids: tuple[int, ...], table: rs.Table, planned: list[int]
) -> None:
    before = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    after = changed(table, statement)
    for number in ids:
        before[number] |= {"c3": before[number]["c4"] + 1, "late": number}
    assert after == before
    assert max(planned) <= 3


KEYS = [
    pa.array([1.5, float("nan"), -0.0, float("inf")]),
    pa.array([1.5, float("nan"), -0.0], pa.float32()),
    pa.array(["a", "", "é", "z\x00", "日本"]),
    pa.array([b"a", b"", b"\xff"]),
    pa.array([True, False]),
    pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    pa.array([0, 1_585_445_400_000_000], pa.timestamp("us", "Europe/Berlin")),
    pa.array([Decimal("1.10"), Decimal("-0.01")], pa.decimal128(10, 2)),
    pa.array([0, 2**64 - 1, 2**63], pa.uint64()),
    pa.array([-128, 127], pa.int8()),
    pa.array([dt.time(0), dt.time(23, 59, 59, 999_999)], pa.time64("us")),
]


@pytest.mark.parametrize("keys", KEYS, ids=lambda keys: str(keys.type))
@pytest.mark.parametrize("names", [["k"], ["id", "k"]])
@pytest.mark.parametrize(
    "statement", ["UPDATE t SET v = v + 10 WHERE id <> 1", f"{MERGE} UPDATE SET v = t.v + 10"]
)
def test_rows_of_any_key_keep_their_other_columns(
    keys: pa.Array, names: list[str], statement: str, tmp_path: Path
) -> None:
    ids = list(range(len(keys)))
    others = {"st": [{"a": n, "b": [n, None]} for n in ids], "l": [[n] if n else None for n in ids]}
    data = pa.table({"k": keys, "id": ids, "v": [float(n) for n in ids], **others})
    table = rs.create_table(tmp_path / "t", data, key=names)
    table.upsert(data.slice(1))
    wanted = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    for number in (1, 8) if statement.startswith(MERGE) else (n for n in ids if n != 1):
        if number in wanted:
            wanted[number]["v"] += 10
    assert repr(sorted(changed(table, statement).items())) == repr(sorted(wanted.items()))


def test_rows_that_a_merge_changes_twice_are_a_key_violation(table: rs.Table) -> None:
    statement = "MERGE INTO t USING twice s ON t.id = s.id WHEN MATCHED THEN UPDATE SET c1 = s.v"
    with pytest.raises(rs.errors.KeyViolation, match="row"):
        changed(table, statement)


def test_the_query_of_an_insert_runs_once(table: rs.Table, planned: list[int]) -> None:
    assert changed(table, "INSERT INTO t (id, c0) SELECT id + 100, v FROM s")[108]["c0"] == 1.5
    assert planned == [2]
