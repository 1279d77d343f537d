"""The methods of `Table` that change its properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rowsieve.arguments.annotations import Metadata, Properties, PropertyNames, RetryTimeout
from rowsieve.changes.property_changes import change_properties, checked_settings, is_set
from rowsieve.changes.table_handle import Handle, changes, nothing_done
from rowsieve.errors import InvalidInput
from rowsieve.properties import check_name
from rowsieve.storage.log.log_entry import Commit
from rowsieve.storage.log.retries import RETRY_TIMEOUT_S
from rowsieve.storage.snapshot import Snapshot


class Configuring(Handle):
    """Base class of `Table` with the changes of properties."""

    @changes("set_properties")
    def set_properties(
        self,
        properties: Properties,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Set table properties from the next version on; the others keep their values.

        A property applies to writes and reads of that version and later ones. InvalidInput for an
        unknown name or an invalid value. Commits nothing if all properties have these values.
        """
        self._writable("set_properties")
        head = self._latest()
        return self._set(
            "set_properties", head, checked_settings(properties, head), metadata, retry_timeout_s
        )

    @changes("unset_properties")
    def unset_properties(
        self,
        names: PropertyNames,
        *,
        metadata: Metadata | None = None,
        retry_timeout_s: RetryTimeout = RETRY_TIMEOUT_S,
    ) -> Commit:
        """Reset table properties to their defaults, from the next version on.

        Commits nothing if none of them is set.
        """
        self._writable("unset_properties")
        for name in names:
            check_name(name)
        wanted = dict.fromkeys(names)
        return self._set("unset_properties", self._latest(), wanted, metadata, retry_timeout_s)

    def _set(
        self,
        operation: str,
        head: Snapshot,
        wanted: Mapping[str, str | None],
        metadata: Metadata | None,
        retry_timeout_s: float | None,
    ) -> Commit:
        if not wanted:
            raise InvalidInput(f"{operation}: no property was given; name at least one")
        notes: dict[str, Any] = {**(metadata or {}), "properties": dict(wanted)}
        change = self._change(operation, notes, None, retry_timeout_s)
        if is_set(head, wanted):
            return nothing_done(operation, head)
        return self._commit(change, head, lambda head: change_properties(change, head, wanted))
