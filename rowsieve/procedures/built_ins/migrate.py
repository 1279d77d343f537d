"""`migrate`: rewrite the parts whose files have an older form than today's writers use.

These are foreign files that were imported in place, and parts with older columns: readers adapt
them at each read, and some engines and procedures skip them. Soundness: that of
`rewrite_data_files`; imported files are not deleted (invariants, rule 15).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rowsieve.procedures.built_ins.rewrite_data_files import RewriteDataFiles
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import FILTER, SCHEMA, TABLE_NAME, CallContext, Handle
from rowsieve.statements.call_values import Value
from rowsieve.storage.snapshot import Snapshot


class Migrate(RewriteDataFiles):
    """Rewrites files of an older form on workers and commits once."""

    name = "migrate"
    moving_operation = "migrate"
    meaning = "rewrite files that were imported in place or have older columns"
    parameters = (
        SCHEMA,
        TABLE_NAME,
        FILTER,
        Parameter(
            "dry_run",
            ParameterType.FLAG,
            default=False,
            meaning="only count the files that would be rewritten",
        ),
    )

    def begin(self, context: CallContext, arguments: Mapping[str, Value]) -> Handle:
        """Select the parts, and cut them into tasks."""
        return super().begin(context, {**arguments, "options": {"rewrite-all": "true"}})

    def only(self, snapshot: Snapshot) -> frozenset[int]:
        """The indices of the parts with an older form."""
        parts = snapshot.parts
        refs = parts.files("data")
        placed = np.array([ref is not None and not ref.owned for ref in refs], np.bool_)
        older = np.asarray(parts.numbers("schema_id")) != snapshot.schema.id
        return frozenset(np.flatnonzero(placed | older).tolist())
