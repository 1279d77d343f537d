"""Spark's functions that parse text by a format, such as `to_date(s, 'dd/MM/yyyy')`.

Text is parsed as in `java_times`, in the session's time zone; for dates and instants Spark ignores
the format. Text that does not match is an error; it is NULL if ANSI mode is off, and for `try_`
functions. Soundness: the format is a constant that `java_times` reads, or the call is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rowsieve.bridges.sql.constructs.time_formats import last_string
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.spark.read.calls_by_name import BY_FORMAT
from rowsieve.bridges.sql.spark.types.numbers_and_times import INSTANT, is_text
from rowsieve.bridges.sql.spark.types.typed_calls import Handler, Types
from rowsieve.bridges.sql.spark.types.typed_values import Value
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.functions.times.java_formats import UnknownFormat, pattern_of
from rowsieve.types.logical import Date, Int, LogicalType, String, Timestamp, type_name

_DEFAULT: Final = "yyyy-MM-dd HH:mm:ss"  # of `unix_timestamp` alone
_SECOND: Final = ir.Literal(1_000_000, Int(64))


def read_by_format(reader: Reads, node: Any) -> ir.Operand:
    """Read the call, with the format from the source text, because the grammar rewrites it."""
    name = _word(reader, node)
    count = reader.source.argument_count(node)
    if name not in BY_FORMAT or count > 2:
        raise reader.source.refusal(node, "spark has no such function of text and a format")
    value = node.expressions[0] if node.args.get("expressions") else node.this
    form = last_string(reader, node) if count == 2 else _DEFAULT
    if form is None:
        raise reader.source.refusal(
            node, "write the format as a quoted constant, the last argument"
        )
    try:
        pattern_of(form)
    except UnknownFormat as error:
        raise reader.source.refusal(node, str(error)) from error
    return ir.Call(name, (reader.operand(value), ir.Literal(form, String())))


def _word(reader: Reads, node: Any) -> str:
    """Return the function's name in the text."""
    start, end = node.meta.get("start"), node.meta.get("end")
    name = "" if start is None else reader.source.lifted.text[start : end + 1]
    return str(name).lower()


def parsed(text: ir.Operand, form: str, target: Timestamp, *, tried: bool) -> ir.Operand:
    """Parse text by the format; binding adds the session's zone to an instant."""
    name = "parse_java_instant" if target.utc else "parse_java_timestamp"
    return ir.Call(f"try_{name}" if tried else name, (text, ir.Literal(form, String())))


def seconds_since_1970(instant: ir.Operand) -> ir.Operand:
    """Return whole seconds since 1970, truncated toward zero."""
    return ir.Call("divide", (ir.Call("epoch_us", (instant,)), _SECOND))


def _typed(typer: Types, node: ir.Call, values: list[Value]) -> Value:
    value, form = values
    name, result = node.function, _RESULTS[node.function]
    local = name == "to_timestamp_ntz"
    if is_text(value):
        assert isinstance(form.operand, ir.Literal)
        moment = parsed(
            typer.as_type(value, String()),
            str(form.operand.value),
            Timestamp(utc=not local),
            tried=name.startswith("try_") or not typer.ansi,
        )
    elif value.type is None:
        return Value(ir.Literal(None, result), result)
    elif local or not isinstance(value.type, Date | Timestamp) or _loses_time(value.type, result):
        raise UnsupportedOperation(f"{name} of {type_name(value.type)} and a format; cast it")
    elif value.type == Timestamp():  # its clock, without the zone of the session
        return Value(seconds_since_1970(value.exact), result)
    else:
        moment = typer.as_type(value, INSTANT)
    match result:
        case Int():
            return Value(seconds_since_1970(moment), result)
        case Date() if not is_text(value):
            return Value(typer.as_type(value, result), result)
        case Date():
            return Value(ir.Cast(moment, result), result)
    return Value(moment, result)


def _loses_time(source: LogicalType, result: LogicalType) -> bool:
    """Whether a conversion to an instant may change the local time."""
    return source == Timestamp() and not isinstance(result, Int)


_RESULTS: Mapping[str, LogicalType] = {
    **dict.fromkeys(("to_date", "try_to_date"), Date()),
    **dict.fromkeys(("to_timestamp", "try_to_timestamp", "to_timestamp_ltz"), INSTANT),
    "to_timestamp_ntz": Timestamp(),
    **dict.fromkeys(("unix_timestamp", "to_unix_timestamp"), Int(64)),
}
HANDLERS: Mapping[str, Handler] = dict.fromkeys(BY_FORMAT, _typed)
