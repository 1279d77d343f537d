"""Parts whose keys follow from the manifest: as many integers as fit between their bounds.

A part has each key once (invariant I2). If its only key column is an integer, and its bounds leave
room for exactly as many values as it has rows, then it has every value between them. Its rows are
in key order, so the row number of each key is known without reading the file.

Soundness: bounds may be too wide, never too narrow, so a part that is not contiguous has fewer rows
than fit. Parts with tombstones do not count, because the bounds cover these too (invariant 39), and
neither do files of other writers, whose bounds are their claims (invariant 45).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from rowsieve.planner.overlap import key_codes
from rowsieve.planner.split import ContiguousKeys
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.types.logical import Int
from rowsieve.types.ordering.keys import KeyOrder


def contiguous_keys(parts: PartTable, order: KeyOrder | None) -> list[ContiguousKeys | None]:
    """The keys of each part that has all integers between its bounds; None for other parts."""
    if order is None or len(order.fields) != 1 or not isinstance(order.fields[0].type, Int):
        return [None] * len(parts)
    (field,) = order.fields
    lower, upper = key_codes(parts.select("key.").table, order)
    rows = parts.data_rows()
    fits = (lower <= upper) & (rows > 0) & (_distances(lower, upper) == (rows - 1).view(np.uint64))
    fits &= parts.numbers("deletes.rows") == 0
    return [
        ContiguousKeys(field.id, first) if is_full and _is_plain(data) else None
        for is_full, first, data in zip(
            fits.tolist(), lower.tolist(), parts.files("data"), strict=True
        )
    ]


def _distances(lower: npt.NDArray[Any], upper: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """(n,) `upper - lower`, exact where `lower <= upper`: 64 bits hold it without a sign."""
    first, last = (
        codes if codes.dtype == np.uint64 else codes.astype(np.int64).view(np.uint64)
        for codes in (lower, upper)
    )
    distances: npt.NDArray[np.uint64] = last - first
    return distances


def _is_plain(data: FileRef | None) -> bool:
    """Return whether our writer stored the rows as columns of a file, in key order."""
    return data is not None and data.owned and not data.in_memory and data.encoding is None
