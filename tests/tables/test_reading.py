"""Rows of a table as callers ask for them, its files, and how tables and scans are shown."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import rowsieve
from rowsieve.errors import EvaluationError, InvalidInput
from rowsieve.shown import MAX_COLUMNS, printable, size_text
from tests.small_tables import appended, fresh_uri, keyed

PAIRS: dict[str, list[Any]] = {"k": [3, 1, 2], "v": [30, None, 20]}


def test_len_and_count_are_the_rows_of_the_newest_version() -> None:
    table = keyed(PAIRS, {"k": [3, 4], "v": [1, 1]})
    assert (len(table), table.count(), table.count("v = 1")) == (4, 4, 2)
    rowsieve.open_table(table.uri).delete("k = 1")
    assert len(table) == 3
    assert len(rowsieve.open_table(table.uri, version=0)) == 0


def test_a_table_without_rows_is_true() -> None:
    assert bool(keyed()) is True


def test_head_gives_the_first_rows_by_key() -> None:
    table = keyed(PAIRS)
    assert table.head(2)["k"].to_pylist() == [1, 2]
    assert table.head()["k"].to_pylist() == [1, 2, 3]
    assert table.head(0).num_rows == 0
    assert appended(PAIRS).head(2).num_rows == 2
    with pytest.raises(InvalidInput, match="limit must not be negative"):
        table.head(-1)


def test_rows_come_as_arrow_pandas_and_polars() -> None:
    table = keyed(PAIRS)
    assert table.to_arrow("k > 1", ["k"])["k"].to_pylist() == [2, 3]
    pandas = table.to_pandas("v IS NOT NULL")
    assert isinstance(pandas, pd.DataFrame)
    assert pandas.v.to_list() == [20, 30]
    polars = table.to_polars(columns={"twice": "v * 2"})
    assert isinstance(polars, pl.DataFrame)
    assert polars["twice"].to_list() == [None, 40, 60]


def test_a_lazy_frame_applies_filters_that_we_cannot_read() -> None:
    table = keyed({"k": list(range(100)), "v": list(range(100))})
    odd = pl.col("v").map_batches(lambda v: v % 7 == 3, return_dtype=pl.Boolean)
    frame = table.scan_polars()
    assert frame.filter(odd).select("k").collect()["k"].to_list() == list(range(3, 100, 7))
    assert frame.filter(odd & (pl.col("k") < 20)).collect()["k"].to_list() == [3, 10, 17]
    assert frame.head(10).filter(pl.col("k") > 5).collect().height == 4
    assert frame.select(pl.len()).collect().item() == 100
    assert frame.filter(pl.col("k") < 0).collect().schema == frame.collect_schema()


def test_a_lazy_frame_stays_at_its_version() -> None:
    table = keyed(PAIRS)
    frame = table.scan_polars()
    table.delete("TRUE")
    assert frame.collect().height == 3
    assert table.scan_polars(version=0).collect().height == 0


def test_files_are_all_that_a_version_reads() -> None:
    in_files = {"inline_bytes": 0}
    table = keyed(PAIRS, {"k": [3], "v": [1]}, properties=in_files)
    table.delete(keys=pa.table({"k": [1]}))
    found = table.files()
    assert sorted(found["kind"].to_pylist()) == ["data", "data", "deletes"]
    assert all(table.handle.store.exists(path) for path in found["path"].to_pylist())
    assert sum(found["size_bytes"].to_pylist()) == table.detail()["size_bytes"]
    plain = appended(PAIRS, properties=in_files)
    plain.delete("k = 1")
    assert plain.files()["kind"].to_pylist() == ["data", "vector"]


def test_the_repr_of_a_table_describes_it() -> None:
    table = keyed(PAIRS)
    shown = repr(table)
    for said in (table.uri, "version: 1, ", "key: k", "3 rows in 1 parts", "k  int64 NOT NULL"):
        assert said in shown


def test_the_repr_of_a_table_has_the_comments_of_columns() -> None:
    table = keyed(PAIRS)
    with table.alter() as change:
        change.set_comment("v", "what is\nmeasured <b>")
    assert "v  int64  -- what is\\nmeasured <b>" in repr(table)
    assert "int64  -- what is\\nmeasured &lt;b&gt;" in table._repr_html_()
    assert repr(table).count("--") == 1


def test_the_repr_of_a_scan_describes_it() -> None:
    table = keyed(PAIRS, {"k": [30], "v": [1]})
    shown = repr(table.scan("k = 30", ["v"], limit=5))
    for said in (table.uri, '"k" = 30', "1 of 2 parts to read", "limit: 5 rows", "v  int64"):
        assert said in shown
    assert "where: all rows" in repr(table.scan())


def test_html_escapes_foreign_text() -> None:
    name = "<script>alert(1)</script>&\x1b[2J"
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), pa.field(name, pa.string())])
    table = rowsieve.create_table(fresh_uri(), schema, key=["k"])
    for shown in (table._repr_html_(), table.scan()._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;alert(1)&lt;/script&gt;&amp;\\x1b[2J" in shown
    assert "\x1b" not in repr(table)


def test_many_columns_are_counted_rather_than_shown() -> None:
    schema = pa.schema([(f"c{i}", pa.int8()) for i in range(MAX_COLUMNS + 1000)])
    table = rowsieve.create_table(fresh_uri(), schema)
    assert "and 1,000 more" in repr(table)
    assert "and 1,000 more" in table._repr_html_()
    assert len(repr(table).splitlines()) < MAX_COLUMNS + 10


def test_sizes_and_escapes() -> None:
    assert [size_text(size) for size in (0, 999, 1000, 1234567)] == [
        "0 B",
        "999 B",
        "1.0 KB",
        "1.2 MB",
    ]
    assert printable("a\tä\n\u202e") == "a\\tä\\n\\u202e"


@pytest.mark.parametrize("pruning", ["on", "soft", "off"])
def test_errors_of_computed_columns_count_wherever_their_row_does(pruning: Any) -> None:
    table = keyed({"k": [1, 2], "v": [0, 1]}, {"k": [11], "v": [10]})
    for where, fails in ((None, True), ("k = 1", True), ("v > 0", False), ("k > 5", False)):
        scan = table.scan(where, {"q": "10 / v"}, pruning=pruning)
        for read in (scan.count, scan.to_arrow):
            if fails:
                with pytest.raises(EvaluationError):
                    read()
            else:
                read()
    assert table.scan("v > 0", {"q": "10 / v"}, pruning=pruning).count() == 2
