"""Named time zones: AT TIME ZONE, and equivalent functions of dialects, in both directions.

Soundness: a name that dialects interpret differently is rejected. An offset as a zone is east of
UTC in Spark and west of it in PostgreSQL; in DataFusion `AT TIME ZONE` keeps an instant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import text_at
from rowsieve.bridges.session import UNKNOWN_ZONES
from rowsieve.bridges.sql.constructs.arrow_times import zone_of_cast
from rowsieve.bridges.sql.constructs.render_literals import quoted
from rowsieve.bridges.sql.dialect_rules import AtTimeZone
from rowsieve.bridges.sql.dialects import Dialect, dialect_named
from rowsieve.bridges.sql.protocols import Reads, Writes
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.functions.times.temporal import CLOCK_UNITS
from rowsieve.predicate.ir import Call, Cast, Column, Literal, Operand, walk
from rowsieve.predicate.operand_types import type_of
from rowsieve.types.logical import Nanos, Timestamp
from rowsieve.types.time_zones import fixed_offset, given_zone, is_own_name, name_in, zone

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)
_AFTER = ("later", "shifted")  # AT TIME ZONE's rules for repeated and skipped local times
JAVA = ("earlier", "shifted")
_KEPT = ("kept", "shifted")
# The rules of truncations within a day, which differ from AT TIME ZONE's; None: not known.
_CLOCK_RULES: Mapping[str, Mapping[str, tuple[str, ...] | None]] = {
    "postgres": dict.fromkeys(CLOCK_UNITS, _KEPT),
    "duckdb": dict.fromkeys(CLOCK_UNITS - {"hour"}, None),
}
ZONE_FUNCTIONS = frozenset(
    {"local_time", "instant", "try_instant", "zoned_trunc", "zoned_shift", "zoned_text"}
)
_AT = "{a1} AT TIME ZONE {0}"
FORMS: Mapping[tuple[str, str], str] = {  # as in `spellings`; for Spark's, see `_spark_form`
    ("local_time", "postgres"): _AT,
    ("local_time", "duckdb"): _AT,
    # Its AT TIME ZONE computes in nanoseconds, which do not reach the years before 1678.
    ("local_time", "datafusion"): (
        "to_local_time(arrow_cast({1}, 'Timestamp({u1}, Some(\"{n0}\"))'))"
    ),
    ("instant", "postgres"): _AT,
    ("instant", "duckdb"): _AT,
    ("zoned_trunc", "postgres"): "date_trunc({0}, {2}, {1})",
    ("zoned_trunc", "duckdb"): "date_trunc({0}, {a2} AT TIME ZONE {1}) AT TIME ZONE {1}",
}


ZONED: Mapping[str, frozenset[str]] = {
    "spark": frozenset({"local_time", "instant"}),
    **{
        dialect: frozenset(name for name, of in FORMS if of == dialect)
        for dialect in ("postgres", "duckdb", "datafusion")
    },
}
"""Functions of zones that have a form in each dialect."""


def zone_argument(reader: Reads, node: Any) -> Literal:
    """Read a zone with our meaning in the dialect: `Area/City` or UTC, in Spark also an offset."""
    value = reader.operand(node)
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise reader.source.refusal(node, "a time zone must be a quoted constant")
    return Literal(_known_zone(reader, node, value.value))


def _known_zone(reader: Reads, node: Any, text: str) -> str:
    """Return our name of a zone that has our meaning in the dialect."""
    if fixed_offset(text) is not None and not reader.dialect.times.offset_zones:
        raise reader.source.refusal(
            node,
            "an offset as a zone is read as west of Greenwich by some engines and refused by "
            "others; write Area/City, as in Europe/Berlin",
        )
    try:
        known = zone(given_zone(text).name + reader.dialect.times.zone_database)
    except InvalidPredicate as error:
        raise reader.source.refusal(node, str(error)) from error
    if known.name in UNKNOWN_ZONES.get(name := reader.dialect.name, ()):
        raise reader.source.refusal(node, f"{name} does not know {known.name} after 2037")
    return known.name


def at_time_zone(reader: Reads, node: Any) -> Operand:
    """Read `x AT TIME ZONE z`."""
    reader.only(node, "this", "zone")
    if reader.dialect.times.at_time_zone is not AtTimeZone.CONVERTED:
        raise reader.source.refusal(
            node,
            f"AT TIME ZONE keeps an instant in {reader.dialect.name}; in datafusion write "
            "to_local_time(x AT TIME ZONE 'Area/City')",
        )
    if isinstance(node.this, exp.Binary) and not isinstance(node.this, exp.Dot):
        raise reader.source.refusal(node, "put the value before AT TIME ZONE in parentheses")
    return Call("timezone", (zone_argument(reader, node.args["zone"]), reader.side(node.this)))


def of_local_time(reader: Reads, node: Any) -> Operand:
    """Return the operand of a field or a date: that of DataFusion's AT TIME ZONE is local time."""
    inner, displayed = node.unnest(), reader.dialect.times.at_time_zone is AtTimeZone.DISPLAYED
    if not displayed or not isinstance(inner, exp.AtTimeZone):
        return reader.operand(node)
    reader.only(inner, "this", "zone")
    spelled = zone_argument(reader, inner.args["zone"])
    return zoned.local_time(str(spelled.value), reader.side(inner.this))


def local_time_of(reader: Reads, node: Any) -> Operand | None:
    """Read DataFusion's `to_local_time(x AT TIME ZONE z)`; None for another number of arguments.

    A cast of a column to a type with the zone is the same.
    """
    if len(node.expressions) != 1:
        return None
    inner = node.expressions[0].unnest()
    if isinstance(inner, exp.AtTimeZone):
        spelled = zone_argument(reader, inner.args["zone"])
        return zoned.local_time(str(spelled.value), reader.side(inner.this))
    if (name := zone_of_cast(inner)) is not None:
        operand = reader.operand(inner.expressions[0])
        if not isinstance(operand, Literal):
            return zoned.local_time(_known_zone(reader, inner, name), operand)
    raise reader.source.refusal(node, "to_local_time takes x AT TIME ZONE 'Area/City'")


def timezone_call(reader: Reads, node: Any) -> Operand | None:
    """Read `timezone(z, x)`, which is `x AT TIME ZONE z`; None for other functions."""
    if node.name.lower() != "timezone" or len(node.expressions) != 2:
        return None
    if reader.dialect.times.at_time_zone is not AtTimeZone.CONVERTED:
        raise reader.source.refusal(node, f"{reader.dialect.name} has no function timezone")
    name, value = node.expressions
    return Call("timezone", (zone_argument(reader, name), reader.operand(value)))


def zone_text(call: Call, writer: Writes) -> tuple[str, bool] | None:
    """Write a call with a zone, and return whether it is infix; None for other calls."""
    if call.function not in ZONE_FUNCTIONS:
        return None
    name = text_at(call, 1 if call.function == "zoned_trunc" else 0)
    offset = fixed_offset(name) is not None
    if offset and not writer.dialect.times.offset_zones:
        raise UnsupportedOperation(
            f"{writer.dialect.name} reads the offset {name} as a zone in another way, if at all"
        )
    spelling = _by_form(call, writer)
    if spelling is None:
        raise UnsupportedOperation(
            f"{call.function} by these rules has no counterpart in {writer.dialect.name} SQL"
        )
    return spelling


def is_proved(call: Call, dialect: str) -> bool:
    """Whether the dialect has a form for this call that was tested against its engine."""
    if call.function not in ZONED.get(dialect, ()):
        return False
    times = dialect_named(dialect).times
    name = name_in(text_at(call, 1 if call.function == "zoned_trunc" else 0), times.zone_database)
    if name is None or name in UNKNOWN_ZONES.get(dialect, ()):
        return False
    if times.zone_database:
        return True
    if dialect in _BY_FUNCTIONS:
        return _spark_form(call) is not None
    if call.function == "zoned_trunc":
        return truncates_alike(call) or _rules(call) == _CLOCK_RULES.get(dialect, {}).get(
            text_at(call, 0), _AFTER
        )
    return call.function == "local_time" or _rules(call) == _AFTER


def truncates_alike(call: Call) -> bool:
    """Whether a truncation has one result by all rules for repeated and skipped local times."""
    named = zone(text_at(call, 1))
    return named.is_utc or (text_at(call, 0) not in CLOCK_UNITS and named.has_each_midnight_once)


def truncated_in_utc(call: Call, dialect: Dialect) -> Operand:
    """`date_trunc` of an instant, which names UTC where the engine goes by its session's zone."""
    unit, operand = call.arguments
    if ("zoned_trunc", dialect.name) not in FORMS:
        return call
    return zoned.zoned_trunc(unit, "UTC", operand, dialect.semantics)


def _by_form(call: Call, writer: Writes) -> tuple[str, bool] | None:
    dialect = writer.dialect
    if (written := _BY_FUNCTIONS.get(dialect.name)) is not None:
        return written(call, writer)
    form = FORMS.get((call.function, dialect.name))
    if form is None or not is_proved(call, dialect.name):
        return None
    texts = [
        quoted(_spelled(argument.value, dialect.times.zone_database), dialect)
        if isinstance(argument, Literal) and isinstance(argument.value, str)
        else writer.text(argument)
        for argument in call.arguments
    ]
    pieces = {f"a{place}": writer.atom(item) for place, item in enumerate(call.arguments)}
    pieces["n0"] = _spelled(text_at(call, 0), dialect.times.zone_database)
    pieces["u1"] = _unit(call.arguments[1]) if "{u1}" in form else ""
    return form.format(*texts, **pieces), form.endswith("}")


def _unit(moment: Operand) -> str:
    """The unit of an instant; that of columns without a type is the finest, which loses nothing."""
    is_bound = not any(isinstance(each, Column) for each in walk(moment))
    return "Microsecond" if is_bound and not isinstance(type_of(moment), Nanos) else "Nanosecond"


def _spelled(text: str, database: str) -> str:
    """Return the engine's name of a zone; units and rules are unchanged."""
    return name_in(text, database) or text if is_own_name(text) else text


def _spark(call: Call, writer: Writes) -> tuple[str, bool] | None:
    form = _spark_form(call)
    if form is None:
        return None
    function, names, operand = form
    zones = [quoted(name, writer.dialect) for name in names]
    if function == "convert_timezone":
        return f"convert_timezone({', '.join(zones)}, {writer.text(operand)})", False
    return f"{function}({writer.text(operand)}, {zones[0]})", False


_BY_FUNCTIONS: Mapping[str, Callable[[Call, Writes], tuple[str, bool] | None]] = {"spark": _spark}
"""Writers of the dialects whose forms are functions of two steps, in place of `FORMS`."""


def _spark_form(call: Call) -> tuple[str, tuple[str, ...], Operand] | None:
    """Return the Spark function, its zones and its operand; Spark has no single step for either."""
    inner = call.arguments[1] if len(call.arguments) > 1 else None
    if isinstance(inner, Cast) and inner.type == _INSTANT and call.function == "local_time":
        local = inner.operand  # in the session's zone
        known = isinstance(local, Cast) and local.type == _LOCAL
        return ("convert_timezone", (text_at(call, 0),), local) if known else None
    if not isinstance(inner, Call):
        return None
    names = text_at(inner, 0), text_at(call, 0)
    if call.function == "local_time" and inner.function == "instant":
        return ("convert_timezone", names, inner.arguments[1]) if _rules(inner) == JAVA else None
    if call.function == "instant" and inner.function == "local_time" and _rules(call) == JAVA:
        if names[1] == "UTC":
            return "from_utc_timestamp", names[:1], inner.arguments[1]
        if names[0] == "UTC":
            return "to_utc_timestamp", names[1:], inner.arguments[1]
    return None


def _rules(call: Call) -> tuple[str, ...]:
    count = 0 if call.function == "local_time" else 2
    return tuple(text_at(call, len(call.arguments) - count + place) for place in range(count))
