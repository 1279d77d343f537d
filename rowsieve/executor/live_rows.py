"""The live rows of a piece: visible rows that pruning cannot exclude.

    rows(part) = range of the read ∩ kept by statistics and bloom filters ∩ visible
                 ∩ not in its deletion vector

Where parts overlap, the keys decide which rows are visible. If the predicate's conditions on the
key keep few row groups, visibility is resolved only among those; otherwise for all rows, for every
reader of these parts. Both results are cached. Two reads resolve visibility as they read: one of a
few rows under a predicate on the key (`matching_by_key`), which would read the same pages twice,
and one of all rows in key order (`merged`), which compares the keys anyway.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter

import numpy as np
import pyarrow as pa

from rowsieve.executor.decode_row_group import RowGroup, in_slices, selection
from rowsieve.executor.merging.merge import merge, winners
from rowsieve.executor.merging.merge_memory import rows_at_once
from rowsieve.executor.merging.repeats import Rows
from rowsieve.executor.merging.visibility import VisibilityCache, visible_rows
from rowsieve.executor.merging.windows import Numbered, Run, Stream
from rowsieve.executor.part_sources import PartSource, candidates_of
from rowsieve.executor.stored_vectors import (
    fresh_count,
    is_complete,
    resolve,
    stored_vectors,
)
from rowsieve.executor.streams import CandidateRows, Streams
from rowsieve.executor.two_phase import RowReader
from rowsieve.planner.candidates import Candidates
from rowsieve.planner.part_rows import PartRows, within
from rowsieve.planner.split import Piece, PlannedPart, Read
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import evaluate
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifests.vector_columns import VectorRef
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.types.encodings import arrow_schema
from rowsieve.types.ordering.keys import KeyOrder
from rowsieve.types.schema import Schema

BY_KEY_UP_TO_SHARE = 0.5  # of rows kept by key: visibility is resolved among these alone
MERGED_AT_ONCE_UP_TO_ROWS = (
    4 * ROW_GROUP_ROWS
)  # rows kept by key: up to it, they are read and merged at once
_MERGE_FACTOR = 4  # a merge holds this many times the decoded bytes

_PART, _PART_ID, _RESIDUAL = map(attrgetter, ("part", "part_id", "residual"))
_VISIBLE = VisibilityCache(name="visibility")


class LiveRows:
    """Finds and reads the live rows of one piece; `predicate` only prunes, it filters no rows.

    `resolved`: the rows to read of each part id, if the plan has them; then nothing is pruned here.
    """

    def __init__(
        self,
        table_uuid: str,
        piece: Piece,
        streams: Streams | None,
        sources: Sequence[PartSource],
        predicate: BoundPredicate | None,
        resolved: Mapping[str, RowSet] | None = None,
    ) -> None:
        self._resolved = resolved
        self._piece = piece
        self._parts = _identity(table_uuid, piece.parts)
        self._streams = streams
        self._sources = sources
        self._predicate = predicate
        self._candidates: list[tuple[RowSet, RowSet]] | None = None  # see `_candidates_by_key`
        self._reads: Sequence[Read] = piece.reads

    def prune(self, reads: Sequence[Read]) -> None:
        """Prune the row groups and pages of all these reads in one evaluation.

        Their stored vectors are read together, too, once one of them is needed.
        """
        self._reads = reads
        if self._predicate is not None and self._resolved is None:
            parts = dict.fromkeys(map(_PART, filter(_RESIDUAL, reads)))
            candidates_of(list(map(self._sources.__getitem__, parts)), self._predicate)

    def row_groups(
        self, read: Read, columns: Schema, batch_rows: int = ROW_GROUP_ROWS
    ) -> Iterator[RowGroup]:
        """The row groups with a live row, in file order; the arguments are as in `PartSource`."""
        return self._sources[read.part].row_groups(columns, self.rows(read), batch_rows)

    def count(self, read: Read) -> int:
        """Count the live rows of a read without a residual; from the manifest where possible."""
        if self._resolved is None and (count := known_count(self._piece, read)) is not None:
            return count
        rows = self.rows(read)
        return self._sources[read.part].row_count if rows is None else len(rows)

    def merged(self, columns: Schema) -> Iterator[pa.RecordBatch]:
        """The live rows of all parts in key order; `columns` include the key."""
        assert self._streams is not None
        candidates = None if self._predicate is None else self._candidates_by_key()
        opened = self._streams.open(columns, candidates, stored=False)
        yield from merge(opened, self._streams.order, arrow_schema(columns))

    def few_rows_by_key(self, columns: Schema) -> CandidateRows | None:
        """Rows that remain after key pruning, if they are few and in several streams; else None."""
        assert self._streams is not None
        candidates = self._candidates_by_key()
        counts = [len(rows) for both in candidates for rows in both if not rows.is_empty]
        if len(counts) < 2 or sum(counts) > MERGED_AT_ONCE_UP_TO_ROWS:
            return None
        sizes = (source.largest_batch(columns) for source in self._sources)
        row_bytes = max((size // max(rows, 1) for rows, size in sizes), default=0)
        merged_bytes = _MERGE_FACTOR * row_bytes * sum(counts)
        return candidates if merged_bytes <= self._streams.memory_bytes else None

    def matching_by_key(
        self, reads: Sequence[Read], columns: Schema, candidates: CandidateRows
    ) -> pa.RecordBatch | None:
        """The live rows of these reads on which the predicate is TRUE or fails.

        The predicate reads only the key, so all versions of a key have the same outcome, and other
        rows can be dropped before the merge. Rows outside the reads only hide others.
        """
        streams, predicate = self._streams, self._predicate
        assert streams is not None
        assert predicate is not None
        asked = [RowSet.empty(source.row_count) for source in self._sources]
        for read in reads:
            asked[read.part] = asked[read.part].union(self._rows_in_range(read))
        shown = [rows for part in asked for rows in (None, part)]  # None: tombstones
        return winners(
            [
                run
                for place, rows in enumerate(streams.read(columns, candidates))
                for run in _runs(place, rows, shown[place], predicate, streams.order)
            ]
        )

    def interleaved(self, reads: Sequence[tuple[Read, RowReader]]) -> Iterator[pa.RecordBatch]:
        """The live rows that match, in key order; the readers' columns include the key.

        No key is visible in two parts, so the merge only interleaves.
        """
        assert self._streams is not None
        streams = self._streams
        footprints = [
            streams.footprint(2 * read.part + 1, reader.columns) for read, reader in reads
        ]
        rows = rows_at_once(footprints, streams.memory_bytes)
        opened = [
            Stream(
                streams.ahead.of(
                    _matching(
                        self.row_groups(read, reader.all_columns, batch_rows), reader, batch_rows
                    )
                ),
                deletes=False,
                first=footprint.first,
            )
            for (read, reader), footprint, batch_rows in zip(reads, footprints, rows, strict=True)
        ]
        yield from merge(opened, streams.order)

    def source(self, read: Read) -> PartSource:
        """The part of a read."""
        return self._sources[read.part]

    def rows(self, read: Read) -> RowSet | None:
        """The live rows of a read; None for all rows of the part."""
        source = self._sources[read.part]
        if self._resolved is not None:
            start, stop = read.row_range(source.row_count)
            return within(self._resolved[source.part.part_id], start, stop)
        rows: RowSet | None = None
        if read.residual and self._predicate is not None:
            rows = candidates_of([source], self._predicate)[0][1].rows
            if rows.is_empty:
                return rows
        if read.row_groups is not None:
            rows = _intersection([rows, self._rows_in_range(read)])
        if rows is not None and rows.is_empty:
            return rows
        undeleted = None if source.part.dv is None else source.undeleted_rows()
        return _intersection([rows, self._visible(read), undeleted])

    def part_rows(self, read: Read) -> PartRows:
        """The live rows of a read, with counts of what pruned the others; call `prune` first."""
        source = self._sources[read.part]
        asked = self._rows_in_range(read)
        candidates = Candidates(asked)
        if read.residual and self._predicate is not None:
            candidates = candidates_of([source], self._predicate)[0][1]
        live = self.rows(read)
        rows = asked if live is None else live
        return PartRows(
            source.part.part_id,
            rows,
            candidates.row_groups,
            candidates.by_statistics,
            candidates.by_bloom,
            candidates.pages,
            candidates.by_page_index,
            len(candidates.rows.intersect(asked)) - len(rows),
            candidates.page_rows,
        )

    def _rows_in_range(self, read: Read) -> RowSet:
        """The rows in the range of a read, hidden rows included."""
        row_count = self._sources[read.part].row_count
        return within(RowSet.full(row_count), *read.row_range(row_count))

    def _visible(self, read: Read) -> RowSet | None:
        """The rows that no other part hides; None if no other part can hide any."""
        if self._streams is None or read.part == 0:
            return None
        vector = self._sources[read.part].part.vector
        if vector is not None:
            rows = self._stored(self._streams, read.part)
            if rows is not None:
                return rows
        return self._visible_in_all(self._streams)[read.part]

    def _stored(self, streams: Streams, place: int) -> RowSet | None:
        """The visible rows by the part's stored vector; None if it is not complete or readable."""
        if not is_complete(self._sources[place].part, self._sources[0].part):
            return None
        if (answer := _VISIBLE.answers.get(self._parts)) is not None:
            return answer[place]

        def read() -> tuple[RowSet, ...]:
            """Read the vector together with those that the other reads need."""
            places = [place, *(i for i in self._lacking_vectors() if i != place)]
            sources = list(map(self._sources.__getitem__, places))
            visible = [
                () if hidden is None else (hidden.complement(),)
                for hidden in stored_vectors(streams.store, sources)
            ]
            for other, rows in zip(places[1:], visible[1:], strict=True):
                size_bytes = sum(row_set.size_bytes for row_set in rows)
                _VISIBLE.answers.put(self._stored_identity(other), rows, size_bytes)
            return visible[0]

        visible = _VISIBLE.get(self._stored_identity(place), read)
        return visible[0] if visible else None

    def _stored_identity(self, place: int) -> tuple[str, str, VectorRef | None]:
        part = self._sources[place].part
        return self._parts[0], part.part_id, part.vector

    def _lacking_vectors(self) -> Iterator[int]:
        """The parts whose stored vectors the reads need, without those in the cache."""
        for read in {read.part: read for read in self._reads}.values():
            part = self._sources[read.part].part
            if part.vector is None or not is_complete(part, self._sources[0].part):
                continue
            is_known = _VISIBLE.answers.get(self._stored_identity(read.part)) is not None
            if not is_known and not self._is_refuted(read):
                yield read.part

    def _is_refuted(self, read: Read) -> bool:
        """Return whether the predicate excludes all rows of a read's part."""
        if self._predicate is None or not read.residual:
            return False
        return candidates_of([self._sources[read.part]], self._predicate)[0][1].rows.is_empty

    def _visible_in_all(self, streams: Streams) -> tuple[RowSet, ...]:
        predicate = self._predicate
        for known in (self._parts, (self._parts, predicate)):
            if (answer := _VISIBLE.answers.get(known)) is not None:
                return answer
        if predicate is not None:
            candidates = self._candidates_by_key()
            if sum([not rows.is_empty for both in candidates for rows in both]) < 2:
                return tuple([among for _, among in candidates])
            if _share(candidates, self._sources) <= BY_KEY_UP_TO_SHARE:
                few = (self._parts, predicate)
                return _VISIBLE.get(few, lambda: _resolve_among(candidates, streams))
        return _VISIBLE.get(self._parts, lambda: resolve(streams))

    def _candidates_by_key(self) -> list[tuple[RowSet, RowSet]]:
        """The tombstones and rows of each part whose keys the predicate cannot exclude."""
        if self._candidates is not None:
            return self._candidates
        assert self._streams is not None
        predicate = self._predicate
        assert predicate is not None
        key = frozenset([field.id for field in self._streams.order.fields])
        both = candidates_of(self._sources, predicate, key, tombstones=True)
        self._candidates = [(deleted.rows, live.rows) for deleted, live in both]
        return self._candidates


def _runs(
    place: int,
    batches: Iterator[Numbered],
    shown: RowSet | None,
    predicate: BoundPredicate,
    order: KeyOrder,
) -> Iterator[Run]:
    """Runs of the rows on which the predicate is TRUE or fails.

    A batch outside `shown`, and every batch if that is None, only hides rows of older parts.
    """
    for start, batch in batches:
        outcome = evaluate(predicate, batch)
        relevant = _taken(batch, np.flatnonzero(outcome.true | outcome.failed))
        if relevant.num_rows:
            hides = shown is None or start not in shown  # a read covers whole row groups
            yield Run(place, start, relevant, 0, order.columns(relevant), hides)


def _matching(groups: Iterator[RowGroup], reader: RowReader, batch_rows: int) -> Iterator[Numbered]:
    for group in groups:
        yield from in_slices(partial(reader.read, (group,)), batch_rows)


def known_count(piece: Piece, read: Read) -> int | None:
    """Count the live rows of a read without a residual by the manifest; None if it cannot."""
    part = piece.parts[read.part]
    if read.part == 0 and part.dv is None:  # nothing is newer
        start, stop = read.row_range(part.row_count)
        return stop - start
    if read.row_groups is not None:
        return None
    if part.dv is not None:
        return None if piece.needs_merge else part.row_count - part.dv.rows
    if part.vector is None or not is_complete(part, piece.parts[0]):
        return None
    return part.row_count - part.vector.rows


def is_resolved(table_uuid: str, parts: Sequence[PlannedPart]) -> bool:
    """Return whether the cache or stored vectors have the visible rows of these parts."""
    return not fresh_count(parts) or _VISIBLE.answers.get(_identity(table_uuid, parts)) is not None


def with_columns(columns: Schema, others: Schema) -> Schema:
    """The columns, then those of `others` that they lack."""
    more = tuple(field for field in others if field.name not in columns.names)
    return Schema(columns.id, (*columns, *more))


def _identity(table_uuid: str, parts: Sequence[PlannedPart]) -> tuple[str, ...]:
    return (table_uuid, *map(_PART_ID, parts))


def _resolve_among(candidates: list[tuple[RowSet, RowSet]], streams: Streams) -> tuple[RowSet, ...]:
    """The visible rows among the kept rows of each part."""
    opened = streams.open(streams.keys, candidates)
    visible = visible_rows(opened, streams.row_counts, streams.order)[1::2]
    return tuple(
        rows.intersect(among) for rows, (_, among) in zip(visible, candidates, strict=True)
    )


def _taken(rows: pa.RecordBatch, places: Rows) -> pa.RecordBatch:
    """The rows at these positions, which ascend."""
    if not rows.num_columns:
        return rows.slice(0, len(places))
    keep = selection(places, rows.num_rows)
    return pa.RecordBatch.from_arrays([keep(column) for column in rows.columns], rows.schema.names)


def _intersection(sets: Sequence[RowSet | None]) -> RowSet | None:
    """The rows that are in all sets; None means every row."""
    result: RowSet | None = None
    for rows in sets:
        if rows is not None:
            result = rows if result is None else result.intersect(rows)
    return result


def _share(candidates: Sequence[tuple[RowSet, RowSet]], sources: Sequence[PartSource]) -> float:
    """The share of all rows and tombstones that is kept."""
    total = sum(source.row_count + source.tombstone_count for source in sources)
    return sum(len(deleted) + len(rows) for deleted, rows in candidates) / max(total, 1)
