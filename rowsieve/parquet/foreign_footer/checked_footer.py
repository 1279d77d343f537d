"""The footer of a file of another writer, parsed and checked before a decoder sees it.

pyarrow stops the process at some footers: encrypted columns, size statistics that do not fit the
schema, bounds that are shorter than their type, chunks of another type than their column. It sees
only `sanitised` footers: known fields, the chunks as they are where all of their fields fit, and
without statistics where they do not.

Soundness: an error is `MalformedThrift` or `UnreadableFooter`, whatever the bytes are, and memory
is in proportion to them. Row counts are those of the row groups. A chunk whose number of
values contradicts its row group has no statistics (`suspicious`).

Source: parquet.thrift of Apache Parquet; pyarrow 26.0.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from rowsieve.parquet.foreign_footer.chunk_checks import chunk_spans, is_ascending
from rowsieve.parquet.foreign_footer.footer_fields import (
    BLOOM,
    BLOOM_BYTES,
    CODEC,
    CODECS,
    COLUMN_INDEX,
    COLUMN_INDEX_BYTES,
    COLUMNS,
    CREATED_BY,
    DATA,
    I64_KIND,
    LARGEST_VALUE,
    METADATA,
    OFFSET_INDEX,
    OFFSET_INDEX_BYTES,
    ORDERS,
    PAIRS,
    ROW_GROUPS,
    ROWS,
    SCHEMA,
    VERSION,
)
from rowsieve.parquet.foreign_footer.footer_fields import (
    TYPE as CHUNK_TYPE,
)
from rowsieve.parquet.foreign_footer.many_structs import Structs
from rowsieve.parquet.foreign_footer.schema_tree import (
    CHILDREN,
    CONVERTED,
    DECIMAL_CONVERTED,
    FIELD_ID,
    FIXED,
    INT96,
    LENGTHS,
    LOGICAL,
    NAME,
    PRECISION,
    REPETITION,
    SCALE,
    TYPE,
    WIDE_DIGITS,
    WIDTH,
    Element,
    Leaf,
    wide_decimal,
)
from rowsieve.parquet.foreign_footer.struct_lanes import Numbers
from rowsieve.parquet.foreign_footer.struct_shapes import LIST, STRUCT, Path
from rowsieve.parquet.spans import Span
from rowsieve.parquet.thrift import (
    I32,
    I64,
    RawField,
    encoded_value,
    join_fields,
    list_of_structs,
    raw_fields,
    read_list_head,
)

_KNOWN_OF_GROUP: Final = range(1, 8)
_KNOWN_OF_METADATA: Final = range(1, 16)
_KNOWN_OF_CHUNK: Final = range(2, 8)
TYPE_ORDER: Final = b"\x1c\0\0"
"""The encoded order of a column whose bounds are in the order of its type."""
_DROPPED: Final = 12  # statistics, of the metadata of a chunk that does not fit


@dataclass(frozen=True, slots=True, eq=False)
class CheckedFooter:
    """A footer; `rows`, shape (groups,). The chunks are in the order of row groups, then leaves.

    `claimed_rows` is what the footer says, which may contradict the row groups. `ordered`: whether
    it declares for all columns that bounds are in the order of the type. `suspicious`, shape
    (groups * leaves,): the chunks that contradict the schema.
    """

    data: bytes
    fields: Mapping[int, RawField]
    elements: Sequence[Element]
    leaves: Sequence[Leaf]
    pairs: Mapping[bytes, bytes]
    created_by: str
    ordered: bool
    claimed_rows: int
    rows: Numbers
    chunks: Structs
    suspicious: npt.NDArray[np.bool_]
    groups: Sequence[Span]
    unfit: npt.NDArray[np.bool_]

    @property
    def row_count(self) -> int:
        """The rows of all row groups."""
        return int(self.rows.sum())

    def numbers(self, path: Path, leaf: int) -> Numbers:
        """(groups,) a number of the chunks of a leaf; -1 where it is absent."""
        values, stops = self.chunks.values[path], self.chunks.stops[path]
        step = len(self.leaves)
        return np.where(stops[leaf::step] < 0, -1, values[leaf::step])

    def span(self, group: int, leaf: int) -> Span:
        """The byte range of a chunk, from its dictionary or first page on."""
        place = group * len(self.leaves) + leaf
        starts, stops = chunk_spans(self.chunks, slice(place, place + 1))
        return int(starts[0]), int(stops[0])

    def data_start(self, group: int, leaf: int) -> int:
        """The position of the first data page of a chunk."""
        return int(self.chunks.values[DATA][group * len(self.leaves) + leaf])

    def codec(self, group: int, leaf: int) -> str:
        """Parquet's name of the codec of a chunk; KeyError for an unknown one."""
        return dict(enumerate(CODECS))[
            int(self.chunks.values[CODEC][group * len(self.leaves) + leaf])
        ]

    @property
    def has_page_index(self) -> bool:
        """True if any chunk has a column index."""
        return bool((self.chunks.stops[COLUMN_INDEX] >= 0).any())

    @property
    def has_usable_page_index(self) -> bool:
        """True if page bounds are in the order of the type, and indexes in that of their chunks."""
        return self.ordered and all(
            self._is_ascending(*each)
            for each in ((COLUMN_INDEX, COLUMN_INDEX_BYTES), (OFFSET_INDEX, OFFSET_INDEX_BYTES))
        )

    @property
    def data_end(self) -> int:
        """The position where data and Bloom filters end, as far as the footer says."""
        ends = chunk_spans(self.chunks)[1]
        offsets, sizes = self.chunks.values[BLOOM], self.chunks.values[BLOOM_BYTES]
        known = (self.chunks.stops[BLOOM] >= 0) & (self.chunks.stops[BLOOM_BYTES] >= 0)
        filters = np.where(known, np.minimum(offsets, LARGEST_VALUE) + sizes, 0)
        return max(4, int(ends.max(initial=4)), int(filters.max(initial=0)))

    def filter_spans(self) -> Iterator[tuple[tuple[int, int], Span]]:
        """The byte range of each Bloom filter that has a length, by row group, then by leaf.

        None if they are not in the order of their chunks: a filter does not say whose it is.
        """
        if not self._is_ascending(BLOOM, BLOOM_BYTES):
            return
        values, stops = self.chunks.values, self.chunks.stops
        has = (stops[BLOOM] >= 0) & (stops[BLOOM_BYTES] >= 0) & ~self.suspicious
        has &= (values[BLOOM] > 0) & (values[BLOOM] < LARGEST_VALUE) & (values[BLOOM_BYTES] > 0)
        for place in np.flatnonzero(has).tolist():
            start = int(values[BLOOM][place])
            end = start + int(values[BLOOM_BYTES][place])
            yield divmod(place, len(self.leaves)), (start, end)

    def _is_ascending(self, start: Path, length: Path) -> bool:
        """Return whether structs outside of the footer lie in the order of their chunks."""
        stops, values = self.chunks.stops, self.chunks.values
        has = (stops[start] >= 0) & (stops[length] >= 0) & (values[length] > 0)
        starts = np.minimum(values[start][has], LARGEST_VALUE)
        return is_ascending(starts, starts + np.minimum(values[length][has], LARGEST_VALUE))

    def sanitised(
        self,
        schema: Sequence[tuple[Element, int | None]],
        pairs: Mapping[bytes, bytes],
        *,
        with_groups: bool = True,
    ) -> bytes:
        """Encode a footer that a decoder may see, with these field ids and key-value pairs.

        It declares the order of the type for all bounds. `with_groups`: whether it has the row
        groups; without them it shows the schema only.
        """
        written = [_element(self.data, element, field_id) for element, field_id in schema]
        fields: list[tuple[int, int, bytes]] = [
            (VERSION, *encoded_value(I32(2))),
            (SCHEMA, LIST, list_of_structs(written)),
            (ROWS, I64_KIND, encoded_value(I64(self.row_count))[1]),
            (ROW_GROUPS, LIST, self._row_groups() if with_groups else list_of_structs(())),
        ]
        if pairs:
            fields.append(
                (PAIRS, *encoded_value([{1: key, 2: value} for key, value in pairs.items()]))
            )
        fields.append((CREATED_BY, *encoded_value(self.created_by.encode())))
        fields.append((ORDERS, LIST, ordered_list(len(self.leaves))))
        return bytes(join_fields(fields))

    def _row_groups(self) -> bytes:
        """The encoded row groups; only those with a chunk that does not fit are encoded anew."""
        field, step = self.fields[ROW_GROUPS], len(self.leaves)
        if not self.unfit.any():
            return self.data[field.start : field.stop]
        _, position = read_list_head(self.data, field.start)
        written = [self.data[field.start : position]]
        for number, (start, stop) in enumerate(self.groups):
            unfit = self.unfit[number * step : (number + 1) * step]
            if not unfit.any():
                written.append(self.data[start:stop])
                continue
            chunks = [
                self._chunk(number * step + leaf, self.leaves[leaf], unfit=bool(unfit[leaf]))
                for leaf in range(step)
            ]
            written.append(
                join_fields(
                    (each.number, each.kind, self.data[each.start : each.stop])
                    if each.number != COLUMNS
                    else (COLUMNS, LIST, list_of_structs(chunks))
                    for each in _last_of_each(raw_fields(self.data, start)[0], _KNOWN_OF_GROUP)
                )
            )
        return b"".join(written)

    def _chunk(self, place: int, leaf: Leaf, *, unfit: bool) -> bytes:
        start, stop = int(self.chunks.starts[place]), int(self.chunks.ends[place])
        if not unfit:
            return self.data[start:stop]
        inner, _ = raw_fields(self.data, int(self.chunks.values[METADATA][place]))
        metadata = join_fields(
            (each.number, each.kind, self.data[each.start : each.stop])
            if each.number != CHUNK_TYPE[1]
            else (CHUNK_TYPE[1], *encoded_value(I32(leaf.decoded)))
            for each in _last_of_each(inner, _KNOWN_OF_METADATA)
            if each.number != _DROPPED
        )
        fields, _ = raw_fields(self.data, start)
        return join_fields(
            (each.number, each.kind, self.data[each.start : each.stop])
            if each.number != METADATA[0]
            else (METADATA[0], STRUCT, metadata)
            for each in _last_of_each(fields, _KNOWN_OF_CHUNK)
        )


def ordered_list(leaf_count: int) -> bytes:
    """The encoded orders of columns: that of the type for each."""
    return list_of_structs([TYPE_ORDER] * leaf_count)


def _element(data: bytes, element: Element, field_id: int | None) -> bytes:
    if element.is_known and field_id == element.field_id:
        start, stop = element.span
        return data[start:stop]
    known: Collection[int] = range(1, LOGICAL + 1)
    changed = {FIELD_ID: field_id, CHILDREN: element.values.get(CHILDREN)}
    changed[REPETITION] = element.values.get(REPETITION)
    if element.values.get(TYPE) == INT96:
        known = REPETITION, NAME
        changed |= {TYPE: FIXED, WIDTH: LENGTHS[INT96]}
    if (digits := wide_decimal(element.values)) is not None:
        known = TYPE, WIDTH, REPETITION, NAME
        changed |= {CONVERTED: DECIMAL_CONVERTED, PRECISION: WIDE_DIGITS, SCALE: digits[1]}
    fields = [
        (each.number, each.kind, data[each.start : each.stop])
        for each in _last_of_each(raw_fields(data, element.span[0])[0], known)
        if each.number not in changed
    ]
    fields += [
        (number, *encoded_value(I32(value)))
        for number, value in changed.items()
        if value is not None
    ]
    return join_fields(sorted(fields))


def _last_of_each(fields: Sequence[RawField], known: Collection[int]) -> list[RawField]:
    """The known fields by number; of several with one number the last, which readers take."""
    by_number = {each.number: each for each in fields if each.number in known}
    return [by_number[number] for number in sorted(by_number)]
