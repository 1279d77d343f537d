"""The names by which Delta's readers find columns in the files: column mapping by name.

Soundness: readers look a column up by one name in all files. So all files that have a field must
have it under the same name, and no file may have another field under that name. Delta's mapping by
field ids is not used: readers that do not know it return NULL for every column (seen in the
kernel of deltalake 1.6.6 and of DuckDB 1.5.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from rowsieve.errors import UnsupportedOperation
from rowsieve.objects import ObjectStore
from rowsieve.publication.readable_files import REMEDY, stored_fields
from rowsieve.storage.snapshot import Snapshot
from rowsieve.types import logical
from rowsieve.types.field_paths import children
from rowsieve.types.schema import Schema
from rowsieve.types.stored_names import has_tags, tag_of


def physical_names(snapshot: Snapshot, source: ObjectStore) -> dict[int, str]:
    """Return the name in the files of each column and each field of a struct, by its id.

    Fields that no earlier file has get the name that new files give them. UnsupportedOperation if
    one name does not find a field in all files.
    """
    tags = has_tags(snapshot.table.properties)
    fields = {field.id: (field, parent_id) for field, parent_id in _named_fields(snapshot.schema)}
    new_names = {n: tag_of(n) if tags else field.name for n, (field, _) in fields.items()}
    in_memory = snapshot.parts.held_in_memory()
    parts = snapshot.parts.take(np.flatnonzero(~in_memory))
    with_rows = parts.column("data.path").is_valid()
    schema_ids = parts.column("schema_id").filter(with_rows).to_pylist()
    is_used = in_memory.any() or snapshot.schema.id in schema_ids
    names = dict(new_names) if is_used else {}
    files = stored_fields(parts, snapshot, source)
    for stored in files:
        for number in stored.keys() & fields.keys():
            if names.setdefault(number, stored[number].name) != stored[number].name:
                raise _refused(snapshot, fields[number][0], "another name in older files")
    names = {number: names.get(number, name) for number, name in new_names.items()}
    for stored in files:
        places = {(each.parent_id, each.name): number for number, each in stored.items()}
        for number, (field, parent_id) in fields.items():
            if places.get((parent_id, names[number]), number) != number:
                raise _refused(snapshot, field, "the name of another column in older files")
    return names


def are_other_names(schema: Schema, names: Mapping[int, str]) -> bool:
    """Return whether a column or a field has another name in the files."""
    return any(names[field.id] != field.name for field, _ in _named_fields(schema))


def _named_fields(schema: Schema) -> Iterator[tuple[logical.Field, int | None]]:
    """All columns and fields of structs, with the id of the field that they are right inside."""
    pending: list[tuple[logical.Field, int | None, bool]] = [
        (field, None, True) for field in schema
    ]
    while pending:
        field, parent_id, is_named = pending.pop()
        if is_named:
            yield field, parent_id
        in_struct = isinstance(field.type, logical.Struct)
        pending += [(inner, field.id, in_struct) for _, inner in children(field.type)]


def _refused(snapshot: Snapshot, field: logical.Field, reason: str) -> UnsupportedOperation:
    return UnsupportedOperation(
        f"publish: version {snapshot.version} has a column {field.name!r} with {reason}, and "
        f"readers of Delta find columns by one name; {REMEDY}"
    )
