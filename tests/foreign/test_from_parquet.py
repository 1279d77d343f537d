"""Tables of files in place: read and changed like any table, and the files stay as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rowsieve as rs
from rowsieve.errors import (
    CorruptData,
    InvalidInput,
    KeyViolation,
    SchemaMismatch,
    TableExists,
    UnsupportedOperation,
)
from rowsieve.storage.manifests.manifest import FileRef
from tests.foreign import damaged


def rows_from(start: int, stop: int) -> pa.Table:
    ids = range(start, stop)
    return pa.table({"id": ids, "x": [i % 5 for i in ids], "s": [f"v{i}" for i in ids]})


def write_files(folder: Path, count: int = 3, size: int = 100) -> dict[Path, bytes]:
    folder.mkdir()
    for i in range(count):
        rows = rows_from(i * size, (i + 1) * size)
        pq.write_table(rows, folder / f"{i}.parquet", row_group_size=30)
    return {path: path.read_bytes() for path in folder.iterdir()}


def all_rows(table: rs.Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def test_a_table_without_a_key_is_changed_and_compacted_beside_the_files(tmp_path: Path) -> None:
    before = write_files(tmp_path / "files")
    table = rs.from_parquet(tmp_path / "files", tmp_path / "t")
    model = rows_from(0, 300).to_pylist()
    assert (all_rows(table), table.version, table.detail()["parts"]) == (model, 0, 3)
    table.append(rows_from(300, 310))
    table.delete("x = 3")
    table.update({"s": "'new'"}, where="id BETWEEN 95 AND 105")
    model = [row for row in model + rows_from(300, 310).to_pylist() if row["x"] != 3]
    for row in model:
        if 95 <= row["id"] <= 105:
            row["s"] = "new"
    for opened in (table, rs.open_table(tmp_path / "t")):
        assert all_rows(opened) == model
        assert opened.scan("id = 100 AND s = 'new'", pruning="soft").to_arrow().num_rows == 1
        assert opened.count("x = 3") == 0
    table.compact()
    assert all_rows(rs.open_table(tmp_path / "t")) == model
    paths = table.files()["path"].to_pylist()
    assert all(path.startswith("data/") for path in paths)
    assert all_rows(rs.open_table(tmp_path / "t", version=0)) == rows_from(0, 300).to_pylist()
    assert {path: path.read_bytes() for path in (tmp_path / "files").iterdir()} == before


def test_a_table_with_a_key_is_changed_and_compacted_beside_the_files(tmp_path: Path) -> None:
    before = write_files(tmp_path / "files")
    table = rs.from_parquet(f"{tmp_path}/files/*.parquet", tmp_path / "t", key=["id"])
    model = {row["id"]: row for row in rows_from(0, 300).to_pylist()}
    newer = pa.table({"id": [0, 99, 100, 299, 500], "x": [9] * 5, "s": ["up"] * 5})
    table.upsert(newer)
    table.delete("id BETWEEN 140 AND 160")
    model |= {row["id"]: row for row in newer.to_pylist()}
    model = {key: row for key, row in model.items() if not 140 <= key <= 160}
    expected = [model[key] for key in sorted(model)]
    for opened in (table, rs.open_table(tmp_path / "t")):
        assert all_rows(opened) == expected
        ordered = opened.scan("x = 9", order_by_key=True).to_arrow()
        assert ordered["id"].to_pylist() == [0, 99, 100, 299, 500]
        assert opened.scan("id = 150").to_arrow().num_rows == 0
        assert opened.scan("id > 290", pruning="soft").count() == 10
        assert opened.head(2)["s"].to_pylist() == ["up", "v1"]
    table.compact()
    assert all_rows(rs.open_table(tmp_path / "t")) == expected
    table.expire_versions(retain_last=1)
    table.remove_orphans(grace_s=0.0)
    assert all_rows(rs.open_table(tmp_path / "t")) == expected
    assert {path: path.read_bytes() for path in (tmp_path / "files").iterdir()} == before  # rule 15


def test_fields_inside_columns_change_as_in_other_tables(tmp_path: Path) -> None:
    rows = pa.table({"id": [1, 2], "s": [{"a": 1, "b": "x"}, None], "l": [[{"c": 1}], []]})
    pq.write_table(rows, tmp_path / "a.parquet")
    table = rs.from_parquet(tmp_path / "a.parquet", tmp_path / "t")
    table.drop_column("s.b")
    table.add_column("s.b", "string", default="new")
    table.rename_column("s.a", "z")
    table.rename_column("l.element.c", "d")
    opened = rs.open_table(tmp_path / "t")
    expected = [
        {"id": 1, "s": {"z": 1, "b": "new"}, "l": [{"d": 1}]},
        {"id": 2, "s": None, "l": []},
    ]
    assert opened.to_arrow().to_pylist() == expected
    assert opened.scan("(s).b = 'x'", pruning="soft").count() == 0
    assert opened.scan("(s).b = 'new'").count() == 1
    table.compact()
    assert rs.open_table(tmp_path / "t").to_arrow().to_pylist() == expected


def test_a_key_prunes_files(tmp_path: Path) -> None:
    write_files(tmp_path / "files", count=8)
    scan = rs.from_parquet(tmp_path / "files", tmp_path / "t", key=["id"]).scan("id = 555")
    assert scan.to_arrow()["s"].to_pylist() == ["v555"]
    assert scan.metrics.parts_pruned == 7


def test_directories_can_be_part_of_the_key(tmp_path: Path) -> None:
    for day in (1, 2):
        folder = tmp_path / f"files/day={day}"
        folder.mkdir(parents=True)
        pq.write_table(rows_from(0, 50), folder / "a.parquet")
    table = rs.from_parquet(tmp_path / "files", tmp_path / "t", key=["day", "id"])
    table.upsert(pa.table({"id": [7], "x": [0], "s": ["second"], "day": [2]}))
    found = rs.open_table(tmp_path / "t").scan("id = 7", order_by_key=True).to_arrow()
    assert found.select(["day", "s"]).to_pylist() == [
        {"day": 1, "s": "v7"},
        {"day": 2, "s": "second"},
    ]
    assert table.scan("day = 2 AND id < 10").count() == 10


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ([[1, 3, 2]], r"0\.parquet is not sorted by the key"),
        ([[1, 2, 2]], r"0\.parquet has a key twice"),
        ([[1, None]], "the key column 'id' has a NULL"),
        ([[1, 5], [5, 6]], r"0\.parquet go up to 5.*1\.parquet begin at 5"),
        ([[1, 5], [2, 3]], "the files overlap"),
    ],
)
def test_a_key_that_does_not_hold_is_refused(
    files: list[list[int | None]], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "files").mkdir()
    for i, ids in enumerate(files):
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        pq.write_table(rows, tmp_path / f"files/{i}.parquet", row_group_size=2)
    with pytest.raises(KeyViolation, match=reason):
        rs.from_parquet(tmp_path / "files", tmp_path / "t", key=["id"])
    assert not (tmp_path / "t").exists()
    assert rs.from_parquet(tmp_path / "files", tmp_path / "t").count() == sum(map(len, files))


def test_floats_are_no_keys_in_place(tmp_path: Path) -> None:
    pq.write_table(pa.table({"f": [-0.0]}), tmp_path / "a.parquet")
    with pytest.raises(UnsupportedOperation, match="several stored forms"):
        rs.from_parquet(tmp_path / "a.parquet", tmp_path / "t", key=["f"])


def test_columns_change_as_in_other_tables(tmp_path: Path) -> None:
    write_files(tmp_path / "files", count=2, size=10)
    table = rs.from_parquet(tmp_path / "files", tmp_path / "t", key=["id"])
    table.drop_column("x")
    table.add_column("x", "int64", default=50)
    table.rename_column("s", "text")
    table.upsert(pa.table({"id": [3], "text": ["b"], "x": [5]}))
    assert table.count("x = 5") == 1
    assert table.count("x = 50") == 19
    assert table.scan("text = 'v7' AND x = 50", pruning="soft").to_arrow()["id"].to_pylist() == [7]
    table.delete("x = 5")
    assert table.count() == 19
    table.compact()
    assert rs.open_table(tmp_path / "t").count("x = 50") == 19


def test_columns_are_matched_by_field_id_if_asked(tmp_path: Path) -> None:
    def with_ids(data: pa.Table, ids: list[int]) -> pa.Table:
        fields = [
            field.with_metadata({"PARQUET:field_id": str(i)})
            for field, i in zip(data.schema, ids, strict=True)
        ]
        return data.cast(pa.schema(fields))

    pq.write_table(with_ids(pa.table({"a": [1], "b": [2]}), [4, 7]), tmp_path / "1.parquet")
    pq.write_table(with_ids(pa.table({"b": [3], "c": [4]}), [4, 7]), tmp_path / "2.parquet")
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    by_id = rs.from_parquet(files, tmp_path / "t", match="field_id")
    assert by_id.to_arrow().to_pylist() == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    by_name = rs.from_parquet(files, tmp_path / "u")
    assert by_name.to_arrow().to_pylist() == [
        {"a": 1, "b": 2, "c": None},
        {"a": None, "b": 3, "c": 4},
    ]
    pq.write_table(pa.table({"a": [1]}), tmp_path / "3.parquet")
    with pytest.raises(SchemaMismatch, match="no field id"):
        rs.from_parquet([*files, tmp_path / "3.parquet"], tmp_path / "v", match="field_id")


def test_places_that_a_table_cannot_have_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "files")
    with pytest.raises(InvalidInput, match="lies in the folder of the table"):
        rs.from_parquet(tmp_path / "files", tmp_path)
    with pytest.raises(InvalidInput, match="the table in memory"):
        rs.from_parquet(tmp_path / "files", "memory:///placed")
    rs.from_parquet(tmp_path / "files", tmp_path / "t")
    with pytest.raises(TableExists):
        rs.from_parquet(tmp_path / "files", tmp_path / "t")


def test_files_that_were_changed_or_removed_are_errors(tmp_path: Path) -> None:
    write_files(tmp_path / "files")
    table = rs.from_parquet(tmp_path / "files", tmp_path / "t")
    pq.write_table(rows_from(100, 199), tmp_path / "files/1.parquet")
    with pytest.raises(CorruptData, match=r"1\.parquet"):
        table.to_arrow()
    (tmp_path / "files/1.parquet").unlink()
    with pytest.raises(CorruptData, match=r"is missing: .*1\.parquet"):
        rs.open_table(tmp_path / "t").to_arrow()
    assert rs.open_table(tmp_path / "t").scan("id < 100").count() == 100


def test_statistics_of_a_file_that_is_damaged_later_are_never_read(tmp_path: Path) -> None:
    write_files(tmp_path / "files", count=1)
    table = rs.from_parquet(tmp_path / "files", tmp_path / "t")
    damaged.set_statistics(tmp_path / "files/0.parquet", 0, None)
    with pytest.raises(CorruptData):
        table.scan("id = 5").to_arrow()


def test_files_in_place_are_not_owned_through_checkpoints(tmp_path: Path) -> None:  # rule 15
    write_files(tmp_path / "files", count=2)
    table = rs.from_parquet(
        tmp_path / "files", tmp_path / "t", properties={"checkpoint_interval": "2"}
    )
    for i in range(4):
        table.append(rows_from(1000 + i, 1001 + i))
    parts = rs.open_table(tmp_path / "t").handle.pinned.parts
    refs = [ref for ref in parts.files("data") if isinstance(ref, FileRef)]
    placed = [ref.path for ref in refs if not ref.owned]
    assert sorted(placed) == [
        (tmp_path / f"files/{i}.parquet").resolve().as_uri() for i in range(2)
    ]
    assert all(ref.is_valid for ref in refs)
    assert rs.open_table(tmp_path / "t").count() == 204


def test_an_older_version_of_the_code_refuses_the_table(tmp_path: Path) -> None:
    write_files(tmp_path / "files", count=1)
    table = rs.from_parquet(tmp_path / "files", tmp_path / "t")
    assert table.handle.pinned.table.features == ("placed_files",)
