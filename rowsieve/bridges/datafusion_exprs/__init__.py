"""DataFusion's expressions as predicates and back.

`table` lists what there is on their side, `read` and `write` go either way. Soundness: a condition
that means the same on every row is kept, any other is left out whole and named, so that what is
left is TRUE wherever the original is. DataFusion is imported at its first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rowsieve.bridges.conditions import read_conditions, write_conditions
from rowsieve.bridges.datafusion_exprs.merged_lists import checked
from rowsieve.bridges.datafusion_exprs.zones import check_zones
from rowsieve.bridges.meanings import with_meaning_kept
from rowsieve.bridges.translation import Translation
from rowsieve.predicate.ir import Predicate
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
    return read_conditions(
        read.conditions(expression),
        lambda term: check_zones(checked(reader.predicate(term)), schema),
        read.joined,
        schema,
        Semantics.DATAFUSION,
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
    """Write a predicate, meant under the semantics given, as an expression over the schema.

    A row on which an operation fails may fail there even where another condition excludes the row.
    """
    from rowsieve.bridges.datafusion_exprs import write  # noqa: PLC0415 - an extra

    theirs = Semantics.DATAFUSION
    writer = write.Writer(theirs)
    return write_conditions(
        predicate,
        lambda root: writer.predicate(
            check_zones(checked(with_meaning_kept(root, semantics, theirs)), schema)
        ),
        writer.conjunction,
        schema,
        semantics,
        strict=strict,
    )


def _shown(expression: Expr) -> str:
    """The expression as DataFusion writes it, which panics over moments beyond its calendar."""
    try:
        return expression.canonical_name()
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        return f"a {expression.variant_name()} that DataFusion cannot write"
