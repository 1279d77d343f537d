"""Spellings of arithmetic, rounding and bits."""

from __future__ import annotations

from rowsieve.bridges.functions.arguments import (
    constant_divisor,
    constant_shift,
    floats,
    one_float,
    quotients,
    signed,
    signed_bits,
    signed_not_bits,
    signed_short,
    signed_whole,
    sums,
    sums_not_floats,
    whole_numbers,
)
from rowsieve.bridges.functions.row import SQL_ENGINES, Absent, Spelling, function, unverified

_SUMS = {"postgres": sums_not_floats, "spark": sums_not_floats}
_QUOTIENT = unverified("it rounds other kinds of quotients differently", "{0} / {1}")
_LAST_DIGITS = "its last digits differ between math libraries; store the value as a column"
_OWN_LIBRARY = {"spark": Absent(_LAST_DIGITS), "trino": Absent(_LAST_DIGITS)}  # of Java
_DIGITS = "it rounds the last digits differently"
_DEGREES = Spelling(("({0} * 57.29577951308232)",), ("degrees({0})",), reason=_DIGITS)
_LOWER_HEX = "the parser confuses to_hex, which is lower case, with its upper-case variant"

_APPROXIMATE = "log log2 log10 cbrt sin cos tan asin acos atan atan2 sinh cosh tanh cot"

ROWS = (
    *(
        function(name, (), **dict.fromkeys(SQL_ENGINES, Absent(_LAST_DIGITS)))
        for name in _APPROXIMATE.split()
    ),
    *(function(name, f"{name}({{0}})", one_float, **_OWN_LIBRARY) for name in ("ln", "exp")),
    function("power", "power({0}, {1})", floats, **_OWN_LIBRARY),
    function("add", "{0} + {1}", sums, **_SUMS),
    function("subtract", "{0} - {1}", sums, **_SUMS),
    function("multiply", "{0} * {1}", sums, **_SUMS),
    function(
        "divide",
        "{0} / {1}",
        constant_divisor,
        spark=_QUOTIENT,
        datafusion=quotients,
        duckdb=_QUOTIENT,
    ),
    function("modulo", "{0} % {1}", constant_divisor, datafusion=quotients),
    *(
        function(
            name,
            f"{name}({{0}}, {{1}})",
            whole_numbers,
            postgres=Spelling(
                (f"{name}(CAST({{0}} AS BIGINT), CAST({{1}} AS BIGINT))",),
                (f"{name}({{0}}, {{1}})",),
            ),
            spark=Absent(),
            duckdb=Spelling((f"{name}({{0}}, {{1}})",), (f"{word}({{0}}, {{1}})",)),
            trino=Absent(),
        )
        for name, word in (("gcd", "greatest_common_divisor"), ("lcm", "least_common_multiple"))
    ),
    function("negate", "", signed, spark=signed_short, datafusion=signed_not_bits),
    function("abs", "abs({0})", signed, spark=signed_short, datafusion=one_float),
    function("floor", "floor({0})", one_float),
    function("ceil", "ceil({0})", one_float),
    function(
        "round",
        ("round({0})", "round({0}, {1})"),
        one_float,
        trino=Absent("its round is limited to 2^63"),
    ),
    function(
        "trunc",
        "trunc({0})",
        one_float,
        spark=Absent("its trunc truncates dates"),
        trino="truncate({0})",
    ),
    function("sqrt", "sqrt({0})", one_float),
    function(
        "sign",
        "sign({0})",
        one_float,
        datafusion="signum({0})",
        duckdb="CAST(sign({0}) AS DOUBLE)",
    ),
    function(
        "is_nan",
        "is_nan({0})",
        one_float,
        postgres=Spelling(("({0} = CAST('NaN' AS DOUBLE PRECISION))",), ("isnan({0})",)),
        spark="({0} = CAST('NaN' AS DOUBLE))",
        datafusion="isnan({0})",
        duckdb="isnan({0})",
    ),
    function("degrees", "degrees({0})", one_float, postgres=_DEGREES),
    function(
        "radians",
        "radians({0})",
        one_float,
        postgres=unverified(_DIGITS, "radians({0})"),
    ),
    function(
        "bit_and", "{0} & {1}", signed_bits, spark=signed_whole, trino="bitwise_and({0}, {1})"
    ),
    function("bit_or", "{0} | {1}", signed_bits, spark=signed_whole, trino="bitwise_or({0}, {1})"),
    function(
        "bit_xor",
        "{0} ^ {1}",
        signed_bits,
        postgres="{0} # {1}",
        spark=signed_whole,
        duckdb="xor({0}, {1})",
        trino="bitwise_xor({0}, {1})",
    ),
    function(
        "shift_left", "{0} << {1}", constant_shift, spark="shiftleft({0}, {1})", trino=Absent()
    ),
    function(
        "shift_right", "{0} >> {1}", constant_shift, spark="shiftright({0}, {1})", trino=Absent()
    ),
    function(
        "hex_digits",
        "hex({0})",
        signed_bits,
        spark=signed_whole,
        postgres=Spelling(("upper(to_hex(CAST({0} AS BIGINT)))",), write_only=_LOWER_HEX),
        datafusion=Spelling(("upper(to_hex({0}))",), write_only=_LOWER_HEX),
        trino=Absent(),
    ),
)
