"""Who judges expressions as JSON: the specification's rules, and pyiceberg where it reads them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pyarrow as pa
from pyiceberg.expressions import BooleanExpression
from pyiceberg.types import BinaryType, FloatType, IntegerType, LongType, StringType, UUIDType

from rowsieve.bridges.iceberg_exprs.read import foreign_schema
from tests.bridges.iceberg_exprs import engine
from tests.bridges.iceberg_json import spec_oracle
from tests.strategies import SCHEMA

_TEXTS = (BinaryType(), FloatType(), UUIDType())  # whose JSON constants pyiceberg does not convert


@cache
def types() -> dict[str, Any]:
    """pyiceberg's types of the columns of `SCHEMA`; it has none for unsigned 64 bits."""
    known = {field.name: field.field_type for field in foreign_schema(SCHEMA).fields}
    return known | {"u64": LongType(), "pair.x": IntegerType(), "pair.y": StringType()}


def judged(expression: Any, batch: pa.RecordBatch) -> list[int]:
    """The rows that an expression keeps by its specification, and by pyiceberg if it reads it."""
    kept = spec_oracle.kept(expression, batch, types())
    if (theirs := by_pyiceberg(expression, batch)) is not None:
        assert theirs == kept, expression
    return kept


def by_pyiceberg(expression: Any, batch: pa.RecordBatch) -> list[int] | None:
    """The rows that pyiceberg's evaluator keeps; None if it does not read the expression."""
    parsed = json.loads(expression) if isinstance(expression, str) else expression
    if not _is_read(parsed):
        return None
    read: Any = BooleanExpression.model_validate_json(json.dumps(parsed))
    return engine.judged(read, SCHEMA, batch)


def _is_read(node: Any) -> bool:
    """Whether pyiceberg reads an expression: the older form, on columns alone."""
    if isinstance(node, bool):
        return True
    if node["type"] in ("and", "or"):
        return _is_read(node["left"]) and _is_read(node["right"])
    if node["type"] == "not":
        return _is_read(node["child"])
    term = node.get("term")
    if not isinstance(term, str) or term == "u64":
        return False
    constants = node.get("values", [node["value"]] if "value" in node else [])
    if not constants:
        return "values" not in node
    is_time = str(types()[term])[:4] in ("date", "time")
    texts = not is_time or all(isinstance(value, str) for value in constants)
    plain = not any(isinstance(value, dict) for value in constants)
    return types()[term] not in _TEXTS and texts and plain
