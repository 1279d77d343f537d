"""A translation that is exact fails only where its source fails: arithmetic of decimals."""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from datafusion import SessionContext

import rowsieve as rs
from rowsieve.bridges.translation import Exactness
from rowsieve.bridges.where import to_predicate
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.profiles import IS_DEEP, some

TYPES = ((5, 2), (9, 0), (10, 2), (18, 0), (18, 4), (19, 0), (38, 0), (38, 10))
WIDE = decimal.Context(prec=60)


def _extremes(precision: int, scale: int) -> list[Decimal | None]:
    most = WIDE.scaleb(Decimal(10**precision - 1), -scale)
    half = WIDE.scaleb(Decimal(10**precision // 2), -scale)
    least = WIDE.scaleb(Decimal(1), -scale)
    return [most, most.copy_negate(), half, least, least.copy_negate(), Decimal(0), None]


COLUMNS = {f"d{p}_{s}": pa.array(_extremes(p, s), pa.decimal128(p, s)) for p, s in TYPES}
INTS = {"i32": pa.int32(), "i64": pa.int64()}
ENDS = {
    name: pa.array([2**bits - 1, -(2**bits), 3, 1, -1, 0, None], INTS[name])
    for name, bits in (("i32", 31), ("i64", 63))
}
ROWS = pa.table(COLUMNS | ENDS)
OPERANDS = (*COLUMNS, *INTS, "1.5", "100000", "99999.99")
ARITHMETIC = [
    *(f"{a} {sign} {b} > 5" for a in COLUMNS for b in OPERANDS for sign in ("+", "-", "*", "%")),
    *(f"{a} * {a} * {a} > 5" for a in COLUMNS),
    *(f"{a} * ({b} + 1) > 5" for a in COLUMNS for b in ("d10_2", "i32")),
    *(f"{name}({a}) > 5" for a in COLUMNS for name in ("-", "abs", "round", "floor", "ceil")),
    *(f"CAST({a} AS {type_}) > 5" for a in OPERANDS for type_ in ("bigint", "decimal(18, 0)")),
]


def _kept(engine: Any, condition: str, row: int) -> bool | None:
    """Whether the engine keeps the row; None where it fails."""
    asked = f"SELECT 1 FROM t{row} WHERE {condition}"
    try:
        found = engine.sql(asked)
        if isinstance(engine, SessionContext):
            return bool(sum(batch.num_rows for batch in found.collect()))
        return bool(found.fetchall())
    except Exception:
        return None


@pytest.fixture(scope="module")
def engines() -> dict[str, Any]:
    found: dict[str, Any] = {"duckdb": duckdb.connect(), "datafusion": SessionContext()}
    for row in range(len(ROWS)):
        one = ROWS.slice(row, 1)
        found["duckdb"].from_arrow(one).create(f"t{row}")
        found["datafusion"].from_arrow(one, f"t{row}")
    return found


@pytest.mark.parametrize("target", ["duckdb", "datafusion"])
def test_an_exact_translation_fails_only_where_its_source_does(
    target: str, engines: dict[str, Any]
) -> None:
    schema, _ = schema_of(ROWS.schema)
    batch = ROWS.to_batches()[0]
    exact = 0
    for condition in some(ARITHMETIC, 5):
        made = rs.translate(condition, "postgres", target=target, schema=ROWS.schema)
        if made.exactness is not Exactness.EXACT:
            continue
        exact += 1
        ours = evaluate(
            bind(to_predicate(condition, "postgres", schema), schema, Semantics.POSTGRES), batch
        )
        for row in range(len(ROWS)):
            if not ours.failed[row]:
                wanted = bool(ours.true[row])
                assert _kept(engines[target], str(made.expression), row) is wanted, condition
    assert exact > (100 if IS_DEEP else 20)


def test_a_product_of_narrow_decimals_is_computed_wide_in_duckdb() -> None:
    schema = pa.schema([("p", pa.decimal128(10, 2))])
    made = rs.translate("p * p > 5", "postgres", target="duckdb", schema=schema)
    assert str(made.expression).startswith('CAST("p" AS DECIMAL(19, 2)) * "p" > ')
    rows = pa.table({"p": pa.array([Decimal("99999999.99"), Decimal("0.01")], schema[0].type)})
    connection = duckdb.connect()
    connection.from_arrow(rows).create("t")
    assert connection.sql(f"SELECT count(*) FROM t WHERE {made.expression}").fetchall() == [(1,)]
