"""Trino's SQL, with no Trino at hand: what is written, that it reads back, what is refused.

`FACTS` says in our words what Trino's own tests of its functions assert; `velox` judges what is
written by an engine that has Presto's functions, where it is installed.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys

import pyarrow as pa
import pytest
import sqlglot
from hypothesis import given, reject

import rowsieve as rs
import rowsieve.errors
from rowsieve.bridges.sql.language import from_text, to_text
from rowsieve.bridges.translation import Exactness
from rowsieve.errors import InvalidInput, InvalidPredicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.allow_list import verified
from tests.bridges.sql.spelled import CALLS
from tests.oracle_texts import known_texts
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
def test_supported_conditions_are_written(text: str, wanted: str) -> None:
    made = rs.translate(text, "postgres", target="trino", schema=ROWS)
    assert made.exactness is Exactness.EXACT, made.notes
    assert made.expression == wanted


@pytest.mark.parametrize("text", LEFT)
def test_conditions_outside_the_allow_list_are_residual(text: str) -> None:
    made = rs.translate(f"id > 5 AND {text}", "postgres", target="trino", schema=ROWS)
    assert made.expression == '"id" > 5'
    assert made.residual is not None


@pytest.mark.parametrize("text", REFUSED)
def test_text_outside_the_allow_list_is_not_read(text: str) -> None:
    made = rs.translate(f"id > 5 AND {text}", "trino", target="duckdb", schema=ROWS)
    assert made.expression == '"id" > 5'
    assert made.residual == text


@pytest.mark.parametrize(
    "text",
    ["y = 'x'", "'x' = y", "y < 'x'", "y IN (X'01', 'x')", "y NOT IN ('x')",
     "y BETWEEN X'01' AND 'x'", "y IS DISTINCT FROM 'x'", "nullif(y, 'x') IS NULL",
     "coalesce(y, 'x') = X'01'", "CASE WHEN y = 'x' THEN b END"],
)  # fmt: skip
def test_bytes_are_not_compared_with_text(text: str) -> None:
    table = rs.create_table("memory:///bytes", ROWS.empty_table(), if_exists="replace")
    with pytest.raises(InvalidPredicate, match=r"binary values with the text 'x'.*X'78'"):
        table.count(text, dialect="trino")
    assert table.count(text.replace("'x'", "X'78'"), dialect="trino") == 0


@pytest.mark.parametrize("semantics", SEMANTICS, ids=lambda item: item.name)
@examples(25)
@given(predicate=predicates(1), batch=batches(min_rows=1))
@known_texts()
def test_written_text_reads_back_with_its_meaning(
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


def test_scans_accept_the_allow_list(tmp_path: object) -> None:
    data = pa.table({"id": [1, 2, 3], "x": [1.0, float("nan"), None]})
    table = rs.create_table(f"{tmp_path}/t", data, key=["id"])
    assert table.scan("x > 0", dialect="trino").to_arrow()["id"].to_pylist() == [1]
    with pytest.raises(rs.errors.UnsupportedOperation, match="cannot be translated whole"):
        table.scan("id > 0 AND cbrt(x) > 0", dialect="trino")
    with pytest.raises(InvalidInput, match="only conditions"):
        table.scan("id > 0", {"y": "id + 1"}, dialect="trino")


HAN = "信念,爱,希望"
DESERET = "\U0001042dend"
FACTS = [  # of its tests of functions of strings and bits: the text, the values, whether it is so
    ("length(s) = 7 AND strpos(s, '爱') = 4 AND strpos(s, '希望') = 6", HAN, 0, True),
    ("strpos(s, 'nice') = 0 AND reverse(s) = '望希,爱,念信'", HAN, 0, True),
    ("length(s) = 4 AND reverse(s) = 'dne\U0001042d'", DESERET, 0, True),
    ("length(s) = 0 AND s || 'what' = 'what'", "", 0, True),
    ("strpos(s, 'ig') = 2 AND strpos(s, 'igx') = 0", "high", 0, True),
    ("substr(s, 5) = 'ratically' AND substr(s, 5, 6) = 'ratica'", "Quadratically", 0, True),
    ("substr(s, 50) = '' AND substr(s, 50, 10) = ''", "Quadratically", 0, True),
    ("substr(s, 5, 50) = 'ratically' AND substr(s, 5, 0) = ''", "Quadratically", 0, True),
    ("regexp_like(s, 'Ste(v|ph)en')", "Stephen", 0, True),
    ("regexp_like(s, '^Ste(v|ph)en')", "Steve", 0, False),
    ("regexp_like(s, '[a-z]')", "hello world", 0, True),
    ("regexp_like(s, '^[a-zA-Z]+')", "Hello", 0, True),
    ("starts_with(s, '') AND starts_with(s, 'foo')", "foo", 0, True),
    ("starts_with(s, 'bar') OR starts_with(s, 'foo_bar_baz')", "foo", 0, False),
    ("ends_with(s, '') AND ends_with(s, 'baz')", "foo_bar_baz", 0, True),
    ("ends_with(s, 'bar') OR ends_with(s, 'foo_bar_baz_')", "foo_bar_baz", 0, False),
    ("ends_with(s, '希望')", HAN, 0, True),
    ("bitwise_and(id, 12) = 12 AND bitwise_or(id, 12) = -4", None, -4, True),
    ("bitwise_xor(id, 12) = -16", None, -4, True),
    ("bitwise_and(id, 21) = 20 AND bitwise_or(id, 21) = 61", None, 60, True),
    ("bitwise_xor(id, 21) = 41 AND bitwise_xor(id, -1) = -61", None, 60, True),
    ("strpos(s, 'a') IS NULL AND length(s) IS NULL", None, 0, True),
]


@pytest.mark.parametrize(("text", "value", "number", "wanted"), FACTS)
def test_functions_agree_with_the_tests_of_trino(
    text: str, value: str | None, number: int, *, wanted: bool
) -> None:
    row = pa.table({"id": [number], "s": pa.array([value], pa.string())}).to_batches()[0]
    schema, _ = schema_of(row.schema)
    read = from_text(text, schema, dialect="trino").exact()
    assert bool(evaluate(bind(read, schema, Semantics.TRINO), row).true[0]) is wanted


UNASKED = {"nullif", "coalesce"}  # Velox's parser has none of unequal types


@pytest.mark.skipif(importlib.util.find_spec("pyvelox") is None, reason="pyvelox is not installed")
def test_written_text_has_the_same_meaning_in_velox() -> None:
    """All functions on the allow-list; there are wheels for Linux and Python up to 3.13."""
    listed = verified("trino") | {"regex_matches"}
    names = [name for name in CALLS if {name, name.split("_")[0]} & listed and name not in LEFT_OUT]
    found = subprocess.run(
        [sys.executable, "-m", "tests.bridges.sql.velox"],
        input=json.dumps(names),
        capture_output=True,
        text=True,
        check=True,
    )
    verdicts = json.loads(found.stdout)
    assert len(verdicts) > len(names)
    for text, verdict in verdicts.items():
        assert verdict == "same" or text.split("(")[0] in UNASKED, (text, verdict)


LEFT_OUT = {"extract_dow", "extract_isodow", "extract_isoyear"}


@pytest.mark.parametrize("text", ["md5(s) = 'a'", "octet_length(s) = 1", "left(s, 1) = 'a'"])
def test_functions_that_trino_lacks_are_written_and_not_read(text: str) -> None:
    made = rs.translate(f"id > 5 AND {text}", "trino", target="duckdb", schema=ROWS)
    assert made.residual == text
    written = rs.translate(text, "postgres", target="trino", schema=ROWS)
    assert written.exactness is Exactness.EXACT
