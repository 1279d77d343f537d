"""Cuts a large overlap group into ranges of its first key column, one for each task.

The cuts are lower bounds of row groups, weighted by rows. Soundness: any cuts are right, because
every key has one value in its first column, and only that value decides on the range: all of a
key's versions and tombstones are in one range. Imprecise bounds only make uneven tasks.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from rowsieve.objects import ObjectStore
from rowsieve.parquet.footer import expect_tails, read_metadata
from rowsieve.parquet.statistics.row_groups import RowGroupStatistics
from rowsieve.predicate import ir
from rowsieve.predicate.literal_values import from_scalar
from rowsieve.storage.log.missing_files import missing_files_named
from rowsieve.storage.manifests.manifest import FileRef, PartTable
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field
from rowsieve.types.ordering.keys import sort_form

_MAX_FILES = 64  # the largest files, whose row groups give the cuts


def key_ranges(
    store: ObjectStore, snapshot: Snapshot, parts: PartTable, count: int
) -> list[ir.Predicate]:
    """At most `count` conditions on the first key column; every key satisfies exactly one."""
    field = snapshot.schema.field(snapshot.table.key[0])
    cuts = _cuts(store, snapshot, parts, field, count) if count > 1 else []
    column = ir.Column(field.name)
    ranges: list[ir.Predicate] = []
    for lower, upper in zip([None, *cuts], [*cuts, None], strict=True):
        terms: list[ir.Predicate] = []
        if lower is not None:
            terms.append(ir.Comparison(ir.ComparisonOp.GE, column, lower))
        if upper is not None:
            terms.append(ir.Comparison(ir.ComparisonOp.LT, column, upper))
        ranges.append(
            ir.TRUE if not terms else terms[0] if len(terms) == 1 else ir.And(tuple(terms))
        )
    return ranges


def _cuts(
    store: ObjectStore, snapshot: Snapshot, parts: PartTable, field: Field, count: int
) -> list[ir.Literal]:
    """Distinct ascending values, at most `count - 1`, with about as many rows between them."""
    samples = list(_lower_bounds(store, snapshot, parts, field))
    if not samples:
        return []
    bounds = pa.concat_arrays([bounds for bounds, _ in samples])
    weights = np.concatenate([weights for _, weights in samples])
    known = np.asarray(bounds.is_valid())
    bounds, weights = bounds.filter(pa.array(known)), weights[known]
    if not len(bounds):  # a float column with NaN has none
        return []
    form = sort_form(bounds, field.type)
    order = np.asarray(pa.compute.sort_indices(form))
    before = np.cumsum(weights[order]) - weights[order]
    wanted = weights.sum() * np.arange(1, count) / count
    places = np.searchsorted(before, wanted).clip(max=len(order) - 1)
    cuts: list[ir.Literal] = []
    for place in np.unique(places):
        value = bounds[int(order[place])]
        if int(place) and (not cuts or from_scalar(value, field.type) != cuts[-1]):
            cuts.append(from_scalar(value, field.type))
    return cuts


def _lower_bounds(
    store: ObjectStore, snapshot: Snapshot, parts: PartTable, field: Field
) -> Iterator[tuple[pa.Array, np.ndarray]]:
    """The lower bounds of the row groups of the largest files, and their numbers of rows."""
    refs = (parts.entry(i).data for i in range(len(parts)))
    files = [ref for ref in refs if ref is not None and not ref.in_memory]
    largest: list[FileRef] = sorted(files, key=lambda ref: -ref.rows)[:_MAX_FILES]
    expect_tails(store, largest)
    for ref in largest:
        with missing_files_named(store, snapshot.version):
            metadata = read_metadata(store, ref)
        column = RowGroupStatistics(metadata, snapshot.schema, {field.id}).subject(field.id)
        if column is not None:
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            yield column.lower, np.asarray(rows, dtype=np.int64)
