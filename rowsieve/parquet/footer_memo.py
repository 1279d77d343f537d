"""What is worked out of a footer once, and remembered as long as the footer lives.

Footers are told apart as objects: comparing two takes as long as they are large. What is remembered
must not hold its footer, or both stay for ever.
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


def per_footer(make: OfFooter[P, T]) -> OfFooter[P, T]:
    """The function with its results kept by their first argument; the others must follow from it.

    Threads may share it: two may work out the same.
    """
    known: dict[int, tuple[ref[pq.FileMetaData], T]] = {}

    @wraps(make)
    def remembered(metadata: pq.FileMetaData, /, *args: P.args, **kwargs: P.kwargs) -> T:
        place = id(metadata)
        found = known.get(place)
        if found is None or found[0]() is not metadata:
            own = ref(metadata, lambda _: known.pop(place, None))
            found = known[place] = own, make(metadata, *args, **kwargs)
        return found[1]

    return remembered
