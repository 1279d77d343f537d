"""Functions by the names that a Connect client gives them, and the classes of Catalyst they become.

What has no counterpart is refused by its name, for the reason that its class has in `table`; a test
holds the names against the functions of the installed Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from rowsieve.bridges.spark_columns import table

COMPARISONS: Mapping[str, str] = {
    "==": "EqualTo",
    "=": "EqualTo",
    "<=>": "EqualNullSafe",
    "<": "LessThan",
    "<=": "LessThanOrEqual",
    ">": "GreaterThan",
    ">=": "GreaterThanOrEqual",
}
# As they are: their reader refuses arguments of other types than it takes.
DIRECT: Mapping[str, str] = {
    "and": "And",
    "or": "Or",
    "not": "Not",
    "!": "Not",
    "isnull": "IsNull",
    "isnotnull": "IsNotNull",
    "isnan": "IsNaN",
    "lower": "Lower",
    "lcase": "Lower",
    "upper": "Upper",
    "ucase": "Upper",
    "length": "Length",
    "len": "Length",
    "char_length": "Length",
    "character_length": "Length",
    "octet_length": "OctetLength",
    "bit_length": "BitLength",
    "ascii": "Ascii",
    "md5": "Md5",
    "sha2": "Sha2",
    "hex": "Hex",
    "reverse": "Reverse",
    "concat": "Concat",
    "concat_ws": "ConcatWs",
    "left": "Left",
    "right": "Right",
    "replace": "StringReplace",
    "instr": "StringInstr",
    "locate": "StringLocate",
    "repeat": "StringRepeat",
    "lpad": "StringLPad",
    "rpad": "StringRPad",
    "split_part": "SplitPart",
    "translate": "StringTranslate",
    "startswith": "StartsWith",
    "endswith": "EndsWith",
    "contains": "Contains",
    "positive": "UnaryPositive",
    "shiftright": "ShiftRight",
    "shiftleft": "ShiftLeft",
    ">>": "ShiftRight",
    "<<": "ShiftLeft",
    "last_day": "LastDay",
    "datediff": "DateDiff",
    "date_diff": "DateDiff",
    "add_months": "AddMonths",
    "date_add": "DateAdd",
    "dateadd": "DateAdd",
    "date_sub": "DateSub",
    "trunc": "TruncDate",
    "unix_micros": "UnixMicros",
    "from_utc_timestamp": "FromUTCTimestamp",
    "to_utc_timestamp": "ToUTCTimestamp",
    "convert_timezone": "ConvertTimezone",
    "timestamp_seconds": "SecondsToTimestamp",
    "current_timestamp": "CurrentTimestamp",
    "now": "CurrentTimestamp",
    "array_size": "ArraySize",
    "get": "Get",
}
# With the mode of the session, which says what they do where they fail.
NUMBERS: Mapping[str, str] = {
    "negative": "UnaryMinus",
    "abs": "Abs",
    "floor": "Floor",
    "ceil": "Ceil",
    "ceiling": "Ceil",
    "make_date": "MakeDate",
    "element_at": "ElementAt",
}
# Of doubles: whole numbers become doubles.
DOUBLES: Mapping[str, str] = {
    "sqrt": "Sqrt",
    "degrees": "ToDegrees",
    "radians": "ToRadians",
    "sign": "Signum",
    "signum": "Signum",
}
SAME_TYPES: Mapping[str, str] = {
    "coalesce": "Coalesce",
    "ifnull": "Coalesce",
    "nvl": "Coalesce",
    "greatest": "Greatest",
    "least": "Least",
    "nanvl": "NaNvl",
    "&": "BitwiseAnd",
    "|": "BitwiseOr",
    "^": "BitwiseXor",
}
ARITHMETIC: Mapping[str, tuple[str, str]] = {
    "+": ("Add", ""),
    "-": ("Subtract", ""),
    "*": ("Multiply", ""),
    "/": ("Divide", ""),
    "%": ("Remainder", ""),
    "mod": ("Remainder", ""),
    "div": ("IntegralDivide", ""),
    "try_add": ("Add", "TRY"),
    "try_subtract": ("Subtract", "TRY"),
    "try_multiply": ("Multiply", "TRY"),
    "try_divide": ("Divide", "TRY"),
    "try_mod": ("Remainder", "TRY"),
}
PARTS_OF_DATES: Mapping[str, str] = {
    "year": "Year",
    "quarter": "Quarter",
    "month": "Month",
    "weekofyear": "WeekOfYear",
    "day": "DayOfMonth",
    "dayofmonth": "DayOfMonth",
    "dayofyear": "DayOfYear",
    "dayofweek": "DayOfWeek",
    "weekday": "WeekDay",
}
# With the time zone of the session.
WITH_ZONE: Mapping[str, str] = {
    "hour": "Hour",
    "minute": "Minute",
    "second": "Second",
    "current_date": "CurrentDate",
    "curdate": "CurrentDate",
    "localtimestamp": "LocalTimestamp",
}
EXTRACTED: Mapping[str, str] = {
    "SECOND": "SecondWithFraction",
    "YEAROFWEEK": "YearOfWeek",
    "YEAR": "Year",
    "QUARTER": "Quarter",
    "MONTH": "Month",
    "WEEK": "WeekOfYear",
    "DAY": "DayOfMonth",
    "DOY": "DayOfYear",
    "HOUR": "Hour",
    "MINUTE": "Minute",
}
# The unit comes first in Catalyst too; the text that is cut off does not.
TRIMS: Mapping[str, str] = {
    "trim": "StringTrim",
    "btrim": "StringTrim",
    "ltrim": "StringTrimLeft",
    "rtrim": "StringTrimRight",
}
# Read each in a way of its own.
SPECIAL = frozenset(
    (
        *("between", "cardinality", "cast", "date_from_unix_date", "date_part", "date_trunc"),
        *("datepart", "equal_null", "extract", "if", "ilike", "in", "like", "make_dt_interval"),
        *("make_ym_interval", "nullif", "nullifzero", "nvl2", "position", "round", "size"),
        *("substr", "substring", "timestamp_micros", "try_element_at", "when", "zeroifnull"),
    )
)
# How many arguments a function takes, where it is not one.
_COUNTS: Mapping[int | tuple[int, int], str] = {
    0: "curdate current_date current_timestamp localtimestamp now",
    2: """
        & | ^ == = <=> < <= > >= + - * / % mod div and or add_months contains date_add
        date_diff date_sub dateadd datediff element_at endswith equal_null get ifnull instr left
        nanvl nullif nvl repeat right sha2 shiftleft shiftright << >> startswith trunc try_add
        try_divide try_element_at try_mod try_multiply try_subtract
    """,
    3: "if locate lpad make_date nvl2 replace rpad split_part translate",
    (1, 2): "btrim ltrim rtrim trim",
    (1, 10_000_000): "coalesce concat concat_ws greatest in least",
}
_TAKES: Mapping[str, tuple[int, int]] = {
    name: (count, count) if isinstance(count, int) else count
    for count, names in _COUNTS.items()
    for name in names.split()
}
# Names of types, as functions of one argument.
CASTS = frozenset(
    (
        *("bigint", "binary", "boolean", "date", "decimal", "double", "float", "int"),
        *("smallint", "string", "time", "timestamp", "tinyint"),
    )
)
# What no class has for its own name, spelt as the others are, and that has no counterpart here.
_OTHERWISE_NAMED: Mapping[str, str] = {
    name: kind
    for kind, names in {
        "ApproximatePercentile": "approx_percentile percentile_approx",
        "ArrayAggregate": "aggregate reduce",
        "ArrayExists": "exists",
        "ArrayFilter": "filter",
        "ArrayForAll": "forall",
        "ArrayTransform": "transform",
        "Average": "avg mean",
        "Base32": "to_base32",
        "BitAndAgg": "bit_and",
        "BitOrAgg": "bit_or",
        "BitXorAgg": "bit_xor",
        "BitwiseCount": "bit_count",
        "BitwiseGet": "bit_get getbit",
        "BitwiseNot": "~",
        "BoolAnd": "every",
        "BoolOr": "any some",
        "CallMethodViaReflection": "java_method reflect",
        "Chr": "char",
        "CollectList": "array_agg",
        "CountMinSketchAgg": "count_min_sketch",
        "CovPopulation": "covar_pop",
        "CovSample": "covar_samp",
        "CreateArray": "array",
        "CreateMap": "map",
        "CreateNamedStruct": "named_struct struct",
        "CsvToStructs": "from_csv",
        "CurrentDatabase": "current_schema",
        "CurrentTime": "localtime",
        "CurrentUser": "session_user user",
        "DateFormatClass": "date_format",
        "EulerNumber": "e",
        "Explode": "explode_outer",
        "First": "first_value",
        "FormatString": "printf",
        "HyperLogLogPlusPlus": "approx_count_distinct",
        "Inline": "inline_outer",
        "JaroWinkler": "jaro_winkler_similarity",
        "JsonToStructs": "from_json",
        "Last": "last_value",
        "LengthOfJsonArray": "json_array_length",
        "ListAgg": "string_agg",
        "Log": "ln",
        "Logarithm": "log",
        "MillisToTimestamp": "timestamp_millis",
        "Murmur3Hash": "hash",
        "NanosToTimestamp": "timestamp_nanos",
        "ParseToDate": "to_date",
        "ParseToTimestamp": "to_timestamp",
        "ParseToTimestampLTZ": "to_timestamp_ltz",
        "ParseToTimestampNTZ": "to_timestamp_ntz",
        "PosExplode": "posexplode_outer",
        "Pow": "power",
        "Product": "product",
        "RLike": "regexp regexp_like",
        "Rand": "random",
        "Sha1": "sha",
        "ShiftRightUnsigned": ">>>",
        "SparkVersion": "version",
        "StddevSamp": "std stddev",
        "StringSpace": "space",
        "StringSplit": "split",
        "StringToMap": "str_to_map",
        "StructsToCsv": "to_csv",
        "StructsToJson": "to_json",
        "StructsToXml": "to_xml",
        "TimeWindow": "window",
        "TimestampAdd": "timestampadd",
        "TimestampDiff": "timestampdiff",
        "ToCharacter": "to_char to_varchar",
        "TryAverage": "try_avg",
        "UnBase32": "from_base32",
        "UnwrapUDT": "unwrap_udt",
        "VariancePop": "var_pop",
        "VarianceSamp": "var_samp variance",
        "XPathDouble": "xpath_number",
        "XPathList": "xpath",
        "XmlToStructs": "from_xml",
    }.items()
    for name in names.split()
}


def takes(name: str, count: int) -> bool:
    """Whether a function of one of the tables above takes so many arguments."""
    least, most = _TAKES.get(name, (1, 1))
    return least <= count <= most


def is_read(name: str) -> bool:
    """Whether a function is read, of the right arguments."""
    tables = (COMPARISONS, DIRECT, NUMBERS, DOUBLES, SAME_TYPES, ARITHMETIC, PARTS_OF_DATES)
    return name in SPECIAL | CASTS or any(name in one for one in (*tables, WITH_ZONE, TRIMS))


def class_of(name: str) -> str | None:
    """The class of Catalyst for a name of Spark's own; None where the name is not known."""
    return _OTHERWISE_NAMED.get(name) or _by_plain_name().get(_plain(name))


@cache
def _by_plain_name() -> Mapping[str, str]:
    return {_plain(kind): kind for kind in table.ROWS}


def _plain(name: str) -> str:
    return name.replace("_", "").lower()
