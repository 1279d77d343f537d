"""Finds the Variants in a Parquet file, at any depth, and marks them with an extension type.

pyarrow reads a Variant as a struct of its bytes and does not say that it is one. The footer does:
by the logical type VARIANT, or, in files of older Spark, by Spark's own schema in the metadata.
Soundness: a struct without such a mark stays a struct; names of members prove nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pyarrow as pa

from rowsieve.decoded_types import described
from rowsieve.parquet.foreign_footer.checked_footer import CheckedFooter
from rowsieve.parquet.foreign_footer.schema_tree import LOGICAL, Element
from rowsieve.types.encodings import EXTENSION_KEY
from rowsieve.types.variants.variant_json import EXTENSIONS, is_variant, may_have_variant

_VARIANT: Final = 16  # of the union LogicalType
SPARK_SCHEMA: Final = b"org.apache.spark.sql.parquet.row.metadata"
_MARK: Final = {EXTENSION_KEY: EXTENSIONS[0]}


@dataclass(slots=True)
class _Element:
    name: str
    is_variant: bool
    members: list[_Element] = field(default_factory=list)


def with_variants(schema: pa.Schema, footer: CheckedFooter) -> pa.Schema:
    """Return the schema of a footer with Variant's extension on the fields that are Variants."""
    if not any(type_.num_fields and may_have_variant(type_) for type_ in schema.types):
        return schema
    root = _tree(footer.elements)
    named = _named_by_spark(footer.pairs.get(SPARK_SCHEMA))
    return pa.schema(
        [
            _marked(each, element, marked=each.name in named and is_variant(each.type))
            for each, element in zip(schema, root.members, strict=True)
        ]
    )


def _tree(elements: Sequence[Element]) -> _Element:
    """Build the tree of columns from a list in which members follow their parent."""
    path: list[_Element] = []
    for each in elements:
        is_variant = _VARIANT in each.values.get(LOGICAL, {})
        element = _Element(each.name, is_variant)
        if each.depth:
            path[each.depth - 1].members.append(element)
        path[each.depth :] = [element]
    return path[0]


def _marked(each: pa.Field, element: _Element, *, marked: bool = False) -> pa.Field:
    if marked or element.is_variant:
        return each.with_metadata({**(each.metadata or {}), **_MARK})
    type_ = each.type
    if not may_have_variant(type_):
        return each
    members = _members(type_)
    elements = _elements(type_, element)
    if len(members) != len(elements):  # its layout is unknown
        return each
    marks = [_marked(*both) for both in zip(members, elements, strict=True)]
    if pa.types.is_struct(type_):
        return each.with_type(pa.struct(marks))
    return each.with_type(pa.map_(*marks) if pa.types.is_map(type_) else pa.list_(marks[0]))


def _members(type_: pa.DataType) -> list[pa.Field]:
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    return [type_.field(i) for i in range(type_.num_fields)]


def _elements(type_: pa.DataType, element: _Element) -> list[_Element]:
    """The elements of the members of a column: a list and a map have a repeated group between."""
    if pa.types.is_struct(type_) or len(element.members) != 1:
        return element.members
    repeated = element.members[0]
    two_levels = not pa.types.is_map(type_) and len(repeated.members) != 1
    return [repeated] if two_levels else repeated.members


def _named_by_spark(schema: bytes | None) -> frozenset[str]:
    """The top-level columns that Spark's own schema of the file calls a variant."""
    return frozenset(_variant_fields(schema)) if schema else frozenset()


def _variant_fields(schema: bytes) -> Iterator[str]:
    try:
        fields = msgspec.json.decode(schema, type=described(_SparkSchema)).fields
    except msgspec.MsgspecError:
        return
    for each in fields:
        if each.type == "variant":
            yield each.name


class _SparkField(msgspec.Struct):
    name: str
    type: Any


class _SparkSchema(msgspec.Struct):
    fields: list[_SparkField]
