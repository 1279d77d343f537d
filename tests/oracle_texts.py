"""What DuckDB reads of a text, asked of DuckDB itself: the oracle of casts under its semantics."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import duckdb
import pyarrow as pa

from rowsieve.errors import UnsupportedOperation
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

_WIDTHS = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}


def named(type_: LogicalType) -> str | None:
    """DuckDB's name of a type whose texts it reads by rules of its own; None of any other."""
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
    with duckdb.connect() as session:
        session.register("texts", pa.table({"place": range(len(texts)), "x": texts}))
        session.execute("SET TimeZone = 'UTC'")
        made = session.sql(f"SELECT TRY_CAST(x AS {type_}) AS y FROM texts ORDER BY place")
        found = plain(made.to_arrow_table().column("y").combine_chunks())
    return [each and uuid.UUID(str(each)).bytes for each in found] if type_ == "UUID" else found


@cache
def duckdb_reads_one(text: str, type_: str) -> Any:
    """The value of one text, None where the cast fails."""
    return duckdb_reads([text], type_)[0]


def plain(values: pa.Array) -> list[Any]:
    """Python values; times as whole numbers, which Python does not hold all of."""
    if pa.types.is_date32(values.type):
        values = values.view(pa.int32())
    elif pa.types.is_temporal(values.type):
        values = values.view(pa.int64())
    return list(values.to_pylist())


@contextmanager
def known_texts() -> Iterator[None]:
    """Pass over what casts a text that DuckDB reads by rules of its own, which is refused."""
    try:
        yield
    except UnsupportedOperation as error:
        if "rules of its own" not in str(error):
            raise
