"""Write a bound tree as a Spark column: text of the SQL dialect, passed to `expr`.

The text has the same meaning under all settings of Spark's parser. Long lists are columns of their
own, joined with AND, OR and NOT of columns, in balanced trees because Spark recurses over their
depth. PySpark is imported at first use; its functions make classic or Connect columns.

Soundness: a node is written only if `spark_exact` has the same value for it in Spark.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from rowsieve.bridges.chains import balanced
from rowsieve.bridges.conditions import write_conditions
from rowsieve.bridges.extras import imported
from rowsieve.bridges.meanings import keep_meaning
from rowsieve.bridges.spark_columns import long_lists
from rowsieve.bridges.spark_columns.sessions import ColumnSession, check_session, is_client
from rowsieve.bridges.sql.dialects import SPARK_SETTLED
from rowsieve.bridges.sql.spark.write.exact_conditions import SparkExact, with_rewritten_rules
from rowsieve.bridges.sql.writing.render import SqlWriter
from rowsieve.bridges.translation import Translation
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.operand_types import type_of
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Float, Int, String
from rowsieve.types.schema import Schema

_AT_ONCE = 1_000  # terms of an AND or OR in one text
_AS_THEY_ARE = (
    Int(32),
    Int(64),
    Float(64),
    String(),
)  # list members that are passed as Python values


def written(
    predicate: ir.Predicate,
    schema: Schema,
    semantics: Semantics,
    session: ColumnSession,
    *,
    strict: bool,
) -> Translation[Any, ir.Predicate]:
    """Write a predicate with the given semantics as a column for a session."""
    functions: Any = imported("pyspark.sql.functions", "spark")
    check_session()
    theirs = Semantics.of_spark(ansi=session.ansi, time_zone=session.time_zone or "UTC")
    exact = SparkExact(SPARK_SETTLED, semantics, session.ansi, session.time_zone)

    def expr(text: str) -> Any:
        session.check_formats(text)
        return functions.expr(text)

    columns = _Columns(exact, SqlWriter(SPARK_SETTLED), expr)

    def write(root: ir.Predicate) -> Any:
        return columns.column(keep_meaning(root, with_rewritten_rules(semantics, theirs), theirs))

    def joined(terms: list[Any]) -> Any:
        return balanced(terms, operator.and_) if terms else functions.expr("TRUE")

    return write_conditions(predicate, write, joined, schema, semantics, strict=strict)


class _Columns:
    """Writes conditions as columns."""

    def __init__(self, exact: SparkExact, writer: SqlWriter, expr: Callable[[str], Any]) -> None:
        self._exact = exact
        self._writer = writer
        self._expr = expr

    def column(self, node: ir.Predicate) -> Any:
        """Write a condition; `UnsupportedOperation` with the reason if impossible."""
        match node:
            case ir.InList() if self._is_long(node):
                return self._list(node)
            case ir.Not(term=term) if self._holds_list(term):
                return ~self.column(term)
            case ir.And(terms=terms) | ir.Or(terms=terms) if terms:
                return self._joined(terms, all_of=isinstance(node, ir.And))
        return self._expr(self._text(self._exact.predicate(node)))

    def _joined(self, terms: Sequence[ir.Predicate], *, all_of: bool) -> Any:
        columns = [self.column(term) for term in terms if self._holds_list(term)]
        plain = [term for term in terms if not self._holds_list(term)]
        for start in range(0, len(plain), _AT_ONCE):
            several = tuple(plain[start : start + _AT_ONCE])
            condition = self._exact.predicate(ir.And(several) if all_of else ir.Or(several))
            columns.append(self._expr(self._text(condition)))
        return balanced(columns, operator.and_ if all_of else operator.or_)

    def _text(self, node: ir.Predicate) -> str:
        try:
            return self._writer.text(node)
        except RecursionError:
            raise UnsupportedOperation("it nests too deeply to be written as a column") from None

    def _holds_list(self, node: ir.Predicate) -> bool:
        """Whether there is a long list below AND, OR and NOT."""
        match node:
            case ir.InList():
                return self._is_long(node)
            case ir.Not(term=term):
                return self._holds_list(term)
            case ir.And(terms=terms) | ir.Or(terms=terms):
                return any(map(self._holds_list, terms))
        return False

    def _is_long(self, node: ir.InList) -> bool:
        if len(node.values) <= long_lists.SHORT:
            return False
        return not is_client() or type_of(node.operand) in _AS_THEY_ARE

    def _list(self, node: ir.InList) -> Any:
        type_ = type_of(node.operand)
        self._exact.check_order(type_)
        operand = self._expr(self._writer.text(self._exact.operand(node.operand)))
        if is_client():
            return operand.isin(node.values.array.to_pylist())
        return long_lists.in_set(operand, node.values, type_)
