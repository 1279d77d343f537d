"""Iceberg's expressions as JSON, as predicates and back.

The Expressions Spec of Apache Iceberg (2026) defines them for stored conditions, such as row
policies and constraints, and for requests of REST catalogs, such as scan planning. An expression
is JSON text, or what `json.loads` makes of it. Nothing has to be installed.

Soundness: predicates are two-valued and null-safe there. What is read is never NULL, and what is
written keeps the rows on which the predicate is TRUE.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from typing import Any

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.iceberg_json import read
from rowsieve.bridges.iceberg_json.function_table import PREDICATES
from rowsieve.bridges.iceberg_json.write import IcebergJsonWriter
from rowsieve.bridges.translation import Translation
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

__all__ = ["from_iceberg_json", "is_iceberg_json", "to_iceberg_json"]

_KINDS = frozenset(row.foreign for row in PREDICATES)
_SHOWN = 200  # characters of a condition in a note


def is_iceberg_json(value: object) -> bool:
    """Whether this is an expression as `json.loads` returns it; text belongs to no language."""
    return isinstance(value, dict) and value.get("type") in _KINDS


def from_iceberg_json(
    expression: str | bytes | bool | Mapping[str, Any],
    schema: Schema,
    *,
    ids: Mapping[int, str] | None = None,
    strict: bool = False,
) -> Translation[Predicate, Any]:
    """Read an expression over columns of the schema, under `Semantics.ICEBERG_JSON`.

    `ids`: the names of columns by field id, for expressions that refer to columns by id; fields of
    structs have dots. `InvalidPredicate` for text that is not JSON. With `strict`, a condition that
    cannot be read is `UnsupportedOperation`.
    """
    is_text = isinstance(expression, str | bytes)
    parsed = _parsed(expression) if isinstance(expression, str | bytes) else expression
    reader = read.IcebergJsonReader(schema, ids)
    translation = read_conditions(
        read.chain(parsed, "and"),
        reader.predicate,
        read.joined,
        schema,
        Semantics.ICEBERG_JSON,
        shown=_shown,
        strict=strict,
    )
    if translation.residual is None or not is_text:
        return translation
    try:
        return replace(translation, residual=json.dumps(translation.residual, default=_number))
    except TypeError:
        return replace(translation, residual=expression)


def to_iceberg_json(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.ICEBERG_JSON,
    *,
    ids: Mapping[str, int] | None = None,
    strict: bool = False,
) -> Translation[str, Predicate]:
    """Write a predicate with the given semantics as JSON text.

    The expression is FALSE where the predicate is NULL, so it keeps the same rows. `ids`: the field
    ids of columns by name; with them, columns are referred to by id, as in stored expressions.
    """
    writer = IcebergJsonWriter(semantics, ids)
    join = partial(writer.junction, all_of=True)
    translation: Translation[Any, Predicate] = write_conditions(
        predicate, writer.rows, join, schema, semantics, strict=strict
    )
    if translation.expression is None:
        return translation
    return replace(translation, expression=json.dumps(translation.expression, ensure_ascii=False))


def _parsed(text: str | bytes) -> Any:
    try:
        return json.loads(
            text, parse_float=Decimal, parse_constant=_refused, object_pairs_hook=_once
        )
    except RecursionError as error:
        raise InvalidPredicate("the expression nests too deep to be read as JSON") from error
    except ValueError as error:
        raise InvalidPredicate(f"the expression is not JSON: {error}") from error


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has two members of one name")
    return members


def _number(value: object) -> float:
    """Return the float that is written as a number was, or raise TypeError."""
    if isinstance(value, Decimal) and Decimal(repr(float(value))) == value:
        return float(value)
    raise TypeError(value)


def _shown(condition: Any) -> str:
    """Return a condition as a note shows it."""
    text = "".join(_first(json.JSONEncoder(default=str).iterencode(condition)))
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _first(chunks: Iterator[str]) -> Iterator[str]:
    """Yield the chunks of a text until it is longer than a note shows."""
    length = 0
    for chunk in chunks:
        yield chunk
        if (length := length + len(chunk)) > _SHOWN:
            return
