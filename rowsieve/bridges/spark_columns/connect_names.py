"""Functions by the names that a Connect client gives them, and the classes of Catalyst they become.

What is in no table here is refused by its name.
"""

from __future__ import annotations

from collections.abc import Mapping

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
    "isnull": "IsNull",
    "isnotnull": "IsNotNull",
    "isnan": "IsNaN",
    "lower": "Lower",
    "lcase": "Lower",
    "upper": "Upper",
    "ucase": "Upper",
    "length": "Length",
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
    "last_day": "LastDay",
    "datediff": "DateDiff",
    "date_diff": "DateDiff",
    "add_months": "AddMonths",
    "date_add": "DateAdd",
    "date_sub": "DateSub",
    "trunc": "TruncDate",
    "unix_micros": "UnixMicros",
    "timestamp_seconds": "SecondsToTimestamp",
    "current_timestamp": "CurrentTimestamp",
    "now": "CurrentTimestamp",
    "array_size": "ArraySize",
    "get": "Get",
    "rlike": "RLike",
    "regexp": "RLike",
    "rand": "Rand",
    "uuid": "Uuid",
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
