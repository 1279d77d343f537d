"""Equality and containment of JSON values, as PostgreSQL has them for `jsonb`.

Numbers are equal by value (`1` and `1.0`), objects whatever the order of their keys, of which the
last of several equal ones counts. Text that is not JSON has no value: NULL.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.predicate.arrays import Computed
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Bool, Json, LogicalType, String

EQUAL: Final = "jsonb_eq"
CONTAINS: Final = "jsonb_contains"
EXISTS: Final = "jsonb_exists"

_Test: TypeAlias = Callable[[Any, Any], bool]


def value_of(text: str) -> Any:
    """Return the value of JSON text, its numbers as decimals."""
    return json.loads(text, parse_float=decimal.Decimal, parse_int=decimal.Decimal)


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):  # TRUE differs from 1
        return False
    if isinstance(one, dict):
        return len(one) == len(other) and all(
            key in other and _same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _contains(whole: Any, piece: Any) -> bool:
    """Whether a document contains another; an array also contains a value that is one of its items.

    That holds for the documents as a whole, not for what is inside them.
    """
    if isinstance(whole, list) and not isinstance(piece, list | dict):
        return any(_same(item, piece) for item in whole)
    return _holds(whole, piece)


def _holds(whole: Any, piece: Any) -> bool:
    if isinstance(piece, dict):
        return isinstance(whole, dict) and all(
            key in whole and _holds(whole[key], value) for key, value in piece.items()
        )
    if isinstance(piece, list):
        return isinstance(whole, list) and all(
            any(_holds(item, sought) for item in whole) for sought in piece
        )
    return _same(whole, piece)


def _has_key(document: Any, key: str) -> bool:
    """Whether the text is a key of an object, an item of an array, or the value itself."""
    if isinstance(document, dict):
        return key in document
    return _contains(document, key)


@dataclass(frozen=True, slots=True)
class _Document:
    """A value; `None` in its place means text that is not JSON."""

    value: Any


def _document(text: str) -> _Document | None:
    return _Document(value_of(text)) if is_json(text) else None


def _evaluator(test: _Test, second: Callable[[str], _Document | None]) -> Callable[..., Computed]:
    def evaluate(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
        """Decode each distinct text once, and test each distinct pair."""
        one, other = (each.cast(pa.string()).dictionary_encode() for each in arguments)
        left = [*map(_document, one.dictionary.to_pylist()), None]
        right = [*map(second, other.dictionary.to_pylist()), None]
        rows = _places(one) * len(right) + _places(other)
        pairs, back = np.unique(rows, return_inverse=True)
        verdicts: list[bool | None] = []
        for pair in pairs.tolist():
            whole, piece = left[pair // len(right)], right[pair % len(right)]
            known = whole is not None and piece is not None
            verdicts.append(test(whole.value, piece.value) if known else None)
        return Computed(pa.array(verdicts, pa.bool_()).take(pa.array(back)))

    return evaluate


def _places(encoded: pa.Array) -> npt.NDArray[np.int64]:
    """The place of each value in the dictionary; one past its end for NULL."""
    missing = pa.scalar(len(encoded.dictionary), encoded.indices.type)
    return np.asarray(encoded.indices.fill_null(missing).to_numpy(), dtype=np.int64)


def _resolver(second: LogicalType) -> Callable[[Sequence[Argument]], Signature | None]:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        fits = len(arguments) == 2 and all(
            type_ is None or type_ == wanted
            for type_, wanted in zip(
                (each.type for each in arguments), (Json(), second), strict=True
            )
        )
        return Signature((Json(), second), Bool()) if fits else None

    return resolve


def _row(name: str, test: _Test, second: LogicalType) -> Function:
    decode = _Document if second == String() else _document
    return Function(
        f"{name}(json, {'json' if second == Json() else 'text'})",
        _resolver(second),
        _evaluator(test, decode),
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    )


ROWS = (
    _row(EQUAL, _same, Json()),
    _row(CONTAINS, _contains, Json()),
    _row(EXISTS, _has_key, String()),
)
