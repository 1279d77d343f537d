"""Executes a plan: resolves visibility, applies the predicate, projects columns, applies the limit.

The order of these steps is fixed (traps T1 and T6). Where parts overlap, the keys decide which rows
are visible. After that, each part is read independently under any predicate: its visible rows that
pruning keeps become units of row groups, which several threads decode. A read in key order only
interleaves the parts. Two reads resolve visibility as they read: one of a few rows under a
predicate on the key, and one of all rows in key order. The output order does not depend on threads.
A split can be read alone, in any process that has the plan and the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from itertools import chain, groupby, islice
from operator import attrgetter
from typing import Any, TypeVar

import pyarrow as pa

from rowsieve.config import DEFAULT
from rowsieve.errors import UnsupportedOperation
from rowsieve.executor.consolidation.consolidate import Consolidated, updates_plan
from rowsieve.executor.consolidation.update_shares import update_shares
from rowsieve.executor.live_rows import LiveRows, is_resolved, known_count, with_columns
from rowsieve.executor.merging.windows import Numbered
from rowsieve.executor.output_batches import take_first
from rowsieve.executor.part_sources import PartSource
from rowsieve.executor.read_ahead import ReadAhead, Schedule, with_lookahead
from rowsieve.executor.read_columns import ReadColumns
from rowsieve.executor.streams import Streams
from rowsieve.executor.units import Task, Unit, joined, starting_small
from rowsieve.metrics import ScanMetrics
from rowsieve.objects import ObjectStore, in_thread
from rowsieve.parquet.footer import expect_tails
from rowsieve.planner.candidates import find_candidates
from rowsieve.planner.part_rows import PartRows
from rowsieve.planner.plan import ScanPlan
from rowsieve.planner.resolved import rows_by_part, with_rows
from rowsieve.planner.split import Piece, PlannedPart, Read, Split
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.parts.vector_files import places_of_vectors
from rowsieve.types.logical import Float
from rowsieve.types.schema import Schema

GROUPS_AHEAD = 128  # row groups that one read prefetches, if memory allows
PARTS_TOGETHER = 16  # parts whose footers, bloom filters and pages are interpreted at once
PIECES_AHEAD = 256  # pieces whose footers are prefetched, if memory allows
RESOLVED_AHEAD = 8  # pieces whose visible rows are found at once, where each waits for a store
PARTS_AHEAD = 64  # parts whose visible rows are prefetched
COUNTS_AHEAD = 64  # tasks of a count that are made before their results are needed
_PIECES = attrgetter("pieces")

Result = TypeVar("Result")
Other = TypeVar("Other")


class Execution:
    """Reads one plan through one store; the metrics are complete once the read has ended.

    A `FetchingStore` that the caller gives prefetches for several plans. With `views`, columns of
    text and bytes have the view types of Arrow. With `small_start`, the first batch has few rows,
    for a consumer that may need no more.
    """

    def __init__(
        self,
        plan: ScanPlan,
        store: ObjectStore,
        metrics: ScanMetrics | None = None,
        *,
        threads: int | None = None,
        memory_bytes: int = DEFAULT.memory_bytes,
        views: bool = False,
        small_start: bool = False,
    ) -> None:
        self._plan = plan
        short, announced = plan.limit is not None, plan.filter is None
        self._schedule = Schedule(
            store, memory_bytes, threads, is_short=short, is_announced=announced
        )
        self._store = self._schedule.store
        self._small_start = small_start and not self._schedule.fetches  # it costs a round trip
        self._columns = ReadColumns.of(plan, views=views)
        self._packaging = self._columns.packaging
        self._reads_all = self._columns.is_whole and plan.limit is None
        self.schema: pa.Schema = self._packaging.output
        """The Arrow schema of every batch."""
        self._resolved = None if plan.resolved is None else rows_by_part(plan.resolved)
        self._memory_bytes = memory_bytes
        self._threads = threads
        self.metrics = ScanMetrics() if metrics is None else metrics

    @property
    def predicate(self) -> BoundPredicate | None:
        """The predicate that every returned row satisfies; None without a filter."""
        return self._plan.filter

    def visible_parts(self) -> Iterator[tuple[PartSource, RowSet | None]]:
        """Every part that the plan reads, with its visible rows; None if all are visible."""
        with missing_files_named(self._store, self._plan.version), ReadAhead(1, 0) as ahead:
            yield from self._visible_parts(ahead, known=_all_visible)

    def visible_rows(
        self, columns: Schema
    ) -> Iterator[tuple[PartSource, RowSet, Iterator[Numbered]]]:
        """Every part that the plan reads, its visible rows, and batches with these columns.

        The batches are whole pages or row groups with a visible row, prefetched some parts ahead,
        those of small files together with footers and deletion vectors.
        """
        with missing_files_named(self._store, self._plan.version), ReadAhead(1, 0) as ahead:
            parts = (
                (source, wanted, source.rows_ahead(columns, wanted))
                for source, rows in self._visible_parts(ahead, with_pages=True)
                for wanted in [RowSet.full(source.row_count) if rows is None else rows]
            )
            yield from self._schedule.drawn(parts, PARTS_AHEAD)

    def _visible_parts(
        self,
        ahead: ReadAhead,
        *,
        with_pages: bool = False,
        known: Callable[[Piece], bool] | None = None,
    ) -> Iterator[tuple[PartSource, RowSet | None]]:
        for piece in self._opened(self._plan.splits, with_pages=with_pages, known=known):
            live = self._live(piece, ahead)
            for read in piece.reads:
                yield live.source(read), live.rows(read)

    def part_rows(self) -> Iterator[PartRows]:
        """The rows of every read and how pruning kept them; a part may occur several times."""
        with (
            missing_files_named(self._store, self._plan.version),
            self._schedule.ahead() as ahead,
        ):
            for _, group in groupby(self._opened(self._plan.splits), key=attrgetter("parts")):
                same = list(group)
                live = self._live(same[0], ahead)
                reads = [read for piece in same for read in piece.reads]
                live.prune(reads)
                yield from map(live.part_rows, reads)

    def read(self, splits: Sequence[Split] | None = None) -> Iterator[pa.RecordBatch]:
        """All rows of the plan or of some splits, up to its limit; batches are never empty.

        In key order if the plan is ordered.
        """
        splits = self._plan.splits if splits is None else splits
        with (
            missing_files_named(self._store, self._plan.version),
            self._schedule.ahead() as ahead,
        ):
            if self._plan.consolidation is not None:
                batches = self._sums(splits)
            else:
                pieces = self._opened(splits, with_pages=self._reads_all)
                batches = self._batches(pieces, ahead)
            while (batch := self._timed(batches)) is not None:
                self.metrics.rows_returned += batch.num_rows
                self.metrics.batches_returned += 1
                self.metrics.bytes_returned += batch.nbytes
                yield batch

    def tasks_by_split(
        self, ahead: ReadAhead, *, counts: bool = False
    ) -> Iterator[tuple[int, Callable[[], Any] | None]]:
        """Tasks that read the rows of a plan without limit and order, with their split's number.

        With `counts`, tasks that count them. The splits are in order, and None ends each. Bytes are
        prefetched ahead of the tasks that were drawn, over all splits. `read_tasks` runs the tasks.
        """
        splits = self._plan.splits
        pieces = self._opened(
            splits,
            with_pages=self._reads_all and not counts,
            known=self._is_counted if counts else None,
        )

        def units() -> Iterator[tuple[int, Unit | Callable[[], Any] | None]]:
            for number, split in enumerate(splits):
                pieces_of_split = islice(pieces, len(split.pieces))
                yield from (
                    (number, unit)
                    for unit in joined(
                        self._countable(pieces_of_split, ahead)
                        if counts
                        else self._units(pieces_of_split, ahead)
                    )
                )
                yield number, None

        with missing_files_named(self._store, self._plan.version):
            for number, unit in self._schedule.drawn(self._announced_units(units()), GROUPS_AHEAD):
                if isinstance(unit, Unit):
                    yield number, unit.count if counts else unit.read
                else:
                    yield number, unit

    def _announced_units(self, units: Iterator[tuple[int, Other]]) -> Iterator[tuple[int, Other]]:
        for number, unit in units:
            self._announce(unit)
            yield number, unit

    def read_tasks(self, tasks: Iterator[Task]) -> Iterator[pa.RecordBatch]:
        """The rows of tasks of `tasks_by_split`; batches are never empty."""
        with (
            missing_files_named(self._store, self._plan.version),
            self._schedule.ahead() as ahead,
        ):
            rows = take_first(ahead.results(tasks, _size_bytes), None)
            batches = map(self._packaging.project, rows)
            while (batch := self._timed(batches)) is not None:
                self.metrics.rows_returned += batch.num_rows
                yield batch

    def count_tasks(self, tasks: Iterator[Callable[[], int]]) -> int:
        """The sum of the results of counting tasks of `tasks_by_split`."""
        with (
            missing_files_named(self._store, self._plan.version),
            self._schedule.ahead() as ahead,
        ):
            return sum(ahead.results(tasks))

    def count(self) -> int:
        """Count the rows that the plan returns; exact.

        A read without a residual decodes no rows: its count is the number of visible rows. For a
        part that overlaps no other, the manifest has that number (invariant 26).
        """
        limit, total = self._plan.limit, 0
        if self._plan.consolidation is not None:
            with missing_files_named(self._store, self._plan.version):
                shares = self._shares(self._plan.splits)
                return Consolidated.of(self._plan).count(shares, limit)
        with (
            missing_files_named(self._store, self._plan.version),
            self._schedule.ahead() as ahead,
        ):
            pieces = self._opened(self._plan.splits, known=self._is_counted)
            units = self._expected(self._countable(pieces, ahead))
            tasks: Iterator[Callable[[], int]] = (
                unit.count if isinstance(unit, Unit) else unit for unit in units
            )
            for rows in ahead.results(self._schedule.drawn(tasks, COUNTS_AHEAD)):
                total += rows
                if limit is not None and total >= limit:
                    return limit
        return total

    def _updates(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The updates that the rows are summed from, with the types of the decoder.

        The read counts in the same metrics.
        """
        updates = Execution(
            updates_plan(self._plan),
            self._store,
            self.metrics,
            threads=self._threads,
            memory_bytes=self._memory_bytes,
        )
        updates._columns = updates._columns.as_decoded()
        with updates._schedule.ahead() as ahead:
            units = updates._units(updates._opened(splits), ahead)
            yield from take_first(updates._read(units, ahead), None)

    def _shares(self, splits: Sequence[Split]) -> Iterator[Sequence[pa.RecordBatch]]:
        """The updates in shares that fit the memory of the read."""
        return update_shares(lambda: self._updates(splits), self._memory_bytes)

    def _sums(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        """The rows of a differential table at the plan's time, up to the limit."""
        rows = Consolidated.of(self._plan).batches(self._shares(splits))
        yield from map(self._packaging.project, take_first(rows, self._plan.limit))

    def _opened(
        self,
        splits: Sequence[Split],
        *,
        with_pages: bool = False,
        known: Callable[[Piece], bool] | None = None,
    ) -> Iterator[Piece]:
        """The pieces; the ends of the files to open are prefetched some pieces ahead.

        `with_pages`: also prefetch small files whose footers are cached. `known`: whether the
        result of a piece is known without its files.
        """
        pieces = chain.from_iterable(map(_PIECES, splits))
        if not self._schedule.fetches:
            return pieces
        announced = self._schedule.drawn(
            self._announced_pieces(pieces, with_pages=with_pages, known=known), PIECES_AHEAD
        )
        if self._resolved is not None or self._plan.ordered or self._plan.limit is not None:
            return announced
        return self._resolved_ahead(announced, known)

    def _resolved_ahead(
        self, pieces: Iterator[Piece], known: Callable[[Piece], bool] | None
    ) -> Iterator[Piece]:
        """The same pieces, after the visible rows of those that merge were found, some at a time.

        The cache of visible rows has them then. An error is raised where the rows are read.
        """

        def begun() -> Iterator[tuple[Piece, Future[None] | None]]:
            last: Sequence[PlannedPart] = ()
            for piece in pieces:
                is_needed = piece.needs_merge and piece.parts is not last
                last = piece.parts
                is_needed = is_needed and not (known is not None and known(piece))
                if not is_needed or self._filters_by_key_only(piece.parts):
                    yield piece, None
                else:
                    yield piece, in_thread(partial(self._find_visible, piece))

        for piece, finding in with_lookahead(begun(), RESOLVED_AHEAD):
            if finding is not None:
                finding.exception()  # waits
            yield piece

    def _find_visible(self, piece: Piece) -> None:
        """Find the visible rows of a piece, with a share of the memory."""
        live = self._live(piece, ReadAhead(1, 0), self._memory_bytes // RESOLVED_AHEAD)
        live.prune(piece.reads)
        for read in piece.reads:
            live.rows(read)

    def _announced_pieces(
        self, pieces: Iterator[Piece], *, with_pages: bool, known: Callable[[Piece], bool] | None
    ) -> Iterator[Piece]:
        """Announce the footers and deletion vectors of each piece as it is drawn."""
        last: Sequence[PlannedPart] = ()
        for piece in pieces:
            if piece.parts is not last and not (known is not None and known(piece)):
                last = piece.parts
                self._expect(piece, with_pages=with_pages, rows_only=known is not None)
            yield piece

    def _expect(self, piece: Piece, *, with_pages: bool, rows_only: bool) -> None:
        """Announce what opening a piece requests; `rows_only`: no more than its visible rows."""
        parts: Sequence[PlannedPart] = piece.parts
        if self._resolved is not None:  # the plan knows the visible rows: no tombstones to read
            parts = [piece.parts[read.part] for read in piece.reads]
        readers = self._columns.readers
        rows_only &= all(readers[read.residual].predicate is None for read in piece.reads)
        data = (part.data_with_keys if rows_only else part.data for part in parts)
        refs = [ref for ref in data if ref is not None]
        if self._resolved is None:
            refs += [part.deletes for part in parts if part.deletes is not None]
        expect_tails(self._store, refs, with_pages=with_pages)
        if self._resolved is None:
            vectors = [part.dv for part in parts if part.dv is not None and not part.dv.in_manifest]
            self._store.expect((vector.path, 0, vector.size_bytes) for vector in vectors)
            stored = [part.vector for part in parts if part.vector is not None]
            self._store.expect(places_of_vectors(stored))

    def _is_counted(self, piece: Piece) -> bool:
        """Return whether the manifest has the number of visible rows of a piece."""
        return all(
            self._columns.readers[read.residual].predicate is None
            and (self._resolved is not None or known_count(piece, read) is not None)
            for read in piece.reads
        )

    def _timed(self, batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
        wall, cpu = time.perf_counter(), time.process_time()
        batch = next(batches, None)
        self.metrics.reading_s += time.perf_counter() - wall
        self.metrics.cpu_s += time.process_time() - cpu
        return batch

    def _batches(self, pieces: Iterator[Piece], ahead: ReadAhead) -> Iterator[pa.RecordBatch]:
        """Output batches, up to the limit."""
        batches: Iterator[pa.RecordBatch | None]
        if self._plan.ordered:
            batches = chain.from_iterable(
                self._in_order(same, ahead, needs_merge=needs_merge)
                for needs_merge, same in groupby(pieces, key=attrgetter("needs_merge"))
            )
        else:
            batches = self._read(self._units(pieces, ahead), ahead)
        yield from map(self._packaging.project, take_first(batches, self._plan.limit))

    def _read(
        self, units: Iterator[Unit | Task], ahead: ReadAhead
    ) -> Iterator[pa.RecordBatch | None]:
        expected = self._expected(units)
        if self._small_start:
            expected, self._small_start = starting_small(expected), False
        tasks = (unit.read if isinstance(unit, Unit) else unit for unit in expected)
        return ahead.results(tasks, _size_bytes)

    def _units(self, pieces: Iterator[Piece], ahead: ReadAhead) -> Iterator[Unit | Task]:
        """Units of one row group each, in output order."""
        groups = (list(same) for _, same in groupby(pieces, key=attrgetter("parts")))
        for same in self._pruned_together(groups):
            live = self._live(same[0], ahead)
            reads = [read for piece in same for read in piece.reads]
            if self._filters_by_key_only(same[0].parts):
                columns = with_columns(self._columns.columns, self._columns.keys)
                if (candidates := live.few_rows_by_key(columns)) is not None:
                    yield from self._in_batches(live.matching_by_key(reads, columns, candidates))
                    continue
            live.prune(reads)
            for read in reads:
                yield from self._units_of(live, read)

    def _units_of(self, live: LiveRows, read: Read) -> Iterator[Unit]:
        reader = self._columns.readers[read.residual]
        for group in live.row_groups(read, reader.all_columns):
            yield Unit(reader, (group,))

    def _pruned_together(self, groups: Iterator[list[Piece]]) -> Iterator[list[Piece]]:
        """The same pieces, after the parts that overlap no other were pruned, some at a time.

        Their row groups and pages are pruned in one evaluation: `find_candidates` caches the
        results with the predicate, and each part takes its own from there. Skipped under a limit,
        because few of the parts may be read.
        """
        plan = self._plan
        predicate = plan.filter
        if predicate is None or not plan.pruning or plan.resolved or plan.limit is not None:
            yield from groups
            return
        while block := list(islice(groups, PARTS_TOGETHER)):
            files = []
            for same in block:
                file = None if same[0].needs_merge else same[0].parts[0].data
                if file is not None and any(r.residual for piece in same for r in piece.reads):
                    files.append(file)
            if len(files) > 1:
                find_candidates(self._store, files, predicate, plan.schema)
            yield from block

    def _filters_by_key_only(self, parts: Sequence[PlannedPart]) -> bool:
        """Return whether the predicate reads only key columns, and the parts are not resolved yet.

        Float keys do not count: 0.0 and -0.0 are one key, but 1 / x differs between them.
        """
        predicate = self._plan.filter
        if predicate is None or not self._plan.pruning or len(parts) < 2:
            return False
        if self._resolved is not None:
            return False
        keys = self._columns.keys.names
        for column in predicate.columns:
            if column.name not in keys or isinstance(column.type, Float):
                return False
        has_vector = any(part.dv is not None for part in parts)
        return not has_vector and not is_resolved(self._plan.table_uuid, parts)

    def _in_batches(self, rows: pa.RecordBatch | None) -> Iterator[Task]:
        """Filter the rows, one task per batch."""
        if rows is not None:
            for start in range(0, rows.num_rows, ROW_GROUP_ROWS):
                yield partial(self._matching, rows.slice(start, ROW_GROUP_ROWS))

    def _matching(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        assert self._plan.filter is not None
        matches = matching(self._plan.filter, rows)
        matching_rows = rows if matches.all() else rows.filter(pa.array(matches))
        return matching_rows.select(list(self._columns.columns.names))

    def _in_order(
        self, pieces: Iterator[Piece], ahead: ReadAhead, *, needs_merge: bool
    ) -> Iterator[pa.RecordBatch | None]:
        """The matching rows of consecutive pieces in key order, of which all or none merge."""
        if not needs_merge:
            yield from self._read(self._units(pieces, ahead), ahead)
            return
        for piece in pieces:
            live = self._live(piece, ahead)
            live.prune(piece.reads)
            yield from self._merged(live, piece)

    def _merged(self, live: LiveRows, piece: Piece) -> Iterator[pa.RecordBatch | None]:
        columns = with_columns(self._columns.columns, self._columns.keys)
        known = self._resolved is not None or is_resolved(self._plan.table_uuid, piece.parts)
        if self._plan.filter is None and not known:
            yield from live.merged(columns)
        else:
            readers = self._columns.readers_of(self._plan, columns)
            reads = [(read, readers[read.residual]) for read in piece.reads]
            yield from live.interleaved(reads)

    def _expected(self, units: Iterator[Unit | Other]) -> Iterator[Unit | Other]:
        """Join the units; prefetch the columns that are read first some units ahead.

        Under a limit, none are joined or prefetched: few of them may be read.
        """
        units = units if self._plan.limit is not None else joined(units)
        if not self._schedule.fetches:
            return units
        return self._schedule.drawn(self._announced(units), GROUPS_AHEAD)

    def _announced(self, units: Iterator[Unit | Other]) -> Iterator[Unit | Other]:
        for unit in units:
            self._announce(unit)
            yield unit

    def _announce(self, unit: object) -> None:
        if isinstance(unit, Unit):
            first = unit.reader.first_of(unit.groups)
            self._store.expect(place for group in unit.groups for place in group.places(first))

    def _countable(
        self, pieces: Iterator[Piece], ahead: ReadAhead
    ) -> Iterator[Unit | Callable[[], int]]:
        """Units and tasks whose counts add up."""
        for (piece,) in self._pruned_together([piece] for piece in pieces):
            live = self._live(piece, ahead)
            live.prune(piece.reads)
            for read in piece.reads:
                if self._columns.readers[read.residual].predicate is None:
                    yield partial(_known_result, live.count(read))
                else:
                    yield from self._units_of(live, read)

    def _live(self, piece: Piece, ahead: ReadAhead, memory_bytes: int | None = None) -> LiveRows:
        memory_bytes = memory_bytes or self._memory_bytes
        sources = [
            PartSource(self._store, part, self._plan.schema, self.metrics, memory_bytes)
            for part in piece.parts
        ]
        streams, columns = None, self._columns
        if columns.order is not None:
            streams = Streams(
                self._store, sources, columns.order, columns.keys, memory_bytes, ahead
            )
        statistics = self._plan.filter if self._plan.pruning else None
        return LiveRows(self._plan.table_uuid, piece, streams, sources, statistics, self._resolved)


def _all_visible(piece: Piece) -> bool:
    """Return whether no part of the piece can hide a row of what it reads."""
    return all(read.part == 0 and piece.parts[0].dv is None for read in piece.reads)


def resolve(plan: ScanPlan, store: ObjectStore, *, threads: int | None = None) -> ScanPlan:
    """Return the plan with the row numbers to read of each part, as a read would find them.

    Opens footers, bloom filters and page indexes, and reads the keys of overlapping parts. A reader
    of the result needs none of these.
    """
    if plan.resolved is not None:
        return plan
    if plan.consolidation is not None:
        raise UnsupportedOperation(
            "plan(resolve=True): the rows of a differential table are sums of updates, which no "
            "rows of files are; read the plan itself"
        )
    return with_rows(plan, Execution(plan, store, threads=threads).part_rows())


def refine(plan: ScanPlan, store: ObjectStore) -> ScanPlan:
    """Return a resolved plan without the rows that its filter refutes.

    For a plan whose filter was replaced by a stricter one after it was resolved. Opens footers,
    bloom filters and page indexes; the plan already excludes hidden rows, so any column may prune.
    """
    if plan.filter is None or not plan.pruning or plan.resolved is None:
        return plan
    reads = [
        (piece.parts[read.part], read)
        for split in plan.splits
        for piece in split.pieces
        for read in piece.reads
    ]
    files = {part.part_id: part.data for part, read in reads if read.residual and part.data}
    with missing_files_named(store, plan.version):
        candidates = find_candidates(store, list(files.values()), plan.filter, plan.schema)
    rows_by_part = {part_id: each.rows for part_id, each in zip(files, candidates, strict=True)}
    return with_rows(
        plan,
        (
            replace(part, rows=part.rows.intersect(rows_by_part[part.part_id]))
            if part.part_id in rows_by_part
            else part
            for part in plan.resolved
        ),
    )


def _known_result(result: Result) -> Result:
    """Return a task for a result that is already known."""
    return result


def _size_bytes(batch: pa.RecordBatch | None) -> int:
    return 0 if batch is None else int(batch.nbytes)
