"""Variants as JSON text: `rowsieve.types.variants.variant_json`."""

from __future__ import annotations

import base64
import json
import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.types.variants.variant_json import is_variant, json_of_variants
from tests.profiles import examples
from tests.types.variants import JsonNull, column, metadata, variant

_NUMBERS = (
    st.integers(-(2**63) + 1, 2**63 - 1)
    | st.integers(-(10**38) + 1, 10**38 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.builds(
        lambda number, scale: Decimal(number).scaleb(-scale),
        st.integers(-(10**18), 10**18),
        st.integers(0, 18),
    )
)
_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.text(
    'a"\\\n\x00\x1f\x7f\u2028é', max_size=80
)
_DOCUMENTS = st.recursive(
    st.builds(JsonNull) | st.booleans() | _NUMBERS | _TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(_TEXTS | st.just("a"), inner, max_size=4)
    ),
    max_leaves=12,
)


def _same(found: Any, wanted: Any) -> bool:
    """Whether a text of JSON, as `_read` reads it, has the keys in order and this value."""
    if isinstance(wanted, dict):
        names = sorted(wanted, key=str.encode)
        return (
            isinstance(found, tuple)
            and [name for name, _ in found] == names
            and all(_same(each, wanted[name]) for name, each in found)
        )
    if isinstance(wanted, list):
        return (
            isinstance(found, list) and len(found) == len(wanted) and all(map(_same, found, wanted))
        )
    if isinstance(wanted, JsonNull):
        return found is None
    if isinstance(wanted, bool | str):
        return type(found) is type(wanted) and bool(found == wanted)
    if not isinstance(found, Decimal):
        return False
    return repr(float(found)) == repr(wanted) if isinstance(wanted, float) else found == wanted


def _read(text: str) -> Any:
    """Read JSON: objects as tuples of pairs, numbers exactly."""
    return json.loads(text, parse_int=Decimal, parse_float=Decimal, object_pairs_hook=tuple)


@given(
    st.lists(st.none() | _DOCUMENTS, max_size=6),
    st.integers(1, 4),
    st.booleans(),
    st.integers(0, 3),
)
@examples(200)
def test_documents_are_those_that_were_encoded(
    documents: list[Any], width: int, large: bool, start: int
) -> None:
    found = json_of_variants(column(documents, width=width, large=large).slice(start))
    found.validate(full=True)
    for text, document in zip(found.to_pylist(), documents[start:], strict=True):
        if document is None:
            assert text is None
        else:
            assert _same(_read(text), document), (text, document)


def test_every_character_of_ascii_survives() -> None:
    for code in range(128):
        (text,) = json_of_variants(column([chr(code)])).to_pylist()
        assert json.loads(text) == chr(code)


def test_null_of_json_is_text_and_null_of_sql_is_null() -> None:
    assert json_of_variants(column([JsonNull(), None, {}, [], ""])).to_pylist() == [
        "null", None, "{}", "[]", '""',
    ]  # fmt: skip


_UUID = uuid.UUID(bytes=bytes(range(16)))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        pytest.param(b"\x1c" + np.float64(1.0).tobytes(), "1.0", id="a whole double"),
        pytest.param(b"\x1c" + np.float64(-0.0).tobytes(), "-0.0", id="negative zero"),
        pytest.param(b"\x1c" + np.float64(math.nan).tobytes(), '"NaN"', id="NaN"),
        pytest.param(b"\x1c" + np.float64(-math.inf).tobytes(), '"-Infinity"', id="-infinity"),
        pytest.param(b"\x38" + np.float32(1.1).tobytes(), "1.1", id="float"),
        pytest.param(b"\x20\x02" + (110).to_bytes(4, "little"), "1.1", id="decimal without zeros"),
        pytest.param(b"\x20\x02" + (100).to_bytes(4, "little"), "1", id="whole decimal"),
        pytest.param(b"\x20\x09" + (0).to_bytes(4, "little"), "0", id="decimal zero"),
        pytest.param(b"\x2c" + (19000).to_bytes(4, "little"), '"2022-01-08"', id="date"),
        pytest.param(
            b"\x30" + (1_500_000).to_bytes(8, "little"),
            '"1970-01-01 00:00:01.5+00:00"',
            id="instant",
        ),
        pytest.param(b"\x34" + bytes(8), '"1970-01-01 00:00:00"', id="local time"),
        pytest.param(b"\x44" + (10**6).to_bytes(8, "little"), '"00:00:01"', id="time of day"),
        pytest.param(
            b"\x48" + (1).to_bytes(8, "little"), '"1970-01-01 00:00:00.000000001+00:00"', id="ns"
        ),
        pytest.param(b"\x4c" + bytes(8), '"1970-01-01 00:00:00"', id="local ns"),
        pytest.param(b"\x50" + _UUID.bytes, f'"{_UUID}"', id="uuid"),
        pytest.param(
            b"\x3c\x04\x00\x00\x00\x00\xff\x01\x02",
            json.dumps(base64.b64encode(b"\x00\xff\x01\x02").decode()),
            id="bytes",
        ),
    ],
)  # fmt: skip
def test_scalars_that_json_lacks_have_a_text(data: bytes, text: str) -> None:
    values = pa.array([{"metadata": metadata([]), "value": data}] * 2)
    assert json_of_variants(values).to_pylist() == [text] * 2


_NO_KEYS = metadata([])
_OVERLAPPING = b"\x00"
for _ in range(40):  # each level has the one below twice, at one place
    _OVERLAPPING = b"\x07\x02" + bytes(4) + len(_OVERLAPPING).to_bytes(2, "little") + _OVERLAPPING
_DEEP = b"\x00"
for _ in range(1_001):
    _DEEP = b"\x07\x01\x00\x00" + len(_DEEP).to_bytes(2, "little") + _DEEP


@pytest.mark.parametrize(
    ("value", "keys", "problem"),
    [
        pytest.param(b"", _NO_KEYS, "lies outside", id="no bytes"),
        pytest.param(b"\x00", b"", "version 1", id="no metadata"),
        pytest.param(b"\x00", b"\x02\x00\x00", "version 1", id="version 2"),
        pytest.param(b"\x00", b"\xc1\xff\xff\xff\xff\x00", "cut off", id="endless dictionary"),
        pytest.param(b"\x00", b"\x01\x01\x02\x01a", "lies outside", id="key ends before it begins"),
        pytest.param(b"\x00", b"\x01\x01\x00\x09a", "lies outside", id="key after the metadata"),
        pytest.param(b"\x18\x01", _NO_KEYS, "cut off", id="half a number"),
        pytest.param(b"\x09a", _NO_KEYS, "cut off", id="half a string"),
        pytest.param(b"\x05\xff", _NO_KEYS, "UTF8", id="not UTF-8"),
        pytest.param(b"\x40\xff\xff\xff\xffa", _NO_KEYS, "cut off", id="endless string"),
        pytest.param(b"\x54", _NO_KEYS, "type", id="unknown type"),
        pytest.param(b"\x20\x27\x00\x00\x00\x00", _NO_KEYS, "scale 39", id="scale of a decimal"),
        pytest.param(b"\x28\x00" + b"\xff" * 15 + b"\x7f", _NO_KEYS, "cimal", id="39 digits"),
        pytest.param(b"\x02\x01\x00\x00\x01\x00", _NO_KEYS, "not in its", id="no such key"),
        pytest.param(
            b"\x02\x02\x00\x00\x00\x01\x02\x00\x00", metadata(["a"]), "twice", id="key twice"
        ),
        pytest.param(b"\x03\x01\x05\x01\x00", _NO_KEYS, "lies outside", id="offset after the end"),
        pytest.param(b"\x03\x01\x00\x05\x00", _NO_KEYS, "lies outside", id="end after the bytes"),
        pytest.param(b"\x53\xff\xff\xff\xff", _NO_KEYS, "cut off", id="endless array"),
        pytest.param(_OVERLAPPING, _NO_KEYS, "overlap", id="members that share bytes"),
        pytest.param(_DEEP, _NO_KEYS, "levels", id="too deep"),
        pytest.param(b"\x34" + b"\xff" * 7 + b"\x7f", _NO_KEYS, "timestamp", id="far timestamp"),
        pytest.param(b"\x2c\xff\xff\xff\x7f", _NO_KEYS, "date", id="far date"),
        pytest.param(b"\x44" + b"\xff" * 8, _NO_KEYS, "time of day", id="time before midnight"),
    ],
)  # fmt: skip
def test_malformed_bytes_are_an_error(value: bytes, keys: bytes, problem: str) -> None:
    fine = variant({"a": 1})
    values = pa.array([fine, {"metadata": keys, "value": value}, fine])
    with pytest.raises(ValueError, match=problem):
        json_of_variants(values)


@given(_DOCUMENTS, st.data())
@examples(300)
def test_damaged_bytes_are_an_error_or_json(document: Any, data: st.DataObject) -> None:
    encoded = variant(document)
    name = data.draw(st.sampled_from(["metadata", "value"]))
    raw = bytearray(encoded[name])
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        raw = raw[: data.draw(st.integers(0, len(raw)))]
    try:
        found = json_of_variants(pa.array([{**encoded, name: bytes(raw)}]))
    except ValueError:
        return
    found.validate(full=True)
    json.loads(found[0].as_py())


def _group(typed: pa.DataType) -> pa.DataType:
    return pa.struct([("value", pa.binary()), ("typed_value", typed)])


_SHREDDED = pa.struct(
    [
        ("metadata", pa.binary()),
        ("value", pa.binary()),
        (
            "typed_value",
            pa.struct(
                [
                    ("b", _group(pa.list_(_group(pa.int64())))),
                    ("a", _group(pa.struct([("x", _group(pa.string()))]))),
                ]
            ),
        ),
    ]
)


def _shredded(document: Any) -> dict[str, Any]:
    """Shred a document by `_SHREDDED`, as VariantShredding.md has it."""
    keys = metadata(["z", "y"])

    def rest(value: Any) -> bytes:
        found = variant(value)
        assert found["metadata"] == _NO_KEYS or found["metadata"] == metadata(["z"])
        return found["value"]

    def leaf(value: Any, type_: type) -> dict[str, Any]:
        if type(value) is type_:
            return {"typed_value": value}
        return {"value": rest(value)}

    def member(owner: dict[str, Any], key: str, shred: Any) -> dict[str, Any]:
        return shred(owner[key]) if key in owner else {}

    def list_(value: Any) -> dict[str, Any]:
        if type(value) is not list:
            return {"value": rest(value)}
        return {"typed_value": [leaf(each, int) for each in value]}

    def inner(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            return {"value": rest(value)}
        return struct_(value, {"x": lambda each: leaf(each, str)})

    def struct_(value: dict[str, Any], shreds: dict[str, Any]) -> dict[str, Any]:
        left = {key: each for key, each in value.items() if key not in shreds}
        found = {"typed_value": {key: member(value, key, how) for key, how in shreds.items()}}
        return {**found, "value": rest(left)} if left else found

    if type(document) is not dict:
        return {"metadata": keys, "value": rest(document)}
    return {"metadata": keys, **struct_(document, {"b": list_, "a": inner})}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"a": {"x": "t"}, "b": [1, 2]}, id="all typed"),
        pytest.param({"a": {"x": "t", "z": 2}, "b": [1, "s", None, {}]}, id="some typed"),
        pytest.param({"z": [1, 2]}, id="nothing typed"),
        pytest.param({"a": {"z": 1}, "z": 1}, id="objects with other keys"),
        pytest.param({"a": None, "b": {}}, id="values of other types"),
        pytest.param({"b": []}, id="an empty array"),
        pytest.param({}, id="an empty object"),
        pytest.param({"a": {}}, id="an empty object inside"),
        pytest.param([1, {"z": 1}], id="an array"),
        pytest.param("text", id="a string"),
    ],
)
def test_shredded_documents_are_put_together(document: Any) -> None:
    rows = [_shredded(document), None, _shredded({"a": {"x": "other"}}), _shredded(document)]
    found = json_of_variants(pa.array(rows, _SHREDDED)).to_pylist()
    wanted = json.dumps(document, sort_keys=True, separators=(",", ":"))
    assert found == [wanted, None, '{"a":{"x":"other"}}', wanted]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        pytest.param(
            {"value": variant(1)["value"], "typed_value": {"a": None, "b": None}},
            "not an object",
            id="the rest of an object is a number",
        ),
        pytest.param(
            {"typed_value": {"b": {"value": b"\x00", "typed_value": [{"typed_value": 1}]}}},
            "both a binary and a typed",
            id="an array with a rest",
        ),
        pytest.param(
            {"value": variant({"a": 1})["value"], "typed_value": {"a": {"value": b"\x00"}}},
            "twice",
            id="a shredded field in the rest",
        ),
        pytest.param({"metadata": None, "value": b"\x00"}, "no metadata", id="no metadata"),
    ],
)
def test_shredded_columns_that_contradict_are_an_error(row: dict[str, Any], problem: str) -> None:
    values = pa.array([{"metadata": metadata(["a"]), **row}], _SHREDDED)
    with pytest.raises(ValueError, match=problem):
        json_of_variants(values)


def test_a_value_that_is_nowhere_is_null_of_json() -> None:
    rows = [
        {"metadata": _NO_KEYS},
        {"metadata": _NO_KEYS, "typed_value": {"b": {"typed_value": [{}]}}},
    ]
    assert json_of_variants(pa.array(rows, _SHREDDED)).to_pylist() == ["null", '{"b":[null]}']


def test_views_and_long_offsets_are_other_layouts_of_the_same() -> None:
    views = pa.struct([("metadata", pa.large_binary()), ("value", pa.binary_view())])
    values = column([{"a": 1}, None, {"b": [2]}])
    assert json_of_variants(values.cast(views).slice(1)).to_pylist() == [None, '{"b":[2]}']
    typed = pa.struct([("metadata", pa.binary()), ("typed_value", pa.string_view())])
    rows = [{"metadata": metadata([]), "typed_value": "x"}, None]
    assert json_of_variants(pa.array(rows, typed)).to_pylist() == ['"x"', None]


def test_many_rows_are_decoded_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowsieve.types.variants.variant_json._BATCH_BYTES", 100)
    documents = [{"a": i, f"k{i % 3}": "x" * (i % 7)} if i % 5 else None for i in range(100)]
    found = json_of_variants(column(documents)).to_pylist()
    assert [text and json.loads(text) for text in found] == documents


def test_texts_that_do_not_fit_are_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowsieve.types.variants.json_trees.MAX_TEXT", 40)
    found = json_of_variants(column(["x" * 20, "y" * 20, None])).to_pylist()
    assert found == ['"' + "x" * 20 + '"', '"' + "y" * 20 + '"', None]
    with pytest.raises(ValueError, match="longer"):
        json_of_variants(column(["x" * 50]))


def test_only_structs_of_the_layout_are_variants() -> None:
    blob = pa.binary()
    assert is_variant(pa.struct([("value", pa.large_binary()), ("metadata", pa.binary_view())]))
    assert is_variant(_SHREDDED)
    assert not is_variant(pa.struct([("metadata", blob)]))
    assert not is_variant(pa.struct([("metadata", pa.string()), ("value", blob)]))
    assert not is_variant(pa.struct([("metadata", blob), ("value", blob), ("more", blob)]))
    assert not is_variant(pa.struct([("metadata", blob), ("typed_value", pa.uint8())]))
    assert not is_variant(blob)
