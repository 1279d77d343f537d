"""The error for a folder without a table: it names what the folder holds instead."""

from __future__ import annotations

from typing import Final

from rowsieve.errors import TableNotFound
from rowsieve.objects import ObjectStore, RefStore
from rowsieve.storage.log.log_entry import LOG

_FOREIGN: Final = {
    "_delta_log": "a Delta table",
    "metadata": "an Iceberg table",
    ".hoodie": "a Hudi table",
    "_versions": "a Lance dataset",
}


def no_table(store: ObjectStore) -> TableNotFound:
    """Build the error for a store without a log, from the names at its root."""
    if isinstance(store, RefStore):
        return TableNotFound(
            f"no branch or tag at {store.uri}: it was dropped; refs() of the table lists its "
            "branches and tags"
        )
    names = [name for name in store.children() if name != "_rowsieve"]
    if not names:
        return TableNotFound(f"no table at {store.uri}: nothing is there; create_table makes one")
    kind = next((description for name, description in _FOREIGN.items() if name in names), None)
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    what = f"it looks like {kind}" if kind else "it is not a Rowsieve table"
    return TableNotFound(
        f"no table at {store.uri}: the directory holds {shown} but no {LOG}/; {what}. Check the "
        "path, or create a table elsewhere and load the files into it"
    )
