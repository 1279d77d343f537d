"""A rule of the session's optimiser: Spark's Parquet reader gets no bound that Java would shift.

Spark hands the conditions of a query to its Parquet reader, to skip row groups. It writes dates and
instants as `java.sql.Date` and `java.sql.Timestamp`, unless `spark.sql.datetime.java8API.enabled`
is true. These have the calendar of before 1582: a bound that does not exist in it, such as 10
October 1582 in the zone of the JVM, becomes a later one, and row groups with matching rows are
skipped (seen in 4.3.0, also for plain Parquet files). So may an instant whose local time the zone
had twice before 1900.

The rule hides such bounds of our scans in an expression that changes nothing, and which Spark does
not hand to the reader. It also hides the results of scalar subqueries, which are not known yet.
All other bounds skip row groups as before.

Soundness: whether Java shifts a bound is found by converting it there and back, in the JVM that
would convert it. A scan whose values cannot lie between a bound and a shifted one needs no rule.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any, Final

from py4j.protocol import Py4JError

from rowsieve.planner.plan_scan import plan_scan
from rowsieve.predicate import ir
from rowsieve.predicate.comparison_op import ComparisonOp
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.native_files.planned_parts import read_parts
from rowsieve.providers.spark.plans import UnknownInternals, add_optimizer_rule
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Date, Field, List, LogicalType, Map, Struct, Timestamp

OLD_TIMES: Final = "rowsieve.old_times"
"""The option of a scan whose conditions the rule changes."""
_EPOCH: Final = datetime.date(1970, 1, 1)
_FIRST_DAY: Final = (datetime.date(1582, 10, 1) - _EPOCH).days
_LAST_DAY: Final = (datetime.date(1900, 1, 2) - _EPOCH).days
"""Bounds that Java shifts, and the shifted ones, are between these days, whatever the zone.

All instants around the changes of 631 zones were converted by 4.3.0; from 1900 on it shifts none.
"""
_DAY_US: Final = 24 * 60 * 60 * 1_000_000
_NAME: Final = "RowsieveHidesShiftedBounds"
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
    Expression condition = hidden(filter.condition());
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

  /** The condition, in which no bound that may be shifted is an operand by itself. */
  private static Expression hidden(Expression expression) {{
    if (expression instanceof KnownNullable) return expression;
    if (isShifted(expression)) return new KnownNullable(expression);
    if (expression instanceof InSet) return hiddenSet((InSet) expression);
    boolean isChanged = false;
    ArrayList children = new ArrayList();
    scala.collection.Iterator each = expression.children().iterator();
    while (each.hasNext()) {{
      Expression old = (Expression) each.next();
      Expression child = hidden(old);
      isChanged |= child != old;
      children.add(child);
    }}
    return isChanged ? (Expression) expression.withNewChildren(sequence(children)) : expression;
  }}

  private static Expression hiddenSet(InSet set) {{
    if (set.child() instanceof KnownNullable) return set;
    scala.collection.Iterator values = set.hset().iterator();
    while (values.hasNext()) {{
      if (isShifted(values.next(), set.child().dataType())) {{
        return new InSet(new KnownNullable(set.child()), set.hset());
      }}
    }}
    return set;
  }}

  private static boolean isShifted(Expression expression) {{
    DataType type = expression.dataType();
    if (expression instanceof Literal) return isShifted(((Literal) expression).value(), type);
    return expression instanceof PlanExpression
        && (type instanceof DateType || type instanceof TimestampType);
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


def hides_shifted_bounds(session: Any) -> bool:
    """Add the rule to the session, once; return whether it has the rule."""
    try:
        add_optimizer_rule(session, _NAME, _TEXT)
    except (Py4JError, UnknownInternals):
        return False
    return True


def may_have_old_times(snapshot: Snapshot, columns: Iterable[Field]) -> bool:
    """Whether a row of the version may have a value between a bound and the shifted one.

    Reads no file. Values inside another column are not known, and count as old.
    """
    conditions = []
    for column in columns:
        match column.type:
            case Date():
                conditions.append(_between(column, _FIRST_DAY, _LAST_DAY))
            case Timestamp(utc=True):
                conditions.append(_between(column, _FIRST_DAY * _DAY_US, _LAST_DAY * _DAY_US))
            case _ if _has_times(column.type):
                return True
    if not conditions:
        return False
    plan = plan_scan(
        snapshot,
        "",
        predicate=ir.disjoin(conditions),
        semantics=Semantics.SPARK,
        now_us=0,
        in_process=False,
    )
    return bool(read_parts(plan))


def _between(column: Field, first: int, last: int) -> ir.Predicate:
    operand = ir.Column(column.name)
    return ir.conjoin(
        (
            ir.Comparison(ComparisonOp.GE, operand, ir.Literal(first, column.type)),
            ir.Comparison(ComparisonOp.LE, operand, ir.Literal(last, column.type)),
        )
    )


def _has_times(type_: LogicalType) -> bool:
    """Whether values of the type contain dates or instants."""
    match type_:
        case Date() | Timestamp(utc=True):
            return True
        case List(element=element):
            return _has_times(element.type)
        case Map(key=key, value=value):
            return _has_times(key.type) or _has_times(value.type)
        case Struct(fields=fields):
            return any(_has_times(each.type) for each in fields)
        case _:
            return False
