"""Build a `datafusion.Expr` by letting DataFusion parse the dialect's text.

AND, OR and NOT are joined here in balanced trees, because DataFusion recurses over the depth of a
tree; long lists become one constant. Everything else is text, parsed in a session of our own, so
the user's settings have no effect.

Soundness: the input has passed `Exact`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from rowsieve.bridges.chains import balanced
from rowsieve.bridges.datafusion_exprs.long_lists import LONG, found_in
from rowsieve.bridges.extras import imported
from rowsieve.bridges.sql.dialects import DATAFUSION
from rowsieve.bridges.sql.writing.render import SqlWriter
from rowsieve.byte_cache import ByteCache, cached_in
from rowsieve.predicate import ir
from rowsieve.types.encodings import arrow_type

if TYPE_CHECKING:
    from datafusion import DataFrame, Expr

_FRAMES: Final[ByteCache[Any, Any]] = ByteCache(8 * 1024 * 1024, "frames of expressions")
_BYTES_PER_COLUMN: Final = 2_048


def built(root: ir.Predicate) -> Expr:
    """Build the expression of an exactly translatable bound condition."""
    columns = {node.name: node.type for node in ir.walk(root) if isinstance(node, ir.BoundColumn)}
    frame = _frame(tuple((name, arrow_type(type_)) for name, type_ in columns.items()))
    writer = SqlWriter(DATAFUSION)
    return _built(root, lambda node: frame.parse_sql_expr(writer.text(node)))


def all_of(terms: list[Expr]) -> Expr:
    """Return the AND of expressions."""
    return balanced(terms, operator.and_) if terms else _constant(value=True)


def _built(node: ir.Predicate, parsed: Callable[[ir.Node], Expr]) -> Expr:
    match node:
        case ir.And(terms=terms):
            return all_of([_built(term, parsed) for term in terms])
        case ir.Or(terms=terms):
            joined = [_built(term, parsed) for term in terms]
            return balanced(joined, operator.or_) if joined else _constant(value=False)
        case ir.Not(term=ir.And() | ir.Or() | ir.Not() | ir.InList() as term):
            return ~_built(term, parsed)
        case ir.InList(operand=operand, values=values) if len(values) >= LONG:
            members = values.array
            membership = found_in(parsed(operand), members.drop_null())
            return membership | _constant(None) if members.null_count else membership
        case ir.InList(operand=operand, values=values) if not len(values):
            return parsed(ir.IsNull(operand)) & _constant(None)
        case ir.TruePredicate():
            return _constant(value=True)
        case ir.FalsePredicate():
            return _constant(value=False)
        case _:
            return parsed(node)


def _constant(value: bool | None) -> Expr:
    datafusion = imported("datafusion", "datafusion")
    literal: Expr = datafusion.Expr.literal(pa.scalar(value, pa.bool_()))
    return literal


@cached_in(_FRAMES, lambda _, columns: _BYTES_PER_COLUMN * (1 + len(columns)))
def _frame(columns: tuple[tuple[str, pa.DataType], ...]) -> DataFrame:
    """Return an empty frame with these columns."""
    datafusion = imported("datafusion", "datafusion")
    schema = pa.schema(list(columns) or [("", pa.bool_())])
    none = pa.record_batch([pa.array([], field.type) for field in schema], schema=schema)
    frame = _context().create_dataframe([[none]])
    selected: DataFrame = frame.select(
        *(datafusion.col(_quoted(name)).alias(name) for name in schema.names)
    )
    return selected


@lru_cache(maxsize=1)
def _context() -> Any:
    return imported("datafusion", "datafusion").SessionContext()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
