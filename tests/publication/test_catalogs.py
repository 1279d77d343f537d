"""A publication is put into catalogs of Iceberg, whose readers see the version of the table."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.catalog.sql import SqlCatalog

import rowsieve as rs
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    NotFound,
    StoreError,
    UnsupportedOperation,
)
from tests.publication.rest_catalog import RestServer, rest_catalog

NAME = "db.places"
ROWS = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})


class Opened(NamedTuple):
    """A catalog with the namespace `db`; `server` is that of a REST catalog."""

    catalog: Catalog
    server: RestServer | None


def sql_catalog(folder: Path) -> SqlCatalog:
    catalog = SqlCatalog("sql", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}")
    catalog.create_namespace_if_not_exists("db")
    return catalog


@pytest.fixture(params=["sql", "rest"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    if request.param == "sql":
        catalog = sql_catalog(tmp_path)
        yield Opened(catalog, None)
        catalog.engine.dispose()
        return
    with rest_catalog() as (server, rest):
        yield Opened(rest, server)
        rest._session.close()


def rows_in(catalog: Catalog, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    return in_order(catalog.load_table(NAME).scan(snapshot_id=snapshot_id).to_arrow())


def in_order(rows: pa.Table) -> list[dict[str, Any]]:
    return rows.sort_by("id").to_pylist()  # type: ignore[no-any-return]


def test_every_publication_is_the_newest_snapshot_of_the_catalog(
    opened: Opened, tmp_path: Path
) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    versions = {}

    def publish() -> None:
        published = table.publish("iceberg", catalog=opened.catalog, name=NAME)
        theirs = opened.catalog.load_table(NAME)
        assert theirs.metadata_location == published.metadata_location
        assert theirs.metadata.current_snapshot_id == published.snapshot_id
        assert published.snapshot_id is not None
        versions[published.snapshot_id] = in_order(table.scan().to_arrow())
        for snapshot_id, rows in versions.items():  # by the schema that it had
            assert rows_in(opened.catalog, snapshot_id) == rows

    publish()
    publish()  # nothing new
    table.upsert({"id": [2], "name": ["B"]})
    publish()
    table.add_column("n", "int64")
    table.upsert({"id": [7], "name": ["x"], "n": [1]})
    table.publish("iceberg")  # not in the catalog: the next one brings it
    missed = table.version
    table.rename_column("name", "title")
    table.delete("id = 1")
    publish()
    summaries = [each.summary for each in opened.catalog.load_table(NAME).snapshots()]
    assert str(missed) in [each["rowsieve.version"] for each in summaries if each is not None]
    table.drop_column("n")
    publish()
    assert rows_in(opened.catalog)[0] == {"id": 2, "title": "B"}


def test_tags_and_expired_snapshots_follow(opened: Opened, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    table.tag("first", version=0)
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    assert set(opened.catalog.load_table(NAME).refs()) == {"main", "first"}
    table.drop_tag("first")
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    table.upsert({"id": [2], "name": ["B"]})
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    table.expire_versions(retain_last=1)
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    theirs = opened.catalog.load_table(NAME)
    assert set(theirs.refs()) == {"main"}
    assert len(theirs.snapshots()) <= 2  # the one before is held until this one is there
    assert rows_in(opened.catalog) == in_order(table.scan().to_arrow())


def test_a_snapshot_of_another_writer_is_not_replaced(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    other = rs.create_table(tmp_path / "other", ROWS, key=["id"])
    catalog = sql_catalog(tmp_path)
    other.publish("iceberg", catalog=catalog, name=NAME)
    with pytest.raises(UnsupportedOperation, match="another table, or another writer"):
        table.publish("iceberg", catalog=catalog, name=NAME)
    foreign = catalog.create_table("db.foreign", ROWS.schema)
    foreign.append(ROWS)
    with pytest.raises(UnsupportedOperation, match=r"'db\.foreign' .* another writer"):
        table.publish("iceberg", catalog=catalog, name="db.foreign")
    assert len(foreign.scan().to_arrow()) == 3
    catalog.engine.dispose()


def test_of_two_publications_the_newer_one_stays(tmp_path: Path) -> None:
    with rest_catalog() as (server, catalog):
        table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
        table.publish("iceberg", catalog=catalog, name=NAME)
        table.upsert({"id": [4], "name": ["d"]})
        newer = rs.open_table(tmp_path / "t")

        def publish_newer() -> None:
            newer.upsert({"id": [5], "name": ["e"]})
            newer.publish("iceberg", catalog=catalog, name=NAME)

        server.others = [publish_newer]
        with pytest.raises(UnsupportedOperation, match="has version 2 already, and version 1"):
            table.publish("iceberg", catalog=catalog, name=NAME)
        assert [row["id"] for row in rows_in(catalog)] == [1, 2, 3, 4, 5]
        catalog._session.close()


def test_a_catalog_follows_one_publication(opened: Opened, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    for number in range(4, 7):
        table.publish("iceberg", tmp_path / "a", catalog=opened.catalog, name=NAME)
        table.upsert({"id": [number], "name": ["n"]})
    for _ in range(2):  # this version, and the next one
        rows = rows_in(opened.catalog)
        if opened.server is None:  # another metadata file takes the place of the one before
            table.publish("iceberg", tmp_path / "b", catalog=opened.catalog, name=NAME)
            assert rows_in(opened.catalog) == in_order(table.to_arrow())
        else:
            with pytest.raises(UnsupportedOperation, match=r"another publication .* in .*/a"):
                table.publish("iceberg", tmp_path / "b", catalog=opened.catalog, name=NAME)
            assert rows_in(opened.catalog) == rows
        table.publish("iceberg", tmp_path / "a", catalog=opened.catalog, name=NAME)
        assert rows_in(opened.catalog) == in_order(table.to_arrow())
        table.upsert({"id": [7], "name": ["n"]})


def test_a_publication_that_begins_anew_is_no_snapshot_of_the_catalog(tmp_path: Path) -> None:
    with rest_catalog() as (server, catalog):
        table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
        kept = tmp_path / "kept"
        for _ in range(3):
            table.publish("iceberg", catalog=catalog, name=NAME)
            table.upsert({"id": [4], "name": ["n"]})
        shutil.copytree(tmp_path / "t" / "metadata" / "catalog", kept)
        table.unpublish("iceberg")
        shutil.copytree(kept, tmp_path / "t" / "metadata" / "catalog", dirs_exist_ok=True)
        with pytest.raises(UnsupportedOperation, match=r"deleted since; .* drop the name"):
            table.publish("iceberg", catalog=catalog, name=NAME)
        server.places.clear()
        table.publish("iceberg", catalog=catalog, name=NAME)
        assert rows_in(catalog) == in_order(table.to_arrow())
        catalog._session.close()


def test_the_version_that_a_catalog_names_is_kept(opened: Opened, tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    table.overwrite(pa.table({"id": [9], "name": ["z"]}))
    table.publish("iceberg")  # the catalog does not know it
    table.vacuum(retain_last=1)
    assert rows_in(opened.catalog) == ROWS.to_pylist()
    table.publish("iceberg", catalog=opened.catalog, name=NAME)
    files = len(list((tmp_path / "t" / "data").iterdir()))
    table.vacuum(retain_last=1)
    assert len(list((tmp_path / "t" / "data").iterdir())) < files
    assert rows_in(opened.catalog) == [{"id": 9, "name": "z"}]
    table.unpublish("iceberg")
    assert not list((tmp_path / "t" / "_rowsieve" / "leases").iterdir())


def test_an_answer_that_is_lost_is_asked_for_again(tmp_path: Path) -> None:
    with rest_catalog() as (server, catalog):
        table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
        table.publish("iceberg", catalog=catalog, name=NAME)
        table.upsert({"id": [4], "name": ["d"]})
        server.lost_answers = 1
        published = table.publish("iceberg", catalog=catalog, name=NAME)
        assert published.metadata_location == server.places["places"]
        assert server.commits == 1
        catalog._session.close()


def test_a_catalog_that_fails_is_a_store_error(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    with rest_catalog() as (_, catalog):
        table.publish("iceberg", catalog=catalog, name=NAME)
    table.upsert({"id": [4], "name": ["d"]})
    with pytest.raises(StoreError, match="the catalog failed with ConnectionError"):
        table.publish("iceberg", catalog=catalog, name=NAME)
    catalog._session.close()


def test_a_catalog_that_always_moves_on_is_a_conflict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    catalog = sql_catalog(tmp_path)
    table.publish("iceberg", catalog=catalog, name=NAME)
    table.upsert({"id": [4], "name": ["d"]})
    before = catalog.load_table(NAME)
    table.publish("iceberg", catalog=catalog, name=NAME)
    table.upsert({"id": [5], "name": ["e"]})
    monkeypatch.setattr(catalog, "load_table", lambda _: before)  # stale each time
    with pytest.raises(CommitConflict, match="5 times; call it again"):
        table.publish("iceberg", catalog=catalog, name=NAME)
    catalog.engine.dispose()


def test_a_catalog_is_opened_by_its_properties(tmp_path: Path) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    catalog = sql_catalog(tmp_path)
    place = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "name": "sql"}
    table.publish("iceberg", catalog=place, name=NAME)
    assert rows_in(catalog) == ROWS.to_pylist()
    with pytest.raises(NotFound, match=r"no namespace for 'nowhere\.t'; create it first"):
        table.publish("iceberg", catalog=catalog, name="nowhere.t")
    catalog.engine.dispose()


@pytest.mark.parametrize(
    ("format_", "arguments", "message"),
    [
        ("iceberg", {"name": NAME}, "give catalog="),
        ("iceberg", {"catalog": "c"}, "give name="),
        ("delta", {"catalog": "c", "name": NAME}, "no delta tables"),
        ("iceberg", {"catalog": "c", "name": "places"}, "give a namespace and a name"),
        ("iceberg", {"catalog": "c", "name": "db."}, "give a namespace and a name"),
        ("iceberg", {"catalog": 3, "name": NAME}, "catalog is int; give a catalog of pyiceberg"),
        ("iceberg", {"catalog": {"type": "no"}, "name": NAME}, "cannot open the catalog"),
    ],
)
def test_what_is_no_catalog_is_refused_before_anything_is_written(
    tmp_path: Path, format_: Any, arguments: dict[str, Any], message: str
) -> None:
    table = rs.create_table(tmp_path / "t", ROWS, key=["id"])
    with pytest.raises(InvalidInput, match=message):
        table.publish(format_, **arguments)
    assert not (tmp_path / "t" / "metadata").exists()
