"""A version published as a Delta log has the same rows for readers of Delta."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import rowsieve as rs
from rowsieve.errors import CorruptData, InvalidInput, UnsupportedOperation
from rowsieve.publication.delta import publish_log

ROWS = pa.table(
    {
        "id": pa.array(range(50), pa.int64()),
        "i8": pa.array([i - 25 for i in range(50)], pa.int8()),
        "f": [None if i % 3 else i / 4 for i in range(50)],
        "s": [f"é{i}" for i in range(50)],
        "b": [i % 2 == 0 for i in range(50)],
        "bytes": [b"x" * i for i in range(50)],
        "d": [date(2020, 1, 1)] * 50,
        "ts": pa.array([datetime(2020, 1, 1, tzinfo=UTC)] * 50, pa.timestamp("us", "UTC")),
        "local": pa.array([datetime(2020, 1, 1)] * 50, pa.timestamp("us")),
        "dec": pa.array([Decimal(i) / 4 for i in range(50)], pa.decimal128(9, 2)),
        "l": [[i, None] for i in range(50)],
        "st": [{"x": i, "y": "z"} for i in range(50)],
        "never": pa.StructArray.from_arrays(
            [pa.array(range(50))],
            fields=[pa.field("x", pa.int64(), nullable=False)],
            mask=pa.array([i % 2 == 0 for i in range(50)]),
        ),
        "m": pa.array([[("k", i)] for i in range(50)], pa.map_(pa.string(), pa.int64())),
    }
)


def by_id(rows: pa.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rows.to_pylist()
    return sorted(found, key=lambda row: row["id"])


def delta_rows(uri: Path, version: int | None = None) -> list[dict[str, Any]]:
    return by_id(pa.table(DeltaTable(uri, version=version).to_pyarrow_table()))


@pytest.mark.parametrize("key", [None, ["id"]])
def test_readers_of_delta_read_the_same_rows(key: list[str] | None, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=key)
    more = ROWS.slice(0, 5).set_column(0, "id", pa.array(range(100, 105), pa.int64()))
    (table.upsert if key else table.append)(more)
    assert table.publish("delta").number == 0
    assert (
        delta_rows(tmp_path / "t")
        == by_id(table.to_arrow())
        == by_id(rs.from_delta(tmp_path / "t").to_arrow())
    )
    assert rs.open_table(tmp_path / "t").count() == 55


def queried(folder: Path, version: int | None = None) -> list[dict[str, Any]]:
    """All rows by deltalake's own engine, which reads deletion vectors."""
    builder = QueryBuilder().register("t", DeltaTable(folder, version=version))
    return by_id(pa.table(builder.execute("SELECT * FROM t").read_all()))


def test_hidden_rows_are_deletion_vectors(tmp_path: Path) -> None:
    many = pa.table({"id": range(50_000)}).append_column("s", pa.nulls(50_000, pa.string()))
    table = rs.create_table(tmp_path / "t", many, key=["id"])
    assert table.publish("delta").number == table.publish("delta").number == 0
    versions = [by_id(table.to_arrow())]
    table.delete("id < 10")  # a few rows: their vector is in the log
    table.upsert({"id": [12, 99_000], "s": ["x", "y"]})
    table.publish("delta")
    versions.append(by_id(table.to_arrow()))
    table.delete("id % 7 = 3")  # many: theirs is in a file
    table.publish("delta")
    versions.append(by_id(table.to_arrow()))
    table.upsert({"id": [100_000], "s": ["z"]})
    table.publish("delta")
    versions.append(by_id(table.to_arrow()))
    log = sorted((tmp_path / "t/_delta_log").iterdir())
    kinds = [re.findall(r'"storageType":"(.)"', each.read_text()) for each in log]
    assert kinds == [[], ["i"], ["i", "u"], []], "the same vector is used again"
    for number, rows in enumerate(versions):
        assert queried(tmp_path / "t", number) == rows
        assert by_id(rs.from_delta(tmp_path / "t", number).to_arrow()) == rows
    assert by_id(pl.scan_delta(str(tmp_path / "t")).collect().to_arrow()) == versions[-1]
    table.compact()
    table.publish("delta")
    assert queried(tmp_path / "t") == versions[-1]


def test_an_older_version_replaces_no_newer_one(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.delete("id = 1")
    table.publish("delta")
    with pytest.raises(UnsupportedOperation, match=r"has version 1 already, and version 0 is"):
        rs.open_table(tmp_path / "t", version=0).publish("delta")


def test_changed_columns_keep_the_names_that_files_have(tmp_path: Path) -> None:
    rows = ROWS.select(["id", "s", "st"])
    table = rs.create_table(tmp_path / "t", rows, key=["id"])
    table.publish("delta")
    with table.alter() as change:
        change.rename_column("s", "text").rename_column("st.x", "renamed").add_column("n", "int64")
    table.delete("id = 7")
    table.publish("delta")
    assert queried(tmp_path / "t") == by_id(table.to_arrow())
    assert by_id(rs.from_delta(tmp_path / "t").to_arrow()) == by_id(table.to_arrow())
    table.update({"n": "id"}, where="id < 3")
    with pytest.raises(UnsupportedOperation, match=r"another name in older files.*compact first"):
        table.publish("delta")
    table.compact()
    table.drop_column("text")
    table.publish("delta")
    assert queried(tmp_path / "t") == by_id(table.to_arrow())
    table.add_column("text", "string")
    with pytest.raises(UnsupportedOperation, match="the name of another column in older files"):
        table.publish("delta")


def test_another_folder_has_the_log_alone(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t a%20b", ROWS, key=["id"])
    table.publish("delta", tmp_path / "log")
    delta = DeltaTable(tmp_path / "log")
    builder = QueryBuilder().register("t", delta)
    found = pa.table(builder.execute("SELECT id, s FROM t").read_all())
    assert by_id(found) == by_id(table.scan(columns=["id", "s"]).to_arrow())
    assert [path.name for path in (tmp_path / "log").iterdir()] == ["_delta_log"]
    assert rs.from_delta(tmp_path / "log").count("id < 7") == 7


@pytest.mark.parametrize("first", ["ours", "deltalake", "appended"])
def test_the_delta_table_of_another_is_never_replaced(first: str, tmp_path: Path) -> None:
    rows, place = pa.table({"k": [7, 8]}), str(tmp_path / "delta")
    table = rs.create_table(tmp_path / "t", pa.table({"k": [1]}))
    match first:
        case "ours":
            rs.create_table(tmp_path / "other", rows).publish("delta", place)
        case "deltalake":
            write_deltalake(place, rows)
        case "appended":
            table.publish("delta", place)
            commit_of_another(place)
    with pytest.raises(UnsupportedOperation, match="another writer or of another table"):
        table.publish("delta", place)
    builder = QueryBuilder().register("t", DeltaTable(place))
    found = pa.table(builder.execute("SELECT k FROM t ORDER BY k").read_all())
    assert found["k"].to_pylist() == ([1] if first == "appended" else [7, 8])


def commit_of_another(place: str) -> None:
    """Add a version as a writer does that knows all features, which deltalake does not."""
    line = {"commitInfo": {"timestamp": 1, "inCommitTimestamp": 2**43, "engineInfo": "other"}}
    Path(place, f"_delta_log/{1:020}.json").write_text(json.dumps(line))


@pytest.mark.parametrize(
    "line",
    [
        *("", "[1]", "{", "\xff", "null", '{"add": {}}', '{"metaData": null, "add": 1}'),
        '{"metaData": {"id": "1", "configuration": null}}',
    ],
)
def test_a_log_that_cannot_be_read_is_refused(line: str, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", pa.table({"k": [1]}))
    (tmp_path / "d" / "_delta_log").mkdir(parents=True)
    (tmp_path / "d" / "_delta_log" / f"{0:020}.json").write_text(line, "latin-1")
    with pytest.raises(UnsupportedOperation, match="another writer or of another table"):
        table.publish("delta", tmp_path / "d")


def test_column_mapping_finds_the_columns_of_files_with_tags(tmp_path: Path) -> None:
    tags = {"column_names": "tag"}
    table = rs.create_table(tmp_path / "t", ROWS.schema, key=["id"], properties=tags)
    table.rename_column("st.x", "renamed")
    renamed = pa.StructArray.from_arrays(ROWS["st"].combine_chunks().flatten(), ["renamed", "y"])
    table.upsert(ROWS.set_column(ROWS.column_names.index("st"), "st", renamed))
    table.publish("delta")
    builder = QueryBuilder().register("t", DeltaTable(tmp_path / "t"))
    found = pa.table(builder.execute("SELECT * FROM t").read_all())
    assert by_id(found) == by_id(table.to_arrow())
    assert found.column_names == ROWS.column_names
    flat = rs.create_table(tmp_path / "f", ROWS.select(["id", "s", "local"]), properties=tags)
    flat.publish("delta")
    assert by_id(rs.from_delta(tmp_path / "f").to_arrow()) == by_id(flat.to_arrow())


def test_versions_that_delta_cannot_have_are_refused(tmp_path: Path) -> None:
    evolved = rs.create_table(tmp_path / "b", ROWS.select(["id", "s"]))
    evolved.add_column("x", "int64", default=5)
    with pytest.raises(UnsupportedOperation, match="without 'x', whose value there is not NULL"):
        evolved.publish("delta")
    narrow = rs.create_table(tmp_path / "n", ROWS.select(["id", "i8"]))
    narrow.widen_column("i8", "int64")
    with pytest.raises(UnsupportedOperation, match="'i8' is int8, which Delta cannot widen"):
        narrow.publish("delta")
    for i, type_ in enumerate((pa.uint32(), pa.time64("us"), pa.month_day_nano_interval())):
        odd = rs.create_table(tmp_path / f"c{i}", pa.schema({"id": pa.int64(), "odd": type_}))
        with pytest.raises(UnsupportedOperation, match="'odd' has the type"):
            odd.publish("delta")
    placed = rs.from_parquet(tmp_path / "b/data", tmp_path / "d")
    with pytest.raises(UnsupportedOperation, match="not its own"):
        placed.publish("delta")
    with pytest.raises(InvalidInput, match="format"):
        placed.publish("csv")  # type: ignore[arg-type]


def test_a_checkpoint_bounds_what_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_log, "INTERVAL", 4)
    table = rs.create_table(tmp_path / "t", ROWS.select(["id", "s", "m"]), key=["id"])
    for i in range(7):
        table.delete(f"id = {i}")
        assert table.publish("delta").number == i
    log = tmp_path / "t/_delta_log"
    assert json.loads((log / "_last_checkpoint").read_text())["version"] == 4
    for number in range(4):
        (log / f"{number:020}.json").unlink()
    assert queried(tmp_path / "t") == by_id(table.to_arrow())
    table.delete("id = 9")
    assert table.publish("delta").number == 7
    assert queried(tmp_path / "t") == by_id(table.to_arrow())
    assert by_id(pl.scan_delta(str(tmp_path / "t")).collect().to_arrow()) == queried(tmp_path / "t")
    (log / f"{5:020}.json").unlink()
    with pytest.raises(CorruptData, match="lacks version 5"):
        table.publish("delta")
