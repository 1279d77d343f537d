"""The order in which rows of a table without a key are written: columns, or a curve of columns.

    a DESC NULLS LAST, "b c"        like ORDER BY; ASC puts NULL first, DESC puts it last
    zorder(a, b)                    rows that are near in every column come near each other
    hilbert(a, b)                   likewise; neighbours are nearer, and positions cost more

Only the clustering of rows depends on the order, never a result: a table without a key promises no
order of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.errors import InvalidInput, UnknownColumn
from rowsieve.types import logical
from rowsieve.types.ordering.curves import Curve, positions
from rowsieve.types.ordering.keys import flat
from rowsieve.types.ordering.nested_ranks import has_ranks, order_form
from rowsieve.types.schema import Schema

_NAME: Final = r'(?:"(?:[^"]|"")+"|`(?:[^`]|``)+`|\w+)'
_TERM: Final = re.compile(
    rf"\s*({_NAME})(?:\s+(ASC|DESC))?(?:\s+NULLS\s+(FIRST|LAST))?\s*(,|$)", re.IGNORECASE
)
_CURVE: Final = re.compile(r"\s*(zorder|hilbert)\s*\((.*)\)\s*", re.IGNORECASE | re.DOTALL)
_MAX_CURVE_COLUMNS: Final = 8

CLUSTER_BY: Final = "cluster_by"
"""The table property with the order in which rows are written."""


class SortTerm(msgspec.Struct, frozen=True):
    """A column, its direction, and the place of its NULLs."""

    column: str
    is_descending: bool = False
    nulls_first: bool = True


class SortOrder(msgspec.Struct, frozen=True):
    """Terms, the most significant first; on a curve their directions do not count."""

    terms: tuple[SortTerm, ...]
    curve: Curve | None = None

    @classmethod
    def of(cls, text: str, schema: Schema, source: str = "sort_order") -> SortOrder:
        """Read the text of an order; InvalidInput for a column whose values have no order.

        `source` is what errors call the text.
        """
        match = _CURVE.fullmatch(text)
        curve = None if match is None else Curve(match[1].lower())
        terms = tuple(_terms(text if match is None else match[2], schema, source))
        names = [term.column for term in terms]
        if len(set(names)) < len(names):
            raise InvalidInput(f"{source} {text!r} names a column twice; remove one")
        if curve is not None and not 2 <= len(terms) <= _MAX_CURVE_COLUMNS:
            raise InvalidInput(
                f"{source} {text!r} has {len(terms)} columns; {curve.value} takes 2 to "
                f"{_MAX_CURVE_COLUMNS}"
            )
        return cls(terms, curve)

    def to_text(self, schema: Schema) -> str:
        """Return the order with field ids instead of names: equal orders have equal texts."""
        ids = [schema.field(name).id for name in self.columns]
        if self.curve is not None:
            return f"{self.curve.value}({', '.join(map(str, ids))})"
        return ", ".join(
            f"{field_id} {'DESC' if term.is_descending else 'ASC'} "
            f"NULLS {'FIRST' if term.nulls_first else 'LAST'}"
            for field_id, term in zip(ids, self.terms, strict=True)
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(term.column for term in self.terms)

    def is_prefix_of(self, key: Sequence[str]) -> bool:
        """Return whether rows in the order of `key` are in this order; key columns hold no NULL."""
        ascending = self.curve is None and not any(term.is_descending for term in self.terms)
        return ascending and self.columns == tuple(key[: len(self.terms)])

    def ranks(self, rows: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
        """Return, shape (n,), the position of each row in the sorted rows; equal rows stay.

        `rows` needs only the columns of this order. O(n log n); holds about 40 bytes a row.
        """
        order = self.sort(rows, schema)
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order), dtype=np.int64)
        return ranks

    def sort(self, rows: pa.Table, schema: Schema) -> npt.NDArray[np.int64]:
        """Return, shape (n,), the indices of a stable sort of the rows; see `ranks`."""
        fields = (schema.field(name) for name in self.columns)
        forms = [order_form(flat(rows.column(field.name)), field.type) for field in fields]
        if self.curve is not None:
            return np.argsort(positions(forms, self.curve), kind="stable")
        return self._sorted(forms)

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


def cluster_order(
    properties: Mapping[str, str], schema: Schema, key: Sequence[object] = ()
) -> SortOrder | None:
    """Return the order that the table's property asks for, if any; InvalidInput if none fits.

    A table with a key has no such order: its parts are in the order of the key.
    """
    text = properties.get(CLUSTER_BY)
    if text is None:
        return None
    if key:
        raise InvalidInput(
            f"property {CLUSTER_BY} is for tables without a key; parts of a table with a key are "
            "always in the order of the key. Unset it, or choose a key that begins with "
            "the columns of frequent conditions"
        )
    try:
        return SortOrder.of(text, schema, f"property {CLUSTER_BY}")
    except UnknownColumn as error:
        raise InvalidInput(
            f"property {CLUSTER_BY} names {error.name!r}, which is not a column; the columns are "
            f"{', '.join(schema.names)}"
        ) from error


def _terms(text: str, schema: Schema, source: str) -> list[SortTerm]:
    terms: list[SortTerm] = []
    place = 0
    while True:
        match = _TERM.match(text, place)
        if match is None:
            raise InvalidInput(
                f"{source} cannot be read from {text[place : place + 40]!r} on; give columns as in "
                "'a DESC NULLS LAST, b', or 'zorder(a, b)', or 'hilbert(a, b)'"
            )
        name, direction, nulls, comma = match.groups()
        field = schema.field(_plain(name))
        if not has_ranks(field.type):
            raise InvalidInput(
                f"{source}: the values of column {field.name!r} of type "
                f"{logical.type_name(field.type)} have no order; choose another column"
            )
        is_descending = (direction or "").upper() == "DESC"
        nulls_first = not is_descending if nulls is None else nulls.upper() == "FIRST"
        terms.append(SortTerm(field.name, is_descending, nulls_first))
        place = match.end()
        if not comma:
            return terms


def _plain(name: str) -> str:
    if name[0] in '"`':
        return name[1:-1].replace(name[0] * 2, name[0])
    return name
