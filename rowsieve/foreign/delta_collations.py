"""Refuse columns of a Delta table that compare by a collation.

Spark keeps the collations of text in the metadata of the nearest field of a struct, by path:
`{"__COLLATIONS": {"name": "spark.UTF8_LCASE", "tags.element": "icu.UNICODE_CI"}}`. Soundness: text
of a table is compared by its bytes, so conditions and keys over such a column would match other
rows than Spark's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rowsieve.errors import UnsupportedOperation

_COLLATIONS: Final = "__COLLATIONS"
_BY_BYTES: Final = "UTF8_BINARY"


def refuse_collations(operation: str, fields: Sequence[Mapping[str, Any]]) -> None:
    """Raise UnsupportedOperation for text with a collation; `fields` are those of Delta's log."""
    pending = [("", field) for field in fields]
    while pending:
        outer, field = pending.pop(0)
        collations = field.get("metadata", {}).get(_COLLATIONS, {})
        for path, name in collations.items():
            collation = str(name).rpartition(".")[2]  # its provider is before it
            if collation != _BY_BYTES:
                raise UnsupportedOperation(
                    f"{operation}: column {outer + path!r} has Spark's collation {collation}, and "
                    "text of a table is compared by its bytes, so conditions and keys would match "
                    f"other rows. Write it in Spark as STRING COLLATE {_BY_BYTES}, or lower(…) of "
                    "it, to another Delta table"
                )
        inner = f"{outer}{field['name']}."
        pending += [(inner, each) for each in _fields_inside(field["type"])]


def _fields_inside(type_: Any) -> list[Mapping[str, Any]]:
    """The fields of the structs nearest inside a type."""
    match type_:
        case {"fields": fields}:
            return list(fields)
        case {"elementType": element}:
            return _fields_inside(element)
        case {"keyType": key, "valueType": value}:
            return [*_fields_inside(key), *_fields_inside(value)]
        case _:
            return []
