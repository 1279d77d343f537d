"""Translates filters that Arrow consumers push to predicates.

The same pyarrow expression selects different rows for different consumers. pyarrow and DuckDB use
pyarrow's semantics: DuckDB writes expressions that have its SQL's meaning under these semantics.
Polars writes the expression that looks like its own, but means it under its own semantics: NaN is
the greatest number, and both IN and NOT IN are not TRUE for NULL.

Soundness: none of the three applies a pushed filter again. Under pyarrow's semantics, pyarrow
itself evaluates on the remaining rows what we cannot translate; under Polars' semantics, we refuse
it.
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
    """A predicate that is TRUE wherever the filter is; `is_exact`: only there."""

    predicate: Predicate
    semantics: Semantics
    is_exact: bool


ReadFilter = Callable[[pc.Expression | None, Schema], PushedFilter]


def pyarrow_filter(expression: pc.Expression | None, schema: Schema) -> PushedFilter:
    """Translate under pyarrow's semantics; a condition that we cannot translate prunes nothing."""
    if expression is None:
        return PushedFilter(TRUE, Semantics.PYARROW, is_exact=True)
    try:
        meaning = from_pyarrow(expression, schema)
    except RowsieveError:
        return PushedFilter(TRUE, Semantics.PYARROW, is_exact=False)
    if meaning.expression is None:
        return PushedFilter(TRUE, Semantics.PYARROW, is_exact=False)
    return PushedFilter(meaning.expression, Semantics.PYARROW, is_exact=meaning.residual is None)


def polars_filter(expression: pc.Expression | None, schema: Schema) -> PushedFilter:
    """Translate under Polars' semantics; UnsupportedOperation if these do not settle it."""
    if expression is None:
        return PushedFilter(TRUE, Semantics.POLARS, is_exact=True)
    try:
        predicate = polars_predicate(expression, schema)
    except UnsupportedOperation as error:
        raise UnsupportedOperation(
            f"Polars pushed the filter {expression}, which does not say what Polars means: {error};"
            " read the table with table.scan_polars(), or pass allow_pyarrow_filter=False to "
            "pl.scan_pyarrow_dataset"
        ) from error
    return PushedFilter(predicate, Semantics.POLARS, is_exact=True)
