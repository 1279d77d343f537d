"""Tables of Spark's own catalog: CREATE TABLE … USING rowsieve, and views of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import RowsieveError
from tests.profiles import IS_DEEP

pytest.importorskip("pyspark")

from rowsieve.providers.spark.source import RowsieveSource

pytestmark = pytest.mark.spark
PLACE = "t é+#? x"


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    """Version 0 has the ids 0 to 2, version 1 the ids 0 to 4."""
    rows = pa.table({"id": [0, 1, 2], "s": ["a", "b", None]})
    table = rs.create_table(str(tmp_path / PLACE), rows, key=["id"])
    table.upsert(pa.table({"id": [3, 4], "s": ["c", "d"]}))
    return table


@pytest.fixture
def database(spark: Any) -> Iterator[str]:
    """A database of Spark's catalog, which is dropped with all that is in it."""
    spark.sql("CREATE DATABASE kept")
    yield "kept"
    spark.sql("DROP DATABASE kept CASCADE")


def ids(spark: Any, query: str) -> list[int]:
    return sorted(row[0] for row in spark.sql(query).collect())


def test_a_table_of_the_catalog_keeps_path_and_version(
    spark: Any, database: str, table: rs.Table, tmp_path: Path
) -> None:
    path = str(tmp_path / PLACE)
    places = {"a": f"OPTIONS (path 'file:{path}')", "b": f"LOCATION '{path}'"}
    for name, place in places.items():
        spark.sql(f"CREATE TABLE {database}.{name} USING rowsieve {place}")
    spark.sql(f"CREATE VIEW {database}.seen AS SELECT * FROM {database}.a WHERE s <> 'a'")
    options = f"path '{path}', versionAsOf '0', where 'id > 0', columns 's,id'"
    spark.sql(f"CREATE TABLE {database}.old USING rowsieve OPTIONS ({options})")
    table.delete("id > 0")
    assert ids(spark, f"SELECT x.id FROM {database}.a x JOIN {database}.b y USING (id)") == [
        *range(5)
    ]
    assert ids(spark, f"SELECT * FROM {database}.seen") == [1, 3, 4]
    old = spark.table(f"{database}.old").orderBy("id").collect()
    assert [tuple(row) for row in old] == [("b", 1), (None, 2)]
    spark.sql(f"DROP TABLE {database}.a PURGE")
    spark.sql(f"DROP TABLE {database}.b")
    assert table.refresh() == 2  # its files are still there
    assert table.scan().count() == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "nothing was created; add OPTIONS"),
        ({"path": "file:/a%20b"}, "nothing was created; give the plain path"),
        ({"option.storage.key": "x"}, "nothing was created; give them"),
        ({"option.readChangeFeed": "true"}, "nothing was created; for"),
        ({"option.where": "s > now()"}, "nothing was created; put it"),
        ({"option.where": "x > 1"}, "no column 'x'"),
        ({"option.colums": "id"}, "did you mean 'columns'"),
        ({"path": "file:/nowhere"}, "no table at"),
    ],
)
def test_what_create_table_refuses(
    table: rs.Table, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    """The options are those that Spark gives; other TBLPROPERTIES have no prefix."""
    own = {"owner": "root", "provider": "rowsieve", "columns": "of TBLPROPERTIES"}
    path = {"path": f"file:{tmp_path / PLACE}"} if options else {}
    assert len(RowsieveSource({**own, "path": f"file:{tmp_path / PLACE}"}).schema()) == 2
    with pytest.raises(RowsieveError, match=message):
        RowsieveSource({**own, **path, **options}).schema()
    assert table.refresh() == 1


@pytest.mark.skipif(not IS_DEEP, reason="ten statements of Spark's")
def test_what_a_table_of_the_catalog_refuses(
    spark: Any, database: str, table: rs.Table, tmp_path: Path
) -> None:
    made, place = f"{database}.made", tmp_path / PLACE
    spark.sql(f"CREATE TABLE {database}.typed (id BIGINT) USING rowsieve LOCATION '{place}'")
    with pytest.raises(Exception, match=r"CREATE TABLE with columns made it.*DROP TABLE removes"):
        spark.table(f"{database}.typed").collect()
    spark.sql(f"CREATE TABLE {made} USING rowsieve OPTIONS (path '{place}')")
    for statement in (
        f"INSERT INTO {made} VALUES (7, 'x')",
        f"CREATE TABLE {database}.other USING rowsieve LOCATION '{place}' AS SELECT 1 id",
    ):
        with pytest.raises(Exception, match="by which tables are only read"):
            spark.sql(statement)
    assert not spark.catalog.tableExists(f"{database}.other")
    spark.catalog.createTable(f"{database}.c", path=str(place), source="rowsieve")
    assert ids(spark, f"SELECT * FROM {database}.c") == [0, 1, 2, 3, 4]
    rows = table.to_arrow()
    place.rename(tmp_path / "before")
    other = rs.create_table(str(place), rows, key=["id"])
    other.delete("id = 0")
    with pytest.raises(Exception, match=r"SnapshotExpired: .* was replaced by another one"):
        spark.table(made).collect()
    spark.sql(f"ALTER TABLE {made} ADD COLUMN more INT")
    place.rename(tmp_path / "other")
    (tmp_path / "before").rename(place)
    with pytest.raises(Exception, match=r"SchemaMismatch: .* so ALTER TABLE changed them"):
        spark.table(made).collect()
    assert table.refresh() == 1
