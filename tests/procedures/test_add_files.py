"""Rows of foreign files, appended in one commit; and lists of parts in a checkpoint."""

from __future__ import annotations

from datetime import date
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
    NotFound,
    RowsieveError,
    SchemaMismatch,
    UnsupportedOperation,
)
from rowsieve.procedures.built_ins import placed_additions


@pytest.fixture
def catalog(tmp_path: Path) -> rs.Catalog:
    catalog = rs.Catalog(tmp_path / "lake")
    catalog.create_table("db.t", pa.schema([("id", pa.int64()), ("v", pa.string())]))
    return catalog


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    folder = tmp_path / "foreign"
    (folder / "deep").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1, 2], "v": ["a", None]}), folder / "one.parquet")
    pq.write_table(
        pa.table({"id": pa.array([3], pa.int32())}), folder / "deep" / "two.snappy.parquet"
    )
    (folder / "_SUCCESS").touch()
    return folder


def add(catalog: rs.Catalog, source: Path | str, name: str = "t", **options: Any) -> dict[str, Any]:
    given = "".join(f", {key} => {value!r}" for key, value in options.items())
    call = f"CALL system.add_files(table => 'db.{name}', source => '{source}'{given})"
    (row,) = catalog.call(call).to_pylist()
    return dict(row)


def copied(catalog: rs.Catalog, folder: Path, name: str = "t") -> dict[str, Any]:
    return add(catalog, folder, name, copy=True)


def placed(table: rs.Table) -> list[str]:
    return [path for path in table.files()["path"].to_pylist() if "://" in path]


def test_copied_files_are_added_once(catalog: rs.Catalog, foreign: Path) -> None:
    assert copied(catalog, foreign) == {
        "added_files_count": 2,
        "added_rows_count": 3,
        "version": 1,
    }
    table = catalog.open_table("db.t")
    assert sorted(table.scan().to_arrow().to_pylist(), key=repr) == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": None},
        {"id": 3, "v": None},
    ]
    assert copied(catalog, foreign) == {"added_files_count": 0, "added_rows_count": 0, "version": 1}
    pq.write_table(pa.table({"id": [4]}), foreign / "three.parquet")
    assert copied(catalog, foreign)["added_files_count"] == 3  # another set of files
    table.vacuum(retain_last=1, grace_s=0)
    assert len(list(foreign.rglob("*.parquet"))) == 3


def test_what_cannot_be_copied_is_refused(
    catalog: rs.Catalog, foreign: Path, tmp_path: Path
) -> None:
    catalog.create_table("db.keyed", pa.schema([("id", pa.int64())]), ["id"])
    with pytest.raises(UnsupportedOperation, match="call upsert"):
        copied(catalog, foreign, "keyed")
    with pytest.raises(NotFound, match=r"no \.parquet file"):
        copied(catalog, tmp_path / "lake" / "db")
    (foreign / "broken.parquet").write_bytes(b"PAR1 is not all of it")
    with pytest.raises(CorruptData, match=r"broken\.parquet.*nothing was committed"):
        copied(catalog, foreign)
    (foreign / "broken.parquet").unlink()
    pq.write_table(pa.table({"id": ["text"]}), foreign / "text.parquet")
    with pytest.raises(RowsieveError, match="id"):
        copied(catalog, foreign)
    pq.write_table(pa.table({"id": [1], "other": [1]}), foreign / "text.parquet")
    with pytest.raises(RowsieveError, match="other"):
        copied(catalog, foreign)
    assert catalog.open_table("db.t").version == 0


def test_list_of_parts_moves_into_one_checkpoint(catalog: rs.Catalog, tmp_path: Path) -> None:
    table = catalog.open_table("db.t")
    for i in range(5):
        table.append(pa.table({"id": [i], "v": [None]}, schema=table.schema))
    for _ in range(2):
        (row,) = catalog.call("CALL system.rewrite_manifests('db', 't')").to_pylist()
        assert row == {"parts": 5, "version": 5}
    assert (tmp_path / "lake/db/t/_rowsieve/checkpoints" / f"{5:020d}.json").exists()
    table.append(pa.table({"id": [9], "v": [None]}, schema=table.schema))
    assert catalog.open_table("db.t").scan().count() == 6
    (row,) = catalog.call("CALL system.set_current_snapshot('db', 't', 2)").to_pylist()
    assert row["version"] == 7
    assert catalog.open_table("db.t").scan().count() == 2


def test_files_are_added_in_place_once(catalog: rs.Catalog, foreign: Path) -> None:
    before = {path: path.read_bytes() for path in foreign.rglob("*.parquet")}
    done = {"added_files_count": 2, "added_rows_count": 3, "version": 1}
    assert add(catalog, foreign) == done
    table = catalog.open_table("db.t")
    expected = [{"id": 1, "v": "a"}, {"id": 2, "v": None}, {"id": 3, "v": None}]
    assert sorted(table.to_arrow().to_pylist(), key=repr) == expected
    assert len(placed(table)) == 2
    assert table.history()[0].operation == "append"
    assert add(catalog, foreign) == {**done, "added_files_count": 0, "added_rows_count": 0}
    assert copied_is_refused(catalog, foreign)
    pq.write_table(pa.table({"id": [4]}), foreign / "three.parquet")
    with pytest.raises(InvalidInput, match=r"2 of the 3 files already"):
        add(catalog, foreign)
    assert add(catalog, f"{foreign}/th*.parquet")["added_rows_count"] == 1
    table.refresh()
    table.delete("id = 1")
    table.update({"v": "'new'"}, where="id = 3")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [2, 3, 4]
    table.compact()
    assert placed(table) == []
    assert add(catalog, foreign / "three.parquet")["added_files_count"] == 0  # the same file
    table.vacuum(retain_last=1, grace_s=0)
    table.remove_orphans(grace_s=0)
    assert table.count("v = 'new'") == 1
    assert {path: path.read_bytes() for path in before} == before  # rule 15
    catalog.drop_table("db.t", purge=True)
    assert {path: path.read_bytes() for path in before} == before


def copied_is_refused(catalog: rs.Catalog, foreign: Path) -> bool:
    with pytest.raises(InvalidInput, match="rows would count twice"):
        copied(catalog, foreign)
    return True


def test_copied_files_are_not_added_in_place_too(catalog: rs.Catalog, foreign: Path) -> None:
    copied(catalog, foreign)
    assert add(catalog, foreign)["added_files_count"] == 0
    assert catalog.open_table("db.t").count() == 3


@pytest.mark.parametrize("copy", [False, True])
def test_a_file_that_was_replaced_is_another_one(
    copy: bool, catalog: rs.Catalog, tmp_path: Path
) -> None:
    folder = tmp_path / "daily"
    folder.mkdir()
    sizes = set()
    for number, ids in enumerate(([1, 2], [3, 4]), 1):  # of one size
        pq.write_table(pa.table({"id": ids}), folder / "a.parquet", compression="none")
        sizes.add((folder / "a.parquet").stat().st_size)
        for rows in (2, 0):
            assert add(catalog, folder, copy=copy)["added_rows_count"] == rows
        table = catalog.open_table("db.t")
        table.append(pa.table({"id": [9 * number], "v": ["own"]}))
        table.compact()  # has the rows, and no longer the file
    assert len(sizes) == 1
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 4, 9, 18]


def test_files_that_are_none_are_errors(catalog: rs.Catalog, tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(b"PAR1" + bytes(20) + b"\5\0\0\0PAR1")
    for copy in (False, True):
        with pytest.raises(CorruptData, match=r"a\.parquet"):
            add(catalog, folder, copy=copy)
    (folder / "a.parquet").unlink()
    (folder / "a.parquet").symlink_to(tmp_path / "nothing")
    with pytest.raises(NotFound, match="nothing does not exist"):
        add(catalog, folder)


def test_links_are_the_files_that_they_lead_to(catalog: rs.Catalog, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1]}), tmp_path / "a.parquet")
    links = tmp_path / "links"
    links.mkdir()
    (links / "one.parquet").symlink_to(tmp_path / "a.parquet")
    (links / "two.parquet").symlink_to(links / "one.parquet")
    assert add(catalog, links)["added_rows_count"] == 1
    (links / "two.parquet").unlink()
    pq.write_table(pa.table({"id": [2]}), links / "b.parquet")
    with pytest.raises(InvalidInput, match=r"has 1 of the 2 files already, such as .*/a\.parquet"):
        add(catalog, links)
    table = catalog.open_table("db.t")
    table.append(pa.table({"id": [3], "v": ["own"]}))
    own = next(Path(table.uri.removeprefix("file://")).glob("data/*.parquet"))
    (tmp_path / "own.parquet").symlink_to(own)
    with pytest.raises(InvalidInput, match="lies in the folder of the table"):
        add(catalog, f"{tmp_path}/o*.parquet")


def test_files_in_place_upsert_a_table_with_a_key(catalog: rs.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table(
        "db.k", pa.table({"id": [1, 5, 9], "v": ["a", "b", "c"]}), ["id"],
        properties={"visibility": "eager"},
    )  # fmt: skip
    for name, ids in (("x", [1, 2]), ("y", [5, 7])):
        rows = pa.table({"v": [f"{name}{i}" for i in ids], "id": pa.array(ids, pa.int32())})
        pq.write_table(rows, tmp_path / f"{name}.parquet")
    add(catalog, f"{tmp_path}/*.parquet", "k")
    table.refresh()
    assert table.scan(order_by_key=True).to_arrow().to_pydict() == {
        "id": [1, 2, 5, 7, 9],
        "v": ["x1", "x2", "y5", "y7", "c"],
    }
    assert table.count("v = 'a'") == 0
    table.upsert(pa.table({"id": [2], "v": ["newer"]}))
    assert table.scan("id = 2").to_arrow()["v"].to_pylist() == ["newer"]
    table.delete("id = 7")
    table.compact()
    assert table.to_arrow().num_rows == 4
    (tmp_path / "bad").mkdir()
    for name, ids in (("a", [10, 30]), ("b", [20, 40])):
        rows = pa.table({"v": ["z", "z"], "id": ids})
        pq.write_table(rows, tmp_path / f"bad/{name}.parquet")
    with pytest.raises(KeyViolation, match="the files overlap"):
        add(catalog, tmp_path / "bad", "k")
    assert table.refresh() == 4


def test_tasks_prove_their_keys_together(
    catalog: rs.Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placed_additions, "_TASK_FILES", 1)
    catalog.create_table("db.k", pa.schema([("id", pa.int64())]), ["id"])
    for name, ids in (("a", [1, 3]), ("b", [2, 4])):
        pq.write_table(pa.table({"id": ids}), tmp_path / f"{name}.parquet")
    with pytest.raises(KeyViolation, match="the files overlap"):
        add(catalog, f"{tmp_path}/*.parquet", "k")
    pq.write_table(pa.table({"id": [4, 5]}), tmp_path / "b.parquet")
    assert add(catalog, f"{tmp_path}/*.parquet", "k")["added_rows_count"] == 4


def test_directories_and_defaults_are_constants(catalog: rs.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("db.h", pa.schema({"id": pa.int64(), "day": pa.date32()}))
    table.add_column("w", "int64", default=7)
    table.set_default("w", 8)
    for day, rows in (("2024-01-01", {"id": [1]}), ("2024-01-02", {"id": [2], "w": [9]})):
        (tmp_path / f"h/day={day}").mkdir(parents=True)
        pq.write_table(pa.table(rows), tmp_path / f"h/day={day}/a.parquet")
    table.append(pa.table({"id": [0], "day": [date(2023, 1, 1)], "w": [1]}))
    add(catalog, tmp_path / "h", "h")
    table.refresh()
    table.add_column("later", "string", default="old")
    expected = [
        {"id": 0, "day": date(2023, 1, 1), "w": 1, "later": "old"},
        {"id": 1, "day": date(2024, 1, 1), "w": 8, "later": "old"},
        {"id": 2, "day": date(2024, 1, 2), "w": 9, "later": "old"},
    ]
    found = table.to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected
    for condition in ("w = 8", "w = 9", "w = 1", "later = 'old'", "day > date '2024-01-01'"):
        scan = table.scan(condition)
        soft = table.scan(condition, pruning="soft")
        assert scan.to_arrow().num_rows == soft.to_arrow().num_rows > 0
    assert table.count("w IS NULL") == 0
    table.rename_column("w", "wide")
    table.drop_column("day")
    table.compact()
    assert sorted(table.to_arrow()["wide"].to_pylist()) == [1, 8, 9]


def test_columns_in_place_are_found_by_field_id(catalog: rs.Catalog, tmp_path: Path) -> None:
    table = catalog.open_table("db.t")
    ids = [int(field.metadata[b"PARQUET:field_id"]) for field in table.schema]
    named = [
        pa.field(name, type_, metadata={"PARQUET:field_id": str(i)})
        for name, type_, i in zip("ba", (pa.string(), pa.int64()), reversed(ids), strict=True)
    ]
    rows = pa.table([["x"], [4]], schema=pa.schema(named))
    pq.write_table(rows, tmp_path / "ids.parquet")
    with pytest.raises(SchemaMismatch, match="no column for 'b' by its name"):
        add(catalog, tmp_path / "ids.parquet")
    add(catalog, tmp_path / "ids.parquet", match="field_id")
    assert catalog.open_table("db.t").to_arrow().to_pylist() == [{"id": 4, "v": "x"}]


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"id": ["text"]}, "does not fit the table"),
        ({"id": [1], "other": [1]}, "no column for 'other'"),
        ({"id": [2**40], "small": [2**40]}, "does not fit int32"),
        ({"id": [1], "small": pa.array([None], pa.int32())}, "NOT NULL in the table and NULL in 1"),
        ({"id": [1]}, "lacks the column 'small', which is NOT NULL"),
        ({"id": [1], "small": [1], "at": pa.array([1], pa.timestamp("ns"))}, "does not fit"),
    ],
)
def test_what_could_not_be_read_later_is_refused(
    columns: dict[str, Any], reason: str, catalog: rs.Catalog, tmp_path: Path
) -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int64()),
            pa.field("small", pa.int32(), nullable=False),
            pa.field("at", pa.timestamp("us")),
        ]
    )
    table = catalog.create_table("db.s", schema)
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(SchemaMismatch, match=reason):
        add(catalog, tmp_path / "a.parquet", "s")
    assert table.refresh() == 0
    pq.write_table(pa.table({"id": [1], "small": [5]}), tmp_path / "a.parquet")
    assert add(catalog, tmp_path / "a.parquet", "s")["added_rows_count"] == 1


def test_files_that_move_or_change_are_errors(catalog: rs.Catalog, foreign: Path) -> None:
    add(catalog, foreign)
    table = catalog.open_table("db.t")
    pq.write_table(pa.table({"id": [5], "v": ["b"]}), foreign / "one.parquet")
    with pytest.raises(CorruptData, match=r"one\.parquet"):
        table.to_arrow()
    (foreign / "one.parquet").rename(foreign / "moved.parquet")
    with pytest.raises(CorruptData, match=r"one\.parquet"):
        catalog.open_table("db.t").to_arrow()


def test_a_replaced_file_is_an_error_although_its_footer_is_cached(
    catalog: rs.Catalog, tmp_path: Path
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"id": [1, 2]}), path, compression="none")
    add(catalog, path)
    table = catalog.open_table("db.t")
    assert table.to_arrow()["id"].to_pylist() == [1, 2]
    size = path.stat().st_size
    pq.write_table(pa.table({"id": [3, 4]}), path, compression="none")
    assert path.stat().st_size == size
    with pytest.raises(CorruptData, match=r"a\.parquet"):
        table.to_arrow()


def test_changes_meanwhile_are_kept(catalog: rs.Catalog, foreign: Path) -> None:
    table, other = catalog.open_table("db.t"), catalog.open_table("db.t")
    base = other.handle.pinned
    how = placed_additions.Placing(str(foreign), hive=True, by_field_id=False)
    found = placed_additions.find(other, base, how)
    tasks = placed_additions.tasks_of(other, base, found, how)
    fragments = [placed_additions.place(task, {})[1] for task in tasks]
    parts = placed_additions.joined(fragments, base)
    table.append(pa.table({"id": [9], "v": ["mine"]}))
    table.set_properties({"isolation": "snapshot"})
    table.compact()
    with other.lease(version=base.version):  # as a call has
        table.expire_versions(retain_last=1)
        table.remove_orphans(grace_s=0)  # raises the floor of bases
    placed_additions.commit(other, base, parts, {}, ("add", 1), 0.0)
    assert sorted(other.to_arrow()["id"].to_pylist()) == [1, 2, 3, 9]
    assert other.handle.pinned.table.properties["isolation"] == "snapshot"
    with pytest.raises(InvalidInput, match="rows would count twice"):
        placed_additions.commit(other, base, parts, {}, ("add", 2), 0.0)
    table.refresh()
    changes = table.changes(base.version).read_all()
    assert sorted(changes["id"].to_pylist()) == [1, 2, 3, 9]


def test_a_folder_of_another_table_is_refused(catalog: rs.Catalog, tmp_path: Path) -> None:
    catalog.open_table("db.t").append(pa.table({"id": [1], "v": ["x"]}))
    with pytest.raises(UnsupportedOperation, match="a Rowsieve table"):
        add(catalog, tmp_path / "lake/db")
    with pytest.raises(InvalidInput, match="lies in the folder of the table"):
        add(catalog, f"{tmp_path}/lake/db/t/data/*.parquet")
    (tmp_path / "none").mkdir()
    with pytest.raises(NotFound, match="no Parquet file"):
        add(catalog, tmp_path / "none")
    with pytest.raises(InvalidInput, match="match is 'name' or 'field_id'"):
        add(catalog, tmp_path / "none", match="id")
