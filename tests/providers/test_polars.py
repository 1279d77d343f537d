"""A table as a LazyFrame: the rows of Polars' own frame, whatever Polars pushes into the scan."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import polars as pl
import polars.selectors as cs
import pyarrow as pa
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidInput, NotFound
from rowsieve.metrics import ScanReport
from rowsieve.metrics.reports import Report
from tests.small_tables import fresh_uri, keyed

NAN = float("nan")
ROWS = 200
NAMES = ["*", "^s.*$", "s", "a.b", "A", "a", "", "ü\n"]
"""Column names that Polars reads as wildcards or patterns where it expects an expression."""


@functools.cache
def odd_rows() -> pa.Table:
    keys = range(ROWS)
    columns: dict[str, Any] = {name: [k * n for k in keys] for n, name in enumerate(NAMES, 1)}
    floats = [NAN if k % 7 == 0 else None if k % 5 == 0 else k / 2 for k in keys]
    return pa.table({"k": list(keys), "f": floats, **columns})


@functools.cache
def odd_table() -> Table:
    """The rows of `odd_rows` in four parts."""
    rows = odd_rows()
    table = rowsieve.create_table(fresh_uri(), rows.schema, key=["k"])
    for start in range(0, ROWS, 50):
        table.upsert(rows.slice(start, 50))
    return table


def column(name: str) -> pl.Expr:
    """The column of this name, which may look like a pattern."""
    return cs.by_name(name).as_expr()


Query = Callable[[pl.LazyFrame], pl.LazyFrame]
QUERIES: dict[str, Query] = {
    "all columns": lambda f: f.sort("k"),
    "each name alone": lambda f: pl.concat(
        [f.select(k="k", v=column(name)).sort("k") for name in NAMES]
    ),
    "a filter by each name": lambda f: pl.concat(
        [f.filter(column(name) > 190 * n).select("k") for n, name in enumerate(NAMES, 1)]
    ).sort("k"),
    "a column that the result drops": lambda f: f.filter(column("*") > 190).select("k").sort("k"),
    "only a count": lambda f: f.select(pl.len()),
    "a count of a filter": lambda f: f.filter(column("^s.*$") > 100).select(pl.len()),
    "a row number": lambda f: f.with_row_index().filter(pl.col("index") < 5).select("index"),
    "a count of row numbers": lambda f: f.with_row_index().select(pl.len()),
    "constants": lambda f: f.select(pl.lit(1), pl.len().alias("n")),
    "a limit below a filter": lambda f: f.sort("k").head(90).filter(pl.col("k") > 80),
    "a count of a limit": lambda f: f.head(7).select(pl.len()),
    "a count of a limit above a filter": lambda f: (
        f.filter(pl.col("k") > 150).head(7).select(pl.len())
    ),
    "no row": lambda f: f.limit(0),
    "a slice from the end": lambda f: f.sort("k").slice(-9, 4),
    "the greatest": lambda f: f.top_k(3, by="k").sort("k"),
    "a self join": lambda f: f.join(f.filter(pl.col("k") < 9), on="k").sort("k"),
    "a semi join": lambda f: f.join(f.filter(pl.col("k") < 9), on="k", how="semi").sort("k"),
    "an anti join": lambda f: f.join(f.filter(pl.col("k") > 9), on="k", how="anti").sort("k"),
    "NaN is the greatest": lambda f: f.filter(pl.col("f") > 1e300).select("k").sort("k"),
    "NaN equals NaN": lambda f: f.filter(pl.col("f").is_in([NAN, 3.0])).select("k").sort("k"),
    "a number above all": lambda f: f.filter(pl.col("k") < 10**30).select(pl.len()),
    "a group": lambda f: f.group_by(column("A") % 3).agg(pl.len(), pl.col("k").sum()).sort("A"),
    "a window": lambda f: f.filter(pl.col("k") == pl.col("k").max().over(column("A") % 3)).select(
        pl.col("k").sort()
    ),
    "a condition that is a constant": lambda f: f.filter(pl.lit(None, pl.Boolean)).select("k"),
}


@pytest.mark.parametrize("engine", ["in-memory", "streaming"])
@pytest.mark.parametrize("query", [pytest.param(q, id=name) for name, q in QUERIES.items()])
def test_a_query_has_the_rows_that_polars_has_in_memory(query: Query, engine: Any) -> None:
    theirs = pl.DataFrame(odd_rows().to_pydict())
    expected = query(theirs.lazy()).collect(engine=engine)
    found = query(odd_table().scan_polars()).collect(engine=engine)
    assert found.schema == expected.schema
    assert found.equals(expected)


def test_a_frame_keeps_the_names_of_its_columns() -> None:
    assert odd_table().to_polars().columns == odd_rows().column_names


def test_a_lazy_frame_reads_a_table_or_a_place() -> None:
    table = keyed({"k": [1, 2], "v": [10, None]}, {"k": [2], "v": [3]})
    for source in (table, table.uri):
        assert sorted(rowsieve.scan_polars(source).collect().rows()) == [(1, 10), (2, 3)]
        older = rowsieve.scan_polars(source, version=1).collect()
        assert sorted(older.rows()) == [(1, 10), (2, None)]
    pinned = rowsieve.open_table(table.uri, version=1)
    assert sorted(rowsieve.scan_polars(pinned).collect().rows()) == [(1, 10), (2, None)]
    with pytest.raises(InvalidInput, match="a Table has its own storage_options"):
        rowsieve.scan_polars(table, storage_options={})
    with pytest.raises(InvalidInput, match=r"source is 7 .int., not a table, or its path or URI"):
        rowsieve.scan_polars(7)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        rowsieve.scan_polars(fresh_uri())


class Reads:
    """A reporter that keeps how many parts each scan read."""

    def __init__(self) -> None:
        self.parts: list[int] = []

    def report(self, report: Report) -> None:
        assert isinstance(report, ScanReport)
        self.parts.append(report.metrics.parts_read)


def test_polars_pushes_limits_and_filters_into_the_scan() -> None:
    table = keyed(*({"k": [10 * p + i for i in range(10)], "v": [0] * 10} for p in range(20)))
    reads = Reads()
    table.report_to(reads)
    frame = table.scan_polars()
    assert frame.head(3).collect().height == 3
    assert frame.filter(pl.col("k") == 55).select(pl.len()).collect().item() == 1
    assert reads.parts == [1, 1]


EARLY_STOPS = """
import sys, polars as pl, pyarrow as pa, rowsieve
table = rowsieve.create_table("memory:///early", pa.table({"k": range(300_000)}), key=["k"])
for start in (1, 2, 3):
    table.upsert(pa.table({"k": range(start * 300_000, (start + 1) * 300_000)}))
found = rowsieve.scan_polars(table).filter(pl.col("k") >= 0)
if sys.argv[1] == "limits":
    assert all(found.head(3).collect(engine="streaming").height == 3 for _ in range(6))
elif sys.argv[1] == "unfinished":
    streams = [found.collect_batches(engine="streaming") for _ in range(6)]
    assert all(next(stream).height for stream in streams)
else:
    for _ in range(6):
        try:
            found.select(pl.col("k").cast(pl.Int8)).collect(engine="streaming")
        except pl.exceptions.PolarsError:
            pass
"""


@pytest.mark.parametrize("kind", ["limits", "unfinished", "failures"])
def test_an_interpreter_leaves_cleanly_after_reads_that_polars_stopped_early(kind: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", EARLY_STOPS, kind]
    done = subprocess.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
