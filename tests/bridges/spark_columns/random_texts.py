"""Random conditions in Spark's SQL over the awkward rows, out of every function that is read.

Each kind of value has its forms: columns, constants, and functions of values of some kinds.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence

_FORMS: Mapping[str, Sequence[str]] = {
    "double": (
        *("f", "whole", "f", "0D", "-0.0D", "1.5D", "7D", "double('NaN')", "double('Infinity')"),
        *("({double} + {double})", "({double} - {double})", "({double} * {double})"),
        *("({double} / {double})", "({double} % {double})", "(-{double})", "(+{double})"),
        *("abs({double})", "sqrt({double})", "degrees({double})", "radians({double})"),
        *("sign({double})", "nanvl({double}, {double})", "coalesce({double}, {double})"),
        *("greatest({double}, {double})", "least({double}, {double})", "round({double})"),
        *("round({double}, {digit})", "CAST({long} AS double)", "CAST({decimal} AS double)"),
        *("CAST({float} AS double)", "if({bool}, {double}, {double})", "nullif({double}, 0D)"),
        *("try_divide({double}, {double})", "try_mod({double}, {double})"),
        "CASE WHEN {bool} THEN {double} WHEN {bool} THEN {double} END",
    ),
    "float": (
        *("g", "g", "CAST({double} AS float)", "({float} + {float})", "({float} * {float})"),
        *("abs({float})", "(-{float})", "float('0.1')", "round({float})", "CAST({int} AS float)"),
    ),
    "long": (
        *("k", "k", "0L", "2L", "floor({double})", "ceil({double})", "floor({float})"),
        *("CAST({double} AS bigint)", "CAST({float} AS bigint)", "CAST({int} AS bigint)"),
        *("TRY_CAST({double} AS bigint)", "CAST({decimal} AS bigint)", "({long} + {long})"),
        *("({long} - {long})", "({long} * {long})", "({long} div {long})", "({long} % {long})"),
        *("shiftleft({long}, {digit})", "shiftright({long}, {digit})", "({long} & {long})"),
        *("({long} | {long})", "({long} ^ {long})", "unix_micros({instant})", "abs({long})"),
        *("(-{long})", "nullif({long}, {long})", "coalesce({long}, {long})"),
    ),
    "int": (
        *("i", "small", "i", "0", "1", "-3", "({int} + {int})", "({int} - {int})", "({int} % 3)"),
        *("({int} * {int})", "length({text})", "instr({text}, 'a')", "locate('b', {text})"),
        *("ascii({text})", "octet_length({text})", "bit_length({text})", "year({date})"),
        *("quarter({date})", "month({date})", "weekofyear({date})", "day({clock})"),
        *("dayofyear({date})", "dayofweek({date})", "weekday({date})", "hour({clock})"),
        *("minute({instant})", "second({instant})", "extract(YEAROFWEEK FROM {date})"),
        *("datediff({date}, {date})", "CAST({double} AS int)", "TRY_CAST({float} AS int)"),
        *("CAST({decimal} AS int)", "TRY_CAST({long} AS int)", "CAST({bool} AS int)", "size(l)"),
        *("array_size(l)", "get(l, {digit})", "try_element_at(l, 1)", "st.x", "m['a']", "size(m)"),
        *("coalesce({int}, {int})", "nullif({int}, {int})", "zeroifnull({int})", "abs({int})"),
        *("shiftright({int}, {digit})", "({int} & {int})", "CASE WHEN {bool} THEN {int} END"),
        *("nvl2({text}, {int}, {int})", "nullifzero({int})", "({int} | 5)", "length(y)"),
    ),
    "decimal": (
        *("d", "d", "w", "1.50", "({decimal} + d)", "(d - {decimal})", "(d * 2)", "(d / 2)"),
        *("(d % 0.7)", "round({decimal}, {digit})", "floor({decimal})", "ceil({decimal})"),
        *("abs({decimal})", "(-{decimal})", "CAST({int} AS decimal(12,2))"),
        *("TRY_CAST({int} AS decimal(4,2))", "CAST({decimal} AS decimal(8,1))"),
        *("extract(SECOND FROM {clock})", "greatest(d, 1.25)", "try_divide(d, d)"),
    ),
    "text": (
        *("s", "s", "st.y", "''", "'a'", "'é'", "lower({text})", "upper({text})"),
        *("substring({text}, {digit})", "substring({text}, {digit}, 2)", "left({text}, {digit})"),
        *("right({text}, {digit})", "trim({text})", "ltrim({text})", "rtrim({text})"),
        *("trim(BOTH 'ab' FROM {text})", "btrim({text})", "replace({text}, 'a', 'bc')"),
        *("reverse({text})", "concat({text}, {text})", "({text} || 'x')", "repeat({text}, 2)"),
        *("concat_ws('-', {text}, {text})", "lpad({text}, {digit}, 'xy')", "md5({text})"),
        *("rpad({text}, {digit}, ' ')", "split_part({text}, 'a', 1)", "sha2({text}, 256)"),
        *("translate({text}, 'ab', 'x')", "hex({long})", "CAST({int} AS string)", "hex({int})"),
        *("CAST({decimal} AS string)", "CAST({date} AS string)", "CAST({bool} AS string)"),
        *("CAST({clock} AS string)", "coalesce({text}, {text})", "nvl({text}, 'none')"),
    ),
    "date": (
        *("day", "day", "DATE '2024-02-29'", "last_day({date})", "date_add({date}, {digit})"),
        *("date_sub({date}, {digit})", "add_months({date}, {digit})", "trunc({date}, 'MM')"),
        *("CAST({clock} AS date)", "CAST({instant} AS date)", "make_date(2024, {int}, {int})"),
        *("({date} + INTERVAL 1 MONTH)", "({date} - INTERVAL 2 MONTH)", "coalesce({date}, day)"),
    ),
    "clock": (
        *("n", "n", "TIMESTAMP_NTZ '2024-03-31 02:30:00'", "CAST({date} AS timestamp_ntz)"),
        *("date_trunc('{unit}', {clock})", "({clock} + INTERVAL 1 HOUR)"),
        *("({clock} - INTERVAL 1 MONTH)", "({clock} - INTERVAL '1 02:03:04.5' DAY TO SECOND)"),
    ),
    "instant": (
        *("ts", "ts", "CAST({date} AS timestamp)", "CAST({clock} AS timestamp)"),
        *("date_trunc('{unit}', {instant})", "({instant} + INTERVAL 1 DAY)"),
        *("timestamp_seconds({int})", "({instant} - INTERVAL 1 MONTH)"),
    ),
    "bool": (
        *("b", "isnan({double})", "{any} IS NULL", "CAST({int} AS boolean)", "{text} LIKE 'a%'"),
        *("{text} LIKE '_b%'", "{text} ILIKE 's%'", "startswith({text}, 'a')", "b <=> {bool}"),
        *(
            "endswith({text}, 'b')",
            "contains({text}, 'é')",
            "{int} IN (1, 2, NULL)",
            "NOT ({bool})",
        ),
        *("{double} IN (0D, 1.5D, double('NaN'))", "{text} NOT IN ('a', 'é')", "{int} IN (0, 12)"),
        *("equal_null({text}, {text})", "{int} BETWEEN {int} AND {int}", "{same}", "{same}"),
    ),
    "digit": ("0", "1", "2", "3", "5"),
    "unit": ("year", "month", "week", "day", "hour", "quarter", "second", "millisecond"),
}
_COMPARED = ("double", "float", "long", "int", "decimal", "text", "date", "clock", "instant")
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_HOLE = re.compile(r"\{(\w+)\}")
_DEPTH = 3


def condition(seed: int) -> str:
    """One condition, the same for a seed."""
    chance = random.Random(seed)
    return _filled("{same}" if chance.random() < 0.8 else "{bool}", chance, _DEPTH)


def _filled(form: str, chance: random.Random, depth: int) -> str:
    def of(hole: re.Match[str]) -> str:
        kind = hole[1]
        if kind == "any":
            kind = chance.choice(_COMPARED)
        if kind == "same":
            kind, operator = chance.choice(_COMPARED), chance.choice(_OPERATORS)
            sides = [_filled(f"{{{kind}}}", chance, depth - 1) for _ in range(2)]
            return f"{sides[0]} {operator} {sides[1]}"
        forms = _FORMS[kind]
        if depth <= 0:
            forms = [each for each in forms if not _HOLE.search(each)] or ["b"]
        return _filled(chance.choice(forms), chance, depth - 1)

    return _HOLE.sub(of, form)
