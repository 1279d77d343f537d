"""Caches values that are derived from a footer, as long as the footer exists.

The cache compares footers by identity, because comparing their contents takes time in proportion to
their size. It keeps weak references: a cached value must not reference its footer, or both would
stay in memory for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar
from weakref import ref

import pyarrow.parquet as pq

P = ParamSpec("P")
T = TypeVar("T")
OfFooter = Callable[Concatenate[pq.FileMetaData, P], T]


def cached_per_footer(make: OfFooter[P, T]) -> OfFooter[P, T]:
    """Cache a function's result by its first argument, which must determine the others.

    Thread-safe: concurrent callers may compute the value twice.
    """
    known: dict[int, tuple[ref[pq.FileMetaData], T]] = {}

    @wraps(make)
    def remembered(metadata: pq.FileMetaData, /, *args: P.args, **kwargs: P.kwargs) -> T:
        place = id(metadata)
        entry = known.get(place)
        if entry is None or entry[0]() is not metadata:
            reference = ref(metadata, lambda _: known.pop(place, None))
            entry = known[place] = reference, make(metadata, *args, **kwargs)
        return entry[1]

    return remembered
