"""The DataFusion route: what is pushed, what is counted, what is pinned, and how it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

import rowsieve as rs
from rowsieve.errors import CorruptData


def rows(ids: range, value: int = 0) -> pa.Table:
    return pa.table({"id": list(ids), "v": [value] * len(ids)}, schema=SCHEMA)


SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    table = rs.create_table(str(tmp_path / "t"), rows(range(10)), key=["id"])
    for start in (10, 20, 30):
        table.upsert(rows(range(start, start + 10)))
    return table


def ask(context: datafusion.SessionContext, query: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = context.sql(query).to_pylist()
    return found


def registered(table: rs.Table) -> datafusion.SessionContext:
    context = datafusion.SessionContext()
    context.register_table("t", table)
    return context


def test_a_pushed_filter_prunes_parts(table: rs.Table) -> None:
    plan = registered(table).sql("SELECT v FROM t WHERE id BETWEEN 12 AND 14").execution_plan()
    assert plan.partition_count == 1
    assert ask(registered(table), "SELECT count(*) AS n FROM t WHERE id BETWEEN 12 AND 14") == [
        {"n": 3}
    ]


def test_a_scan_without_parts_gives_an_empty_result(table: rs.Table) -> None:
    context = registered(table)
    assert ask(context, "SELECT * FROM t WHERE id = 99 ORDER BY v") == []
    assert ask(context, "SELECT count(*) AS n FROM t WHERE id = 99") == [{"n": 0}]


def test_counting_all_rows_opens_no_file(table: rs.Table) -> None:
    for file in Path(table.uri.removeprefix("file://")).glob("data/*"):
        file.unlink()
    assert ask(registered(table), "SELECT count(*) AS n FROM t") == [{"n": 40}]


def test_a_registered_table_stays_at_its_version_until_told(table: rs.Table) -> None:
    context = registered(table)
    other = rs.open_table(table.uri)
    other.delete("id < 10")
    assert ask(context, "SELECT count(*) AS n FROM t") == [{"n": 40}]
    assert table.scan().count() == 30
    assert ask(context, "SELECT count(*) AS n FROM t") == [{"n": 40}]
    table.refresh()
    assert ask(context, "SELECT count(*) AS n FROM t") == [{"n": 30}]
    table.delete("id < 20")
    assert ask(context, "SELECT count(*) AS n FROM t") == [{"n": 20}]


def test_a_scan_that_fails_leaves_its_error_on_the_table(table: rs.Table) -> None:
    (file, *_) = sorted(Path(table.uri.removeprefix("file://")).glob("data/*.parquet"))
    damaged = bytearray(file.read_bytes())
    damaged[-20] ^= 0xFF
    file.write_bytes(damaged)
    with pytest.raises(Exception, match="is damaged"):
        ask(registered(table), "SELECT sum(v) FROM t")
    assert isinstance(table.engine_error, CorruptData)


def test_it_can_be_read_in_no_other_way(table: rs.Table) -> None:
    from rowsieve.providers.datafusion.registered_table import ReadOptions, TableDataset

    with pytest.raises(FileNotFoundError):
        pads.Scanner.from_dataset(TableDataset(table, ReadOptions())).to_table()


def test_not_in_with_null_and_nan_follow_datafusion(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3, 4], "x": [float("nan"), 1.0, None, -0.0]})
    table = rs.create_table(str(tmp_path / "f"), data, key=["id"])
    context = registered(table)
    context.register_record_batches("m", [data.to_batches()])
    for where in (
        "x > 5",
        "x = 'NaN'",
        "x <> 1",
        "x NOT IN (1, NULL)",
        "id NOT IN (1, 2, 3, 9, NULL)",
        "x IN (0, 1, 2, 3, 5)",
        "x = 0",
        "NOT (x < 5)",
        "id = 1 OR x IS NULL",
    ):
        query = "SELECT id FROM {} WHERE " + where + " ORDER BY id"
        assert ask(context, query.format("t")) == ask(context, query.format("m")), where
