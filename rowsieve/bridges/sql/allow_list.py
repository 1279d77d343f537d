"""Allow-list: zone functions, patterns and casts verified to behave alike in each engine.

`to_sql` writes whatever reads back as the same tree, but the engine may interpret it differently.
Soundness: translation rejects a construct that neither this list nor the table of functions names,
together with its whole condition.
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
    """The reason why the dialect may compute other values for the call; empty if it does not."""
    name = use.call.function
    if name in ZONE_FUNCTIONS:
        known = name in ZONED.get(dialect, ()) and is_proved(use.call, dialect)
        return "" if known else f"{name} may give other values in {dialect}"
    if name == "regex_matches":
        return "" if _reads_back(use, dialect) else f"{dialect} interprets this pattern differently"
    if name in FOUND and in_flavour(use.call, dialect) is None:
        return f"{dialect} may match another text with this pattern"
    return refusal(use, dialect)


def verified(dialect: str) -> frozenset[str]:
    """Functions that the dialect computes as we do, at least for some arguments."""
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
    """Whether engines return 32 bits from this function, which returns 64 bits here."""
    return isinstance(operand, Call) and operand.function in _NARROW
