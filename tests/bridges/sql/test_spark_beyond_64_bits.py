"""Whole numbers compared with constants that no type of whole numbers has.

Spark's analyser replaces `x < 9223372036854775808` by TRUE, also where `x` is NULL.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rowsieve import create_table
from rowsieve.bridges.sql.language import from_text
from rowsieve.bridges.translation import Translation
from rowsieve.errors import UnsupportedOperation
from rowsieve.types.encodings import schema_of

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        *((name, getattr(pa, name)()) for name in (*INTEGERS, "uint64")),
        ("d", pa.decimal128(20, 0)),
    ]
)
SCHEMA = schema_of(COLUMNS)[0]
ABOVE, BELOW = "9223372036854775808", "-9223372036854775809"


def _read(condition: str) -> Translation[Any, Any]:
    return from_text(condition, SCHEMA, dialect="spark")


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("constant", [ABOVE, BELOW, "9223372036854775807.5", "1e30BD"])
def test_an_order_without_null_stays_in_spark(name: str, constant: str) -> None:
    for condition in (
        f"{name} < {constant}",
        f"{constant} <= {name}",
        f"NOT ({name} > {constant})",
        f"{name} BETWEEN 1 AND {constant}",
        f"CASE WHEN {name} >= {constant} THEN 1 ELSE 0 END = 1",
        f"{name} + 1 < {constant}",
    ):
        assert _read(condition).residual == condition, condition


@pytest.mark.parametrize("name", INTEGERS)
def test_constants_of_64_bits_other_types_and_equality_are_read(name: str) -> None:
    for condition in (
        f"{name} < 9223372036854775807",
        f"{name} >= -9223372036854775808",
        f"{name} < 1.5",
        f"{name} < 1e30",
        f"{name} = {ABOVE}",
        f"{name} NOT IN (3, {ABOVE})",
        f"CAST({name} AS DECIMAL(38, 0)) < {ABOVE}",
        f"uint64 < {ABOVE}",
        f"d > {BELOW}",
    ):
        assert _read(condition).residual is None, condition


def test_a_scan_refuses_it_and_says_what_to_write() -> None:
    table = create_table("memory://beyond_64_bits/t", COLUMNS)
    table.append(pa.table({"id": [1, 2], "int64": [None, 5]}))
    with pytest.raises(UnsupportedOperation, match=r"DECIMAL\(38, 0\)"):
        table.scan(f"int64 < {ABOVE}", dialect="spark")
    cast = table.scan(f"CAST(int64 AS DECIMAL(38, 0)) < {ABOVE}", ["id"], dialect="spark")
    assert cast.to_arrow()["id"].to_pylist() == [2]
    for dialect in ("postgres", "duckdb", "datafusion"):
        for condition in (f"int64 < {ABOVE}", f"NOT (int64 < {BELOW})"):
            rows = table.scan(condition, ["id"], dialect=dialect).to_arrow()
            assert rows["id"].to_pylist() == [2], (dialect, condition)
