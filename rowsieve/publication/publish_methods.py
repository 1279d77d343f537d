"""The methods of `Table` that publish it as a table of another format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rowsieve.arguments.annotations import StorageOptions, TableUri
from rowsieve.changes.method_base import TableMethods
from rowsieve.changes.table_handle import Handle
from rowsieve.errors import InvalidInput, UnsupportedOperation
from rowsieve.objects import ObjectStore, open_store, table_store
from rowsieve.publication.iceberg.catalog_commits import (
    identity_of,
    open_catalog,
    put_into_catalog,
)
from rowsieve.publication.publication import Publication
from rowsieve.publication.publish_version import (
    FORMATS,
    held_for_catalog,
    publish_as_configured,
    publish_version,
    unpublish_all,
)
from rowsieve.retention.published_files import Format


class PublishMethods(TableMethods):
    """Publication as Iceberg and as Delta."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle)
        handle.publishes = publish_as_configured

    def publish(
        self,
        format: Format,  # noqa: A002 - the word of Delta and Spark
        uri: TableUri | None = None,
        *,
        catalog: Any = None,
        name: str | None = None,
        storage_options: StorageOptions | None = None,
    ) -> Publication:
        """Write metadata with which readers of Iceberg or Delta read the newest version.

        They read the files of the table; no data is copied. The metadata is written at `uri`, by
        default in the folder of the table. Rows that only the log has are written beside it. Does
        nothing if this version is published already. Retention keeps the files of the version until
        a later one is published there. UnsupportedOperation, before anything is written, if these
        readers would read other rows, and what to do.

        For Iceberg, `catalog` is one of pyiceberg, or its name or properties in pyiceberg's
        configuration; the table `name` in it, as `'db.places'`, then has the version as well.
        UnsupportedOperation if another writer committed to it, CommitConflict if others commit all
        the time.
        """
        into = _catalog_of(format, catalog, name)
        handle = self.handle
        handle.require_committed("publish")
        snapshot, target = handle.committed(), self._target("publish", uri, storage_options)
        if into is None:
            return publish_version(handle, snapshot, format, target, holds_all=True)
        with held_for_catalog(handle, snapshot, target, f"{identity_of(into)} {name}"):
            published = publish_version(handle, snapshot, format, target, holds_all=True)
            place = put_into_catalog(into, str(name), str(published.metadata_location))
        return replace(published, metadata_location=place)

    def unpublish(
        self,
        format: Format,  # noqa: A002 - the word of Delta and Spark
        uri: TableUri | None = None,
        *,
        storage_options: StorageOptions | None = None,
    ) -> int:
        """Delete what `publish` wrote at `uri`, after which retention keeps nothing for it.

        Returns the number of files. The table stays as it is, and a catalog keeps its name for what
        is no longer there: drop it there first. UnsupportedOperation if the metadata is that of
        another table, or if the property `publish` names the format, as it would come back.
        """
        _check_format("unpublish", format)
        self.handle.require_committed("unpublish")
        target = self._target("unpublish", uri, storage_options)
        return unpublish_all(self.handle, format, target)

    def _target(
        self, what: str, uri: TableUri | None, storage_options: StorageOptions | None
    ) -> ObjectStore:
        handle = self.handle
        if uri is not None:
            options = handle.storage_options if storage_options is None else storage_options
            return open_store(uri, options or None)
        if handle.store is not table_store(handle.store):
            raise UnsupportedOperation(
                f"{what}: this is a branch or tag, and the metadata in the folder is that of the "
                "table; give uri="
            )
        return handle.store


def _check_format(what: str, format_: str) -> None:
    if format_ not in FORMATS:
        raise InvalidInput(f"{what}: format must be 'delta' or 'iceberg', not {format_!r}")


def _catalog_of(format_: str, catalog: Any, name: str | None) -> Any:
    """The catalog to publish into; InvalidInput if one of it and the name is missing."""
    _check_format("publish", format_)
    if catalog is None and name is None:
        return None
    if catalog is None or name is None:
        missing = "catalog" if catalog is None else "name"
        raise InvalidInput(
            f"publish: a catalog and the table's name in it go together; give {missing}="
        )
    if not all(name.split(".")) or "." not in name:
        raise InvalidInput(
            f"publish: {name!r} names no table of a catalog; give a namespace and a name, as in "
            "'db.places'"
        )
    if format_ != "iceberg":
        raise InvalidInput(
            f"publish: pyiceberg's catalogs have no {format_} tables; leave out catalog="
        )
    return open_catalog(catalog)
