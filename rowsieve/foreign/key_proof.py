"""Proves that files are sorted by a key and have each key once, by reading their key columns.

Small files are read together (`rowsieve.foreign.many_keys`); large files, and small ones with a
fault, are read one by one.

Soundness (invariants, rule 10 and I5): rows of a part are in key order, keys are not NULL, and no
key is in two parts. Floats are refused as keys in place: -0.0 and NaN have several stored forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rowsieve.errors import KeyViolation, UnsupportedOperation
from rowsieve.executor.part_sources import PartSource
from rowsieve.foreign.many_keys import PlacedFile, read_keys, small_batches
from rowsieve.objects import ObjectStore
from rowsieve.planner.split import PlannedPart
from rowsieve.progress_bars import UNSEEN, Steps
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.types.logical import Float
from rowsieve.types.ordering.keys import Key, KeyOrder
from rowsieve.types.schema import Schema

_ADVICE = (
    "sort the rows by the key over all files and write each key once, or copy the rows into a "
    "table with a key, by create_table or upsert"
)


@dataclass(frozen=True, slots=True)
class Ends:
    """The first and the last key of each file: a row per file, in key columns."""

    first: pa.RecordBatch
    last: pa.RecordBatch


def prove_key(
    store: ObjectStore,
    files: Sequence[PlacedFile],
    schema: Schema,
    order: KeyOrder,
    steps: Steps = UNSEEN,
) -> Ends:
    """Return the first and last key of each file; KeyViolation if the key does not hold.

    A file is a step.
    """
    for field in order.fields:
        if isinstance(field.type, Float):
            raise UnsupportedOperation(
                f"the float column {field.name!r} cannot be a key of files in place, because 0.0 "
                "and NaN have several stored forms; copy the rows into a table with a key"
            )
    ends = _ends(store, files, schema, order, steps)
    check_disjoint([file.ref.path for file in files], ends, order)
    return ends


def check_disjoint(paths: Sequence[str], ends: Ends, order: KeyOrder) -> None:
    """Raise KeyViolation if the ranges of keys of two files overlap."""
    firsts, lasts = order.columns(ends.first), order.columns(ends.last)
    by_key = firsts.sort()
    between = np.empty(2 * len(by_key), np.int64)  # first, last, next first, next last, …
    between[0::2], between[1::2] = by_key, by_key + len(by_key)
    both = pa.Table.from_batches([ends.first, ends.last]).take(pa.array(between))
    overlaps = np.flatnonzero(~order.columns(both).rises()[0::2])
    if len(overlaps):
        one, other = (int(by_key[overlaps[0] + place]) for place in (-1, 0))
        raise KeyViolation(
            f"the keys of {paths[one]} go up to {_shown(lasts.key(one))}, those of "
            f"{paths[other]} begin at {_shown(firsts.key(other))}: the files overlap; {_ADVICE}"
        )


def _ends(
    store: ObjectStore,
    files: Sequence[PlacedFile],
    schema: Schema,
    order: KeyOrder,
    steps: Steps,
) -> Ends:
    """The ends of each file, in the order of the files."""
    ends = []
    for small in _ends_of_small(store, files, order):
        ends.append(small)
        steps.add(len(small[0]))
    done = {int(number) for numbers, _, _ in ends for number in numbers}
    for number, file in enumerate(files):
        if number not in done:
            ends.append(([number], *_ends_of(store, file.ref, schema, order)))
            steps.add(1)
    places = np.argsort(np.concatenate([numbers for numbers, _, _ in ends]))
    first, last = (
        pa.Table.from_batches([each[side] for each in ends]).combine_chunks() for side in (1, 2)
    )
    return Ends(*(each.take(pa.array(places)).to_batches()[0] for each in (first, last)))


def _ends_of_small(
    store: ObjectStore, files: Sequence[PlacedFile], order: KeyOrder
) -> Iterator[tuple[Sequence[int], pa.RecordBatch, pa.RecordBatch]]:
    """The ends of small files whose keys hold, with the places of the files."""
    for batch in small_batches(files, order):
        keys = read_keys(store, batch, order)
        if keys is None or any(column.null_count for column in keys.columns):
            continue
        stops = np.cumsum([file.ref.rows for file in batch.files])
        starts = np.concatenate([[0], stops[:-1]])
        rises = order.columns(keys).rises()
        rises[starts] = True
        if rises.all():
            yield batch.numbers, keys.take(pa.array(starts)), keys.take(pa.array(stops - 1))


def _ends_of(
    store: ObjectStore, ref: FileRef, schema: Schema, order: KeyOrder
) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    source = PartSource(store, PlannedPart(ref.path, 0, ref, None), schema)
    first: pa.RecordBatch | None = None
    last: pa.RecordBatch | None = None
    for start, batch in source.rows(schema.select(order.names)):
        for name, column in zip(order.names, batch.columns, strict=True):
            if column.null_count:
                raise KeyViolation(f"{ref.path}: the key column {name!r} has a NULL; {_ADVICE}")
        joined = batch if last is None else _joined(last, batch)
        forms = order.columns(joined)
        if not forms.rises().all():
            what = "has a key twice" if forms.is_sorted() else "is not sorted by the key"
            raise KeyViolation(
                f"{ref.path} {what} ({', '.join(order.names)}) at rows {start} to "
                f"{start + batch.num_rows}; {_ADVICE}"
            )
        first = batch.take(pa.array([0])) if first is None else first
        last = batch.take(pa.array([batch.num_rows - 1]))
    assert first is not None
    assert last is not None
    return first, last


def _joined(before: pa.RecordBatch, batch: pa.RecordBatch) -> pa.RecordBatch:
    columns = [
        pa.concat_arrays([one, other])
        for one, other in zip(before.columns, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _shown(key: Key) -> str:
    return ", ".join(map(repr, key))
