"""pyarrow expressions and predicates.

`table` lists pyarrow's functions; `read` and `write` translate under pyarrow's rules
(`Semantics.PYARROW`); `pushed` reads the expressions that DataFusion and polars push down, which
have SQL's meaning.

Soundness: a condition with the same meaning on every row is kept; any other is omitted as a whole
and named, so the result is TRUE wherever the original is.
"""

from __future__ import annotations

from functools import partial

import pyarrow.compute as pc

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.pyarrow_exprs import read, write
from rowsieve.bridges.pyarrow_exprs.literals import literal_of, stored
from rowsieve.bridges.pyarrow_exprs.nodes import names_in
from rowsieve.bridges.pyarrow_exprs.pushed import polars_predicate, pushed_predicate
from rowsieve.bridges.pyarrow_exprs.read import comparison_of_column, list_of_column
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

__all__ = [
    "comparison_of_column",
    "from_pyarrow",
    "is_pyarrow_expression",
    "list_of_column",
    "literal_of",
    "names_in",
    "polars_predicate",
    "pushed_predicate",
    "stored",
    "to_pyarrow",
]


def is_pyarrow_expression(value: object) -> bool:
    """Whether this is a pyarrow (dataset or compute) expression."""
    return isinstance(value, pc.Expression)


def from_pyarrow(
    expression: pc.Expression, schema: Schema, *, strict: bool = False
) -> Translation[Predicate, pc.Expression]:
    """Read an expression over columns of the schema, under `Semantics.PYARROW`.

    If a part cannot be read, the residual is the expression itself, because pyarrow's expressions
    cannot be split. With `strict`, such a part is `UnsupportedOperation`.
    """
    conditions = read.conditions(expression, schema)
    return read_conditions(
        conditions,
        read.known,
        lambda _: expression,
        schema,
        Semantics.PYARROW,
        shown=lambda condition: _shown(expression) if len(conditions) == 1 else condition,
        strict=strict,
    )


def to_pyarrow(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.PYARROW,
    *,
    strict: bool = False,
) -> Translation[pc.Expression, Predicate]:
    """Write a predicate with the given semantics as an expression over the schema.

    If an operation fails on a row, pyarrow may raise even if another condition excludes the row.
    """
    writer = write.PyArrowWriter()
    return write_conditions(
        predicate,
        lambda root: writer.row_filter(keep_meaning(root, semantics, Semantics.PYARROW)),
        partial(writer.junction, all_of=True),
        schema,
        semantics,
        strict=strict,
    )


def _shown(expression: pc.Expression) -> str:
    """Format the expression like pyarrow, which fails for bytes that are not UTF-8."""
    try:
        return str(expression)
    except UnicodeDecodeError:
        return "an expression that holds bytes"
