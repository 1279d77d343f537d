"""JSON objects merged by key, as RFC 7396 (JSON Merge Patch) says.

A patch that is an object sets its names in the value before, object in object; a name with `null`
goes. Any other patch replaces the value. Values that are not objects keep their text, so numbers
keep all of their digits.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from rowsieve.changes.partial.meeting_values import Candidates, Places

_Object = dict[str, msgspec.Raw]
_DECODER: Final = msgspec.json.Decoder(_Object)
_ENCODER: Final = msgspec.json.Encoder()
_DEEPEST: Final = 500


class BadJson(Exception):
    """Text that cannot be merged; `owner` is the number of its key, `reason` says why."""

    def __init__(self, owner: int, reason: str) -> None:
        super().__init__(owner, reason)
        self.owner = owner
        self.reason = reason


def merged(candidates: Candidates, initial: Places) -> pa.Array:
    """The merged value of each key; all are patches but `initial` (count,), -1 where there is none.

    A key without a patch keeps its text.
    """
    starts = (initial >= 0) & _is_valid(candidates.pool, initial)
    known = candidates.without_nulls()
    texts = zip(known.owners.tolist(), known.values().to_pylist(), strict=True)
    result: list[str | None] = [None] * known.count
    for owner, group in groupby(texts, key=lambda each: each[0]):
        patches = [text for _, text in group]
        target = patches.pop(0) if starts[owner] else None
        try:
            result[owner] = _patched(target, patches)
        except (msgspec.DecodeError, UnicodeError, ValueError) as error:
            raise BadJson(owner, str(error)) from error
    return pa.array(result, candidates.pool.type)


def _is_valid(pool: pa.Array, places: Places) -> np.ndarray:
    taken = pool.take(pa.array(places, mask=places < 0))
    return np.asarray(taken.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


def _patched(target: str | None, patches: list[str]) -> str | None:
    if not patches:
        return target
    value = None if target is None else target.encode()
    for patch in patches:
        value = _merge(value, patch.encode(), 0)
    return None if value is None else bytes(value).decode()


def _merge(target: Any, patch: Any, depth: int) -> Any:
    """The JSON text of the value after the patch."""
    if depth > _DEEPEST:
        raise ValueError(f"it nests deeper than {_DEEPEST} levels")
    if not _is_object(patch):
        return patch
    members: _Object = _DECODER.decode(target) if target is not None and _is_object(target) else {}
    for name, value in _DECODER.decode(patch).items():
        if _text(value) == b"null":
            members.pop(name, None)
        elif _is_object(value):
            members[name] = msgspec.Raw(_merge(members.get(name), value, depth + 1))
        else:
            members[name] = value
    return _ENCODER.encode(members)


def _text(value: Any) -> bytes:
    return bytes(value).strip(b" \t\r\n")


def _is_object(value: Any) -> bool:
    return _text(value)[:1] == b"{"
