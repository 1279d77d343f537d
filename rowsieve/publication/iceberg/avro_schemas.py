"""The Avro schemas of manifests and manifest lists of format version 3, without partitions.

The names and ids are those of https://iceberg.apache.org/spec/#manifests
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec


def _field(number: int, name: str, type_: Any) -> dict[str, Any]:
    return {"name": name, "type": type_, "field-id": number}


def _optional(number: int, name: str, type_: Any) -> dict[str, Any]:
    return {**_field(number, name, ["null", type_]), "default": None}


def _record(name: str, fields: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _map(key: int, value: int, type_: str) -> dict[str, Any]:
    fields = [_field(key, "key", "int"), _field(value, "value", type_)]
    return {"type": "array", "logicalType": "map", "items": _record(f"k{key}_v{value}", fields)}


def _list(element: int, type_: Any) -> dict[str, Any]:
    return {"type": "array", "items": type_, "element-id": element}


_DATA_FILE: Final = _record(
    "r2",
    [
        _field(134, "content", "int"),
        _field(100, "file_path", "string"),
        _field(101, "file_format", "string"),
        _field(102, "partition", _record("r102", [])),
        _field(103, "record_count", "long"),
        _field(104, "file_size_in_bytes", "long"),
        _optional(108, "column_sizes", _map(117, 118, "long")),
        _optional(109, "value_counts", _map(119, 120, "long")),
        _optional(110, "null_value_counts", _map(121, 122, "long")),
        _optional(137, "nan_value_counts", _map(138, 139, "long")),
        _optional(125, "lower_bounds", _map(126, 127, "bytes")),
        _optional(128, "upper_bounds", _map(129, 130, "bytes")),
        _optional(131, "key_metadata", "bytes"),
        _optional(132, "split_offsets", _list(133, "long")),
        _optional(135, "equality_ids", _list(136, "int")),
        _optional(140, "sort_order_id", "int"),
        _optional(142, "first_row_id", "long"),
        _optional(143, "referenced_data_file", "string"),
        _optional(144, "content_offset", "long"),
        _optional(145, "content_size_in_bytes", "long"),
    ],
)
_SUMMARY: Final = _record(
    "r508",
    [
        _field(509, "contains_null", "boolean"),
        _optional(518, "contains_nan", "boolean"),
        _optional(510, "lower_bound", "bytes"),
        _optional(511, "upper_bound", "bytes"),
    ],
)
ENTRY: Final = msgspec.json.encode(
    _record(
        "manifest_entry",
        [
            _field(0, "status", "int"),
            _optional(1, "snapshot_id", "long"),
            _optional(3, "sequence_number", "long"),
            _optional(4, "file_sequence_number", "long"),
            _field(2, "data_file", _DATA_FILE),
        ],
    )
)
MANIFEST: Final = msgspec.json.encode(
    _record(
        "manifest_file",
        [
            _field(500, "manifest_path", "string"),
            _field(501, "manifest_length", "long"),
            _field(502, "partition_spec_id", "int"),
            _field(517, "content", "int"),
            _field(515, "sequence_number", "long"),
            _field(516, "min_sequence_number", "long"),
            _field(503, "added_snapshot_id", "long"),
            _field(504, "added_files_count", "int"),
            _field(505, "existing_files_count", "int"),
            _field(506, "deleted_files_count", "int"),
            _field(512, "added_rows_count", "long"),
            _field(513, "existing_rows_count", "long"),
            _field(514, "deleted_rows_count", "long"),
            _optional(507, "partitions", _list(508, _SUMMARY)),
            _optional(519, "key_metadata", "bytes"),
            _optional(520, "first_row_id", "long"),
        ],
    )
)
