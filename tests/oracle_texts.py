"""What engines read of a text: the oracle of casts under their semantics.

DuckDB, DataFusion and PostgreSQL are asked themselves; Trino's rules are written out from its
source, text by text.
"""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any

import pyarrow as pa

from rowsieve.errors import UnreadText
from rowsieve.predicate.semantics import TextReading
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    Time,
    Timestamp,
    Uuid,
)
from tests.duckdb_sessions import duckdb_session
from tests.profiles import IS_DEEP

ALONE = 8  # in `make test`, one text of so many is read alone, too
_WIDTHS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}


_LACKED = {
    TextReading.DATAFUSION: (Uuid(),),
    TextReading.TRINO: (
        Time(),
        Timestamp(utc=True),
        *(Int(bits, signed=False) for bits in _WIDTHS),
    ),
}


def named(type_: LogicalType, reading: TextReading) -> str | None:
    """The name of a type whose texts the engine reads by rules of its own; None of any other."""
    if reading is TextReading.STRICT or type_ in _LACKED.get(reading, ()):
        return None
    match type_:
        case Bool():
            return "BOOLEAN"
        case Int(bits=bits, signed=signed):
            return _WIDTHS[bits] if signed else "U" + _WIDTHS[bits]
        case Float(bits=bits):
            return "REAL" if bits == 32 else "DOUBLE"
        case Decimal(precision=precision, scale=scale):
            return f"DECIMAL({precision},{scale})"
        case Date():
            return "DATE"
        case Time():
            return "TIME"
        case Timestamp(utc=utc):
            return "TIMESTAMPTZ" if utc else "TIMESTAMP"
        case Uuid():
            return "UUID"
    return None


def duckdb_reads(texts: list[str], type_: str) -> list[Any]:
    """The values of `TRY_CAST(text AS type_)` in UTC, times as whole numbers, UUIDs as bytes."""
    with duckdb_session() as session:
        session.register("texts", pa.table({"place": range(len(texts)), "x": texts}))
        session.execute("SET TimeZone = 'UTC'")
        made = session.sql(f"SELECT TRY_CAST(x AS {type_}) AS y FROM texts ORDER BY place")
        found = plain(made.to_arrow_table().column("y").combine_chunks())
    return [each and uuid.UUID(str(each)).bytes for each in found] if type_ == "UUID" else found


_BORROWED = {  # whole numbers that PostgreSQL has no type for
    "TINYINT": (-128, 127),
    **{f"U{name}": (0, 2**bits - 1) for bits, name in _WIDTHS.items()},
}
_OTHER_NAMES = {
    "postgres": {"REAL": "real", "DOUBLE": "double precision"},
    "datafusion": {
        "TIMESTAMP": "Timestamp(Microsecond, None)",
        "TIMESTAMPTZ": 'Timestamp(Microsecond, Some("UTC"))',
        **{f"U{name}": f"{name} UNSIGNED" for name in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT")},
    },
}


def datafusion_reads(texts: list[str], type_: str) -> list[Any]:
    """The values of `TRY_CAST(text AS type_)`, as `duckdb_reads`."""
    import datafusion

    context = datafusion.SessionContext(datafusion.SessionConfig().with_target_partitions(1))
    batch = pa.record_batch({"place": pa.array(range(len(texts)), pa.int64()), "x": texts})
    context.register_record_batches("t", [[batch]])
    name = _OTHER_NAMES["datafusion"].get(type_, type_)
    cast = f"arrow_try_cast(x, '{name}')" if "(M" in name else f"TRY_CAST(x AS {name})"
    made = context.sql(f"SELECT {cast} AS y FROM t ORDER BY place").to_arrow_table()
    found = made.column("y").combine_chunks()
    if pa.types.is_time(found.type):
        return [each and each // 1000 for each in found.view(pa.int64()).to_pylist()]
    return plain(found)


def postgres_reads(texts: list[str], type_: str) -> list[Any]:
    """The values of `CAST(text AS type_)` where PostgreSQL takes the text, as `duckdb_reads`."""
    from tests.bridges.sql.postgres import connection

    if type_ in _BORROWED:
        low, high = _BORROWED[type_]
        wide = [
            int(text) if re.fullmatch(r"\s*[+-]?[0-9]+\s*", text, re.ASCII) else found
            for text, found in zip(texts, postgres_reads(texts, "BIGINT"), strict=True)
        ]
        return [each if each is not None and low <= each <= high else None for each in wide]
    name = _OTHER_NAMES["postgres"].get(type_, type_)
    value = f"x::{name}"
    if type_ == "REAL":
        value = "x::real::float8"
    elif type_.startswith("TIMESTAMP"):
        value = f"(extract(epoch FROM {value}) * 1000000)::text"
    elif type_ in ("DATE", "TIME"):
        start = "'1970-01-01'" if type_ == "DATE" else "'00:00'"
        value = f"extract(epoch FROM ({value} - {start}::{name}))::text"
        if type_ == "DATE":
            value = "(x::date - '1970-01-01')::text"
    connection().execute("SET TimeZone = 'UTC'")
    rows = connection().execute(
        f"SELECT CASE WHEN pg_input_is_valid(x, '{name}') THEN {value} END "
        "FROM unnest(%s::text[]) WITH ORDINALITY AS t (x, place) ORDER BY place",
        (texts,),
    )
    return [_as_plain(each, type_) for (each,) in rows.fetchall()]


def _as_plain(value: Any, type_: str) -> Any:
    if value is None:
        return None
    if type_ == "UUID":
        return uuid.UUID(str(value)).bytes
    if type_ == "TIME":
        return int(decimal.Decimal(value) * 1_000_000)
    return int(decimal.Decimal(value)) if isinstance(value, str) else value


def trino_reads(texts: list[str], type_: str) -> list[Any]:
    """The values of `TRY_CAST(text AS type_)` by the rules of Trino's source."""
    return [_trino_reads(text, type_) for text in texts]


def _trino_reads(text: str, type_: str) -> Any:
    number = re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text.strip())
    spaced = text != text.strip()
    match type_.partition("(")[0]:
        case "BOOLEAN":
            truth = {"t": True, "true": True, "1": True, "f": False, "false": False, "0": False}
            return truth.get(text.lower())
        case "TINYINT" | "SMALLINT" | "INTEGER" | "BIGINT" as name:
            bits = {known: width for width, known in _WIDTHS.items()}[name]
            whole = not spaced and re.fullmatch(r"[+-]?[0-9]+", text)
            return (
                int(text) if whole and -(2 ** (bits - 1)) <= int(text) < 2 ** (bits - 1) else None
            )
        case "DOUBLE" | "REAL" as name:
            if not number and not re.fullmatch(r"[+-]?(NaN|Infinity)", text.strip()):
                return None
            kind = pa.float64() if name == "DOUBLE" else pa.float32()
            return pa.scalar(text.strip().lower().removeprefix("+")).cast(kind).as_py()
        case "DECIMAL":
            precision, scale = map(int, type_[8:-1].split(","))
            if not number or spaced:
                return None
            if decimal.Decimal(text) and decimal.Decimal(text).adjusted() > 40:
                return None
            with decimal.localcontext(prec=500):
                unit = decimal.Decimal(1).scaleb(-scale)
                value = decimal.Decimal(text).quantize(unit, decimal.ROUND_HALF_UP)
            return value if abs(value.scaleb(scale)) < 10**precision else None
        case "DATE" | "TIMESTAMP" as name:
            clock = r"( [0-9]{1,2}:[0-9]{1,2}(:[0-9]{1,2}(\.[0-9]{1,6})?)?)?"
            shape = r"[0-9]{4}-[0-9]{2}-[0-9]{2}" + (clock if name == "TIMESTAMP" else "")
            if not re.fullmatch(shape, text.strip(" ")):
                return None
            day, _, rest = text.strip(" ").partition(" ")
            seconds, _, fraction = rest.partition(".")
            fields = seconds.split(":") if seconds else []
            hour, minute, second = (*map(int, fields), 0, 0, 0)[:3]
            days = (datetime.date.fromisoformat(day) - datetime.date(1970, 1, 1)).days
            micros = ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000
            return days if name == "DATE" else micros + int(fraction.ljust(6, "0"))
        case "UUID":
            return uuid.UUID(text).bytes if len(text) == 36 else None
    raise AssertionError(type_)


READS: Mapping[TextReading, Callable[[list[str], str], list[Any]]] = {
    TextReading.DUCKDB: duckdb_reads,
    TextReading.DATAFUSION: datafusion_reads,
    TextReading.POSTGRES: postgres_reads,
    TextReading.TRINO: trino_reads,
}


@cache
def reads_one(text: str, type_: str, reading: TextReading) -> Any:
    """The value of one text, None where the cast fails."""
    value = READS[reading]([text], type_)[0]
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        raise UnreadText(f"{text!r} is {value} to the engine, which no decimal of ours holds")
    return value


def plain(values: pa.Array) -> list[Any]:
    """Python values; times as whole numbers, which Python does not hold all of."""
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.view(pa.int64())
    return list(values.to_pylist())


@contextmanager
def known_texts() -> Iterator[None]:
    """Pass over what casts a text that its engine reads by rules of its own, which is refused."""
    with suppress(UnreadText):
        yield


def read_apart(
    texts: Sequence[str], read: Callable[[Sequence[str]], list[Any]], refusal: type[Exception]
) -> dict[str, Any]:
    """The values of those texts that are not refused; a list that holds a refused one is halved.

    Some texts, in the deep profile all, are read alone, too: each has the value it has in a list.
    """
    found = _read_or_halved(list(dict.fromkeys(texts)), read, refusal)
    for text in list(found)[:: 1 if IS_DEEP else ALONE]:
        assert repr(read([text])[0]) == repr(found[text]), text
    assert list(map(repr, read(list(found)))) == list(map(repr, found.values()))
    return found


def _read_or_halved(
    texts: list[str], read: Callable[[Sequence[str]], list[Any]], refusal: type[Exception]
) -> dict[str, Any]:
    try:
        return dict(zip(texts, read(texts), strict=True))
    except refusal:
        if len(texts) == 1:
            return {}
    middle = len(texts) // 2
    halves = (texts[:middle], texts[middle:])
    return {k: v for half in halves for k, v in _read_or_halved(half, read, refusal).items()}
