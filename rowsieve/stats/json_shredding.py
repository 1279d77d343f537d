"""Shreds JSON documents: the values at given paths as typed columns, one row per document.

A path has four columns. A string, a whole number of 64 bits or any other number is in the column of
its type, and NULL in the others. `kinds` is NULL then; for all other rows it is one bit of
`rowsieve.stats.json_kinds.Kind`. Bounds and NULL counts of the four columns give the kinds and
bounds of any range of rows.

Soundness: a document that is malformed, nests too deep, repeats a wanted key in one object or has a
number out of the range of doubles is `OTHER` at every path, which means "unknown" (invariant 29).
Strings are cut to `MAX_CHARACTERS`, so one of that length may be a prefix of a longer value. Whole
numbers beyond 64 bits become the nearest doubles; readers widen the bounds of doubles. A number
with an exponent has `EXPONENT` in `kinds` in addition to its double.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import Mask, as_mask
from rowsieve.stats.json_documents import MISSING, PathTree, documents_by_row, exponents_by_row
from rowsieve.stats.json_kinds import INT64, JsonKind, Path
from rowsieve.stats.values import Values

MAX_CHARACTERS: Final = 64
_LARGEST: Final = 2**1023
_OTHER: Final = int(JsonKind.OTHER)
_MAX_BYTES: Final = 2**30
_TYPES: Final = frozenset({int, float, str})
_TYPED: Final = 0  # of a value that has a typed column, so that `kinds` is NULL

FIELDS: Final[dict[str, pa.DataType]] = {
    "kinds": pa.int32(),
    "int": pa.int64(),
    "float": pa.float64(),
    "string": pa.string(),
}
"""The columns of a path."""

STORED_KINDS: Final = (
    JsonKind.MISSING
    | JsonKind.NULL
    | JsonKind.FALSE
    | JsonKind.TRUE
    | JsonKind.EXPONENT
    | JsonKind.LIST
    | JsonKind.OBJECT
    | JsonKind.OTHER
)
"""The bits that `kinds` may be: values of the other kinds have columns."""


class _Kinds(dict[type, int]):
    def __missing__(self, key: type) -> int:
        return int(JsonKind.OBJECT)  # each node of a path tree decodes objects to its own class


_KIND_OF: Final = _Kinds(
    {
        msgspec.UnsetType: int(JsonKind.MISSING),
        type(None): int(JsonKind.NULL),
        bool: int(JsonKind.FALSE),
        int: _TYPED,
        float: _TYPED,
        str: _TYPED,
        tuple: int(JsonKind.LIST),
        list: int(JsonKind.LIST),
    }
)


def shred(values: Values, paths: Sequence[Path]) -> list[pa.StructArray]:
    """Return the columns of each path, as a struct of `FIELDS`; (n,) rows, none of them NULL."""
    tree = PathTree(paths)
    if isinstance(values, pa.ChunkedArray):
        if values.nbytes > _MAX_BYTES:  # one array cannot hold them
            pieces = [_shred(chunk, tree) for chunk in values.chunks]
            return [pa.concat_arrays([piece[path] for piece in pieces]) for path in paths]
        values = values.combine_chunks()
    columns = _shred(values, tree)
    return [columns[path] for path in paths]


def _shred(texts: pa.Array, tree: PathTree) -> dict[Path, pa.StructArray]:
    present = texts.drop_null() if texts.null_count else texts
    documents, unknown = documents_by_row(present, tree)
    there = as_mask(texts.is_valid()) if texts.null_count else None
    if there is not None:
        rest = iter(documents)
        documents = [next(rest) if has else MISSING for has in there.tolist()]
        unknown = _spread(unknown, there)

    @cache
    def exponents() -> Mask:
        mask = exponents_by_row(present)
        return mask if there is None else _spread(mask, there)

    cells = tree.cells(documents)[0]
    return {path: _columns(path_cells, unknown, exponents) for path, path_cells in cells.items()}


def _spread(mask: Mask, there: Mask) -> Mask:
    spread: Mask = np.zeros(len(there), dtype=np.bool_)
    spread[there] = mask
    return spread


def _columns(cells: list[Any], unknown: Mask, exponents: Callable[[], Mask]) -> pa.StructArray:
    types = list(map(type, cells))
    distinct = set(types)
    if distinct <= _TYPES:
        kinds = np.full(len(cells), _TYPED, dtype=np.int32)
    else:
        kinds = np.fromiter(map(_KIND_OF.__getitem__, types), np.int32, len(cells))
    if bool in distinct:
        truth = [cell is True for cell in cells]
        kinds[np.array(truth, dtype=np.bool_)] = int(JsonKind.TRUE)
    whole, numbers, texts = (_of_type(type_, types, cells, distinct) for type_ in (int, float, str))
    try:
        ints = _array(whole, len(cells), pa.int64())
    except OverflowError:
        whole, numbers = _without_long(whole or [], numbers, kinds)
        ints = _array(whole, len(cells), pa.int64())
    floats = _array(numbers, len(cells), pa.float64())
    strings = _strings(texts, len(cells))
    if floats.null_count < len(floats):
        kinds[exponents() & as_mask(floats.is_valid())] = int(JsonKind.EXPONENT)
    kinds[unknown] = _OTHER
    stored = pa.array(kinds, mask=kinds == _TYPED)
    return pa.StructArray.from_arrays(
        [stored, *(_known(each, unknown) for each in (ints, floats, strings))], list(FIELDS)
    )


def _of_type(
    type_: type, types: list[type], cells: list[Any], distinct: set[type]
) -> list[Any] | None:
    """The cells of this type, and None for all others; None if there are none."""
    if type_ not in distinct:
        return None
    if len(distinct) == 1:
        return cells
    return [
        cell if cell_type is type_ else None for cell, cell_type in zip(cells, types, strict=True)
    ]


def _array(cells: list[Any] | None, count: int, type_: pa.DataType) -> pa.Array:
    return pa.nulls(count, type_) if cells is None else pa.array(cells, type_)


def _without_long(
    whole: list[int | None], numbers: list[float | None] | None, kinds: npt.NDArray[np.int32]
) -> tuple[list[int | None], list[float | None]]:
    """Move integers of more than 64 bits to the doubles; mark those out of their range."""
    floats: list[float | None] = [None] * len(whole) if numbers is None else [*numbers]
    for row, cell in enumerate(whole):
        if cell is None or cell in INT64:
            continue
        if abs(cell) > _LARGEST:
            kinds[row] = _OTHER
        else:
            floats[row] = float(cell)
    return [cell if cell is None or cell in INT64 else None for cell in whole], floats


def _strings(cells: list[str | None] | None, count: int) -> pa.Array:
    """Strings of at most `MAX_CHARACTERS`; a prefix sorts like the whole string, or equal."""
    strings = _array(cells, count, pa.string())
    longest = pc.max(pc.binary_length(strings)).as_py() or 0
    if longest <= MAX_CHARACTERS:
        return strings
    return pc.utf8_slice_codeunits(strings, 0, MAX_CHARACTERS)


def _known(values: pa.Array, unknown: Mask) -> pa.Array:
    """NULL where the document is unknown, because it may also have other values there."""
    if not unknown.any():
        return values
    return pc.if_else(pa.array(~unknown), values, pa.scalar(None, values.type))
