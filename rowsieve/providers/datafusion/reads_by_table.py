"""The decision for one table in a statement: who reads which of its parts, and why.

Our dataset can read any part. DataFusion scans files itself where the session, the table and the
part allow it (`HybridTable`), because it reads them in parallel and without Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import datafusion
import pyarrow as pa

from rowsieve.predicate.ir import TRUE
from rowsieve.providers.datafusion.hybrid_table import HybridTable
from rowsieve.providers.datafusion.registered_table import TableDataset, registrable
from rowsieve.providers.datafusion.session.own_session import OwnSession
from rowsieve.providers.datafusion.session_settings import TARGET_PARTITIONS

if TYPE_CHECKING:
    from rowsieve.providers.datafusion.own_table import OwnTable

_HIDDEN: Final = "none of them is a file that is proven to be without hidden rows"


@dataclass(frozen=True, slots=True)
class TableRead:
    """Who reads a table: DataFusion the files of `hybrid`, our dataset the other parts.

    `parts` are the ids of the parts that conditions leave; None: all. Without a hybrid, our dataset
    reads all parts, because `reason`: the one that the session has registered, or `dataset`, which
    belongs to the statement.
    """

    own: OwnTable
    parts: frozenset[str] | None = None
    hybrid: HybridTable | None = None
    reason: str = ""
    dataset: TableDataset | None = None

    @property
    def is_registered(self) -> bool:
        """True if the statement reads the table as the session has it registered."""
        return self.hybrid is None and self.dataset is None and self.parts is None

    @property
    def provider(self) -> Any:
        """The provider to register while DataFusion plans the statement."""
        if self.hybrid is not None:
            return self.hybrid.provider
        return self.own.provider(self.parts) if self.dataset is None else registrable(self.dataset)

    def by(self, hybrid: HybridTable | None) -> TableRead:
        """The same parts, read by another hybrid; None: by our dataset."""
        return replace(self, hybrid=hybrid, reason="" if hybrid else self.reason or _HIDDEN)

    def of(self, parts: frozenset[str]) -> TableRead:
        """The decision once the conditions of the statement have left only these parts."""
        if self.dataset is not None:
            if self.own.catalog is not None:  # which still serves the dataset to other plans
                self.own.catalog.unpin(self.own.name_there)
            self.dataset.choose(parts)
        return replace(self, parts=parts)

    def limited(self, session: OwnSession) -> TableRead:
        """The same decision; a hybrid reads only the parts that were chosen."""
        if self.hybrid is None or self.parts is None:
            return self
        return open_read(session, self.own, self.parts)

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


def open_read(
    session: OwnSession,
    own: OwnTable,
    parts: frozenset[str] | None = None,
    *,
    chooses: bool = False,
) -> TableRead:
    """Decide who reads a table in a frame from which users may build others.

    `chooses`: the conditions of the statement may choose parts once it has been planned.
    """
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
        if (hybrid := own.hybrid(session, parts, partitions)) is not None:
            return TableRead(own, parts, hybrid)
        reason = _HIDDEN
    if not (chooses and own.has_choice):
        return TableRead(own, parts, None, reason)
    dataset = own.dataset() if own.catalog is None else own.catalog.dataset(own.name_there)
    return TableRead(own, parts, None, reason, dataset)


def with_explain_row(frame: datafusion.DataFrame, reads: Mapping[str, TableRead]) -> pa.Table:
    """The result of EXPLAIN, plus a row with the decision for each table."""
    plans = frame.to_arrow_table()
    lines = "\n".join(each.line for each in reads.values())
    row = {"plan_type": ["rowsieve"], "plan": [lines]}
    if plans.schema.names != list(row):
        return plans
    return pa.concat_tables([plans, pa.table(row).cast(plans.schema)])
