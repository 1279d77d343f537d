"""A pandas DataFrame as Arrow: its columns, and the levels of its index that have a name.

Soundness: pandas keeps Python objects in a column as they are, and pyarrow finds one type for them:
such columns are held against the same rules as lists of Python values. pandas is never imported.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.changes.mixed_values import refuse_mixed
from rowsieve.errors import InvalidData, InvalidInput


def is_pandas(data: object) -> bool:
    """Whether this is a pandas DataFrame; pandas is not imported for it."""
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def from_pandas(frame: Any, operation: str) -> pa.Table:
    """The columns, then the named levels of the index; InvalidData for what has no Arrow form."""
    frame = _with_named_levels(frame, operation)
    for name, values in _python_values(frame, operation):
        refuse_mixed(values, f"{operation}: column {name!r}")
    named = any(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=named)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidData(f"{operation}: this DataFrame has no Arrow form: {error}") from error


def refuse_mixed_series(series: Any, what: str) -> None:
    """Hold a pandas Series against the rules for Python values, if it holds any."""
    values = _python_values_of(series, what)
    if values is not None:
        refuse_mixed(values, what)


def _with_named_levels(frame: Any, operation: str) -> Any:
    """The frame with no level of its index that lacks a name, unless all do."""
    columns, levels = list(frame.columns), list(frame.index.names)
    named = [name for name in levels if name is not None]
    if odd := [name for name in (*columns, *named) if not isinstance(name, str)]:
        raise InvalidInput(
            f"{operation}: names of columns are text, not {odd[0]!r}; rename the columns of the "
            "DataFrame first: frame.columns = [...]"
        )
    if both := sorted(set(named) & set(columns)):
        raise InvalidInput(
            f"{operation}: the DataFrame has both a column and a level of its index named "
            f"{both[0]!r}; rename one, or drop the index: frame.reset_index(drop=True)"
        )
    if len(named) in (0, len(levels)):
        return frame
    unnamed = [place for place, name in enumerate(levels) if name is None]
    return frame.set_axis(frame.index.droplevel(unnamed))


def _python_values(frame: Any, operation: str) -> Iterator[tuple[str, Any]]:
    """Each column, or level of the index with a name, that holds Python objects."""
    pieces = [(name, frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    if any(name is not None for name in frame.index.names):
        pieces += [
            (name, frame.index.get_level_values(place))
            for place, name in enumerate(frame.index.names)
        ]
    for name, values in pieces:
        found = _python_values_of(values, f"{operation}: column {name!r}")
        if found is not None:
            yield name, found


def _python_values_of(values: Any, what: str) -> Any:
    """The Python objects of a Series or an index, or of its categories; None if it has none."""
    pandas = sys.modules["pandas"]
    dtype = values.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        values, dtype = dtype.categories, dtype.categories.dtype
    if isinstance(dtype, pandas.PeriodDtype | pandas.IntervalDtype):
        raise InvalidData(
            f"{what} has the pandas type {dtype}, which no column of a table can have: make it "
            "times (series.dt.to_timestamp()), or a column for each end of the interval"
        )
    is_object = isinstance(dtype, np.dtype) and dtype.kind == "O"
    return values[values.notna()] if is_object else None
