"""A filter that an Arrow consumer pushes: what of it prunes, and whether that is all of it.

The same pyarrow expression means different rows to different consumers. pyarrow and DuckDB mean
pyarrow's own rules: DuckDB writes expressions that say under those rules what its SQL says. Polars
writes the expression that looks like its own, and means its own rules: NaN is the greatest number,
and NULL is in no list and outside of none.

Soundness: none of the three applies a pushed filter again. For pyarrow's rules what we cannot read
is evaluated by pyarrow itself on the rows that are left; for Polars' rules it is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow.compute as pc

from rowsieve.bridges.pyarrow_exprs import from_pyarrow, polars_predicate
from rowsieve.errors import RowsieveError, UnsupportedOperation
from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema


@dataclass(frozen=True, slots=True)
class PushedFilter:
    """A predicate that is TRUE wherever the filter is; `is_exact`: and nowhere else."""

    predicate: Predicate
    semantics: Semantics
    is_exact: bool


ReadFilter = Callable[[pc.Expression | None, Schema], PushedFilter]


def meant_by_pyarrow(expression: pc.Expression | None, schema: Schema) -> PushedFilter:
    """Read by pyarrow's rules; a condition that cannot be read prunes nothing."""
    if expression is None:
        return PushedFilter(TRUE, Semantics.PYARROW, is_exact=True)
    try:
        found = from_pyarrow(expression, schema)
    except RowsieveError:
        return PushedFilter(TRUE, Semantics.PYARROW, is_exact=False)
    if found.expression is None:
        return PushedFilter(TRUE, Semantics.PYARROW, is_exact=False)
    return PushedFilter(found.expression, Semantics.PYARROW, is_exact=found.residual is None)


def meant_by_polars(expression: pc.Expression | None, schema: Schema) -> PushedFilter:
    """Read by Polars' rules; UnsupportedOperation for what they leave open."""
    if expression is None:
        return PushedFilter(TRUE, Semantics.POLARS, is_exact=True)
    try:
        predicate = polars_predicate(expression, schema)
    except UnsupportedOperation as error:
        raise UnsupportedOperation(
            f"Polars pushed the filter {expression}, which does not say what Polars means: {error};"
            " read the table by table.scan_polars(), or pass allow_pyarrow_filter=False to "
            "pl.scan_pyarrow_dataset"
        ) from error
    return PushedFilter(predicate, Semantics.POLARS, is_exact=True)
