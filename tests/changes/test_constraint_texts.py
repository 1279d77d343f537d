"""Constraints as text: actions of ALTER TABLE in each dialect, and the text that adds one again."""

from __future__ import annotations

import uuid

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.bridges.sql.dialects import DIALECTS
from rowsieve.errors import (
    ConstraintViolation,
    InvalidInput,
    InvalidSchemaChange,
    UnsupportedOperation,
)
from tests.small_tables import keyed


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("action", "reason"),
    [
        ("ADD CONSTRAINT c CHECK (v > 0) NOT VALID", "correct the rows first"),
        ("ADD CONSTRAINT c CHECK (v > 0) NOT ENFORCED", "correct the rows first"),
        ("ADD CONSTRAINT c CHECK (v > 0) NO INHERIT", "inherits"),
        ("ADD CONSTRAINT c UNIQUE (v)", "no other unique columns"),
        ("ADD UNIQUE (v)", "no other unique columns"),
        ("ADD COLUMN c bigint UNIQUE", "no other unique columns"),
        ("ADD CONSTRAINT c PRIMARY KEY (v)", "keeps the key"),
        ("ADD COLUMN c bigint PRIMARY KEY", "keeps the key"),
        ("ADD CONSTRAINT c FOREIGN KEY (v) REFERENCES o (v)", "one row"),
        ("ADD COLUMN c bigint REFERENCES o (v)", "one row"),
        ("DROP CONSTRAINT c CASCADE", "by actions of their own"),
        ("DROP COLUMN v CASCADE", "by actions of their own"),
        ("DROP COLUMN v, ADD CONSTRAINT c UNIQUE (v)", "no other unique columns"),
    ],
)
def test_other_constraints_of_sql_are_refused(action: str, reason: str, dialect: str) -> None:
    table = keyed({"k": [1], "v": [1]})
    with pytest.raises(UnsupportedOperation, match=f"{reason}.*; nothing was changed"):
        table.alter().sql(action, dialect)


def test_a_constraint_may_have_no_name() -> None:
    table = keyed({"k": [1], "v": [1]})
    table.sql(
        "ALTER TABLE this ADD CHECK (v > 0), ADD COLUMN w bigint CHECK (w > v) CHECK (w < 99)"
    )
    assert table.constraints == {"check": "v > 0", "w_check": "w > v", "w_check_2": "w < 99"}
    table.sql("ALTER TABLE this ADD CHECK (v < 7)")
    assert table.constraints["check_2"] == "v < 7"
    table.sql(
        "ALTER TABLE this ADD CHECK (v < 8), ADD CHECK (v < 9), "
        'ADD CONSTRAINT "CHECK_5" CHECK (v < 10), ADD CHECK (v < 11)'
    )
    assert list(table.constraints)[-4:] == ["check_3", "check_4", "CHECK_5", "check_6"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_dialect_reads_several_actions(dialect: str) -> None:
    table = keyed({"k": [1], "v": [1]})
    table.add_constraint("c", "v > 0")
    with table.alter() as a:
        a.sql("ADD COLUMN w bigint, ADD CONSTRAINT d CHECK (w > 0), RENAME COLUMN v TO x", dialect)
    assert table.schema.names == ["k", "x", "w"]
    assert table.constraints == {"c": "x > 0", "d": "w > 0"}
    with table.alter() as a:
        a.sql("DROP COLUMN x, DROP CONSTRAINT c, ADD CONSTRAINT c CHECK (k > 0)", dialect)
    assert table.schema.names == ["k", "w"]
    assert table.constraints == {"d": "w > 0", "c": "k > 0"}
    with pytest.raises(InvalidInput, match="no constraint 'C'"), table.alter() as a:
        a.sql("DROP CONSTRAINT c, DROP CONSTRAINT C", dialect)
    with pytest.raises(InvalidSchemaChange, match="'d'"):
        table.drop_column("w")


KINDS = {
    "postgres": [
        *("f < 'infinity'::float8", "f > -'infinity'::float8", "f <> 'NaN'::float8", "f / 2 > 1"),
        *("i / 2 > 1", "CAST(f AS int) > 2", "round(f) > 2", "i % 2 = 0", "g < 0.1", "y = '\\x00'"),
        *(
            "s ~ 'a'",
            "s LIKE 'a%'",
            "s || 'x' = 'ax'",
            "s <> 'it''s'",
            "n > 1.5",
            "d > '2020-01-01'",
        ),
        *("t > TIMESTAMP '2020-01-01 00:00:00.5'", "NOT b"),
        *("z > '2020-01-01T00:00:00Z'", "d > '2020-01-01'"),
        *("k IN (1, 2, 3, 4, 5, 6, 7, 8, 9)", f"s = '{'x' * 500}'", "f IS DISTINCT FROM 'NaN'"),
        *("extract(year FROM t) > 2000", "CASE WHEN i > 0 THEN f ELSE 1 END > 0", "length(s) < 5"),
    ],
    "spark": [
        *("f < double('infinity')", "f <> double('NaN')", "i / 2 > 1", "i div 2 > 1", "i / i > 1"),
        *("n / 3 > 1", "s RLIKE 'a'", "CAST(f AS int) > 2", "isnan(f)", "g < 0.1", "i % 2 = 0"),
        *("d > '2020-01-01'", "f > 1", "s LIKE 'a%'", "upper(s) = 'A'"),
    ],
    "duckdb": [
        *("f < 'infinity'::double", "isnan(f)", "f > 1.5", "CAST(f AS int) > 2", "g < 0.1"),
        *("i / 2 > 1", "s LIKE 'a%'", "i % 2 = 0"),
    ],
    "datafusion": [
        *("f < 'Infinity'::double", "isnan(f)", "i / 2 > 1", "f / 2 > 1", "CAST(f AS int) > 2"),
        *("g < 0.1", "i + 1 > 2", "s LIKE 'a%'"),
    ],
    "trino": ["i / 2 > 1", "is_nan(f)", "f > 1.5", "s LIKE 'a%'", "i % 2 = 0"],
}
EDGES = pa.table(
    {
        "k": pa.array(range(8), pa.int64()),
        "i": pa.array([0, 1, 2, 3, -3, 2**31 - 1, -(2**31), None], pa.int32()),
        "f": [0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 5e-324, None],
        "g": pa.array([0.1, 0.0, 1.5, float("inf"), float("-inf"), float("nan"), 1, None], "float"),
        "s": ["", "a", "ax", "A", "it's", "x" * 500, "b", None],
        "n": pa.array([0, 1, 2, 3, 4, -5, 6, None], pa.decimal128(10, 2)),
        "y": [b"", b"\0", b"a", b"\xff", b"b", b"c", b"d", None],
        "b": [True, False, True, False, True, False, True, None],
        "d": pa.array([0, 18262, 18263, -1, 1, 2, 3, None], pa.date32()),
        "t": pa.array(
            [0, 1577836800500000, 1577836800500001, -1, 1, 2, 3, None], pa.timestamp("us")
        ),
        "z": pa.array([0, 1577836800000000, 1577836800000001, -1, 1, 2, 3, None]).cast(
            pa.timestamp("us", "UTC")
        ),
    }
)


@pytest.mark.parametrize(
    ("dialect", "condition"), [(name, text) for name, texts in KINDS.items() for text in texts]
)
def test_the_text_of_a_constraint_adds_it_again(dialect: str, condition: str) -> None:
    table = rs.create_table(f"memory:///{uuid.uuid4()}", EDGES.schema, key=["k"])
    table.add_constraint("c", condition, dialect=dialect)
    shown = table.constraints["c"]
    again = rs.create_table(f"memory:///{uuid.uuid4()}", EDGES.schema, key=["k"])
    again.add_constraint("c", shown)
    assert again.constraints["c"] == shown
    for row in range(len(EDGES)):
        assert obeys(table, row) == obeys(again, row), (row, shown)


def obeys(table: rs.Table, row: int) -> bool:
    try:
        table.upsert(EDGES.slice(row, 1))
    except ConstraintViolation:
        return False
    return True
