"""Procedures that give disk space back: expire_snapshots, remove_orphan_files and vacuum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

import pyarrow as pa

from rowsieve import clock
from rowsieve.arguments.annotations import Progress
from rowsieve.errors import InvalidInput
from rowsieve.procedures.parameters import Parameter, ParameterType
from rowsieve.procedures.procedure import SCHEMA, TABLE_NAME, Procedure
from rowsieve.retention.removed_files import RemovedFiles
from rowsieve.statements.call_values import Value
from rowsieve.table import Table

_KINDS: Final[Mapping[str, tuple[str, ...]]] = {
    "removed_data_files_count": ("data",),
    "removed_delete_files_count": ("deletes", "vector"),
    "removed_log_files_count": ("entry", "list", "statistics", "checkpoint"),
    "removed_other_files_count": ("lease", "temporary"),
}


class _RetentionProcedure(Procedure):
    """Calls a method that deletes files; its result is one row with their counts."""

    columns = pa.schema(
        [
            ("expired_versions_count", pa.int64()),
            ("oldest_version", pa.int64()),
            *((name, pa.int64()) for name in _KINDS),
            ("removed_bytes_count", pa.int64()),
        ]
    )

    def __init__(
        self,
        name: str,
        meaning: str,
        parameters: tuple[Parameter, ...],
        remove: Callable[..., RemovedFiles],
    ) -> None:
        self.name, self.meaning = name, meaning
        self.parameters = (SCHEMA, TABLE_NAME, *parameters)
        self._remove = remove

    def call(self, table: Table, arguments: Mapping[str, Value]) -> pa.Table:
        """Call the method with the arguments that were given."""
        return self._removed(table, arguments, None)

    def run(self, table: Table, arguments: Mapping[str, Value], progress: Progress) -> pa.Table:
        """The same, telling how many files are deleted."""
        return self._removed(table, arguments, progress)

    def _removed(
        self, table: Table, arguments: Mapping[str, Value], progress: Progress | None
    ) -> pa.Table:
        options = {
            each.name: arguments[each.name]
            for each in self.parameters[2:]
            if arguments[each.name] is not None
        }
        removed = self._remove(table, progress=progress, **options)
        row = {
            "expired_versions_count": removed.versions,
            "oldest_version": removed.oldest_version,
            **{name: sum(removed.files.get(k, 0) for k in kinds) for name, kinds in _KINDS.items()},
            "removed_bytes_count": removed.size_bytes,
        }
        return pa.Table.from_pylist([row], schema=self.columns)


_OLDER_THAN = Parameter(
    "older_than",
    ParameterType.INSTANT,
    meaning="keep versions that were the newest at this time or later",
)
_RETAIN_LAST = Parameter(
    "retain_last", ParameterType.WHOLE, meaning="keep this many of the last versions"
)
_GRACE = Parameter(
    "grace_s",
    ParameterType.WHOLE,
    meaning="spare the files of writes that began so many seconds ago or later; a day without it",
)
_DRY_RUN = Parameter(
    "dry_run", ParameterType.FLAG, default=False, meaning="only count what would be deleted"
)

_BEGAN_BEFORE = Parameter(
    "older_than",
    ParameterType.INSTANT,
    meaning="spare the files of writes that began at this time or later; in place of grace_s",
)


def _remove_orphans(
    table: Table, *, older_than: datetime | None = None, **options: Any
) -> RemovedFiles:
    """Remove orphans, with the grace period since `older_than` if it is given."""
    if older_than is not None:
        if "grace_s" in options:
            raise InvalidInput("remove_orphan_files: give older_than or grace_s, not both")
        options["grace_s"] = max(0.0, clock.now_us() / 1e6 - older_than.timestamp())
    return table.remove_orphans(**options)


RETENTION_PROCEDURES: Final = (
    _RetentionProcedure(
        "expire_snapshots",
        "give up old versions and delete the files that only they had",
        (_OLDER_THAN, _RETAIN_LAST, _DRY_RUN),
        Table.expire_versions,
    ),
    _RetentionProcedure(
        "remove_orphan_files",
        "delete files that no version has, as failed writes leave them",
        (_GRACE, _DRY_RUN, _BEGAN_BEFORE),
        _remove_orphans,
    ),
    _RetentionProcedure(
        "vacuum",
        "expire_snapshots, then remove_orphan_files",
        (_OLDER_THAN, _RETAIN_LAST, _GRACE, _DRY_RUN),
        Table.vacuum,
    ),
)
