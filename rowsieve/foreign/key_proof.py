"""Proves that files are sorted by a key and have each key once, by reading their key columns.

Soundness (invariants, rule 10 and I5): rows of a part are in key order, keys are not NULL, and no
key is in two parts. Floats are refused as keys in place: -0.0 and NaN have several stored forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from rowsieve.errors import KeyViolation, UnsupportedOperation
from rowsieve.executor.sources import PartSource
from rowsieve.objects import ObjectStore
from rowsieve.planner.plan import PlannedPart
from rowsieve.storage.manifest import FileRef
from rowsieve.types.keys import Key, KeyOrder
from rowsieve.types.logical import Float
from rowsieve.types.schema import Schema

_ADVICE = (
    "sort the rows by the key over all files and write each key once, or import the files without "
    "key= and create a table with a key from their rows"
)
Ends = tuple[pa.RecordBatch, pa.RecordBatch]
"""The first and the last key of a file: one row each."""


def prove_key(
    store: ObjectStore, refs: Sequence[FileRef], schema: Schema, order: KeyOrder
) -> list[Ends]:
    """Return the first and last key of each file; KeyViolation if the key does not hold."""
    for field in order.fields:
        if isinstance(field.type, Float):
            raise UnsupportedOperation(
                f"the float column {field.name!r} cannot be a key of files in place, because 0.0 "
                "and NaN have several stored forms; import without key= and create a table"
            )
    ends = [_ends_of(store, ref, schema, order) for ref in refs]
    keys = [(order.columns(first).key(0), order.columns(last).key(0)) for first, last in ends]
    by_key = sorted(range(len(refs)), key=lambda i: keys[i][0])
    for one, other in pairwise(by_key):
        if keys[one][1] >= keys[other][0]:
            raise KeyViolation(
                f"the keys of {refs[one].path} go up to {_shown(keys[one][1])}, those of "
                f"{refs[other].path} begin at {_shown(keys[other][0])}: the files overlap; "
                f"{_ADVICE}"
            )
    return ends


def _ends_of(store: ObjectStore, ref: FileRef, schema: Schema, order: KeyOrder) -> Ends:
    source = PartSource(store, PlannedPart(ref.path, 0, ref, None), schema)
    first: pa.RecordBatch | None = None
    last: pa.RecordBatch | None = None
    for start, batch in source.rows(schema.select(order.names)):
        for name, column in zip(order.names, batch.columns, strict=True):
            if column.null_count:
                raise KeyViolation(f"{ref.path}: the key column {name!r} has a NULL; {_ADVICE}")
        joined = batch if last is None else _joined(last, batch)
        forms = order.columns(joined)
        if not forms.is_sorted() or forms.repeats().any():
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
