"""The version of the commit that last changed each row, in files that rewrites have written.

A fresh part needs no such column: all of its rows have the commit_ts of the part (invariant I1). A
rewrite mixes rows of several commits; with the property `row_versions` it stores the version of
each, so that a reader can ask for the rows that were changed since a version.

Soundness: a row that was rewritten without the property has the newest version of the parts that it
was rewritten with, which is not before its own. A restore brings rows back, and changes them by
that; so do the publication of a branch, whose versions count otherwise, and a rewrite that changes
values. So no row has a version before its last change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from rowsieve.errors import InvalidInput
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types.logical import Field, Int
from rowsieve.types.schema import Schema

ROW_VERSIONS: Final = "row_versions"
KEPT_SINCE: Final = "rowsieve.row_versions_since"
RESTORED: Final = "rowsieve.restored"
NOTES: Final = (KEPT_SINCE, RESTORED)
_NO_SCHEMA: Final = 2**31 - 1  # above the id of every schema: files without the column have NULL
ROW_VERSION: Final = Field(2**31 - 3, "_commit_version", Int(64), added=_NO_SCHEMA)
"""The column in files; a file without it has the commit_ts of its part in all rows."""


def keeps_versions(properties: Mapping[str, str]) -> bool:
    """Whether rewrites keep the version of each row."""
    return properties.get(ROW_VERSIONS) == "kept"


def to_rewrite(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the columns that a rewrite reads and writes."""
    return with_versions(snapshot) if keeps_versions(snapshot.table.properties) else snapshot


def with_versions(snapshot: Snapshot) -> Snapshot:
    """The snapshot with `ROW_VERSION` as its last column; InvalidInput if the name is taken."""
    schema = snapshot.schema
    if any(name.lower() == ROW_VERSION.name for name in schema.names):
        raise InvalidInput(
            f"the table has a column {ROW_VERSION.name!r}, which is the name of the version of a "
            "row; rename the column with rename_column, or unset the property row_versions"
        )
    return replace(snapshot, schema=Schema(schema.id, (*schema.fields, ROW_VERSION)))


def without_versions(schema: Schema) -> Schema:
    """The columns of the table among those of a rewrite."""
    fields = tuple(field for field in schema.fields if field.id != ROW_VERSION.id)
    return schema if len(fields) == len(schema.fields) else Schema(schema.id, fields)


def noted_since(
    before: Mapping[str, str], properties: dict[str, str], version: int
) -> dict[str, str]:
    """Properties with the first version from which on all rewrites keep versions."""
    if not keeps_versions(properties):
        return {name: each for name, each in properties.items() if name != KEPT_SINCE}
    if keeps_versions(before):
        return properties
    return {**properties, KEPT_SINCE: str(version)}


def noted_restore(properties: Mapping[str, str], version: int) -> Mapping[str, str]:
    """Properties that say which version was made by a restore, if versions are kept."""
    return {**properties, RESTORED: str(version)} if keeps_versions(properties) else properties


def noted_publication(
    before: Mapping[str, str], properties: Mapping[str, str], version: int
) -> dict[str, str]:
    """Properties after the rows of a branch have become those of the table."""
    return dict(noted_restore(noted_since(before, dict(properties), version), version))
