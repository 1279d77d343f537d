"""The procedures that every catalog has."""

from __future__ import annotations

from typing import Final

from rowsieve.procedures.add_files import AddFiles
from rowsieve.procedures.analyze import Analyze
from rowsieve.procedures.build_vectors import BuildDeletionVectors
from rowsieve.procedures.merge_vectors import RewritePositionDeleteFiles
from rowsieve.procedures.migrate import Migrate
from rowsieve.procedures.procedure_registry import ProcedureRegistry
from rowsieve.procedures.register_table import RegisterTable
from rowsieve.procedures.retention_procedures import RETENTION_PROCEDURES
from rowsieve.procedures.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.table_procedures import TABLE_PROCEDURES

GROUP: Final = "rowsieve.procedures"
"""The group of entry points in which packages offer procedures, each under its procedure's name."""


def built_in() -> ProcedureRegistry:
    """Return a new registry of the built-in procedures, and of those in installed packages."""
    return ProcedureRegistry(
        [
            RewriteDataFiles(),
            Migrate(),
            Analyze(),
            AddFiles(),
            BuildDeletionVectors(),
            RewritePositionDeleteFiles(),
            RegisterTable(),
            *TABLE_PROCEDURES,
            *RETENTION_PROCEDURES,
        ],
        group=GROUP,
    )
