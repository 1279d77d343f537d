"""The statement's time beside a number: milliseconds since 1970, and parts are pruned by it."""

from __future__ import annotations

import json
import time

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import parse_predicate
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.small_tables import fresh_uri

NOW_MS = time.time_ns() // 1_000_000
DAY_MS = 86_400_000
SCHEMA = pa.schema(
    [
        pa.field("k", pa.int64(), nullable=False),
        pa.field("ms", pa.int64()),
        pa.field("j", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"}),
    ]
)


@pytest.fixture(scope="module")
def table() -> rs.Table:
    made = rs.create_table(fresh_uri(), SCHEMA, key=["k"], properties={"json_statistics": "j.ts"})
    for start, ms in ((0, NOW_MS - 9 * DAY_MS), (10, NOW_MS - DAY_MS), (20, NOW_MS + 9 * DAY_MS)):
        rows = {
            "k": range(start, start + 10),
            "ms": [ms + i for i in range(10)],
            "j": [json.dumps({"ts": ms + i}) for i in range(10)],
        }
        made.upsert(pa.table({name: list(cells) for name, cells in rows.items()}, schema=SCHEMA))
    return made


CONDITIONS = [
    ("(j->>'ts')::numeric < now()", 20, 1),
    ("now() <= (j->>'ts')::numeric", 10, 2),
    ("(j->>'ts')::bigint > now()", 10, 2),
    ("ms < now()", 20, 1),
    ("now() < ms", 10, 2),
    ("(j->>'ts')::numeric < 5", 0, 3),
    ("NOT ((j->>'ts')::numeric < now())", 10, 0),
]


@pytest.mark.parametrize(("text", "count", "pruned"), CONDITIONS)
def test_a_number_compared_with_now_is_milliseconds_and_prunes(
    table: rs.Table, text: str, count: int, pruned: int
) -> None:
    scan = table.scan(text)
    assert scan.count() == count
    assert table.scan(text, pruning="off").count() == count
    scan = table.scan(text)
    scan.to_arrow()
    assert scan.metrics is not None
    assert scan.metrics.parts_pruned >= pruned


def test_other_engines_and_floats_reject_comparing_a_number_with_a_time() -> None:
    schema, _ = schema_of(SCHEMA)
    for text, semantics in (("ms < now()", Semantics.DUCKDB), ("ms < now()", Semantics.SPARK)):
        with pytest.raises(InvalidPredicate):
            bind(parse_predicate(text), schema, semantics)
    with pytest.raises(InvalidPredicate):
        bind(parse_predicate("ms < TIMESTAMPTZ '2024-01-01 00:00:00Z'"), schema)
