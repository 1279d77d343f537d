"""Reads fewer parts of our tables in a query of Spark's, by the query's own conditions.

Spark's optimiser moves conditions to where they apply: past joins, views and common tables. So each
of our reads is replaced by a leaf that the optimiser cannot look into, and the filters directly
above the leaf are conditions that every row must pass. A part without a matching row is not read.
The query itself is kept, with its filters; its text is never read again.

Soundness: conditions count up to the first that is not read exactly or may fail, in their order, so
no error is lost. A read that occurs several times keeps the parts that one occurrence may need.
Queries that are not deterministic or depend on the time, operators that are not listed and reads
within subqueries are left as they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from rowsieve.bridges.spark_columns.classic import resolved_tree
from rowsieve.bridges.spark_columns.sessions import using
from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.semantics import Semantics
from rowsieve.providers.spark.hybrid import SparkRead, hybrid_frame, is_smaller
from rowsieve.providers.spark.marked_reads import PREFIX, MarkedRead, read_named
from rowsieve.providers.spark.plans import (
    class_of,
    depends_on_time,
    frame_of,
    items,
    leaf_name,
    opaque_leaf,
    renamed,
    replaced,
)
from rowsieve.providers.spark.resolved_conditions import predicate_of
from rowsieve.providers.spark.session_settings import is_total
from rowsieve.providers.spark.source import output_schema
from rowsieve.types.logical import Field

_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."
_MOST_CONDITIONS: Final = 200  # reading one takes some milliseconds
# Operators whose result does not depend on how rows are spread over partitions.
_KNOWN: Final = frozenset(
    _LOGICAL + name
    for name in (
        *("SubqueryAlias", "View", "Project", "Filter", "Join", "Aggregate", "Distinct", "Expand"),
        *("Deduplicate", "Sort", "GlobalLimit", "LocalLimit", "Offset", "Window", "Union"),
        *("Intersect", "Except", "WithCTE", "CTERelationDef", "Generate", "ResolvedHint"),
        *("Repartition", "RepartitionByExpression"),
    )
)


@dataclass(frozen=True, slots=True)
class _Place:
    """A read in a plan: what it outputs, and the read."""

    output: Any
    found: MarkedRead
    read: SparkRead

    @property
    def fields(self) -> tuple[Field, ...]:
        schema = self.read.table.snapshot_for_engines().schema
        return tuple(output_schema(self.read.options, schema))


def pruned(frame: Any) -> Any:
    """The frame with the same rows, whose reads of our tables leave out parts by its conditions."""
    if not hasattr(frame.sparkSession, "_jsparkSession") or frame.isStreaming:
        return frame
    try:
        return _pruned(frame)
    except (Py4JError, PySparkException, RecursionError):  # the query itself reports its errors
        return frame


def _pruned(frame: Any) -> Any:
    session = frame.sparkSession
    plan = frame._jdf.queryExecution().withCachedData()
    if not plan.deterministic():
        return frame
    places: list[_Place | None] = []

    def leaf(node: Any) -> Any | None:
        if not _is_marked(node):
            return None if class_of(node) in _KNOWN else node
        places.append(place := _place(node, session))
        return node if place is None else opaque_leaf(session, str(len(places) - 1), place.output)

    probe = replaced(session, plan, leaf)
    if not any(places) or depends_on_time(session, plan):
        return frame
    optimised = frame_of(session, probe)._jdf.queryExecution().optimizedPlan()
    with using(session):
        smaller = _smaller_reads(_implied(optimised, places), places)
    if not smaller:
        return frame
    numbers = count()

    def with_fewer_parts(node: Any) -> Any | None:
        if not _is_marked(node):
            return None if class_of(node) in _KNOWN else node
        number = next(numbers)  # marked nodes come in the same order as before
        place = places[number]
        if place is None or number not in smaller:
            return node
        smaller_frame = hybrid_frame(smaller[number], place.found.allowed)
        return renamed(session, smaller_frame._jdf.queryExecution().analyzed(), place.output)

    return frame_of(session, replaced(session, plan, with_fewer_parts))


def _is_marked(node: Any) -> bool:
    """Whether the node may be the frame of one of our reads, by its alias."""
    return class_of(node) == _LOGICAL + "SubqueryAlias" and str(node.alias()).startswith(PREFIX)


def _place(node: Any, session: Any) -> _Place | None:
    """The read that the node is the frame of."""
    found = read_named(str(node.alias()))
    read = None if found is None else found.again(session)
    return None if found is None or read is None else _Place(node.child().output(), found, read)


def _smaller_reads(
    implied: Mapping[int, ir.Predicate], places: Sequence[_Place | None]
) -> dict[int, SparkRead]:
    """By place: the read that leaves out parts by its implied condition, where there is one."""
    found = {}
    for number, predicate in implied.items():
        if (place := places[number]) is not None:
            whole = ir.conjoin((place.read.implied, predicate))
            read = replace(place.read, implied=whole)
            if whole != place.read.implied and is_smaller(read):
                found[number] = read
    return found


def _implied(plan: Any, places: Sequence[_Place | None]) -> dict[int, ir.Predicate]:
    """By place: a condition of every row that an occurrence of its leaf needs."""
    terms = defaultdict(list)
    for name, output, conditions in _leaves(plan, ()):
        if (place := places[number := int(name)]) is not None:
            terms[number].append(_predicate(place, output, conditions))
    return {number: ir.disjoin(found) for number, found in terms.items()}


def _leaves(plan: Any, filters: Sequence[Any]) -> Iterator[tuple[str, list[Any], Sequence[Any]]]:
    """The named leaves in the plan and its subqueries, and the conditions of the filters above.

    The first condition is the one that is evaluated first.
    """
    if (name := leaf_name(plan)) is not None:
        yield name, items(plan.output()), filters
    if class_of(plan) == _LOGICAL + "Filter":
        filters = (*_conjuncts(plan.condition()), *filters)
    elif class_of(plan) != _LOGICAL + "Project" or not _only_selects(plan):
        filters = ()
    for child in items(plan.children()):
        yield from _leaves(child, filters)
    for subquery in items(plan.subqueries()):
        yield from _leaves(subquery, ())


def _only_selects(project: Any) -> bool:
    return all(
        class_of(each).endswith(".AttributeReference") for each in items(project.projectList())
    )


def _conjuncts(condition: Any) -> list[Any]:
    found, stack = [], [condition]
    while stack:
        item = stack.pop()
        if class_of(item) == "org.apache.spark.sql.catalyst.expressions.And":
            stack += [item.right(), item.left()]
        else:
            found.append(item)
    return found


def _predicate(place: _Place, output: Sequence[Any], conditions: Sequence[Any]) -> ir.Predicate:
    """AND of the conditions before the first that may fail or is not read."""
    fields = place.fields
    columns = {int(a.exprId().id()): f for a, f in zip(output, fields, strict=True)}
    schema = place.read.table.snapshot_for_engines().schema
    kept = []
    for condition in conditions[:_MOST_CONDITIONS]:
        try:
            predicate = predicate_of(resolved_tree(condition), columns)
        except (UnsupportedOperation, RecursionError):
            break
        if not is_total(predicate, schema, Semantics.SPARK):
            break
        kept.append(predicate)
    return ir.conjoin(kept)
