"""pyiceberg's expressions as predicates and back.

pyiceberg evaluates an expression in two ways, which differ for NULL: a scan filters rows through
pyarrow, and its own evaluator tests rows in Python. `meaning` chooses the one that is read; a
written expression is TRUE on the same rows in both. pyiceberg is imported at first use.

Soundness: every class is in `function_table`, and pyiceberg itself converts constants to the
column's type.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.extras import is_instance
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression

__all__ = ["from_iceberg", "is_iceberg_expression", "to_iceberg"]


def is_iceberg_expression(value: object) -> bool:
    """Whether this is one of pyiceberg's expressions; pyiceberg is not imported for it."""
    return is_instance(value, "pyiceberg.expressions", "BooleanExpression")


def from_iceberg(
    expression: BooleanExpression,
    schema: Schema,
    *,
    meaning: Literal["scan", "evaluator"] = "scan",
    strict: bool = False,
) -> Translation[Predicate, BooleanExpression]:
    """Read an expression, bound or not, over columns of the schema, under `Semantics.ICEBERG`.

    `meaning`: the rows that a scan keeps, or those that the evaluator keeps. With `strict`, a part
    that cannot be read is `UnsupportedOperation`.
    """
    from rowsieve.bridges.iceberg_exprs import read  # noqa: PLC0415 - an extra

    reader = read.IcebergReader(schema, two_valued=meaning == "evaluator")
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
    """Write a predicate with the given semantics as an unbound expression.

    The expression is FALSE where the predicate is NULL, so it keeps the same rows.
    """
    from rowsieve.bridges.iceberg_exprs import write  # noqa: PLC0415 - an extra

    writer = write.IcebergWriter(semantics)
    join = partial(writer.junction, all_of=True)
    return write_conditions(predicate, writer.rows, join, schema, semantics, strict=strict)
