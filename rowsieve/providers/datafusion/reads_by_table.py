"""The decision for one table in a statement: who reads which of its parts, and why.

Our dataset can read any part. DataFusion scans files itself where the session, the table and the
part allow it (`HybridTable`), because it reads them in parallel and without Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import datafusion
import pyarrow as pa

from rowsieve.predicate.ir import TRUE
from rowsieve.providers.datafusion.hybrid_table import HybridTable
from rowsieve.providers.datafusion.session_settings import TARGET_PARTITIONS

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.own_table import OwnTable
    from rowsieve.providers.datafusion.sql_session import SessionContext


@dataclass(frozen=True, slots=True)
class TableRead:
    """Who reads a table: DataFusion the files of `hybrid`, our dataset the other parts.

    `parts` are the ids of the parts that conditions leave; None: all. Without a hybrid, our dataset
    reads all parts, because `reason`.
    """

    own: OwnTable
    parts: frozenset[str] | None = None
    hybrid: HybridTable | None = None
    reason: str = ""

    @property
    def is_chosen(self) -> bool:
        """True if the statement reads it otherwise than the session has it registered."""
        return self.parts is not None or self.hybrid is not None

    @property
    def provider(self) -> Any:
        """The provider to register while DataFusion plans the statement."""
        return self.own.provider(self.parts) if self.hybrid is None else self.hybrid.provider

    def by(self, hybrid: HybridTable) -> TableRead:
        """The same parts, read by another hybrid."""
        return replace(self, hybrid=hybrid)

    @property
    def line(self) -> str:
        """The decision in words, for EXPLAIN."""
        own, hybrid = self.own, self.hybrid
        total = len(own.read_parts(TRUE))
        count = total if self.parts is None else len(self.parts)
        version = own.snapshot.version
        line = f"{own.given_name}: version {version}, conditions leave {count:,} of {total:,} parts"
        if hybrid is None:
            return f"{line}; our dataset reads them, because {self.reason}"
        line += f"; DataFusion's own reader reads {hybrid.native_parts:,}"
        if hybrid.bitmap_parts:
            line += f", and {hybrid.bitmap_parts:,} without their hidden rows"
        return line


def open_reads(
    session: SessionContext,
    named: Mapping[str, OwnTable],
    chosen: Mapping[str, frozenset[str]],
) -> dict[str, TableRead]:
    """Decide for each table, for a frame from which users may build others."""
    return {name: _open_read(session, own, chosen.get(name)) for name, own in named.items()}


def _open_read(session: SessionContext, own: OwnTable, parts: frozenset[str] | None) -> TableRead:
    if not session.reads_files:
        reason = "a setting of the session, or of its object stores, changes how files are read"
    elif own.catalog is not None:
        reason = "it is a table of a catalog"
    elif own.table.handle.store.overlaps:
        reason = "across a network it reads fewer bytes in fewer round trips than DataFusion would"
    elif own.table.uri.startswith("memory:"):
        reason = "it is in memory of this process"
    elif not own.may_be_hybrid:
        reason = "its reads are reported, audited or not pruned"
    else:
        partitions = int(session.setting(TARGET_PARTITIONS) or 1)
        hybrid = own.hybrid(session, parts, partitions)
        reason = "" if hybrid is not None else "none of them is proven to be without hidden rows"
        return TableRead(own, parts, hybrid, reason)
    return TableRead(own, parts, None, reason)


def with_explain_row(frame: datafusion.DataFrame, reads: Mapping[str, TableRead]) -> pa.Table:
    """The result of EXPLAIN, plus a row with the decision for each table."""
    plans = frame.to_arrow_table()
    lines = "\n".join(each.line for each in reads.values())
    row = {"plan_type": ["rowsieve"], "plan": [lines]}
    if plans.schema.names != list(row):
        return plans
    return pa.concat_tables([plans, pa.table(row).cast(plans.schema)])
