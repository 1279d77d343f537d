"""Checks of the chunks in a footer: what is refused, and what contradicts the schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.foreign_footer.footer_fields import (
    CODEC,
    CODECS,
    COMPRESSED,
    CRYPTO,
    DATA,
    DEFINITIONS,
    DICTIONARY,
    FILE,
    GEOMETRY,
    LARGEST_VALUE,
    MAX,
    MIN,
    NOT_NEGATIVE,
    NULLS,
    OLD_MAX,
    OLD_MIN,
    PATH,
    REPETITIONS,
    REQUIRED,
    TEXT_BYTES,
    TYPE,
    VALUES,
)
from rowsieve.parquet.foreign_footer.many_structs import Structs
from rowsieve.parquet.foreign_footer.schema_tree import BYTES, FIXED, INT96, LENGTHS, Leaf
from rowsieve.parquet.foreign_footer.struct_lanes import Numbers
from rowsieve.parquet.thrift import MalformedThrift, encoded_value

_COMPARED: Final = (
    *(VALUES, NULLS, GEOMETRY, OLD_MAX, OLD_MIN, MAX, MIN),
    *(REPETITIONS, DEFINITIONS, TEXT_BYTES),
)


class UnreadableFooter(ValueError):
    """The footer is valid, but the file needs what is not supported; the text says what to do."""


def refuse(chunks: Structs, leaves: Sequence[Leaf]) -> None:
    """Refuse chunks that cannot be read at all."""
    stops, values = chunks.stops, chunks.values

    def first(wrong: npt.NDArray[np.bool_]) -> str | None:
        place = int(np.argmax(wrong)) if wrong.any() else None
        return None if place is None else ".".join(leaves[place % len(leaves)].path)

    if (name := first(stops[CRYPTO] >= 0)) is not None:
        raise UnreadableFooter(
            f"its column {name!r} is encrypted, which is not supported; decrypt it, and write the "
            "file again"
        )
    if (name := first((stops[FILE] >= 0) & (stops[FILE] > values[FILE]))) is not None:
        raise UnreadableFooter(
            f"its column {name!r} lies in another file, which is not supported; write the file "
            "again with all of its columns"
        )
    for path in REQUIRED:
        if (name := first(stops[path] < 0)) is not None:
            raise MalformedThrift(f"a chunk of column {name!r} lacks its field {path[-1]}")
    if (name := first((values[CODEC] < 0) | (values[CODEC] >= len(CODECS)))) is not None:
        raise UnreadableFooter(
            f"its column {name!r} is compressed by a codec that is not known; write the file again "
            "with zstd"
        )
    for path in NOT_NEGATIVE:
        wrong = (values[path] < 0) | (values[path] > LARGEST_VALUE)
        if (name := first(wrong)) is not None:
            raise MalformedThrift(
                f"a chunk of column {name!r} has an impossible value in its field {path[-1]}"
            )


def refuse_contradicting(
    data: bytes, chunks: Structs, leaves: Sequence[Leaf], rows: Numbers
) -> None:
    """Refuse row groups that a decoder would read wrongly without an error.

    A decoder takes the chunks of a row group in the order of the schema, as values of the schema's
    types, and as many as the row group says.
    """
    shape = len(rows), len(leaves)
    physical = np.fromiter((leaf.physical for leaf in leaves), np.int64, len(leaves))
    other = chunks.values[TYPE].reshape(shape) != physical
    if other.any():
        name = ".".join(leaves[int(np.argmax(other.any(axis=0)))].path)
        raise MalformedThrift(f"a chunk of column {name!r} has another type than the column")
    flat = [place for place, leaf in enumerate(leaves) if not leaf.repetitions]
    if flat:
        values = chunks.values[VALUES].reshape(shape)[:, flat].min(axis=1)
        if (more := values > rows).any():
            group = int(np.argmax(more))
            raise MalformedThrift(
                f"row group {group} says that it has {rows[group]} rows, and each of its columns "
                f"has {values[group]} values or more"
            )
    _refuse_another_order(data, chunks, leaves)
    _refuse_other_places(chunks, leaves, rows)


def _refuse_another_order(data: bytes, chunks: Structs, leaves: Sequence[Leaf]) -> None:
    """Refuse row groups whose chunks name the columns of the schema in another order.

    Other names are only names: writers spell them in another case, or leave them out.
    """
    paths = [encoded_value([name.encode() for name in leaf.path])[1] for leaf in leaves]
    stops = chunks.stops[PATH].tolist()
    expected = paths * (len(stops) // max(1, len(paths)))
    written = [data[stop - len(path) : stop] for stop, path in zip(stops, expected, strict=True)]
    if written == expected:
        return
    places = {path: place for place, path in enumerate(paths)}
    lengths = sorted({len(path) for path in paths})
    for first in range(0, len(stops), len(paths)):
        named = []
        for stop in stops[first : first + len(paths)]:
            ends = (data[stop - length : stop] for length in lengths)
            named.append(next((places[end] for end in ends if end in places), -1))
        if sorted(named) == list(range(len(paths))) != named:
            place = next(i for i, other in enumerate(named) if i != other)
            name, other = (".".join(leaves[i].path) for i in (place, named[place]))
            raise UnreadableFooter(
                f"a row group has its column {other!r} in the place of {name!r}, which is not "
                "supported; write the file again with the columns in the order of its schema"
            )


def _refuse_other_places(chunks: Structs, leaves: Sequence[Leaf], rows: Numbers) -> None:
    """Refuse chunks whose pages lie in another chunk, by their offsets: its values would be read.

    A row group that is listed twice shares all of its chunks, and is read twice. A length beyond
    the next chunk misleads no decoder, which stops after the last value, and neither does the place
    of the first page behind a dictionary, where a decoder begins.
    """
    step = len(leaves)
    starts, stops = chunk_spans(chunks)
    if is_ascending(starts, stops):
        return
    data, dictionary = chunks.values[DATA], chunks.values[DICTIONARY]
    later = np.where(chunks.stops[DICTIONARY] >= 0, np.maximum(data, dictionary), data)
    used = (chunks.values[VALUES] > 0) & (np.repeat(rows, step) > 0) & (starts < stops)
    _, first_of_each = np.unique(starts.reshape(-1, step), axis=0, return_index=True)
    once = np.isin(np.arange(len(rows)), first_of_each)
    order = np.flatnonzero(used & np.repeat(once, step))
    order = order[np.lexsort((stops[order], starts[order]))]
    first, before = starts[order][1:], np.maximum.accumulate(stops[order])[:-1]
    wrong = np.zeros(len(starts), np.bool_)
    wrong[order[1:]] = (first == starts[order][:-1]) | (
        (first < before) & (before <= later[order][1:])
    )
    if wrong.any():
        name = ".".join(leaves[int(np.argmax(wrong)) % step].path)
        raise MalformedThrift(f"a chunk of column {name!r} begins in another chunk")


def contradictions(
    chunks: Structs, leaves: Sequence[Leaf], rows: Numbers
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """The chunks that contradict the schema, and those with statistics a decoder must not see."""
    groups, step = len(rows), len(leaves)

    def by_group(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return values.reshape(groups, step)

    def by_leaf(facts: Iterable[int]) -> Numbers:
        return np.fromiter(facts, np.int64, step)

    values = {path: by_group(chunks.values[path]) for path in _COMPARED}
    is_there = {path: by_group(chunks.stops[path] >= 0) for path in _COMPARED}
    physical = by_leaf(leaf.physical for leaf in leaves)
    repetitions = by_leaf(leaf.repetitions for leaf in leaves)
    suspicious = (repetitions == 0) & (values[VALUES] != rows[:, None])
    length = by_leaf(map(_length, leaves))
    unfit = (physical == INT96) | is_there[GEOMETRY] | (is_there[NULLS] & (values[NULLS] < 0))
    for path in (OLD_MAX, OLD_MIN, MAX, MIN):
        size = by_group(chunks.stops[path]) - values[path]
        unfit |= is_there[path] & (length >= 0) & (size != length)
    definitions = by_leaf(leaf.definitions for leaf in leaves)
    for path, levels in ((REPETITIONS, repetitions), (DEFINITIONS, definitions)):
        unfit |= is_there[path] & (values[path] != 0) & (values[path] != levels + 1)
    unfit |= is_there[TEXT_BYTES] & (physical != BYTES)
    return suspicious.ravel() | overlapping(*chunk_spans(chunks)), unfit.ravel()


def chunk_spans(chunks: Structs, places: slice = slice(None)) -> tuple[Numbers, Numbers]:
    """Where chunks begin and end in the file, from the dictionary or first page on."""
    values, stops = chunks.values, chunks.stops
    starts, dictionary = values[DATA][places], values[DICTIONARY][places]
    with_dictionary = (stops[DICTIONARY][places] >= 0) & (dictionary > 0)
    starts = np.where(with_dictionary, np.minimum(starts, dictionary), starts)
    return starts, starts + values[COMPRESSED][places]


def overlapping(starts: Numbers, stops: Numbers) -> npt.NDArray[np.bool_]:
    """(n,) the byte ranges that share bytes with another: at most one of them is told rightly."""
    if is_ascending(starts, stops):
        return np.zeros(len(starts), np.bool_)
    order = np.lexsort((stops, starts))
    first, last = starts[order], np.maximum.accumulate(stops[order])
    shared = np.zeros(len(starts), np.bool_)
    shared[order[1:]] = first[1:] < last[:-1]
    shared[order[:-1]] |= first[1:] < stops[order][:-1]
    return shared & (starts < stops)


def is_ascending(starts: Numbers, stops: Numbers) -> bool:
    """Return whether each byte range ends before the next one begins."""
    return bool((stops[:-1] <= starts[1:]).all())


def _length(leaf: Leaf) -> int:
    """The bytes of a bound; -1 for any."""
    return leaf.width if leaf.physical == FIXED else LENGTHS.get(leaf.physical, -1)
