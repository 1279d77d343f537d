"""Reads of tables that `CREATE TABLE … USING rowsieve` puts into Spark's catalog.

Spark's catalog gives none of the options back to a read, but it keeps the columns with their
metadata. So the options, and the version that is the newest when the table is created, are kept as
metadata of the first column. The catalog has a name for one version; all scans read it (invariant
23). Storage options, which may hold secrets, are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from pyspark.sql.types import StructField, StructType

from rowsieve.bridges.sql import parse_predicate
from rowsieve.decoded_types import described
from rowsieve.errors import InvalidInput, SchemaMismatch, SnapshotExpired, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.providers.spark.known_options import known_names
from rowsieve.providers.spark.option_values import VIEW, local_path
from rowsieve.providers.spark.reads.feed_options import reads_feed
from rowsieve.providers.spark.store_options import STORAGE
from rowsieve.storage.snapshot import Snapshot

_OWNER: Final = "owner"  # an option that Spark itself adds for CREATE TABLE, and only there
_GIVEN: Final = "option."  # before the names of OPTIONS, so that they differ from TBLPROPERTIES
_LOCAL: Final = "file:/"
_KEPT: Final = "rowsieve.read"
_VERSIONS: Final = ("version", "as_of")


class CatalogRead(msgspec.Struct, frozen=True):
    """A read as a column's metadata: its options with the version, and whose versions these are."""

    options: dict[str, str]
    table_uuid: str


def is_creation(options: Mapping[str, str]) -> bool:
    """Return whether these are the options of CREATE TABLE."""
    return _OWNER in map(str.lower, options)


def given_options(options: Mapping[str, str]) -> dict[str, str]:
    """The options of the read that CREATE TABLE names."""
    lowered = {name.lower(): value for name, value in options.items()}
    read_options = {
        name.removeprefix(_GIVEN): value
        for name, value in lowered.items()
        if name.startswith(_GIVEN)
    }
    if not (path := lowered.get("path")):
        raise InvalidInput(
            "CREATE TABLE ... USING rowsieve: the table is not named, and nothing was created; add "
            "OPTIONS (path '...') or LOCATION '...'"
        )
    if reads_feed(read_options):
        raise UnsupportedOperation(
            "CREATE TABLE ... USING rowsieve reads the rows of a version, and nothing was created; "
            f"for changes use {VIEW}"
        )
    if any(name.startswith(STORAGE) for name in read_options):
        raise UnsupportedOperation(
            "CREATE TABLE ... USING rowsieve would keep storage options, which may be secrets, in "
            "Spark's catalog, so nothing was created; give them by the environment, or use "
            f"{VIEW}"
        )
    if path.startswith(_LOCAL):  # Spark writes paths and URIs alike so
        path = local_path(
            path,
            f"nothing was created; give the plain path, or, if it has a percent sign, use {VIEW}",
        )
    return {**read_options, "path": path}


def keeping(columns: StructType, options: Mapping[str, str], head: Snapshot) -> StructType:
    """The columns of a new table of the catalog, with the read of this version."""
    condition = parse_predicate(options.get("where", "TRUE"), "spark")
    if any(isinstance(node, ir.Now) for node in ir.walk(condition)):  # each scan has a time
        raise UnsupportedOperation(
            "CREATE TABLE ... USING rowsieve: the condition depends on the time of the query, and "
            "nothing was created; put it into a view of the table"
        )
    fixed = {name: value for name, value in known_names(options).items() if name not in _VERSIONS}
    read = CatalogRead({**fixed, "version": str(head.version)}, head.table.uuid)
    first, *others = columns
    metadata = {**(first.metadata or {}), _KEPT: msgspec.json.encode(read).decode()}
    return StructType([StructField(first.name, first.dataType, first.nullable, metadata), *others])


def catalog_read(options: Mapping[str, str], columns: StructType) -> CatalogRead | None:
    """The read of a table of the catalog; None for other reads."""
    if options.get("path"):
        return None
    for column in columns:
        if (text := (column.metadata or {}).get(_KEPT)) is not None:
            return msgspec.json.decode(text, type=described(CatalogRead))
    return None


def check_catalog_read(
    catalog_read: CatalogRead, head: Snapshot, columns: StructType, read: StructType
) -> None:
    """Refuse another table in the place of the one that was created, or other columns."""
    uri = catalog_read.options["path"]
    if head.table.uuid != catalog_read.table_uuid:
        raise SnapshotExpired(
            f"the table at {uri} was replaced by another one after CREATE TABLE; drop the table of "
            "Spark's catalog and create it again"
        )
    if _types(columns) != _types(read):
        raise SchemaMismatch(
            f"Spark's catalog has the columns ({columns.simpleString()}), and version "
            f"{head.version} of {uri} has ({read.simpleString()}), so ALTER TABLE changed them; "
            "drop the table of the catalog and create it again"
        )


def _types(columns: StructType) -> list[tuple[str, Any]]:
    """Names and types, without what may be NULL."""
    return [(column.name, column.dataType) for column in columns.toNullable()]
