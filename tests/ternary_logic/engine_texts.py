"""Texts of each engine over random tables: the generator of `bridges/against_engines`.

A text is compared with a value that the engine gives for some row, or asked for NULL; a condition
is asked as it is. The engine in memory is the judge of each reader and of our reading of the text.
A pair is named like others, with `texts` in front: `texts/12/3/duckdb`.
"""

from __future__ import annotations

import datetime as dt
import decimal
import random
import re
from collections.abc import Collection, Mapping
from functools import cache, partial
from typing import Any

import pyarrow as pa

from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Date, LogicalType, Time, Timestamp
from tests.bridges.against_engines.edges import TYPES, decoded
from tests.bridges.against_engines.generator import over_columns, texts
from tests.ternary_logic.histories import History, random_table
from tests.ternary_logic.kinds import Kind
from tests.ternary_logic.pairs import Failure, Report, Room, outcome
from tests.ternary_logic.readers import READERS, Queried, place_for

ENGINES = ("duckdb", "datafusion", "spark")
_EXCLUDED = re.compile(
    # They allocate what a count asks for: one of 2^53 ends DataFusion, and Spark's JVM.
    r"\b(repeat|[lr]pad|space)\(|"
    # DataFusion has one answer for a whole batch, by its first format.
    r"\bto_char\('",
    re.IGNORECASE,
)
_DRAWS = 20  # texts that are drawn for one over columns of the table, and for one without failure


def _kind(type_: pa.DataType, values: Collection[Any]) -> Kind:
    logical = schema_of(pa.schema([("x", type_)]))[0].fields[0].type
    array = pa.array([value for value in values if value is not None], type_)
    match logical:
        case Date():
            array = array.cast(pa.int32())
        case Time() | Timestamp():
            array = array.cast(pa.int64())
    return Kind(logical, array.to_pylist())


KINDS: Mapping[str, Kind] = {name: _kind(*TYPES[name]) for name in TYPES}
"""The types of the generator with its edge values, but those that only its siblings have."""


@cache
def _texts(engine: str) -> list[tuple[str, str]]:
    return [
        (types, text)
        for types, text in texts(engine)
        if KINDS.keys() >= set(decoded(types)) and not _EXCLUDED.search(text)
    ]


def check_texts(
    seed: int, numbers: Collection[int], readers: Collection[str], report: Report
) -> None:
    """Ask texts of each engine over the table of a seed through each reader of its language."""
    with place_for(readers) as uri, random_table(seed, KINDS, uri=uri) as history:
        room = Room(history, report)
        for number in numbers:
            for engine in ENGINES:
                asked = [n for n in readers if READERS[n].language == engine]
                if not asked:
                    continue
                condition = condition_of(f"{seed}/{number}/{engine}", engine, room)
                if condition is None:
                    report.skipped[f"{engine}: no value"] += 1
                    continue
                for name in asked:
                    room.compare(f"texts/{seed}/{number}/{name}", name, condition)


def condition_of(pair: str, engine: str, room: Room) -> str | None:
    """Draw a condition; None if its engine lacks the text, or fails on a value."""
    chance = random.Random(pair)
    judge = room.judge(engine)
    for _ in range(_DRAWS):
        text = drawn(chance, engine, room.history)
        if text is not None and isinstance(judge, Queried):
            values = outcome(partial(_values, judge, text))
            if not isinstance(values, Failure):
                return condition_on(text, values, chance, engine)
    return None


def _values(judge: Queried, text: str) -> list[Any]:
    """The different values of a text over the rows in memory."""
    found: list[Any] = judge.ask(f"SELECT ({text}) AS x FROM t")["x"].unique().to_pylist()
    return found


def condition_on(text: str, values: list[Any], chance: random.Random, engine: str) -> str:
    """A condition that compares a text with one of its values, or asks for NULL."""
    known = [value for value in values if literal(value, engine) is not None]
    if any(isinstance(value, bool) for value in known):
        return text
    if not known or chance.random() < 0.1:
        return f"({text}) IS NULL"
    operator = chance.choice(("=", "<>", "<", "<=", ">", ">="))
    return f"({text}) {operator} {literal(chance.choice(known), engine)}"


def drawn(chance: random.Random, engine: str, history: History) -> str | None:
    """Draw a text over columns that the table has."""
    columns: dict[LogicalType, list[str]] = {}
    for one in history.schema:
        columns.setdefault(one.type, []).append(one.name)
    for _ in range(_DRAWS):
        types, text = chance.choice(_texts(engine))
        places = [columns.get(KINDS[name].type) for name in decoded(types)]
        if places and all(places):
            return over_columns(text, *(chance.choice(names) for names in places if names))
    return None


def literal(value: Any, engine: str) -> str | None:
    """A value as a constant of an engine's SQL; None for one that has no plain form."""
    match value:
        case bool():
            return str(value).upper()
        case int() | decimal.Decimal():
            return str(value)
        case str():
            return _quoted(value, engine)
        case dt.datetime():
            kind = _ZONED_AND_LOCAL[engine][value.tzinfo is None]
            return f"{kind} '{value.replace(tzinfo=None).isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
    return None


_ZONED_AND_LOCAL: Mapping[str, tuple[str, str]] = {
    "duckdb": ("TIMESTAMPTZ", "TIMESTAMP"),
    "datafusion": ("TIMESTAMPTZ", "TIMESTAMP"),
    "postgres": ("TIMESTAMPTZ", "TIMESTAMP"),
    "spark": ("TIMESTAMP", "TIMESTAMP_NTZ"),
}
"""The words for instants and for times without a zone; sessions are in UTC."""


def _quoted(text: str, engine: str) -> str:
    """A text as a constant; Spark's has escapes."""
    if engine == "spark":
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return "'" + text.replace("'", "''") + "'"
