"""Change the properties of a table: a commit without rows.

Properties are versioned like the rows: each version is read and written with its own properties. A
change contains only the properties that it sets and unsets. Two concurrent changes therefore both
take effect, and for the same property the later one wins.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from rowsieve.changes.change import Change
from rowsieve.changes.column_order.order_column import check_properties_by_column
from rowsieve.changes.event_order.horizons import check_horizon
from rowsieve.changes.expiry_condition import check_can_hold, condition_of
from rowsieve.changes.history.history_columns import named_history
from rowsieve.changes.partial.combine_rules import table_rules
from rowsieve.changes.vector_building import with_vectors_protocol
from rowsieve.properties import COMBINE, check_constant, check_properties
from rowsieve.stats.selection import shredded_paths, statistics_options
from rowsieve.storage.differential import check_properties_of_mode
from rowsieve.storage.log.commit_log import CommitRequest
from rowsieve.storage.log.inline_parts import INLINE_BYTES, with_inline_protocol
from rowsieve.storage.parts.encoding_properties import check_encodings, with_encodings
from rowsieve.storage.parts.row_versions import ROW_VERSIONS, noted_since
from rowsieve.storage.snapshot import ISOLATION_WRITER, ORDER_WRITER, Snapshot
from rowsieve.types.ordering.sort_order import cluster_order
from rowsieve.types.schema import Schema


def checked_settings(
    properties: Mapping[str, str | int | float], snapshot: Snapshot
) -> dict[str, str]:
    """Return the properties as text; InvalidInput if one is unknown, invalid or fixed."""
    checked = check_properties(properties)
    check_properties_of_mode(checked, snapshot.table)
    settings = {**snapshot.table.properties, **checked}
    check_columns(settings, snapshot.schema, snapshot.table.key)
    check_encodings(settings, snapshot.table.properties)
    check_horizon(settings, snapshot.sequence_fields)
    check_can_hold(checked, snapshot.schema)
    return checked


def check_columns(properties: Mapping[str, str], schema: Schema, key: Sequence[str]) -> None:
    """Raise InvalidInput if a property names a column that it cannot use."""
    statistics_options(properties, schema)
    shredded_paths(properties, schema)
    named_history(properties, schema)
    table_rules(properties, schema, key)
    cluster_order(properties, schema, key)
    condition_of(properties, schema)
    check_properties_by_column(properties)


def is_set(snapshot: Snapshot, wanted: Mapping[str, str | None]) -> bool:
    """Return whether the table has these properties already; None means unset."""
    return all(snapshot.table.properties.get(name) == value for name, value in wanted.items())


def change_properties(
    change: Change, head: Snapshot, wanted: Mapping[str, str | None]
) -> CommitRequest:
    """Set the properties of the head, and unset those that are None."""
    check_constant(head.table.properties, wanted)
    properties = {k: v for k, v in head.table.properties.items() if k not in wanted}
    properties |= {name: value for name, value in wanted.items() if value is not None}
    check_columns(properties, head.schema, head.table.key)  # another commit may have changed them
    check_encodings(properties, head.table.properties)
    properties = noted_since(head.table.properties, properties, head.version + 1)
    info = dataclasses.replace(head.table, properties=properties)
    if "isolation" in wanted:  # a writer that does not know the property would violate it
        info = dataclasses.replace(info, writer_version=max(info.writer_version, ISOLATION_WRITER))
    if "visibility" in wanted:
        info = with_vectors_protocol(info)
    if wanted.get(INLINE_BYTES) not in (None, "0"):
        info = with_inline_protocol(info)
    info = with_encodings(info, wanted)
    if COMBINE in wanted or ROW_VERSIONS in wanted:
        info = dataclasses.replace(info, writer_version=max(info.writer_version, ORDER_WRITER))
    return dataclasses.replace(change.request(None), info=info)
