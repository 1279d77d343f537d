"""polars' expressions as predicates and back.

An expression is read from the MessagePack of `expr.meta.serialize()`, which keeps NaN and bytes, as
JSON does not. It is built with polars' public functions. polars is imported at first use.

Soundness: a condition is translated only if all its nodes are in `function_table` and have the same
meaning on every row. No pickled function inside an expression is ever loaded.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.differences import Direction, check
from rowsieve.bridges.extras import is_instance
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from polars import Expr

__all__ = ["from_polars", "is_polars_expression", "to_polars"]

# Rules of other engines that the writer handles or refuses; `meanings` handles the others.
_OF_THE_WRITER = (
    *("nan", "bitwise_lists_from", "integer_overflow", "integer_division_by_zero"),
    "quotient_overflow",
    *("float_division_by_zero", "failed_cast", "rounds_half_to_even", "full_case"),
)


def is_polars_expression(value: object) -> bool:
    """Whether this is a `polars.Expr`; polars is not imported for it."""
    return is_instance(value, "polars", "Expr")


def from_polars(
    expression: Expr, schema: Schema, *, strict: bool = False
) -> Translation[Predicate, Expr]:
    """Read an expression over columns of the schema, under `Semantics.POLARS`.

    The schema is required because the types of columns decide in which type polars compares.
    With `strict`, an unsupported part is `UnsupportedOperation`.
    """
    from rowsieve.bridges.polars_exprs import read  # noqa: PLC0415 - an extra

    source = read.PolarsSource(expression)
    return read_conditions(
        source.conditions,
        read.PolarsReader(schema).predicate,
        source.joined,
        schema,
        Semantics.POLARS,
        shown=source.shown,
        strict=strict,
    )


def to_polars(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.POLARS,
    *,
    strict: bool = False,
) -> Translation[Expr, Predicate]:
    """Write a predicate with the given semantics as an expression over the schema.

    If a cast fails on a row, polars raises even if another condition excludes the row.
    """
    from rowsieve.bridges.polars_exprs import write  # noqa: PLC0415 - an extra

    writer = write.PolarsWriter(semantics)
    join = partial(writer.junction, all_of=True)
    rules = {name: getattr(semantics, name) for name in _OF_THE_WRITER}
    theirs = replace(Semantics.POLARS, **rules)

    def written(root: Predicate) -> Any:
        check(root, "polars", Direction.WRITES)
        return writer.predicate(keep_meaning(root, semantics, theirs))

    return write_conditions(predicate, written, join, schema, semantics, strict=strict)
