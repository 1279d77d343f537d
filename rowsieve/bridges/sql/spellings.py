"""How functions are written in each dialect where a name before its arguments does not do.

A template's `{0}` is an argument, `{a0}` one in parentheses unless it is atomic. Soundness: what is
not here, nor among the names in the registry, has no counterpart and is refused. `ABSENT` says why
where a reader may wonder.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.sql.dialects import DATAFUSION_INSTANT
from rowsieve.bridges.sql.parts import PARTS as ALL_PARTS
from rowsieve.bridges.sql.parts import PORTABLE_PARTS
from rowsieve.bridges.sql.zones import FORMS, ZONE_FUNCTIONS
from rowsieve.predicate.functions.registry import BUILT_IN, FUNCTIONS

# Casts of casts in DataFusion, inner and outer type, that are functions of ours.
ARROW_CASTS: Mapping[str, tuple[str, str]] = {
    "epoch_us": ("Timestamp(Microsecond, None)", "Int64"),
    "timestamp_seconds": ('Timestamp(Second, Some("UTC"))', DATAFUSION_INSTANT),
}


def _arrow_casts(name: str) -> str:
    inner, outer = ARROW_CASTS[name]
    return f"arrow_cast(arrow_cast({{0}}, '{inner}'), '{outer}')"


TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "is_nan": {
        "spark": "({a0} = CAST('NaN' AS DOUBLE))",
        "postgres": "({a0} = CAST('NaN' AS DOUBLE PRECISION))",
    },
    "degrees": {"postgres": "({a0} * 57.29577951308232)"},  # its own divides, to other digits
    "sign": {"duckdb": "CAST(sign({0}) AS DOUBLE)"},
    "sha256_hex": {
        "spark": "sha2({0}, 256)",
        "datafusion": "encode(sha256({0}), 'hex')",
        "postgres": "encode(sha256(convert_to({0}, 'UTF8')), 'hex')",
        "trino": "lower(to_hex(sha256(to_utf8({0}))))",
    },
    "hex_digits": {
        "datafusion": "upper(to_hex({0}))",
        "postgres": "upper(to_hex(CAST({0} AS BIGINT)))",
    },
    "md5": {"trino": "lower(to_hex(md5(to_utf8({0}))))"},
    "octet_length": {"trino": "length(to_utf8({0}))"},
    "left": {"trino": "substr({0}, 1, {1})"},
    "contains": {
        "postgres": "(position({1} IN {0}) > 0)",
        "trino": "(strpos({0}, {1}) > 0)",
    },
    **{f"bit_{op}": {"trino": f"bitwise_{op}({{0}}, {{1}})"} for op in ("and", "or")},
    "ends_with": {"postgres": "(right({0}, length({1})) = {1})"},
    "bit_xor": {"duckdb": "xor({0}, {1})", "trino": "bitwise_xor({0}, {1})"},
    "shift_left": {"spark": "shiftleft({0}, {1})"},
    "shift_right": {"spark": "shiftright({0}, {1})"},
    "days_between": {
        "spark": "datediff({0}, {1})",
        "duckdb": "date_diff('day', {1}, {0})",
        "datafusion": "(CAST({0} AS DATE) - CAST({1} AS DATE))",
        "postgres": "(CAST({0} AS DATE) - CAST({1} AS DATE))",
        "trino": "date_diff('day', CAST({1} AS DATE), CAST({0} AS DATE))",
    },
    "epoch_us": {
        "spark": "unix_micros({0})",
        "duckdb": "epoch_us({0})",
        "datafusion": _arrow_casts("epoch_us"),
        "postgres": "CAST(EXTRACT(EPOCH FROM {0}) * 1000000 AS BIGINT)",
    },
    "timestamp_seconds": {
        "spark": "timestamp_seconds({0})",
        "duckdb": "to_timestamp({0})",
        "datafusion": _arrow_casts("timestamp_seconds"),
        "postgres": "to_timestamp({0})",
    },
    "last_day": {
        "spark": "last_day({0})",
        "duckdb": "last_day({0})",
        "datafusion": (
            "CAST(date_trunc('month', {0}) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"
        ),
        "postgres": (
            "CAST(date_trunc('month', CAST({0} AS TIMESTAMP)) + INTERVAL '1 month'"
            " - INTERVAL '1 day' AS DATE)"
        ),
    },
    "make_date": dict.fromkeys(
        ("postgres", "spark", "duckdb", "datafusion"), "make_date({0}, {1}, {2})"
    ),
}

INFIX: Mapping[str, Mapping[str, str]] = {
    "bit_and": dict.fromkeys(("postgres", "spark", "duckdb", "datafusion"), "&"),
    "bit_or": dict.fromkeys(("postgres", "spark", "duckdb", "datafusion"), "|"),
    "bit_xor": {"postgres": "#", "spark": "^", "datafusion": "^"},
    "shift_left": dict.fromkeys(("postgres", "duckdb", "datafusion"), "<<"),
    "shift_right": dict.fromkeys(("postgres", "duckdb", "datafusion"), ">>"),
}

# Parts that a dialect counts from another number, or calls by another name.
PARTS: Mapping[tuple[str, str], str] = {
    ("spark", "dow"): "(dayofweek({0}) - 1)",
    ("spark", "isodow"): "(weekday({0}) + 1)",
    ("spark", "isoyear"): "EXTRACT(YEAROFWEEK FROM {0})",
    ("spark", "second"): "EXTRACT(SECOND FROM {0})",
    ("spark", "whole_second"): "second({0})",
    ("trino", "whole_second"): "second({0})",
    ("postgres", "whole_second"): "CAST(floor(EXTRACT(SECOND FROM {0})) AS BIGINT)",
    **{
        (dialect, part): f"EXTRACT({word} FROM {{0}})"
        for dialect in ("duckdb", "datafusion")
        for part, word in (
            ("dow", "DOW"),
            ("isodow", "ISODOW"),
            ("isoyear", "ISOYEAR"),
            ("whole_second", "SECOND"),
        )
    },
}

TRINO_NAMES: Mapping[str, str] = {
    "abs": "abs",
    "floor": "floor",
    "ceil": "ceil",
    "length": "length",
    "replace": "replace",
    "substr": "substr",
    "position": "strpos",
    "starts_with": "starts_with",
    "reverse": "reverse",
    "coalesce": "coalesce",
    "nullif": "nullif",
    "list_length": "cardinality",
    "lpad": "lpad",
    "rpad": "rpad",
    "sqrt": "sqrt",
    "sign": "sign",
    "is_nan": "is_nan",
    "degrees": "degrees",
    "radians": "radians",
    "ends_with": "ends_with",
    "last_day": "last_day_of_month",
}

ABSENT: Mapping[tuple[str, str], str] = {
    ("date_bin", "spark"): "Spark has no bins for one value, only windows of a query",
    ("reverse", "duckdb"): "DuckDB turns letters with their accents around as one",
    ("concat", "spark"): "Spark's concat is NULL where a part is; that is ||",
}


# What `render_calls` writes by a rule of its own, where the rule's conditions hold.
_BY_RULE: Mapping[str, str] = {
    "left": "left({0}, {1})",
    "right": "right({0}, {1})",
    "substr": "substr({0}, {1}, {2})",
    "trim": "trim(BOTH {1} FROM {0})",
    "ltrim": "trim(LEADING {1} FROM {0})",
    "rtrim": "trim(TRAILING {1} FROM {0})",
    "date_trunc": "date_trunc({0}, {1})",
    "list_element": "{0}[{1}]",
    "concat_strict": "{0} || {1}",
    "modulo": "{0} % {1}",
}
_OWN_RULES: Mapping[tuple[str, str], str] = {
    ("list_element", "spark"): "get({0}, {1} - 1)",
    ("regex_matches", "postgres"): "{0} ~ {1}",
    ("regex_matches", "datafusion"): "{0} ~ {1}",
    ("regex_matches", "spark"): "{0} RLIKE {1}",
    ("regex_matches", "duckdb"): "regexp_matches({0}, {1})",
    ("date_bin", "postgres"): "date_bin(INTERVAL …, {2}, {3})",
    ("date_bin", "datafusion"): "date_bin(INTERVAL …, {2}, {3})",
    ("date_bin", "duckdb"): "time_bucket(INTERVAL …, {2}, {3})",
}
OPERATORS = frozenset(
    {"add", "subtract", "multiply", "divide", "negate", "extract"}
    | {"add_interval", "shift", "shift_timestamp"}
    | {"json_get", "json_get_text", "json_path", "json_path_text"}
)
_COUNTED = ("spark", "datafusion", "duckdb")


def template(name: str, dialect: str) -> str | None:
    """The template of a call of this function; None if a plain name, or nothing, is one."""
    return TEMPLATES.get(name, {}).get(dialect)


def is_named(name: str, dialect: str) -> bool:
    """Whether the registry has a name for the function in this dialect."""
    row = FUNCTIONS.get(name)
    return row is not None and dialect in row.spelling


def shared() -> tuple[str, ...]:
    """The functions that Spark, DataFusion and DuckDB all have, parts of `extract` one by one.

    Operators of arithmetic and intervals, which are no names, are not counted.
    """
    own = {part for _, part in PARTS}
    names = {*BUILT_IN, *(f"extract_{part}" for part in {*PORTABLE_PARTS, *own})}
    return tuple(sorted(name for name in names if all(spelling(name, d) for d in _COUNTED)))


def spelling(name: str, dialect: str) -> str | None:
    """How a function is written there, for the documents; None if it is not."""
    if name in ZONE_FUNCTIONS:
        return FORMS.get((name, dialect))
    part = name.removeprefix("extract_")
    if name != part:
        own = PARTS.get((dialect, part))
        portable = f"EXTRACT({part.upper()} FROM {{0}})" if part in PORTABLE_PARTS else None
        if dialect == "postgres" and part in ALL_PARTS:
            return f"EXTRACT({part.upper()} FROM {{0}})"
        return own or portable or (f"{name}({{0}})" if dialect == "postgres" else None)
    if (sign := INFIX.get(name, {}).get(dialect)) is not None:
        return f"{{0}} {sign} {{1}}"
    if (own := TEMPLATES.get(name, {}).get(dialect)) is not None:
        return own
    if is_named(name, dialect):
        return f"{FUNCTIONS[name].spelling[dialect]}(…)"
    if (rule := _OWN_RULES.get((name, dialect)) or _BY_RULE.get(name)) is not None:
        return rule
    return f"{name}(…)" if dialect == "postgres" and name in BUILT_IN else None


def matrix() -> str:
    """How each function of the registry is written in each dialect, for the documents."""
    dialects = ("postgres", *_COUNTED)
    parts = {f"extract_{part}" for part in {*PORTABLE_PARTS, *(part for _, part in PARTS)}}
    lines = ["| | " + " | ".join(dialects) + " |", "|---" * 5 + "|"]
    for name in sorted({*BUILT_IN, *parts} - OPERATORS):
        cells = [f"`{name}`"]
        for dialect in dialects:
            text = spelling(name, dialect)
            absent = ABSENT.get((name, dialect), "")
            cells.append(f"`{text}`".replace("|", "\\|") if text else absent)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
