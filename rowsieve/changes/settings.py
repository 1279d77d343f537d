"""Changing the properties of a table: a commit that touches no rows.

Properties are versioned with everything else: a version is read and written under its own. A change
names what it sets and unsets and nothing else, so that two of them at a time both count, and the
later one wins where they name the same property.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from rowsieve.changes.change import Change
from rowsieve.properties import check_properties
from rowsieve.stats.options import statistics_options
from rowsieve.storage.commit_log import CommitRequest
from rowsieve.storage.snapshot import ISOLATION_WRITER, Snapshot


def checked_settings(
    properties: Mapping[str, str | int | float], snapshot: Snapshot
) -> dict[str, str]:
    """The properties as text; InvalidInput for those that do not exist, fit or change."""
    checked = check_properties(properties)
    statistics_options({**snapshot.table.properties, **checked}, snapshot.schema)
    return checked


def is_set(snapshot: Snapshot, wanted: Mapping[str, str | None]) -> bool:
    """Whether the table has these properties already; None stands for unset."""
    return all(snapshot.table.properties.get(name) == value for name, value in wanted.items())


def change_properties(
    change: Change, head: Snapshot, wanted: Mapping[str, str | None]
) -> CommitRequest:
    """Set the properties of the head, and unset those that are None."""
    properties = {k: v for k, v in head.table.properties.items() if k not in wanted}
    properties |= {name: value for name, value in wanted.items() if value is not None}
    info = dataclasses.replace(head.table, properties=properties)
    if "isolation" in wanted:  # a writer that does not know of it would not keep it
        info = dataclasses.replace(info, writer_version=max(info.writer_version, ISOLATION_WRITER))
    return dataclasses.replace(change.request(None), info=info)
