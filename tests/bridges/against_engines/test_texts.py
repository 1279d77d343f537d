"""Text in `where=` has the values and keeps the rows of its dialect's engine, or is refused.

Each finding has a name, such as `duckdb|i64|floor(a) = 1`, by which
`python -m tests.bridges.against_engines NAME` replays it. The deep profile runs every case.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType

import pytest

from rowsieve.bridges.polars_exprs import operands
from rowsieve.bridges.pyarrow_exprs import converted_sides
from rowsieve.bridges.sql import language
from tests.bridges.against_engines.catalogues import names_of
from tests.bridges.against_engines.compare import Case, Verdict, compared, compared_all
from tests.bridges.against_engines.engines import ALONE, ENGINES, WITH_SPARK
from tests.bridges.against_engines.failures import unjudged
from tests.bridges.against_engines.generator import cases
from tests.daily import today
from tests.profiles import IS_DEEP

SHARES = 8 if IS_DEEP else 1
FRESH = 10  # for so many fixed cases, one of the day
STEPS = (1, 1) if IS_DEEP else (601, 61)  # primes: all templates come by in turn

REFUSED = [
    "duckdb|date|date_trunc('century', a)",
    "duckdb|ts|date_trunc('millennium', a)",
    "duckdb in New York|tz|time_bucket(INTERVAL '1 day', a)",
    "duckdb|f32,i32|a / b",
    "duckdb|d10|a % 18446744073709551615",
    "duckdb|tz|nullif('2013-03-10', a)",
    "duckdb|d10|'1' + a",
    "duckdb|i32|nullif('1', a)",
    "datafusion|u32|18446744073709551615 / a",
    "datafusion|u8|abs(18446744073709551615) / a",
    "datafusion|d10|ceil(a) / 3",
    "datafusion|ts|TRY_CAST(a AS TIMESTAMP)",
    "datafusion|i32|CASE WHEN a IS NOT NULL THEN a ELSE '1' END",
    "datafusion|f32,i32|make_array(a, b)",
    "datafusion|d38|CAST(a AS DOUBLE)",
    "datafusion|i64|CAST(a AS INT) = 7",
    "datafusion|i64|TRY_CAST(a AS INT) = 7",
    "datafusion|i64|CAST(CAST(a AS INT) AS SMALLINT) IN (5, NULL)",
    "datafusion|u64|CAST(a AS INT) <> 7",
    "datafusion|i64|CAST(a AS DECIMAL(4,1)) > 5",
    "datafusion|d10|CAST(a AS INT) = 2",
    "datafusion|d10|CAST(a AS DECIMAL(4,1)) = -2.6",
    "datafusion|d38|CAST(a AS DECIMAL(10,2)) = 0",
    "postgres|date|to_char(a, '')",
    "postgres|i32|right('2013-03-10', a)",
    "postgres|ts|nullif(DATE '9999-12-31', a)",
    "postgres|f32|a IN (0.1, 2.5, 0)",
    "postgres|f32,d10|greatest(a, b)",
    "postgres|f32|least(CAST(a AS numeric(10,2)), least(a, 127))",
    "duckdb|d38|ceil(a) / 3",
    "datafusion|d38|power(a, 0.5)",
    "postgres in New York|ts|date_bin(INTERVAL '1 day', a, TIMESTAMPTZ '2001-01-03 05:00:00Z')",
]
UNREAD = [
    "postgres|i16|1e300 ^ a",
    "postgres|d10|power(1e300, a)",
    "postgres|ts|sqrt(extract(day FROM a)) * 3",
    "postgres|date|ln(extract(day FROM a) + 1) * 3",
    "postgres|ts|2 ^ extract(month FROM a) / 3",
    "postgres|ts|to_char(a, 'SSSS')",  # the seconds of the day, not twice the second
    "postgres|ts|a + INTERVAL '1 quarter'",
    "datafusion|ts|a + INTERVAL '1' QUARTER",
    "duckdb|text|substr(a, 2, -1)",
]
EVALUATED = [
    "duckdb|i64|floor(a) = 9007199254740992",
    "duckdb|u64|ceil(a) * 3",
    "duckdb|u16|round(a, 1) * 3",
    "duckdb|u64|round(a, -1)",
    "duckdb|u8|round(a) / 2",
    "duckdb|i64|make_date(a, 2, 3)",
    "datafusion|u32|a - 1 < 0",
    "datafusion|u8|a - 1",
    "datafusion|i64|floor(a) / 2",
    "datafusion|f64|CAST(a AS REAL)",
    "datafusion|ts|TIMESTAMP '2013-03-11T02:30:00.0000005' - a < INTERVAL '24 hours'",
    "datafusion|tz|a - TIMESTAMPTZ '1970-01-01T00:00:00Z' >= INTERVAL '31556926 seconds'",
    "datafusion|i16|CAST(a AS INT) = 7",
    "datafusion|i32|CAST(a AS DECIMAL(38,10)) > 5",
    "postgres|i64|floor(a) = 9007199254740992",
    "postgres|i64|round(a) / 2",
    "postgres|i64|a / 2.0",
    "postgres|f64|'NaN' / a",
    "postgres|i64|a / 1.50",
    "postgres|d10|a / 3",
    "postgres|d10,d10|a / b",
    "postgres|d38,d10|a / b",
    "postgres|d10|a / 100 IN (1, 5)",
    "postgres|d10,i32|(a + b) / 3",
    "postgres|d10,d10|round(a / b, 2)",
    "postgres|d10,d10|CAST(a / b AS integer)",
    "postgres|f64|a::numeric / 3",
    "postgres|f64|a::numeric / a::numeric",
    "datafusion|d10|a / 3 = 0.833333",
    "datafusion|d10,d10|a / b",
    "datafusion|i64,d38|a / b",
    "datafusion|d10,i8|a / b BETWEEN 0 AND 1",
    "postgres|d10|a / 1.25",
    "datafusion|d10|a / 16",
    "postgres|i32|round(a, -1) * 3",
    "postgres|f64|degrees(a)",
    "postgres|i8,i8|a + b",
    "postgres|i8|abs(a) + 1",
    "postgres|u8|a - 1 < 0",
    "postgres|u16|a - '1' < 0",
    "postgres|u32|'1' + a",
    "postgres|u8|(a - '1') * 2",
    "postgres|u32,u32|a * b > 5",
    "postgres|u16,u32|greatest(a, b) - 1",
    "postgres|f32|radians(a)",
    "postgres|f64,f64|a * b",
    "postgres|f64,i64|b / a",
    "postgres|f32,f32|a - b",
    "postgres|f64|a / 1e300 > 0",
    "postgres|f64|a::real",
    "postgres|ts|extract(milliseconds FROM a)",
    "postgres|ts|date_part('second', a) * 3",
    "postgres|date|extract(year FROM a::timestamp - INTERVAL '1900 years') = -1",
    "postgres|date|extract(isoyear FROM a::timestamp - INTERVAL '3999 years')",
    "postgres|date|extract(year FROM a::timestamp - INTERVAL '3999 years') * 2 < 0",
    "postgres|date|date_part('year', a::timestamp - INTERVAL '1900 years') IN (-1, 113)",
    "postgres|ts|extract(year FROM a) < 2013",
    "postgres|i16|make_date(-a / 7, 1, 1)",
    "postgres|time|date_part('milliseconds', a)",
    "postgres|ts|date_part('epoch', a)",
    "postgres|date|date_part('epoch', a)",
    "postgres|time|date_part('second', a)",
    "postgres|text|upper(a)",
    "duckdb|tz|epoch(a)",
    "duckdb|era_tz|year(a)",
    "duckdb|era_tz|date_part('year', a) BETWEEN 1 AND 2",
    "duckdb|era_tz|extract(year FROM a) % 4 = 0",
    "duckdb|era|year(a)",
    "duckdb in New York|tz|year(a) = 1",
    "duckdb in New York|tz|extract(epoch FROM a) / 2",
    "duckdb|i64|to_timestamp(a)",
    "pyarrow|f32|a + 3",
    "pyarrow|f32|a * 128",
    "pyarrow|f32|pc.divide(a, 1.5)",
    "pyarrow|u64|a - 1 < 0",
    "pyarrow|u64,i32|a / b",
    "pyarrow|i8|pc.add_checked(a, 2)",
    "pyarrow|d10|a > 1.5",
    "polars|u64|a / 4",
]
REFUSED_EXPRESSIONS = [
    ("pyarrow|d10|a == -2.55", converted_sides, "compared"),
    ("pyarrow|d10|a + 0.1", converted_sides, "computed"),
    ("pyarrow|d10,f64|a * b", converted_sides, "computed"),
    ("polars|u64|a / -1", operands, "_check_signs"),
    ("polars|u64|-1 / a * 3", operands, "_check_signs"),
]


def differences(verdict: Verdict) -> list[str]:
    """What differs, failures of our side alone included."""
    return [*verdict.findings, *verdict.fails_here]


@pytest.mark.parametrize("name", REFUSED)
def test_text_that_the_engine_means_otherwise_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case.named(name)
    assert compared(case).skipped.startswith("refused: ")
    for check in ("_check_read", "check_coercion"):
        monkeypatch.setattr(language, check, lambda *_: None)
    assert differences(compared(case))  # what the check is for


@pytest.mark.parametrize("name", UNREAD)
def test_text_of_another_form_than_the_engine_reads_is_refused(name: str) -> None:
    assert compared(Case.named(name)).skipped.startswith("refused: ")


@pytest.mark.parametrize(
    ("name", "module", "check"), REFUSED_EXPRESSIONS, ids=[name for name, *_ in REFUSED_EXPRESSIONS]
)
def test_expression_that_the_engine_computes_otherwise_is_refused(
    name: str, module: ModuleType, check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case.named(name)
    assert compared(case).skipped.startswith("refused: ")
    monkeypatch.setattr(module, check, lambda _, operands, *__: operands)
    assert differences(compared(case))


@pytest.mark.parametrize("text", ["pc.is_in(a)", "pc.starts_with(a)", "pc.utf8_trim(a)"])
def test_pyarrow_call_without_its_options_is_refused(text: str) -> None:
    assert "is called without its option" in compared(Case("pyarrow", "text", text)).skipped


@pytest.mark.parametrize("name", ["datafusion|i8,i8|a / b", "datafusion|i64,i16|a / b >= 0.5"])
def test_a_quotient_of_the_least_integer_by_minus_one_fails_as_in_the_engine(name: str) -> None:
    verdict = compared(Case.named(name))
    assert not [*differences(verdict), *verdict.fails_there]
    assert verdict.compared


@pytest.mark.parametrize("name", EVALUATED)
def test_text_has_the_values_of_the_engine(name: str) -> None:
    verdict = compared(Case.named(name))
    assert not differences(verdict)
    assert verdict.compared


def chosen(engine: str, share: int) -> Iterator[Case]:
    """The cases of a share: all of them, or a few without those of the engine's catalogue.

    To the few, which are always the same, some of the day are added.
    """
    every = cases(engine, names_of(engine) if IS_DEEP else ())
    step = STEPS[ENGINES[engine].about is not None]  # there are fewer cases of one type
    if engine in WITH_SPARK and not IS_DEEP:
        step *= 5
    fixed = itertools.islice(every, share * step, None, SHARES * step)
    if IS_DEEP:
        return fixed
    first = today().toordinal() % (FRESH * step)
    return itertools.chain(fixed, itertools.islice(cases(engine, ()), first, None, FRESH * step))


@pytest.mark.spark
@pytest.mark.usefixtures("judging_spark")
@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("engine", WITH_SPARK)
def test_every_text_has_the_values_of_spark_or_is_refused(engine: str, share: int) -> None:
    compare_all(engine, share)


@pytest.mark.parametrize("share", range(SHARES))
@pytest.mark.parametrize("engine", ALONE)
def test_every_text_has_the_values_of_its_engine_or_is_refused(engine: str, share: int) -> None:
    compare_all(engine, share)


def compare_all(engine: str, share: int) -> None:
    """Compare the cases of a share; each difference is named, and each failure of one side."""
    found: dict[str, list[str]] = {}
    judged = 0
    dialect = ENGINES[engine].dialect
    for case, verdict in compared_all(list(chosen(engine, share))):
        judged += verdict.compared
        failures = unjudged(case, dialect, verdict.fails_here, verdict.fails_there)
        if verdict.findings or failures:
            found[case.name] = [*verdict.findings[:3], *failures[:3]]
    assert not found
    assert judged >= (1_000 if IS_DEEP else 1)
