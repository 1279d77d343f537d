"""Finds hidden rows from stored deletion vectors; resolves the remaining ones by keys.

A part is *complete through* a version: all commits up to it that hide rows of the part are in its
stored vector. A part without a vector is complete through its own commit, because older parts hide
none of its rows. Rows that later commits hide are resolved by keys.

Soundness (invariants I3 and I4): a vector is used only for the parts of one version together, as
the manifest of that version has them. Which rows it hides never depends on the predicate.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace

from rowsieve.executor.generated_keys import rows_with
from rowsieve.executor.merging.visibility import visible_rows
from rowsieve.executor.part_sources import PartSource, candidates_of
from rowsieve.executor.streams import CandidateRows, Streams
from rowsieve.objects import ObjectStore
from rowsieve.planner.split import PlannedPart
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.parts.vector_files import read_vectors
from rowsieve.types.encodings import arrow_type
from rowsieve.types.schema import Schema

_ALWAYS = 2**63 - 1
LOOKED_UP_UP_TO_KEYS = (
    2 * ROW_GROUP_ROWS
)  # keys of newer parts: up to it, they are looked up in older parts
LOOKED_UP_TO_SHARE = 0.125  # of the older parts' rows; for more, all their keys are read


def complete_through(part: PlannedPart) -> int:
    """The version up to which all commits that hide rows of the part are known."""
    if part.data is None:
        return _ALWAYS  # it has no rows
    return part.commit_ts if part.vector is None else part.vector.complete_through


def is_complete(part: PlannedPart, newest: PlannedPart) -> bool:
    """Return whether the part's stored vector has all rows that parts up to `newest` hide."""
    return complete_through(part) >= newest.commit_ts


def fresh_count(parts: Sequence[PlannedPart]) -> int:
    """Count the newest of these parts that may hide rows which no stored vector has.

    The other parts are complete with regard to each other.
    """
    least = None
    count = 0
    for i in range(len(parts) - 1, -1, -1):
        complete = complete_through(parts[i])
        least = complete if least is None else min(least, complete)
        if least >= parts[i].commit_ts:
            count = i
    return count


def few_are_fresh(parts: Sequence[PlannedPart]) -> bool:
    """Return whether visibility needs no keys, or only those of few rows."""
    fresh = fresh_count(parts)
    new, old = (sum(map(_key_count, some)) for some in (parts[:fresh], parts[fresh:]))
    return new <= min(LOOKED_UP_UP_TO_KEYS, LOOKED_UP_TO_SHARE * old)


def stored_vectors(store: ObjectStore, sources: Sequence[PartSource]) -> list[RowSet | None]:
    """The hidden rows in the stored vector of each part; None if it has no readable one.

    One request for each file of vectors.
    """
    return _read(store, [source.part for source in sources])


def resolve(streams: Streams) -> tuple[RowSet, ...]:
    """The visible rows of each part, from stored vectors and the keys that they do not cover."""
    sources = streams.sources
    counts = [source.row_count for source in sources]
    vectors = _read(streams.store, [source.part for source in sources])
    parts = _only_readable([source.part for source in sources], vectors)
    fresh = fresh_count(parts)
    visible = [RowSet.full(count) for count in counts]
    if fresh:
        candidates = _to_read(streams, fresh, look_up=few_are_fresh(parts))
        opened = streams.open(streams.keys, candidates)
        visible = visible_rows(opened, streams.row_counts, streams.order)[1::2]
    return tuple(
        rows.difference(vector) if vector is not None else rows
        for rows, vector in zip(visible, vectors, strict=True)
    )


def _to_read(streams: Streams, fresh: int, *, look_up: bool) -> CandidateRows:
    """The tombstones and rows whose keys decide what the `fresh` newest parts hide.

    Tombstones of the other parts hide nothing that their vectors lack.
    """
    older = streams.sources[fresh:]
    everything: list[tuple[RowSet | None, RowSet | None]] = [(None, None)] * fresh
    rows: list[RowSet | None] = [None] * len(older)
    if look_up:
        keys = streams.keys.select(streams.order.names[:1])
        ids = frozenset(field.id for field in streams.order.fields)
        rows = _with_keys(older, _keys_of(streams.sources[:fresh], keys), keys, ids)
    nothing = (RowSet.empty(source.tombstone_count) for source in older)
    return everything + list(zip(nothing, rows, strict=True))


def _keys_of(sources: Sequence[PartSource], keys: Schema) -> pa.Array:
    """The distinct values of the first key column in these parts."""
    (field,) = keys
    batches = [
        batch.column(field.name)
        for source in sources
        for stream in (source.tombstones(keys), source.rows(keys))
        for _, batch in stream
    ]
    return pc.unique(
        pa.chunked_array(batches, batches[0].type if batches else arrow_type(field.type))
    )


def _with_keys(
    sources: Sequence[PartSource], values: pa.Array, keys: Schema, ids: frozenset[int]
) -> list[RowSet | None]:
    """The rows of each part that may have one of these values of the first key column."""
    (field,) = keys
    members = ir.ValueSet(values, field.type)
    predicate = bind(ir.InList(ir.Column(field.name), members), keys)
    candidates = iter(
        candidates_of([each for each in sources if each.part.contiguous is None], predicate, ids)
    )
    return [
        next(candidates)[1].rows
        if (known := source.part.contiguous) is None
        else rows_with(known, source.row_count, values)
        for source in sources
    ]


def readable(store: ObjectStore, parts: Sequence[PlannedPart]) -> list[PlannedPart]:
    """The parts without those stored vectors that cannot be read."""
    return _only_readable(parts, _read(store, parts))


def _read(store: ObjectStore, parts: Sequence[PlannedPart]) -> list[RowSet | None]:
    """The hidden rows in the stored vector of each part, if it has a readable one."""
    places = [i for i, part in enumerate(parts) if part.vector is not None]
    wanted = [(ref, parts[i].row_count) for i in places if (ref := parts[i].vector) is not None]
    hidden_rows = dict(zip(places, read_vectors(store, wanted), strict=True))
    return [hidden_rows.get(i) for i in range(len(parts))]


def _only_readable(
    parts: Sequence[PlannedPart], vectors: Sequence[RowSet | None]
) -> list[PlannedPart]:
    return [
        part if vector is not None else _without_vector(part)
        for part, vector in zip(parts, vectors, strict=True)
    ]


def _key_count(part: PlannedPart) -> int:
    return part.row_count + part.tombstone_count


def _without_vector(part: PlannedPart) -> PlannedPart:
    return replace(part, vector=None)
