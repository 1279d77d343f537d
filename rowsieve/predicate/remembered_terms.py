"""Cache values derived from the terms of an OR in the predicate that owns the terms."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, TypeAlias, TypeVar

from rowsieve.predicate import ir

_MOST_KEPT: Final = 16  # ORs of one predicate
Terms: TypeAlias = tuple[ir.Predicate, ...]
_D = TypeVar("_D")


def derived_once(
    terms: Terms, kind: str, remembered: dict[Hashable, Any], derive: Callable[[Terms], _D]
) -> _D:
    """Return `derive(terms)`, computed once for this tuple object.

    `remembered` is the predicate's cache. Its entries hold the tuples, so that no other tuple gets
    the same `id`.
    """
    kept: dict[int, tuple[Terms, _D]] = remembered.setdefault(kind, {})
    held = kept.get(id(terms))
    if held is None or held[0] is not terms:
        held = terms, derive(terms)
        if len(kept) < _MOST_KEPT:
            kept[id(terms)] = held
    return held[1]
