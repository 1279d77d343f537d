"""The plan of a call of a distributed procedure, as EXPLAIN shows it.

    Output <- TableFinish <- CallDistributedProcedure <- Filter <- TableScan

`optimised` pushes the filter into the scan, which prunes parts by it; then the target of the call
is refreshed from the scan, so that the procedure begins with the pushed condition. The filter stays
above the scan: a scan of whole parts may return rows that do not match.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from rowsieve.predicate.ir import TRUE, Predicate
from rowsieve.procedures.parameters import literal
from rowsieve.procedures.procedure import DistributedProcedure, TargetScan
from rowsieve.procedures.task_reports import REPORT
from rowsieve.statements.call_values import Value


@dataclass(frozen=True, slots=True)
class TableScanNode:
    """Reads the rows of a table that match the condition of its scan."""

    scan: TargetScan


@dataclass(frozen=True, slots=True)
class FilterNode:
    """Keeps the rows for which the predicate is TRUE."""

    source: TableScanNode
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The procedure, its arguments, and the scan that it begins with."""

    procedure: DistributedProcedure
    arguments: Mapping[str, Value]
    scan: TargetScan


@dataclass(frozen=True, slots=True)
class CallDistributedProcedureNode:
    """Runs the tasks of the procedure on workers; its rows are (row, fragment, context)."""

    source: TableScanNode | FilterNode
    target: CallTarget


@dataclass(frozen=True, slots=True)
class TableFinishNode:
    """Commits the fragments of all tasks, once, on the coordinator."""

    source: CallDistributedProcedureNode


@dataclass(frozen=True, slots=True)
class OutputNode:
    """Returns the result columns of the procedure."""

    source: TableFinishNode

    @property
    def target(self) -> CallTarget:
        """The target of the call."""
        return self.source.source.target


PlanNode: TypeAlias = (
    OutputNode | TableFinishNode | CallDistributedProcedureNode | FilterNode | TableScanNode
)


def plan_call(
    procedure: DistributedProcedure, arguments: Mapping[str, Value], scan: TargetScan
) -> OutputNode:
    """The logical plan: the condition is a filter above a scan of the whole table."""
    target = CallTarget(procedure, arguments, replace(scan, predicate=TRUE))
    table = TableScanNode(target.scan)
    source = table if scan.predicate == TRUE else FilterNode(table, scan.predicate)
    return OutputNode(TableFinishNode(CallDistributedProcedureNode(source, target)))


def optimised(plan: OutputNode) -> OutputNode:
    """Push the filter into the scan, and refresh the target from it."""
    call = plan.source.source
    if not isinstance(call.source, FilterNode):
        return plan
    scan = replace(call.source.source.scan, predicate=call.source.predicate)
    source = FilterNode(TableScanNode(scan), call.source.predicate)
    target = replace(call.target, scan=scan)
    return OutputNode(TableFinishNode(CallDistributedProcedureNode(source, target)))


def explained(plan: OutputNode) -> str:
    """The plan as text, a node a line, the root first."""
    return "\n".join(f"{'  ' * depth}{_line(node)}" for depth, node in enumerate(_nodes(plan)))


def _nodes(node: PlanNode) -> Iterator[PlanNode]:
    yield node
    if not isinstance(node, TableScanNode):
        yield from _nodes(node.source)


def _line(node: PlanNode) -> str:
    match node:
        case OutputNode(target=target):
            return f"Output [{', '.join(target.procedure.columns.names)}]"
        case TableFinishNode():
            return "TableFinish [one commit]"
        case CallDistributedProcedureNode(target=target):
            defaults = {each.name: each.default for each in target.procedure.parameters}
            shown = ", ".join(
                f"{name} => {literal(value)}"
                for name, value in target.arguments.items()
                if value != defaults[name]
            )
            outputs = ", ".join(REPORT.names)
            return f"CallDistributedProcedure [{target.procedure.name}({shown})] => [{outputs}]"
        case FilterNode(predicate=predicate):
            return f"Filter [{predicate}]"
        case TableScanNode(scan=scan):
            condition = "" if scan.predicate == TRUE else f", {scan.predicate}"
            return f"TableScan [{scan.table.uri}, version {scan.table.version}{condition}]"
        case _:
            assert_never(node)
