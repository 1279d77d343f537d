"""The constructs of SQL conditions, and the dialects in which they are exact.

Functions are rows of `rowsieve.bridges.functions`; these constructs have forms of their own.

Soundness: a test writes an example of each in every dialect, and checks that it is exact, or
rejected for the given reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rowsieve.bridges.functions import SQL_ENGINES, TABLE, FunctionRow
from rowsieve.bridges.functions.casts import CASTS
from rowsieve.bridges.sql.constructs.named_zones import ZONED
from rowsieve.bridges.sql.constructs.regexes import Flavour
from rowsieve.bridges.sql.dialects import DIALECTS

_LETTERS = dict.fromkeys(("postgres", "duckdb", "trino"), "case folding may differ")
_TRY = {
    name: "it may fail for other values" for name, each in DIALECTS.items() if not each.gives_types
}
_ZONE = {
    name: "the time zone of the session is not known"
    for name, each in DIALECTS.items()
    if not each.times.declared_zones
}
_NO_TYPE = "it has no such type"


@dataclass(frozen=True, slots=True)
class Construct:
    """A form of a condition, an example of it, and the dialects that reject it."""

    name: str
    example: str  # in postgres, over the columns of the tests
    refused: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


CONDITIONS: tuple[Construct, ...] = (
    Construct("= <>", "i64 = 1 AND s <> 'a'", note="NaN has a guard in trino"),
    Construct("< <= > >=", "i64 < 1 AND f64 >= 2", note="NaN has a guard in trino"),
    Construct("< <= > >= of text", "s < 'a'", note='with COLLATE "C" in postgres'),
    Construct("IS [NOT] DISTINCT FROM", "i64 IS DISTINCT FROM 1"),
    Construct("[NOT] BETWEEN", "i64 BETWEEN 1 AND 2", note="as two comparisons"),
    Construct("[NOT] IN (…)", "i64 IN (1, NULL)", note="floats get zeros of both signs"),
    Construct("IS [NOT] NULL", "s IS NOT NULL"),
    Construct(
        "IS [NOT] NULL of a struct",
        "pair IS NULL",
        {"postgres": "a row of NULLs is NULL there"},
    ),
    Construct("IS [NOT] TRUE, FALSE", "b IS TRUE"),
    Construct("[NOT] LIKE", "s LIKE 'a!%' ESCAPE '!'"),
    Construct("[NOT] ILIKE", "s ILIKE 'a%'", _LETTERS, note="of ASCII in spark"),
    Construct("AND OR NOT", "NOT (i64 = 1 OR b) AND b"),
    Construct("a boolean column", "b"),
    Construct("CASE", "CASE WHEN b THEN i64 ELSE 2 END = 1"),
    Construct("a member of a struct", "(pair).x = 1", note="with a guard in datafusion"),
    Construct(
        "a TIME",
        "time = '10:00:00'",
        {"trino": _NO_TYPE},
        note="in spark where `spark.sql.timeType.enabled` is on",
    ),
    Construct(
        "a UUID",
        "uid = '00000000-0000-0000-0000-000000000000'",
        note="as text in spark",
    ),
    Construct("TRY_CAST", "TRY_CAST(i64 AS smallint) = 1", _TRY),
    Construct("a cast that depends on a time zone", "CAST(tz AS date) = '2024-01-01'", _ZONE),
)


def matrix() -> str:
    """Return a line per construct, cast and function, a cell per dialect, for the documentation."""
    names = list(DIALECTS)
    lines = ["| | | " + " | ".join(names) + " | |", "|---" * (len(names) + 3) + "|"]
    for group, construct, cells, note in _rows():
        shown = [cells[name] for name in names]
        lines.append("| " + " | ".join([group, f"`{construct}`", *shown, note]) + " |")
    return "\n".join(lines)


def _rows() -> Iterator[tuple[str, str, Mapping[str, str], str]]:
    for each in CONDITIONS:
        cells = {name: each.refused.get(name, "exact") for name in DIALECTS}
        yield "condition", each.name, cells, each.note
    for source, target in sorted(set().union(*(CASTS[name] for name in DIALECTS))):
        cells = {
            name: "exact" if (source, target) in CASTS[name] else "unsupported" for name in DIALECTS
        }
        yield "cast", f"{source} to {target}", cells, ""
    for name in sorted(set().union(*ZONED.values())):
        cells = {
            dialect: "exact for Area/City or UTC"
            if name in ZONED.get(dialect, ())
            else "unsupported"
            for dialect in DIALECTS
        }
        yield "function", name, cells, "by the engine's rules for repeated local times"
    flavours = {flavour.value for flavour in Flavour}
    shared = {
        dialect: "exact for patterns that RE2 shares" if dialect in flavours else "unsupported"
        for dialect in DIALECTS
    }
    yield "function", "regex_matches", shared, ""
    for name, row in sorted(TABLE.items()):
        spellings = map(row.spelling, SQL_ENGINES)
        if any(spelling is not None and spelling.cases for spelling in spellings):
            yield "function", name, {dialect: _cell(row, dialect) for dialect in DIALECTS}, ""


def _cell(row: FunctionRow, dialect: str) -> str:
    spelling = row.spelling(dialect)
    if spelling is None or not spelling.cases:
        reason = row.reason(dialect)
        return f"unsupported: {reason}" if reason else "unsupported"
    return "exact for " + "; ".join(case.text for case in spelling.cases)
