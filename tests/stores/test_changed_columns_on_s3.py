"""A table whose columns were changed, in a store with round trips: ranges are requested by id."""

from __future__ import annotations

import pyarrow as pa
import pytest

import rowsieve as rs
from tests.stores.s3_server import S3

ROWS = 150_000


@pytest.mark.parametrize("keyed", [True, False])
def test_columns_are_fetched_by_id(s3: S3, keyed: bool) -> None:
    rows = pa.table({"id": range(ROWS), "a": [str(i) for i in range(ROWS)], "b": [5] * ROWS})
    table = rs.create_table(
        s3.fresh_uri(), rows, key=["id"] if keyed else None, storage_options=s3.options
    )
    with table.alter() as change:
        change.drop_column("b")
        change.rename_column("a", "b")
        change.add_column("a", "int64", default=50, after="id")
    more = pa.table({"id": [ROWS], "a": [5], "b": ["x"]})
    if keyed:
        table.upsert(more)
    else:
        table.append(more)
    opened = rs.open_table(table.uri, storage_options=s3.options)
    assert opened.scan("b = '77777'").to_arrow().to_pylist() == [
        {"id": 77_777, "a": 50, "b": "77777"}
    ]
    assert opened.scan("a = 5").to_arrow().to_pylist() == [{"id": ROWS, "a": 5, "b": "x"}]
    assert opened.scan("a = 50 AND id < 3", columns=["b"]).to_arrow().num_rows == 3
    assert opened.scan(columns=["a"], order_by_key=keyed).to_arrow().num_rows == ROWS + 1
