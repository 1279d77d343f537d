"""Which values of its rows a change gives; all others are absent, and keep what the table has.

Absent is not NULL: NULL is a value that replaces another. A value is absent if the data lacks its
column, if a dict lacks its name, or if the row's list of unchanged columns names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.changes.data.ingest import read_data
from rowsieve.changes.data.python_data import is_python_data
from rowsieve.errors import InvalidData, SchemaMismatch, did_you_mean
from rowsieve.types.ordering.keys import flat
from rowsieve.types.schema import ColumnNames, Schema

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GivenValues:
    """The rows of a change; `absent` has the rows, (n,), in which a column of theirs is absent.

    `keeps`: whether the data may lack columns, which are then absent in all rows. `lacking` has the
    rows that lack a name of theirs where the data is filled, instead of kept.
    """

    table: pa.Table
    absent: Mapping[str, Mask]
    keeps: bool
    lacking: Mapping[str, Mask]

    def absent_in(self, name: str, names: ColumnNames) -> Mask | None:
        """(n,) the rows that do not give the column that a name means; None if all do."""
        column = names.column(name)
        masks = [mask for each, mask in self.absent.items() if names.column(each) == column]
        return np.logical_or.reduce(masks) if masks else None


def read_given(
    data: Any,
    operation: str,
    schema: Schema,
    *,
    keeps: bool,
    fills: bool = False,
    unchanged: str | None = None,
    op: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> GivenValues:
    """Read data of any supported kind; `unchanged` names a column of lists of column names.

    That column is dropped, unless the table has one of its name. `fills`: whether dicts may lack
    names that do not keep their value, either.
    """
    table = read_data(
        data, operation, schema, op=op, keeps=keeps or fills, storage_options=storage_options
    )
    reads_names = (keeps or fills) and is_python_data(data)
    lacking = _without_names(data, ColumnNames(schema.names)) if reads_names else {}
    absent = dict(lacking) if keeps else {}
    if unchanged is None:
        return GivenValues(table, absent, keeps, lacking)
    if table.num_rows:
        names = [name for name in (*table.column_names, *schema.names) if name != unchanged]
        for name, mask in _unchanged(table, unchanged, names, operation).items():
            absent[name] = absent[name] | mask if name in absent else mask
    if unchanged in table.column_names and unchanged not in schema.names:
        table = table.drop_columns([unchanged])
    return GivenValues(table, absent, keeps, lacking)


def _without_names(data: Any, columns: ColumnNames) -> dict[str, Mask]:
    """The rows of dicts that lack a name which others have; none for a dict of columns."""
    if isinstance(data, Mapping) or not data:
        return {}
    layouts: dict[tuple[Any, ...], int] = {}
    numbers = np.array([layouts.setdefault(tuple(row), len(layouts)) for row in data])
    names = dict.fromkeys(name for layout in layouts for name in layout)
    absent: dict[str, Mask] = {}
    for name in names:
        column = columns.column(str(name))
        lacking = [column not in columns.columns(map(str, layout)) for layout in layouts]
        if any(lacking):
            absent[name] = np.array(lacking)[numbers]
    return absent


def _unchanged(
    table: pa.Table, name: str, columns: Sequence[str], operation: str
) -> dict[str, Mask]:
    """The rows whose list in the column `name` has each of the names that occur in it."""
    if name not in table.column_names:
        raise SchemaMismatch(
            f"{operation}: no column {name!r} (unchanged=) in the data, which has "
            f"({', '.join(table.column_names)})"
        )
    lists = flat(table.column(name))
    if pa.types.is_null(lists.type):
        return {}
    if not _is_list_of_text(lists.type):
        raise SchemaMismatch(
            f"{operation}: column {name!r} (unchanged=) is {lists.type}; it must be a list of "
            "text, the names of the columns that keep their value"
        )
    rows = np.asarray(pc.list_parent_indices(lists).to_numpy(), dtype=np.int64)
    texts = pc.list_flatten(lists).cast(pa.string()).dictionary_encode()
    if texts.null_count:
        raise InvalidData(
            f"{operation}: column {name!r} (unchanged=) has a list with NULL in it; it must have "
            "names of columns only"
        )
    codes, absent = texts.indices.to_numpy(), {}
    known = {each.lower() for each in columns}
    for code, text in enumerate(texts.dictionary.to_pylist()):
        if text.lower() not in known:
            raise InvalidData(
                f"{operation}: column {name!r} (unchanged=) names {text!r} in row "
                f"{rows[codes == code][0]}, counted from 0, which is no column of the table"
                f"{did_you_mean(text, columns)}; nothing was written"
            )
        mask = np.zeros(table.num_rows, dtype=bool)
        mask[rows[codes == code]] = True
        absent[text] = mask
    return absent


def _is_list_of_text(type_: pa.DataType) -> bool:
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        return False
    item = type_.value_type
    if pa.types.is_dictionary(item):
        item = item.value_type
    texts = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null
    return any(is_text(item) for is_text in texts)
