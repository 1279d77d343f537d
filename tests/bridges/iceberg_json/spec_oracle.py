"""Iceberg's expressions as its Expressions Spec has them: one row, one value at a time.

Written from the text of the specification, without Rowsieve. Values are physical, as pyiceberg's
records have them: days, microseconds, bytes of UUIDs.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import math
import uuid
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.transforms import parse_transform

from tests.bridges.iceberg_exprs.engine import physical

_EPOCH = dt.datetime(1970, 1, 1)
_PARTS: dict[str, tuple[str, ...]] = {
    "pair.x": ("pair", "x"),
    "pair.y": ("pair", "y"),
}


def kept(expression: Any, batch: pa.RecordBatch, types: Mapping[str, Any]) -> list[int]:
    """The numbers of the rows on which an expression is true; `types` are pyiceberg's."""
    parsed = json.loads(expression) if isinstance(expression, str) else expression
    columns = {name: physical(batch.column(name)) for name in batch.schema.names if name != "pair"}
    pairs = batch.column("pair").to_pylist()
    for path, (_, field) in _PARTS.items():
        columns[path] = [None if pair is None else pair[field] for pair in pairs]
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [number for number, row in enumerate(rows) if is_true(parsed, row, types)]


def is_true(node: Any, row: Mapping[str, Any], types: Mapping[str, Any]) -> bool:
    """Whether a predicate is true on a row."""
    if isinstance(node, bool):
        return node
    kind = node["type"]
    if kind == "not":
        return not is_true(node["child"], row, types)
    if kind in ("and", "or"):
        sides = (is_true(node["left"], row, types), is_true(node["right"], row, types))
        return all(sides) if kind == "and" else any(sides)
    first = node.get("term", node.get("child", node.get("left")))
    if "left" in node and not _is_value(first):
        right, type_ = value_of(node["right"], row, types, is_term=False)
        return _compared(kind, constant(first, type_), right)
    value, type_ = value_of(first, row, types, is_term="term" in node)
    if kind.startswith("not-"):
        return not _holds(_POSITIVE[kind], node, value, type_, row, types)
    return _holds(kind, node, value, type_, row, types)


_POSITIVE = {
    "not-null": "is-null",
    "not-nan": "is-nan",
    "not-eq": "eq",
    "not-in": "in",
    "not-starts-with": "starts-with",
}


def _holds(
    kind: str, node: Any, value: Any, type_: Any, row: Mapping[str, Any], types: Mapping[str, Any]
) -> bool:
    if kind == "is-null":
        return value is None
    if kind == "is-nan":
        return _is_nan(value)
    if kind == "in":
        return any(_compare("eq", value, constant(item, type_)) for item in node["values"])
    other = node["value"] if "term" in node else node["right"]
    if _is_value(other):
        right, _ = value_of(other, row, types, is_term=False)
    else:
        right = constant(other, type_)
    if kind == "starts-with":
        return value is not None and str(value).startswith(right)
    return _compare(kind, value, right)


def _is_value(node: Any) -> bool:
    """Whether a side of a comparison depends on the row."""
    return isinstance(node, dict) and node["type"] in ("reference", "apply")


def _compared(kind: str, left: Any, right: Any) -> bool:
    if kind == "not-eq":
        return not _compare("eq", left, right)
    return _compare(kind, left, right)


def _compare(kind: str, left: Any, right: Any) -> bool:
    """The rules of null-safe comparisons, and those of NaN, which are alike."""
    for missing in ((left is None, right is None), (_is_nan(left), _is_nan(right))):
        if any(missing):
            return all(missing) and kind in ("eq", "lt-eq", "gt-eq")
    tests = {"lt": left < right, "gt": left > right, "eq": left == right}
    if kind in ("lt-eq", "gt-eq"):
        return bool(tests["eq"] or tests[kind.removesuffix("-eq")])
    return bool(tests[kind])


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def value_of(
    node: Any, row: Mapping[str, Any], types: Mapping[str, Any], *, is_term: bool
) -> tuple[Any, Any]:
    """The value of a term or reference on a row, and its type."""
    if is_term and isinstance(node, str):
        return row[node], types[node]
    if node["type"] == "reference":
        name = node["name"] if "name" in node else node["term"]
        return row[name], types[name]
    if node["type"] == "transform":
        value, type_ = value_of(node["term"], row, types, is_term=True)
        transform = parse_transform(node["transform"])
    else:
        *width, argument = node["arguments"]
        value, type_ = value_of(argument, row, types, is_term=False)
        (name,) = node["function"]["identifier"]
        transform = parse_transform(f"{name}[{width[0]}]" if width else name)
    return transform.transform(type_)(value), transform.result_type(type_)


def constant(node: Any, type_: Any) -> Any:
    """A JSON constant as a value of one of pyiceberg's types."""
    value = node["value"] if isinstance(node, dict) else node
    name = str(type_).partition("(")[0]
    match name:
        case "float":
            return float(np.float32(value))
        case "double":
            return float(value)
        case "decimal":
            return decimal.Decimal(value)
        case "binary":
            return bytes.fromhex(value)
        case "uuid":
            return uuid.UUID(value).bytes
        case "date":
            return (
                value
                if isinstance(value, int)
                else (dt.date.fromisoformat(value) - _EPOCH.date()).days
            )
        case "time" if isinstance(value, str):
            return _micros(dt.datetime.fromisoformat(f"1970-01-01T{value}"))
        case "timestamp" | "timestamptz" if isinstance(value, str):
            return _micros(dt.datetime.fromisoformat(value).replace(tzinfo=None))
        case _:
            return value


def _micros(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)
