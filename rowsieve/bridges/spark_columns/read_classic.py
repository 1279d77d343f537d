"""A classic Spark column as trees, by way of Spark's own analyser.

The column is resolved against an empty DataFrame of the schema, so that names, types and implicit
casts are Spark's decisions and not ours; nothing is parsed from text. AND and OR are taken apart
before where a part is not read, and where the column is deep: Spark's analyser recurses as deep as
a column is and its stack is small.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rowsieve.bridges.spark_columns.lists import with_sets
from rowsieve.bridges.spark_columns.sessions import active_session
from rowsieve.bridges.spark_columns.tree import Junction, Leaf, Node, of_json
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.types.schema import Schema

_JUNCTIONS = {"and": True, "or": False}
_ENDS: Mapping[str, str] = {
    "java.lang.StackOverflowError": "it nests too deep for Spark itself; write isin(…), or join "
    "the halves of a long list",
    "java.lang.OutOfMemoryError": "it is too large for the memory of Spark's driver",
}
_TIME = re.compile(r'("(?:type|elementType|keyType|valueType)":)"time\(6\)"')
_MOST_REPEATS = 8  # Spark writes twice what is below a CASE


def whole_of(column: Any, schema: Schema) -> Leaf:
    """The column as one tree, or why it has none; `trees_of` says which part is at fault."""
    try:
        (whole,) = _resolved(active_session(), schema, [column])
    except InvalidPredicate as error:
        return Leaf(column, UnsupportedOperation(str(error)))
    return whole


def trees_of(column: Any, schema: Schema) -> Junction | Leaf:
    """The column's trees, one for each term of its ANDs and ORs.

    `UnknownColumn` or `InvalidPredicate` where it means nothing to Spark.
    """
    session = active_session()
    skeleton = _Skeleton(session._jvm)
    shape = skeleton.taken_apart(column._jc.node())
    return _joined(shape, iter(_resolved(session, schema, skeleton.columns)))


class _Skeleton:
    """AND and OR of a column as they were written, chains of either as one."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self.columns: list[Any] = []

    def taken_apart(self, node: Any) -> Any:
        operator = _operator(node)
        if operator is None:
            self.columns.append(self._column(node))
            return None
        terms: list[Any] = []
        stack = [node]
        while stack:
            item = stack.pop()
            own = _operator(item)
            if own == operator:
                arguments = item.arguments()
                stack += [arguments.apply(1), arguments.apply(0)]
            else:
                terms.append(self.taken_apart(item))
        return _JUNCTIONS[operator], terms

    def _column(self, node: Any) -> Any:
        from pyspark.sql.classic.column import Column  # noqa: PLC0415 - an extra

        return Column(self._jvm.org.apache.spark.sql.Column(node))


def _operator(node: Any) -> str | None:
    if not node.getClass().getName().endswith(".UnresolvedFunction"):
        return None
    name = str(node.functionName())
    return name if name in _JUNCTIONS and node.arguments().length() == 2 else None


def _joined(shape: Any, leaves: Iterator[Leaf]) -> Junction | Leaf:
    if shape is None:
        return next(leaves)
    all_of, terms = shape
    return Junction(all_of, tuple(_joined(term, leaves) for term in terms))


def _resolved(session: Any, schema: Schema, columns: Sequence[Any]) -> list[Leaf]:
    """Each column with its tree: all analysed at once, or by halves where one cannot be."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an extra
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - an extra

    try:
        return _analysed(session, schema, columns)
    except AnalysisException as error:
        if len(columns) == 1 or str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
            raise _meaningless(error) from error
        refusal = UnsupportedOperation(str(error))
    except UnsupportedOperation as error:
        refusal = error
    except Py4JJavaError as error:
        if (end := _ENDS.get(error.java_exception.getClass().getName())) is None:
            raise
        refusal = UnsupportedOperation(end)
    if len(columns) == 1:
        return [Leaf(columns[0], refusal)]
    half = len(columns) // 2
    return _resolved(session, schema, columns[:half]) + _resolved(session, schema, columns[half:])


def _meaningless(error: Any) -> InvalidPredicate | UnknownColumn:
    text = str(error).partition("\n")[0]
    if str(error.getCondition()).startswith("UNRESOLVED_COLUMN"):
        name = str((error.getMessageParameters() or {}).get("objectName", "")).strip("`")
        return UnknownColumn(text, name=name)
    return InvalidPredicate(f"Spark does not take this column: {text}")


def _analysed(session: Any, schema: Schema, columns: Sequence[Any]) -> list[Leaf]:
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - an extra

    jvm = session._jvm
    listed = jvm.PythonUtils.toSeq([column._jc for column in columns])
    rows = _empty(session, schema)
    try:
        plan = rows.select(listed).queryExecution().analyzed()
    except AnalysisException as error:
        if not str(error.getCondition()).startswith("MISSING_ATTRIBUTES"):
            raise
        plan = _with_attributes(session, rows, columns).select(listed).queryExecution().analyzed()
    if not plan.getClass().getName().endswith(".Project") or plan.child().children().length():
        raise UnsupportedOperation(
            "aggregates, window functions and generators have no value of one row"
        )
    found, names = plan.projectList(), _names(plan.child().output())
    trees = [_tree(jvm, found.apply(place), names) for place in range(len(columns))]
    return [Leaf(column, node) for column, node in zip(columns, trees, strict=True)]


def _empty(session: Any, schema: Schema) -> Any:
    """A DataFrame of the columns without rows, as Java has it.

    Times of day are bytes in it where the session has no such type: what is read of them is decided
    by the type of ours.
    """
    jvm = session._jvm
    text = spark_schema(schema).json()
    if session.conf.get("spark.sql.timeType.enabled", "false") != "true":
        text = _TIME.sub(r'\1"binary"', text)
    struct = jvm.org.apache.spark.sql.types.DataType.fromJson(text)
    return session._jsparkSession.createDataFrame(jvm.java.util.ArrayList(), struct)


def _with_attributes(session: Any, rows: Any, columns: Sequence[Any]) -> Any:
    """The same, with the columns of a DataFrame that were meant by name: `frame.id` is one."""
    jvm = session._jvm
    output = rows.queryExecution().analyzed().output()
    own_names = [output.apply(place).name() for place in range(output.length())]
    resolver = session._jsparkSession.sessionState().conf().resolver()
    meant = {}
    for attribute in _attributes(columns):  # its name is as the caller wrote it
        name = attribute.name()
        alike = [own for own in own_names if resolver.apply(own, name)]
        meant[alike[0] if len(alike) == 1 else name] = attribute
    taken = jvm.java.util.ArrayList()
    for place in range(output.length()):
        own = output.apply(place)
        theirs = meant.pop(own.name(), None)
        if theirs is not None and not own.dataType().equals(theirs.dataType()):
            raise UnsupportedOperation(
                f"{own.name()} is {theirs.dataType().simpleString()} in its DataFrame and "
                f"{own.dataType().simpleString()} here; name the column with F.col"
            )
        taken.add(own if theirs is None else own.withExprId(theirs.exprId()))
    nothing, streaming = jvm.PythonUtils.toSeq([]), False
    relation = jvm.org.apache.spark.sql.catalyst.plans.logical.LocalRelation(
        jvm.PythonUtils.toSeq(taken), nothing, streaming, jvm.scala.Option.empty()
    )
    return jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, relation)


def _attributes(columns: Sequence[Any]) -> Iterator[Any]:
    """The columns of DataFrames that columns hold, resolved already."""
    stack = [column._jc.node() for column in columns]
    while stack:
        node = stack.pop()
        if node.getClass().getName().endswith(".ExpressionColumnNode"):
            if node.expression().getClass().getName().endswith(".AttributeReference"):
                yield node.expression()
            continue
        children = node.children()
        stack += [children.apply(place) for place in range(children.length())]


def _names(output: Any) -> dict[str, str]:
    """The columns' own names by their ids: a reference has the name that the caller wrote."""
    attributes = [output.apply(place) for place in range(output.length())]
    return {str(attribute.exprId().id()): str(attribute.name()) for attribute in attributes}


def _tree(jvm: Any, expression: Any, names: Mapping[str, str]) -> Node:
    if expression.getClass().getName().endswith(".Alias"):  # Spark's own, for the lack of a name
        expression = expression.child()
    _check_repeats(jvm, expression)
    expression = with_sets(jvm, expression)
    return of_json(json.loads(expression.toJSON()), expression, names)


def _check_repeats(jvm: Any, expression: Any) -> None:
    """Refuse what would be written down very often: these expressions name theirs twice."""
    patterns = jvm.org.apache.spark.sql.catalyst.trees.TreePattern
    repeating = (patterns.CASE_WHEN(), patterns.RUNTIME_REPLACEABLE())
    stack = [(expression, 0)]
    while stack:
        node, depth = stack.pop()
        if not any(node.containsPattern(pattern) for pattern in repeating):
            continue
        if node.getClass().getName().endswith(".CaseWhen") or _is_replaced(node):
            depth += 1
        if depth > _MOST_REPEATS:
            raise UnsupportedOperation(
                f"CASE and functions that Spark replaces nest deeper than {_MOST_REPEATS} levels"
            )
        children = node.children()
        stack += [(children.apply(place), depth) for place in range(children.length())]


def _is_replaced(node: Any) -> bool:
    return bool(node.nodePatterns().length()) and "RUNTIME_REPLACEABLE" in str(
        node.nodePatterns().toString()
    )
