"""A table as a data frame: its Arrow stream, some of its rows, a summary of its columns."""

from __future__ import annotations

import copy
import datetime
import math
import random
import uuid
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import InvalidInput
from rowsieve.frame_text import Rows, frame_html, frame_text
from tests.small_tables import appended, fresh_uri, keyed, kv, pairs


def test_other_libraries_take_a_table_as_it_is() -> None:
    people = keyed({"k": [1, 2], "v": [10, 20]}, {"k": [2], "v": [21]})
    rows = [(1, 10), (2, 21)]
    with duckdb.connect() as connection:
        assert connection.execute("FROM people ORDER BY k").fetchall() == rows
    assert sorted(pl.DataFrame(people).rows()) == rows
    assert sorted(row["v"] for row in pa.table(people).to_pylist()) == [10, 21]
    assert sorted(pd.DataFrame.from_arrow(people)["v"]) == [10, 21]
    other = rs.create_table(fresh_uri(), people, key=["k"])
    other.upsert(people)
    assert pairs(other) == rows
    with people.transaction() as transaction:
        transaction.upsert(kv((3, 30)))
        assert pa.table(transaction).num_rows == 3


@pytest.mark.parametrize("count", [0, 1, 3, 7, 100])
def test_head_and_tail_are_the_ends_in_key_order(count: int) -> None:
    table, model = keyed(), dict[int, int]()
    draws = random.Random(count)
    for _ in range(5):
        changes = {k: draws.randrange(9) for k in draws.sample(range(40), 6)}
        table.upsert(kv(*changes.items()))
        model |= changes
    table.delete("v = 3")
    former = rs.configure(rs.Config(split_bytes=1))
    rows = sorted((k, v) for k, v in model.items() if v != 3)
    try:
        tail = [tuple(row.values()) for row in table.tail(count).to_pylist()]
    finally:
        rs.configure(former)
    assert tail == rows[max(0, len(rows) - count) :]
    assert [tuple(row.values()) for row in table.head(count).to_pylist()] == rows[:count]


def test_tail_reads_the_last_splits_only() -> None:
    table = keyed(*({"k": [10 * i, 10 * i + 1], "v": [i, i]} for i in range(6)))
    former = rs.configure(rs.Config(split_bytes=1))
    reports: list[Any] = []

    class Kept:
        def report(self, report: Any) -> None:
            reports.append(report)

    table.report_to(Kept())
    try:
        assert table.tail(3).to_pylist() == [
            {"k": 41, "v": 4},
            {"k": 50, "v": 5},
            {"k": 51, "v": 5},
        ]
    finally:
        rs.configure(former)
    assert sum(each.metrics.rows_returned for each in reports) == 4


def test_a_sample_has_distinct_rows_each_as_likely() -> None:
    table = keyed(*({"k": range(100 * i, 100 * i + 100), "v": [0] * 100} for i in range(3)))
    rows = table.sample(20, seed=7)
    keys = rows["k"].to_pylist()
    assert len(set(keys)) == 20
    assert rows == table.sample(20, seed=7)
    assert table.sample(20, seed=8)["k"].to_pylist() != keys
    assert sorted(table.sample(1_000)["k"].to_pylist()) == list(range(300))
    assert set(table.sample(50, where="k < 10")["k"].to_pylist()) == set(range(10))
    assert table.sample(0).num_rows == 0
    drawn = [k for seed in range(60) for k in table.sample(10, seed=seed)["k"].to_pylist()]
    thirds = [sum(low <= k < low + 100 for k in drawn) for low in (0, 100, 200)]
    assert all(150 < each < 250 for each in thirds)
    with pytest.raises(InvalidInput, match="count must not be negative"):
        table.sample(-1)
    with pytest.raises(InvalidInput, match="seed must not be negative"):
        table.sample(1, seed=-1)


def test_show_prints_rows_as_a_frame(capsys: pytest.CaptureFixture[str]) -> None:
    table = keyed({"k": [1, 2], "v": [10, None]})
    table.show(where="k > 0", columns=["v", "k"])
    assert capsys.readouterr().out == "    v      k\nint64  int64\n   10      1\n NULL      2\n"


def test_a_frame_is_cut_at_its_width_and_escapes() -> None:
    rows = pa.table({"a\x1b": ["x" * 50, "NULL"], "<b>": ["\n", "日本"], "c": [[1], None]})
    lines = frame_text(rows, "title", width=50).split("\n")
    assert lines[0] == "title"
    assert lines[-1] == "… and 1 more columns: c"
    assert all("\x1b" not in line for line in lines)
    assert lines[3].startswith("x" * 35 + "…  ")
    text = frame_html(rows, "<t>")
    assert "<caption>&lt;t&gt;</caption>" in text
    assert "&lt;b&gt;" in text
    assert "<b>" not in text
    assert frame_text(pa.table({})) == "no columns"


def test_a_summary_is_from_statistics_and_exact_where_asked() -> None:
    columns = {
        "k": [1, 2, 3],
        "f": [1.0, math.nan, None],
        "t": ["b", "a", None],
        "l": [[1], [], None],
    }
    table = rs.create_table(fresh_uri(), pa.table(columns), key=["k"])
    whole = table.summarize()
    assert isinstance(whole, Rows)
    by_name = {row["column"]: row for row in whole.to_arrow().to_pylist()}
    assert by_name["k"] == {
        "column": "k",
        "type": "int64",
        "rows": 3,
        "nulls": 0,
        "lower": "1",
        "upper": "3",
        "exact": True,
    }
    table.delete(keys={"k": [3]})
    table.upsert(pa.table({**columns, "f": [4.0, 5.0, 6.0]}).slice(0, 1))
    loose = {row["column"]: row for row in table.summarize().to_arrow().to_pylist()}
    assert (loose["k"]["rows"] > 2, loose["k"]["exact"]) == (True, False)
    tight = {row["column"]: row for row in table.summarize(exact=True).to_arrow().to_pylist()}
    assert (tight["k"]["rows"], tight["k"]["upper"], tight["k"]["exact"]) == (2, "2", True)
    assert (tight["f"]["lower"], tight["f"]["upper"], tight["f"]["nulls"]) == ("4.0", "nan", 0)
    assert (tight["t"]["lower"], tight["t"]["upper"], tight["t"]["exact"]) == ("a", "b", True)
    assert (tight["l"]["rows"], tight["l"]["nulls"], tight["l"]["exact"]) == (2, 0, False)
    assert repr(table.summarize()).startswith("column  type")
    assert "<table>" in table.summarize()._repr_html_()
    assert len(appended().summarize(exact=True)) == 2


def test_dir_of_the_package_is_what_is_public() -> None:
    assert dir(rs) == sorted(rs.__all__)


def test_history_prints_as_a_table(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "h", pa.table({"id": [1]}), ["id"])
    for number in range(22):
        table.upsert(pa.table({"id": [number]}), metadata={"<b>": str(number)})
    text = repr(table.history())
    assert text.splitlines()[0] == "23 commits, newest first"
    assert text.splitlines()[1].split()[:3] == ["version", "timestamp", "operation"]
    assert text.splitlines()[3].split()[0] == "22"
    assert text.endswith("… and 3 older commits")
    shown = table.history()._repr_html_()
    assert "<td>upsert</td>" in shown
    assert "<b>=21" not in shown
    assert table.history(2).to_arrow().column("rows_written").to_pylist() == [1, 1]


def test_metrics_are_a_table_in_a_notebook(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "m", pa.table({"id": [1, 2]}), ["id"])
    scan = table.scan("id > 1")
    assert scan.to_arrow().num_rows == 1
    assert "<th scope='row'>rows_returned</th><td>1</td>" in scan.metrics._repr_html_()
    assert "audit" not in scan.metrics._repr_html_()
    table.upsert(pa.table({"id": [3]}))
    assert "parts_written" in table.writer_metrics._repr_html_()


def test_values_of_our_own_types_are_shown_as_people_write_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    number = uuid.UUID(int=7)
    table = rs.create_table(
        fresh_uri(),
        pa.table(
            {
                "u": pa.array([number.bytes, None], pa.uuid()),
                "i": pa.array([pa.MonthDayNano((1, 2, 3_000_000_000)), None]),
                "d": [datetime.timedelta(days=1), None],
            }
        ),
    )
    with table.alter() as alteration:
        alteration.sql("ADD COLUMN n numeric")
    table.append(pa.table({"n": ["1.50"]}))
    table.show()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["uuid", "interval", "interval", "numeric"]
    assert lines[2].split("  ")[:3] == [str(number), "1 months 2 days 3 seconds", "86400 seconds"]
    assert lines[4].split() == ["NULL", "NULL", "NULL", "1.5"]
    assert "<td>1 months 2 days 3 seconds</td>" in table.head()._repr_html_()


def test_a_few_rows_print_like_a_data_frame_and_are_used_like_a_table() -> None:
    """Markup in names and values is text in a notebook."""
    markup = "<script>alert(1)</script>"
    data = pa.table({"k": [1, 2, 3], markup: [markup, None, "c"]})
    table = rs.create_table(fresh_uri(), data, ["k"])
    for rows in (table.head(2), table.tail(3), table.sample(3, seed=1)):
        assert repr(rows).split()[:2] == ["k", markup]
        html = rows._repr_html_()
        assert "<script" not in html
        assert html.count("&lt;script&gt;") == 2
        assert rows[markup].to_pylist()[0] == markup
        assert rows.num_rows == len(rows) == len(rows.to_pylist())
        assert rows == rows.to_arrow() == pa.table(rows)
        assert copy.deepcopy(rows) == rows
        assert {"num_rows", "to_arrow"} <= set(dir(rows))
    assert table.head(1) != table.head(2)
    with pytest.raises(AttributeError, match="nothing"):
        _ = table.head().nothing
