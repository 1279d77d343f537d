"""`prune`: which files of somebody's own list may hold a row that a predicate keeps.

The abstract interpreter judges all files at once, from bounds and counts that the caller has: of
Iceberg manifests, of Delta's `add` actions, of a frame. Nothing is read.

Soundness: a file is left out only if no row within its bounds can match and none can fail. Facts
that are missing or contradict each other are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rowsieve.errors import InvalidInput, UnknownColumn
from rowsieve.predicate import ir
from rowsieve.predicate.arrays import Mask, null_mask
from rowsieve.predicate.bind import as_schema, bind
from rowsieve.predicate.bound import BoundPredicate
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.predicate.interpretation.abstract import AbstractColumn, AbstractValue, from_column
from rowsieve.predicate.pruning.bound_values import Side, as_array, as_bounds
from rowsieve.predicate.pruning.file_bounds import leaves
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Field, Float, Struct, is_ordered
from rowsieve.types.schema import Schema

Counts = npt.NDArray[np.int64]
UNKNOWN: Final = -1  # a count


def prune(
    predicate: ir.Predicate | BoundPredicate,
    schema: Schema | pa.Schema,
    *,
    min: Mapping[str, Any] | None = None,  # noqa: A002 - the words of the field
    max: Mapping[str, Any] | None = None,  # noqa: A002
    nulls: Mapping[str, Any] | None = None,
    nans: Mapping[str, Any] | None = None,
    rows: Any = None,
    semantics: Semantics = Semantics.SQL,
) -> Mask:
    """Return (n,) bool: whether each of n files may hold a row on which the predicate is TRUE.

    `min`, `max`: bounds of each column that has some, inclusive, one value a file, as a list or an
    array of numpy, pandas, polars or Arrow; fields of structs have dots. They may be truncated, as
    long as they bound every value but NULL and NaN. NULL is unknown. `nulls`, `nans`: counts of
    NULL and NaN; a negative one is unknown. `rows`: rows of each file. A float column may have NaN,
    which is above all numbers, unless `nans` says 0. `semantics`: the rules of an unbound tree.

    InvalidInput if lengths or types do not fit.
    """
    columns = schema if isinstance(schema, Schema) else as_schema(schema)
    if not isinstance(predicate, BoundPredicate):
        predicate = bind(predicate, columns, semantics)
    sides = {"min": min or {}, "max": max or {}, "nulls": nulls or {}, "nans": nans or {}}
    arrays = _FactArrays(columns, sides, rows)
    files = _Files(arrays, arrays.file_count())
    remaining = interpret(predicate, files) != Verdict.NONE
    return np.asarray(remaining & (files.rows != 0), dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class _FactArrays:
    """The facts as they were given."""

    schema: Schema
    sides: Mapping[str, Mapping[str, Any]]
    rows: Any

    def file_count(self) -> int:
        """Return the number of files; InvalidInput if two columns disagree, or none is given."""
        lengths = {} if self.rows is None else {"rows": _length(self.rows, "rows")}
        for side, columns in self.sides.items():
            if not isinstance(columns, Mapping):
                raise InvalidInput(
                    f"prune: {side}= takes one array of each column by name, such as "
                    f"{side}={{'id': [1, 2]}}, not {type(columns).__name__}"
                )
            for name, values in columns.items():
                self.field(name)
                lengths[f"{side}[{name!r}]"] = _length(values, f"{side}[{name!r}]")
        if not lengths:
            raise InvalidInput("prune: no bounds are given; give at least rows=, one number a file")
        (first, count), *others = lengths.items()
        for name, length in others:
            if length != count:
                raise InvalidInput(
                    f"prune: {first} has {count} values and {name} has {length}; give one a file"
                )
        return count

    def field(self, name: str) -> Field:
        """Return a column, or a field of a struct by its path; UnknownColumn if there is none."""
        if (known := leaves(self.schema).get(name)) is not None:
            return known[1]
        near = get_close_matches(name, leaves(self.schema), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise UnknownColumn(
            f"prune: bounds are given of {name!r}, which is not the name of one column or field of "
            f"the schema{hint}",
            name=name,
        )


class _Files:
    """The facts of all files, as the interpreter asks for them."""

    def __init__(self, arrays: _FactArrays, count: int) -> None:
        self._arrays = arrays
        self.part_count = count
        self.rows = self._counts(arrays.rows, "rows")
        self._names = {
            arrays.field(name).id: name for side in arrays.sides.values() for name in side
        }
        self._known: dict[int, AbstractColumn | None] = {}
        for name in self._names.values():  # facts of other types are refused, used or not
            self._column(arrays.field(name))

    def column(self, column: ir.BoundColumn) -> AbstractColumn | None:
        """Return the facts of a column; None if none are given."""
        return self._known.get(column.field_id)

    def expression(self, operand: ir.Operand) -> AbstractValue | None:
        """Return the facts of a field of a struct; None for other values, or without any."""
        field = _field_of(operand)
        known = None if field is None else self._known.get(field.id)
        if field is None or known is None:
            return None
        column = ir.BoundColumn(field.id, field.name, field.type)
        return from_column(column, known, self.part_count)

    def _column(self, field: Field) -> None:
        name, sides = self._names[field.id], self._arrays.sides
        ends = [
            as_bounds(sides[side.value][name], field.type, side, name)
            if name in sides[side.value]
            else pa.nulls(self.part_count, arrow_type(field.type))
            for side in Side
        ]
        is_known = np.zeros(self.part_count, dtype=np.bool_)
        if is_ordered(field.type):
            is_known = ~(null_mask(ends[0]) & null_mask(ends[1]))
        nulls = self._counts(sides["nulls"].get(name), f"nulls of the column {name!r}")
        sane = (self.rows < 0) | (nulls <= self.rows)
        may_be_nan, all_nan = None, None
        empty = sane & (nulls == self.rows) & (nulls >= 0) & ~is_known
        if isinstance(field.type, Float):
            nans = self._counts(sides["nans"].get(name), f"nans of the column {name!r}")
            sane &= (self.rows < 0) | (np.maximum(nans, 0) + np.maximum(nulls, 0) <= self.rows)
            empty &= sane & (nans <= 0)
            may_be_nan = ~(sane & (nans == 0))
            whole = (nulls >= 0) & (nans > 0) & (self.rows > 0)
            all_nan = sane & whole & (nulls + nans == self.rows) & ~is_known
        lower, upper = ends
        may_be_null = ~(sane & (nulls == 0))
        self._known[field.id] = AbstractColumn(
            lower, upper, empty, may_be_null, may_be_nan, all_nan
        )

    def _counts(self, values: Any, what: str) -> Counts:
        """Return counts, UNKNOWN where they are missing or negative."""
        if values is None:
            return np.full(self.part_count, UNKNOWN, dtype=np.int64)
        array = as_array(values, what)
        if pa.types.is_null(array.type):
            return np.full(self.part_count, UNKNOWN, dtype=np.int64)
        if pa.types.is_floating(array.type):  # as pandas has integers with missing values
            array = pa.array(array.to_numpy(zero_copy_only=False), from_pandas=True)
        try:
            integers = array.cast(pa.int64())
        except pa.ArrowException as error:
            raise InvalidInput(f"prune: {what} are not counts: {error}") from error
        if pa.types.is_boolean(array.type) or pa.types.is_temporal(array.type):
            raise InvalidInput(f"prune: {what} are of type {array.type}, not counts")
        counts = np.asarray(integers.fill_null(UNKNOWN).to_numpy(), np.int64)
        return np.maximum(counts, UNKNOWN)


def _length(values: Any, what: str) -> int:
    try:
        return len(values)
    except TypeError as error:
        raise InvalidInput(
            f"prune: {what} is {type(values).__name__}; give a list or an array, one value a file"
        ) from error


def _field_of(operand: ir.Operand) -> Field | None:
    """Return the field of a struct that an operand reads; None for other operands."""
    names: list[str] = []
    while isinstance(operand, ir.FieldAccess):
        names.append(operand.name)
        operand = operand.operand
    if not isinstance(operand, ir.BoundColumn) or not names:
        return None
    below = operand.type.fields if isinstance(operand.type, Struct) else ()
    field: Field | None = None
    for name in reversed(names):
        field = next((each for each in below if each.name == name), None)
        if field is None:
            return None
        below = field.type.fields if isinstance(field.type, Struct) else ()
    return field
