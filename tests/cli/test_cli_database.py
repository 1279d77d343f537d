"""Commands on the tables of a database: `rowsieve --database`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from tests.cli.test_cli import run, run_json, run_rows


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3]}), path)
    return path


def test_commands_take_tables_of_a_database(tmp_path: Path, rows: Path) -> None:
    shop = tmp_path / "shop"
    run("--database", shop, "create", "orders", rows, "--key", "id")
    run("--database", shop, "create", "sales.lines", rows, "--key", "id")
    run("--database", shop, "delete", "orders", "id = 2")
    run("--database", shop, "upsert", "sales.lines", rows)
    assert run_json("--database", shop, "tables") == ["orders", "sales.lines"]
    history = run_json("--database", shop, "history", "orders")
    assert [each["operation"] for each in history] == ["delete", "create"]
    joined = "SELECT count(*) AS n FROM orders o JOIN sales.lines l ON o.id = l.id"
    assert run_rows("--database", shop, "query", joined) == [{"n": 2}]
    assert run_rows("--database", shop, "sql", joined) == [{"n": 2}]
    (called,) = run_rows("--database", shop, "call", "CALL system.compact('default', 'orders')")
    assert called["version"] == 2
    run("--database", shop, "branch", "orders", "audit")
    run("--database", shop, "--ref", "audit", "delete", "orders", "id = 1")
    assert rs.Database(shop).open_table("orders@audit").count() == 1
    run("--database", shop, "fast-forward", "orders", "audit")
    run("--database", shop, "drop-ref", "orders", "audit")
    assert rs.Database(shop).open_table("orders").count() == 1
    run("--database", shop, "rename", "orders", "sales.orders")
    run("--database", shop, "drop", "sales.lines")
    assert run_json("--database", shop, "tables") == ["sales.orders"]
    assert rs.Database(shop).tables() == ["sales.orders"]


def test_wrong_use_of_a_database_is_refused(tmp_path: Path, rows: Path) -> None:
    shop = tmp_path / "shop"
    both = run("--database", shop, "--catalog", shop, "tables", code=2)
    assert "not both" in both
    run("--database", shop, "create", "orders", rows)
    missing = run("--database", shop, "history", "order", code=3)
    assert "has no table 'order'" in missing
    assert "nothing is there" in run("--database", shop, "register", "t", tmp_path / "t", code=3)


def test_a_table_moves_in_and_out(tmp_path: Path, rows: Path) -> None:
    shop = tmp_path / "shop"
    run("--database", shop, "create", "orders", rows)
    run("create", tmp_path / "alone", rows)
    run("--database", shop, "register", "t", tmp_path / "alone")
    assert run("--database", shop, "tables").split() == ["orders", "t"]
    moved = run_json("--database", shop, "move-out", "t")
    assert (moved["uri"], moved["version"]) == (f"file://{tmp_path}/alone", 2)
    assert run("--database", shop, "move-out", "orders").startswith("moved out orders: file://")
    assert rs.Database(shop).tables() == []


def test_a_database_wins_over_a_catalog_of_the_environment(
    tmp_path: Path, rows: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROWSIEVE_CATALOG", str(tmp_path / "lake"))
    run("--database", tmp_path / "shop", "create", "orders", rows)
    assert rs.Database(tmp_path / "shop").tables() == ["orders"]
