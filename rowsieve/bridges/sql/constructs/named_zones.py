"""Named time zones: AT TIME ZONE, and equivalent functions of dialects, in both directions.

Soundness: a name that dialects interpret differently is rejected. An offset as a zone is east of
UTC in Spark and west of it in PostgreSQL; in DataFusion `AT TIME ZONE` keeps an instant.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from rowsieve.bridges.constant_values import text_at
from rowsieve.bridges.session import UNKNOWN_TO_ICU
from rowsieve.bridges.sql.constructs.render_literals import quoted
from rowsieve.bridges.sql.protocols import Reads, Writes
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate.binding import zoned
from rowsieve.predicate.functions.times.temporal import CLOCK_UNITS
from rowsieve.predicate.ir import Call, Cast, Literal, Operand
from rowsieve.types.logical import Timestamp
from rowsieve.types.time_zones import UNTIL_2100, fixed_offset, has_rules, zone

_LOCAL, _INSTANT = Timestamp(utc=False), Timestamp(utc=True)
_BY_OPERATOR = frozenset({"postgres", "duckdb"})  # AT TIME ZONE as in our semantics
_AFTER = ("later", "shifted")  # AT TIME ZONE's rules for repeated and skipped local times
_JAVA = ("earlier", "shifted")
_KEPT = ("kept", "shifted")
ZONE_FUNCTIONS = frozenset(
    {"local_time", "instant", "try_instant", "zoned_trunc", "zoned_shift", "zoned_text"}
)
_AT = "{a1} AT TIME ZONE {0}"
FORMS: Mapping[tuple[str, str], str] = {  # as in `spellings`; for Spark's, see `_spark_form`
    ("local_time", "postgres"): _AT,
    ("local_time", "duckdb"): _AT,
    ("local_time", "datafusion"): f"to_local_time({_AT})",
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
    if fixed_offset(value.value) is not None and reader.dialect.name != "spark":
        raise reader.source.refusal(
            node,
            "an offset as a zone is read as west of Greenwich by some engines and refused by "
            "others; write Area/City, as in Europe/Berlin",
        )
    ends = UNTIL_2100 if reader.dialect.name == "datafusion" else ""
    try:
        own = zone(value.value.removesuffix(UNTIL_2100) + ends)
    except InvalidPredicate as error:
        raise reader.source.refusal(node, str(error)) from error
    if reader.dialect.name == "duckdb" and own.name in UNKNOWN_TO_ICU:
        raise reader.source.refusal(node, f"duckdb does not know {own.name} after 2037")
    return Literal(own.name)


def at_time_zone(reader: Reads, node: Any) -> Operand:
    """Read `x AT TIME ZONE z`; the grammar parses Spark's `from_utc_timestamp(x, z)` alike."""
    reader.only(node, "this", "zone")
    if reader.dialect.name == "spark":
        if any(token.text.upper() == "ZONE" for token in reader.source.tokens):
            raise reader.source.refusal(node, "spark has no AT TIME ZONE; write convert_timezone")
        name, operand = zone_argument(reader, node.args["zone"]), _timestamp(reader, node.this)
        return _spark_instant("UTC", zoned.local_time(str(name.value), operand))
    if reader.dialect.name not in _BY_OPERATOR:
        raise reader.source.refusal(
            node,
            f"AT TIME ZONE keeps an instant in {reader.dialect.name}; in datafusion write "
            "to_local_time(x AT TIME ZONE 'Area/City')",
        )
    if isinstance(node.this, exp.Binary) and not isinstance(node.this, exp.Dot):
        raise reader.source.refusal(node, "put the value before AT TIME ZONE in parentheses")
    return Call("timezone", (zone_argument(reader, node.args["zone"]), reader.beside(node.this)))


def of_local_time(reader: Reads, node: Any) -> Operand:
    """Return the operand of a field or a date: DataFusion's `x AT TIME ZONE z` is local time."""
    inner = node.unnest()
    if reader.dialect.name != "datafusion" or not isinstance(inner, exp.AtTimeZone):
        return reader.operand(node)
    reader.only(inner, "this", "zone")
    spelled = zone_argument(reader, inner.args["zone"])
    return zoned.local_time(str(spelled.value), reader.beside(inner.this))


def zone_function(reader: Reads, node: Any) -> Operand | None:
    """Read `timezone(z, x)`, and DataFusion's `to_local_time(x AT TIME ZONE z)`; else None."""
    name, arguments = node.name.lower(), node.expressions
    if name == "timezone" and len(arguments) == 2:
        if reader.dialect.name not in _BY_OPERATOR:
            raise reader.source.refusal(node, f"{reader.dialect.name} has no function timezone")
        return Call("timezone", (zone_argument(reader, arguments[0]), reader.operand(arguments[1])))
    if name == "to_local_time" and len(arguments) == 1 and reader.dialect.name == "datafusion":
        inner = arguments[0].unnest()
        if isinstance(inner, exp.AtTimeZone):
            spelled = zone_argument(reader, inner.args["zone"])
            return zoned.local_time(str(spelled.value), reader.beside(inner.this))
        raise reader.source.refusal(node, "to_local_time takes x AT TIME ZONE 'Area/City'")
    return None


def from_time_zone(reader: Reads, node: Any) -> Operand:
    """Read Spark's `to_utc_timestamp(x, z)`."""
    reader.only(node, "this", "zone")
    if reader.dialect.name != "spark":
        raise reader.source.refusal(node, "write AT TIME ZONE")
    name = zone_argument(reader, node.args["zone"])
    return _spark_instant(str(name.value), zoned.local_time("UTC", _timestamp(reader, node.this)))


def converted(reader: Reads, node: Any) -> Operand:
    """Read Spark's `convert_timezone([from,] to, x)`; `from` defaults to the session's zone."""
    reader.only(node, "source_tz", "target_tz", "timestamp")
    if reader.dialect.name != "spark":
        raise reader.source.refusal(node, "convert_timezone is read in spark only")
    local = _as(reader.operand(node.args["timestamp"]), _LOCAL)
    target = str(zone_argument(reader, node.args["target_tz"]).value)
    source = node.args.get("source_tz")
    if source is None:
        return zoned.local_time(target, Cast(local, _INSTANT))
    name = str(zone_argument(reader, source).value)
    return zoned.local_time(target, _spark_instant(name, local))


def zone_text(call: Call, writer: Writes) -> tuple[str, bool] | None:
    """Write a call with a zone, and return whether it is infix; None for other calls."""
    if call.function not in ZONE_FUNCTIONS:
        return None
    name = text_at(call, 1 if call.function == "zoned_trunc" else 0)
    offset = fixed_offset(name) is not None
    if writer.dialect.name != "spark" and offset:
        raise UnsupportedOperation(
            f"{writer.dialect.name} reads the offset {name} as a zone in another way, if at all"
        )
    found = _by_form(call, writer)
    if found is None:
        raise UnsupportedOperation(
            f"{call.function} by these rules has no counterpart in {writer.dialect.name} SQL"
        )
    return found


def is_proved(call: Call, dialect: str) -> bool:
    """Whether the dialect has a form for this call that was tested against its engine."""
    if call.function not in ZONED.get(dialect, ()):
        return False
    name = text_at(call, 1 if call.function == "zoned_trunc" else 0)
    if dialect == "datafusion":
        return not has_rules(zone(name))
    if name.endswith(UNTIL_2100) or (dialect == "duckdb" and name in UNKNOWN_TO_ICU):
        return False
    if dialect == "spark":
        return _spark_form(call) is not None
    rules = _rules(call)
    if call.function == "zoned_trunc":
        unit = text_at(call, 0)
        kept = unit in CLOCK_UNITS and (dialect == "postgres" or unit != "hour")
        return rules == (_KEPT if kept else _AFTER) and (dialect == "postgres" or not kept)
    return call.function == "local_time" or rules == _AFTER


def _timestamp(reader: Reads, node: Any) -> Operand:
    """Return the argument of a Spark function, without the cast that the grammar adds."""
    inserted = isinstance(node, exp.Cast) and node.args["to"].this == exp.DataType.Type.TIMESTAMP
    return _as(reader.operand(node.this if inserted else node), _INSTANT)


def _as(operand: Operand, type_: Timestamp) -> Operand:
    return operand if isinstance(operand, Cast) and operand.type == type_ else Cast(operand, type_)


def _spark_instant(name: str, local: Operand) -> Operand:
    return Call("instant", (Literal(name), local, *(Literal(rule) for rule in _JAVA)))


def _by_form(call: Call, writer: Writes) -> tuple[str, bool] | None:
    dialect = writer.dialect
    if dialect.name == "spark":
        return _spark(call, writer)
    form = FORMS.get((call.function, dialect.name))
    if form is None or not is_proved(call, dialect.name):
        return None
    texts = [
        quoted(argument.value.removesuffix(UNTIL_2100), dialect)
        if isinstance(argument, Literal) and isinstance(argument.value, str)
        else writer.text(argument)
        for argument in call.arguments
    ]
    atoms = {f"a{place}": writer.atom(item) for place, item in enumerate(call.arguments)}
    return form.format(*texts, **atoms), form.endswith("}")


def _spark(call: Call, writer: Writes) -> tuple[str, bool] | None:
    form = _spark_form(call)
    if form is None:
        return None
    function, names, operand = form
    zones = [quoted(name, writer.dialect) for name in names]
    if function == "convert_timezone":
        return f"convert_timezone({', '.join(zones)}, {writer.text(operand)})", False
    return f"{function}({writer.text(operand)}, {zones[0]})", False


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
        return ("convert_timezone", names, inner.arguments[1]) if _rules(inner) == _JAVA else None
    if call.function == "instant" and inner.function == "local_time" and _rules(call) == _JAVA:
        if names[1] == "UTC":
            return "from_utc_timestamp", names[:1], inner.arguments[1]
        if names[0] == "UTC":
            return "to_utc_timestamp", names[1:], inner.arguments[1]
    return None


def _rules(call: Call) -> tuple[str, ...]:
    count = 0 if call.function == "local_time" else 2
    return tuple(text_at(call, len(call.arguments) - count + place) for place in range(count))
