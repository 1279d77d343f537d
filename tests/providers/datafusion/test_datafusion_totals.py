"""Conditions that `plan_checks` takes for total fail on no values in the installed DataFusion."""

from __future__ import annotations

import math
import random
from typing import Any, Final

import datafusion
import pyarrow as pa
import pytest

from rowsieve.providers.datafusion.plan_checks import facts_of
from tests.profiles import IS_DEEP

_BITS: Final = (8, 16, 32, 64)
_FLOATS: Final = (math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 3e38, None)
VALUES: Final[dict[str, pa.Array]] = {
    **{
        f"i{bits}": pa.array(
            [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, 0, -1, 1, 7, -7, None],
            getattr(pa, f"int{bits}")(),
        )
        for bits in _BITS
    },
    **{
        f"u{bits}": pa.array(
            [0, 2**bits - 1, 2 ** (bits - 1), 1, 2, 3, 7, None], getattr(pa, f"uint{bits}")()
        )
        for bits in _BITS
    },
    "f32": pa.array(_FLOATS, pa.float32()),
    "f64": pa.array([1e308 if value == 1.0 else value for value in _FLOATS], pa.float64()),
    "d": pa.array([10**37, -(10**37), 0, 1, 2, 3, 4, None], pa.decimal128(38, 0)),
    "s": pa.array(["", "1", "x", "-5", "1e99", "9" * 30, "nan", None]),
    "day": pa.array([-(2**31), 2**31 - 1, 0, 1, 2, 3, 4, None], pa.int32()).cast(pa.date32()),
}
TYPES: Final = ("TINYINT", "SMALLINT", "INT", "BIGINT", "BIGINT UNSIGNED", "REAL", "DOUBLE")


@pytest.fixture(scope="module")
def context() -> Any:
    made = datafusion.SessionContext()
    for side in ("a", "b"):  # every pair of values, in every pair of columns
        made.register_record_batches(side, [pa.table(VALUES).to_batches()])
    return made


def term(chance: random.Random, depth: int) -> str:
    column = f"{chance.choice('ab')}.{chance.choice(list(VALUES)[:11])}"
    match chance.randrange(8 if depth else 2):
        case 0:
            return column
        case 1:
            return chance.choice((column, "0", "1", "-1", "3", "2.5", "127", "9223372036854775807"))
        case 2:
            return f"(-{term(chance, depth - 1)})"
        case 3:
            return f"CAST({term(chance, depth - 1)} AS {chance.choice(TYPES)})"
        case 4:
            return chance.choice((column, column, "a.d", "b.day", "CAST(a.s AS INT)"))
        case _:
            operator = chance.choice("++--**/%")
            return f"({term(chance, depth - 1)} {operator} {term(chance, depth - 1)})"


@pytest.mark.parametrize("chunk", range(40 if IS_DEEP else 2))
def test_total_arithmetic_fails_on_no_value(context: Any, chunk: int) -> None:
    chance = random.Random(chunk)
    total = 0
    for _ in range(60):
        one, other = term(chance, 3), term(chance, 2)
        query = f"SELECT count(*) FROM a CROSS JOIN b WHERE {one} > {other}"
        try:
            plan = context.sql(query).optimized_logical_plan()
        except Exception:  # types that do not compare, constants that overflow
            continue
        if facts_of(plan).is_total:
            total += 1
            context.sql(query).collect()
            context.sql(f"SELECT {one} AS x, {other} AS y FROM a CROSS JOIN b").collect()
    assert total > 8


@pytest.mark.parametrize(
    ("condition", "is_total"),
    [
        ("a.i64 * 3 + a.i8 > 5", True),
        ("a.i64 / 3 > 5 AND a.u8 % 7 = 1 AND -a.f32 < 4", True),
        ("-a.i64 < 4", False),
        ("a.f64 / a.f32 > a.f64 % 0", True),
        ("CAST(a.i32 AS DOUBLE) / 0 > 1", True),
        ("a.i64 / 0 > 5", False),
        ("a.i64 / -1 > 5", False),
        ("a.i64 % b.i64 > 5", False),
        ("a.i64 / CAST(NULL AS BIGINT) > 5", None),
        ("a.d * 2 > 5", False),
        ("a.d + a.d > 5", False),
        ("a.day + INTERVAL '1 day' > DATE '2020-01-01'", False),
        ("CAST(a.i64 AS INT) * 2 > 5", False),
        ("CAST(a.f64 AS BIGINT) > 5", False),
        ("CAST(a.s AS INT) > 5", False),
        ("abs(a.i64) > 5", False),
        (" + ".join(["a.i64"] * 200) + " > 5", False),
    ],
)
def test_arithmetic_is_total_by_its_types(
    context: Any, condition: str, is_total: bool | None
) -> None:
    query = f"SELECT count(*) FROM a JOIN b ON a.i32 = b.i32 WHERE {condition}"
    found = facts_of(context.sql(query).optimized_logical_plan()).is_total
    assert is_total is None or found is is_total
