"""Keeps bounds that Java would shift from Spark's Parquet reader.

Spark hands the conditions of a query to its Parquet reader, to skip row groups. It writes dates and
instants as `java.sql.Date` and `java.sql.Timestamp`, unless `spark.sql.datetime.java8API.enabled`
is true. These have the calendar of before 1582: a bound that does not exist in it, such as 10
October 1582 in the zone of the JVM, becomes a later one, and row groups with matching rows are
skipped (seen in 4.3.0, also for plain Parquet files). So may an instant whose local time the zone
had twice before 1900.

A scan of ours shows a column that may have such values in an expression that changes nothing, and
whose conditions Spark does not hand to the reader. A rule of the session's optimiser removes the
expression from conditions all of whose bounds stay as they are, so that they skip row groups.

Soundness: without the rule, as in another session that reads a view of this one, nothing is skipped
by these columns. Whether Java shifts a bound is found by converting it there and back, in the JVM
that would convert it; results of subqueries are not known yet, and count as shifted.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

from py4j.protocol import Py4JError

from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.providers.spark.plans import (
    UnknownInternals,
    add_optimizer_rule,
    column_of,
    internal_class,
)
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Date, Field, LogicalType, Struct, Timestamp

OLD_TIMES: Final = "rowsieve.old_times"
"""The option of a scan whose conditions the rule changes."""
_LOG: Final = logging.getLogger("rowsieve")
_EPOCH: Final = datetime.date(1970, 1, 1)
_FIRST_DAY: Final = (datetime.date(1582, 10, 1) - _EPOCH).days
_LAST_DAY: Final = (datetime.date(1900, 1, 2) - _EPOCH).days
"""Bounds that Java shifts, and the shifted ones, are between these days, whatever the zone.

All instants around the changes of 631 zones were converted by 4.3.0; from 1900 on it shifts none.
"""
_DAY_US: Final = 24 * 60 * 60 * 1_000_000
_NAME: Final = "RowsievePushesExactBounds"
_TEXT: Final = f"""
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.catalyst.util.DateTimeUtils;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DateType;
import org.apache.spark.sql.types.TimestampType;

public Object generate(Object[] references) {{
  return new {_NAME}();
}}

public static final class {_NAME} extends org.apache.spark.sql.catalyst.rules.Rule {{

  public TreeNode apply(TreeNode plan) {{
    return rewritten((LogicalPlan) plan);
  }}

  private static LogicalPlan rewritten(LogicalPlan plan) {{
    boolean isChanged = false;
    ArrayList children = new ArrayList();
    scala.collection.Iterator each = plan.children().iterator();
    while (each.hasNext()) {{
      LogicalPlan old = (LogicalPlan) each.next();
      LogicalPlan child = rewritten(old);
      isChanged |= child != old;
      children.add(child);
    }}
    if (isChanged) plan = (LogicalPlan) plan.withNewChildren(sequence(children));
    if (!(plan instanceof Filter) || !hasOldTimes(plan)) return plan;
    Filter filter = (Filter) plan;
    Expression condition = pushable(filter.condition());
    return condition == filter.condition() ? plan : new Filter(condition, filter.child());
  }}

  /** Whether filters and projections stand directly on a scan of ours with this option. */
  private static boolean hasOldTimes(LogicalPlan plan) {{
    while (plan instanceof Filter || plan instanceof Project) {{
      plan = (LogicalPlan) plan.children().head();
    }}
    if (!(plan instanceof LogicalRelation)) return false;
    Object relation = ((LogicalRelation) plan).relation();
    return relation instanceof HadoopFsRelation
        && ((HadoopFsRelation) relation).options().contains("{OLD_TIMES}");
  }}

  /** The condition, with the columns themselves in the parts that compare them exactly. */
  private static Expression pushable(Expression condition) {{
    if (condition instanceof And || condition instanceof Or || condition instanceof Not) {{
      return withChildren(condition, false);
    }}
    return isExact(condition) ? shown(condition) : condition;
  }}

  private static Expression shown(Expression expression) {{
    if (expression instanceof KnownNullable) return ((KnownNullable) expression).child();
    return withChildren(expression, true);
  }}

  private static Expression withChildren(Expression expression, boolean isPart) {{
    boolean isChanged = false;
    ArrayList children = new ArrayList();
    scala.collection.Iterator each = expression.children().iterator();
    while (each.hasNext()) {{
      Expression old = (Expression) each.next();
      Expression child = isPart ? shown(old) : pushable(old);
      isChanged |= child != old;
      children.add(child);
    }}
    return isChanged ? (Expression) expression.withNewChildren(sequence(children)) : expression;
  }}

  /** Whether no bound in the expression may be shifted. */
  private static boolean isExact(Expression expression) {{
    if (expression instanceof PlanExpression) return false;
    if (expression instanceof Literal) {{
      return !isShifted(((Literal) expression).value(), expression.dataType());
    }}
    if (expression instanceof InSet) {{
      DataType type = ((InSet) expression).child().dataType();
      scala.collection.Iterator values = ((InSet) expression).hset().iterator();
      while (values.hasNext()) {{
        if (isShifted(values.next(), type)) return false;
      }}
    }}
    scala.collection.Iterator each = expression.children().iterator();
    while (each.hasNext()) {{
      if (!isExact((Expression) each.next())) return false;
    }}
    return true;
  }}

  private static boolean isShifted(Object value, DataType type) {{
    if (value == null) return false;
    if (type instanceof DateType) {{
      int days = ((Integer) value).intValue();
      return DateTimeUtils.fromJavaDate(DateTimeUtils.toJavaDate(days)) != days;
    }}
    if (!(type instanceof TimestampType)) return false;
    long micros = ((Long) value).longValue();
    return DateTimeUtils.fromJavaTimestamp(DateTimeUtils.toJavaTimestamp(micros)) != micros;
  }}

  private static scala.collection.immutable.Seq sequence(ArrayList items) {{
    return scala.jdk.javaapi.CollectionConverters.asScala((java.util.List) items).toSeq();
  }}
}}
"""


def push_exact_bounds(session: Any) -> None:
    """Add the rule to the session, once; without it such columns skip no row groups."""
    try:
        add_optimizer_rule(session, _NAME, _TEXT)
    except (Py4JError, UnknownInternals) as error:
        _warn(str(session.version), f"{type(error).__name__}: {error}")


def hidden_from_reader(session: Any, column: Any) -> Any:
    """The column, in an expression that Spark's reader does not get."""
    expression = internal_class(session, "classic.ExpressionUtils").expression(column._jc)
    known = internal_class(session, "catalyst.expressions.KnownNullable")(expression)
    return column_of(session, known)


def columns_of_old_times(snapshot: Snapshot, columns: Iterable[Field]) -> frozenset[str]:
    """The columns in which a row of the version may have a value that is or equals such a bound.

    Reads no file. Fields of structs count; Spark hands no condition on items of lists to a reader.
    """
    conditions = {
        column.name: ir.disjoin(found)
        for column in columns
        if (found := list(_conditions(ir.Column(column.name), column.type)))
    }
    if not conditions or not _may_match(snapshot, ir.disjoin(conditions.values())):
        return frozenset()
    return frozenset(name for name, each in conditions.items() if _may_match(snapshot, each))


def _may_match(snapshot: Snapshot, condition: ir.Predicate) -> bool:
    """Whether a part may have a row that matches, by the bounds of the manifest."""
    plan = plan_scan(
        snapshot,
        "",
        predicate=condition,
        semantics=Semantics.SPARK,
        now_us=0,
        in_process=False,
    )
    return bool(read_parts(plan))


def _conditions(operand: ir.Operand, type_: LogicalType) -> Iterator[ir.Predicate]:
    match type_:
        case Date():
            yield _between(operand, type_, 1)
        case Timestamp(utc=True):
            yield _between(operand, type_, _DAY_US)
        case Struct(fields=fields):
            for each in fields:
                yield from _conditions(ir.FieldAccess(operand, each.name), each.type)
        case _:
            pass


def _between(operand: ir.Operand, type_: LogicalType, day: int) -> ir.Predicate:
    """`day`: how many units of the type a day has."""
    return ir.conjoin(
        ir.Comparison(op, operand, ir.Literal(bound * day, type_))
        for op, bound in ((ComparisonOp.GE, _FIRST_DAY), (ComparisonOp.LE, _LAST_DAY))
    )


@lru_cache(maxsize=16)
def _warn(version: str, detail: str) -> None:
    """Log a warning, once for each error."""
    _LOG.warning("Spark %s does not take the rule for bounds of old times: %s", version, detail)
