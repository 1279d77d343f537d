"""The error for a folder without a table: it names what the folder holds instead."""

from __future__ import annotations

from typing import Final

from rowsieve.errors import TableNotFound
from rowsieve.objects import ObjectStore, RefStore
from rowsieve.storage.log.log_entry import LOG

_LOAD: Final = "create a table elsewhere and load the files into it"
_FOREIGN: Final = {
    "_delta_log": ("a Delta table", "from_delta reads it, and import_delta makes a table of it"),
    "metadata": (
        "an Iceberg table",
        "from_iceberg reads it, and import_iceberg makes a table of it",
    ),
    ".hoodie": ("a Hudi table", _LOAD),
    "_versions": ("a Lance dataset", _LOAD),
}
"""By a name at the root of a folder: what it looks like, and what to do with it."""
_PARQUET: Final = (
    "a folder of Parquet files",
    "open_parquet reads it, and from_parquet makes a table of it",
)


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
    known = [each for name, each in _FOREIGN.items() if name in names]
    if any(name.endswith(".parquet") for name in names):
        known.append(_PARQUET)
    kind, remedy = known[0] if known else (None, _LOAD)
    shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    what = f"it looks like {kind}" if kind else "it is not a Rowsieve table"
    return TableNotFound(
        f"no table at {store.uri}: the directory holds {shown} but no {LOG}/; {what}. Check the "
        f"path; {remedy}"
    )
