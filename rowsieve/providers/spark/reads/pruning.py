"""Reads fewer parts of our tables in a query of Spark's, by the query's own conditions.

Spark's optimiser moves conditions to where they apply: past joins, views and common tables. So each
of our reads is replaced by a leaf that the optimiser cannot look into, and the filters directly
above the leaf are conditions that every row must pass. A part without a matching row is not read.
The query itself is kept, with its filters; its text is never read again.

Soundness: conditions count up to the first that is not read exactly or may fail, in their order, so
no error is lost. A read that occurs several times keeps the parts that one occurrence may need.
The optimiser does not learn the time of the query, because a later run has another one: conditions
with `now()` count for all times from the present on (invariant 30). Queries that are not
deterministic or depend on the user, operators that are not listed and reads within subqueries are
not changed.
"""

from __future__ import annotations

import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from rowsieve import clock
from rowsieve.bridges.spark_columns.classic import Node, resolved_tree
from rowsieve.bridges.spark_columns.sessions import using
from rowsieve.errors import UnsupportedOperation
from rowsieve.planner.failures import may_fail
from rowsieve.predicate import ir
from rowsieve.predicate.bind import BoundOperand
from rowsieve.predicate.later_now import from_now_on
from rowsieve.predicate.operand_types import type_of
from rowsieve.providers.spark.frames import check_frame
from rowsieve.providers.spark.plan_times import depends_on_time, with_unknown_times
from rowsieve.providers.spark.plans import (
    UnknownInternals,
    class_of,
    frame_of,
    items,
    leaf_name,
    opaque_leaf,
    renamed,
    replaced,
)
from rowsieve.providers.spark.reads.hybrid import hybrid_frame, is_smaller, part_counts
from rowsieve.providers.spark.reads.marked_reads import PREFIX, MarkedRead, read_named
from rowsieve.providers.spark.reads.prune_report import (
    PrunedRead,
    PrunedUse,
    PruneReport,
    Refusal,
    shortened,
)
from rowsieve.providers.spark.reads.resolved_conditions import Columns, predicate_of
from rowsieve.providers.spark.reads.resolved_functions import Rules, predicate_by_text
from rowsieve.providers.spark.reads.spark_read import Implied, SparkRead
from rowsieve.providers.spark.session_settings import may_fail_at
from rowsieve.providers.spark.source import output_schema
from rowsieve.types.logical import Field

_LOG = logging.getLogger("rowsieve")
_WARNED: set[tuple[str, str]] = set()  # versions of Spark and kinds of errors
_MAX_WARNED: Final = 100
_LOGICAL: Final = "org.apache.spark.sql.catalyst.plans.logical."
_OWN_NAME: Final = re.compile(rf"\b{PREFIX}[0-9a-f]{{32}}\.")  # of a frame without another name
_MAX_CONDITIONS: Final = 200  # reading one takes some milliseconds
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
    """A read in a plan: what it outputs, the read, and the rules of the query's session."""

    output: Any
    marked: MarkedRead
    read: SparkRead
    rules: Rules

    @property
    def fields(self) -> tuple[Field, ...]:
        schema = self.read.table.handle.pinned.schema
        return tuple(output_schema(self.read.options, schema))


@dataclass(frozen=True, slots=True)
class _Use:
    """An occurrence of a read in the optimised plan: its conditions, in Spark's order.

    The first `count` of them are `predicate`; `stopped` says why the next one is not used.
    """

    conditions: Sequence[Any]
    count: int
    predicate: ir.Predicate
    stopped: str

    def explained(self) -> PrunedUse:
        written = [str(condition.sql()) for condition in self.conditions]
        texts = [shortened(_OWN_NAME.sub("", text)) for text in written]
        return PrunedUse(tuple(texts[: self.count]), tuple(texts[self.count :]), self.stopped)


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The frame to use, and how it was chosen."""

    frame: Any
    refusal: Refusal | None = None
    detail: str = ""
    places: Sequence[_Place | None] = ()
    uses: Mapping[int, Sequence[_Use]] = field(default_factory=dict)


def pruned(frame: Any) -> Any:
    """Return a frame with the same rows, whose reads of our tables skip parts by its conditions."""
    check_frame(frame, "prune")
    return _attempt(frame).frame


def explained(frame: Any) -> PruneReport:
    """Report which parts `pruned` skips, by which conditions, and why not more."""
    check_frame(frame, "explain_prune")
    attempt = _attempt(frame)
    reads = []
    with using(frame.sparkSession):
        for number, place in enumerate(attempt.places):
            if place is None:
                continue
            uses = attempt.uses.get(number, ())
            before, after = part_counts(_with(place, uses))
            shown = tuple(use.explained() for use in uses)
            reads.append(
                PrunedRead(place.read.table.uri, place.read.table.version, before, after, shown)
            )
    return PruneReport(tuple(reads), attempt.refusal, attempt.detail)


def _attempt(frame: Any) -> _Attempt:
    if not hasattr(frame.sparkSession, "_jsparkSession"):
        return _Attempt(frame, Refusal.CLIENT)
    if frame.isStreaming:
        return _Attempt(frame, Refusal.STREAM)
    try:
        return _pruned(frame)
    except (Py4JError, PySparkException, UnknownInternals, RecursionError) as error:
        if _fails_itself(frame):  # and reports its error when it runs
            return _Attempt(frame, Refusal.FAILS)
        detail = f"{type(error).__name__}: {_message(error)}"
        _warn(str(frame.sparkSession.version), _kind(error, detail), detail)
        return _Attempt(frame, Refusal.UNKNOWN, detail)


def _fails_itself(frame: Any) -> bool:
    """Return whether Spark cannot plan the query as it is."""
    try:
        frame._jdf.queryExecution().optimizedPlan()
    except (Py4JError, PySparkException):
        return True
    return False


def _message(error: Exception) -> str:
    """The error's message; Py4J's begins with the name of an object, which differs every time."""
    if isinstance(error, Py4JJavaError):
        return shortened(str(error.java_exception))
    text = str(error)
    return shortened(text.partition("\n")[2] if isinstance(error, Py4JError) else text)


def _kind(error: Exception, detail: str) -> str:
    """A key that errors of one kind share: a JVM omits the messages of frequent errors."""
    if isinstance(error, Py4JJavaError):
        return str(error.java_exception.getClass().getName())
    return detail


def _warn(version: str, kind: str, detail: str) -> None:
    """Log a warning, once for each kind of error, and at most a hundred."""
    if (version, kind) in _WARNED or len(_WARNED) >= _MAX_WARNED:
        return
    _WARNED.add((version, kind))
    _LOG.warning(
        "prune could not read a plan of Spark %s and left the query as it is: its rows are right, "
        "but it reads more parts than it needs; the error was %s",
        version,
        detail,
    )


def _pruned(frame: Any) -> _Attempt:
    session = frame.sparkSession
    plan = frame._jdf.queryExecution().withCachedData()
    if not plan.deterministic():
        return _Attempt(frame, Refusal.RANDOM)
    places: list[_Place | None] = []

    def leaf(node: Any) -> Any | None:
        if not _is_marked(node):
            return None if class_of(node) in _KNOWN else node
        place = _place(node, session)
        if place is not None and place.output.length() > len(place.fields):
            _check_metadata(frame, place)
            place = None
        places.append(place)
        return node if place is None else opaque_leaf(session, str(len(places) - 1), place.output)

    probe = replaced(session, plan, leaf)
    if not any(places):
        return _Attempt(frame, Refusal.NO_READS)
    if depends_on_time(session, probe) and (probe := with_unknown_times(session, probe)) is None:
        return _Attempt(frame, Refusal.TIME, places=places)
    optimised = frame_of(session, probe)._jdf.queryExecution().optimizedPlan()
    with using(session):
        uses = _uses(optimised, places)
        smaller = _smaller_reads(uses, places)
    pruned = frame
    if smaller:
        plans = {number: _plan_of(smaller[number], places[number], session) for number in smaller}
        pruned = frame_of(session, _with_plans(session, plan, plans))
    return _Attempt(pruned, places=places, uses=uses)


def _plan_of(read: SparkRead, place: _Place | None, session: Any) -> Any:
    """The plan of a read, with the attributes of its place in the query's plan."""
    assert place is not None
    frame = hybrid_frame(read, place.marked.allowed)
    return renamed(session, frame._jdf.queryExecution().analyzed(), place.output)


def _with_plans(session: Any, plan: Any, plans: Mapping[int, Any]) -> Any:
    """The plan with these plans instead of some of our reads, by the number of their place."""
    numbers = count()

    def planned(node: Any) -> Any | None:
        if not _is_marked(node):
            return None if class_of(node) in _KNOWN else node
        return plans.get(next(numbers), node)  # marked nodes come in the same order as before

    return replaced(session, plan, planned)


def _is_marked(node: Any) -> bool:
    """Return whether the node may be the frame of one of our reads, by its alias."""
    return class_of(node) == _LOGICAL + "SubqueryAlias" and str(node.alias()).startswith(PREFIX)


def _place(node: Any, session: Any) -> _Place | None:
    """The read that the node is the frame of."""
    mark = read_named(str(node.alias()))
    read = None if mark is None else mark.again(session)
    if mark is None or read is None:
        return None
    rules = Rules.of(session, read.table.handle.pinned.schema)
    return _Place(node.child().output(), mark, read, rules)


def _check_metadata(frame: Any, place: _Place) -> None:
    """Raise UnsupportedOperation if Spark does not plan a query on `_metadata` of our files."""
    try:
        frame._jdf.queryExecution().executedPlan()
    except PySparkException as error:
        raise UnsupportedOperation(
            f"{place.read.table.uri}: Spark does not plan the query, which asks for _metadata of "
            f"files: {_message(error)} Spark finds hidden rows by their numbers, so that "
            "_metadata.row_index is not available if a table has some; compaction removes them. "
            "input_file_name() and _metadata.file_name name the file of a row"
        ) from error


def _smaller_reads(
    uses: Mapping[int, Sequence[_Use]], places: Sequence[_Place | None]
) -> dict[int, SparkRead]:
    """By place: the read that skips parts by its conditions, if there is one."""
    reads = {}
    for number, its_uses in uses.items():
        if (place := places[number]) is not None:
            read = _with(place, its_uses)
            if read.implied != place.read.implied and is_smaller(read):
                reads[number] = read
    return reads


def _with(place: _Place, uses: Sequence[_Use]) -> SparkRead:
    """The read, limited to rows that one of its uses needs."""
    if not uses:
        return place.read
    implied = Implied(ir.disjoin([use.predicate for use in uses]), place.rules.semantics)
    if implied.predicate == ir.TRUE or implied in place.read.implied:
        return place.read
    return replace(place.read, implied=(*place.read.implied, implied))


def _uses(plan: Any, places: Sequence[_Place | None]) -> dict[int, list[_Use]]:
    """By place: the occurrences of its leaf."""
    uses = defaultdict(list)
    for name, output, conditions in _leaves(plan, ()):
        if (place := places[number := int(name)]) is not None:
            uses[number].append(_read_of(place, output, conditions))
    return dict(uses)


def _leaves(plan: Any, filters: Sequence[Any]) -> Iterator[tuple[str, list[Any], Sequence[Any]]]:
    """The named leaves in the plan and its subqueries, and the conditions of the filters above.

    The first condition is the one that is evaluated first.
    """
    if (name := leaf_name(plan)) is not None and name.isdecimal():
        yield name, items(plan.output()), filters
    kind = class_of(plan).removeprefix(_LOGICAL)
    if kind == "Filter":
        filters = (*_conjuncts(plan.condition()), *filters)
    elif kind != "Project" or not _only_selects(plan):
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
    conjuncts, stack = [], [condition]
    while stack:
        item = stack.pop()
        if class_of(item) == "org.apache.spark.sql.catalyst.expressions.And":
            stack += [item.right(), item.left()]
        else:
            conjuncts.append(item)
    return conjuncts


def _read_of(place: _Place, output: Sequence[Any], conditions: Sequence[Any]) -> _Use:
    """AND of the conditions before the first that may fail or is not read."""
    fields = place.fields
    columns = {int(a.exprId().id()): f for a, f in zip(output, fields, strict=True)}
    conjuncts: list[ir.Predicate] = []
    stopped = ""
    for condition in conditions:
        try:
            predicate = _predicate(resolved_tree(condition), columns, place.rules)
        except UnsupportedOperation as error:
            stopped = str(error)
        except RecursionError:
            stopped = "it nests too deep"
        else:
            if len(conjuncts) == _MAX_CONDITIONS:
                stopped = f"more than {_MAX_CONDITIONS} conditions are not read"
            elif _may_fail(predicate, place):
                stopped = "it may fail on a row, or depends on the time otherwise than by a bound"
        if stopped:
            break
        conjuncts.append(from_now_on(predicate, place.rules.semantics, clock.now_us()))
    return _Use(conditions, len(conjuncts), ir.conjoin(conjuncts), stopped)


def _may_fail(predicate: ir.Predicate, place: _Place) -> bool:
    """Return whether a call or cast may fail on a row, or `now()` is not just in bounds.

    Each is checked separately, because Spark may evaluate one on which the whole value does not
    depend.
    """
    schema, semantics = place.rules.schema, place.rules.semantics
    if (failing := may_fail_at(predicate, schema, semantics)) is None:
        return True
    snapshot = place.read.table.handle.pinned
    return any(
        may_fail(snapshot, BoundOperand(node, type_of(node), schema.id, semantics))
        for node in failing
    )


def _predicate(node: Node, columns: Columns, rules: Rules) -> ir.Predicate:
    """The predicate of a condition; UnsupportedOperation if it is not known to mean the same."""
    try:
        return predicate_of(node, columns)
    except UnsupportedOperation:
        return predicate_by_text(node, columns, rules)
