"""A publication whose files have another place now is refused; none loses rows."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.table import StaticTable

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation
from rowsieve.publication.delta import log_state
from rowsieve.publication.iceberg import table_metadata
from rowsieve.retention.published_files import Format

FORMATS: tuple[Format, ...] = ("iceberg", "delta")


def kv(*keys: int) -> pa.Table:
    return pa.table({"k": list(keys), "v": [key * 10 for key in keys]})


def new_table(folder: Path) -> rs.Table:
    """A table of two parts, so that a later commit leaves one untouched."""
    table = rs.create_table(folder, kv(1, 2), key=["k"])
    table.upsert(kv(11, 12))
    return table


def keys_of(place: Path, format_: Format) -> list[int]:
    """The keys that a reader of the format reads."""
    if format_ == "delta":
        query = QueryBuilder().register("t", DeltaTable(place))
        rows = pa.table(query.execute("SELECT k FROM t"))
    else:
        number = (place / "metadata/version-hint.text").read_text()
        metadata = StaticTable.from_metadata(f"{place}/metadata/v{number}.metadata.json")
        rows = metadata.scan().to_arrow()
    return sorted(rows["k"].to_pylist())


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("act", [shutil.move, shutil.copytree])
def test_a_table_that_was_moved_is_published_anew(
    format_: Format, act: Any, tmp_path: Path
) -> None:
    place = tmp_path / "lake"
    new_table(tmp_path / "before").publish(format_, place)
    act(str(tmp_path / "before"), str(tmp_path / "after"))
    table = rs.open_table(tmp_path / "after")
    for keys in ((1, 2, 11, 12), (1, 2, 11, 12, 21)):  # the version that is published, and a later
        if len(keys) == 5:
            table.upsert(kv(21))
        with pytest.raises(UnsupportedOperation, match=r"before.* moved or copied.* unpublish"):
            table.publish(format_, place)
    table.unpublish(format_, place)
    table.publish(format_, place)
    assert keys_of(place, format_) == [1, 2, 11, 12, 21]


def test_metadata_of_iceberg_is_not_moved_with_its_table(tmp_path: Path) -> None:
    new_table(tmp_path / "before").publish("iceberg")
    table = rs.open_table(shutil.move(tmp_path / "before", tmp_path / "after"))
    with pytest.raises(UnsupportedOperation, match="moved or copied"):
        table.publish("iceberg")
    table.unpublish("iceberg")
    table.publish("iceberg")
    assert keys_of(tmp_path / "after", "iceberg") == [1, 2, 11, 12]


def test_a_log_of_delta_moves_with_its_table(tmp_path: Path) -> None:
    new_table(tmp_path / "before").publish("delta")
    table = rs.open_table(shutil.move(tmp_path / "before", tmp_path / "after"))
    table.upsert(kv(2, 21))
    table.publish("delta", table.uri)  # the same folder
    assert keys_of(tmp_path / "after", "delta") == [1, 2, 11, 12, 21]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_table_of_a_database_is_published_where_its_files_stay(
    format_: Format, tmp_path: Path
) -> None:
    table = new_table(tmp_path / "t")
    database = rs.Database(tmp_path / "db")
    places = (None, tmp_path / "lake")
    for move in (
        None,
        lambda: database.move_in("x", tmp_path / "t"),
        lambda: database.move_out("x"),
    ):
        table = table if move is None else move()
        for keys in ((1, 2, 11, 12), (1, 2, 11, 12, 21)):
            if 21 in keys:
                table.upsert(kv(21))
            else:
                table.delete("k = 21")
            for place in places:
                table.publish(format_, place)
                assert keys_of(place or tmp_path / "t", format_) == list(keys)
    holds = list((tmp_path / "t/_rowsieve/leases").iterdir())
    assert len(holds) == len(places)  # one for each place, whatever the table was called


@pytest.mark.parametrize("format_", FORMATS)
def test_publications_that_do_not_say_where_files_are_are_compared_whole(
    format_: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:  # a release that did not write it
        for module in (log_state, table_metadata):
            earlier.setattr(module, "FILES", "unknown")
        earlier.setattr("rowsieve.publication.delta.publish_log.FILES", "unknown")
        new_table(tmp_path / "before").publish(format_, tmp_path / "lake")
    table = rs.open_table(shutil.move(tmp_path / "before", tmp_path / "after"))
    table.upsert(kv(2, 21))
    table.publish(format_, tmp_path / "lake")
    assert keys_of(tmp_path / "lake", format_) == [1, 2, 11, 12, 21]


@pytest.mark.parametrize("format_", FORMATS)
def test_files_that_another_folder_publishes_are_not_purged(
    format_: Format, tmp_path: Path
) -> None:
    catalog = rs.Catalog(tmp_path / "catalog")
    table = catalog.create_table("db.t", kv(1, 2), key=["k"])
    table.publish(format_)  # goes with the table
    table.publish(format_, tmp_path / "lake")
    with pytest.raises(UnsupportedOperation, match=r"published in .*lake.* unpublish"):
        catalog.drop_table("db.t", purge=True)
    assert keys_of(tmp_path / "lake", format_) == [1, 2]
    catalog.open_table("db.t").unpublish(format_, tmp_path / "lake")
    catalog.drop_table("db.t", purge=True)
    assert not [each for each in Path(table.uri[7:]).rglob("*") if each.is_file()]


@pytest.mark.parametrize("purge", [False, True])
def test_a_database_keeps_a_table_that_another_folder_publishes(
    purge: bool, tmp_path: Path
) -> None:
    database = rs.Database(tmp_path / "db")
    table = database.create_table("t", kv(1, 2), key=["k"])
    table.publish("iceberg", tmp_path / "lake")
    with pytest.raises(UnsupportedOperation, match=r"published in .*lake"):
        database.drop_table("t", purge=purge)
    assert database.open_table("t").count() == 2
    table.unpublish("iceberg", tmp_path / "lake")
    database.drop_table("t", purge=purge)
