"""Spellings of functions of text."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import (
    constant_text,
    constant_text_not_empty,
    count_from_zero,
    of_text,
    replaced_not_empty,
    start_and_count,
    start_from_one,
    text_and_counts,
    text_and_ends,
    text_from_one,
    text_or_bytes,
    text_or_list,
    with_constants,
)
from rowsieve.bridges.functions.row import Absent, Spelling, function, unverified

_LOCALE = "its locale decides how letters change case"
_TRIM = ("trim({0})", "trim(BOTH {1} FROM {0})")
_SPACES = Absent("it also trims other white space")


def _padded(name: str) -> tuple[str, ...]:
    """Return the templates with the pad, which DuckDB requires, and without, for spaces."""
    return (f"{name}({{0}}, {{1}}, {{2}})", f"{name}({{0}}, {{1}}, ' ')", f"{name}({{0}}, {{1}})")


def _part(name: str) -> Spelling:
    return Spelling((f"{name}({{0}}, {{1}})",), cases=(of_text,))


ROWS = (
    function(
        "initcap",
        (),
        postgres=Absent(_LOCALE),
        spark=Absent(
            "it splits words at spaces only, other engines at everything but letters and digits"
        ),
        datafusion=Absent(
            "it splits words at everything but letters and digits, Spark at spaces only"
        ),
        duckdb=Absent(),
        trino=Absent(),
    ),
    function("length", "length({0})", of_text, spark=text_or_bytes, duckdb=text_or_list),
    function(
        "lower",
        "lower({0})",
        of_text,
        postgres=unverified(_LOCALE, "lower({0})"),
        trino=Absent(_LOCALE),
    ),
    function(
        "upper",
        "upper({0})",
        of_text,
        postgres=unverified(_LOCALE, "upper({0})"),
        trino=Absent(_LOCALE),
    ),
    function("bit_length", "bit_length({0})", of_text, trino=Absent()),
    function("ascii", "ascii({0})", of_text, trino=Absent()),
    function(
        "octet_length",
        "octet_length({0})",
        of_text,
        duckdb="strlen({0})",
        trino="length(to_utf8({0}))",
    ),
    function("md5", "md5({0})", of_text, trino="lower(to_hex(md5(to_utf8({0}))))"),
    function(
        "sha256_hex",
        "sha256({0})",
        of_text,
        postgres="encode(sha256(convert_to({0}, 'UTF8')), 'hex')",
        spark=Spelling(("sha2({0}, 256)",), ("sha2({0}, 0)",), cases=(of_text,)),
        datafusion="encode(sha256({0}), 'hex')",
        trino="lower(to_hex(sha256(to_utf8({0}))))",
    ),
    function(
        "sha1_hex",
        "sha1({0})",
        of_text,
        postgres=Absent("it has no sha1 without an extension"),
        datafusion=Absent(),
        trino="lower(to_hex(sha1(to_utf8({0}))))",
    ),
    function(
        "sha512_hex",
        "encode(sha512({0}), 'hex')",
        of_text,
        postgres="encode(sha512(convert_to({0}, 'UTF8')), 'hex')",
        spark="sha2({0}, 512)",
        duckdb=Absent(),
        trino="lower(to_hex(sha512(to_utf8({0}))))",
    ),
    function("lpad", _padded("lpad"), with_constants),
    function("rpad", _padded("rpad"), with_constants),
    function(
        "substring_index",
        "substring_index({0}, {1}, {2})",
        with_constants,
        **dict.fromkeys(("postgres", "duckdb", "trino"), Absent()),
    ),
    function("repeat", "repeat({0}, {1})", with_constants, trino=Absent()),
    function("split_part", "split_part({0}, {1}, {2})", with_constants, trino=Absent()),
    function("translate", "translate({0}, {1}, {2})", with_constants, trino=Absent()),
    function("concat_ws", "concat_ws({0}, {rest})", of_text, trino=Absent()),
    function("concat_strict", "", of_text),
    function(
        "concat",
        "concat({0}, {rest})",
        of_text,
        spark=Absent("its concat is NULL where an argument is NULL; write ||"),
        trino=Absent(),
    ),
    function("replace", "replace({0}, {1}, {2})", replaced_not_empty, datafusion=of_text),
    function(
        "trim",
        _TRIM,
        constant_text_not_empty,
        postgres=Spelling(_TRIM, ("trim({0}, {1})",)),
        spark=Spelling(_TRIM, ("trim({1}, {0})", "btrim({0})", "btrim({0}, {1})")),
        datafusion=Spelling(_TRIM, ("trim({0}, {1})",), (of_text,)),
        duckdb=Spelling(_TRIM, ("trim({0}, {1})",)),
        trino=_SPACES,
    ),
    *(
        function(
            name,
            (f"{name}({{0}})", f"trim({side} {{1}} FROM {{0}})"),
            constant_text_not_empty,
            datafusion=of_text,
            trino=_SPACES,
        )
        for name, side in (("ltrim", "LEADING"), ("rtrim", "TRAILING"))
    ),
    function(
        "left",
        "left({0}, {1})",
        text_and_counts,
        datafusion=text_and_ends,
        spark=Spelling(cases=(text_and_counts,), reads=count_from_zero),
        trino="substr({0}, 1, {1})",
    ),
    function(
        "right",
        "right({0}, {1})",
        text_and_counts,
        datafusion=text_and_ends,
        spark=Spelling(cases=(text_and_counts,), reads=count_from_zero),
        trino=Absent(),
    ),
    function(
        "substr",
        ("substr({0}, {1})", "substr({0}, {1}, {2})"),
        text_from_one,
        **{
            engine: Spelling(cases=(text_from_one,), reads=start_from_one)
            for engine in ("spark", "datafusion")
        },
        **{  # a negative count is read backwards in duckdb, and gives an empty text in trino
            engine: Spelling(cases=(text_from_one,), reads=start_and_count)
            for engine in ("duckdb", "trino")
        },
    ),
    function(
        "position",
        "strpos({0}, {1})",
        constant_text_not_empty,
        spark="instr({0}, {1})",
        datafusion=of_text,
    ),
    function(
        "starts_with",
        "starts_with({0}, {1})",
        constant_text,
        spark=_part("startswith"),
        duckdb=Spelling(("starts_with({0}, {1})",), ("prefix({0}, {1})",)),
        datafusion=of_text,
    ),
    function(
        "ends_with",
        "ends_with({0}, {1})",
        constant_text,
        postgres=Spelling(("(right({0}, length({1})) = {1})",), ("ends_with({0}, {1})",)),
        spark=_part("endswith"),
        duckdb=Spelling(("ends_with({0}, {1})",), ("suffix({0}, {1})",)),
        datafusion=of_text,
    ),
    function(
        "contains",
        "contains({0}, {1})",
        constant_text,
        postgres=Spelling(("(position({1} IN {0}) > 0)",), ("contains({0}, {1})",)),
        datafusion=of_text,
        spark=_part("contains"),
        trino="(strpos({0}, {1}) > 0)",
    ),
    function(
        "reverse",
        "reverse({0})",
        of_text,
        duckdb=Absent("it keeps a letter and its accents together"),
    ),
)
