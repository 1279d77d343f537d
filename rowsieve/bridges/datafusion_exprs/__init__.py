"""DataFusion expressions and predicates, translated by way of DataFusion SQL.

`spell` formats an expression as text of the dialect "datafusion"; `build` lets DataFusion parse the
text that the dialect writes; `table` lists DataFusion's constructs. Knowledge of DataFusion's rules
is in the dialect (`rowsieve.bridges.sql`). DataFusion is imported at first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rowsieve.bridges.conditions import write_conditions
from rowsieve.bridges.sql.dialects import DATAFUSION
from rowsieve.bridges.sql.encoded import read_encoded
from rowsieve.bridges.sql.language import as_dialect_tree
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.schema import Schema

if TYPE_CHECKING:
    from datafusion import Expr

__all__ = ["from_datafusion", "is_datafusion_expression", "to_datafusion"]


def is_datafusion_expression(value: object) -> bool:
    """Whether this is a `datafusion.Expr`; does not import DataFusion."""
    module = sys.modules.get("datafusion")
    return module is not None and isinstance(value, module.Expr)


def from_datafusion(
    expression: Expr, schema: Schema, *, strict: bool = False
) -> Translation[Predicate, Expr]:
    """Read an expression over columns of the schema, under `Semantics.DATAFUSION`.

    The schema is required because the types of columns decide in which type DataFusion compares.
    With `strict`, an unsupported condition is `UnsupportedOperation`.
    """
    from rowsieve.bridges.datafusion_exprs import spell  # noqa: PLC0415 - as an extra

    return read_encoded(
        spell.conditions(expression),
        spell.spelled,
        spell.joined,
        schema,
        DATAFUSION,
        shown=_shown,
        strict=strict,
    )


def to_datafusion(
    predicate: Predicate,
    schema: Schema,
    semantics: Semantics = Semantics.DATAFUSION,
    *,
    strict: bool = False,
) -> Translation[Expr, Predicate]:
    """Write a predicate with the given semantics as an expression over the schema.

    If an operation fails on a row, DataFusion may raise even if another condition excludes the row.
    """
    from rowsieve.bridges.datafusion_exprs import build  # noqa: PLC0415 - an extra

    return write_conditions(
        predicate,
        lambda root: build.built(as_dialect_tree(DATAFUSION, root, schema, semantics)),
        build.all_of,
        schema,
        semantics,
        strict=strict,
    )


def _shown(expression: Expr) -> str:
    """Format the expression; DataFusion panics for times beyond its calendar."""
    try:
        return expression.canonical_name()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"a {expression.variant_name()} that DataFusion cannot write"
