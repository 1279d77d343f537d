"""Casts to `numeric` in PostgreSQL's text: unbounded numbers, as PostgreSQL itself computes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql import parse_expression
from rowsieve.errors import RowsieveError
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Numeric
from rowsieve.types.numeric_bytes import spelled
from tests.bridges.sql.postgres import connection
from tests.small_tables import fresh_uri

JSON = pa.field("j", pa.string(), metadata={b"ARROW:extension:name": b"arrow.json"})
TEXTS = (
    *("0", "-0", "1", "-1", "0.1", "1.5", "2.5", "-2.5", "0.1234567890123456789", "1e25", "-1e40"),
    *("-1e-30", "99999999999999999999.5", "NaN", "Infinity", "-inf", "1_000", "1_0e1_0", "0x1F"),
    *("  7 ", "9007199254740993", "9223372036854775807.5", "1" * 30 + "." + "2" * 29 + "1"),
    *(
        "9" * 19 + ".5",
        "1." + "0" * 18 + "5",
        "",
        "1__0",
        "1e",
        "abc",
        "0x1F.5",
        "+NaN",
        "1e200000",
    ),
)
OF_TEXTS = (
    *("{0}", "-({0})", "abs({0})", "floor({0})", "ceil({0})", "round({0})", "round({0}, 2)"),
    *("round({0}, -2)", "{0} + 1.25", "{0} - 3", "{0} * {0}", "{0} * 0.1", "{0} % 0.7", "{0} % -7"),
    *("5 % {0}", "mod({0}, 0)", "{0}::bigint", "{0}::int", "{0}::float8", "greatest({0}, 1)"),
    *("least({0}, 1.5)", "nullif({0}, 1)", "coalesce({0}, 0)", "{0} + 0.5::float8", "{0} > 0.1"),
    *("{0} > 0.1::float8", "{0} = 0.1234567890123456789", "{0} < 5 * {0}", "{0} IN (1, 1.5, 1e25)"),
    *("{0} BETWEEN 0 AND 2", "{0} IS DISTINCT FROM 1", "{0}::bigint::numeric > 0.5"),
    *("CASE WHEN {0} > 1 THEN {0} ELSE 0 END", "{0} = '1.50'", "{0}::numeric(30, 2)"),
)
MEMBERS = (
    *("1", "-2.5", "1e3", "1E-30", "0.1234567890123456789", "12345678901234567890123456789.5"),
    *("null", "true", "false", '"1"', "[1]", "{}", "9223372036854775808", "-0"),
)
OF_MEMBERS = ("numeric", "bigint", "int", "float8", "boolean", "numeric(38, 18)")
FAILED = "an error"


def _ours(expression: str, values: Sequence[str], field: pa.Field) -> list[Any]:
    schema, _ = schema_of(pa.schema([field]))
    bound = bind_operand(parse_expression(expression), schema, Semantics.POSTGRES)
    found, failed = compute(bound, pa.record_batch([pa.array(values)], names=[field.name]))
    cells = found.field(1).to_pylist() if bound.type == Numeric() else found.to_pylist()
    if bound.type == Numeric():
        cells = [cell and Decimal(spelled(cell)) for cell in cells]
    return [FAILED if lost else cell for cell, lost in zip(cells, failed, strict=True)]


def _theirs(expression: str, value: str) -> Any:
    asked = f"SELECT {expression}".replace("%", "%%").replace("?", "%(v)s::text")
    try:
        return connection().execute(asked, {"v": value}).fetchone()[0]
    except (psycopg.errors.DataError, psycopg.errors.FeatureNotSupported):
        return FAILED


def _alike(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))  # noqa: PLR0124 - NaN


@pytest.mark.parametrize("expression", OF_TEXTS)
def test_a_text_as_numeric_is_the_number_of_postgresql(expression: str) -> None:
    field = pa.field("s", pa.string())
    for text, ours in zip(TEXTS, _ours(expression.format("s::numeric"), TEXTS, field), strict=True):
        theirs = _theirs(expression.format("?::numeric"), text)
        if "::numeric(" in expression and isinstance(theirs, Decimal) and theirs.is_nan():
            theirs = FAILED  # a decimal of ours has no NaN
        assert _alike(ours, theirs), (text, ours, theirs)


@pytest.mark.parametrize("type_", OF_MEMBERS)
def test_a_json_number_is_cast_as_by_postgresql(type_: str) -> None:
    documents = [f'{{"ts": {member}}}' for member in MEMBERS]
    for value, texts in (("j -> 'ts'", documents), ("j", MEMBERS)):
        ours = _ours(f"({value})::{type_}", texts, JSON)
        asked = f"({value})::{type_}".replace("j", "?::jsonb", 1)
        for text, one in zip(texts, ours, strict=True):
            assert _alike(one, _theirs(asked, text)), text
    assert _ours(f"(j -> 'ts')::{type_}", ["{}", "not json"], JSON) == [None, None]


@pytest.fixture(scope="module")
def table() -> rs.Table:
    schema = pa.schema(
        [pa.field("k", pa.int64(), nullable=False), JSON, ("s", pa.string()), ("i", pa.int64())]
    )
    made = rs.create_table(
        fresh_uri(),
        schema,
        key=["k"],
        properties={"json_statistics": "j.ts", "text_statistics": "s"},
    )
    for start in (0, 10, 20):
        numbers = range(start, start + 10)
        rows = {
            "k": list(numbers),
            "j": [json.dumps({"ts": number + 0.5}) for number in numbers],
            "s": [f"{number}.25" for number in numbers],
            "i": list(numbers),
        }
        made.upsert(pa.table(rows, schema=schema))
    return made


PRUNING = [
    ("(j ->> 'ts')::numeric < 10", 10, 2),
    ("(j -> 'ts')::numeric < 10", 10, 2),
    ("(j -> 'ts')::numeric < 10::float8", 10, 2),
    ("(j -> 'ts')::numeric = 25.5", 1, 2),
    ("NOT ((j -> 'ts')::numeric < 20)", 10, 2),
    ("(j -> 'ts')::numeric < now()", 30, 0),
    ("(j -> 'ts')::numeric > now()", 0, 3),
    ("s::numeric > 20.24", 10, 2),
    ("s::numeric = 3.25000000000000000001", 0, 2),
    ("s::numeric BETWEEN 3.25 AND 4", 1, 2),
    ("i::numeric > 19.5", 10, 2),
    ("i::numeric = i", 30, 0),
]


@pytest.mark.parametrize(("where", "count", "pruned"), PRUNING)
def test_statistics_of_numbers_in_text_and_json_prune_their_casts(
    table: rs.Table, where: str, count: int, pruned: int
) -> None:
    scan = table.scan(where)
    assert scan.to_arrow().num_rows == count
    assert scan.metrics.parts_pruned == pruned
    assert table.scan(where, pruning="off").count() == count


def test_a_quotient_and_a_text_that_depend_on_zeros_are_refused(table: rs.Table) -> None:
    for where in ("s::numeric / 3 > 1", "s::numeric::text = '1.50'"):
        with pytest.raises(RowsieveError):
            table.scan(where).to_arrow()
