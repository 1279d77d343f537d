"""DataFusion's arithmetic leaves decimals of more digits than their type has: none is stored."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

import rowsieve as rs
from rowsieve.errors import EvaluationError
from rowsieve.providers.datafusion import SessionContext

TYPE = pa.decimal128(38, 10)
LEAST = Decimal("-9999999999999999999999999999.9999999999")  # of 38 digits
INSERT = "WHEN NOT MATCHED THEN INSERT (k, d) VALUES (s.k + 7, s.d - 1)"
ROWS = pa.table({"k": [1, 2], "d": pa.array([Decimal(5), LEAST], TYPE)})


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE t SET d = d - 1",
        "UPDATE t SET d = -(-d) - 1 WHERE k = 2",
        "INSERT INTO t SELECT k + 10, d - 1 FROM t",
        "INSERT OR REPLACE INTO t SELECT k, d - 1 FROM t",
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET d = t.d - 1",
        f"MERGE INTO t USING s ON t.k = s.k + 5 {INSERT}",
    ],
)
def test_a_decimal_beyond_its_type_is_an_error(statement: str) -> None:
    table = rs.create_table("memory:///long_decimals", ROWS, key=["k"], if_exists="replace")
    session = SessionContext()
    session.register_table("t", table)
    session.register_record_batches("s", [ROWS.to_batches()])
    with pytest.raises(EvaluationError):
        session.sql(statement)
    assert rs.open_table(table.uri).to_arrow().equals(ROWS.cast(table.to_arrow().schema))
