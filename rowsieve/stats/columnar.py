"""Gives the abstract interpreter the statistics of a manifest's parts, as columns.

Soundness: a missing column and a NULL mean "unknown". So do contradictory facts: a lower bound
above the upper bound, a NaN bound, more NULLs than rows. A column that may have NaN has no upper
bound (trap T13). Statistics of key columns include tombstones (trap T4). The first and last key of
a part bound its first key column, even if that column has no statistics. A part that is older than
a column has the statistics of the column's fill default (trap T20).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.predicate.arrays import as_mask
from rowsieve.predicate.interpretation.abstract import AbstractColumn, AbstractValue, inverted
from rowsieve.predicate.ir import BoundColumn, Operand
from rowsieve.stats.expressions import value_of
from rowsieve.stats.fills import Fill, fills_at, fills_of
from rowsieve.stats.json_kinds import EVERYTHING
from rowsieve.stats.model import Derived, Subject
from rowsieve.stats.subjects import Described, derived, describe
from rowsieve.stats.tabulate import statistics_name
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Float
from rowsieve.types.schema import Schema
from rowsieve.types.schema_cache import cached_by_schema
from rowsieve.types.widening import holds_all_of, widened

Mask = npt.NDArray[np.bool_]
Decoded: TypeAlias = dict[Subject, tuple[AbstractColumn, int]]
"""Statistics of one manifest by subject, each with its number of contradictions."""

MAX_DECODED: Final = 64  # subjects in a `Decoded`


class Columns(Protocol):
    """Columns by name, as a `pa.Table` has them; a column may be read when it is requested."""

    @property
    def schema(self) -> pa.Schema:
        """The names and types of the columns."""

    def column(self, name: str, /) -> pa.ChunkedArray:
        """Return one column."""

    def __len__(self) -> int:
        """The number of rows."""


class Manifest(Columns, Protocol):
    """Columns with one row per part: `rowsieve.storage.manifests.manifest.PartTable`."""

    @property
    def key_ids(self) -> tuple[int, ...]:
        """Field ids of the key columns."""


class PartStatistics:
    """`AbstractColumns` over the parts of a manifest; decodes each column at its first use.

    `contradictions` counts the pairs of part and subject with contradictory facts so far; these
    facts are treated as unknown. Instances for the same manifest and schema may share `decoded`.
    """

    def __init__(
        self,
        manifest: Manifest,
        schema: Schema,
        field_ids: Collection[int] | None = None,
        *,
        decoded: Decoded | None = None,
    ) -> None:
        self._manifest = manifest
        self._schema = schema
        self._subjects = _subjects_of(schema)
        self._field_ids = None if field_ids is None else frozenset(field_ids)
        self._fills = fills_of(schema)
        self._decoded: Decoded = {} if decoded is None else decoded
        self._known: dict[Subject, AbstractColumn | None] = {}
        self.part_count = len(manifest)
        self.contradictions = 0

    def only(self, field_ids: Collection[int]) -> PartStatistics:
        """Return the statistics of these fields only; those of all others are unknown.

        Before visibility is resolved, only the key's statistics may prune (trap T1).
        """
        return PartStatistics(self._manifest, self._schema, field_ids)

    def column(self, column: BoundColumn) -> AbstractColumn | None:
        """The statistics of a column in every part; None if no part has any."""
        return self.subject(column.field_id)

    def expression(self, operand: Operand) -> AbstractValue | None:
        """The value of an expression in every part; None if no statistics describe it."""
        return value_of(operand, self)

    def subject(self, subject: Subject) -> AbstractColumn | None:
        """The statistics of a subject in every part; None if no part has any."""
        if subject not in self._known:
            self._known[subject] = self._decoded_once(subject)
        return self._known[subject]

    def _decoded_once(self, subject: Subject) -> AbstractColumn | None:
        described = self._described(subject)
        if described is None:
            return None
        if (entry := self._decoded.get(subject)) is not None:
            self.contradictions += entry[1]
            return entry[0]
        before = self.contradictions
        column = self._decode(described)
        if len(self._decoded) < MAX_DECODED:
            self._decoded[subject] = column, self.contradictions - before
        return column

    def _decode(self, described: Described) -> AbstractColumn:
        subject = described.subject
        cells = self._cells(described)
        null_count = self._counts(subject, "null_count")
        sane = null_count <= cells  # an unknown count is -1
        nan_free, all_nan = np.ones(self.part_count, dtype=bool), None
        if isinstance(described.type, Float):
            nan_count = self._nan_counts(described)
            sane &= nan_count + np.maximum(null_count, 0) <= cells
            nan_free = (nan_count == 0) & sane
            all_nan = sane & (nan_count > 0) & (null_count >= 0)
            all_nan &= nan_count + null_count == cells
        self.contradictions += int(np.count_nonzero(~sane & (cells >= 0)))
        lower, upper = self._bounds(described, sane, nan_free)
        return AbstractColumn(
            lower=lower,
            upper=upper,
            empty=sane & (null_count == cells),
            may_be_null=~(sane & (null_count == 0)),
            may_be_nan=~nan_free,
            all_nan=all_nan,
        )

    def kinds(self, subject: Derived) -> npt.NDArray[np.int64] | None:
        """(n,) bits of `JsonKind`: what a JSON path may hold; None if no part knows."""
        if self._described(subject) is None:
            return None
        column, fills = self._column(subject, "kinds", pa.int64()), [*self._older(subject)]
        if column is None and not fills:
            return None
        if column is None:
            kinds = np.full(self.part_count, EVERYTHING, dtype=np.int64)
        else:
            kinds = _int64(column, missing=EVERYTHING)
        rows = _int64(self._manifest.column("data.rows"), missing=0)
        nothing = (kinds == 0) & (rows > 0)
        self.contradictions += int(np.count_nonzero(nothing))
        kinds = np.where(nothing, np.int64(EVERYTHING), kinds)
        for fill, older in fills:
            kinds = np.where(older, np.int64(fill.kinds), kinds)
        return kinds

    def _described(self, subject: Subject) -> Described | None:
        if self._field_ids is not None and _field_id(subject) not in self._field_ids:
            return None
        known = self._subjects.get(subject)
        return derived(subject) if known is None and isinstance(subject, Derived) else known

    def _cells(self, described: Described) -> npt.NDArray[np.int64]:
        """(n,) the number of values that the statistics cover; below -1 if unknown."""
        if described.repeated:
            counts = self._counts(described.subject, "value_count")
            return np.where(counts < 0, np.int64(-2), counts)
        columns = self._manifest
        cells = _int64(columns.column("data.rows"), missing=0)
        if _field_id(described.subject) in self._manifest.key_ids:
            cells = cells + _int64(columns.column("deletes.rows"), missing=0)
        return cells

    def _counts(self, subject: Subject, fact: str) -> npt.NDArray[np.int64]:
        column = self._column(subject, fact, pa.int64())
        if column is None:
            counts = np.full(self.part_count, -1, dtype=np.int64)
        else:
            counts = np.maximum(_int64(column, missing=-1), -1)
        for fill, older in self._older(subject):
            rows = _int64(self._manifest.column("data.rows"), missing=0)
            filled = {"null_count": fill.is_null, "nan_count": fill.is_nan}.get(fact, False)
            unsure = fill.maybe_null and not fill.is_null and (filled or fact == "null_count")
            known = np.int64(-1) if unsure else rows if filled else np.int64(0)
            counts = np.where(older, known, counts)
        return counts

    def _nan_counts(self, described: Described) -> npt.NDArray[np.int64]:
        """(n,) NaN in each part, -1 if unknown; none where the column was an integer."""
        counts = self._counts(described.subject, "nan_count")
        if not described.float_since:
            return counts
        schema_ids = _int64(self._manifest.column("schema_id"), missing=-1)
        was_integer = (schema_ids >= 0) & (schema_ids < described.float_since)
        return np.where((counts < 0) & was_integer, np.int64(0), counts)

    def older(self, subject: Subject) -> Mask | None:
        """(n,) whether the part is older than the subject's column; None if no part is."""
        newest = next(self._older(subject), None)
        return None if newest is None else newest[1]

    def _older(self, subject: Subject) -> Iterator[tuple[Fill, Mask]]:
        """The fills of the subject, newest first, each with (n,) whether the part is older.

        A part that several fills apply to has the value of the last one.
        """
        columns = self._manifest
        fills = fills_at(self._fills, subject)
        if not fills or columns.schema.get_field_index("schema_id") < 0:
            return
        schema_ids = _int64(columns.column("schema_id"), missing=0)
        for fill in reversed(fills):
            if (older := schema_ids < fill.added).any():
                yield fill, older

    def _bounds(
        self, described: Described, sane: Mask, nan_free: Mask
    ) -> tuple[pa.Array, pa.Array]:
        type_ = described.bound_type
        if type_ is None:
            unbounded = pa.nulls(self.part_count, arrow_type(described.type))
            return unbounded, unbounded
        lower = self._bound(described.subject, "lower", type_)
        upper = self._bound(described.subject, "upper", type_)
        if lower.null_count < len(lower) or upper.null_count < len(upper):
            wrong = inverted(lower, upper)
            self.contradictions += int(np.count_nonzero(wrong & sane))
            known = sane & ~wrong
            lower, upper = _where(known, lower), _where(known & nan_free, upper)
            if pa.types.is_floating(type_):
                lower, upper = _where(~_is_nan(lower), lower), _where(~_is_nan(upper), upper)
        return lower, upper

    def _bound(self, subject: Subject, fact: str, type_: pa.DataType) -> pa.Array:
        """One bound of every part; for the first key column, combined with the part's key range."""
        column = self._column(subject, fact, type_)
        bound = pa.nulls(self.part_count, type_) if column is None else _joined(column)
        if bound.null_count and self._manifest.key_ids[:1] == (subject,):
            column = self._of_type(f"key.{subject}.{fact}", type_)
            bound = bound if column is None else pc.coalesce(bound, _joined(column))
        for fill, older in self._older(subject):
            filled = fill.lower if fact == "lower" else fill.upper
            bound = pc.if_else(pa.array(older), filled, bound)
        return bound

    def _column(self, subject: Subject, fact: str, type_: pa.DataType) -> pa.ChunkedArray | None:
        """One fact of all parts; None if the manifest lacks it or has another type for it.

        The bounds of parts from before the column was widened are cast.
        """
        return self._of_type(statistics_name(subject, fact), type_)

    def _of_type(self, name: str, type_: pa.DataType) -> pa.ChunkedArray | None:
        columns = self._manifest
        index = columns.schema.get_field_index(name)
        if index < 0 or not holds_all_of(type_, columns.schema.field(index).type):
            return None
        return widened(columns.column(name), type_)


@cached_by_schema
def _subjects_of(schema: Schema) -> Mapping[Subject, Described]:
    return {described.subject: described for described in describe(schema)}


def _joined(column: pa.ChunkedArray) -> pa.Array:
    joined = column if column.num_chunks == 1 else column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _field_id(subject: Subject) -> int:
    return subject if isinstance(subject, int) else subject.field_id


def _int64(column: pa.ChunkedArray, *, missing: int) -> npt.NDArray[np.int64]:
    filled = column
    if column.null_count:
        filled = pc.fill_null(column, pa.scalar(missing, pa.int64()))
    return np.asarray(filled.to_numpy(), dtype=np.int64)


def _where(known: Mask, values: pa.Array) -> pa.Array:
    if known.all():
        return values
    return pc.if_else(pa.array(known), values, pa.scalar(None, values.type))


def _is_nan(values: pa.Array) -> Mask:
    return as_mask(pc.is_nan(values))
