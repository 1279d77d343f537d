"""Give columns of foreign files the types that files show by their values only, or not at all.

Soundness: these types decide how values are converted, which is exact or an error.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from rowsieve.types.encodings import EXTENSION_KEY, NANOS_EXTENSION
from rowsieve.types.leaf_fields import with_leaves

_MAX_DIGITS: Final = 38  # of a decimal


@dataclass(frozen=True, slots=True)
class Declared:
    """`nanos`: paths of times that need nanoseconds; `long`: of decimals that need all digits.

    `binary_as_string`: bytes are text.
    """

    nanos: Collection[str]
    long: Collection[str]
    binary_as_string: bool

    def column(self, field: pa.Field) -> pa.Field:
        """Return a column with these types, at any depth."""
        if not (self.nanos or self.long or self.binary_as_string):
            return field
        return with_leaves(field, self._leaf, whole_extensions=True)

    def _leaf(self, leaf: pa.Field, path: str) -> pa.Field:
        if EXTENSION_KEY in (leaf.metadata or {}):
            return leaf
        if path in self.nanos and pa.types.is_timestamp(leaf.type):
            metadata = {**(leaf.metadata or {}), EXTENSION_KEY: NANOS_EXTENSION}
            return leaf.with_metadata(metadata)
        if path in self.long:
            return leaf.with_type(pa.decimal128(_MAX_DIGITS, leaf.type.scale))
        is_text = self.binary_as_string and pa.types.is_binary(leaf.type)
        return leaf.with_type(pa.string()) if is_text else leaf
