"""Enums: their labels, and the forms in which these are declared."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import CorruptData, RowsieveError, SchemaMismatch
from rowsieve.types.encodings import ENUM_EXTENSION, arrow_field, logical_type
from rowsieve.types.enums import (
    LABELS_KEY,
    MAX_BYTES,
    MAX_LABELS,
    as_json,
    enum_of,
    named_enum,
    polars_metadata,
    spelled,
)
from rowsieve.types.logical import Enum, Field, String
from rowsieve.types.schema import Schema, named_type, schema_from_json, schema_to_json
from rowsieve.types.widening import is_widened
from tests.profiles import examples

_TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=9)
LABELS = st.lists(_TEXTS, min_size=1, max_size=6, unique=True).map(tuple)
NAMED = {b"ARROW:extension:name": ENUM_EXTENSION}


@examples(200)
@given(LABELS)
def test_every_form_of_a_declaration_keeps_the_labels(labels: tuple[str, ...]) -> None:
    enum = Enum(labels)
    schema = Schema(0, (Field(1, "c", enum),))
    assert named_type(spelled(enum)) == enum
    assert schema_from_json(schema_to_json(schema)) == schema
    assert logical_type(arrow_field(Field(1, "c", enum)), lambda: 0) == enum
    ours = pa.field("c", pa.large_string(), metadata=NAMED | {LABELS_KEY: as_json(enum)})
    assert logical_type(ours, lambda: 0) == enum
    polars = pl.DataFrame({"c": pl.Series([], dtype=pl.Enum(labels))}).to_arrow().schema.field("c")
    assert polars.metadata == polars_metadata(enum)
    assert logical_type(polars, lambda: 0) == enum


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("enum('a')", ("a",)),
        ("ENUM ( 'a' , 'b''c' )", ("a", "b'c")),
        ("enum('a, b', '', ')')", ("a, b", "", ")")),
        ("enum()", None),
        ("enum('a' 'b')", None),
        ("enum('a',)", None),
        ("enum(a)", None),
        ("enum('a'", None),
        ("string", None),
    ],
)
def test_names_of_enums(text: str, labels: tuple[str, ...] | None) -> None:
    found = named_enum(text)
    assert (found and found.labels) == labels


@pytest.mark.parametrize(
    ("labels", "what"),
    [
        ([], "0 labels"),
        ([str(i) for i in range(MAX_LABELS + 1)], "10,001 labels"),
        (["a", "b", "a"], "label 'a' twice"),
        (["a", 1], "'1' is not a label"),
        (["a\0"], "not a label"),
        (["é" * (MAX_BYTES // 2 + 1)], "not a label"),
        (["\ud800"], "not a label"),
    ],
)
def test_other_labels_are_refused(labels: list[object], what: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"column 'c' cannot be an enum.*{what}"):
        enum_of(labels, "c")


@pytest.mark.parametrize(
    "text", [b"", b"{}", b"['a']", b"[1]", b"\xff", b'["a", "a"]', b"[" * 100_000]
)
def test_malformed_metadata_is_refused(text: bytes) -> None:
    field = pa.field("c", pa.string(), metadata=NAMED | {LABELS_KEY: text})
    with pytest.raises(SchemaMismatch, match="column 'c' cannot be an enum"):
        logical_type(field, lambda: 0)


@pytest.mark.parametrize("text", [b"", b"x", b"3;ab", b"1a", b"2;\xff\xff", b"1;a1;a", b"9;"])
def test_metadata_of_polars_that_is_not_understood_leaves_text(text: bytes) -> None:
    field = pa.field("c", pa.string(), metadata={b"_PL_ENUM_VALUES2": text})
    assert logical_type(field, lambda: 0) == String()


def test_an_enum_is_never_inside_another_column() -> None:
    ours = pa.field("c", pa.string(), metadata=NAMED | {LABELS_KEY: b'["a"]'})
    with pytest.raises(SchemaMismatch, match=r"rowsieve.enum.1"):
        logical_type(pa.field("s", pa.struct([ours])), lambda: 0)
    with pytest.raises(SchemaMismatch, match=r"rowsieve.enum.1"):
        logical_type(pa.field("c", pa.int64(), metadata=dict(ours.metadata)), lambda: 0)


def test_a_malformed_enum_in_the_log_is_corrupt() -> None:
    form = {"id": 1, "name": "c", "type": "enum('a','a')", "nullable": True}
    with pytest.raises(CorruptData):
        schema_from_json({"id": 0, "fields": [form]})
    with pytest.raises(RowsieveError):
        schema_from_json({"id": 0, "fields": [form | {"type": "enum('a'"}]})


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("ab", "abc", True),
        ("ab", "ab", True),
        ("ab", "acb", False),
        ("ab", "cab", False),
        ("ab", "a", False),
        ("ab", "ba", False),
    ],
)
def test_labels_are_added_at_the_end_only(old: str, new: str, *, allowed: bool) -> None:
    assert is_widened(Enum(tuple(old)), Enum(tuple(new))) is allowed
    assert not is_widened(Enum(tuple(old)), String())
    assert not is_widened(String(), Enum(tuple(new)))
