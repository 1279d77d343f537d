"""Convert a pandas DataFrame to Arrow: its columns, and the named levels of its index.

Soundness: a pandas column may hold Python objects, for which pyarrow infers one type. Such columns
are checked by the same rules as lists of Python values. Never imports pandas.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from rowsieve.changes.data.absent_values import RequiredNames
from rowsieve.changes.data.mixed_values import advice_for, refuse_mixed
from rowsieve.errors import InvalidData, InvalidInput


def is_pandas(data: object) -> bool:
    """Return whether this is a pandas DataFrame; does not import pandas."""
    return type(data).__module__.partition(".")[0] == "pandas" and hasattr(data, "columns")


def from_pandas(frame: Any, operation: str, required: RequiredNames | None) -> pa.Table:
    """Convert the columns, then the named levels of the index.

    InvalidData if pyarrow cannot convert a column, SchemaMismatch if a dict in it lacks a name.
    """
    frame = _with_named_levels(frame, operation)
    for name, values in _python_values(frame, operation):
        refuse_mixed(values, f"{operation}: column {name!r}")
        if required is not None:
            required.check_columns({name: list(values)})
    named = any(name is not None for name in frame.index.names)
    try:
        return pa.Table.from_pandas(frame, preserve_index=named)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise InvalidData(
            f"{operation}: the DataFrame could not be converted to Arrow: {error}; "
            f"{advice_for(error)}"
        ) from error


def refuse_mixed_series(series: Any, what: str) -> None:
    """Check a pandas Series by the rules for Python values, if it holds any."""
    values = _python_values_of(series, what)
    if values is not None:
        refuse_mixed(values, what)


def _with_named_levels(frame: Any, operation: str) -> Any:
    """Drop the unnamed levels of the index, unless no level has a name."""
    columns, levels = list(frame.columns), list(frame.index.names)
    named = [name for name in levels if name is not None]
    if odd := [name for name in (*columns, *named) if not isinstance(name, str)]:
        raise InvalidInput(
            f"{operation}: column names must be text, not {odd[0]!r}; rename the columns of the "
            "DataFrame first: frame.columns = [...]"
        )
    if both := sorted(set(named) & set(columns)):
        raise InvalidInput(
            f"{operation}: the DataFrame has both a column and an index level named "
            f"{both[0]!r}; rename one, or drop the index: frame.reset_index(drop=True)"
        )
    if len(named) in (0, len(levels)):
        return frame
    unnamed = [place for place, name in enumerate(levels) if name is None]
    return frame.set_axis(frame.index.droplevel(unnamed))


def _python_values(frame: Any, operation: str) -> Iterator[tuple[str, Any]]:
    """Yield each column, or named level of the index, that holds Python objects."""
    pieces = [(name, frame.iloc[:, place]) for place, name in enumerate(frame.columns)]
    if any(name is not None for name in frame.index.names):
        pieces += [
            (name, frame.index.get_level_values(place))
            for place, name in enumerate(frame.index.names)
        ]
    for name, values in pieces:
        objects = _python_values_of(values, f"{operation}: column {name!r}")
        if objects is not None:
            yield name, objects


def _python_values_of(values: Any, what: str) -> Any:
    """Return the Python objects of a Series, an index or its categories; None if it has none."""
    pandas = sys.modules["pandas"]
    dtype = values.dtype
    if isinstance(dtype, pandas.CategoricalDtype):
        values, dtype = dtype.categories, dtype.categories.dtype
    if isinstance(dtype, pandas.PeriodDtype | pandas.IntervalDtype):
        raise InvalidData(
            f"{what} has the pandas type {dtype}, which no column type supports; convert periods "
            "to times (series.dt.to_timestamp()), and intervals to a column for each end"
        )
    is_object = isinstance(dtype, np.dtype) and dtype.kind == "O"
    return values[values.notna()] if is_object else None
