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
from itertools import pairwise
from typing import Any

from sqlglot import exp

from rowsieve.bridges.functions import TABLE
from rowsieve.bridges.sql.constructs.float_seconds import DATE_PARTS
from rowsieve.bridges.sql.constructs.intervals import moved
from rowsieve.bridges.sql.constructs.named_zones import at_time_zone, of_local_time, timezone_call
from rowsieve.bridges.sql.constructs.nested_access import json_operator, json_path
from rowsieve.bridges.sql.constructs.pattern_calls import substring
from rowsieve.bridges.sql.constructs.templates import forms, recognise
from rowsieve.bridges.sql.constructs.time_fields import (
    PARTS,
    field_argument,
    part_named,
    plain_parts,
)
from rowsieve.bridges.sql.constructs.truncations import truncation
from rowsieve.bridges.sql.protocols import Reads
from rowsieve.bridges.sql.reading.calls_by_dialect import NAMES, NODES
from rowsieve.bridges.sql.reading.dialect_calls import ALIASES, HANDLERS, refused
from rowsieve.bridges.sql.reading.json_calls import HANDLERS as KEYS
from rowsieve.bridges.sql.reading.list_calls import HANDLERS as LISTS
from rowsieve.bridges.sql.spark.read.formatted_times import read_by_format
from rowsieve.predicate import ir
from rowsieve.predicate.functions.registry import BUILT_IN
from rowsieve.types.logical import Date, Float, Int, Timestamp

_FIELD_CALLS = frozenset({"EXTRACT", "DATE_PART"})
_VALUES = frozenset(
    set(TABLE)
    | {f"extract_{part}" for part in PARTS}
    | {"timezone", "local_time", "instant", "zoned_trunc", "date_bin", "make_list", "make_struct"}
    | {"json_get", "json_get_text", "json_path", "json_path_text"}
) - {
    *("is_nan", "coalesce", "nullif", "greatest", "least", "starts_with", "ends_with", "contains"),
    *("map_has_key", "lists_share", "jsonb_exists", "jsonb_contains", "jsonb_eq"),
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
    if read := NODES.get(reader.dialect.name, {}).get(kind):
        return read(reader, node)
    if handler := _HANDLERS.get(kind):
        return handler(reader, node)
    if kind in (exp.Add, exp.Sub) and (later := moved(reader, node)) is not None:
        return later
    if kind in _OPERATORS:
        reader.only(node, "this", "expression")
        sides = (reader.side(node.this), reader.side(node.expression))
        counted = kind is exp.Sub and reader.dialect.times.difference_is_days
        if counted and all(map(_is_date, sides)):
            return ir.Call("days_between", sides)
        return ir.Call(_OPERATORS[kind], sides)
    if (operand := recognise(reader, node)) is not None:
        return operand
    raise reader.source.refusal(node, _reason(reader, node))


def _reason(reader: Reads, node: Any) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
    if isinstance(node, exp.Any | exp.All):
        return "ANY and ALL are not supported; write IN"
    if isinstance(node.this if isinstance(node, exp.Exists) else node, exp.Query):
        return "a filter cannot hold a query; run it first and pass its values"
    if isinstance(node, exp.Window):
        return "a window function cannot stand in a filter"
    if isinstance(node, exp.AggFunc):
        return f"the aggregate {name} cannot stand in a filter"
    if isinstance(node, exp.Placeholder | exp.Parameter | exp.SessionParameter):
        return "this parameter has no value; write the value, or give it by params= and its name"
    if isinstance(node, exp.Lambda | exp.Kwarg):
        return (
            "lambdas and named arguments are not supported; "
            "put the -> of a JSON column in parentheses"
        )
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
    name, dialect = node.name.lower(), reader.dialect
    if (read := NAMES.get(dialect.name, {}).get(name)) and (term := read(reader, node)) is not None:
        return term
    if (in_zone := timezone_call(reader, node)) is not None:
        return in_zone
    if name in ("date_part", "datepart") and len(node.expressions) == 2:
        return _extract(reader, _as_extract(reader, node))
    if name in _FILE_READERS:
        raise reader.source.refusal(node, "a filter cannot read files")
    if name in _NOW and not node.expressions:
        return ir.Now()
    arguments = tuple(reader.operand(item) for item in node.expressions)
    if (known := recognise(reader, node)) is not None:
        return known
    if not dialect.reads_our_names and not _is_name_of(name, dialect.name):
        raise reader.source.refusal(
            node,
            f"{dialect.name} has no function {name}; the function of this name of other dialects "
            "is not read in its text",
        )
    return ir.Call(ALIASES.get((dialect.name, name), name), arguments)


def _without_arguments(value: ir.Operand) -> Callable[[Reads, Any], ir.Operand]:
    """Return a reader of a name that stands for the value."""

    def read(reader: Reads, node: Any) -> ir.Operand:
        reader.only(node)
        return value

    return read


def _divide(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression", "typed", "safe")
    left, right = reader.side(node.this), reader.side(node.expression)
    if reader.dialect.divides_integers or _is_float(left) or _is_float(right):
        return ir.Call("divide", (left, right))
    return ir.Call("divide", (ir.Cast(left, Float(64)), right))


def _to_timestamp(reader: Reads, node: Any) -> ir.Operand:
    if (operand := recognise(reader, node)) is None:
        raise reader.source.refusal(node, _reason(reader, node))
    return operand


def _is_date(operand: ir.Operand) -> bool:
    """Whether it is known to be a date before it is bound."""
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
            parts.append(reader.side(item))
    return ir.Call("concat_strict", tuple(parts))


def _concat(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "expressions", "safe", "coalesce")
    if not node.args.get("safe"):
        raise reader.source.refusal(
            node, "two adjacent strings; write || between them, or escape the quote"
        )
    parts = [reader.operand(item) for item in node.expressions]
    return ir.Call("concat" if node.args.get("coalesce") else "concat_strict", tuple(parts))


def _extract(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "expression")
    name, dialect = str(node.this.name).lower(), reader.dialect.name
    if name == "epoch" and reader.dialect.times.epoch_is_float:
        return ir.Call("extract_epoch", (reader.operand(node.expression),))
    if (named := part_named(name, dialect)) is None:
        known = ", ".join(sorted(plain_parts(dialect)))
        raise reader.source.refusal(node, f"extract takes one of {known}")
    part, above = named
    moment = of_local_time(reader, node.expression)
    component: ir.Operand = ir.Call(f"extract_{part}", (moment,))
    if reader.dialect.times.date_part_is_float and _is_date_part(reader, node):
        field = DATE_PARTS.get(part)
        component = ir.Cast(component, Float(64)) if field is None else field(moment)
    return ir.Call("add", (component, ir.Literal(above, Int(64)))) if above else component


def _is_date_part(reader: Reads, node: Any) -> bool:
    """Whether the text has `date_part(…)` here, of which the grammar makes EXTRACT."""
    tokens = reader.source.tokens
    calls = [
        token
        for token, after in pairwise(tokens)
        if after.text == "(" and token.text.upper() in _FIELD_CALLS
    ]
    words = {token.text.upper() for token in calls}
    if len(words) < 2:
        return "DATE_PART" in words
    starts = [each.meta["start"] for each in node.expression.walk() if "start" in each.meta]
    if not starts or node.expression.find(exp.Extract) is not None:
        raise reader.source.refusal(node, "write EXTRACT in all places: date_part is a float")
    nearest = [token for token in calls if token.start < min(starts)][-1]
    return bool(nearest.text.upper() == "DATE_PART")


def _substring(reader: Reads, node: Any) -> ir.Operand:
    operand = substring(reader, node) or recognise(reader, node)
    if operand is None:
        raise reader.source.refusal(node, _reason(reader, node))
    return operand


def _as_extract(reader: Reads, node: Any) -> Any:
    """Read `date_part('year', x)` as `extract(year FROM x)`."""
    part, inner = node.expressions
    if not isinstance(part, exp.Literal) or not part.is_string:
        raise reader.source.refusal(node, "the part is a quoted constant")
    return exp.Extract(this=exp.Var(this=part.this), expression=inner)


def _part(reader: Reads, node: Any) -> ir.Operand:
    return ir.Call(f"extract_{type(node).__name__.lower()}", (field_argument(reader, node),))


def _if(reader: Reads, node: Any) -> ir.Operand:
    reader.only(node, "this", "true", "false")
    otherwise = node.args.get("false")
    then = reader.operand(node.args["true"])
    other = ir.Literal(None) if otherwise is None else reader.operand(otherwise)
    return ir.Case(((reader.predicate(node.this), then),), other)


def _by_null(reader: Reads, node: Any) -> ir.Operand:
    """Read `nvl2(a, b, c)`: b if a is not NULL."""
    reader.only(node, "this", "true", "false")
    if (last := node.args.get("false")) is None:
        raise reader.source.refusal(node, "nvl2 takes three arguments")
    then, other = reader.operand(node.args["true"]), reader.operand(last)
    return ir.Case(((ir.IsNull(reader.operand(node.this)), other),), then)


_HANDLERS: Mapping[type[Any], Callable[[Reads, Any], ir.Operand]] = {
    **HANDLERS,
    **KEYS,
    **LISTS,
    exp.Anonymous: _anonymous,
    exp.CurrentTimestamp: _without_arguments(ir.Now()),
    exp.CurrentDate: _without_arguments(ir.Cast(ir.Now(), Date())),
    exp.Localtimestamp: _without_arguments(ir.Cast(ir.Now(), Timestamp(utc=False))),
    exp.Pi: _without_arguments(ir.Literal(math.pi, Float(64))),
    exp.Div: _divide,
    exp.IntDiv: refused(
        "whole quotients (//) are not read in this dialect; write floor(a / b)",
        *("this", "expression"),
    ),
    exp.TsOrDsToDate: refused("write CAST(… AS DATE)", "this", "safe"),
    exp.StrToTime: _to_timestamp,
    exp.StrToUnix: read_by_format,
    exp.DPipe: _pipes,
    exp.Concat: _concat,
    exp.TimestampTrunc: truncation,
    exp.DateTrunc: truncation,
    exp.Substring: _substring,
    exp.Extract: _extract,
    exp.AtTimeZone: at_time_zone,
    exp.FromTimeZone: refused("write AT TIME ZONE", "this", "zone"),
    exp.ConvertTimezone: refused(
        "convert_timezone is read in spark only", "source_tz", "target_tz", "timestamp"
    ),
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
def _shared_with(dialect: str) -> frozenset[str]:
    """Functions of ours that the dialect has by the same name and with the same meaning.

    Those of the table, and three that are written by rules of their own.
    """
    return frozenset({"concat", "date_trunc", "position"}) | {
        row.name
        for row in TABLE.values()
        if (spelling := row.spelling(dialect)) is not None
        and any(template.startswith(f"{row.name}(") for template in spelling.templates)
    }


def _is_name_of(name: str, dialect: str) -> bool:
    """Whether the name is the dialect's own: shared with it, or a user's function."""
    return name in _shared_with(dialect) or not (name in BUILT_IN or name.startswith("extract_"))
