"""The spellings of functions in each dialect, for the documentation, and special fields.

The spellings are those of `rowsieve.bridges.functions`; forms that a bridge writes by a rule of its
own are listed here for the reader.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.functions import TABLE, spelling_of
from rowsieve.bridges.sql.constructs.named_zones import FORMS, ZONE_FUNCTIONS
from rowsieve.bridges.sql.constructs.time_fields import ALL_PARTS, part_template
from rowsieve.bridges.sql.dialects import DIALECTS, dialect_named
from rowsieve.predicate.functions.registry import BUILT_IN

_RULES: Mapping[str, str] = {
    "date_trunc": "date_trunc({0}, {1})",
    "list_element": "{0}[{1}]",
    "concat_strict": "{0} || {1}",
    "slice": "{0}[{1}:{1} + {2} - 1]",
}
_OWN_RULES: Mapping[tuple[str, str], str] = {
    ("list_element", "spark"): "get({0}, {1} - 1)",
    ("text_instant", "spark"): "CAST({1} AS TIMESTAMP)",
    ("try_text_instant", "spark"): "TRY_CAST({1} AS TIMESTAMP)",
    ("parse_java_instant", "spark"): "to_timestamp({1}, {2})",
    ("try_parse_java_instant", "spark"): "try_to_timestamp({1}, {2})",
    ("parse_java_timestamp", "spark"): "to_timestamp_ntz({0}, {1})",
    ("try_parse_java_timestamp", "spark"): "to_timestamp_ntz({0}, {1})",
    **{("regex_matches", name): each.texts.regex_match for name, each in DIALECTS.items()},
    **{
        ("date_bin", name): f"{each.times.bins.function}(INTERVAL …, {{2}}, {{3}})"
        for name, each in DIALECTS.items()
        if each.times.bins is not None
    },
}
_ABSENT: Mapping[tuple[str, str], str] = {
    ("date_bin", "spark"): "Spark has no bins for one value, only windows of a query"
}
OPERATORS = frozenset(
    {"add", "subtract", "multiply", "divide", "negate", "extract"}
    | {"add_interval", "shift", "shift_timestamp"}
    | {"json_get", "json_get_text", "json_path", "json_path_text"}
)
_COUNTED = ("spark", "datafusion", "duckdb")


def spelling(name: str, dialect: str) -> str | None:
    """Return a function's spelling in a dialect, for the documentation; None if unsupported."""
    ours = dialect_named(dialect).writes_our_names
    if name in ZONE_FUNCTIONS:
        return FORMS.get((name, dialect))
    part = name.removeprefix("extract_")
    if name != part:
        written = part_template(part, dialect)
        return written or (f"{name}({{0}})" if ours else None)
    entry = spelling_of(name, dialect)
    if entry is not None and entry.templates:
        return entry.templates[0].replace("{rest}", "…")
    if (rule := _OWN_RULES.get((name, dialect)) or _RULES.get(name)) is not None:
        return rule
    return f"{name}(…)" if ours and name in BUILT_IN else None


def matrix() -> str:
    """Return the spelling of each function in each dialect, for the documentation."""
    dialects = ("postgres", *_COUNTED)
    parts = {f"extract_{part}" for part in ALL_PARTS}
    lines = ["| | " + " | ".join(dialects) + " |", "|---" * 5 + "|"]
    for name in sorted({*BUILT_IN, *parts} - OPERATORS):
        cells = [f"`{name}`"]
        for dialect in dialects:
            text = spelling(name, dialect)
            row = TABLE.get(name)
            absent = _ABSENT.get((name, dialect), "")
            if row is not None:
                absent = row.reason(dialect) or absent
            cells.append(f"`{text}`".replace("|", "\\|") if text else absent)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
