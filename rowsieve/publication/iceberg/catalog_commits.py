"""Put what is published into a catalog that pyiceberg opens: REST, SQL, Glue, Hive and others.

A name that is new is registered with the metadata file of the publication. After that, a catalog in
SQL is given the next metadata file, and a REST catalog a commit, which adds the schemas and
snapshots that it lacks. Its server then writes metadata files of its own, into a folder beside
those of the publication, and numbers schemas itself: a new one gets the next number, and the
snapshots are given that. In other catalogs pyiceberg 0.12 would write the metadata file, and it
cannot write format version 3; a table of theirs stays as it was registered.

Soundness (invariant 44): the catalog's table must be ours, and what is replaced is what was read,
which the catalog checks. So a snapshot of another writer is never replaced, and of two publications
the newer one stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from rowsieve.bridges.extras import imported, is_instance
from rowsieve.errors import (
    CommitConflict,
    InvalidInput,
    NotFound,
    RowsieveError,
    StoreError,
    UnsupportedOperation,
)
from rowsieve.publication.iceberg.table_metadata import CATALOG_FOLDER, TABLE, VERSION

_METADATA_PATH: Final = "write.metadata.path"
_MAIN: Final = "main"
_ATTEMPTS: Final = 5


def open_catalog(catalog: Any) -> Any:
    """The catalog of pyiceberg itself, or the one of a name or of properties in its configuration.

    InvalidInput if it is none of these, or cannot be opened; MissingExtra without pyiceberg.
    """
    package: Any = imported("pyiceberg.catalog", "iceberg")
    if isinstance(catalog, package.Catalog):
        return catalog
    try:
        if isinstance(catalog, Mapping):
            return package.load_catalog(**catalog)
        if isinstance(catalog, str):
            return package.load_catalog(catalog)
    except Exception as error:
        raise InvalidInput(
            f"publish: pyiceberg cannot open the catalog: {type(error).__name__}; give a catalog "
            "of pyiceberg, or the name or properties that pyiceberg.catalog.load_catalog takes"
        ) from error
    raise InvalidInput(
        f"publish: catalog is {type(catalog).__name__}; give a catalog of pyiceberg, a name in its "
        "configuration, or a mapping of properties"
    )


def identity_of(catalog: Any) -> str:
    """The name and the address by which publications tell catalogs apart."""
    return f"{catalog.name} {catalog.properties.get('uri', '')}"


def put_into_catalog(catalog: Any, name: str, metadata_location: str) -> str:
    """Make the newest snapshot of a metadata file the newest one of a catalog's table.

    Returns the catalog's metadata location. Does nothing if the snapshot is the newest one there.
    StoreError if the catalog fails, after which the same call goes on.
    """
    try:
        return _put(catalog, name, metadata_location)
    except RowsieveError:
        raise
    except Exception as error:
        raise StoreError(
            f"publish: the catalog failed with {type(error).__name__} while {name!r} was put into "
            "it; the version is published in its folder, so call it again once the catalog "
            "answers, or drop the name there if what it names was deleted"
        ) from error


def _put(catalog: Any, name: str, metadata_location: str) -> str:
    errors: Any = imported("pyiceberg.exceptions", "iceberg")
    overtaken = errors.CommitFailedException, errors.CommitStateUnknownException
    for _ in range(_ATTEMPTS):
        try:
            theirs = catalog.load_table(name)
        except errors.NoSuchTableError:
            try:
                return str(catalog.register_table(name, metadata_location).metadata_location)
            except errors.TableAlreadyExistsError:  # another process registered it
                continue
            except errors.NoSuchNamespaceError as error:
                raise NotFound(
                    f"publish: the catalog has no namespace for {name!r}; create it first, with "
                    "catalog.create_namespace"
                ) from error
        try:
            return _moved_on(catalog, theirs, metadata_location, name)
        except overtaken:  # another process committed first, or the answer was lost
            continue
    raise CommitConflict(
        f"publish: other commits to {name!r} in the catalog came first, {_ATTEMPTS} times; call it "
        "again"
    )


def _moved_on(catalog: Any, theirs: Any, location: str, name: str) -> str:
    """Move the catalog's table on to the snapshot of a metadata file, unless it is there."""
    serializers: Any = imported("pyiceberg.serializers", "iceberg")
    ours = serializers.FromInputFile.table_metadata(theirs.io.new_input(location))
    _check_ours(theirs, ours, name)
    if is_instance(catalog, "pyiceberg.catalog.sql", "SqlCatalog"):
        return _swapped(catalog, theirs, location)
    _check_continued(theirs.metadata, ours, name)
    steps: Any = imported("pyiceberg.table.update", "iceberg")
    newest = theirs.metadata.current_snapshot_id
    requirements = (
        steps.AssertTableUUID(uuid=theirs.metadata.table_uuid),
        steps.AssertRefSnapshotId(ref=_MAIN, snapshot_id=newest),
    )
    updates = tuple(_updates(theirs.metadata, ours, steps))
    if not updates:
        return str(theirs.metadata_location)
    try:
        return str(catalog.commit_table(theirs, requirements, updates).metadata_location)
    except NotImplementedError as error:
        raise UnsupportedOperation(
            f"publish: {type(catalog).__name__} of pyiceberg cannot move {name!r} on to another "
            "snapshot of format version 3; use a REST or SQL catalog, or drop the name there and "
            "publish again, which registers it"
        ) from error


def _swapped(catalog: Any, theirs: Any, location: str) -> str:
    """Name another metadata file in the row of a catalog's table, if it is as it was read."""
    if theirs.metadata_location == location:
        return location
    sql: Any = imported("pyiceberg.catalog.sql", "iceberg")
    sqlalchemy: Any = imported("sqlalchemy", "iceberg")
    rows, (*namespace, name) = sql.IcebergTables, theirs.name()
    statement = (
        sqlalchemy.update(rows)
        .where(rows.catalog_name == catalog.name)
        .where(rows.table_namespace == ".".join(namespace))
        .where(rows.table_name == name)
        .where(rows.metadata_location == theirs.metadata_location)
        .values(metadata_location=location, previous_metadata_location=theirs.metadata_location)
    )
    with catalog.engine.begin() as connection:
        if connection.execute(statement).rowcount == 1:
            return location
    errors: Any = imported("pyiceberg.exceptions", "iceberg")
    raise errors.CommitFailedException(f"{name} was changed by another process")


def _check_ours(theirs: Any, ours: Any, name: str) -> None:
    newest: Any = theirs.current_snapshot()
    version: Any = _version_of(ours.current_snapshot())
    theirs_version = _version_of(newest)
    if theirs.metadata.properties.get(TABLE) != ours.properties[TABLE] or theirs_version is None:
        raise UnsupportedOperation(
            f"publish: {name!r} in the catalog is another table, or another writer has committed "
            "to it; publish under another name"
        )
    if theirs_version > version:
        raise UnsupportedOperation(
            f"publish: {name!r} in the catalog has version {theirs_version} already, and version "
            f"{version} is older; publish the newest version"
        )
    if theirs_version == version and newest.snapshot_id != ours.current_snapshot_id:
        raise UnsupportedOperation(
            f"publish: version {version} of {name!r} in the catalog is that of another commit: the "
            "log of the table was replaced since. Publish under another name"
        )


def _check_continued(theirs: Any, ours: Any, name: str) -> None:
    """Raise UnsupportedOperation if the newest snapshot would not become one of the catalog.

    Another publication of the table has numbers of its own; so has one that was deleted and began
    anew. A snapshot that the catalog has must be the same one, with the same list of files.
    """
    newest = ours.current_snapshot()
    known = {each.snapshot_id: each.manifest_list for each in theirs.snapshots}
    is_new = newest.sequence_number > theirs.last_sequence_number
    if not is_new and known.get(newest.snapshot_id) != newest.manifest_list:
        raise UnsupportedOperation(
            f"publish: {name!r} in the catalog follows another publication of the table, in "
            f"{theirs.location}, or one that was deleted since; publish there, or drop the name in "
            "the catalog and publish again"
        )


def _version_of(snapshot: Any) -> int | None:
    """The version of the table that a snapshot is; None for one of another writer."""
    text = None if snapshot is None or snapshot.summary is None else snapshot.summary.get(VERSION)
    return None if text is None else int(text)


def _updates(theirs: Any, ours: Any, steps: Any) -> Iterator[Any]:
    """The steps from the catalog's metadata to the published one."""
    numbers: dict[int, int] = {}
    schemas = list(theirs.schemas)
    for schema in ours.schemas:
        known = next((each.schema_id for each in schemas if each == schema), None)
        if known is None:
            known = max(each.schema_id for each in schemas) + 1
            schemas.append(schema.model_copy(update={"schema_id": known}))
            yield steps.AddSchemaUpdate(schema_=schemas[-1])
        numbers[schema.schema_id] = known
    if (current := numbers[ours.current_schema_id]) != theirs.current_schema_id:
        yield steps.SetCurrentSchemaUpdate(schema_id=current)
    known_ids = {each.snapshot_id for each in theirs.snapshots}
    for snapshot in ours.snapshots:
        if snapshot.sequence_number > theirs.last_sequence_number:
            numbered = snapshot.model_copy(update={"schema_id": numbers[snapshot.schema_id]})
            yield steps.AddSnapshotUpdate(snapshot=numbered)
            known_ids.add(snapshot.snapshot_id)
    yield from _moved_refs(theirs, ours, known_ids, steps)
    if gone := known_ids - {each.snapshot_id for each in ours.snapshots}:
        yield steps.RemoveSnapshotsUpdate(snapshot_ids=sorted(gone))
    folder = f"{ours.location}/{CATALOG_FOLDER}"
    if known_ids - {each.snapshot_id for each in theirs.snapshots} and folder != (
        theirs.properties.get(_METADATA_PATH)
    ):
        yield steps.SetPropertiesUpdate(updates={_METADATA_PATH: folder})


def _moved_refs(theirs: Any, ours: Any, known_ids: AbstractSet[int], steps: Any) -> Iterator[Any]:
    """The steps that make main and the tags those of the publication, as far as they are known."""
    wanted = {name: ref for name, ref in ours.refs.items() if ref.snapshot_id in known_ids}
    for name, ref in wanted.items():
        if name not in theirs.refs or theirs.refs[name].snapshot_id != ref.snapshot_id:
            kind = ref.snapshot_ref_type
            yield steps.SetSnapshotRefUpdate(ref_name=name, type=kind, snapshot_id=ref.snapshot_id)
    for name in sorted(theirs.refs.keys() - wanted.keys()):
        yield steps.RemoveSnapshotRefUpdate(ref_name=name)
