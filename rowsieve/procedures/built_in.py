"""The procedures that every catalog has."""

from __future__ import annotations

from rowsieve.procedures.add_files import AddFiles
from rowsieve.procedures.analyze import Analyze
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.procedures.retention_procedures import RETENTION_PROCEDURES
from rowsieve.procedures.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.table_procedures import TABLE_PROCEDURES


def built_in() -> ProcedureRegistry:
    """A new registry with all of them."""
    return ProcedureRegistry(
        [
            RewriteDataFiles(),
            Analyze(),
            AddFiles(),
            *TABLE_PROCEDURES,
            *RETENTION_PROCEDURES,
        ]
    )
