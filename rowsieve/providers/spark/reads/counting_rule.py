"""A rule of the session's optimiser: a query that only counts rows needs no row numbers.

Spark drops the columns that a query does not use. Of a scan of files with hidden rows the row
numbers stay, which Spark fills one by one, because the condition on the bitmaps uses them. If the
query needs none of the table's columns, only how many rows there are, the rule replaces the visible
rows by a range of the same length. Files of the local disk must be there with their sizes;
otherwise the scan stays, and Spark reports what it does not find.

A rule is an instance of a class of Spark's. Spark compiles the text below on the driver, as it
compiles the code that it generates for each query; executors do not see it.

Soundness (invariant 26): only the filter on bitmaps directly below a projection or an aggregate
without columns is replaced. A query cannot name the two columns of that filter, so a condition, a
sample or a limit of the query is another operator or conjunct, and the scan stays. It also stays
everywhere below an expression that is not deterministic, such as the name of the current file: a
union, a sample or a generator may be between them.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import Any, Final

from py4j.protocol import Py4JError

from rowsieve.providers.spark.plans import UnknownInternals, add_optimizer_rule
from rowsieve.providers.spark.reads.file_names import FIRST_WORD, ROW_NUMBERS

VISIBLE_ROWS: Final = "rowsieve.visible_rows"
"""The option of a scan that holds the number of its visible rows."""
_NAME: Final = "RowsieveCountsVisibleRows"
_LOG: Final = logging.getLogger("rowsieve")
_TEXT: Final = f"""
import java.util.ArrayList;
import org.apache.spark.sql.catalyst.expressions.*;
import org.apache.spark.sql.catalyst.plans.logical.*;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;

public Object generate(Object[] references) {{
  return new {_NAME}();
}}

public static final class {_NAME} extends org.apache.spark.sql.catalyst.rules.Rule {{

  public TreeNode apply(TreeNode plan) {{
    return rewritten((LogicalPlan) plan);
  }}

  private static LogicalPlan rewritten(LogicalPlan plan) {{
    if (!isDeterministic(plan)) return plan;
    boolean onlyCounts = (plan instanceof Project || plan instanceof Aggregate)
        && plan.references().isEmpty();
    boolean isChanged = false;
    ArrayList children = new ArrayList();
    scala.collection.Iterator each = plan.children().iterator();
    while (each.hasNext()) {{
      LogicalPlan old = (LogicalPlan) each.next();
      LogicalPlan child = onlyCounts ? counted(old) : null;
      if (child == null) child = rewritten(old);
      isChanged |= child != old;
      children.add(child);
    }}
    return isChanged ? (LogicalPlan) plan.withNewChildren(sequence(children)) : plan;
  }}

  /** Whether no expression of the node itself depends on where it is evaluated. */
  private static boolean isDeterministic(LogicalPlan plan) {{
    scala.collection.Iterator each = plan.expressions().iterator();
    while (each.hasNext()) {{
      if (!((Expression) each.next()).deterministic()) return false;
    }}
    return true;
  }}

  /** As many rows without columns as the filter keeps; null if it is not one on bitmaps alone. */
  private static LogicalPlan counted(LogicalPlan plan) {{
    if (!(plan instanceof Filter)) return null;
    Filter filter = (Filter) plan;
    String rows = visibleRows(filter.child());
    if (rows == null || !isOnBitmaps(filter.condition())) return null;
    LogicalPlan range = Range$.MODULE$.apply(0L, Long.parseLong(rows), 1L,
        scala.Option.empty(), Range$.MODULE$.apply$default$5(), false);
    return new Project(sequence(new ArrayList()), range);
  }}

  /** The number of visible rows of a scan of ours; null if a file on the local disk is missing. */
  private static String visibleRows(LogicalPlan plan) {{
    if (!(plan instanceof LogicalRelation)) return null;
    Object relation = ((LogicalRelation) plan).relation();
    if (!(relation instanceof HadoopFsRelation)) return null;
    scala.Option rows = ((HadoopFsRelation) relation).options().get("{VISIBLE_ROWS}");
    return rows.isEmpty() || isDamaged(((HadoopFsRelation) relation).location())
        ? null : (String) rows.get();
  }}

  private static boolean isDamaged(FileIndex files) {{
    String[] uris = files.inputFiles();
    long sizeBytes = 0L;
    for (int i = 0; i < uris.length; i++) {{
      java.net.URI uri = java.net.URI.create(uris[i]);
      if (!"file".equals(uri.getScheme())) return false;
      sizeBytes += new java.io.File(uri.getPath()).length();
    }}
    return sizeBytes != files.sizeInBytes();
  }}

  /** Whether it has the form of the condition of `visible_rows`, and what Spark infers from it. */
  private static boolean isOnBitmaps(Expression condition) {{
    if (condition instanceof And) {{
      Expression left = ((And) condition).left();
      Expression right = ((And) condition).right();
      return isNotNull(left) && isOnBitmaps(right) || isOnBitmaps(left) && isNotNull(right);
    }}
    return condition instanceof EqualTo && ((EqualTo) condition).left() instanceof BitwiseGet
        && "1".equals(((EqualTo) condition).right().toString())
        && SubqueryExpression$.MODULE$.hasSubquery(condition) && addedColumns(condition) == 2;
  }}

  private static boolean isNotNull(Expression condition) {{
    if (condition instanceof And) {{
      return isNotNull(((And) condition).left()) && isNotNull(((And) condition).right());
    }}
    return condition instanceof IsNotNull && addedColumns(condition) == 1;
  }}

  /** How many of the two added columns it refers to; 0 if to any other column. */
  private static int addedColumns(Expression expression) {{
    int added = 0;
    scala.collection.Iterator columns = expression.references().iterator();
    while (columns.hasNext()) {{
      String name = ((Attribute) columns.next()).name();
      if (!name.equals("{FIRST_WORD}") && !name.equals("{ROW_NUMBERS}")) return 0;
      added++;
    }}
    return added;
  }}

  private static scala.collection.immutable.Seq sequence(ArrayList items) {{
    return scala.jdk.javaapi.CollectionConverters.asScala((java.util.List) items).toSeq();
  }}
}}
"""


def count_without_row_numbers(session: Any) -> None:
    """Add the rule to the session, once; without it counts take longer, and are right."""
    try:
        add_optimizer_rule(session, _NAME, _TEXT)
    except (Py4JError, UnknownInternals) as error:
        _warn(str(session.version), f"{type(error).__name__}: {error}")


@lru_cache(maxsize=16)
def _warn(version: str, detail: str) -> None:
    """Log a warning, once for each error."""
    _LOG.warning("Spark %s does not take the rule for counts: %s", version, detail)
