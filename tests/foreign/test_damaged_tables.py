"""Tables of Delta and Iceberg whose metadata or delete files are missing, damaged or unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField

import rowsieve as rs
from rowsieve.errors import CorruptData, NotFound, RowsieveError, UnsupportedOperation
from rowsieve.foreign import from_delta
from tests.foreign import iceberg_tables
from tests.foreign.test_from_delta import field, write_log

ROWS = pa.table({"id": range(6)})


def iceberg(folder: Path, delete: Path | None = None) -> Table:
    table = iceberg_tables.create(folder / "t", Schema(NestedField(1, "id", LongType())))
    table.append(ROWS)
    if delete is None:
        return table
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=delete.as_uri(),
        file_format=FileFormat.PARQUET, partition=Record(), record_count=1,
        file_size_in_bytes=delete.stat().st_size, _table_format_version=2,
    )  # fmt: skip
    file.spec_id = 0
    return iceberg_tables.with_delete_file(table, file)


def local(uri: str) -> Path:
    return Path(uri.removeprefix("file://"))


def manifests(table: Table) -> list[Path]:
    return [local(each.manifest_path) for each in table.current_snapshot().manifests(table.io)]


def manifest_list(table: Table) -> Path:
    return local(table.current_snapshot().manifest_list)


def data_file(table: Table) -> Path:
    (task,) = table.scan().plan_files()
    return local(task.file.file_path)


def without(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:60])


@pytest.mark.parametrize(
    ("named", "damage", "error"),
    [
        pytest.param(lambda t: manifests(t)[0], without, NotFound, id="a manifest is missing"),
        pytest.param(manifest_list, without, NotFound, id="the list is missing"),
        pytest.param(lambda t: manifests(t)[0], cut, UnsupportedOperation, id="a manifest is cut"),
        pytest.param(manifest_list, cut, UnsupportedOperation, id="the list is cut"),
        pytest.param(data_file, without, NotFound, id="a data file is missing"),
    ],
)
def test_an_iceberg_table_without_a_file_is_an_error_that_names_it(
    named: Callable[[Table], Path], damage: Callable[[Path], None], error: Any, tmp_path: Path
) -> None:
    table = iceberg(tmp_path)
    damage(named(table))
    calls: list[Callable[[Any], Any]] = [
        rs.from_iceberg,
        lambda t: rs.import_iceberg(t, tmp_path / "own"),
    ]
    for call in calls:
        with pytest.raises(
            error, match=r"from_iceberg: .*copy|names it, so restore it from a copy"
        ):
            call(table)


def positions(path: Path, columns: dict[str, list[Any]]) -> None:
    pq.write_table(pa.table(columns), path)


@pytest.mark.parametrize(
    ("write", "error", "text"),
    [
        pytest.param(lambda p: p.write_bytes(b"x" * 50), CorruptData, "d", id="not Parquet"),
        pytest.param(lambda p: positions(p, {"pos": [1]}), CorruptData, "d", id="no paths"),
        pytest.param(
            lambda p: positions(p, {"file_path": ["a"], "pos": ["x"]}), CorruptData, "d", id="text"
        ),
        pytest.param(
            lambda p: p.write_bytes(bytes(20) + b"\4\0\0\0PARE"),
            UnsupportedOperation,
            "d",
            id="secret",
        ),
        pytest.param(without, NotFound, "snapshot_id=", id="missing"),
    ],
)
def test_a_delete_file_that_cannot_be_read_is_an_error_that_names_it(
    write: Callable[[Path], Any], error: Any, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "d.parquet"
    path.write_bytes(b"x")
    table = iceberg(tmp_path, path)
    write(path)
    with pytest.raises(error, match=rf"from_iceberg: .*d\.parquet.*{text}"):
        rs.from_iceberg(table)


def test_a_version_whose_log_entries_are_gone_is_no_missing_table(tmp_path: Path) -> None:
    for _ in range(4):
        write_deltalake(tmp_path / "t", ROWS, mode="append")
    DeltaTable(tmp_path / "t").create_checkpoint()
    for number in range(2):
        (tmp_path / f"t/_delta_log/{number:020}.json").unlink()
    with pytest.raises(NotFound, match="has no version 1 that can be read"):
        rs.from_delta(tmp_path / "t", 1)
    assert rs.from_delta(tmp_path / "t").count() == 24


def hole(folder: Path) -> None:
    (folder / "_delta_log/00000000000000000001.json").unlink()


def nonsense(folder: Path) -> None:
    (folder / "_delta_log/00000000000000000002.json").write_text('{"add": nonsense')


@pytest.mark.parametrize("damage", [hole, nonsense])
def test_a_damaged_log_of_delta_is_an_error_of_one_line(
    damage: Callable[[Path], None], tmp_path: Path
) -> None:
    for _ in range(3):
        write_deltalake(tmp_path / "t", ROWS, mode="append")
    damage(tmp_path / "t")
    with pytest.raises(RowsieveError, match="else restore the log from a copy") as raised:
        rs.from_delta(tmp_path / "t")
    assert "\n" not in str(raised.value)


def test_a_data_file_that_the_log_of_delta_names_is_restored(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", ROWS)
    without(next((tmp_path / "t").glob("*.parquet")))
    with pytest.raises(NotFound, match="the log of the Delta table names it, so restore it"):
        rs.from_delta(tmp_path / "t")


def test_features_that_are_not_known_here_are_refused_whatever_deltalake_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    file = {"path": "a.parquet", "size": 1, "stats": json.dumps({"numRecords": 2})}
    file["size"] = (tmp_path / "a.parquet").stat().st_size
    write_log(tmp_path, [field("id", "long")], [file], ["timestampNtz"])
    assert rs.from_delta(tmp_path).count() == 2
    monkeypatch.setattr(from_delta, "_HONOURED", frozenset())
    calls: list[Callable[[Any], Any]] = [
        rs.from_delta,
        lambda p: rs.import_delta(p, tmp_path.with_suffix(".own")),
    ]
    for call in calls:
        with pytest.raises(UnsupportedOperation, match="needs the feature timestampNtz of Delta"):
            call(tmp_path)
