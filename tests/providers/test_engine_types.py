"""Engines get types without field ids, which `Table.schema` keeps: at every depth, by every way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.types.encodings import EXTENSION_KEY, FIELD_ID_KEY

DEEP = pa.struct(
    [("n", pa.int64()), ("ls", pa.list_(pa.struct([("m", pa.map_(pa.string(), pa.float64()))])))]
)
DATA = pa.table(
    {
        "id": [1, 2, 3],
        "l": [[3], [1, None], None],
        "s": [{"a": 1, "b": [1]}, {"a": None, "b": None}, None],
        "deep": pa.array([{"n": 1, "ls": [{"m": [("k", 0.5)]}]}, {"n": 2, "ls": []}, None], DEEP),
    }
)


@pytest.fixture
def table(tmp_path: Path) -> rs.Table:
    return rs.create_table(str(tmp_path / "t"), DATA, key=["id"])


def fields(parent: Any) -> Iterator[pa.Field]:
    """All fields of a schema or of a nested type, depth first."""
    for i in range(len(parent) if isinstance(parent, pa.Schema) else parent.num_fields):
        field = parent.field(i)
        yield field
        yield from fields(field.type)


def test_the_schema_of_a_table_keeps_field_ids(table: rs.Table) -> None:
    found = list(fields(table.schema))
    assert len(found) > 10
    ids = [field.metadata[FIELD_ID_KEY] for field in found if field.name != "entries"]
    assert len(set(ids)) == len(ids)


def test_no_engine_gets_metadata_at_any_depth(table: rs.Table) -> None:
    context = datafusion.SessionContext()
    context.register_table("t", table)
    handed = (
        context.table("t").schema(),
        context.sql("SELECT * FROM t").to_arrow_table().schema,
        pa.table(table.scan()).schema,
        pa.RecordBatchReader.from_stream(table.scan(limit=1)).read_all().schema,
    )
    for schema in handed:
        assert [field.name for field in fields(schema) if field.metadata] == []


def test_the_arrow_stream_has_the_same_rows(table: rs.Table) -> None:
    streamed = pa.table(table.scan(order_by_key=True))
    assert streamed.to_pylist() == DATA.to_pylist()
    for batch in streamed.to_batches():
        batch.validate(full=True)


def test_the_arrow_stream_still_says_which_column_is_json(tmp_path: Path) -> None:
    json = pa.field("j", pa.string(), metadata={EXTENSION_KEY: b"arrow.json"})
    first = rs.create_table(str(tmp_path / "a"), pa.schema([json]))
    second = rs.create_table(str(tmp_path / "b"), pa.table(first.scan()).schema)
    assert second.schema.field("j").metadata[EXTENSION_KEY] == b"rowsieve.json.1"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT min(l) AS a FROM {t}",
        "SELECT lag(l) OVER w AS a, first_value(s) OVER w AS b FROM {t} WINDOW w AS (ORDER BY id)",
        "SELECT array_repeat(l, 2) AS a, greatest(l, [3]) AS b, [s, s] AS c FROM {t} ORDER BY id",
        "SELECT l FROM {t} UNION SELECT [7] ORDER BY 1",
        "SELECT l, count(*) AS n FROM {t} GROUP BY l ORDER BY l",
        "SELECT deep FROM {t} WHERE id = 1 UNION ALL SELECT deep FROM m WHERE id = 1",
        "SELECT array_concat(l, [7]) AS a, coalesce(l, [0]) AS b FROM {t} ORDER BY id",
        "SELECT CASE WHEN id = 1 THEN s ELSE named_struct('a', 7, 'b', [8]) END AS a FROM {t}",
    ],
)
def test_queries_over_nested_columns_agree_with_memory(table: rs.Table, query: str) -> None:
    context = datafusion.SessionContext()
    context.register_table("t", table)
    context.register_record_batches("m", [DATA.to_batches()])
    ours, memory = (context.sql(query.format(t=name)).to_pylist() for name in ("t", "m"))
    assert ours == memory
