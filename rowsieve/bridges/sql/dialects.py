"""The SQL dialects that filters are read from and written to, as rows of one table.

A dialect is what differs in the text: how names and strings are quoted, what a number with a point
or an exponent is, how types are spelt. Soundness: where a dialect's meaning is not ours and cannot
be expressed, reading and writing refuse; they never approximate.
"""

from __future__ import annotations

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
    String,
    Time,
    Timestamp,
    Uuid,
)


class BinaryText(Enum):
    """What the text in `CAST('…' AS BINARY)` is."""

    HEX = "hex"  # \x00ff
    ESCAPED = "escaped"  # \x00\xff
    UTF8 = "utf8"  # the bytes of the text itself; X'00ff' is the other way


class IntegerWidths(Enum):
    """The type of a whole constant where it is computed with, and so that of the result."""

    WIDE = "wide"  # 64 bits
    NARROW = "narrow"  # 32 bits where they hold it
    ADAPTED = "adapted"  # a column's beside one that holds it, else as NARROW


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine writes SQL."""

    name: str
    grammar: str  # sqlglot's name of the grammar that it is read with
    quote: str = '"'  # around identifiers
    backslash_strings: bool = False  # '\'' inside strings, rather than ''
    hex_strings: bool = False  # a string with a quote or a backslash is written as its bytes
    exponent_is_float: bool = True  # 1e5 is a double
    point_is_float: bool = False  # 1.5 is a double
    zeros_count: bool = False  # 0.5 has two of the 38 digits that a decimal may have
    exact_below: int | None = None  # whole numbers from here on are doubles
    like_escape: str | None = "\\"  # the escape character of LIKE without ESCAPE
    divides_integers: bool = True  # 7 / 2 is 3
    widths: IntegerWidths = IntegerWidths.WIDE  # of whole constants, for `integer_widths`
    counts_are_narrow: bool = False  # length(s), date - date and the like have 32 bits
    greedy_distinct: bool = False  # a IS DISTINCT FROM b AND c: its right side is b AND c
    bracket_members: bool = False  # s['x'] is a member of a struct
    binary_text: BinaryText = BinaryText.UTF8
    types: Mapping[LogicalType, str] = field(default_factory=dict)  # how types are written
    borrowed: frozenset[LogicalType] = frozenset()  # of these, names that the engine lacks
    trims_all_spaces: bool = False  # trim(s) takes what Unicode calls a space, not ' ' alone
    orders_by_collation: bool = False  # text has another order than its code points
    semantics: Semantics = Semantics.SQL
    gives_types: bool = False  # its literals and arithmetic are typed by `spark_types`
    translates_listed: bool = False  # only what `vouched` lists is translated from it
    listed_only: bool = False  # nothing is read or written but what `vouched` lists


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

# PostgreSQL has no one-byte and no unsigned integers: DuckDB's names stand for them, so that every
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

# Text that means the same whatever the settings of Spark's parser are: they decide what a backslash
# in a string is, and an exponent.
SPARK_SETTLED = replace(SPARK, hex_strings=True, exponent_is_float=False)

# A TIMESTAMP without (6) has milliseconds there. No Trino was at hand: what is not listed by its
# documents is refused both ways.
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

# DataFusion's TIMESTAMPTZ hangs on the session; an instant has this name, for `arrow_cast`.
DATAFUSION_LOCAL = "Timestamp(Microsecond, None)"
DATAFUSION_INSTANT = 'Timestamp(Microsecond, Some("UTC"))'

DATAFUSION_TYPES: Mapping[LogicalType, str] = {
    Timestamp(utc=False): DATAFUSION_LOCAL,  # a TIMESTAMP has nanoseconds, which end in 2262
    Timestamp(utc=True): DATAFUSION_INSTANT,
    Time(): "Time64(Microsecond)",  # a TIME has nanoseconds, and meets no other
    Uuid(): "FixedSizeBinary(16)",
    Date(): "Date32",
}

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (POSTGRES, SPARK, DATAFUSION, DUCKDB, TRINO)
}


def dialect_named(name: str) -> Dialect:
    """The dialect of this name; `InvalidInput` lists the known ones."""
    if (dialect := DIALECTS.get(name)) is None:
        raise InvalidInput(f"SQL dialect {name!r} is not known; use one of {', '.join(DIALECTS)}")
    return dialect
