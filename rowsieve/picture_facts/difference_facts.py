"""The net difference of two versions, from the change feed, as it streams.

Soundness: the feed has at most one row before and one after for each key, next to each other, and
none that ends as it began. A batch may end between the two, so the last row before is carried on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.pictures.difference import ChangedCell, VersionDifference
from rowsieve.types.cell_text import CellText, cell
from rowsieve.types.shown_values import python_value

_BEFORE, _AFTER = "update_preimage", "update_postimage"
_FEED: Final = ("_change_type", "_commit_version", "_commit_timestamp")
_KINDS: Final = {"insert": "inserted", "delete": "deleted"}
_MAX_TEXT: Final = 120
_ABSENT: Final = CellText("")


def difference_of(
    uri: str,
    versions: tuple[int, int],
    key: Sequence[str],
    feed: pa.RecordBatchReader,
    samples: int,
) -> VersionDifference:
    """Count a net feed, and keep the cells of the first changed rows as samples."""
    columns = [name for name in feed.schema.names if name not in (*_FEED, *key)]
    rows: Counter[str] = Counter()
    changed: Counter[str] = Counter(dict.fromkeys(columns, 0))
    cells: list[ChangedCell] = []
    sampled: Counter[str] = Counter()
    for batch in _whole_pairs(feed):
        kinds = batch.column("_change_type")
        pairs = [batch.filter(pc.equal(kinds, kind)) for kind in (_BEFORE, _AFTER)]
        rows["updated"] += pairs[1].num_rows
        differing = {
            name: _differ(pairs[0].column(name), pairs[1].column(name)) for name in columns
        }
        for name, flags in differing.items():
            changed[name] += pc.sum(flags, min_count=0).as_py()
        wanted = max(samples - sampled["updated"], 0)
        sampled["updated"] += min(pairs[1].num_rows, wanted)
        cells += _updates(pairs[0][:wanted], pairs[1][:wanted], key, differing)
        for kind, words in _KINDS.items():
            those = batch.filter(pc.equal(kinds, kind))
            rows[words] += those.num_rows
            wanted = max(samples - sampled[words], 0)
            sampled[words] += min(those.num_rows, wanted)
            cells += _rows_of(those[:wanted], key, columns, words)
    return VersionDifference(
        uri,
        *versions,
        rows["inserted"],
        rows["updated"],
        rows["deleted"],
        tuple((name, number) for name, number in changed.most_common() if number),
        tuple(cells),
    )


def _whole_pairs(feed: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Yield the rows; a row before is never parted from the row after."""
    rest: pa.Table | None = None
    for batch in feed:
        rows = pa.Table.from_batches([batch])
        if rest is not None:
            rows = pa.concat_tables([rest, rows])
        cut = rows.num_rows
        if cut and rows.column("_change_type")[cut - 1].as_py() == _BEFORE:
            cut -= 1
        rest = rows.slice(cut)
        yield rows.slice(0, cut)
    if rest is not None and rest.num_rows:
        yield rest


def _differ(before: pa.ChunkedArray, after: pa.ChunkedArray) -> pa.ChunkedArray | pa.BooleanArray:
    """(n,) whether the values of two columns differ; NULL and NaN equal themselves."""
    try:
        equal = pc.fill_null(pc.equal(before, after), fill_value=False)
        same = pc.or_(equal, pc.and_(pc.is_null(before), pc.is_null(after)))
        if pa.types.is_floating(before.type):
            nan = pc.and_(pc.is_nan(before), pc.is_nan(after))
            same = pc.or_(same, pc.fill_null(nan, fill_value=False))
        return pc.invert(same)
    except pa.ArrowNotImplementedError:  # lists, structs, maps
        return pa.array([not one.equals(two) for one, two in zip(before, after, strict=True)])


def _updates(
    before: pa.Table, after: pa.Table, key: Sequence[str], differing: dict[str, Any]
) -> Iterator[ChangedCell]:
    for row in range(after.num_rows):
        shown = _key_of(after, row, key)
        for name, flags in differing.items():
            if flags[row].as_py():
                yield ChangedCell(
                    shown, "updated", name, _cell(before, name, row), _cell(after, name, row)
                )


def _rows_of(
    rows: pa.Table, key: Sequence[str], columns: Sequence[str], kind: str
) -> Iterator[ChangedCell]:
    for row in range(rows.num_rows):
        shown = _key_of(rows, row, key)
        values = CellText(", ".join(f"{name}={_cell(rows, name, row)}" for name in columns))
        ends = (_ABSENT, values) if kind == "inserted" else (values, _ABSENT)
        yield ChangedCell(shown, kind, "all", *ends)


def _key_of(rows: pa.Table, row: int, key: Sequence[str]) -> CellText:
    return CellText(", ".join(_cell(rows, name, row) for name in key))


def _cell(rows: pa.Table, name: str, row: int) -> CellText:
    """The value as the cell of a table, in which NULL and the text 'NULL' differ."""
    return CellText(cell(python_value(rows.column(name)[row]))[:_MAX_TEXT])
