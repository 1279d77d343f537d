"""Logical plans of a classic Spark session, made in its JVM.

These classes are internal to Spark: only this module names them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from py4j.java_gateway import JavaPackage
from pyspark.sql import types as spark

from rowsieve.bridges.spark_columns.java_classes import java_class, scala_seq, spark_class
from rowsieve.errors import UnsupportedOperation

_LEAF: Final = "opaque leaf "
_LOCAL_RELATION: Final = "catalyst.plans.logical.LocalRelation"


_READS: Final = "org.apache.spark.sql.execution.datasources."
_KEEP_ORDER: Final = tuple(
    f"org.apache.spark.sql.catalyst.plans.logical.{name}" for name in ("Project", "Filter")
)


@dataclass(frozen=True, slots=True)
class FileSpan:
    """Bytes of a file that one task reads; `path` is a URI whose characters are not escaped."""

    path: str
    start: int
    size_bytes: int

    @property
    def stop(self) -> int:
        """The end of the bytes."""
        return self.start + self.size_bytes


class UnknownInternals(UnsupportedOperation):
    """Spark lacks a class that is known here."""


def frame_of(session: Any, plan: Any) -> Any:
    """The DataFrame of a logical plan."""
    from pyspark.sql.classic.dataframe import DataFrame  # noqa: PLC0415 - not on a Connect client

    java = internal_class(session, "classic.Dataset").ofRows(session._jsparkSession, plan)
    return DataFrame(java, session)


def column_of(session: Any, expression: Any) -> Any:
    """The Column of an expression, resolved or as the parser returns it."""
    from pyspark.sql.classic.column import Column  # noqa: PLC0415 - not on a Connect client

    return Column(internal_class(session, "classic.ExpressionUtils").column(expression))


def parsed_plan(session: Any, statement: str) -> Any:
    """The plan of a statement as Spark's parser returns it: nothing is looked up."""
    return session._jsparkSession.sessionState().sqlParser().parsePlan(statement)


def sequence(session: Any, items: list[Any]) -> Any:
    """A Scala sequence of these items."""
    return scala_seq(session, items)


def longs_frame(session: Any, name: str, values: bytes) -> Any:
    """A frame of one row with one column: an array of big-endian longs, as one block of memory.

    Plans print only the column's name, and nothing is run to read it.
    """
    jvm = session._jvm
    unsafe_array, generic_row = (
        internal_class(session, f"catalyst.expressions.{name}")
        for name in ("UnsafeArrayData", "GenericInternalRow")
    )
    array = session.sparkContext._gateway.new_array(jvm.long, len(values) // 8)
    java_class(jvm, "java.nio.ByteBuffer").wrap(values).asLongBuffer().get(array)
    cells = session.sparkContext._gateway.new_array(jvm.Object, 1)
    cells[0] = unsafe_array.fromPrimitiveArray(array)
    row = generic_row(cells)
    schema = spark.StructType(
        [spark.StructField(name, spark.ArrayType(spark.LongType(), containsNull=False))]
    )
    output = _attributes(session, schema)
    rows, is_streaming, stream = sequence(session, [row]), False, _none(session)
    relation = internal_class(session, _LOCAL_RELATION)(output, rows, is_streaming, stream)
    return frame_of(session, relation)


def row_numbers_name(session: Any) -> str:
    """The name of the column that Spark's Parquet reader fills with the numbers of the rows."""
    reader = internal_class(session, "execution.datasources.parquet.ParquetFileFormat")
    return str(reader.ROW_INDEX_TEMPORARY_COLUMN_NAME())


def empty_frame(session: Any, schema: spark.StructType) -> Any:
    """A frame without rows, which Spark's optimiser knows to be empty; all columns may be NULL."""
    is_streaming, stream = False, _none(session)
    relation = internal_class(session, _LOCAL_RELATION)(
        _attributes(session, schema, nullable=True), sequence(session, []), is_streaming, stream
    )
    return frame_of(session, relation)


def opaque_leaf(session: Any, name: str, output: Any) -> Any:
    """A leaf with these attributes that the optimiser knows nothing about; `leaf_name` finds it."""
    rows = session._jsc.emptyRDD().setName(_LEAF + name).rdd()
    unknown = internal_class(session, "catalyst.plans.physical.UnknownPartitioning")(0)
    none, off = _none(session), False
    return internal_class(session, "execution.LogicalRDD")(
        output,
        rows,
        unknown,
        sequence(session, []),
        off,
        none,
        session._jsparkSession,
        none,
        none,
        off,
    )


def unknown_value(session: Any, name: str, type_: spark.DataType) -> Any:
    """A scalar subquery of this type, over an opaque leaf of this name."""
    schema = spark.StructType([spark.StructField("value", type_)])
    leaf = frame_of(session, opaque_leaf(session, name, _attributes(session, schema)))
    row = session.range(1).select(leaf.scalar().alias("value"))
    return row._jdf.queryExecution().analyzed().projectList().apply(0).child()


def leaf_name(plan: Any) -> str | None:
    """The name of an opaque leaf; copies of it that the optimiser made have the same."""
    if class_of(plan) != "org.apache.spark.sql.execution.LogicalRDD":
        return None
    name = str(plan.rdd().name())  # `null` if it has none
    return name.removeprefix(_LEAF) if name.startswith(_LEAF) else None


def renamed(session: Any, plan: Any, output: Any) -> Any:
    """The plan with the names and identities of these attributes, by position."""
    alias = internal_class(session, "catalyst.expressions.Alias")
    none, nothing = _none(session), sequence(session, [])
    aliases = [
        alias(new, old.name(), old.exprId(), nothing, none, nothing)
        for new, old in zip(items(plan.output()), items(output), strict=True)
    ]
    return internal_class(session, "catalyst.plans.logical.Project")(
        sequence(session, aliases), plan
    )


def add_optimizer_rule(session: Any, name: str, text: str) -> None:
    """Add a rule to the end of the session's optimiser, unless it has one of this name.

    `text`: Java that Spark's compiler for generated code takes: a class of this name, and a method
    `generate` that returns an instance of it.
    """
    methods = session._jsparkSession.experimental()
    rules = methods.extraOptimizations()
    names = [str(rule.ruleName()) for rule in items(rules)]
    if any(each.endswith(name) for each in names):
        return
    comments = java_class(session._jvm, "scala.collection.immutable.HashMap")()
    code = internal_class(session, "catalyst.expressions.codegen.CodeAndComment")(text, comments)
    compiler = internal_class(session, "catalyst.expressions.codegen.CodeGenerator")
    rule = _generated(session, compiler.compile(code)._1())
    getattr(methods, "extraOptimizations_$eq")(rules.appended(rule))


def _generated(session: Any, generator: Any) -> Any:
    """The result of `generate`.

    All classes that Spark compiles have one name, and Py4J would call the method of another one.
    """
    arguments = session.sparkContext._gateway.new_array(session._jvm.Object, 1)
    methods = generator.getClass().getMethods()
    (method,) = [each for each in methods if str(each.getName()) == "generate"]
    return method.invoke(generator, arguments)


def files_of_tasks(
    frame: Any, column: str, most_files: int
) -> tuple[str, list[list[FileSpan]]] | None:
    """The name of a column in the Parquet files of a frame, and the files that each task reads.

    None unless the frame only selects rows and columns of Parquet files, `column` is one of theirs,
    and the tasks read at most `most_files`. Spark plans the frame for this, and reads nothing.
    """
    if not hasattr(frame, "_jdf"):  # a client of Spark Connect has no plan
        return None
    execution = frame._jdf.queryExecution()
    plan = leaf = execution.optimizedPlan()
    while class_of(leaf) in _KEEP_ORDER:
        leaf = leaf.child()
    if class_of(leaf) != _READS + "LogicalRelation":
        return None
    files = leaf.relation()
    if class_of(files) != _READS + "HadoopFsRelation":
        return None
    if class_of(files.fileFormat()) != _READS + "parquet.ParquetFileFormat":
        return None
    ids = [out.exprId() for out in items(plan.output()) if out.name().lower() == column.lower()]
    stored = [attribute.name() for attribute in items(leaf.output()) if ids == [attribute.exprId()]]
    if len(stored) != 1:
        return None
    tasks: list[list[FileSpan]] = []
    for partition in execution.toRdd().partitions():
        most_files -= len(spans := partition.files())
        if most_files < 0:
            return None
        tasks.append([FileSpan(str(f.toPath()), f.start(), f.length()) for f in spans])
    return str(stored[0]), tasks


def replaced(session: Any, plan: Any, subtree: Callable[[Any], Any | None]) -> Any:
    """The plan with the subtrees that `subtree` gives for nodes; it is called parents first."""
    if (replacement := subtree(plan)) is not None:
        return replacement
    old = items(plan.children())
    new = [replaced(session, child, subtree) for child in old]
    if all(one is other for one, other in zip(old, new, strict=True)):
        return plan
    return plan.withNewChildren(sequence(session, new))


def arguments_of(session: Any, node: Any) -> Any:
    """A new array with the arguments that a plan or an expression was made of, for `makeCopy`."""
    objects = java_class(session._jvm, "scala.reflect.ClassTag").Object()
    return node.productIterator().toArray(objects)


def some(session: Any, value: Any) -> Any:
    """Scala's option with a value."""
    return java_class(session._jvm, "scala.Option").apply(value)


def items(sequence: Any) -> list[Any]:
    """The items of a Scala sequence."""
    return [sequence.apply(place) for place in range(sequence.length())]


def class_of(node: Any) -> str:
    """The full name of the class of a plan or an expression."""
    return str(node.getClass().getName())


def _attributes(session: Any, schema: spark.StructType, *, nullable: bool = False) -> Any:
    """New attributes of Spark's for these columns."""
    data_type = session._jsparkSession.parseDataType(schema.json())
    data_type = data_type.asNullable() if nullable else data_type
    return internal_class(session, "catalyst.types.DataTypeUtils").toAttributes(data_type)


def _none(session: Any) -> Any:
    """Scala's option without a value."""
    return java_class(session._jvm, "scala.Option").empty()


def internal_class(session: Any, name: str) -> Any:
    """A class in Spark's package of SQL."""
    sql_class = spark_class(session, name)
    if isinstance(sql_class, JavaPackage):
        raise UnknownInternals(f"Spark {session.version} has no class {name}")
    return sql_class
