"""Delta and Iceberg tables imported in place: changed like any table, beside files that stay."""

from __future__ import annotations

import tempfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestamptzType

import rowsieve as rs
from rowsieve.errors import (
    InvalidInput,
    KeyViolation,
    NotFound,
    TableExists,
    UnsupportedOperation,
    VersionNotFound,
)
from tests.foreign import iceberg_tables
from tests.foreign.test_from_delta import field, vector, write_log
from tests.profiles import examples

Row = dict[str, Any]
WORDS = ("a", "b c", "é%", "x=/y", "a%20b")
ICEBERG = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "p", StringType()),
    NestedField(3, "ts", TimestamptzType()),
)
BY_P = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "p"))


def arrow(rows: list[Row]) -> pa.Table:
    types = pa.schema({"id": pa.int64(), "p": pa.string(), "ts": pa.timestamp("us", "UTC")})
    return pa.Table.from_pylist(rows, types)


def in_order(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


def row(number: int, word: str | None) -> Row:
    moment = None if number % 7 == 3 else datetime(2020, 1, 1 + number % 28, tzinfo=UTC)
    return {"id": number, "p": word, "ts": moment}


batches = st.lists(
    st.lists(
        st.builds(row, st.integers(0, 40), st.none() | st.sampled_from(WORDS)),
        min_size=1,
        max_size=8,
    ),
    min_size=1,
    max_size=3,
)
steps = st.lists(
    st.tuples(
        st.sampled_from(("append", "delete", "update", "compact", "add", "rename", "vacuum")),
        st.integers(0, 40),
    ),
    max_size=6,
)


def written_delta(folder: Path, data: list[list[Row]], deleted: int, by: bool) -> list[Row]:
    for rows in data:
        write_deltalake(folder, arrow(rows), mode="append", partition_by=["p"] if by else None)
    DeltaTable(folder).delete(f"id = {deleted}")
    return list(pa.table(DeltaTable(folder).to_pyarrow_table()).to_pylist())


def written_iceberg(folder: Path, data: list[list[Row]], deleted: int, by: bool) -> Any:
    spec = {"spec": BY_P} if by else {}
    table = iceberg_tables.create(folder, ICEBERG, **spec)
    for rows in data:
        table.append(arrow(rows))
    if any(each["id"] == deleted for rows in data for each in rows):
        table.delete(f"id = {deleted}")
    return table


def changed(table: rs.Table, model: list[Row], doings: list[tuple[str, int]]) -> list[Row]:
    """Apply the steps to the table and to the model; return the model."""
    added = 0
    names = {"p": "p"}
    for doing, number in doings:
        match doing:
            case "append":
                rows = arrow([row(number, "new")]).to_pylist()
                rows[0] |= {f"n{i}": i for i in range(added)}
                data = arrow(rows).rename_columns(["id", names["p"], "ts"])
                for i in range(added):
                    data = data.append_column(f"n{i}", pa.array([i]))
                table.append(data)
                model += rows
            case "delete":
                table.delete(f"id < {number} AND id > {number - 9}")
                model = [each for each in model if not number - 9 < each["id"] < number]
            case "update":
                table.update({"ts": "NULL"}, where=f"id = {number} OR {names['p']} = 'b c'")
                for each in model:
                    if each["id"] == number or each["p"] == "b c":
                        each["ts"] = None
            case "compact":
                table.compact()
            case "add":
                table.add_column(f"n{added}", "int64", default=number)
                for each in model:
                    each[f"n{added}"] = number
                added += 1
            case "rename":
                new = f"p{number}"
                if new != names["p"]:
                    table.rename_column(names["p"], new)
                    names["p"] = new
            case "vacuum":
                table.vacuum(retain_last=1, grace_s=0)
                table.remove_orphans(grace_s=0)
    renamed = [{names.get(k, k): v for k, v in each.items()} for each in model]
    for condition, holds in (
        ("id = 20", lambda each: each["id"] == 20),
        (f"{names['p']} = 'é%'", lambda each: each["p"] == "é%"),
        (f"{names['p']} IS NULL", lambda each: each["p"] is None),
        ("ts IS NULL", lambda each: each["ts"] is None),
        (
            "ts < timestamptz '2020-01-05 00:00:00+00'",
            lambda each: each["ts"] is not None and each["ts"] < datetime(2020, 1, 5, tzinfo=UTC),
        ),
    ):
        expected = sum(1 for each in model if holds(each))
        assert table.scan(condition, pruning="soft").to_arrow().num_rows == expected
        assert table.count(condition) == expected, condition
    return renamed


def files_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@given(batches, steps, st.integers(0, 40), st.booleans(), st.sampled_from(("delta", "iceberg")))
@examples(30)
def test_imported_tables_change_as_their_model_does(
    data: list[list[Row]], doings: list[tuple[str, int]], deleted: int, by: bool, kind: str
) -> None:
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path) / "src é"
        if kind == "delta":
            model = written_delta(folder, data, deleted, by)
            table = rs.import_delta(folder, Path(path) / "t")
        else:
            source = written_iceberg(folder, data, deleted, by)
            model = source.scan().to_arrow().to_pylist()
            table = rs.import_iceberg(source, Path(path) / "t")
        before = files_of(folder)
        assert in_order(table.to_arrow().to_pylist()) == in_order(model)
        expected = changed(table, model, doings)
        opened = rs.open_table(Path(path) / "t")
        found = opened.to_arrow().select(list(expected[0])) if expected else opened.to_arrow()
        assert in_order(found.to_pylist()) == in_order(expected)
        assert files_of(folder) == before  # rule 15


def delta_with_vectors(folder: Path, gone: list[int]) -> None:
    folder.mkdir()
    files: list[dict[str, Any]] = []
    for name, ids in (("a b", range(100)), ("c", range(100, 110))):
        pq.write_table(pa.table({"id": ids}), folder / f"{name}.parquet", row_group_size=30)
        size = (folder / f"{name}.parquet").stat().st_size
        files.append({"path": f"{name.replace(' ', '%20')}.parquet", "size": size})
    files[0]["deletionVector"] = vector(gone)
    for file, count in zip(files, (100, 10), strict=True):
        file["stats"] = f'{{"numRecords": {count}}}'
    write_log(
        folder, [field("id", "long")], files, ["deletionVectors"],
        **{"delta.enableDeletionVectors": "true"},
    )  # fmt: skip


def test_deletion_vectors_become_our_own(tmp_path: Path) -> None:
    gone = [0, 29, 30, 31, 99]
    delta_with_vectors(tmp_path / "src", gone)
    table = rs.import_delta(tmp_path / "src", tmp_path / "t")
    left = [i for i in range(110) if i not in gone]
    assert sorted(table.to_arrow()["id"].to_pylist()) == left
    assert len(list((tmp_path / "t/data").glob("*.dv"))) == 1
    table.delete("id BETWEEN 28 AND 40")
    left = [i for i in left if not 28 <= i <= 40]
    assert sorted(rs.open_table(tmp_path / "t").to_arrow()["id"].to_pylist()) == left
    assert sorted(table.scan(version=0).to_arrow()["id"].to_pylist())[:2] == [1, 2]
    table.vacuum(retain_last=1, grace_s=0)
    table.compact()
    assert sorted(rs.open_table(tmp_path / "t").to_arrow()["id"].to_pylist()) == left
    with pytest.raises(UnsupportedOperation, match=r"1 files have deleted rows.*a%20b\.parquet"):
        rs.import_delta(tmp_path / "src", tmp_path / "k", ["id"])
    assert not (tmp_path / "k").exists()


def test_a_key_is_proved(tmp_path: Path) -> None:
    for start in (0, 10):
        rows = pa.table({"id": range(start, start + 10), "p": ["x"] * 10})
        write_deltalake(tmp_path / "src", rows, mode="append")
    table = rs.import_delta(tmp_path / "src", tmp_path / "t", ["id"])
    table.upsert(pa.table({"id": [3, 40], "p": ["new"] * 2}))
    table.delete("id = 12")
    assert table.count() == 20
    assert table.count("p = 'new'") == 2
    table.compact()
    assert rs.open_table(tmp_path / "t").scan("id = 3").to_arrow()["p"].to_pylist() == ["new"]
    write_deltalake(tmp_path / "src", rows, mode="append")
    with pytest.raises(KeyViolation, match="the files overlap"):
        rs.import_delta(tmp_path / "src", tmp_path / "u", ["id"])
    assert rs.import_delta(tmp_path / "src", tmp_path / "w", ["id"], version=1).count() == 20


def test_an_iceberg_table_keeps_its_ids(tmp_path: Path) -> None:
    source = written_iceberg(tmp_path / "src", [[row(1, "a")], [row(2, "b c")]], 99, by=False)
    with source.update_schema() as change:
        change.delete_column("p")
    with source.update_schema() as change:
        change.add_column("p", StringType())
    table = rs.import_iceberg(source, tmp_path / "t", ["id"])
    assert table.to_arrow()["p"].to_pylist() == [None, None]
    ids = {each.name: int(each.metadata[b"PARQUET:field_id"]) for each in table.schema}
    assert ids == {"id": 1, "ts": 3, "p": 4}
    table.add_column("n", "date", default=date(2020, 1, 1))
    assert int(table.schema.field("n").metadata[b"PARQUET:field_id"]) == 5
    table.upsert(pa.table({"id": [2], "p": ["x"], "ts": [None], "n": [None]}, table.schema))
    assert rs.open_table(tmp_path / "t").count("p = 'x' AND n IS NULL") == 1
    assert table.count("n = date '2020-01-01'") == 1
    with pytest.raises(VersionNotFound, match="import_iceberg"):
        rs.import_iceberg(source, tmp_path / "u", snapshot_id=7)


def test_places_that_are_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "src", pa.table({"id": [1]}))
    with pytest.raises(InvalidInput, match="whose vacuum would delete its files"):
        rs.import_delta(tmp_path / "src", tmp_path / "src/inside")
    with pytest.raises(InvalidInput, match="whose vacuum"):
        rs.import_delta(tmp_path / "src", tmp_path / "src")
    with pytest.raises(InvalidInput, match="lies in the folder of the table"):
        rs.import_delta(tmp_path / "src", tmp_path)
    with pytest.raises(NotFound, match="import_delta: there is no Delta table"):
        rs.import_delta(tmp_path / "none", tmp_path / "t")
    rs.import_delta(tmp_path / "src", tmp_path / "t")
    with pytest.raises(TableExists):
        rs.import_delta(tmp_path / "src", tmp_path / "t")
    DeltaTable(tmp_path / "src").delete()
    DeltaTable(tmp_path / "src").vacuum(0, dry_run=False, enforce_retention_duration=False)
    with pytest.raises(rs.errors.RowsieveError, match="parquet"):
        rs.open_table(tmp_path / "t").to_arrow()


def test_a_purged_table_leaves_the_files(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "src", pa.table({"id": [1]}))
    before = files_of(tmp_path / "src")
    catalog = rs.Catalog(tmp_path / "lake")
    rs.import_delta(tmp_path / "src", catalog.uri_of("db.t"))
    catalog.open_table("db.t").append(pa.table({"id": [2]}))
    catalog.drop_table("db.t", purge=True)
    assert files_of(tmp_path / "src") == before


@pytest.mark.spark
def test_spark_reads_and_changes_what_was_imported(spark: Any, tmp_path: Path) -> None:
    delta_with_vectors(tmp_path / "src", [0, 5])
    table = rs.import_delta(tmp_path / "src", tmp_path / "t")
    pq.write_table(pa.table({"id": [500, 501]}), tmp_path / "more.parquet", write_page_index=True)
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.register_table("db.t", str(tmp_path / "t"))
    catalog.call(f"CALL system.add_files('db', 't', '{tmp_path}/more.parquet')")
    table.refresh()
    table.delete("id = 501")
    expected = sorted({*range(110), 500} - {0, 5})
    assert sorted(row.id for row in table.to_spark(spark).collect()) == expected
    assert [row.id for row in table.to_spark(spark, where="id > 108").collect()] == [109, 500]
    table.write_spark(spark.createDataFrame([(7000,)], "id long"), "append")
    table.refresh()
    assert table.count("id = 7000") == 1
