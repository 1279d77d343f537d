"""The SQL dialects of filters, as rows of one table.

A dialect describes its syntax: quotes of names and strings, types of numbers with a point or an
exponent, names of types.

Soundness: if a dialect's meaning differs from ours and cannot be expressed, reading and writing
raise; they never approximate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from rowsieve.errors import InvalidInput
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Float,
    Int,
    Json,
    LogicalType,
    Nanos,
    String,
    Time,
    Timestamp,
    Uuid,
)


class BinaryText(Enum):
    """The meaning of the text in `CAST('…' AS BINARY)`."""

    HEX = "hex"  # \x00ff
    ESCAPED = "escaped"  # \x00\xff
    UTF8 = "utf8"  # the bytes of the text; writing uses X'00ff'


class IntegerWidths(Enum):
    """The type of an integer constant in arithmetic, and so the type of the result."""

    WIDE = "wide"  # 64 bits
    NARROW = "narrow"  # 32 bits if they hold it
    ADAPTED = "adapted"  # the column's type if it holds the constant, otherwise NARROW


@dataclass(frozen=True, slots=True)
class Dialect:
    """The SQL syntax of one engine."""

    name: str
    grammar: str  # sqlglot's name of its grammar
    quote: str = '"'  # of identifiers
    backslash_strings: bool = False  # '\'' inside strings, instead of ''
    hex_strings: bool = False  # strings with a quote or a backslash are written as bytes
    variables: re.Pattern[str] | None = None  # the engine replaces them anywhere in a text
    exponent_is_float: bool = True  # 1e5 is a double
    point_is_float: bool = False  # 1.5 is a double
    zeros_count: bool = False  # 0.5 uses two of a decimal's 38 digits
    exact_below: int | None = None  # integers from here on are doubles
    like_escape: str | None = "\\"  # the default escape character of LIKE
    divides_integers: bool = True  # 7 / 2 is 3
    widths: IntegerWidths = IntegerWidths.WIDE  # of integer constants, for `integer_widths`
    counts_are_narrow: bool = False  # length(s), date - date etc. have 32 bits
    greedy_distinct: bool = False  # a IS DISTINCT FROM b AND c: its right operand is b AND c
    bracket_members: bool = False  # s['x'] is a field of a struct
    binary_text: BinaryText = BinaryText.UTF8
    types: Mapping[LogicalType, str] = field(default_factory=dict)  # names of types
    borrowed: frozenset[LogicalType] = (
        frozenset()
    )  # types with borrowed names, which the engine lacks
    trims_all_spaces: bool = False  # trim(s) removes all Unicode spaces
    orders_by_collation: bool = False  # text does not order by code points
    semantics: Semantics = Semantics.SQL
    gives_types: bool = False  # `spark_types` gives types to its literals and arithmetic
    translates_listed: bool = False  # only what `exact` lists is translated from it
    listed_only: bool = False  # only what `exact` lists is read or written


_COMMON_TYPES: Mapping[LogicalType, str] = {
    Bool(): "BOOLEAN",
    Int(16): "SMALLINT",
    Int(32): "INTEGER",
    Int(64): "BIGINT",
    Float(32): "REAL",
    Float(64): "DOUBLE",
    String(): "VARCHAR",
    Date(): "DATE",
    Time(): "TIME",
    Timestamp(utc=False): "TIMESTAMP",
}
_NAMED_UNSIGNED: Mapping[LogicalType, str] = {
    Int(8): "TINYINT",
    Int(8, signed=False): "UTINYINT",
    Int(16, signed=False): "USMALLINT",
    Int(32, signed=False): "UINTEGER",
    Int(64, signed=False): "UBIGINT",
}

# PostgreSQL has no one-byte and no unsigned integers; DuckDB's names are used, so that every
# literal can be written in the default dialect.
POSTGRES = Dialect(
    "postgres",
    "postgres",
    widths=IntegerWidths.NARROW,
    counts_are_narrow=True,
    borrowed=frozenset(_NAMED_UNSIGNED),
    semantics=Semantics.POSTGRES,
    orders_by_collation=True,
    exponent_is_float=False,
    binary_text=BinaryText.HEX,
    types={
        **_COMMON_TYPES,
        **_NAMED_UNSIGNED,
        Float(64): "DOUBLE PRECISION",
        Binary(): "BYTEA",
        Timestamp(utc=True): "TIMESTAMPTZ",
        Uuid(): "UUID",
        Json(): "JSON",
    },
)
DUCKDB = Dialect(
    "duckdb",
    "duckdb",
    widths=IntegerWidths.ADAPTED,
    semantics=Semantics.DUCKDB,
    translates_listed=True,
    like_escape=None,
    divides_integers=False,
    bracket_members=True,
    trims_all_spaces=True,
    zeros_count=True,
    binary_text=BinaryText.ESCAPED,
    types={
        **_COMMON_TYPES,
        **_NAMED_UNSIGNED,
        Binary(): "BLOB",
        Timestamp(utc=True): "TIMESTAMPTZ",
        Nanos(utc=False): "TIMESTAMP_NS",
        Uuid(): "UUID",
        Json(): "JSON",
    },
)
DATAFUSION = Dialect(
    "datafusion",
    "postgres",
    semantics=Semantics.DATAFUSION,
    translates_listed=True,
    point_is_float=True,
    exact_below=2**64,
    greedy_distinct=True,
    bracket_members=True,
    types={
        **_COMMON_TYPES,
        Int(8): "TINYINT",
        Int(8, signed=False): "TINYINT UNSIGNED",
        Int(16, signed=False): "SMALLINT UNSIGNED",
        Int(32, signed=False): "INT UNSIGNED",
        Int(64, signed=False): "BIGINT UNSIGNED",
        Binary(): "BYTEA",
    },
)
SPARK = Dialect(
    "spark",
    "spark",
    semantics=Semantics.SPARK,
    gives_types=True,
    quote="`",
    backslash_strings=True,
    variables=re.compile(r"\$\{(?:\w+?:)?\S+?\}", re.ASCII),  # `ConfigReader` of Spark 4.3
    divides_integers=False,
    bracket_members=True,
    types={
        **_COMMON_TYPES,
        Int(8): "TINYINT",
        Float(32): "FLOAT",
        String(): "STRING",
        Binary(): "BINARY",
        Timestamp(utc=False): "TIMESTAMP_NTZ",
        Timestamp(utc=True): "TIMESTAMP",
    },
)

# Text with the same meaning under all settings of Spark's parser, which decide on backslashes in
# strings and on exponents.
SPARK_SETTLED = replace(SPARK, hex_strings=True, exponent_is_float=False)

# A TIMESTAMP without (6) has milliseconds. Not tested against a running Trino: constructs that its
# documentation does not define are rejected in both directions.
TRINO = Dialect(
    "trino",
    "trino",
    widths=IntegerWidths.NARROW,
    like_escape=None,
    types={
        **{type_: name for type_, name in _COMMON_TYPES.items() if not isinstance(type_, Time)},
        Int(8): "TINYINT",
        Binary(): "VARBINARY",
        Timestamp(utc=False): "TIMESTAMP(6)",
        Uuid(): "UUID",
    },
    semantics=Semantics.TRINO,
    translates_listed=True,
    listed_only=True,
)

# DataFusion's TIMESTAMPTZ depends on the session; `arrow_cast` takes this name of an instant.
DATAFUSION_LOCAL = "Timestamp(Microsecond, None)"
DATAFUSION_INSTANT = 'Timestamp(Microsecond, Some("UTC"))'

DATAFUSION_TYPES: Mapping[LogicalType, str] = {
    Timestamp(utc=False): DATAFUSION_LOCAL,  # a TIMESTAMP has nanoseconds, which end in 2262
    Timestamp(utc=True): DATAFUSION_INSTANT,
    Nanos(utc=False): "Timestamp(Nanosecond, None)",
    Nanos(utc=True): 'Timestamp(Nanosecond, Some("UTC"))',
    Time(): "Time64(Microsecond)",  # a TIME has nanoseconds, and compares with no other
    Uuid(): "FixedSizeBinary(16)",
    Date(): "Date32",
}

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (POSTGRES, SPARK, DATAFUSION, DUCKDB, TRINO)
}


def dialect_named(name: str) -> Dialect:
    """Return the dialect with this name; `InvalidInput` lists the known ones."""
    if (dialect := DIALECTS.get(name)) is None:
        raise InvalidInput(f"SQL dialect {name!r} is not known; use one of {', '.join(DIALECTS)}")
    return dialect
