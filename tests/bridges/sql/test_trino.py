"""Trino's SQL, with no engine at hand: what is written, that it reads back, what is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, reject

import rowsieve as rs
import rowsieve.errors
from rowsieve.bridges.sql.translation import from_text, to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidInput, InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from tests.profiles import examples
from tests.strategies import SCHEMA, SEMANTICS, batches, predicates

ROWS = pa.schema(
    [
        ("id", pa.int64()),
        ("s", pa.string()),
        ("x", pa.float64()),
        ("ts", pa.timestamp("us")),
        ("b", pa.bool_()),
        ("y", pa.binary()),
    ]
)

WRITTEN = [
    ("id > 5 AND s LIKE 'a\\_%'", "\"id\" > 5 AND \"s\" LIKE 'a\\_%' ESCAPE '\\'"),
    ("x > 1.5", '"x" > CAST(\'1.5\' AS DOUBLE) OR "x" <> "x"'),
    ("x <= 1.5", "\"x\" <= CAST('1.5' AS DOUBLE)"),
    ("id IN (1, NULL)", '"id" IN (1, NULL)'),
    ("b IS TRUE", '"b" IS NOT DISTINCT FROM TRUE'),
    ("ts = '2024-01-01'", "\"ts\" = CAST('2024-01-01 00:00:00' AS TIMESTAMP(6))"),
    ("y = '\\x00ff'", "\"y\" = X'00ff'"),
    ("reverse(s) = s", 'reverse("s") = "s"'),
]
LEFT = [
    "lower(s) = 'a'",
    "greatest(id, 3) = 3",
    "trim(s) = 'a'",
    "s ILIKE 'a%'",
    "CAST(x AS bigint) = 2",
    "ts + INTERVAL '1 day' > ts",
    "x IS DISTINCT FROM x + 1",
    "id / id = 1",
]
REFUSED = [
    "lower(s) = 'a'",
    "x IS DISTINCT FROM 1",
    "CAST(s AS timestamp) = ts",
    "ts = TIMESTAMP '2024-01-01 00:00:00'",
    "contains(s, 'a')",
    "id + INTERVAL '1' DAY > id",
    "ts > CURRENT_DATE",
    "extract(dow FROM ts) = 1",
    "trim(s) = 'a'",
]


@pytest.mark.parametrize(("text", "wanted"), WRITTEN)
def test_what_is_written(text: str, wanted: str) -> None:
    made = rs.translate(text, "postgres", target="trino", schema=ROWS)
    assert made.exactness is Exactness.EXACT, made.notes
    assert made.expression == wanted


@pytest.mark.parametrize("text", LEFT)
def test_what_nobody_vouches_for_is_left(text: str) -> None:
    made = rs.translate(f"id > 5 AND {text}", "postgres", target="trino", schema=ROWS)
    assert made.expression == '"id" > 5'
    assert made.residual is not None


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_not_listed_is_not_read(text: str) -> None:
    made = rs.translate(f"id > 5 AND {text}", "trino", target="duckdb", schema=ROWS)
    assert made.expression == '"id" > 5'
    assert made.residual == text


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda item: item.name)
@examples(25)
@given(predicate=predicates(1), batch=batches(min_rows=1))
def test_what_is_written_reads_back_as_meant(
    semantics: Semantics, predicate: Predicate, batch: pa.RecordBatch
) -> None:
    try:
        written = to_text(predicate, SCHEMA, semantics, dialect="trino")
    except InvalidPredicate:
        reject()
    if written.exactness is not Exactness.EXACT:
        return
    text = written.exact()
    again = sqlglot.parse_one(text, read="trino").sql(dialect="trino")
    for each in (text, again):
        read = from_text(each, SCHEMA, dialect="trino")
        if each is text:
            assert read.exactness is Exactness.EXACT, read.notes
        if read.exactness is not Exactness.EXACT:
            continue  # sqlglot spells it in another way
        mine = evaluate(bind(predicate, SCHEMA, semantics), batch)
        back = evaluate(bind(read.exact(), SCHEMA, Semantics.TRINO), batch)
        if not (mine.failed.any() or back.failed.any()):
            assert back.true.tolist() == mine.true.tolist(), each


def test_scans_read_what_is_listed(tmp_path: object) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [1.0, float("nan"), None]})
    table = rs.create_table(f"{tmp_path}/t", data, key=["id"])
    assert table.scan("x > 0", dialect="trino").to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(rs.errors.UnsupportedOperation, match="cannot be translated whole"):
        table.scan("id > 0 AND sqrt(x) > 0", dialect="trino")
    with pytest.raises(InvalidInput, match="only conditions"):
        table.scan("id > 0", {"y": "id + 1"}, dialect="trino")
