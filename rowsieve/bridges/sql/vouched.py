"""What each engine's SQL is known to mean as we do, besides the table of functions.

Zones, regular expressions and casts: `to_sql` writes whatever reads back as the same tree; an
engine may still mean something else by it. Soundness: what is not listed here or in the table is
refused, and takes its whole condition with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from rowsieve.bridges.functions import TABLE, Use, casts, refusal
from rowsieve.bridges.sql.pattern_calls import FOUND, in_flavour
from rowsieve.bridges.sql.regexes import Flavour, from_re2
from rowsieve.bridges.sql.spark_rules import CASTS as SPARK_CASTS
from rowsieve.bridges.sql.zones import ZONE_FUNCTIONS, is_proved
from rowsieve.predicate.ir import Call, Operand

CASTS: Mapping[str, frozenset[casts.Kinds]] = {
    **casts.CASTS,
    "spark": SPARK_CASTS | casts.TEXTS,
}
ZONED: Mapping[str, frozenset[str]] = {
    "postgres": frozenset({"local_time", "instant", "zoned_trunc"}),
    "duckdb": frozenset({"local_time", "instant", "zoned_trunc"}),
    "datafusion": frozenset({"local_time"}),
    "spark": frozenset({"local_time", "instant"}),
}


def doubt(use: Use, dialect: str) -> str:
    """Why the dialect may give other values for the call; empty if it gives the same."""
    name = use.call.function
    if name in ZONE_FUNCTIONS:
        known = name in ZONED.get(dialect, ()) and is_proved(use.call, dialect)
        return "" if known else f"{name} may give other values in {dialect}"
    if name == "regex_matches":
        return "" if _reads_back(use, dialect) else f"{dialect} reads this pattern in another way"
    if name in FOUND and in_flavour(use.call, dialect) is None:
        return f"{dialect} may find another text by this pattern"
    return refusal(use, dialect)


def verified(dialect: str) -> frozenset[str]:
    """The functions that the dialect gives the same values for, for some arguments."""
    return frozenset(
        name
        for name, row in TABLE.items()
        if (spelling := row.spelling(dialect)) is not None and spelling.cases
    )


def _reads_back(use: Use, dialect: str) -> bool:
    if dialect not in {flavour.value for flavour in Flavour} or len(use.constants) != 1:
        return False
    try:
        from_re2(str(use.constants[0]), Flavour(dialect))
    except ValueError:
        return False
    return True


_NARROW = frozenset(
    {
        "extract",
        "length",
        "octet_length",
        "bit_length",
        "ascii",
        "position",
        "list_length",
        "list_position",
        "regex_count",
        "regex_position",
        "days_between",
        "floor",
        "ceil",
    }
)


def is_narrow(operand: Operand) -> bool:
    """Whether engines give this function, a 64-bit number here, 32 bits."""
    return isinstance(operand, Call) and operand.function in _NARROW
