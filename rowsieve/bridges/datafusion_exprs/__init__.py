"""DataFusion's expressions as predicates and back.

`table` lists what there is on their side, `read` and `write` go either way. Soundness: a condition
that means the same on every row is kept, any other is left out whole and named, so that what is
left is TRUE wherever the original is. DataFusion is imported at its first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rowsieve.bridges.translation import Translation, place, translated
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.predicate.bind import bind
from rowsieve.predicate.ir import Predicate, conjoin, root_conjuncts
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["from_datafusion", "is_datafusion_expression", "to_datafusion"]


def is_datafusion_expression(value: object) -> bool:
    """Whether this is a `datafusion.Expr`; DataFusion is not imported for it."""
    module = sys.modules.get("datafusion")
    return module is not None and isinstance(value, module.Expr)


def from_datafusion(
    expression: Expr, schema: Schema, *, strict: bool = False
) -> Translation[Predicate, Expr]:
    """Read an expression over columns of the schema, meant under `Semantics.DATAFUSION`.

    The schema is wanted because DataFusion decides by the columns' types in which type a comparison
    is made. With `strict`, a part that cannot be read is `UnsupportedOperation`.
    """
    from rowsieve.bridges.datafusion_exprs import read  # noqa: PLC0415 - an extra

    reader = read.Reader(schema)
    conditions = read.conditions(expression)
    kept: list[Predicate] = []
    left: list[Expr] = []
    notes: list[str] = []
    for index, condition in enumerate(conditions):
        try:
            predicate = reader.predicate(condition)
            bind(predicate, schema, Semantics.DATAFUSION, simplified=False)
            kept.append(predicate)
        except UnknownColumn:
            raise
        except (UnsupportedOperation, InvalidPredicate) as error:
            shown = condition.canonical_name()
            notes.append(place(index, len(conditions), shown, error))
            left.append(condition)
    residual = read.joined(left) if left else None
    return translated(conjoin(kept) if kept or not left else None, residual, notes, strict=strict)


def to_datafusion(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.DATAFUSION,
    *,
    strict: bool = False,
) -> Translation[Expr, Predicate]:
    """Write a predicate, meant under the semantics given, as an expression over the schema.

    A row on which an operation fails may fail there even where another condition excludes the row.
    """
    from rowsieve.bridges.datafusion_exprs import write  # noqa: PLC0415 - an extra

    bind(predicate, schema, semantics, simplified=False)
    writer = write.Writer(semantics)
    conditions = root_conjuncts(predicate)
    kept: list[Expr] = []
    left: list[Predicate] = []
    notes: list[str] = []
    for index, condition in enumerate(conditions):
        bound = bind(condition, schema, semantics, simplified=False)
        try:
            kept.append(writer.predicate(bound.root))
        except UnsupportedOperation as error:
            notes.append(place(index, len(conditions), condition, error))
            left.append(condition)
    whole = writer.conjunction(kept) if kept or not left else None
    return translated(whole, conjoin(left) if left else None, notes, strict=strict)
