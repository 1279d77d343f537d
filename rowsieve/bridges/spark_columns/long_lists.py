"""Write and read long lists of constants as `InSet`, to which Spark's optimizer converts IN lists.

A list of single constants costs calls into the JVM for each, and Spark's analyser runs out of
memory before a million; a set is passed as one Arrow array.

Soundness: a set compares the bits of values of one type, so the operand is cast to that type.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.spark_columns.java_classes import scala_seq, spark_class
from rowsieve.bridges.spark_columns.sessions import active_session
from rowsieve.bridges.spark_columns.types import spark_type
from rowsieve.bridges.sql.spark.column_words import Form, SparkCall, SparkList, constant
from rowsieve.bridges.sql.spark.type_names import ddl_of, held_type, type_named
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.ir import ValueSet
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import Date, Float, Int, LogicalType, String, Time, Timestamp, Uuid

SHORT = 100  # longer lists are written and read in one step
# Types of constants in long lists, by Spark's names, and the types of our lists of them.
LISTED: Mapping[str, LogicalType] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), Int(64)),
    "double": Float(64),
    "string": String(),
    "date": Date(),
}
_PLAIN = {Date: pa.int32(), Time: pa.int64(), Timestamp: pa.int64()}


def in_set(operand: Any, values: ValueSet, type_: LogicalType) -> Any:
    """Return the classic column `operand IN values` for constants of a flat type."""
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - an extra

    session = active_session()
    columns = spark_class(session, "classic.ExpressionUtils")
    in_set_class = spark_class(session, "catalyst.expressions.InSet")
    same_type = columns.expression(operand.cast(ddl_of(type_))._jc)
    members = _in_java(session, _stored_array(values.array, type_), type_)
    return Column(columns.column(in_set_class(same_type, members)))


def with_arrays(session: Any, expression: Any, depth: int = 0) -> Any:
    """Replace each long IN list of constants of one type by one array."""
    if depth > MAX_DEPTH or expression.collectLeaves().length() <= SHORT:
        return expression
    below = expression.children()
    count = below.length()
    if count > SHORT + 1 and _is_in(expression):
        if (array := _computed(session, below.tail())) is None:
            return expression
        operand = with_arrays(session, below.head(), depth + 1)
        return spark_class(session, "catalyst.expressions.In")(operand, scala_seq(session, [array]))
    children = [below.apply(place) for place in range(count)]
    new_children = [with_arrays(session, child, depth + 1) for child in children]
    if all(new is old for new, old in zip(new_children, children, strict=True)):
        return expression
    return expression.withNewChildren(scala_seq(session, new_children))


def listed(operand: Any, array: Any, spelled: str) -> Form:
    """Return IN with the members of an array literal in Java, whose elements have the named type.

    Members of most types are written one by one, because Spark may cast them.
    """
    type_ = _flat_type(spelled)
    values = _members(array, type_)
    if spelled in LISTED:
        wide = LISTED[spelled]
        return SparkList(operand, ValueSet(values.cast(arrow_type(wide)), wide))
    plain = values.view(_PLAIN.get(type(type_), arrow_type(type_)))
    return SparkCall("in", (operand, *(constant(value, spelled) for value in plain.to_pylist())))


def listed_set(operand: Any, in_set: Any, spelled: str) -> Form:
    """Return IN with the members of Spark's set, ascending, which have the named type."""
    session = active_session()
    array_type, array_data, literal = (
        spark_class(session, name)
        for name in (
            "types.ArrayType",
            "catalyst.util.GenericArrayData",
            "catalyst.expressions.Literal",
        )
    )
    java_type = array_type(in_set.child().dataType(), True)  # noqa: FBT003 - Java's
    array = array_data(in_set.hset().toSeq())
    type_ = _flat_type(spelled)
    values = _members(literal(array, java_type), type_)
    ordered = values.take(pc.sort_indices(values))  # the order of a set is arbitrary
    return SparkList(operand, ValueSet(ordered, type_), typed=True)


def _flat_type(spelled: str) -> LogicalType:
    type_ = type_named(spelled)
    if type_ is None:
        raise UnsupportedOperation(f"a list of constants of type {spelled} has no type in Rowsieve")
    return type_


def _members(array: Any, type_: LogicalType) -> pa.Array:
    """Return the members of an array literal in the JVM."""
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - an extra

    session = active_session()
    to_column = spark_class(session, "classic.ExpressionUtils").column
    column = Column(to_column(array)).alias("members")
    (chunk,) = session.sql("SELECT 1").select(column).toArrow()["members"].chunks
    return chunk.values.cast(arrow_type(type_))


def _stored_array(array: pa.Array, type_: LogicalType) -> pa.Array:
    """Convert the constants to Spark's type for them."""
    if isinstance(type_, Uuid):
        texts = (
            None if value is None else str(uuid.UUID(bytes=value)) for value in array.to_pylist()
        )
        return pa.array(texts, pa.string())
    return array.cast(arrow_type(held_type(type_)))


def _in_java(session: Any, array: pa.Array, type_: LogicalType) -> Any:
    """Convert the values, NULL included, to Spark's set."""
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra

    whole = pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)
    element = spark_type(type_)
    schema = spark.StructType([spark.StructField("members", spark.ArrayType(element))])
    frame = session.createDataFrame(pa.table({"members": whole}), schema)
    (row,) = frame._jdf.queryExecution().executedPlan().executeCollect()
    java_type = frame._jdf.schema().apply(0).dataType().elementType()
    return row.getArray(0).toSeq(java_type).toSet()


def _is_in(expression: Any) -> bool:
    kind = expression.getClass().getSimpleName()
    if kind == "UnresolvedFunction":
        return str(expression.nameParts().mkString(".")) == "in"
    return str(kind) == "In"


def _computed(session: Any, members: Any) -> Any:
    """Return an array literal of constants of one type; None for others, and if one fails."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    create = spark_class(session, "catalyst.expressions.CreateArray")
    array = create(members, False)  # noqa: FBT003 - Java's
    if not array.foldable():
        return None
    try:
        if not array.checkInputDataTypes().isSuccess():
            return None
        literal = spark_class(session, "catalyst.expressions.Literal")
        return literal(array.eval(None), array.dataType())
    except (Py4JError, PySparkException):  # its constants are read one by one
        return None
