"""NaN with its sign bit set is below every number in DataFusion; stored NaN never has it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import datafusion
import pyarrow as pa
import pytest
from datafusion import col, lit

import rowsieve as rs
from rowsieve.errors import UnsupportedOperation

DATA = pa.table(
    {
        "id": [1, 2, 3, 4, 5, 6],
        "x": [1.0, math.nan, None, -1.0, 0.0, -0.0],
        "f": pa.array([1.0, math.nan, None, -1.0, 0.0, -math.inf], pa.float32()),
    }
)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> rs.Table:
    table = rs.create_table(str(tmp_path_factory.mktemp("nan") / "t"), DATA[:3], key=["id"])
    table.upsert(DATA[3:])
    return table


@pytest.mark.parametrize("column", ["x", "f"])
@pytest.mark.parametrize(
    "condition",
    [
        *(f"{{c}} {op} '-NaN'::double" for op in ("=", "<>", "<", "<=", ">", ">=")),
        *(f"'-NaN'::double {op} {{c}}" for op in ("=", "<>", "<", "<=", ">", ">=")),
        "NOT ({c} > '-NaN'::double)",
        "{c} BETWEEN '-NaN'::double AND 0",
        "{c} BETWEEN '-NaN'::double AND 'NaN'::double",
        "{c} IN ('-NaN'::double, 1)",
        "{c} IN ('-NaN'::double, 0, 1, 2, 3)",
        "{c} NOT IN ('-NaN'::double, 0, 1, 2)",
        "{c} = '-NaN'::double OR id = 1",
        "{c} = 'NaN'::double",
        "{c} IS NOT DISTINCT FROM '-NaN'::double",
    ],
)
def test_a_negative_nan_matches_the_same_rows_as_in_memory(
    table: rs.Table, condition: str, column: str
) -> None:
    context = datafusion.SessionContext()
    context.register_table("t", table)
    context.register_record_batches("m", [DATA.to_batches()])
    query = "SELECT id FROM {} WHERE " + condition.format(c=column) + " ORDER BY id"

    def answer(name: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = context.sql(query.format(name)).to_pylist()
        return found

    assert answer("t") == answer("m")


def test_an_expression_with_a_negative_nan_is_refused(tmp_path: Path, table: rs.Table) -> None:
    for expression in (col("x") > lit(-math.nan), col("x") == lit(pa.scalar(-math.nan))):
        with pytest.raises(UnsupportedOperation, match="sign bit"):
            table.scan(expression)
