"""Every function that the engines share: what they give for our SQL is what we give.

The engines read Arrow tables in memory. Where ours fails on a row, the engine must fail on it too.
"""

from __future__ import annotations

import contextlib
import decimal
import math
import re

import pyarrow as pa
import pytest

from rowsieve.bridges.functions import TABLE, spelling_of
from rowsieve.bridges.sql import parse_expression
from rowsieve.bridges.sql.constructs.time_fields import ALL_PARTS
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.predicate.ir import Call, Column, Operand
from tests.bridges.sql.postgres import function_names
from tests.bridges.sql.spelled import CALLS, OTHERS, SHARED, ours, read_back, table, written
from tests.bridges.sql.test_engine_functions import ENGINES, Ask, alike
from tools.matrices.sql_spellings import OPERATORS, spelling

ROWS = table()
ALL = {**CALLS, **OTHERS}
LEAST_SHARED = 60
NOT_READ = {("hex_digits", "datafusion"), ("hex_digits", "postgres")}
WRITTEN = (*SHARED, "postgres")
# Not on the allow-list: PostgreSQL's letters are those of its database.
OF_A_LOCALE = ("lower", "upper")
OVERFLOWS = {("degrees", "postgres"), ("radians", "postgres")}  # raises there, not listed either


def test_enough_functions_are_spelled_in_spark_datafusion_and_duckdb() -> None:
    parts = {f"extract_{part}" for part in ALL_PARTS}
    names = {*(BUILT_IN - OPERATORS), *parts}  # operators and intervals are not names
    assert {name for name in names if all(spelling(name, each) for each in SHARED)} == set(CALLS)
    assert len(CALLS) >= LEAST_SHARED, sorted(CALLS)


@pytest.mark.parametrize("engine", WRITTEN)
@pytest.mark.parametrize("name", CALLS)
def test_a_shared_function_is_written_and_read_back(name: str, engine: str) -> None:
    for operand in CALLS[name]:
        if (name, engine) in NOT_READ:
            with pytest.raises(InvalidPredicate, match="to_hex"):
                read_back(operand, engine)
            continue
        (found, failed), (wanted, fails) = (
            ours(each, engine, ROWS) for each in (read_back(operand, engine), operand)
        )
        if (name, engine) in OVERFLOWS:
            kept = [row for row, bad in enumerate(failed) if not bad]
            found, wanted, failed, fails = (
                [each[row] for row in kept] for each in (found, wanted, failed, fails)
            )
        assert failed == fails
        assert all(map(alike, found, wanted)), written(operand, engine)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ALL)
def test_a_function_returns_the_values_of_the_engine(name: str, engine: str) -> None:
    for operand in ALL[name]:
        check(operand, name, engine)


def check(operand: Operand, name: str, engine: str) -> None:
    try:
        text = written(operand, engine)
    except UnsupportedOperation:
        assert name in OTHERS
        return
    if _is_absent(name, engine):
        return  # by our own name, for our own text
    ask = ENGINES[engine]()
    if engine == "postgres" and (name in OF_A_LOCALE or _rounds_float(operand)):
        return
    values, failed = ours(operand, engine, ROWS)
    if (name, engine) in OVERFLOWS:
        failed = [value in (math.inf, -math.inf, 0) for value in values]
    good = [row for row, bad in enumerate(failed) if not bad]
    found, wanted = ask(text, ROWS.take(good)), [values[row] for row in good]
    assert len(found) == len(wanted)
    wrong = [pair for pair in zip(found, wanted, strict=True) if not alike(*pair)]
    assert not wrong, (text, wrong)
    for row, bad in enumerate(failed):
        if bad and (name, engine) not in OVERFLOWS:
            assert fails(ask, text, ROWS.take([row])), (text, row)


def fails(ask: Ask, text: str, row: pa.Table) -> bool:
    """Whether the engine fails, or gives a NaN that is a decimal: we have none."""
    try:
        (value,) = ask(text, row)
    except Exception:  # each engine has its own
        return True
    return isinstance(value, decimal.Decimal) and value.is_nan()


def _is_absent(name: str, engine: str) -> bool:
    return name in TABLE and spelling_of(name, engine) is None


def _rounds_float(operand: Operand) -> bool:
    """Which PostgreSQL has for decimals only."""
    return (
        isinstance(operand, Call)
        and operand.function == "round"
        and (operand.arguments[0] == Column("f") and len(operand.arguments) > 1)
    )


DIFFERENCES = [
    "ts - ts2 > INTERVAL '24 hours'",
    "INTERVAL '36 hours' <= ts - ts2",
    "ts - ts2 = INTERVAL '0 days'",
    "(ts - ts2) < INTERVAL '-72 hours'",
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("text", DIFFERENCES)
def test_a_difference_of_times_is_compared_as_the_engine_does(text: str, engine: str) -> None:
    rows = ROWS.append_column("ts2", table(seed=1)["ts"])
    values, failed = ours(parse_expression(text, engine), engine, rows)
    assert not any(failed)
    assert ENGINES[engine]()(text, rows) == values


def test_differences_of_days_are_compared_as_duckdb_does_and_not_as_datafusion() -> None:
    text, rows = "ts - ts2 > INTERVAL '40 days'", ROWS.append_column("ts2", table(seed=1)["ts"])
    for engine in ("duckdb", "postgres"):
        values, _ = ours(parse_expression(text, engine), engine, rows)
        assert ENGINES[engine]()(text, rows) == values
    with pytest.raises(InvalidPredicate, match="days before hours"):
        parse_expression(text, "datafusion")


@pytest.mark.parametrize("text", ["ts - ts > INTERVAL '1 month'", "age(ts) > INTERVAL '1 day'"])
def test_lengths_in_months_are_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate):
        ours(parse_expression(text, "duckdb"), "duckdb", ROWS)


def test_bins_have_the_origin_of_their_dialect() -> None:
    for engine, text in (
        ("datafusion", "date_bin(INTERVAL '2 days', ts)"),
        ("datafusion", "date_bin(INTERVAL '5 months', ts)"),
        ("duckdb", "time_bucket(INTERVAL '2 days', ts)"),
        ("duckdb", "time_bucket(INTERVAL '5 months', ts)"),
    ):
        values, _ = ours(parse_expression(text, engine), engine, ROWS)
        assert all(map(alike, ENGINES[engine]()(text, ROWS), values)), text


def test_the_engines_have_the_functions_that_are_written() -> None:
    """Every name before a parenthesis is one of the engine's own list."""
    names = {
        "datafusion": _datafusion_names(),
        "duckdb": _duckdb_names(),
        "postgres": function_names(),
    }
    for engine, known in names.items():
        for name, operands in ALL.items():
            for operand in () if _is_absent(name, engine) or name == "cast" else operands:
                with contextlib.suppress(UnsupportedOperation):
                    words = set(re.findall(r"\b([a-z_0-9]+)\(", written(operand, engine)))
                    assert words <= known | SYNTAX, (name, engine, words - known)


SYNTAX = {"trim", "coalesce"}  # part of the language, on no list


def _datafusion_names() -> set[str]:
    import datafusion

    config = datafusion.SessionConfig().with_information_schema(enabled=True)
    context = datafusion.SessionContext(config)
    batches = context.sql("SELECT routine_name FROM information_schema.routines").collect()
    return {name for batch in batches for name in batch.column(0).to_pylist()}


def _duckdb_names() -> set[str]:
    import duckdb

    rows = duckdb.connect().sql("SELECT function_name FROM duckdb_functions()").fetchall()
    return {row[0] for row in rows}
