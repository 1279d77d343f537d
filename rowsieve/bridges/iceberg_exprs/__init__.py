"""pyiceberg's expressions as predicates and back.

pyiceberg reads an expression in two ways: a scan filters rows with it through pyarrow, its own
evaluator judges a row in Python, and where a value is NULL the two differ. `meaning` says which one
is read; what is written is TRUE on the same rows in both. Soundness: every class is in `table`, and
constants are converted to the column's type by pyiceberg itself. It is imported at its first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

__all__ = ["from_iceberg", "is_iceberg_expression", "to_iceberg"]


def is_iceberg_expression(value: object) -> bool:
    """Whether this is one of pyiceberg's expressions; pyiceberg is not imported for it."""
    module = sys.modules.get("pyiceberg.expressions")
    return module is not None and isinstance(value, module.BooleanExpression)


def from_iceberg(
    expression: BooleanExpression,
    schema: Schema,
    *,
    meaning: Literal["scan", "evaluator"] = "scan",
    strict: bool = False,
) -> Translation[Predicate, BooleanExpression]:
    """Read an expression, bound or not, over columns of the schema, under `Semantics.ICEBERG`.

    `meaning`: the rows that a scan of pyiceberg's keeps, or those that its evaluator does. With
    `strict`, a part that cannot be read is `UnsupportedOperation`.
    """
    from rowsieve.bridges.iceberg_exprs import read  # noqa: PLC0415 - an extra

    reader = read.Reader(schema, two_valued=meaning == "evaluator")
    return read_conditions(
        read.chain(expression, "And"),
        reader.predicate,
        read.joined,
        schema,
        Semantics.ICEBERG,
        shown=read.shown,
        strict=strict,
    )


def to_iceberg(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.ICEBERG,
    *,
    strict: bool = False,
) -> Translation[BooleanExpression, Predicate]:
    """Write a predicate, meant under the semantics given, as an unbound expression.

    A row for which the predicate is NULL is FALSE in it: only the rows that are TRUE are kept.
    """
    from rowsieve.bridges.iceberg_exprs import write  # noqa: PLC0415 - an extra

    writer = write.Writer(semantics)

    def joined(terms: list[BooleanExpression]) -> BooleanExpression:
        return writer.junction(terms, all_of=True)

    return write_conditions(predicate, writer.rows, joined, schema, semantics, strict=strict)
