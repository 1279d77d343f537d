"""Parquet files of others, read in place: the rows of a pruned read are those of a full read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import datafusion
import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    InvalidSchemaChange,
    NotFound,
    SchemaMismatch,
    SnapshotExpired,
    StoreError,
    UnsupportedOperation,
)
from tests.faults.files import FileCalls
from tests.faults.vocabulary import Fault
from tests.profiles import some

N = 40
ROWS = pa.table(
    {
        "i": pa.array([None if i % 11 == 3 else i - 7 for i in range(N)], pa.int64()),
        "small": pa.array([i % 100 - 50 for i in range(N)], pa.int16()),
        "u": pa.array([2**64 - 1 - i if i % 3 else i for i in range(N)], pa.uint64()),
        "f": pa.array([(-0.0, float("nan"), None, i / 4)[i % 4] for i in range(N)]),
        "s": pa.array([None if i % 7 == 6 else f"{'éz'[i % 2]}{i:03}" * (i % 3) for i in range(N)]),
        "b": pa.array([i % 3 == 0 if i % 5 else None for i in range(N)]),
        "d": pa.array([date(2020, 1, 1 + i % 28) for i in range(N)]),
        "ts": pa.array([datetime(2020, 1, 1, i % 24, i) for i in range(N)], pa.timestamp("us")),
        "tz": pa.array([datetime(2020, 1, 1, i % 24, tzinfo=UTC) for i in range(N)]),
        "dec": pa.array([Decimal(i - 20) / 4 for i in range(N)], pa.decimal128(9, 2)),
    }
)
CONDITIONS = (
    *("i = 5", "i < -3", "i >= 30", "i IS NULL", "i BETWEEN 3 AND 9 AND b", "i = 5 OR s IS NULL"),
    *("small > 0", "small = -50", "u > 9223372036854775807", "u < 10", "f = 0", "f > 5", "f < 1"),
    *("f = 'NaN'", "f IS NULL", "s = 'é004'", "s > 'é'", "s < 'z'", "s LIKE 'z0%'", "s = ''"),
    *("b", "NOT b", "b IS NULL", "d = date '2020-01-05'", "d > date '2020-01-20'"),
    *("ts < timestamp '2020-01-01 03:00:00'", "tz >= timestamptz '2020-01-01 20:00:00+00'"),
    *("dec = 1.25", "dec < -4", "i + small > 10", "NOT (i > 5 AND small < 0)"),
)


def by_pyarrow(**options: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(ROWS, path, **options)


def by_duckdb(path: Path) -> None:
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        connection.sql("SET TimeZone = 'UTC'")
        connection.sql(f"COPY t TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


def by_datafusion(path: Path) -> None:
    context = datafusion.SessionContext()
    context.from_arrow(ROWS).write_parquet(str(path))


def files_of(path: Path) -> Path:
    return path


WRITERS: Mapping[str, Callable[[Path], None]] = {
    "pyarrow": by_pyarrow(),
    "small row groups": by_pyarrow(row_group_size=7),
    "row groups of one row": by_pyarrow(row_group_size=1, compression="zstd"),
    "format 1.0": by_pyarrow(version="1.0", coerce_timestamps="ms"),
    "data pages v2": by_pyarrow(data_page_version="2.0", row_group_size=9, write_page_index=True),
    "without statistics": by_pyarrow(write_statistics=False, row_group_size=9),
    "some statistics": by_pyarrow(write_statistics=["i", "s"], row_group_size=9),
    "without dictionary or schema": by_pyarrow(use_dictionary=False, store_schema=False),
    "int96": by_pyarrow(use_deprecated_int96_timestamps=True, row_group_size=9),
    "decimals as integers": by_pyarrow(store_decimal_as_integer=True, row_group_size=9),
    "with bloom filters": by_pyarrow(
        bloom_filter_options={"s": {"ndv": 50, "fpp": 0.01}, "i": {"ndv": 50, "fpp": 0.01}}
    ),
    "duckdb": by_duckdb,
    "datafusion": by_datafusion,
    "polars": lambda path: pl.DataFrame(ROWS).write_parquet(
        path, row_group_size=9, statistics="full"
    ),
    "polars without statistics": lambda path: pl.DataFrame(ROWS).write_parquet(
        path, statistics=False
    ),
}


def sorted_rows(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    with duckdb.connect() as connection:  # in memory, without Parquet
        connection.sql("SET TimeZone = 'UTC'")
        connection.register("t", ROWS)
        return {
            each: sorted_rows(connection.sql(f"SELECT * FROM t WHERE {each}").to_arrow_table())
            for each in CONDITIONS
        }


@pytest.mark.parametrize(("place", "write"), [*enumerate(WRITERS.values())], ids=WRITERS)
def test_a_pruned_read_has_the_rows_of_a_full_read(
    place: int, write: Callable[[Path], None], tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    path = tmp_path / "a.parquet"
    write(path)
    table = rs.open_parquet(files_of(path))
    target = ROWS.schema
    for condition in some([*CONDITIONS], 3, place):
        found = table.scan(condition, pruning="soft").to_arrow()  # raises UnsoundPruning
        assert table.scan(condition).to_arrow().num_rows == found.num_rows
        assert sorted_rows(found.cast(target)) == expected[condition], condition
        assert table.count(condition) == len(expected[condition])
    assert table.count() == N
    assert sorted_rows(table.to_arrow().cast(target)) == sorted_rows(ROWS)


def test_nested_columns_are_read_whole(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "list": [[1, None], [], None],
            "struct": [{"x": 1, "y": "a"}, None, {"x": None, "y": "b"}],
            "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
            "deep": [[{"z": [1]}], None, [{"z": None}]],
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet", row_group_size=2)
    table = rs.open_parquet(tmp_path / "a.parquet")
    assert table.to_arrow().to_pylist() == rows.to_pylist()
    assert table.scan('("struct").x = 1').to_arrow()["id"].to_pylist() == [1]


def test_types_of_other_writers_become_those_of_tables(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "large": pa.array(["a", None], pa.large_string()),
            "view": pa.array(["a", None], pa.string_view()),
            "dictionary": pa.array(["a", None]).dictionary_encode(),
            "half": pa.array([1.5, None], pa.float16()),
            "seconds": pa.array([1, None], pa.timestamp("s", "Europe/Paris")),
            "time": pa.array([1, None], pa.time32("ms")),
            "fixed": pa.array([b"abc", None], pa.binary(3)),
            "uuid": pa.array([b"0123456789abcdef", None], pa.uuid()),
        }
    )
    pq.write_table(rows, tmp_path / "a.parquet")
    table = rs.open_parquet(tmp_path / "a.parquet")
    assert [str(type_) for type_ in table.schema.types] == [
        *("string", "string", "string", "float", "timestamp[us, tz=UTC]", "time64[us]"),
        *("binary", "fixed_size_binary[16]"),
    ]
    assert table.count("large = 'a' AND dictionary = 'a' AND half = 1.5") == 1
    assert rs.to_native(table.to_arrow()).schema.field("seconds").type.tz  # an instant


# Several files


def test_columns_are_matched_by_name_and_missing_ones_are_null(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"c": [2.5], "a": pa.array([2], pa.int64())}), tmp_path / "2.parquet")
    table = rs.open_parquet(tmp_path)
    assert table.schema.field("a").type == pa.int64()
    assert table.to_arrow().to_pylist() == [
        {"a": 1, "b": "x", "c": None},
        {"a": 2, "b": None, "c": 2.5},
    ]
    assert table.scan("b IS NULL").to_arrow()["a"].to_pylist() == [2]
    scan = table.scan("b IS NOT NULL AND a = 1")
    assert scan.to_arrow()["a"].to_pylist() == [1]
    assert scan.metrics.parts_pruned == 1


def test_columns_of_contradicting_types_are_an_error_that_names_both_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    with pytest.raises(SchemaMismatch, match=r"'a' is int64 in .*1\.parquet and string in .*2\."):
        rs.open_parquet(tmp_path)


def test_a_schema_chooses_columns_and_types(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1], "b": ["x"], "o\0d": [1]}), tmp_path / "1.parquet")
    with pytest.raises(SchemaMismatch, match="has a zero byte"):
        rs.open_parquet(tmp_path)
    table = rs.open_parquet(tmp_path, schema=pa.schema({"b": pa.string(), "a": pa.int8()}))
    assert table.to_arrow().to_pylist() == [{"b": "x", "a": 1}]
    with pytest.raises(SchemaMismatch, match="the column 'z'"):
        rs.open_parquet(tmp_path, schema=pa.schema({"z": pa.int8()}))
    with pytest.raises(SchemaMismatch, match=r"does not fit .*1\.parquet"):
        rs.open_parquet(tmp_path, schema=pa.schema({"b": pa.int8()}))


def test_a_column_without_values_takes_the_type_of_other_files(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": pa.nulls(2)}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    table = rs.open_parquet(tmp_path)
    assert table.to_arrow()["a"].to_pylist() == [None, None, "x"]
    assert table.count("a IS NULL") == 2


def test_empty_files_and_row_groups_have_no_rows(tmp_path: Path) -> None:
    pq.write_table(ROWS.slice(0, 0), tmp_path / "1.parquet")
    with pq.ParquetWriter(tmp_path / "2.parquet", ROWS.schema) as writer:
        for rows in (ROWS.slice(0, 0), ROWS.slice(0, 3), ROWS.slice(0, 0), ROWS.slice(3, 2)):
            writer.write_table(rows)
    table = rs.open_parquet(tmp_path)
    assert table.to_arrow()["small"].to_pylist() == ROWS["small"].to_pylist()[:5]
    assert table.count("small = -46") == 1
    assert rs.open_parquet(tmp_path / "1.parquet").count() == 0


def test_a_file_without_columns_adds_none(tmp_path: Path) -> None:
    pq.write_table(pa.table({}), tmp_path / "1.parquet")
    with pytest.raises(InvalidInput, match="no columns"):
        rs.open_parquet(tmp_path)
    pq.write_table(ROWS, tmp_path / "2.parquet")
    assert rs.open_parquet(tmp_path).count() == ROWS.num_rows


def test_a_name_with_a_zero_byte_is_refused(tmp_path: Path) -> None:
    # Arrow's C interface cuts it off, and another column may have the name that is left
    named = pa.table({"a": [1], "a\0b": [2]})
    pq.write_table(named, tmp_path / "1.parquet")
    with pytest.raises(SchemaMismatch, match=r"1\.parquet: .* zero byte"):
        rs.open_parquet(tmp_path)
    assert rs.open_parquet(tmp_path, schema=pa.schema([("a", pa.int64())])).count("a = 1") == 1
    for data in (named, pa.table({"s": named.to_struct_array()})):
        with pytest.raises(SchemaMismatch, match="zero byte"):
            rs.create_table(tmp_path / "t", data)
    made = rs.create_table(tmp_path / "t", named.select(["a"]))
    changes: dict[str, Callable[[], object]] = {
        "merge": lambda: made.append(named, schema_mode="merge"),
        "add": lambda: made.add_column("\0", "int64"),
        "rename": lambda: made.rename_column("a", "\0"),
    }
    for change in changes.values():
        with pytest.raises(InvalidSchemaChange, match="zero byte"):
            change()
    assert made.version == 0


def test_globs_lists_and_directories_find_files(tmp_path: Path) -> None:
    for name in ("a/x.parquet", "a/b/y.parquet", "z.pq", "_no.parquet", ".no.parquet", "no.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [name]}), tmp_path / name)
    (tmp_path / "link.parquet").symlink_to(tmp_path / "z.pq")

    def names(source: Any) -> set[str]:
        return set(rs.open_parquet(source).to_arrow()["n"].to_pylist())

    assert names(tmp_path) == {"a/x.parquet", "a/b/y.parquet", "z.pq"}
    assert names(f"{tmp_path}/*/*.parquet") == {"a/x.parquet"}
    assert names(f"{tmp_path}/**/[xy].parquet") == {"a/x.parquet", "a/b/y.parquet"}
    assert names(f"{tmp_path}/?.p[!a]") == {"z.pq"}
    assert names([tmp_path / "z.pq", str(tmp_path / "a")]) == {
        "z.pq",
        "a/x.parquet",
        "a/b/y.parquet",
    }
    assert names(tmp_path.as_uri()) == names(tmp_path)


def test_a_file_and_its_links_count_once(tmp_path: Path) -> None:
    lake, others = tmp_path / "lake", tmp_path / "others"
    for name in ("lake/day=1/a.parquet", "lake/day=2/b.parquet", "others/blob"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"n": [name]}), tmp_path / name)
    (lake / "day=1/latest.parquet").symlink_to(lake / "day=1/a.parquet")
    (lake / "day=2/c.parquet").symlink_to(others / "blob")
    table = rs.open_parquet(lake)
    assert sorted(table.to_arrow()["n"].to_pylist()) == [
        "lake/day=1/a.parquet",
        "lake/day=2/b.parquet",
        "others/blob",
    ]
    assert table.count("day = 2") == 2
    assert rs.open_parquet(lake, hive=True).count("day = 2") == 2
    assert rs.open_parquet(f"{lake}/*/la*.parquet").count() == 1
    (lake / "day=2/a.parquet").symlink_to(lake / "day=1/a.parquet")
    with pytest.raises(InvalidInput, match=r"as 'day=1/.*' and as 'day=2/a.parquet'"):
        rs.open_parquet(lake)


# Hive directories


def hive_files(root: Path, folders: list[str]) -> None:
    for i, folder in enumerate(folders):
        (root / folder).mkdir(parents=True)
        pq.write_table(pa.table({"n": [i]}), root / folder / "a.parquet")


def test_directories_are_constant_columns(tmp_path: Path) -> None:
    hive_files(tmp_path, ["y=2023/m=01/k=a%20b", "y=2024/m=02/k=__HIVE_DEFAULT_PARTITION__"])
    table = rs.open_parquet(tmp_path)
    assert table.to_arrow().to_pylist() == [
        {"n": 0, "y": 2023, "m": 1, "k": "a b"},
        {"n": 1, "y": 2024, "m": 2, "k": None},
    ]
    for condition, count in (("y = 2023", 1), ("k IS NULL", 1), ("m > 1 OR k = 'a b'", 2)):
        scan = table.scan(condition)
        assert scan.to_arrow().num_rows == count
        assert scan.metrics.parts_pruned == 2 - count
        assert table.count(condition) == count
    assert table.scan(columns=["m", "k"]).to_arrow().num_rows == 2
    assert table.scan("y = 2024", pruning="soft").to_arrow().num_rows == 1


def test_types_of_directories_are_given_or_inferred(tmp_path: Path) -> None:
    hive_files(tmp_path, ["d=2024-01-31/x=1/t=1e5", "d=2024-02-01/x=007/t=b"])
    inferred = rs.open_parquet(tmp_path)
    assert inferred.schema.field("d").type == pa.date32()
    assert inferred.to_arrow()["x"].to_pylist() == [1, 7]
    assert inferred.to_arrow()["t"].to_pylist() == ["1e5", "b"]
    given = rs.open_parquet(tmp_path, hive={"x": "string", "d": pa.string()})
    assert given.to_arrow()["x"].to_pylist() == ["1", "007"]
    assert given.count("d < '2024-02'") == 1
    assert rs.open_parquet(tmp_path, hive=False).schema.names == ["n"]
    with pytest.raises(InvalidInput, match="t=1e5 has no value of type int32"):
        rs.open_parquet(tmp_path, hive={"t": "int32"})
    with pytest.raises(InvalidInput, match="hive= has the column 'z'"):
        rs.open_parquet(tmp_path, hive={"z": "int32"})


def test_directories_that_contradict_are_errors(tmp_path: Path) -> None:
    hive_files(tmp_path / "one", ["y=1", "z=1"])
    with pytest.raises(InvalidInput, match=r"directories for \(z\).*directories for \(y\)"):
        rs.open_parquet(tmp_path / "one")
    hive_files(tmp_path / "two", ["n=1"])
    with pytest.raises(InvalidInput, match="'n' is in the files and in the names"):
        rs.open_parquet(tmp_path / "two")
    hive_files(tmp_path / "three", ["y=1/y=2"])
    with pytest.raises(InvalidInput, match="two directories for the column 'y'"):
        rs.open_parquet(tmp_path / "three")


def test_a_file_alone_takes_directories_of_its_whole_path_if_asked(tmp_path: Path) -> None:
    hive_files(tmp_path, ["y=2024"])
    path = tmp_path / "y=2024/a.parquet"
    assert rs.open_parquet(path).schema.names == ["n"]
    assert rs.open_parquet(path, hive=True).to_arrow().to_pylist() == [{"n": 0, "y": 2024}]


# Errors


def test_sources_without_files_are_errors(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source in (tmp_path / "none", tmp_path / "empty", f"{tmp_path}/*.parquet"):
        with pytest.raises(NotFound, match=str(tmp_path)):
            rs.open_parquet(source)
    with pytest.raises(InvalidInput, match="no path was given"):
        rs.open_parquet([])
    with pytest.raises(InvalidInput, match="memory://"):
        rs.open_parquet("memory:///x")


def test_names_that_no_file_can_have_are_errors(tmp_path: Path) -> None:
    long = f"{tmp_path}/{'x' * 300}"
    for source in (long, f"{long}/*", f"{long}[a]"):
        with pytest.raises(NotFound):
            rs.open_parquet(source)


def test_a_folder_that_cannot_be_listed_is_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive_files(tmp_path, ["y=1", "y=2"])
    FileCalls(monkeypatch, names=["scandir"]).meet_where(
        Fault.NOT_PERMITTED, "scandir", lambda path: path.endswith("y=2")
    )
    with pytest.raises(StoreError, match=r"y=2: Permission denied"):
        rs.open_parquet(tmp_path)


def test_files_that_are_not_parquet_are_errors_that_name_them(tmp_path: Path) -> None:
    for name, data in (
        ("empty", b""),
        ("text", b"hello, this is not Parquet"),
        ("long", b"PAR1" + bytes(20) + b"\xff\xff\xff\x7fPAR1"),
        ("damaged", b"PAR1" + b"\xff" * 20 + b"\x14\0\0\0PAR1"),
    ):
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(data)
        with pytest.raises((InvalidInput, CorruptData), match=f"{name}.parquet"):
            rs.open_parquet(path)
    path.write_bytes(b"PAR1" + bytes(20) + b"\x04\0\0\0PARE")
    with pytest.raises(UnsupportedOperation, match="encrypted"):
        rs.open_parquet(path)


def test_a_file_given_twice_is_an_error(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match=r"a\.parquet was given twice"):
        rs.open_parquet([tmp_path, tmp_path / "a.parquet"])


def test_directories_of_tables_are_refused(tmp_path: Path) -> None:
    rs.create_table(tmp_path / "t", ROWS)
    with pytest.raises(UnsupportedOperation, match="open_table"):
        rs.open_parquet(tmp_path / "t")
    (tmp_path / "d" / "_delta_log").mkdir(parents=True)
    with pytest.raises(UnsupportedOperation, match="a Delta table"):
        rs.open_parquet(tmp_path / "d")


def test_files_that_change_after_they_were_opened_are_errors(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(ROWS, path)
    table = rs.open_parquet(path)
    pq.write_table(ROWS.slice(1), path)
    with pytest.raises(CorruptData, match=r"a\.parquet"):
        table.to_arrow()
    path.unlink()
    with pytest.raises(SnapshotExpired, match=r"a\.parquet does not exist"):
        table.scan("i = 1").to_arrow()


def test_nothing_can_be_changed(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    before = (tmp_path / "a.parquet").read_bytes()
    table = rs.open_parquet(tmp_path)
    changes: tuple[Callable[[], Any], ...] = (
        lambda: table.append(ROWS),
        lambda: table.delete("i = 1"),
        lambda: table.update({"i": "1"}),
        table.compact,
        lambda: table.add_column("x", "int64"),
        lambda: table.restore(0),
    )
    for change in changes:
        with pytest.raises(UnsupportedOperation, match="from_parquet"):
            change()
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
    assert (tmp_path / "a.parquet").read_bytes() == before
    assert (table.history(), table.version, table.key) == ([], 0, ())
    with pytest.raises(NotFound):
        table.scan(version=1)


# Engines


def test_engines_read_with_pruning(tmp_path: Path) -> None:
    hive_files(tmp_path, [f"y={year}" for year in range(2020, 2030)])
    table = rs.open_parquet(tmp_path)
    context = datafusion.SessionContext()
    context.register_table("t", table)
    (batch,) = context.sql("SELECT n FROM t WHERE y = 2023").collect()
    assert batch.to_pylist() == [{"n": 3}]
    with duckdb.connect() as connection:
        connection.register("d", table.to_dataset())
        found = connection.sql("SELECT n FROM d WHERE y > 2027 ORDER BY n").to_arrow_table()
    assert found["n"].to_pylist() == [8, 9]
    frame = table.scan_polars().filter(pl.col("y") == 2021).collect()
    assert frame["n"].to_list() == [1]
    assert table.to_pandas("y = 2022")["n"].tolist() == [2]


def test_another_process_reads_a_split(tmp_path: Path) -> None:
    hive_files(tmp_path, ["y=a%20é", "y=b"])
    (split,) = rs.open_parquet(tmp_path).scan("y LIKE 'a%'").plan().splits_to_bytes()
    (tmp_path / "split").write_bytes(split)
    code = (
        "import pathlib, sys, rowsieve as rs; split = pathlib.Path(sys.argv[1]).read_bytes();"
        "print(rs.read_split(split).read_all().to_pylist())"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "split")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[{'n': 0, 'y': 'a é'}]"


def test_resolved_plans_name_whole_files(tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet", row_group_size=9)
    plan = rs.open_parquet(tmp_path).scan("small = -30").plan(resolve=True)
    (file,) = plan.files()
    assert file.path == (tmp_path / "a.parquet").as_uri()
    assert file.rows.ranges()[0].tolist() == [18]
    assert rs.ScanPlan.from_bytes(plan.to_bytes()).splits == plan.splits


@pytest.mark.parametrize("imported", [False, True])
def test_fields_inside_columns_may_differ_between_files(imported: bool, tmp_path: Path) -> None:
    types = [
        [("s", pa.struct([("a", pa.int32())])), ("l", pa.list_(pa.struct([("n", pa.int8())])))],
        [
            ("s", pa.struct([("b", pa.string()), ("a", pa.int64())])),
            ("l", pa.large_list(pa.struct([("n", pa.int16()), ("m", pa.bool_())]))),
        ],
    ]
    rows = [
        {"id": 1, "s": {"a": 5}, "l": [{"n": 1}, None]},
        {"id": 2, "s": {"b": "x", "a": 2**40}, "l": [{"n": 300, "m": True}]},
    ]
    for place, (fields, row) in enumerate(zip(types, rows, strict=True)):
        schema = pa.schema([("id", pa.int64()), *fields])
        pq.write_table(pa.Table.from_pylist([row], schema), tmp_path / f"{place}.parquet")
    opened = (
        rs.from_parquet(tmp_path, tmp_path.with_suffix(".t"), key=["id"])
        if imported
        else rs.open_parquet(tmp_path)
    )
    assert opened.to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "s": {"a": 5, "b": None}, "l": [{"n": 1, "m": None}, None]},
        {"id": 2, "s": {"a": 2**40, "b": "x"}, "l": [{"n": 300, "m": True}]},
    ]
    for where, ids in [("(s).a > 5", [2]), ("(s).b IS NULL", [1]), ("(l[1]).m", [2])]:
        assert opened.scan(where).to_arrow()["id"].to_pylist() == ids
    if imported:
        opened.compact()
        assert opened.count("(s).b IS NULL") == 1
    chosen = pa.schema([("s", pa.struct([("b", pa.string())]))])
    narrow = rs.open_parquet(tmp_path, schema=chosen)
    assert narrow.scan().schema.names == ["s"]
    assert sorted(map(repr, narrow.to_arrow()["s"].to_pylist())) == sorted(
        map(repr, [{"b": None}, {"b": "x"}])
    )
    for wrong, why in (("a", "does not fit"), ("q", "'s.q', which no file has")):
        with pytest.raises(SchemaMismatch, match=why):
            rs.open_parquet(
                tmp_path,
                schema=pa.schema([("s", pa.struct([("b", pa.string()), (wrong, pa.bool_())]))]),
            )
    other = pa.table({"id": [3], "s": pa.array([{"a": "text"}])})
    pq.write_table(other, tmp_path / "2.parquet")
    with pytest.raises(SchemaMismatch, match="'s' is struct"):
        rs.open_parquet(tmp_path)
