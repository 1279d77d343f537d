"""The order in which a rewrite sorts rows: columns with directions, or a Z-order of columns.

    a DESC NULLS LAST, "b c"        like ORDER BY; ASC puts NULL first, DESC puts it last
    zorder(a, b)                    rows that are near in every column come near each other

Only the clustering of rows depends on the order, never a result: a table without a key promises no
order of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidInput
from rowsieve.types import logical
from rowsieve.types.keys import KeyOrder
from rowsieve.types.schema import Schema

_NAME: Final = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|\w+)'
_TERM: Final = re.compile(
    rf"\s*({_NAME})(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?\s*(,|$)", re.IGNORECASE
)
_ZORDER: Final = re.compile(r"\s*zorder\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_MOST_ZORDER_COLUMNS: Final = 8
_Z_BITS: Final = 63


class SortTerm(msgspec.Struct, frozen=True):
    """A column, its direction, and the place of its NULLs."""

    column: str
    is_descending: bool = False
    nulls_first: bool = True


class SortOrder(msgspec.Struct, frozen=True):
    """Terms, the most significant first; for a Z-order their directions do not count."""

    terms: tuple[SortTerm, ...]
    is_zorder: bool = False

    @classmethod
    def of(cls, text: str, schema: Schema) -> SortOrder:
        """Read the text of an order; InvalidInput for a column whose values have no order."""
        found = _ZORDER.fullmatch(text)
        terms = tuple(_terms(text if found is None else found[1], schema))
        names = [term.column for term in terms]
        if len(set(names)) < len(names):
            raise InvalidInput(f"sort_order {text!r} names a column twice; remove one")
        if found is not None and not 2 <= len(terms) <= _MOST_ZORDER_COLUMNS:
            raise InvalidInput(
                f"sort_order {text!r} has {len(terms)} columns; a Z-order has 2 to "
                f"{_MOST_ZORDER_COLUMNS}"
            )
        return cls(terms, found is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(term.column for term in self.terms)

    def is_prefix_of(self, key: Sequence[str]) -> bool:
        """Whether rows in the order of `key` are in this order; key columns hold no NULL."""
        ascending = not self.is_zorder and not any(term.is_descending for term in self.terms)
        return ascending and self.columns == tuple(key[: len(self.terms)])

    def ranks(self, rows: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
        """Return, shape (n,), the position of each row in the sorted rows; equal rows stay.

        `rows` needs only the columns of this order. O(n log n); holds about 40 bytes a row.
        """
        forms = KeyOrder(tuple(schema.field(name) for name in self.columns)).columns(rows).arrays
        if self.is_zorder:
            order = np.argsort(_interleaved(forms), kind="stable")
        else:
            order = self._sorted(forms)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order), dtype=np.int64)
        return ranks

    def _sorted(self, forms: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
        columns: dict[str, pa.Array] = {}
        keys: list[tuple[str, str]] = []
        for i, (term, form) in enumerate(zip(self.terms, forms, strict=True)):
            if form.null_count:  # a column of flags decides where they go
                columns[f"null{i}"] = form.is_null().cast(pa.int8())
                keys.append((f"null{i}", "descending" if term.nulls_first else "ascending"))
            columns[f"value{i}"] = form
            keys.append((f"value{i}", "descending" if term.is_descending else "ascending"))
        indices = pc.sort_indices(pa.table(columns), sort_keys=keys)
        return np.asarray(indices.to_numpy(), dtype=np.int64)


def _terms(text: str, schema: Schema) -> list[SortTerm]:
    terms: list[SortTerm] = []
    place = 0
    while True:
        found = _TERM.match(text, place)
        if found is None:
            raise InvalidInput(
                f"sort_order cannot be read from {text[place : place + 40]!r} on; give columns as "
                "in 'a DESC NULLS LAST, b', or 'zorder(a, b)'"
            )
        name, direction, nulls, comma = found.groups()
        field = schema.field(_plain(name))
        if not logical.is_ordered(field.type):
            raise InvalidInput(
                f"sort_order: the values of column {field.name!r} of type "
                f"{logical.type_name(field.type)} have no order; choose another column"
            )
        is_descending = (direction or "").upper() == "DESC"
        nulls_first = not is_descending if nulls is None else nulls.upper() == "FIRST"
        terms.append(SortTerm(field.name, is_descending, nulls_first))
        place = found.end()
        if not comma:
            return terms


def _plain(name: str) -> str:
    if name[0] in '"`':
        return name[1:-1].replace(name[0] * 2, name[0])
    return name


def _interleaved(forms: Sequence[pa.Array]) -> npt.NDArray[np.int64]:
    """The bits of the ranks of each column, interleaved, the highest bit of every column first."""
    bits = _Z_BITS // len(forms)
    most = max(len(forms[0]) - 1, 1)
    found = np.zeros(len(forms[0]), dtype=np.int64)
    for place, form in enumerate(forms):
        ranks = _ranks_of_values(form)
        if most >= 1 << bits:
            ranks = (ranks / most * ((1 << bits) - 1)).astype(np.int64)
        for bit in range(min(bits, most.bit_length())):
            shift = bit * len(forms) + len(forms) - 1 - place
            found |= ((ranks >> bit) & 1) << shift
    return found


def _ranks_of_values(form: pa.Array) -> npt.NDArray[np.int64]:
    """The number of smaller values, for each value; NULL is larger than every value."""
    order = np.asarray(pc.sort_indices(form).to_numpy(), dtype=np.int64)
    known = form.take(pa.array(order[: len(form) - form.null_count]))
    starts = np.zeros(len(form), dtype=np.int64)  # where each run of equal values begins
    if len(known) > 1:
        changes = pc.not_equal(known[1:], known[:-1]).to_numpy(zero_copy_only=False)
        starts[1 : len(known)] = np.where(changes, np.arange(1, len(known)), 0)
    starts[len(known) :] = len(known)
    ranks = np.empty(len(form), dtype=np.int64)
    ranks[order] = np.maximum.accumulate(starts)
    return ranks
