"""Publish a version as the next version of a Delta log over the same files.

The log has the schema, and an `add` with path, size and row count for each file; no data is copied.
Soundness: Delta readers return all rows of the files, so a version is published only if they are
all visible: parts do not overlap, and there are no tombstones or deletion vectors. All files have
the current columns and are our own. Anything else is refused, with what to do. Where files have
tags instead of names, Delta's column mapping by name tells readers which column each one is.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec
import numpy as np

from rowsieve.errors import CommitConflict, CorruptData, UnsupportedOperation
from rowsieve.objects import ObjectExists, ObjectStore
from rowsieve.parquet.stored_forms import STRUCTURED_FORMAT
from rowsieve.planner.part_facts import part_facts
from rowsieve.publication.places import location_of
from rowsieve.publication.publication import Publication
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types import logical
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags, tag_of

LOG: Final = "_delta_log"
_TABLE: Final = "rowsieve.table"
_ENGINE: Final = "rowsieve"  # the engine that our commits name; others keep our table's properties
_FLAT: Final[Mapping[logical.LogicalType, str]] = {
    logical.Bool(): "boolean",
    logical.Int(8): "byte",
    logical.Int(16): "short",
    logical.Int(32): "integer",
    logical.Int(64): "long",
    logical.Float(32): "float",
    logical.Float(64): "double",
    logical.String(): "string",
    logical.Json(): "string",
    logical.Binary(): "binary",
    logical.Date(): "date",
    logical.Timestamp(utc=True): "timestamp",
    logical.Timestamp(utc=False): "timestamp_ntz",
}


class _File(msgspec.Struct):
    path: str


class _Info(msgspec.Struct):
    engine: str | None = msgspec.field(name="engineInfo", default=None)


class _Metadata(msgspec.Struct):
    id: str
    configuration: dict[str, str | None] = {}


class _Action(msgspec.Struct):
    """The fields that we read of a line of the log."""

    add: _File | None = None
    remove: _File | None = None
    metadata: _Metadata | None = msgspec.field(name="metaData", default=None)
    info: _Info | None = msgspec.field(name="commitInfo", default=None)


def publish_log(target: ObjectStore, snapshot: Snapshot, source_uri: str) -> Publication:
    """Write the version as the next version of the Delta log in `target`.

    UnsupportedOperation if Delta readers would read other rows than we do, or if the log is not
    this table's; CommitConflict if another process wrote that version of the log.
    """
    check_clean(snapshot, "delta")
    mapped = has_tags(snapshot.table.properties)
    fields = _struct(snapshot.schema.fields, "", mapped=mapped)
    schema_text = msgspec.json.encode(fields).decode()
    prefix = "" if target.uri == source_uri else f"{source_uri}/"
    adds = _adds(snapshot, prefix)
    version, known, table_id = _read(target, snapshot.table.uuid)
    written_ms = snapshot.timestamp_us // 1000
    lines: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": written_ms, "operation": "WRITE", "engineInfo": _ENGINE}},
        {"protocol": _protocol(snapshot.schema, mapped=mapped)},
        {"metaData": _metadata(table_id, schema_text, snapshot, mapped=mapped)},
    ]
    removed = {"deletionTimestamp": written_ms, "dataChange": True}
    lines += [{"remove": {"path": path, **removed}} for path in known if path not in adds]
    lines += [{"add": add} for path, add in adds.items() if path not in known]
    data = b"\n".join(msgspec.json.encode(line) for line in lines)
    try:
        target.put_new(f"{LOG}/{version:020}.json", data)
    except ObjectExists as error:
        raise CommitConflict(
            f"publish: another process wrote version {version} of {target.uri}/{LOG}; call it again"
        ) from error
    return Publication("delta", snapshot.version, location_of(target.uri), version)


def check_clean(snapshot: Snapshot, form: str) -> None:
    """Raise UnsupportedOperation unless every row of every file is visible, as it is stored."""
    parts = snapshot.parts
    facts = part_facts(snapshot)
    groups = facts.groups(np.arange(len(parts)))
    reasons = {
        # A delete hides no row of its own part, and one of another part is in the same group.
        "rows that newer versions or deletes hide": len(groups) < len(parts)
        or parts.column("dv.path").null_count < len(parts),
        "files with opaque values": (parts.numbers("format_version") > STRUCTURED_FORMAT).any(),
        "files of earlier columns": any(
            schema_id != snapshot.schema.id for schema_id in parts.column("schema_id").to_pylist()
        ),
        "rows in its log": parts.held_in_memory().any(),
        "files that are not its own": any(
            ref is not None and not ref.owned for ref in parts.files("data")
        ),
    }
    for reason, applies in reasons.items():
        if applies:
            raise UnsupportedOperation(
                f"publish: version {snapshot.version} has {reason}, which readers of {form} would "
                "read otherwise; compact first: table.compact(), or the procedure "
                "rewrite_data_files with rewrite_all"
            )


def _adds(snapshot: Snapshot, prefix: str) -> dict[str, dict[str, Any]]:
    adds: dict[str, dict[str, Any]] = {}
    for ref in snapshot.parts.files("data"):
        if ref is not None:
            path = quote(f"{prefix}{ref.path}", safe="/:=%@,") if prefix else ref.path
            adds[path] = {
                "path": path,
                "partitionValues": {},
                "size": ref.size_bytes,
                "modificationTime": snapshot.timestamp_us // 1000,
                "dataChange": True,
                "stats": msgspec.json.encode({"numRecords": ref.rows}).decode(),
            }
    return adds


def _read(target: ObjectStore, table_uuid: str) -> tuple[int, set[str], str]:
    """The next version of the log, the files of the last one, and the table's id.

    UnsupportedOperation unless each version is a publication of this table, which the next one
    replaces.
    Other writers keep the properties of a table when they change it, so the commit must name us,
    too.
    """
    names = target.list(LOG)
    if any(not name.endswith(".json") for name in names):
        raise _not_ours(target)
    active: set[str] = set()
    table_id = str(uuid.uuid4())
    for number, name in enumerate(names):
        if name != f"{LOG}/{number:020}.json":
            raise CorruptData(f"publish: {target.uri} lacks version {number} of its Delta log")
        owner = engine = None
        for line in target.get(name).splitlines():
            action = _action(line, target)
            if action.info is not None:
                engine = action.info.engine
            if action.metadata is not None:
                owner, table_id = action.metadata.configuration.get(_TABLE), action.metadata.id
            if action.add is not None:
                active.add(action.add.path)
            if action.remove is not None:
                active.discard(action.remove.path)
        if engine != _ENGINE or owner != table_uuid:
            raise _not_ours(target)
    return len(names), active, table_id


def _action(line: bytes, target: ObjectStore) -> _Action:
    try:
        return msgspec.json.decode(line, type=_Action)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _not_ours(target) from error


def _not_ours(target: ObjectStore) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"publish: {target.uri}/{LOG} has a Delta table of another writer or of another table; "
        "publish into a folder without a Delta table"
    )


def _protocol(schema: Schema, *, mapped: bool) -> dict[str, Any]:
    features = ["columnMapping"] if mapped else []
    if any(_has_local_time(field.type) for field in schema):
        features.append("timestampNtz")
    if not features:
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    supported = {"readerFeatures": features, "writerFeatures": features}
    return {"minReaderVersion": 3, "minWriterVersion": 7, **supported}


def _has_local_time(type_: logical.LogicalType) -> bool:
    match type_:
        case logical.List(element=element):
            return _has_local_time(element.type)
        case logical.Struct(fields=fields):
            return any(_has_local_time(field.type) for field in fields)
        case logical.Map(key=key, value=value):
            return _has_local_time(key.type) or _has_local_time(value.type)
        case _:
            return type_ == logical.Timestamp(utc=False)


def _metadata(
    table_id: str, schema_text: str, snapshot: Snapshot, *, mapped: bool
) -> dict[str, Any]:
    configuration = {"rowsieve.version": str(snapshot.version), _TABLE: snapshot.table.uuid}
    if mapped:
        configuration["delta.columnMapping.mode"] = "name"
        configuration["delta.columnMapping.maxColumnId"] = str(snapshot.next_field_id - 1)
    return {
        "id": table_id,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": schema_text,
        "partitionColumns": [],
        "configuration": configuration,
        "createdTime": snapshot.timestamp_us // 1000,
    }


def _struct(fields: tuple[logical.Field, ...], path: str, *, mapped: bool) -> dict[str, Any]:
    """The columns, or the fields of a struct, which are NULL wherever the struct is."""
    return {
        "type": "struct",
        "fields": [
            {
                "name": field.name,
                "type": _type(field.type, f"{path}{field.name}", mapped=mapped),
                "nullable": field.nullable or bool(path),
                "metadata": _mapping(field) if mapped else {},
            }
            for field in fields
        ],
    }


def _mapping(field: logical.Field) -> dict[str, Any]:
    """The metadata that tells readers the field's id and its name in the files."""
    return {
        "delta.columnMapping.id": field.id,
        "delta.columnMapping.physicalName": tag_of(field.id),
    }


def _type(type_: logical.LogicalType, path: str, *, mapped: bool) -> Any:
    match type_:
        case logical.Decimal(precision=precision, scale=scale):
            return f"decimal({precision},{scale})"
        case logical.List(element=element):
            of = _type(element.type, f"{path}.element", mapped=mapped)
            return {"type": "array", "elementType": of, "containsNull": element.nullable}
        case logical.Struct(fields=fields):
            return _struct(fields, f"{path}.", mapped=mapped)
        case logical.Map(key=key, value=value):
            return {
                "type": "map",
                "keyType": _type(key.type, f"{path}.key", mapped=mapped),
                "valueType": _type(value.type, f"{path}.value", mapped=mapped),
                "valueContainsNull": value.nullable,
            }
    if isinstance(type_, logical.Enum):
        return "string"
    if (delta_type := _FLAT.get(type_)) is None:
        raise UnsupportedOperation(
            f"publish: column {path!r} has the type {logical.type_name(type_)}, which Delta does "
            "not have; widen or drop the column, or publish a table without it"
        )
    return delta_type
