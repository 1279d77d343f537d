"""Convert a classic Spark column, whose tree is in the JVM, to forms.

Spark converts it to a tree of Catalyst's expressions, SQL text parsed by Spark included, and writes
that as JSON: two calls whatever the size. Nothing is resolved.

Soundness: an expression of another class is refused by name; so is a column in a session with a
setting that changes the meaning of functions or types.
"""

from __future__ import annotations

import decimal
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from rowsieve.bridges.base.reader import NO_COUNTERPART
from rowsieve.bridges.chains import flattened
from rowsieve.bridges.spark_columns import long_lists
from rowsieve.bridges.spark_columns.java_classes import scala_seq, spark_class
from rowsieve.bridges.spark_columns.sessions import active_session
from rowsieve.bridges.spark_columns.types import spark_schema
from rowsieve.bridges.sql.spark import column_words
from rowsieve.bridges.sql.spark.catalyst_classes import OF_COLUMNS, TRIMS
from rowsieve.bridges.sql.spark.column_words import Form, Names, SparkCall
from rowsieve.bridges.sql.spark.type_names import type_named
from rowsieve.bridges.translation import Exactness, Row
from rowsieve.errors import InvalidPredicate, UnknownColumn, UnsupportedOperation
from rowsieve.types.logical import Binary, Bool, Date, Decimal, Float, Int, Time, Timestamp

_JUNCTIONS: Mapping[str, str] = {"and": "And", "or": "Or"}
_JVM_LIMITS: Mapping[str, str] = {
    "java.lang.StackOverflowError": "it nests too deeply for Spark itself; write isin(…), or join "
    "the halves of a long list",
    "java.lang.OutOfMemoryError": "it is too large for the memory of Spark's driver",
}
_MAX_CASES = 8  # Spark's JSON contains the children of a CASE twice
# Classes that are refused for a special reason.
_REFUSED: Mapping[str, str] = {
    name: reason
    for reason, names in {
        "a filter cannot contain a subquery": "ScalarSubquery Exists InSubquery ListQuery",
        "user-defined code cannot be read": "PythonUDF ScalaUDF UserDefinedExpression",
        "higher-order functions have no counterpart in Rowsieve": "LambdaFunction",
        "it does not compute a value for each row": "WindowExpression AggregateExpression Explode",
        "text is compared by its bytes here": "Collate",
    }.items()
    for name in names.split()
}


@dataclass(frozen=True, slots=True)
class Node:
    """One expression: its class in Catalyst, its options, and its child expressions.

    `source` returns its Java object, for options that JSON lacks. `is_constant`: its leaves are
    literals.
    """

    kind: str
    fields: Mapping[str, Any]
    children: Sequence[Node]
    source: Callable[[], Any] = field(compare=False)
    is_constant: bool = False


def conditions(column: Any) -> list[tuple[Any, Node | UnsupportedOperation]]:
    """Return each condition of the top-level AND: its column, and its tree or the refusal.

    `InvalidPredicate` for SQL text that Spark cannot parse.
    """
    conjuncts: list[tuple[Any, Node | UnsupportedOperation]] = []
    for part in _terms(column._jc.node(), "and"):
        condition = _column(part)
        try:
            conjuncts += [
                (condition, each) for each in _flat(_tree(part))
            ]  # SQL text may be an AND
        except UnsupportedOperation as error:
            conjuncts.append((condition, error))
    return conjuncts


def resolved_tree(expression: Any) -> Node:
    """Return the tree of a resolved expression; `UnsupportedOperation` if CASEs nest too deeply."""
    _check_cases(active_session(), expression)
    return _of_json(json.loads(expression.toJSON()), expression)


def form_of(node: Node, names: Names) -> Form:
    """Return the form of a tree over named columns; `UnsupportedOperation` if it has none."""
    while node.kind == "Alias":
        (node,) = node.children
    if node.kind in OF_COLUMNS:
        return _among(node) or SparkCall(OF_COLUMNS[node.kind], node.children)
    if node.kind == "AttributeReference":
        return _attribute(node, names)
    if node.kind not in _FORMS:
        reason = _REFUSED.get(node.kind, NO_COUNTERPART)
        raise UnsupportedOperation(f"{node.kind}: {reason}")
    return _FORMS[node.kind][1](node)


def folded(node: Node) -> Node:
    """Return the tree with Spark's values for constant expressions."""
    if not node.children:
        return node
    if node.is_constant and node.kind not in ("Cast", "Alias"):
        return _computed(node) or node
    try:
        children = tuple(folded(child) for child in node.children)
    except RecursionError:  # reading rejects it
        return node
    same = all(new is old for new, old in zip(children, node.children, strict=True))
    return node if same else replace(node, children=children)


def _computed(node: Node) -> Node | None:
    """Return Spark's value of a constant expression; None if it fails, or depends on the time."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    session = active_session()
    to_column = spark_class(session, "classic.ExpressionUtils").column
    current = spark_class(session, "catalyst.trees.TreePattern").CURRENT_LIKE()
    try:
        listed = scala_seq(session, [to_column(node.source())])
        plan = session._jsparkSession.emptyDataFrame().select(listed).queryExecution().analyzed()
        if plan.containsPattern(current):
            return None
        for name in ("ReplaceExpressions$", "ConstantFolding$"):
            rule = spark_class(session, f"catalyst.optimizer.{name}")
            plan = getattr(rule, "MODULE$").apply(plan)
        java = plan.projectList().apply(0).child()  # of the alias that Spark gives it
        computed = _of_json(json.loads(java.toJSON()), java)
    except (Py4JError, PySparkException):  # it is read unevaluated
        return None
    return computed if computed.kind == "Literal" else None


def _terms(node: Any, operator: str) -> list[Any]:
    """Return the terms of a chain of AND or OR, in the order written."""

    def terms_of(item: Any) -> Sequence[Any] | None:
        arguments = item.arguments() if _operator(item) == operator else None
        return None if arguments is None else (arguments.apply(0), arguments.apply(1))

    return flattened(node, terms_of)


def _operator(node: Any) -> str | None:
    if not node.getClass().getName().endswith(".UnresolvedFunction"):
        return None
    name = str(node.functionName())
    return name if name in _JUNCTIONS and node.arguments().length() == 2 else None


def _column(node: Any) -> Any:
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - an extra

    return Column(spark_class(active_session(), "Column")(node))


def _flat(node: Node) -> list[Node]:
    """Return the conditions of a tree, which SQL text with AND may have."""
    return flattened(node, lambda item: item.children if item.kind == "And" else None)


def _tree(node: Any) -> Node:
    """Return the tree of a `ColumnNode`; a chain too deep for Spark's stack term by term."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - an extra
    from pyspark.errors import ParseException  # noqa: PLC0415 - an extra

    session = active_session()
    try:
        java = session._jsparkSession.expression(spark_class(session, "Column")(node))
        java = long_lists.with_arrays(session, java)
        _check_cases(session, java)
        return _of_json(json.loads(java.toJSON()), java)
    except ParseException as error:
        text = str(error).strip().partition("\n")[0]
        raise InvalidPredicate(f"Spark does not take this column: {text}") from error
    except Py4JJavaError as error:
        if (reason := _JVM_LIMITS.get(error.java_exception.getClass().getName())) is None:
            raise
        if (operator := _operator(node)) is None:
            raise UnsupportedOperation(reason) from None
    terms = [_tree(each) for each in _terms(node, operator)]
    whole = terms[0]
    for term in terms[1:]:
        whole = Node(_JUNCTIONS[operator], {}, (whole, term), whole.source)
    return whole


def _check_cases(session: Any, expression: Any) -> None:
    """Raise for deeply nested CASEs, whose children JSON contains twice."""
    pattern = spark_class(session, "catalyst.trees.TreePattern").CASE_WHEN()
    stack = [(expression, 0)]
    while stack:
        node, depth = stack.pop()
        if not node.containsPattern(pattern):
            continue
        depth += node.getClass().getName().endswith(".CaseWhen")
        if depth > _MAX_CASES:
            raise UnsupportedOperation(f"CASE nests deeper than {_MAX_CASES} levels")
        children = node.children()
        stack += [(children.apply(place), depth) for place in range(children.length())]


def _of_json(nodes: Sequence[Mapping[str, Any]], java: Any) -> Node:
    """Build the tree from Spark's list of nodes, parents first."""
    stack: list[Node] = []
    for index in range(len(nodes) - 1, -1, -1):
        fields = nodes[index]
        kind = str(fields["class"]).rpartition(".")[2]
        children = tuple(stack.pop() for _ in range(int(fields["num-children"])))
        is_constant = all(each.is_constant for each in children) if children else kind == "Literal"
        stack.append(Node(kind, fields, children, partial(java.apply, index), is_constant))
    (root,) = stack
    return root


def _name(node: Node) -> Form:
    text = str(node.fields["nameParts"])[1:-1]
    if ", " not in text and "..." not in text:
        return column_words.Name([text])
    parts = node.source().nameParts()  # in JSON, ', ' may be part of a name
    return column_words.Name([str(parts.apply(place)) for place in range(parts.length())])


def _attribute(node: Node, names: Names) -> Form:
    """Return a resolved column of a DataFrame by its name."""
    name = str(node.fields["name"])
    column = names.column_of(name)
    if column is None:
        raise UnknownColumn(f"no column {name!r}", name=name)
    (field,) = spark_schema([names.schema.field(column)])
    if node.fields["dataType"] != field.dataType.jsonValue():
        theirs = node.source().dataType().simpleString()
        raise UnsupportedOperation(
            f"{name} is {theirs} in its DataFrame and {field.dataType.simpleString()} here; "
            "name the column with F.col"
        )
    return column_words.Name([column])


def _function(node: Node) -> Form:
    fields = node.fields
    name = str(fields["nameParts"])[1:-1].lower()
    if fields["isDistinct"] or fields.get("ignoreNulls") or fields["isInternal"]:
        raise UnsupportedOperation(f"{name} with such options has no counterpart in Rowsieve")
    if len(node.children) != len(fields["arguments"]):
        raise UnsupportedOperation(f"{name} with FILTER or an order has no counterpart in Rowsieve")
    return (_among(node) if name == "in" else None) or SparkCall(name, node.children)


def _among(node: Node) -> Form | None:
    """Return IN with a long list, which `long_lists` made one constant."""
    if len(node.children) != 2:
        return None
    operand, members = node.children
    kind = members.fields.get("dataType")
    if not isinstance(kind, dict) or members.kind != "Literal":
        return None
    return long_lists.listed(operand, members.source(), str(kind["elementType"]))


def _set(node: Node) -> Form:
    """Return IN with a set, which compares bits in the type to which the operand is cast."""
    (operand,) = node.children
    spelled = operand.fields.get("dataType")
    if operand.kind != "Cast" or not isinstance(spelled, str):
        raise UnsupportedOperation("InSet of values that are not cast to the type of its members")
    return long_lists.listed_set(operand, node.source(), spelled)


def _like(name: str, node: Node) -> Form:
    escape = str(node.source().escapeChar())
    if escape == "\\":  # which needs no ESCAPE
        return SparkCall(name, node.children)
    return SparkCall(name, (*node.children, column_words.constant(escape, "string")))


def _like_any(node: Node) -> Form:
    patterns = node.source().patterns()
    texts = [patterns.apply(place) for place in range(patterns.length())]
    if None in texts:
        raise UnsupportedOperation("LIKE ANY with NULL has no counterpart in Rowsieve")
    text, *_ = node.children
    whole: Form | None = None
    for item in texts:
        term = SparkCall("like", (text, column_words.constant(str(item), "string")))
        whole = term if whole is None else SparkCall("or", (whole, term))
    assert whole is not None
    return whole


def _trim(node: Node) -> Form:
    return SparkCall(TRIMS[node.kind], node.children[::-1])  # the function has the text last


def _cast(node: Node) -> Form:
    spelled = node.fields["dataType"]
    target = type_named(spelled)
    if target is None:
        raise UnsupportedOperation(f"a cast to {spelled} has no type in Rowsieve")
    is_try = str(node.source().evalMode().toString()) == "TRY"
    return column_words.CastTo(node.children[0], target, is_try=is_try)


def _case(node: Node) -> Form:
    pairs = list(node.children)
    last = pairs.pop() if len(pairs) % 2 else None
    return column_words.Choice(list(zip(pairs[::2], pairs[1::2], strict=True)), last)


def _member(node: Node) -> Form:
    """Return a struct field that Spark has resolved, such as `frame["st.x"]`."""
    struct = node.source()
    name = struct.child().dataType().apply(struct.ordinal()).name()
    return column_words.Member(node.children[0], column_words.constant(str(name), "string"))


def _literal(node: Node) -> Form:
    spelled, value = node.fields["dataType"], node.fields["value"]
    if not isinstance(spelled, str):
        raise UnsupportedOperation("a list, map or struct as a constant has no type in Rowsieve")
    if value is None:
        return column_words.constant(None, spelled)
    match type_named(spelled):
        case Date() | Timestamp() | Int():
            value = int(node.source().value() if spelled.startswith(("date", "time")) else value)
        case Time():
            value = int(node.source().value()) // 1000  # Spark counts nanoseconds
        case Binary():
            value = bytes(node.source().value())
        case Bool():
            value = value == "true"
        case Float():
            value = float(value)
        case Decimal(scale=scale):
            with decimal.localcontext(prec=60):
                value = decimal.Decimal(value).quantize(decimal.Decimal(1).scaleb(-scale))
    return column_words.constant(value, spelled)


# By class: its syntax in Spark SQL, and its form.
_FORMS: Mapping[str, tuple[str, Callable[[Node], Form]]] = {
    "UnresolvedAttribute": ("a name", _name),
    "UnresolvedFunction": ("a call or an operator", _function),
    "UnresolvedExtractValue": ("value[key]", lambda node: column_words.Member(*node.children)),
    "GetStructField": ("struct[name]", _member),
    "Literal": ("a constant with its type", _literal),
    "InSet": ("IN", _set),
    "Cast": ("CAST, TRY_CAST", _cast),
    "CaseWhen": ("CASE", _case),
    "Like": ("LIKE", partial(_like, "like")),
    "ILike": ("ILIKE", partial(_like, "ilike")),
    "LikeAny": ("OR of LIKE", _like_any),
    **{kind: (name, _trim) for kind, name in TRIMS.items()},
}
_WITHOUT_SYNTAX = {"AttributeReference": "a name", "Alias": "the expression itself"}
ROWS: tuple[Row, ...] = (
    *(
        Row(kind, said, Exactness.EXACT, Exactness.UNSUPPORTED, "written as SQL text")
        for kind, said in {
            **OF_COLUMNS,
            **{kind: said for kind, (said, _) in _FORMS.items() if kind != "InSet"},
            **_WITHOUT_SYNTAX,
        }.items()
    ),
    Row("InSet", "IN", Exactness.EXACT, Exactness.EXACT, "long lists"),
    *(
        Row(kind, "", Exactness.UNSUPPORTED, Exactness.UNSUPPORTED, reason)
        for kind, reason in _REFUSED.items()
    ),
)
