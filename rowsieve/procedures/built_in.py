"""The procedures that every catalog has."""

from __future__ import annotations

from typing import Final

from rowsieve.procedures.built_ins.add_files import AddFiles
from rowsieve.procedures.built_ins.analyze import Analyze
from rowsieve.procedures.built_ins.build_vectors import BuildDeletionVectors
from rowsieve.procedures.built_ins.merge_vectors import RewritePositionDeleteFiles
from rowsieve.procedures.built_ins.migrate import Migrate
from rowsieve.procedures.built_ins.publish_procedures import Publish, Unpublish
from rowsieve.procedures.built_ins.ref_procedures import REF_PROCEDURES
from rowsieve.procedures.built_ins.register_table import MoveOut, RegisterTable
from rowsieve.procedures.built_ins.retention_procedures import RETENTION_PROCEDURES
from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.built_ins.table_procedures import TABLE_PROCEDURES
from rowsieve.procedures.procedure_registry import ProcedureRegistry

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
            MoveOut(),
            *TABLE_PROCEDURES,
            *RETENTION_PROCEDURES,
            *REF_PROCEDURES,
            Publish(),
            Unpublish(),
        ],
        group=GROUP,
    )
