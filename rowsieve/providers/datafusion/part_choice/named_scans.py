"""Names of scans in DataFusion's plans, by which the tables of a statement are recognised.

A table that the session has registered is scanned under its own name. A view has no name in an
optimised plan, so the scans inside of the views that a statement registers have the full, quoted
name of the table as their only part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import datafusion

from rowsieve.statements.tokens import quoted

ScanName: TypeAlias = Callable[[tuple[str, ...]], str]
"""Returns the full, quoted name of a table of ours, from the parts of the name of a scan."""
_FILES: Final = " files"


def scan_name(scan: Any) -> tuple[str, ...]:
    """The parts of the name of a scan, without those that it does not have."""
    return tuple(part for part in scan.fqn() if part is not None)


def files_name(name: str) -> str:
    """The name of DataFusion's own scan of the files of a table."""
    return f"{name}{_FILES}"


def table_name(scan: str) -> str:
    """The name of the table whose files, or rows, a scan of this name reads."""
    return scan.removesuffix(_FILES)


def named_frame(
    context: datafusion.SessionContext, name: str, provider: Any
) -> datafusion.DataFrame:
    """A DataFrame of `context` that scans a provider under a name."""
    private = datafusion.SessionContext()
    private.register_table(quoted(name), provider)
    plan = private.table(quoted(name)).logical_plan()
    return context.create_dataframe_from_logical_plan(plan)


def only_scan(node: Any) -> tuple[tuple[str, ...], list[Any]] | None:
    """The name of the only scan below a node, and the filters on its rows; None if it has others.

    DataFusion's scan and that of our dataset in one table count as the latter.
    """
    filters = []
    while (each := variant(node)) is not None and _keeps_columns(each):
        if isinstance(each, datafusion.expr.Filter):
            filters.append(each.predicate())
        node = node.inputs()[0]
    if isinstance(each, datafusion.expr.TableScan):
        return scan_name(each), [*each.filters(), *filters]
    if isinstance(each, datafusion.expr.Union) and len(node.inputs()) == 2:
        files, dataset = map(only_scan, node.inputs())
        if files is not None and dataset is not None:
            name, inside = dataset
            if files[0] == tuple(map(files_name, name)):
                return name, [*inside, *filters]
    return None


def _keeps_columns(node: Any) -> bool:
    if isinstance(node, datafusion.expr.Projection):
        return all(each.variant_name() == "Column" for each in node.projections())
    return isinstance(node, datafusion.expr.SubqueryAlias | datafusion.expr.Filter)


def variant(node: Any) -> Any:
    """The node in the class of its kind; None if Python has no class for it."""
    try:
        return node.to_variant()
    except Exception:
        return None
