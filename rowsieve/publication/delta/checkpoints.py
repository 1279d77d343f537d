"""Checkpoints of a Delta log: the state of a version in one Parquet file.

One is written every 64 versions, so neither readers nor the next publication replay more entries.
`_delta_log/_last_checkpoint` names the newest one.
https://github.com/delta-io/delta/blob/master/PROTOCOL.md#checkpoints
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from rowsieve.decoded_types import described
from rowsieve.errors import CorruptData, NotFound
from rowsieve.objects import ObjectStore, put_if_absent

LOG: Final = "_delta_log"
LAST: Final = f"{LOG}/_last_checkpoint"
INTERVAL: Final = 64
_TEXTS: Final = pa.map_(pa.string(), pa.string())
_VECTOR: Final = pa.struct(
    {
        "storageType": pa.string(),
        "pathOrInlineDv": pa.string(),
        "offset": pa.int32(),
        "sizeInBytes": pa.int32(),
        "cardinality": pa.int64(),
    }
)
_ADD: Final = pa.struct(
    {
        "path": pa.string(),
        "partitionValues": _TEXTS,
        "size": pa.int64(),
        "modificationTime": pa.int64(),
        "dataChange": pa.bool_(),
        "stats": pa.string(),
        "deletionVector": _VECTOR,
    }
)
_METADATA: Final = pa.struct(
    {
        "id": pa.string(),
        "format": pa.struct({"provider": pa.string(), "options": _TEXTS}),
        "schemaString": pa.string(),
        "partitionColumns": pa.list_(pa.string()),
        "configuration": _TEXTS,
        "createdTime": pa.int64(),
    }
)
_PROTOCOL: Final = pa.struct(
    {
        "minReaderVersion": pa.int32(),
        "minWriterVersion": pa.int32(),
        "readerFeatures": pa.list_(pa.string()),
        "writerFeatures": pa.list_(pa.string()),
    }
)
_DOMAIN: Final = pa.struct(
    {"domain": pa.string(), "configuration": pa.string(), "removed": pa.bool_()}
)
_SCHEMA: Final = pa.schema(
    {"protocol": _PROTOCOL, "metaData": _METADATA, "add": _ADD, "domainMetadata": _DOMAIN}
)


class _Last(msgspec.Struct):
    version: int


def checkpoint_name(number: int) -> str:
    """The path of the checkpoint of a version of the log."""
    return f"{LOG}/{number:020}.checkpoint.parquet"


def write_checkpoint(store: ObjectStore, number: int, actions: list[dict[str, Any]]) -> None:
    """Write the state of a version, as actions by their names, then name it as the newest one."""
    sink = pa.BufferOutputStream()
    rows = [
        {kind: _with_maps(action) for kind, action in each.items() if kind in _SCHEMA.names}
        for each in actions
    ]
    pq.write_table(pa.Table.from_pylist(rows, _SCHEMA), sink, compression="snappy")
    last = msgspec.json.encode({"version": number, "size": len(rows)})
    # A concurrent publication may have written it.
    put_if_absent(store, checkpoint_name(number), memoryview(sink.getvalue()))
    store.put_hint(LAST, last)


def last_checkpoint(store: ObjectStore) -> tuple[int, list[dict[str, Any]]] | None:
    """Read the newest checkpoint: its version, and its actions by their names; None if none."""
    try:
        number = msgspec.json.decode(store.get(LAST), type=described(_Last)).version
        data = store.get(checkpoint_name(number))
    except NotFound:
        return None
    except msgspec.DecodeError as error:
        raise _damaged(store) from error
    try:
        rows = pq.read_table(pa.BufferReader(data), schema=_SCHEMA).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise _damaged(store) from error
    return number, [
        {kind: _without_maps(action) for kind, action in row.items() if action is not None}
        for row in rows
    ]


def _with_maps(value: Any) -> Any:
    """Give objects of JSON that are maps in Parquet their form there: pairs."""
    if not isinstance(value, dict):
        return value
    maps = ("partitionValues", "configuration", "options")
    return {
        name: list(content.items())
        if name in maps and isinstance(content, dict)
        else _with_maps(content)
        for name, content in value.items()
    }


def _without_maps(action: dict[str, Any]) -> dict[str, Any]:
    """Return the action as JSON has it: without fields that are NULL, and with objects."""
    plain: dict[str, Any] = {}
    for name, content in action.items():
        if name in ("partitionValues", "configuration", "options") and isinstance(content, list):
            plain[name] = dict(content)
        elif content is not None:
            plain[name] = _without_maps(content) if isinstance(content, dict) else content
    return plain


def _damaged(store: ObjectStore) -> CorruptData:
    return CorruptData(
        f"publish: the checkpoint that {LAST} in {store.uri} names cannot be read; restore it "
        "from a copy, or publish into another folder"
    )
