"""The cases of an engine: operators, casts, functions of the table and of its own catalogue.

Each template is filled with columns of every type, every pair of types, and constants. Siblings of
what once differed are texts of their own, and stand in each other: a call's value may be the
engine's where its type is not, which the operation around it shows.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.sql import parse_expression
from rowsieve.errors import RowsieveError
from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import BUILT_IN
from tests.bridges.against_engines import python_expressions
from tests.bridges.against_engines.compare import Case
from tests.bridges.against_engines.engines import ENGINES, Engine
from tests.bridges.against_engines.siblings import siblings

_A, _B = "{0}", "{1}"  # places of columns in a text
_NESTED = 6_000  # texts of an engine in which one stands in another
_FEW = 6  # constants, drawn again for each type and template
_NUMBERS = ("0", "1", "-1", "2", "3", "1.5", "0.1", "9007199254740993")
_WORDS = ("''", "'a'", "'b'", "' '", "'2013-03-10'")
CONSTANTS = (*_NUMBERS, *_WORDS, "NULL")
_COMPARED = (
    *("0", "1", "-1", "1.5", "0.1", "100", "127", "128", "2147483648", "9007199254740993"),
    *("9223372036854775807", "18446744073709551615", "1e0", "2.5e0", "1e300", "-0e0", "'a'", "''"),
    *("'1'", "'1.5'", "'NaN'", "TRUE", "DATE '1970-01-01'", "TIMESTAMP '2013-03-10 02:30:00'"),
    *("'2013-03-10'", "'2013-03-10 02:30:00'", "TIMESTAMPTZ '2013-03-10 07:00:00Z'"),
    *("NULL", "TIME '12:30:01.5'", "DATE '9999-12-31'"),
)
_ARITHMETIC = ("+", "-", "*", "/", "%", "&", "|", "<<", ">>", "||", "^", "#", "//")
_RELATIONS = ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
UNITS = (
    *("microsecond", "millisecond", "second", "minute", "hour", "day", "week", "month"),
    *("quarter", "year", "decade", "century", "millennium"),
)
PARTS = (
    *("year", "quarter", "month", "week", "day", "hour", "minute", "second", "millisecond"),
    *("microsecond", "doy", "dow", "isodow", "isoyear", "epoch", "decade", "century"),
    *("millennium", "milliseconds", "microseconds", "yearweek", "era", "julian", "timezone"),
)
_SPANS = (
    *("1 day", "1 month", "36 hours", "13 months", "1 year", "1 week", "0.5 seconds"),
    *("1 month 1 day", "15 minutes", "3 months"),
)
_CAST_TYPES: Mapping[str, Sequence[str]] = {
    "duckdb": (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "UINTEGER"),
        *("UBIGINT", "HUGEINT", "REAL", "DOUBLE", "DECIMAL(10,2)", "DECIMAL(38,10)", "DECIMAL"),
        *("DECIMAL(4,1)", "VARCHAR", "DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ", "BLOB"),
    ),
    "datafusion": (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "TINYINT UNSIGNED"),
        *("INT UNSIGNED", "BIGINT UNSIGNED", "REAL", "DOUBLE", "DECIMAL(10,2)"),
        *("DECIMAL(38,10)", "DECIMAL(4,1)", "VARCHAR", "DATE", "TIME", "TIMESTAMP"),
    ),
    "postgres": (
        *("boolean", "smallint", "integer", "bigint", "real", "double precision"),
        *("numeric(10,2)", "numeric(38,10)", "numeric(4,1)", "text", "date", "time"),
        *("timestamp", "timestamptz"),
    ),
    "spark": (
        *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
        *("DECIMAL(10,2)", "DECIMAL(38,10)", "DECIMAL(4,1)", "STRING", "DATE", "TIMESTAMP"),
        "TIMESTAMP_NTZ",
    ),
}
_OF_ONE = (
    *("-{0}", "+{0}", "~{0}", "NOT {0}", "{0} IS NULL", "{0} IS TRUE", "{0} IS NOT FALSE"),
    *("{0} IN (0, 1, 2)", "{0} IN (1.5, 0)", "{0} IN ('a', '1')", "{0} NOT IN (1, NULL)"),
    *("{0} IN (9007199254740993, 1)", "{0} IN (0.1, 2.5, 0)", "{0} IN (1e0, 0e0, 2e0, 3e0)"),
    *("{0} BETWEEN 0 AND 1", "{0} BETWEEN -1.5 AND 9007199254740993", "{0} BETWEEN 'a' AND 'b'"),
    *("CASE WHEN {0} IS NULL THEN 0 ELSE {0} END", "CASE {0} WHEN 1 THEN 2 ELSE 3 END"),
    *("CASE WHEN {0} > 0 THEN 1 ELSE 2.5 END", "coalesce({0}, 0)", "coalesce({0}, 1.5)"),
    *("{0} LIKE 'a%'", "{0} LIKE '%B%'", "{0} ILIKE 'A_C%'", "{0} LIKE 'a\\%'", "{0} NOT LIKE ''"),
    *("{0} LIKE 'a!%' ESCAPE '!'", "{0} ~ '^a'", "{0} SIMILAR TO 'a%'", "{0} ~* '^A'"),
    *("trim(BOTH 'a' FROM {0})", "trim(LEADING FROM {0})", "position('b' IN {0})"),
    *("substring({0} FROM 2 FOR 1)", "substring({0} FROM 2)", "overlay({0} PLACING 'x' FROM 2)"),
    *("({0}) / 2 * 2", "floor({0}) / 2", "floor({0}) * 3", "ceil({0}) / 3", "round({0}) / 2"),
    *("round({0}, 0)", "round({0}, 1)", "round({0}, -1)", "round({0}, 1) * 3", "abs({0}) + 1"),
    *(
        "length({0}) / 2",
        "sqrt({0}) + 1",
        "sign({0}) * 2",
        "{0} / 3 * 3",
        "{0} * {0}",
        "-({0}) - 1",
    ),
    *("{0} / 3 = 0.833333", "{0} / 3 > 0.8333333", "{0} * 0.1 = 0.1", "{0} + 0.1 > 1"),
    *("floor({0}) = 9007199254740992", "{0} + 1 > {0}", "{0} - 1 < 0", "sqrt({0}) = 1"),
    *("{0} AT TIME ZONE 'UTC'", "{0} AT TIME ZONE 'Asia/Kathmandu'", "{0}::date = '2013-03-10'"),
)
_OF_TWO = (
    *(f"{{0}} {op} {{1}}" for op in (*_ARITHMETIC, *_RELATIONS)),
    *("coalesce({0}, {1})", "nullif({0}, {1})", "greatest({0}, {1})", "least({0}, {1})"),
    *("CASE WHEN {0} IS NOT NULL THEN {0} ELSE {1} END", "{0} IN ({1}, {0})"),
    *("{0} IN ({1}, 1)", "{0} BETWEEN {1} AND {0}", "{0} NOT BETWEEN {1} AND 1"),
    *("CASE {0} WHEN {1} THEN 1 ELSE 0 END", "{0} AND {1}", "{0} OR {1}", "mod({0}, {1})"),
    *("({0} + {1}) * 2", "{0} / {1} >= 0.8333333", "{0} * {1} > 5", "{0} - {1} < 0"),
    *("{0} / {1} * 3", "coalesce({0}, {1}) / 2", "greatest({0}, {1}) / 2"),
)


def cases(name: str, names: Sequence[str] = (), *, seed: int = 0) -> Iterator[Case]:
    """All cases of an engine; `names`: functions of its catalogue, by name."""
    for types, text in texts(name, names, seed=seed):
        yield Case(name, types, over_columns(text, "a", "b"))


def texts(name: str, names: Sequence[str] = (), *, seed: int = 0) -> Iterator[tuple[str, str]]:
    """Types of columns, and a text with places for them, of each case of an engine."""
    engine = ENGINES[name]
    for types, text in _texts(engine, names, random.Random(seed)):
        if engine.about is None or not engine.about.isdisjoint(types.split(",")):
            yield types, text


def over_columns(text: str, *columns: str) -> str:
    """Put columns in the places of a text, which may have other braces."""
    for place, column in enumerate(columns):
        text = text.replace(f"{{{place}}}", column)
    return text


def _texts(
    engine: Engine, names: Sequence[str], chance: random.Random
) -> Iterator[tuple[str, str]]:
    templates: Sequence[Sequence[str]] = (_OF_ONE, _OF_TWO)
    constants: Sequence[str] = _COMPARED
    if engine.is_sql:
        yield from _sql_texts(engine, names, chance)
    else:
        yield from python_expressions.texts(engine.dialect, engine.types, names)
        templates = python_expressions.templates(engine.dialect)
        constants = python_expressions.CONSTANTS
    alone = [
        (type_, text)
        for type_, text in siblings(engine.dialect)
        if type_ in engine.types or type_ in engine.more_types
    ]
    yield from alone
    outer = [*dict.fromkeys(text for _, text in alone)]
    for _ in range(_NESTED):
        yield _nested(alone, (outer, *templates), constants, chance)


def _sql_texts(
    engine: Engine, names: Sequence[str], chance: random.Random
) -> Iterator[tuple[str, str]]:
    for template in _unary(engine.dialect):
        for type_ in engine.types:
            yield type_, template.format(_A)
    for first, second in product(engine.types, engine.types):
        for template in _OF_TWO:
            yield f"{first},{second}", template.format(_A, _B)
    for template in _OF_TWO:
        for type_, constant in product(engine.types, _COMPARED):
            yield type_, template.format(_A, constant)
            yield type_, template.format(constant, _A)
    for template in _functions(engine.dialect, names):
        yield from _filled(template, engine.types, chance)


def _nested(
    alone: Sequence[tuple[str, str]],
    templates: Sequence[Sequence[str]],
    constants: Sequence[str],
    chance: random.Random,
) -> tuple[str, str]:
    """Put a sibling in the place of the column of another, or of a template."""
    type_, inner = chance.choice(alone)
    around = chance.choice(chance.choice(templates))
    return type_, around.replace(_B, chance.choice(constants)).replace(_A, f"({inner})")


def _unary(dialect: str) -> Iterator[str]:
    yield from _OF_ONE
    for type_ in _CAST_TYPES[dialect]:
        yield f"CAST({{0}} AS {type_})"
        yield f"TRY_CAST({{0}} AS {type_})"
        yield f"CAST({{0}} AS {type_}) = 2"
        yield f"TRY_CAST({{0}} AS {type_}) IN (0, 7, 3)"
    for unit in UNITS:
        yield f"date_trunc('{unit}', {{0}})"
    for part in PARTS:
        yield f"extract({part} FROM {{0}})"
        yield f"date_part('{part}', {{0}})"
    for span in _SPANS:
        yield f"{{0}} + INTERVAL '{span}'"
        yield f"{{0}} - INTERVAL '{span}'"
        yield f"date_bin(INTERVAL '{span}', {{0}}, TIMESTAMP '2001-01-01')"
        yield f"date_bin(INTERVAL '{span}', {{0}})"
        yield f"time_bucket(INTERVAL '{span}', {{0}})"
        yield f"time_bucket(INTERVAL '{span}', {{0}}, TIMESTAMP '2001-01-01')"


def _functions(dialect: str, names: Sequence[str]) -> list[str]:
    """Templates of the table's rows, and calls of names with one to three arguments."""
    found: dict[str, None] = {}
    for row in TABLE.values():
        if (spelling := row.spelling(dialect)) is not None:
            found |= dict.fromkeys((*spelling.templates, *spelling.aliases))
    for name in names:
        forms = (f"{name}({{0}})", f"{name}({{0}}, {{1}})", f"{name}({{0}}, {{1}}, {{2}})")
        found |= dict.fromkeys(form for form in forms if _is_read(form, dialect))
    return [template for template in found if "{rest}" not in template and template]


def _is_read(template: str, dialect: str) -> bool:
    """Whether the dialect's reader knows the call, with columns or with some constants."""
    for fillings in (("a", "b", "a"), ("a", "1", "1"), ("a", "'b'", "'c'"), ("'year'", "a", "b")):
        try:
            tree = parse_expression(template.format(*fillings), dialect)
        except RowsieveError:
            continue
        calls = {node.function for node in ir.walk(tree) if isinstance(node, ir.Call)}
        if calls <= BUILT_IN and "make_struct" not in calls:
            return True
    return False


def _filled(
    template: str, types: Sequence[str], chance: random.Random
) -> Iterator[tuple[str, str]]:
    places = len(set(re.findall(r"\{\d\}", template)))
    if places == 0:
        return
    for type_ in types:
        if places == 1:
            yield type_, template.format(_A)
            continue
        for constants in _constants(places - 1, chance):
            yield type_, template.format(_A, *constants)
        for constants in _constants(places - 1, chance):
            yield type_, template.format(constants[0], _A, *constants[1:])
        for other in dict.fromkeys((type_, "text", "i32", "i64")):
            rest = _constants(places - 2, chance)[0] if places > 2 else ()
            yield f"{type_},{other}", template.format(_A, _B, *rest)


def _constants(count: int, chance: random.Random) -> list[tuple[str, ...]]:
    every = list(product(CONSTANTS, repeat=min(count, 2)))
    chosen = every if len(every) <= _FEW else chance.sample(every, _FEW)
    return [(*each, *each[:1] * (count - len(each))) for each in chosen]
