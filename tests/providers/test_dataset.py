"""A table as a pyarrow Dataset: what DuckDB, Polars and pyarrow read, and what they skip."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest

import rowsieve
from rowsieve import Table
from rowsieve.errors import InvalidInput, UnsupportedOperation
from tests.small_tables import fresh_uri

NAN = float("nan")
NESTED = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("s", pa.struct([pa.field("x", pa.int64()), pa.field("l", pa.list_(pa.int8()))])),
        pa.field("m", pa.map_(pa.string(), pa.struct([pa.field("y", pa.int64())]))),
    ]
)


@functools.cache
def shared() -> Table:
    """The table of the tests that only read."""
    return ten_parts()


def ten_parts() -> Table:
    """Keys 0 to 999, a hundred in each part; `f` is NaN or NULL here and there."""
    schema = pa.schema([("k", pa.int64()), ("f", pa.float64()), ("s", pa.string())])
    table = rowsieve.create_table(fresh_uri(), schema, key=["k"])
    for start in range(0, 1000, 100):
        keys = range(start, start + 100)
        table.upsert(
            pa.table(
                {
                    "k": list(keys),
                    "f": [NAN if k % 7 == 0 else None if k % 5 == 0 else k / 2 for k in keys],
                    "s": [None if k % 3 == 0 else f"{k}" for k in keys],
                },
                schema=schema,
            )
        )
    return table


def sql(query: str, dataset: Any) -> list[Any]:
    """The rows that DuckDB gives; the dataset is found by its name."""
    with duckdb.connect() as connection:
        connection.register("dataset", dataset)
        return connection.execute(query).fetchall()


def test_duckdb_reads_the_part_that_can_match_and_no_other() -> None:
    dataset = shared().to_dataset()
    assert sql("SELECT s FROM dataset WHERE k = 505", dataset) == [("505",)]
    assert (dataset.metrics.parts_read, dataset.metrics.parts_pruned) == (1, 9)
    assert sql("SELECT count(*) FROM dataset WHERE k IN (5, 6, 905)", dataset) == [(3,)]
    assert (dataset.metrics.parts_read, dataset.metrics.parts_pruned) == (2, 8)


def test_duckdb_reads_the_columns_of_a_query_and_no_other() -> None:
    dataset = shared().to_dataset()
    sql("SELECT max(k) FROM dataset", dataset)
    narrow = dataset.metrics.bytes_read
    sql("SELECT max(k), max(f), max(s) FROM dataset", dataset)
    assert 0 < 2 * narrow < dataset.metrics.bytes_read


def test_polars_reads_the_part_that_can_match_and_no_other() -> None:
    dataset = shared().to_dataset()
    found = pl.scan_pyarrow_dataset(dataset).filter(pl.col("k") == 505).select("s").collect()
    assert found["s"].to_list() == ["505"]
    assert (dataset.metrics.parts_read, dataset.metrics.parts_pruned) == (1, 9)


def test_pyarrow_reads_the_part_that_can_match_and_no_other() -> None:
    dataset = shared().to_dataset()
    found = dataset.to_table(columns=["s"], filter=pc.field("k") == 505)
    assert found.to_pydict() == {"s": ["505"]}
    assert (dataset.metrics.parts_read, dataset.metrics.parts_pruned) == (1, 9)


def test_a_filter_finds_nan_for_polars_and_not_for_pyarrow() -> None:
    table = shared()
    nans = table.scan("f = 'NaN'").count()
    dataset = table.to_dataset()
    found = pl.scan_pyarrow_dataset(dataset).filter(pl.col("f") > 1e9).collect()
    assert found.height == nans > 100
    assert dataset.count_rows(filter=pc.field("f") > 1e9) == 0


def test_ambiguous_filters_of_polars_are_rejected() -> None:
    frame = pl.scan_pyarrow_dataset(shared().to_dataset())
    assert frame.filter(~pl.col("k").is_in([1])).collect().height == 999  # k is never NULL
    with pytest.raises(UnsupportedOperation, match="nulls_equal"):
        frame.filter(~pl.col("s").is_in(["1"])).collect()


@pytest.mark.parametrize("members", [[], [None]], ids=["empty", "all NULL"])
def test_a_list_that_polars_folds_to_a_constant_is_refused_below_not(
    members: list[str | None],
) -> None:
    listed = pl.col("s").is_in(pl.Series(members, dtype=pl.String).implode())
    frame = pl.scan_pyarrow_dataset(shared().to_dataset())
    assert frame.filter(listed).collect().height == 0
    with pytest.raises(UnsupportedOperation, match="nulls_equal"):
        frame.filter(~listed).collect()
    expected = shared().to_polars().filter(~listed).height
    assert shared().scan_polars().filter(~listed).collect().height == expected


def test_pyarrow_evaluates_unsupported_conditions_of_a_filter() -> None:
    dataset = shared().to_dataset()
    odd = pc.match_substring_regex(pc.field("s"), "^50[0-9]$")
    assert dataset.count_rows(filter=odd) == 7
    found = dataset.to_table(
        columns=["k"], filter=odd & (pc.field("k") > 450) & (pc.field("k") < 505)
    )
    assert found["k"].to_pylist() == [500, 502, 503]
    assert (dataset.metrics.parts_read, dataset.metrics.parts_pruned) == (2, 8)


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param(None, id="all"),
        pytest.param([], id="none"),
        pytest.param(["s", "k"], id="another order"),
        pytest.param(["k", "k"], id="one twice"),
        pytest.param({"twice": pc.field("k") * 2, "s": pc.field("s")}, id="computed"),
        pytest.param({}, id="computed none"),
    ],
)
@pytest.mark.parametrize(
    "expression",
    [
        pytest.param(None, id="no filter"),
        pytest.param(pc.field("k") < 150, id="read"),
        pytest.param(pc.match_substring_regex(pc.field("s"), "1$"), id="left to pyarrow"),
        pytest.param(pc.scalar(value=False), id="never"),
    ],
)
def test_columns_and_filters_return_the_rows_of_pyarrow(columns: Any, expression: Any) -> None:
    table = shared()
    dataset, memory = table.to_dataset(), pads.InMemoryDataset(table.to_dataset().to_table())
    options = {"columns": columns, "filter": expression}
    ours, theirs = dataset.to_table(**options), memory.to_table(**options)
    assert ours.schema == theirs.schema
    assert ours.num_rows == theirs.num_rows == dataset.count_rows(filter=expression)
    assert repr(ours.to_pylist()) == repr(theirs.to_pylist())
    assert dataset.head(7, **options).num_rows == memory.head(7, **options).num_rows
    batches = list(dataset.to_batches(**options, batch_size=64))
    assert all(batch.num_rows <= 64 for batch in batches)
    assert sum(batch.num_rows for batch in batches) == theirs.num_rows


def test_a_struct_member_is_filtered_and_projected() -> None:
    rows = [{"k": k, "s": {"x": k % 3, "l": [k % 100]}, "m": [("a", {"y": k})]} for k in range(300)]
    table = rowsieve.create_table(fresh_uri(), pa.Table.from_pylist(rows, NESTED), key=["k"])
    dataset = table.to_dataset()
    found = dataset.to_table(columns={"x": pc.field("s", "x")}, filter=pc.field("s", "x") == 2)
    assert found["x"].to_pylist() == [2] * 100
    query = "SELECT count(*), sum(s.x) FROM dataset WHERE s.x = 2 AND m['a'].y < 150"
    assert sql(query, dataset) == [(50, 100)]


def test_nested_types_have_no_metadata_at_any_depth() -> None:
    table = rowsieve.create_table(fresh_uri(), NESTED, key=["k"])
    table.upsert(pa.Table.from_pylist([{"k": 1, "s": None, "m": None}], NESTED))
    dataset = table.to_dataset()
    for schema in (dataset.schema, dataset.to_table().schema):
        assert schema.equals(NESTED, check_metadata=True)


def test_a_dataset_stays_at_its_version() -> None:
    table = ten_parts()
    dataset = table.to_dataset()
    table.delete("k < 500")
    assert dataset.count_rows() == 1000
    assert table.to_dataset().count_rows() == 500
    assert table.to_dataset(version=dataset.version).count_rows() == 1000


def test_a_count_without_a_filter_reads_no_file() -> None:
    dataset = shared().to_dataset()
    assert dataset.count_rows() == 1000
    assert dataset.metrics.bytes_read == 0


def test_a_read_that_bypasses_the_methods_raises() -> None:
    dataset = shared().to_dataset()
    with pytest.raises(FileNotFoundError, match="through-its-own-methods"):
        pads.Scanner.from_dataset(dataset).to_table()
    union = partial(pads.dataset, [dataset])
    for refused in (dataset.get_fragments, union, partial(pickle.dumps, dataset)):
        with pytest.raises(UnsupportedOperation, match="read it by scanner"):
            refused()


def test_joins_and_sorts_read_the_rows() -> None:
    table = shared()
    dataset = table.to_dataset()
    assert dataset.sort_by([("k", "descending")]).head(1)["k"].to_pylist() == [999]
    assert dataset.join(table.to_dataset(), "k", right_suffix="_r").count_rows() == 1000
    other = pads.InMemoryDataset(pa.table({"k": [1, 2]}))
    assert dataset.join(other, "k", join_type="left semi").count_rows() == 2
    assert dataset.take([1, 999])["k"].to_pylist() == [1, 999]


def merged() -> Table:
    """A table whose files hold rows that others replaced and hid."""
    table = rowsieve.create_table(fresh_uri(), {"k": range(100), "v": [*range(100)]}, key=["k"])
    table.upsert({"k": range(50, 150), "v": [-k for k in range(50, 150)]})
    table.delete("k % 10 = 3")
    return table


@pytest.mark.parametrize("partitioning", [None, ["g"]])
def test_a_dataset_is_written_as_its_scan_says(tmp_path: Path, partitioning: Any) -> None:
    table = rowsieve.create_table(fresh_uri(), {"k": range(100), "g": ["a", "b"] * 50}, key=["k"])
    table.upsert({"k": range(50, 150), "g": ["c"] * 100})
    table.delete("k % 10 = 3")
    expected = table.to_arrow().sort_by("k").to_pydict()
    for name, source in {
        "dataset": table.to_dataset(),
        "scanner": table.to_dataset().scanner(),
        "batches": table.to_dataset().scanner().to_reader(),
    }.items():
        target = tmp_path / name
        pads.write_dataset(source, target, format="parquet", partitioning=partitioning)
        written = pads.dataset(target, partitioning=partitioning).to_table().sort_by("k")
        assert written.select(["k", "g"]).to_pydict() == expected
    some = table.to_dataset().filter(pc.field("g") == "c")
    pads.write_dataset(some, tmp_path / "some", format="parquet")
    assert pads.dataset(tmp_path / "some").count_rows() == table.count("g = 'c'")


def test_writing_a_dataset_that_fails_raises(tmp_path: Path) -> None:
    table = rowsieve.create_table(str(tmp_path / "t"), {"k": range(100)}, key=["k"])
    dataset = table.to_dataset()
    for path in (tmp_path / "t" / "data").glob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match=r"data/.*parquet"):
        pads.write_dataset(dataset, tmp_path / "out", format="parquet")


def test_rows_of_every_method_are_those_of_the_scan() -> None:
    table = merged()
    dataset = table.to_dataset()
    rows = dataset.to_table().to_pylist()
    assert sorted(map(str, rows)) == sorted(map(str, table.to_arrow().to_pylist()))
    assert dataset.count_rows() == len(rows) == table.count()
    assert dataset.head(7).to_pylist() == rows[:7]
    for most in (0, -1, 2**31, 2**63, 2**80):
        assert dataset.head(most).num_rows == (len(rows) if most > 0 else 0)
    for places in ([], [3], [5, 1, 5], pa.array([2, 0], pa.int32()), range(3)):
        assert dataset.take(places).to_pylist() == [
            rows[int(i)] for i in pa.array(places).to_pylist()
        ]
    by_value = sorted(rows, key=lambda row: (-row["v"], row["k"]))
    order = [("v", "descending"), ("k", "ascending")]
    assert dataset.sort_by(order).to_table().to_pylist() == by_value
    right = pads.InMemoryDataset(pa.table({"k": [1, 3, 60, 149, 500], "w": [1, 2, 3, 4, 5]}))
    joined = dataset.join(right, "k", join_type="inner").to_table().sort_by("k").to_pylist()
    assert [(row["k"], row["v"], row["w"]) for row in joined] == [
        (1, 1, 1),
        (60, -60, 3),
        (149, -149, 4),
    ]
    frame = pl.scan_pyarrow_dataset(dataset)
    assert sorted(map(str, frame.collect().to_dicts())) == sorted(map(str, rows))
    assert frame.filter(pl.col("v") < -100).select(pl.len()).collect().item() == 44
    assert sql("SELECT count(*), sum(v), min(k) FROM dataset WHERE k > 40", dataset) == [
        (len(big := [row for row in rows if row["k"] > 40]), sum(r["v"] for r in big), 41)
    ]


def test_each_place_is_one_row_in_every_read() -> None:
    table = merged()
    fresh = [table.to_dataset() for _ in range(3)]
    rows = fresh[0].to_table().to_pylist()
    assert rows == sorted(rows, key=lambda row: row["k"])
    one_by_one = [fresh[1].take([place]).to_pylist()[0] for place in range(0, len(rows), 9)]
    assert one_by_one == rows[::9]
    some = {"columns": ["v"], "filter": (pc.field("v") < 20) & (pc.field("k") > 5)}
    kept = [{"v": row["v"]} for row in rows if row["v"] < 20 and row["k"] > 5]
    assert fresh[2].to_table(**some).to_pylist() == kept
    assert fresh[2].take([3, 40], **some).to_pylist() == [kept[3], kept[40]]
    assert fresh[2].head(30, **some).to_pylist() == kept[:30]


@pytest.mark.parametrize("places", [[None], [1.5], ["a"], [2**70], "12"], ids=repr)
def test_places_that_are_none_are_refused(places: Any) -> None:
    with pytest.raises(InvalidInput, match=r"take: "):
        shared().to_dataset().take(places)


def test_unions_and_fragments_are_refused_with_the_way_out() -> None:
    dataset, memory = shared().to_dataset(), pads.InMemoryDataset(pa.table({"k": [1]}))
    for members in ([dataset, dataset], [dataset, memory], [memory, dataset]):
        with pytest.raises(UnsupportedOperation, match=r"pyarrow\.concat_tables"):
            pads.dataset(members)
    union = pads.UnionDataset(dataset.schema, [dataset, dataset])
    for read in (union.to_table, union.count_rows, partial(union.head, 1)):
        with pytest.raises(FileNotFoundError, match="through-its-own-methods"):
            read()
    with pytest.raises(UnsupportedOperation, match=r"ctx\.register_table\(name, table\)"):
        dataset.get_fragments()
    with pytest.raises(UnsupportedOperation, match="replace_schema"):
        dataset.replace_schema(dataset.schema)


def test_wrong_options_are_named() -> None:
    dataset = shared().to_dataset()
    with pytest.raises(InvalidInput, match="no option 'limit'"):
        dataset.scanner(limit=3)
    with pytest.raises(InvalidInput, match="a pyarrow expression, such as"):
        dataset.to_table(filter="k = 5")
    with pytest.raises(InvalidInput, match="num_rows must be a whole number, not str"):
        dataset.head("5")
    with pytest.raises(InvalidInput, match="batch_size must be at least 1"):
        dataset.to_table(batch_size=0)
    with pytest.raises(pa.ArrowInvalid, match="No match for"):
        dataset.to_table(columns=["nope"])


EARLY_STOPS = """
import duckdb, pyarrow as pa, rowsieve
table = rowsieve.create_table({path!r}, pa.table({{"k": range(300_000)}}), key=["k"])
for start in (1, 2, 3):
    table.upsert(pa.table({{"k": range(start * 300_000, (start + 1) * 300_000)}}))
dataset = table.to_dataset()
assert len(duckdb.sql("SELECT * FROM dataset LIMIT 2").fetchall()) == 2
try:
    duckdb.sql("SELECT CAST('x' || k AS INT) FROM dataset").fetchall()
except duckdb.Error:
    pass
dataset.head(1)
reader = dataset.scanner().to_reader()
reader.read_next_batch()
"""


def test_an_interpreter_leaves_cleanly_after_reads_that_stopped_early(tmp_path: Path) -> None:
    code = EARLY_STOPS.format(path=str(tmp_path / "t"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
