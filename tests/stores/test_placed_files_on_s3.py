"""Files of other writers in a bucket: opened, imported in place, and read by other processes."""

from __future__ import annotations

import io
from typing import Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import S3Store

import rowsieve as rs
from rowsieve.errors import InvalidInput, NotFound
from rowsieve.objects import Location
from tests.stores.s3_server import BUCKET, S3


def upload(s3: S3, folder: str, files: dict[str, pa.Table]) -> Location:
    config: Any = {name: value for name, value in s3.options.items() if name != "allow_http"}
    store = S3Store(BUCKET, config=config, client_options={"allow_http": True})
    root = Location.parse(folder)
    for name, rows in files.items():
        sink = io.BytesIO()
        pq.write_table(rows, sink, row_group_size=7)
        obstore.put(store, f"{root.path}/{name}", sink.getvalue())
    return root


def rows_from(start: int) -> pa.Table:
    return pa.table({"id": range(start, start + 20), "s": [f"v{i}" for i in range(20)]})


def test_files_of_a_bucket_are_opened_and_imported(s3: S3) -> None:
    folder = s3.fresh_uri()
    names = ("in/k=a b/x.parquet", "in/k=c%2Fd/y é.parquet", "in/k=e/_z.parquet")
    files = {name: rows_from(100 * i) for i, name in enumerate(names)}
    root = upload(s3, folder, files)
    source = Location("s3", BUCKET, f"{root.path}/in").uri
    opened = rs.open_parquet(source, storage_options=s3.options)
    assert sorted(opened.to_arrow()["id"].to_pylist()) == [*range(20), *range(100, 120)]
    scan = opened.scan("k = 'c/d' AND id < 105")
    assert scan.to_arrow()["id"].to_pylist() == [100, 101, 102, 103, 104]
    assert scan.metrics.parts_pruned == 1
    (split,) = scan.plan().splits_to_bytes()
    assert rs.read_split(split, storage_options=s3.options).read_all().num_rows == 5
    table = rs.from_parquet(source, s3.fresh_uri(), key=["id"], storage_options=s3.options)
    table.upsert(pa.table({"id": [3], "s": ["new"], "k": ["z"]}))
    again = rs.open_table(table.uri, storage_options=s3.options)
    assert again.scan("id = 3").to_arrow()["s"].to_pylist() == ["new"]
    assert again.count() == 40
    assert again.count("k = 'a b'") == 19
    again.compact()
    assert rs.open_parquet(f"{source}/*/x.parquet", storage_options=s3.options).count() == 20


def test_files_elsewhere_are_refused(s3: S3) -> None:
    with pytest.raises(NotFound, match="no Parquet file"):
        rs.open_parquet(s3.fresh_uri(), storage_options=s3.options)
    root = upload(s3, s3.fresh_uri(), {"x.parquet": rows_from(0)})
    with pytest.raises(InvalidInput, match="both lie on the local disk, or in one bucket"):
        rs.from_parquet(f"{root.uri}/x.parquet", "s3://another/t", storage_options=s3.options)
