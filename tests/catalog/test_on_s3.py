"""A catalog in a bucket: names, concurrent creates, and calls, as several clients see them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import RowsieveError, TableExists, TableNotFound
from tests.stores.s3_server import S3

ONE = pa.table({"id": [1], "v": [1]})


@pytest.fixture
def uri(s3: S3) -> str:
    return s3.fresh_uri()


def client(s3: S3, uri: str) -> rs.Catalog:
    return rs.Catalog(uri, storage_options=s3.options)


def test_names_and_properties_are_what_the_last_commit_says_to_every_client(
    s3: S3, uri: str
) -> None:
    one, other = client(s3, uri), client(s3, uri)
    one.set_properties({"target_part_bytes": "5000000"})
    one.create_table("db.t", ONE, ["id"])
    assert other.tables() == ["db.t"]
    assert other.open_table("db.t").detail()["properties"]["target_part_bytes"] == "5000000"
    other.rename_table("db.t", "db.u")
    with pytest.raises(TableNotFound):
        one.open_table("db.t")
    assert one.open_table("db.u").count() == 1
    one.drop_table("db.u", purge=True)
    assert other.tables() == []
    other.create_table("db.u", ONE)
    assert one.open_table("db.u").key == ()


def test_of_clients_that_create_one_name_one_succeeds(s3: S3, uri: str) -> None:
    def create(number: int) -> bool:
        try:
            client(s3, uri).create_table("db.t", pa.table({"id": [number]}), ["id"])
        except TableExists:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(create, range(4)))
    assert made.count(True) == 1
    found = client(s3, uri).open_table("db.t").scan().to_arrow().column("id").to_pylist()
    assert found == [made.index(True)]


def test_calls_run_on_tables_in_the_bucket(s3: S3, uri: str) -> None:
    catalog = client(s3, uri)
    table = catalog.create_table("db.t", ONE, ["id"])
    for v in range(2, 6):
        table.upsert(pa.table({"id": [1, v], "v": [v, v]}))
    (row,) = catalog.call("CALL system.rewrite_data_files('db', 't')").to_pylist()
    assert row["rewritten_data_files_count"] == 5
    catalog.call("CALL system.vacuum('db', 't', retain_last => 1, grace_s => 0)")
    rows = catalog.open_table("db.t").scan(order_by_key=True).to_arrow()
    assert rows.column("v").to_pylist() == [5, 2, 3, 4, 5]
    catalog.call(f"CALL system.register_table('db', 'again', '{table.uri}')")
    assert client(s3, uri).open_table("db.again").count() == 5
    with pytest.raises(RowsieveError, match="not the catalog's to delete"):
        catalog.drop_table("db.again", purge=True)
