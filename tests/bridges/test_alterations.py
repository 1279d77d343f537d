"""The actions of ALTER TABLE as changes of columns; whatever is not known is refused by name."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Any

import pyarrow as pa
import pytest

import rowsieve
from rowsieve.bridges.sql.alterations import alterations_of
from rowsieve.errors import InvalidInput, RowsieveError
from rowsieve.types.encodings import schema_of

SCHEMA = schema_of(pa.schema([("id", pa.int64()), ("a", pa.int32()), ("A b", pa.string())]))[0]


def altered(*texts: str, default_of: str | None = None) -> Any:
    """The columns after the changes; or the value of a column in a row that was there before."""
    schema = pa.schema([("id", pa.int64()), ("a", pa.int32()), ("A b", pa.string())])
    rows = pa.table([[1], [2], ["t"]], schema=schema)
    table = rowsieve.create_table(f"memory:///altered-{uuid.uuid4().hex}", rows)
    with table.alter() as change:
        for text in texts:
            change.sql(text)
    if default_of is not None:
        return table.scan(columns=[default_of]).to_arrow().column(0)[0].as_py()
    return [(field.name, str(field.type)) for field in table.schema]


BASE = [("id", "int64"), ("a", "int32"), ("A b", "string")]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("ADD COLUMN b bigint", [*BASE, ("b", "int64")]),
        ("add b numeric(10,2) not null default 1.25", [*BASE, ("b", "decimal128(10, 2)")]),
        ("ADD COLUMN b text FIRST", [("b", "string"), *BASE]),
        ("ADD COLUMN b text AFTER id", [BASE[0], ("b", "string"), *BASE[1:]]),
        ("DROP COLUMN a", [BASE[0], BASE[2]]),
        ('DROP COLUMN "A b", DROP a', [BASE[0]]),
        ('RENAME COLUMN a TO "c d"', [BASE[0], ("c d", "int32"), BASE[2]]),
        ("ALTER COLUMN a TYPE bigint", [BASE[0], ("a", "int64"), BASE[2]]),
        ("ALTER COLUMN a SET DATA TYPE bigint", [BASE[0], ("a", "int64"), BASE[2]]),
        ("ALTER COLUMN a SET DEFAULT 5", BASE),
        ("DROP COLUMN a, ADD COLUMN a date", [BASE[0], BASE[2], ("a", "date32[day]")]),
        (
            "ADD b date, RENAME COLUMN b TO c, ALTER COLUMN c SET DEFAULT '2026-11-26'",
            [*BASE, ("c", "date32[day]")],
        ),
    ],
)
def test_actions_change_the_columns(text: str, columns: list[tuple[str, str]]) -> None:
    assert altered(text) == columns


@pytest.mark.parametrize(
    ("definition", "value"),
    [
        ("bigint DEFAULT 50", 50),
        ("smallint DEFAULT -5", -5),
        ("double precision DEFAULT 0.1", 0.1),
        ("double precision DEFAULT 1e3", 1000.0),
        ("numeric(10,2) DEFAULT 1.5", decimal.Decimal("1.50")),
        ("numeric(10,2) DEFAULT '1.5'", decimal.Decimal("1.50")),
        ("text DEFAULT 'it''s'", "it's"),
        ("text DEFAULT '5'", "5"),
        ("text DEFAULT NULL", None),
        ("text", None),
        ("boolean DEFAULT TRUE", True),
        ("date DEFAULT '2013-02-08'", datetime.date(2013, 2, 8)),
        ("date DEFAULT DATE '2013-02-08'", datetime.date(2013, 2, 8)),
        ("timestamp DEFAULT '2013-02-08 12:00:00'", datetime.datetime(2013, 2, 8, 12)),
        ("uuid DEFAULT '00000000-0000-0000-0000-000000000005'", uuid.UUID(int=5).bytes),
    ],
)
def test_a_default_is_a_constant_of_the_column(definition: str, value: Any) -> None:
    found = altered(f"ADD COLUMN b {definition}", default_of="b")
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "cannot read the change"),
        ("RENAME TO x", "cannot read"),
        ("ADD CONSTRAINT c UNIQUE (a)", "no other unique columns"),
        ("ADD COLUMN b bigint PRIMARY KEY", "PRIMARY KEY"),
        ("ADD COLUMN b", "cannot read|no type"),
        ("ADD COLUMN b nothing", "'b'"),
        ("ADD COLUMN b bigint DEFAULT now()", "not a constant"),
        ("ADD COLUMN b bigint DEFAULT a + 1", "not a constant"),
        ("ADD COLUMN b bigint DEFAULT 1.5", "int64"),
        ("ADD COLUMN b smallint DEFAULT 40000", "fit"),
        ("ADD COLUMN b numeric(3,2) DEFAULT 1.555", "fit"),
        ("ADD COLUMN b date DEFAULT 'yesterday'", "not a value of type date|yesterday"),
        ("ADD COLUMN b bigint; DROP TABLE t", "cannot read"),
        ("DROP COLUMN a CASCADE", "CASCADE"),
        ("RENAME COLUMN a.b TO c", "no field 'b' in 'a'"),
        ("ALTER COLUMN a TYPE bigint USING a + 1", "cannot read"),
        ("ALTER COLUMN a TYPE smallint", "not every value"),
        ("ALTER COLUMN nope SET DEFAULT 1", "nope"),
        ("ADD COLUMN b bigint DEFAULT " + "(" * 200 + "1" + ")" * 200, "nested"),
        ("x" * 200_000, "characters"),
        ("DROP COLUMN", "cannot read"),
        ("ADD COLUMN b real DEFAULT 1e39", "out of the range of float32"),
        ("ADD COLUMN b double precision DEFAULT -1e999", "out of the range of float64"),
        (r"ADD COLUMN b bytea DEFAULT '\x00'", "cannot be written as text"),
    ],
)
def test_unknown_actions_are_rejected(
    text: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("WARNING"), pytest.raises(RowsieveError, match=words):
        altered(text)
    assert not caplog.records  # the error says it all


def test_the_table_is_not_named() -> None:
    with pytest.raises(InvalidInput, match="cannot read"):
        alterations_of("ALTER TABLE t DROP COLUMN a", SCHEMA)
