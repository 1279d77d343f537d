"""Files of a bucket as data of a table's methods: read with the table's storage options."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import S3Store

import rowsieve as rs
from rowsieve.errors import InvalidInput, SchemaMismatch
from rowsieve.objects import Location
from tests.stores.s3_server import BUCKET, S3

SCHEMA = pa.schema([("id", pa.int64()), ("code", pa.string())])


def upload(s3: S3, files: dict[str, bytes]) -> str:
    """Put the files into a fresh folder; return its URI."""
    folder = s3.fresh_uri()
    config: Any = {name: value for name, value in s3.options.items() if name != "allow_http"}
    store = S3Store(BUCKET, config=config, client_options={"allow_http": True})
    for name, content in files.items():
        obstore.put(store, f"{Location.parse(folder).path}/{name}", content)
    return folder


def parquet(ids: list[int]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": ids, "code": [f"{i:03}" for i in ids]}), sink)
    return sink.getvalue()


def ipc(ids: list[int]) -> bytes:
    sink = io.BytesIO()
    rows = pa.table({"id": ids, "code": [f"{i:03}" for i in ids]}, SCHEMA)
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_table(rows)
    return sink.getvalue()


FILES = {
    "a.parquet": parquet([1, 2]),
    "b.csv": b"id,code\n3,003\n",
    "c.jsonl.gz": gzip.compress(b'{"id": 4, "code": "004"}\n'),
    "d.arrow": ipc([5]),
    "in/e.parquet": parquet([6]),
    "in/.hidden.parquet": parquet([7]),
    "keys.csv": b"id\n1\n",
    "new name.csv": b"id,code,more\n9,9,9\n",
}


def ids(table: rs.Table) -> list[int]:
    return sorted(row["id"] for row in table.to_arrow().to_pylist())


@pytest.fixture(scope="module")
def folder(s3: S3) -> str:
    return upload(s3, FILES)


@pytest.fixture
def table(s3: S3) -> rs.Table:
    return rs.create_table(s3.fresh_uri(), SCHEMA, ["id"], storage_options=s3.options)


def test_files_and_globs_of_each_format_are_rows(table: rs.Table, folder: str) -> None:
    table.upsert([f"{folder}/{name}" for name in ("a.parquet", "b.csv", "c.jsonl.gz", "d.arrow")])
    assert ids(table) == [1, 2, 3, 4, 5]
    assert set(table.scan("id <= 5").to_arrow()["code"].to_pylist()) == {
        f"{i:03}" for i in range(1, 6)
    }
    table.upsert(f"{folder}/**/*.parquet")  # a name with a dot in front is left out
    assert ids(table) == [1, 2, 3, 4, 5, 6]
    table.delete(keys=f"{folder}/keys.csv")
    assert ids(table) == [2, 3, 4, 5, 6]


def test_every_method_reads_with_the_options_of_its_table(
    s3: S3, table: rs.Table, folder: str, tmp_path: Path
) -> None:
    file = f"{folder}/b.csv"
    created = rs.create_table(s3.fresh_uri(), file, ["id"], storage_options=s3.options)
    assert ids(created) == [3]
    for call in (table.upsert, table.overwrite):
        call(file)
        assert ids(table) == [3]
    table.merge(f"{folder}/in/e.parquet", on="id").when_not_matched_insert_all().execute()
    assert ids(table) == [3, 6]
    event = {"op": "c", "before": None, "after": {"id": 8, "code": "x"}}
    events = upload(s3, {"f.jsonl": json.dumps(event).encode()})
    table.apply_events(f"{events}/f.jsonl", format="debezium")
    log = rs.create_table(s3.fresh_uri(), SCHEMA, storage_options=s3.options)
    log.append(file)
    with table.writer(wal_dir=tmp_path / "wal") as writer:
        writer.upsert(f"{folder}/a.parquet").result(30)
    table.refresh()
    assert ids(table) == [1, 2, 3, 6, 8]
    assert log.count() == 1


def test_a_local_table_reads_a_bucket_with_the_settings_of_the_environment(
    s3: S3, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.options.items():
        variable = name if name.startswith("aws_") else f"aws_{name}"
        monkeypatch.setenv(variable.upper(), str(value))
    table = rs.create_table(tmp_path / "t", SCHEMA, ["id"])
    table.upsert(f"{folder}/a.parquet")
    assert ids(table) == [1, 2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent.csv", "there is no file .*absent.csv"),
        ("no*.parquet", "no file matches"),
        ("a", "its suffix must name its format"),
        ("", "its suffix must name its format"),
        (["b.csv", "b.csv"], "twice"),
    ],
)
def test_what_names_no_rows_is_refused(
    table: rs.Table, folder: str, name: Any, message: str
) -> None:
    given = [f"{folder}/{n}" for n in name] if isinstance(name, list) else f"{folder}/{name}"
    with pytest.raises(InvalidInput, match=message):
        table.upsert(given)
    assert table.version == 0


def test_files_of_other_columns_are_named_by_their_uris(table: rs.Table, folder: str) -> None:
    with pytest.raises(SchemaMismatch, match=r"new%20name.csv has the column 'more'"):
        table.upsert([f"{folder}/b.csv", f"{folder}/new%20name.csv"])
