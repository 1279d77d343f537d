"""The kind of a JSON value, and the number of items of an array, as PostgreSQL has them.

Text that is not JSON has neither: NULL. The length of a value that is no array fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.predicate.arrays import Computed, null_mask
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.row import (
    Argument,
    Function,
    NullRule,
    Signature,
    never_fails,
)
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Int, Json, LogicalType, String

_ITEMS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_KINDS: Final = dict(
    [("{", "object"), ("[", "array"), ('"', "string")],
    t="boolean", f="boolean", n="null",
)  # fmt: skip
"""By the first character; others begin a number."""
_NOT_AN_ARRAY: Final = -1


def _kind(text: str) -> str | None:
    return _KINDS.get(text.strip()[0], "number") if is_json(text) else None


def _length(text: str) -> int | None:
    if not is_json(text):
        return None
    stripped = text.strip()
    return len(_ITEMS.decode(stripped)) if stripped.startswith("[") else _NOT_AN_ARRAY


def _by_document(of: Callable[[str], Any], values: pa.Array, type_: pa.DataType) -> pa.Array:
    """Compute each distinct document once."""
    encoded = values.cast(pa.string()).dictionary_encode()
    shapes = pa.array([of(text) for text in encoded.dictionary.to_pylist()], type_)
    return shapes.take(encoded.indices)


def _typeof(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    return Computed(_by_document(_kind, arguments[0], pa.string()))


def _array_length(arguments: Sequence[pa.Array], _: Signature, __: Semantics) -> Computed:
    lengths = _by_document(_length, arguments[0], pa.int32())
    failed = np.asarray(lengths.fill_null(0)) == _NOT_AN_ARRAY
    if not failed.any():
        return Computed(lengths)
    nulls = null_mask(lengths) | failed
    return Computed(pa.array(np.asarray(lengths.fill_null(0)), pa.int32(), mask=nulls), failed)


def _resolver(result: LogicalType) -> Callable[[Sequence[Argument]], Signature | None]:
    def resolve(arguments: Sequence[Argument]) -> Signature | None:
        alone = len(arguments) == 1 and isinstance(arguments[0].type, Json)
        return Signature((Json(),), result) if alone else None

    return resolve


ROWS = (
    Function(
        "json_typeof(json)",
        _resolver(String()),
        _typeof,
        can_fail=never_fails,
        nulls=NullRule.PARTIAL,
    ),
    Function(
        "json_array_length(json)",
        _resolver(Int(32)),
        _array_length,
        nulls=NullRule.PARTIAL,
    ),
)
