"""Long lists of constants in one piece: the set that Spark's optimizer makes of an IN list.

Constant by constant, a list costs calls into the JVM, and its analyser runs out of memory before a
million; a set crosses as one Arrow array. Soundness: a set is compared bit for bit with values of
one type, so the operand is cast to the type that the members have.
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rowsieve.bridges.spark_columns.sessions import active_session
from rowsieve.bridges.spark_columns.types import ddl_of, held_type, spark_type
from rowsieve.predicate.ir import ValueSet
from rowsieve.predicate.limits import MAX_DEPTH
from rowsieve.types.encodings import arrow_type
from rowsieve.types.logical import LogicalType, Uuid

SHORT = 100  # constants that are written and read one by one


def in_set(operand: Any, values: ValueSet, type_: LogicalType) -> Any:
    """The classic column `operand IN values`, of constants of this flat type."""
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - an extra

    session = active_session()
    columns = session._jvm.org.apache.spark.sql.classic.ExpressionUtils
    expressions = session._jvm.org.apache.spark.sql.catalyst.expressions
    same_type = columns.expression(operand.cast(ddl_of(type_))._jc)
    members = _in_java(session, _held(values.array, type_), type_)
    return Column(columns.column(expressions.InSet(same_type, members)))


def with_sets(jvm: Any, expression: Any, depth: int = 0) -> Any:
    """The analysed expression with a set for each long list of constants in it."""
    catalyst = jvm.org.apache.spark.sql.catalyst
    pattern = catalyst.trees.TreePattern.IN()
    if depth > MAX_DEPTH or not expression.containsPattern(pattern):
        return expression
    if _name(expression) == "In" and expression.list().length() > SHORT:
        members = _computed(catalyst, expression.list())
        operand = with_sets(jvm, expression.value(), depth + 1)
        return expression if members is None else catalyst.expressions.InSet(operand, members)
    children = [expression.children().apply(at) for at in range(expression.children().length())]
    found = [with_sets(jvm, child, depth + 1) for child in children]
    if all(new is old for new, old in zip(found, children, strict=True)):
        return expression
    return expression.withNewChildren(jvm.PythonUtils.toSeq(found))


def members_of(in_set: Any, type_: LogicalType) -> pa.Array:
    """The members of a set that Spark compares values of this type with, ascending."""
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - an extra

    session = active_session()
    spark = session._jvm.org.apache.spark.sql
    java_type = spark.types.ArrayType(in_set.child().dataType(), True)  # noqa: FBT003 - Java's
    array = spark.catalyst.util.GenericArrayData(in_set.hset().toSeq())
    constant = spark.catalyst.expressions.Literal(array, java_type)
    column = Column(spark.classic.ExpressionUtils.column(constant))
    (listed,) = session.sql("SELECT 1").select(column.alias("members")).toArrow()["members"].chunks
    return _sorted(listed.values.cast(arrow_type(type_)))


def _sorted(array: pa.Array) -> pa.Array:
    return array.take(pc.sort_indices(array))  # a set has no order that means anything


def _held(array: pa.Array, type_: LogicalType) -> pa.Array:
    """The constants in the type that Spark has for them."""
    if isinstance(type_, Uuid):
        texts = (
            None if value is None else str(uuid.UUID(bytes=value)) for value in array.to_pylist()
        )
        return pa.array(texts, pa.string())
    return array.cast(arrow_type(held_type(type_)))


def _in_java(session: Any, array: pa.Array, type_: LogicalType) -> Any:
    """The values as a set of Spark's own, NULL among them if it is there."""
    from pyspark.sql import types as spark  # noqa: PLC0415 - an extra

    whole = pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)
    element = spark_type(type_)
    schema = spark.StructType([spark.StructField("members", spark.ArrayType(element))])
    frame = session.createDataFrame(pa.table({"members": whole}), schema)
    (row,) = frame._jdf.queryExecution().executedPlan().executeCollect()
    java_type = frame._jdf.schema().apply(0).dataType().elementType()
    return row.getArray(0).toSeq(java_type).toSet()


def _computed(catalyst: Any, members: Any) -> Any:
    """The set of expressions of one type; None if they are no constants, or one has no value."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - an extra
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra

    array = catalyst.expressions.CreateArray(members, False)  # noqa: FBT003 - Java's
    if not array.foldable():
        return None
    try:
        return array.eval(None).toSeq(array.dataType().elementType()).toSet()
    except (Py4JError, PySparkException):  # the reader of single constants says why
        return None


def _name(java: Any) -> str:
    return str(java.getClass().getSimpleName())
