"""Candidate rows of a file: those that the footer, Bloom filters and page indexes do not refute.

All reads find their candidates here, whether the plan is resolved beforehand or during the read.
Soundness: a row is dropped only if the predicate is FALSE or NULL on it and cannot fail. `only`
restricts the columns that may prune: to the key while newer versions of a row matter (trap T1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from operator import not_
from typing import Final

import numpy as np

from rowsieve.objects import ObjectStore
from rowsieve.parquet.bloom_reader import BloomReader
from rowsieve.parquet.codec_columns import codec_columns
from rowsieve.parquet.footer import Tail, expect_tails, has_cached_tail, read_tail, starts_of
from rowsieve.parquet.pages import page_directory
from rowsieve.parquet.statistics.row_groups import JoinedStatistics
from rowsieve.planner.prune_pages import KeptPages, prune_pages
from rowsieve.planner.prune_row_groups import PrunedGroups, cut_by, prune_row_groups
from rowsieve.planner.row_statistics import RowStatistics
from rowsieve.predicate.bind import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.rowset import RowSet
from rowsieve.storage.manifests.manifest import FileRef
from rowsieve.storage.parts.memory_rows import read_memory
from rowsieve.storage.parts.part_writer import ROW_GROUP_ROWS
from rowsieve.storage.parts.reading_views import needs_codec
from rowsieve.types.schema import Schema

_NONE: Final = int(Verdict.NONE)  # numpy compares with an int faster than with an enum
_ALL: Final = int(Verdict.ALL)
MAX_REMEMBERED: Final = 1_024  # cached files per predicate


@dataclass(frozen=True, slots=True)
class Candidates:
    """The rows of one file that may match or fail, and counts of what refuted the others.

    `by_statistics` and `by_bloom` count refuted row groups; blooms are probed after statistics.
    `pages` and `by_page_index` count pages of the undecided row groups. `page_rows`: rows per page,
    0 if unknown. `mostly_match`: a hint that most of the rows certainly match.
    """

    rows: RowSet
    row_groups: int = 0
    by_statistics: int = 0
    by_bloom: int = 0
    pages: int = 0
    by_page_index: int = 0
    page_rows: int = 0
    mostly_match: bool = False


def find_candidates(
    store: ObjectStore,
    files: Sequence[FileRef],
    predicate: BoundPredicate,
    schema: Schema,
    only: frozenset[int] | None = None,
) -> list[Candidates]:
    """Find the candidates of each file; the predicate is interpreted once for all files.

    Reads the files' tails, and the Bloom filters that may refute a row group. Errors: those of the
    store, and `CorruptData` for an invalid tail. Files never change, so the bound predicate caches
    the result for up to `MAX_REMEMBERED` files; cached plans keep their predicates.
    """
    known: dict[tuple[str, str, str | None], Candidates]
    known = predicate.remembered.setdefault(("candidates", store.uri, schema.id, only), {})
    names = [(ref.path, ref.tail_checksum, ref.reading) for ref in files]
    if known.keys() >= set(names):
        return list(map(known.__getitem__, names))
    new = {name: ref for name, ref in zip(names, files, strict=True) if name not in known}
    fresh = dict(zip(new, _find(store, [*new.values()], predicate, schema, only), strict=True))
    for name, candidates in fresh.items():
        if len(known) < MAX_REMEMBERED:
            known[name] = candidates
    return [fresh[name] if name in fresh else known[name] for name in names]


def _find(
    store: ObjectStore,
    files: Sequence[FileRef],
    predicate: BoundPredicate,
    schema: Schema,
    only: frozenset[int] | None,
) -> list[Candidates]:
    kinds = [(ref.in_memory, _believed(store, ref, only)) for ref in files]
    if len(several := set(kinds)) > 1:
        by_kind = {}
        for kind in several:
            some = [
                ref for ref, kind_of_file in zip(files, kinds, strict=True) if kind_of_file == kind
            ]
            by_kind[kind] = iter(_find(store, some, predicate, schema, only))
        return [next(by_kind[kind]) for kind in kinds]
    is_in_memory, only = kinds[0]
    if is_in_memory:
        return _find_in_memory(files, predicate, schema, only)
    expect_tails(store, files)
    if store.overlaps:
        is_cached = [has_cached_tail(store, ref) for ref in files]
        if any(is_cached) and not all(is_cached):
            return _find_beside_tails(store, files, is_cached, predicate, schema, only)
    tails = [read_tail(store, ref) for ref in files]
    opened = [
        (tail.metadata, BloomReader(store, ref, tail.metadata))
        for ref, tail in zip(files, tails, strict=True)
    ]
    groups = prune_row_groups(predicate, opened, schema, only=only)
    places = [place for place, each in enumerate(groups) if each.any_remaining]
    undecided = [(tails[place], groups[place].verdicts) for place in places]
    pages = prune_pages(predicate, undecided, schema, ROW_GROUP_ROWS, only=only)
    pages_of = dict(zip(places, pages, strict=True))
    return [
        _candidates(ref, tails[place], groups[place], pages_of.get(place))
        for place, ref in enumerate(files)
    ]


def _find_beside_tails(
    store: ObjectStore,
    files: Sequence[FileRef],
    is_cached: Sequence[bool],
    predicate: BoundPredicate,
    schema: Schema,
    only: frozenset[int] | None,
) -> list[Candidates]:
    """Do as `_find` if the tails of some files are cached and those of the others are requested.

    Filters of the former, and the pages of those that are small, arrive in the same round trip.
    """
    cached = list(compress(files, is_cached))
    candidates = _find(store, cached, predicate, schema, only)
    with_rows = [not each.rows.is_empty for each in candidates]
    expect_tails(store, compress(cached, with_rows), with_pages=True)
    others = _find(store, list(compress(files, map(not_, is_cached))), predicate, schema, only)
    both = iter(others), iter(candidates)
    return [next(both[each]) for each in is_cached]


def _believed(
    store: ObjectStore, ref: FileRef, only: frozenset[int] | None
) -> frozenset[int] | None:
    """The columns that may prune a file: only those of its index if its codec is read."""
    if ref.in_memory or not needs_codec(ref):
        return only
    hidden = codec_columns(read_tail(store, ref).metadata)
    index = frozenset[int]() if hidden is None else hidden.index
    return index if only is None else index & only


def _find_in_memory(
    refs: Sequence[FileRef],
    predicate: BoundPredicate,
    schema: Schema,
    only: frozenset[int] | None,
) -> list[Candidates]:
    """The candidates of parts in memory: every row is judged by itself, all in one evaluation."""
    rows = JoinedStatistics([RowStatistics(read_memory(ref), schema, only) for ref in refs])
    verdicts = cut_by(interpret(predicate, rows), rows.part_counts)
    return [
        Candidates(
            RowSet.from_mask(verdict != _NONE),
            row_groups=1,
            by_statistics=int(not verdict.any()),
            mostly_match=2 * int(np.count_nonzero(verdict == _ALL))
            > int(np.count_nonzero(verdict)),
        )
        for verdict in verdicts
    ]


def _candidates(
    ref: FileRef, tail: Tail, of_groups: PrunedGroups, of_pages: KeptPages | None
) -> Candidates:
    """`of_pages` is None for a file whose row groups are all refuted."""
    directory = page_directory(tail.metadata)
    page_rows = 0 if directory is None else directory.page_rows
    count, by_bloom = len(of_groups.verdicts), of_groups.by_bloom
    if of_pages is None:
        nothing = RowSet.empty(ref.rows)
        return Candidates(nothing, count, count - by_bloom, by_bloom, page_rows=page_rows)
    rows = RowSet.empty(ref.rows)
    if of_pages.ranges is not None:  # pages of any size
        rows = RowSet.from_ranges(of_pages.ranges, ref.rows)
    elif directory is None:  # row groups of any size
        edges = np.array(starts_of(tail.metadata), dtype=np.int64)
        pairs = np.stack([edges[:-1], edges[1:]], axis=1)
        rows = RowSet.from_ranges(pairs[of_pages.chosen], ref.rows)
    elif of_pages.chosen.any():
        rows = RowSet.from_row_groups(of_pages.chosen, of_pages.rows, ref.rows)
    refuted = int(np.count_nonzero(of_groups.verdicts == _NONE))
    return Candidates(
        rows,
        count,
        refuted - by_bloom,
        by_bloom,
        of_pages.considered,
        of_pages.pruned,
        page_rows,
        2 * of_pages.certain > int(np.count_nonzero(of_pages.chosen)),
    )
