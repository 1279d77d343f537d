"""Logical plans of a classic Spark session, made in its JVM.

These classes are internal to Spark: this module alone names them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import types as spark


def frame_of(session: Any, plan: Any) -> Any:
    """The DataFrame of a logical plan."""
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - not on a Connect client

    java = session._jvm.org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan)
    return DataFrame(java, session)


def sequence(session: Any, items: list[Any]) -> Any:
    """A sequence of Scala's."""
    return session._jvm.PythonUtils.toSeq(items)


def longs_frame(session: Any, name: str, values: bytes) -> Any:
    """A frame of one row with one column: an array of big-endian longs, as one block of memory.

    Plans print it by the column's name alone, and nothing is run to read it.
    """
    jvm = session._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst
    array = session.sparkContext._gateway.new_array(jvm.long, len(values) // 8)
    jvm.java.nio.ByteBuffer.wrap(values).asLongBuffer().get(array)
    cells = session.sparkContext._gateway.new_array(jvm.Object, 1)
    cells[0] = catalyst.expressions.UnsafeArrayData.fromPrimitiveArray(array)
    row = catalyst.expressions.GenericInternalRow(cells)
    schema = spark.StructType(
        [spark.StructField(name, spark.ArrayType(spark.LongType(), containsNull=False))]
    )
    output = catalyst.types.DataTypeUtils.toAttributes(
        session._jsparkSession.parseDataType(schema.json())
    )
    rows, is_streaming, stream = sequence(session, [row]), False, jvm.scala.Option.empty()
    relation = catalyst.plans.logical.LocalRelation(output, rows, is_streaming, stream)
    return frame_of(session, relation)
