"""The metadata tables that every table has, by the names that Trino, Iceberg and Paimon give them.

In SQL they are `"flights$snapshots"`, and `db.flights.snapshots` in Spark. A table or view that has
such a name itself hides the metadata table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from rowsieve.metadata_tables.table_facts import files_of, partitions_of, properties_of
from rowsieve.metadata_tables.version_list import history_of, refs_of, snapshots_of

if TYPE_CHECKING:
    import pyarrow as pa

    from rowsieve.table import Table

METADATA_TABLES: Final[Mapping[str, Callable[[Table], pa.Table]]] = {
    "files": files_of,
    "history": history_of,
    "options": properties_of,  # Paimon's name
    "partitions": partitions_of,
    "properties": properties_of,
    "refs": refs_of,
    "snapshots": snapshots_of,
}
"""What each name shows of the version that a table has pinned."""

_NAME: Final = re.compile(rf"(.+)\$({'|'.join(METADATA_TABLES)})(@[^@$]+)?", re.DOTALL)


def split_metadata_name(name: str) -> tuple[str, str] | None:
    """Split `t$snapshots` into `t` and `snapshots`; None for another name.

    The version, branch or tag of `t$snapshots@v12` stays with the table: `t@v12`.
    """
    if (match := _NAME.fullmatch(name)) is None:
        return None
    return match[1] + (match[3] or ""), match[2]
