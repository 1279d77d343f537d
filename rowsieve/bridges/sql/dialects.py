"""The SQL dialects of filters, as rows of one table.

A dialect describes its syntax: quotes of names and strings, types of numbers with a point or an
exponent, names of types; and what its engine does, in the groups of `dialect_rules`. Code asks for
the behaviour, so that a dialect is its row, and the leaves that it alone has.

Soundness: if a dialect's meaning differs from ours and cannot be expressed, reading and writing
raise; they never approximate.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, TypeAlias

from rowsieve.arguments.kinds import Example, Verified
from rowsieve.bridges.sql.dialect_rules import (
    AnyOf,
    AtTimeZone,
    Bins,
    Contains,
    LikeLists,
    ListPair,
    ListRules,
    Moves,
    SimilarTo,
    Subscripts,
    TextRules,
    TimeRules,
)
from rowsieve.errors import InvalidInput
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.days import DAY_US
from rowsieve.types.logical import (
    Binary,
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    Json,
    LogicalType,
    Nanos,
    Numeric,
    String,
    Time,
    Timestamp,
    Uuid,
)
from rowsieve.types.time_zones import UNTIL_2100


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
    floats_saturate: bool = False  # 1e400 is infinity, and 1e-400 is 0
    zeros_count: bool = False  # 0.5 uses two of a decimal's 38 digits
    exact_below: int | None = None  # integers from here on are doubles
    divides_integers: bool = True  # 7 / 2 is 3
    float_dividends: bool = False  # in a quotient of doubles the dividend is the float
    widths: IntegerWidths = IntegerWidths.WIDE  # of integer constants, for `integer_widths`
    counts_are_narrow: bool = False  # length(s), date - date etc. have 32 bits
    greedy_distinct: bool = False  # a IS DISTINCT FROM b AND c: its right operand is b AND c
    bracket_members: bool = False  # s['x'] is a field of a struct
    binary_text: BinaryText = BinaryText.UTF8
    hexadecimal_bits: bool = False  # X'0f' is a string of bits
    types: Mapping[LogicalType, str] = field(default_factory=dict)  # names of types
    borrowed: frozenset[LogicalType] = (
        frozenset()
    )  # types with borrowed names, which the engine lacks
    word_digits: int | None = None  # a product of decimals with at most so many has no more
    bare_decimal: Decimal | Numeric | None = None  # the type of DECIMAL; None: give its digits
    float_is_single: bool = False  # FLOAT has 32 bits, and 64 in the grammar
    arrow_types: Mapping[LogicalType, str] = field(default_factory=dict)  # by `arrow_cast`
    tries_text: bool = False  # TRY_CAST of text is ours
    tries_certain: bool = False  # TRY_CAST of other values that cannot fail, too
    folds_unquoted: bool = False  # names without quotes become lower case
    reads_our_names: bool = False  # functions without a spelling are read by our names
    writes_our_names: bool = False  # and written so
    safe_equality: bool = False  # a <=> b is IS NOT DISTINCT FROM, and no distance
    symmetric_between: bool = False  # BETWEEN SYMMETRIC
    json_operators: bool = False  # -> and #>
    lists: ListRules = field(default_factory=ListRules)
    texts: TextRules = field(default_factory=TextRules)
    times: TimeRules = field(default_factory=TimeRules)
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

_TURN_OF_2000 = 946_684_800_000_000
_MONDAY_2000 = _TURN_OF_2000 + 2 * DAY_US
_LISTS_OF_A_MAP = frozenset({"map_extract", "element_at"})

# PostgreSQL has no one-byte and no unsigned integers; DuckDB's names are used, so that every
# literal can be written in the default dialect.
POSTGRES = Dialect(
    "postgres",
    "postgres",
    widths=IntegerWidths.NARROW,
    counts_are_narrow=True,
    borrowed=frozenset(_NAMED_UNSIGNED),
    semantics=Semantics.POSTGRES,
    exponent_is_float=False,
    binary_text=BinaryText.HEX,
    hexadecimal_bits=True,
    bare_decimal=Numeric(),
    folds_unquoted=True,
    reads_our_names=True,
    writes_our_names=True,
    symmetric_between=True,
    json_operators=True,
    lists=ListRules(
        subscripts=Subscripts.FROM_START,
        subscripts_nest=False,
        slices=True,
        any_of=AnyOf.STANDARD,
        overlaps=ListPair.ANY,
        contains_all=ListPair.ANY,
        dimensions=True,
        braces=True,
        compares_rows=True,
    ),
    texts=TextRules(
        empty_escape=True,
        like_lists=LikeLists.ONE_LIST,
        similar_to=SimilarTo.PATTERN,
        substring_by_regex=True,
        orders_by_collation=True,
    ),
    times=TimeRules(
        has_year_zero=False,
        named_zone_texts=True,
        far_texts=True,
        moves=Moves("add_interval", "add_interval"),
        date_part_is_float=True,
        interval_quarters=False,
        bins=Bins("date_bin", by_months=False),
        at_time_zone=AtTimeZone.CONVERTED,
        truncates_in_zone=True,
    ),
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
    divides_integers=False,
    float_dividends=True,
    floats_saturate=True,
    bracket_members=True,
    zeros_count=True,
    binary_text=BinaryText.ESCAPED,
    word_digits=18,
    bare_decimal=Decimal(18, 3),
    tries_text=True,
    reads_our_names=True,
    lists=ListRules(
        subscripts=Subscripts.BOTH_ENDS,
        slices=True,
        one_value_lists=_LISTS_OF_A_MAP,
        any_of=AnyOf.QUERY,
        contains=Contains.FALSE,
        overlaps=ListPair.ANY,
        contains_all=ListPair.WITHOUT_NULL,
        in_list_column=True,
    ),
    texts=TextRules(
        like_escape=None,
        empty_escape=True,
        glob=True,
        similar_to=SimilarTo.WHOLE_REGEX,
        regex_match="regexp_matches({0}, {1})",
        trims_all_spaces=True,
    ),
    times=TimeRules(
        named_zone_texts=True,
        far_texts=True,
        moves=Moves("add_interval", "add_interval"),
        epoch_is_float=True,
        bins=Bins("time_bucket", origin=_MONDAY_2000, month_origin=_TURN_OF_2000),
        at_time_zone=AtTimeZone.CONVERTED,
    ),
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
    floats_saturate=True,
    greedy_distinct=True,
    bracket_members=True,
    bare_decimal=Decimal(38, 10),
    float_is_single=True,
    arrow_types=DATAFUSION_TYPES,
    tries_text=True,
    tries_certain=True,
    reads_our_names=True,
    folds_unquoted=True,
    safe_equality=True,
    lists=ListRules(
        subscripts=Subscripts.BOTH_ENDS,
        slices=True,
        one_value_lists=_LISTS_OF_A_MAP,
        any_of=AnyOf.FUNCTION,
        contains=Contains.FALSE,
        overlaps=ListPair.WITHOUT_NULL,
        contains_all=ListPair.WITHOUT_NULL,
        shows_members_of_null=True,
        forgets_null_members=True,
        merges=True,
    ),
    texts=TextRules(strict_escapes=True, similar_to=SimilarTo.PART_REGEX),
    times=TimeRules(
        nanoseconds=True,
        cut_units=frozenset({"s", "ms"}),
        interval_quarters=False,
        moves=Moves("shift", "shift_timestamp"),  # `shift` of a date drops less than a day
        days_before_hours=True,
        epoch_is_float=True,
        bins=Bins("date_bin", origin=0, month_origin=0),
        at_time_zone=AtTimeZone.DISPLAYED,
        zone_database=UNTIL_2100,
        declared_zones=True,
        now_in_session_zone=True,
    ),
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
    bare_decimal=Decimal(10, 0),
    safe_equality=True,
    lists=ListRules(
        subscripts=Subscripts.TYPED,
        element="get({list}, {index})",
        contains=Contains.NULL,
        contains_all=ListPair.WITHOUT_NULL,
        missing_place_is_zero=True,
    ),
    texts=TextRules(strict_escapes=True, like_lists=LikeLists.VALUES, regex_match="{0} RLIKE {1}"),
    times=TimeRules(
        timestamp_is_instant=True,
        named_zone_texts=True,
        moves=Moves("shift", "shift"),
        mixed_intervals=False,
        interval_functions=frozenset({"make_dt_interval", "make_ym_interval"}),
        interval_spans=True,
        difference_is_days=False,
        offset_zones=True,
    ),
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
    tries_text=True,
    reads_our_names=True,
    lists=ListRules(
        keyed_elements=True,
        contains=Contains.NULL,
        contains_all=ListPair.WITHOUT_NULL,
        missing_place_is_zero=True,
    ),
    texts=TextRules(like_escape=None, regex_match="regexp_like({0}, {1})"),
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

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect for dialect in (POSTGRES, SPARK, DATAFUSION, DUCKDB, TRINO)
}


def dialect_named(name: str) -> Dialect:
    """Return the dialect with this name; `InvalidInput` lists the known ones."""
    if (dialect := DIALECTS.get(name)) is None:
        raise InvalidInput(f"SQL dialect {name!r} is not known; use one of {', '.join(DIALECTS)}")
    return dialect


DialectName: TypeAlias = Annotated[str, Example("'postgres'"), Verified(dialect_named)]
"""The name of a dialect, as public calls take it."""
