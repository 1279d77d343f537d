"""Convert functions and arithmetic of sqlglot's tree to our calls.

If a dialect's function differs from ours of the same name, it becomes an equivalent expression, or
is rejected: `||` gives NULL for NULL where `concat` may not, `/` divides integers in some dialects
only, and `substr` counts from the end in some.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeGuard

from sqlglot import exp

from rowsieve.bridges.constant_values import text_of, whole_of
from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.sql.constructs.arrow_times import (
    ONLY_IN,
    as_timestamp,
    is_read_in_place,
    timestamp_named,
)
from rowsieve.bridges.sql.constructs.intervals import moved
from rowsieve.bridges.sql.constructs.named_zones import (
    at_time_zone,
    converted,
    from_time_zone,
    of_local_time,
    zone_argument,
    zone_function,
)
from rowsieve.bridges.sql.constructs.nested_access import json_operator, json_path
from rowsieve.bridges.sql.constructs.parts import PARTS, TRUNCATIONS, part_named, plain_parts
from rowsieve.bridges.sql.constructs.pattern_calls import regex, substring
from rowsieve.bridges.sql.constructs.templates import forms, recognise
from rowsieve.bridges.sql.dialects import DATAFUSION_INSTANT
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.reading.dialect_calls import HANDLERS, NAMES, day, seconds
from rowsieve.bridges.sql.reading.list_calls import HANDLERS as LISTS
from rowsieve.bridges.sql.reading.list_calls import named_list
from rowsieve.bridges.sql.spark.spark_coercion import QUOTIENT, WHOLE_QUOTIENT
from rowsieve.bridges.sql.spark.spark_formats import read_by_format
from rowsieve.bridges.sql.spark.spark_names import BY_FORMAT, truncated_date
from rowsieve.bridges.sql.spark.spark_names import NODES as SPARK
from rowsieve.bridges.sql.spark.spark_names import named as named_by_spark
from rowsieve.bridges.sql.spark.spark_rules import UNITS
from rowsieve.bridges.sql.typenames import arrow_named
from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.types.logical import Date, Float, Int, Timestamp, Uuid

_VALUES = frozenset(
    set(TABLE)
    | {f"extract_{part}" for part in PARTS}
    | {"timezone", "local_time", "instant", "zoned_trunc", "date_bin", "make_list", "make_struct"}
    | {"json_get", "json_get_text", "json_path", "json_path_text"}
) - {
    *("is_nan", "coalesce", "nullif", "greatest", "least", "starts_with", "ends_with", "contains"),
    *("map_has_key", "lists_share"),
}
_OPERATORS: Mapping[type[Any], str] = {
    exp.Add: "add",
    exp.Sub: "subtract",
    exp.Mul: "multiply",
    exp.Mod: "modulo",
}

_FILE_READERS = frozenset(
    (
        *("read_csv", "read_csv_auto", "read_parquet", "read_json", "read_json_auto", "read_text"),
        *("read_blob", "read_ndjson", "parquet_scan", "parquet_metadata", "glob", "sniff_csv"),
        *("pg_read_file", "pg_read_binary_file", "pg_ls_dir", "lo_import", "sqlite_scan"),
        *("delta_scan", "iceberg_scan", "input_file_name"),
    )
)
_NOW = frozenset({"now", "current_timestamp", "transaction_timestamp"})


def may_be_true(function: str) -> bool:
    """Whether a function can return a boolean, for an error before `bind` can raise one."""
    return function not in _VALUES


def call(reader: Reads, node: Any) -> ir.Operand:
    """Read a function call or arithmetic; raise for unlisted kinds, naming them."""
    kind = type(node)
    if reader.dialect.name == "spark" and (own := SPARK.get(kind)):
        return own(reader, node)
    if handler := _HANDLERS.get(kind):
        return handler(reader, node)
    if kind in (exp.Add, exp.Sub) and (later := moved(reader, node)) is not None:
        return later
    if kind in _OPERATORS:
        reader.only(node, "this", "expression")
        sides = (reader.beside(node.this), reader.beside(node.expression))
        if kind is exp.Sub and reader.dialect.name != "spark" and all(map(_is_date, sides)):
            return ir.Call("days_between", sides)
        return ir.Call(_OPERATORS[kind], sides)
    if (found := recognise(reader, node)) is not None:
        return found
    raise reader.source.refusal(node, _reason(reader, node))


def _reason(reader: Reads, node: Any) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
    if isinstance(node, exp.Any | exp.All):
        return "ANY and ALL are not supported; write IN"
    if isinstance(node, exp.Query | exp.Exists):
        return "a filter cannot hold a query; run it first and pass its values"
    if isinstance(node, exp.Window):
        return "a window function cannot stand in a filter"
    if isinstance(node, exp.AggFunc):
        return f"the aggregate {name} cannot stand in a filter"
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return "parameters are not supported; write the value itself"
    if isinstance(node, exp.Lambda | exp.Kwarg):
        return "lambdas and named arguments are not supported"
    if isinstance(node, exp.ReadCSV):
        return "a filter cannot read files"
    if known := forms(reader, node):
        return f"it is read in the form {' or '.join(known)} only"
    if isinstance(node, exp.ArraySize):
        return "write cardinality, which counts an empty list as 0"
    if isinstance(node, exp.Func):
        row = TABLE.get(node.sql_name().lower())
        why = "" if row is None else row.reason(reader.dialect.name)
        return f"the function {name} is not supported" + (f": {why}" if why else "")
    return f"{name} is not supported in a filter"


def _anonymous(reader: Reads, node: Any) -> ir.Operand:
    """Read a function that the grammar does not know."""
    reader.only(node, "this", "expressions")
    name, dialect = node.name.lower(), reader.dialect.name
    if (handler := _NAMED.get((dialect, name, len(node.expressions)))) is not None:
        return handler(reader, node)
    if name == "arrow_cast" and dialect == "datafusion":
        return _arrow_cast(reader, node)
    if (found := zone_function(reader, node) or named_list(reader, node)) is not None:
        return found
    if name in ("date_part", "datepart") and len(node.expressions) == 2:
        return _extract(reader, _as_extract(reader, node))
    if name in _FILE_READERS:
        raise reader.source.refusal(node, "a filter cannot read files")
    if name in _NOW and not node.expressions:
        return ir.Now()
    if dialect == "spark" and name in BY_FORMAT and len(node.expressions) > 1:
        return read_by_format(reader, node)
    arguments = tuple(reader.operand(item) for item in node.expressions)
    if dialect == "spark" and (own := named_by_spark(reader, node, name, arguments)):
        return own
    if (known := recognise(reader, node)) is not None:
        return known
    if dialect == "spark" and not _is_spark_name(name):
        raise reader.source.refusal(
            node, f"spark has no function {name} of its own; rowsieve's is not meant there"
        )
    return ir.Call(NAMES.get((dialect, name), name), arguments)


def _from_zero(reader: Reads, node: Any) -> ir.Operand:
    """Read Spark's `get(list, place)`, which counts from 0."""
    values, given = map(reader.operand, node.expressions)
    place = whole_of(given)
    if place is None or not 0 <= place < 2**31:
        raise reader.source.refusal(node, "get takes a list and a constant place from 0")
    return ir.Call("list_element", (values, ir.Literal(place + 1, Int(64))))


def _matches(reader: Reads, node: Any) -> ir.Operand:
    """Read Spark's `regexp(text, pattern)`."""
    text, pattern = node.expressions
    return ir.Condition(regex(reader, exp.RegexpLike(this=text, expression=pattern)))


def _weekday(reader: Reads, node: Any) -> ir.Operand:
    """Read Spark's `weekday`, which is 0 on Mondays."""
    found = ir.Call("extract_isodow", (reader.operand(node.expressions[0]),))
    return ir.Call("subtract", (found, ir.Literal(1, Int(64))))


def _is_null(reader: Reads, node: Any) -> ir.Operand:
    """Read Spark's `isnull` and `isnotnull`."""
    test = ir.IsNull(reader.operand(node.expressions[0]))
    return ir.Condition(test if node.name.lower() == "isnull" else ir.Not(test))


# Functions that the grammar does not know, by dialect, name and number of arguments.
_NAMED: Mapping[tuple[str, str, int], Callable[[Reads, Any], ir.Operand]] = {
    ("spark", "regexp", 2): _matches,
    ("spark", "isnull", 1): _is_null,
    ("spark", "isnotnull", 1): _is_null,
    ("spark", "get", 2): _from_zero,
    ("spark", "weekday", 1): _weekday,
}


def _arrow_cast(reader: Reads, node: Any) -> ir.Operand:
    """Read a cast to a type by Arrow's name, the only way to cast to an instant."""
    if (found := recognise(reader, node)) is not None:
        return found
    if len(node.expressions) == 2:
        name = text_of(reader.operand(node.expressions[1]))
        inner = node.expressions[0]
        if name is not None and (to := timestamp_named(name)) is not None:
            if to.is_coarse and not is_read_in_place(reader, node):
                raise reader.source.refusal(node, ONLY_IN)
            return as_timestamp(reader, node, reader.operand(inner), to)
        if name is not None and (type_ := arrow_named(name)) is not None:
            value = reader.operand(inner)
            if type_ == Uuid() and isinstance(value, ir.Literal) and type(value.value) is bytes:
                return ir.Literal(value.value, type_)
            if type_ == Date() and _is_number(value, Int(32)):
                return ir.Literal(value.value, type_)
            return reader.cast(node, value, type_)
    raise reader.source.refusal(
        node,
        "arrow_cast is read to numbers, text, bytes, Date32 and timestamps without a zone or with "
        f"the zone UTC, as in {DATAFUSION_INSTANT!r}",
    )


def _is_number(operand: ir.Operand, type_: Int) -> TypeGuard[ir.Literal]:
    return isinstance(operand, ir.Literal) and operand.type == type_ and operand.value is not None


def _without_arguments(value: ir.Operand) -> Callable[[Reads, Any], ir.Operand]:
    """Return a reader of a name that stands for the value."""

    def read(reader: Reads, node: Any) -> ir.Operand:
        reader.only(node)
        return value

    return read


def _divide(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression", "typed", "safe")
    left, right = reader.beside(node.this), reader.beside(node.expression)
    if reader.dialect.divides_integers or _is_float(left) or _is_float(right):
        return ir.Call("divide", (left, right))
    if reader.dialect.name == "duckdb":
        return ir.Call("divide", (ir.Cast(left, Float(64)), right))
    if reader.dialect.name == "spark":
        return ir.Call(QUOTIENT, (left, right))
    raise reader.source.refusal(
        node, "this dialect divides integers as doubles; cast one side, as in CAST(a AS DOUBLE) / b"
    )


def _whole_quotient(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    if reader.dialect.name != "spark":
        raise reader.source.refusal(node, "whole quotients are not supported in this dialect")
    return ir.Call(WHOLE_QUOTIENT, (reader.beside(node.this), reader.beside(node.expression)))


def _to_date(reader: Reads, node: Any) -> ir.Operand:
    if reader.dialect.name == "spark" and node.args.get("format") is not None:
        return read_by_format(reader, node)
    reader.only(node, "this", "safe")
    if reader.dialect.name != "spark":
        raise reader.source.refusal(node, "write CAST(… AS DATE)")
    return ir.Cast(reader.operand(node.this), Date())


def _to_timestamp(reader: Reads, node: Any) -> ir.Operand:
    if reader.dialect.name == "spark":
        return read_by_format(reader, node)
    if (found := recognise(reader, node)) is None:
        raise reader.source.refusal(node, _reason(reader, node))
    return found


def _is_date(operand: ir.Operand) -> bool:
    """Recognise a date minus a date, which is a number of days except in Spark."""
    return isinstance(operand, ir.Cast | ir.Literal) and isinstance(operand.type, Date)


def _is_float(operand: ir.Operand) -> bool:
    return isinstance(operand, ir.Cast | ir.Literal) and isinstance(operand.type, Float)


def _pipes(reader: Reads, node: Any) -> ir.Operand:
    parts: list[ir.Operand] = []
    pending = [node]
    while pending:
        item = pending.pop()
        if type(item) is exp.DPipe:
            reader.only(item, "this", "expression", safe=True)
            pending += [item.expression, item.this]
        elif isinstance(item, exp.Add | exp.Sub):
            raise reader.source.refusal(item, "put + and - beside || in parentheses")
        else:
            parts.append(reader.beside(item))
    return ir.Call("concat_strict", tuple(parts))


def _concat(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "expressions", "safe", "coalesce")
    if not node.args.get("safe"):
        raise reader.source.refusal(
            node, "two adjacent strings; write || between them, or escape the quote"
        )
    parts = [reader.operand(item) for item in node.expressions]
    return ir.Call("concat" if node.args.get("coalesce") else "concat_strict", tuple(parts))


def _truncation(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "unit", "zone", input_type_preserved=True)
    unit = node.args.get("unit")
    name = str(unit.name if unit is not None else "").lower()
    quoted = reader.source.quoted_argument(node, 0)
    if reader.dialect.name == "spark":
        if isinstance(node, exp.DateTrunc):
            return truncated_date(reader, node)
        # Other names give NULL in Spark, and the grammar reads some, as Q, for one that it knows.
        name = UNITS.get((quoted or "").lower(), "")
    if name not in TRUNCATIONS or quoted is None:
        raise reader.source.refusal(
            node, f"date_trunc takes one of {', '.join(sorted(TRUNCATIONS))}, in quotes"
        )
    operand, in_zone = reader.operand(node.this), node.args.get("zone")
    if reader.dialect.name == "postgres" and in_zone is not None:
        return ir.Call("date_trunc", (ir.Literal(name), operand, zone_argument(reader, in_zone)))
    if in_zone is not None or reader.source.argument_count(node) > 2:  # some grammars drop it
        raise reader.source.refusal(node, "date_trunc takes a time zone in postgres only")
    return ir.Call("date_trunc", (ir.Literal(name), operand))


def _extract(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    name, dialect = str(node.this.name).lower(), reader.dialect.name
    if name == "epoch" and dialect in ("duckdb", "datafusion"):
        return seconds(reader.operand(node.expression))
    if (named := part_named(name, dialect)) is None:
        known = ", ".join(sorted(plain_parts(dialect)))
        raise reader.source.refusal(node, f"extract takes one of {known}")
    part, above = named
    found = ir.Call(f"extract_{part}", (of_local_time(reader, node.expression),))
    return ir.Call("add", (found, ir.Literal(above, Int(64)))) if above else found


def _substring(reader: Reads, node: Any) -> ir.Operand:
    made = substring(reader, node) or recognise(reader, node)
    if made is None:
        raise reader.source.refusal(node, _reason(reader, node))
    return made


def _as_extract(reader: Reads, node: Any) -> Any:
    """Read `date_part('year', x)` as `extract(year FROM x)`."""
    part, inner = node.expressions
    if not isinstance(part, exp.Literal) or not part.is_string:
        raise reader.source.refusal(node, "the part is a quoted constant")
    return exp.Extract(this=exp.Var(this=part.this), expression=inner)


def _part(reader: Reads, node: Any) -> ir.Operand:
    return ir.Call(f"extract_{type(node).__name__.lower()}", (day(reader, node),))


def _if(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    then = reader.operand(node.args["true"])
    other = ir.Literal(None) if otherwise is None else reader.operand(otherwise)
    return ir.Case(((reader.predicate(node.this), then),), other)


def _by_null(reader: Reads, node: Any) -> ir.Operand:
    """Read `nvl2(a, b, c)`: b if a is not NULL."""
    reader.only(node, "this", "true", "false")
    then, other = (reader.operand(node.args[key]) for key in ("true", "false"))
    return ir.Case(((ir.IsNull(reader.operand(node.this)), other),), then)


def _nanvl(reader: Reads, node: Any) -> ir.Operand:
    """Read `nanvl(a, b)`: b if a is NaN, in DataFusion and Spark."""
    if reader.dialect.name != "datafusion":
        raise reader.source.refusal(node, _reason(reader, node))
    return SPARK[exp.Nanvl](reader, node)


_HANDLERS: Mapping[type[Any], Callable[[Reads, Any], ir.Operand]] = {
    **HANDLERS,
    exp.Nanvl: _nanvl,
    **LISTS,
    exp.Anonymous: _anonymous,
    exp.CurrentTimestamp: _without_arguments(ir.Now()),
    exp.CurrentDate: _without_arguments(ir.Cast(ir.Now(), Date())),
    exp.Localtimestamp: _without_arguments(ir.Cast(ir.Now(), Timestamp(utc=False))),
    exp.Pi: _without_arguments(ir.Literal(math.pi, Float(64))),
    exp.Div: _divide,
    exp.IntDiv: _whole_quotient,
    exp.TsOrDsToDate: _to_date,
    exp.StrToTime: _to_timestamp,
    exp.StrToUnix: read_by_format,
    exp.DPipe: _pipes,
    exp.Concat: _concat,
    exp.TimestampTrunc: _truncation,
    exp.DateTrunc: _truncation,
    exp.Substring: _substring,
    exp.Extract: _extract,
    exp.AtTimeZone: at_time_zone,
    exp.FromTimeZone: from_time_zone,
    exp.ConvertTimezone: converted,
    exp.If: _if,
    exp.Nvl2: _by_null,
    exp.JSONExtract: json_operator,
    exp.JSONExtractScalar: json_operator,
    exp.JSONBExtract: json_path,
    exp.JSONBExtractScalar: json_path,
    exp.Year: _part,
    exp.Quarter: _part,
    exp.Month: _part,
    exp.Day: _part,
    exp.Hour: _part,
    exp.Minute: _part,
}


@cache
def _shared_with_spark() -> frozenset[str]:
    """Functions of ours that Spark has by the same name and with the same meaning.

    Those of the table, and three that are written by rules of their own.
    """
    return frozenset({"concat", "date_trunc", "position"}) | {
        row.name
        for row in TABLE.values()
        if (spelling := row.spelling("spark")) is not None
        and any(template.startswith(f"{row.name}(") for template in spelling.templates)
    }


def _is_spark_name(name: str) -> bool:
    """Whether the name may be called in Spark's text: shared with Spark, or a user's function."""
    return name in _shared_with_spark() or not (name in BUILT_IN or name.startswith("extract_"))
