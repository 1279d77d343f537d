"""A publication as Iceberg on S3: its files have the names by which others find them."""

from __future__ import annotations

import pyarrow as pa
from pyiceberg.table import StaticTable

import rowsieve as rs
from tests.stores.s3_server import S3


def test_publication_is_read_from_s3(s3: S3) -> None:
    uri, other = (f"{s3.fresh_uri()}/a b%25c" for _ in range(2))
    rows = pa.table({"id": [1, 2, 3], "s": ["a", "b", None]})
    table = rs.create_table(uri, rows, key=["id"], storage_options=s3.options)
    table.publish("iceberg")
    table.delete("id = 2")
    table.publish("iceberg")
    table.publish("iceberg", other)
    properties = {
        "s3.endpoint": s3.endpoint,
        "s3.region": s3.options["region"],
        "s3.access-key-id": s3.options["access_key_id"],
        "s3.secret-access-key": s3.options["secret_access_key"],
    }
    for root, numbers in ((uri, (1, 2)), (other, (2,))):
        literal = root.replace("%25", "%")
        for number in numbers:
            name = f"{literal}/metadata/v{number}.metadata.json"
            found = StaticTable.from_metadata(name, properties).scan().to_arrow()
            kept = [1, 2, 3] if root == uri and number == 1 else [1, 3]
            assert sorted(found["id"].to_pylist()) == kept
