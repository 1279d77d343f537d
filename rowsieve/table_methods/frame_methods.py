"""The methods of `Table` that show a few of its rows, or facts about its columns."""

from __future__ import annotations

import heapq
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.arguments.peer_names import TABLE, unknown_attribute
from rowsieve.errors import InvalidInput
from rowsieve.frame_text import Rows, frame_text
from rowsieve.planner.statistics import ColumnSummary
from rowsieve.progress_bars import ShownProgress
from rowsieve.scan import Columns, Scan
from rowsieve.table_methods.read_methods import ReadMethods
from rowsieve.types.shown_values import python_value

SUMMARY = pa.schema(
    [
        pa.field("column", pa.string(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("rows", pa.int64(), nullable=False),
        pa.field("nulls", pa.int64()),
        pa.field("lower", pa.string()),
        pa.field("upper", pa.string()),
        pa.field("exact", pa.bool_(), nullable=False),
    ]
)
"""The columns of `summarize`."""


class FrameMethods(ReadMethods):
    """The Arrow stream of a table, some of its rows, and a summary of its columns."""

    if not TYPE_CHECKING:  # a checker would believe every name

        def __getattr__(self, name: str) -> object:
            """Say what to write in place of a method of another library."""
            return unknown_attribute(self, name, TABLE)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the pinned version."""
        return list(self.handle.pinned.schema.names)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and of columns."""
        return self.count(), len(self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export all rows of the newest version as an Arrow C stream."""
        return self._scanned().__arrow_c_stream__(requested_schema)

    def head(self, count: int = 5) -> Rows:
        """Return the first rows: in key order, or in file order if the table has no key."""
        return Rows(self._rows(order_by_key=bool(self.handle.newest.table.key), limit=count))

    def tail(self, count: int = 5) -> Rows:
        """Return the last rows: in key order, or in file order if the table has no key.

        Reads the last splits of the plan only, as many as have that many rows.
        """
        _check_count("tail", count)
        plan, pieces, missing = self._in_order().plan(), list[pa.Table](), count
        for number in reversed(range(len(plan.splits))):
            pieces.append(self._scanned(plan=plan.only(number)).to_arrow())
            missing -= pieces[-1].num_rows
            if missing <= 0:
                break
        empty = self._in_order(limit=0).to_arrow()
        rows = pa.concat_tables([empty, *reversed(pieces)])
        return Rows(rows.slice(max(0, rows.num_rows - count)))

    def sample(self, count: int = 5, *, where: Any = None, seed: int | None = None) -> Rows:
        """Return rows that are chosen at random, each with the same probability; reads all rows.

        With `seed`, the same rows of a version each time.
        """
        _check_count("sample", count)
        if seed is not None and seed < 0:
            raise InvalidInput(f"sample: seed must not be negative, got {seed}")
        draws = np.random.default_rng(seed)
        chosen: list[tuple[float, int, pa.RecordBatch]] = []
        scan = self._in_order(where=where)
        place = 0
        for batch in scan.to_batches():
            numbers = draws.random(batch.num_rows)
            if len(chosen) == count and count:
                numbers = np.where(numbers < -chosen[0][0], numbers, 2.0)
            for row in np.argsort(numbers, kind="stable")[:count].tolist():
                if numbers[row] < 2.0:
                    _keep(chosen, (-float(numbers[row]), place + row, batch.slice(row, 1)), count)
            place += batch.num_rows
        rows = [row for _, _, row in sorted(chosen, key=lambda each: each[1])]
        return Rows(pa.Table.from_batches(rows, schema=scan.schema).combine_chunks())

    def show(self, count: int = 10, *, where: Any = None, columns: Columns | None = None) -> None:
        """Print the first rows that match, as a data frame."""
        _check_count("show", count)
        rows = self._in_order(where=where, columns=columns, limit=count).to_arrow()
        sys.stdout.write(f"{frame_text(rows)}\n")

    def summarize(self, *, exact: bool = False, progress: ShownProgress | None = None) -> Rows:
        """Return for each column its rows, NULLs and bounds; `Rows` prints like a data frame.

        From the statistics of the version, without reading a file: bounds may be wider, and NULLs
        more, than those of the rows; the column `exact` says where they are not. With `exact`, the
        rows are read where statistics are not exact; `progress=True` shows a bar of the parts read.
        """
        scan = self._scanned()
        statistics = scan.statistics()
        inexact = [name for name, each in statistics.columns.items() if not _is_exact(each)]
        rows = statistics.rows
        summaries = dict(statistics.columns)
        if exact and (inexact or not statistics.rows_exact):
            measured, rows = _measured(self._scanned(columns=inexact or None), progress)
            summaries |= measured
        types = {field.name: str(field.type) for field in scan.schema}
        entries = [
            {
                "column": name,
                "type": types[name],
                "rows": rows,
                "nulls": each.null_count,
                "lower": _text(each.lower),
                "upper": _text(each.upper),
                "exact": _is_exact(each) and (exact or statistics.rows_exact),
            }
            for name, each in summaries.items()
        ]
        return Rows(pa.Table.from_pylist(entries, SUMMARY))

    def _in_order(self, **options: Any) -> Scan:
        """A scan in the order of the key, if the table has one."""
        return self._scanned(order_by_key=bool(self.handle.newest.table.key), **options)


def _check_count(operation: str, count: int) -> None:
    if count < 0:
        raise InvalidInput(f"{operation}: count must not be negative, got {count}")


def _keep(
    chosen: list[tuple[float, int, pa.RecordBatch]],
    row: tuple[float, int, pa.RecordBatch],
    count: int,
) -> None:
    """Keep the rows with the smallest numbers: a heap of at most `count`."""
    if len(chosen) < count:
        heapq.heappush(chosen, row)
    elif chosen and row[:2] > chosen[0][:2]:
        heapq.heapreplace(chosen, row)


def _is_exact(summary: ColumnSummary) -> bool:
    return summary.lower_exact and summary.upper_exact and summary.null_count_exact


def _measured(scan: Scan, progress: ShownProgress | None) -> tuple[dict[str, ColumnSummary], int]:
    """Read the columns; return their exact summaries, and the number of rows."""
    ends: dict[str, list[pa.Scalar]] = {name: [] for name in scan.schema.names}
    nulls = dict.fromkeys(scan.schema.names, 0)
    rows = 0
    for batch in scan._with_bar(progress):
        rows += batch.num_rows
        for name, values in zip(batch.schema.names, batch.columns, strict=True):
            nulls[name] += values.null_count
            ends[name] += _ends(values)
    summaries = {}
    for name, values in ends.items():
        lower, upper = _ends(pa.array(values, scan.schema.field(name).type)) or (None, None)
        is_known = lower is not None or nulls[name] == rows
        summaries[name] = ColumnSummary(
            lower, is_known, upper, is_known, nulls[name], null_count_exact=True
        )
    return summaries, rows


def _ends(values: pa.Array) -> list[pa.Scalar]:
    """The least and the greatest value; nothing for a type without an order, or without values."""
    try:
        bounds = pc.min_max(values)
    except pa.ArrowNotImplementedError:
        return []
    ends = [bounds[end] for end in ("min", "max") if bounds[end].is_valid]
    if pa.types.is_floating(values.type) and pc.any(pc.is_nan(values)).as_py():
        nan = pa.scalar(float("nan"), values.type)  # the greatest value
        return [*(ends or [nan])[:1], nan]
    return ends


def _text(bound: pa.Scalar | None) -> str | None:
    return None if bound is None else str(python_value(bound))
