"""Paths into JSON text: what is found, what is not, and whose key counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.functions.nested.json_access import is_json
from rowsieve.predicate.functions.nested.json_members import MAX_NESTING
from rowsieve.predicate.ir import Call, Column, Literal
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import Field, Json
from rowsieve.types.schema import Schema
from tests.oracle_functions import json_function
from tests.profiles import examples

SCHEMA = Schema(0, (Field(1, "j", Json()),))


def found(
    name: str, texts: Sequence[str | None], *path: str | int, semantics: Semantics = Semantics.SQL
) -> list[Any]:
    call = Call(name, (Column("j"), *map(Literal, path)))
    batch = pa.record_batch({"j": pa.array(texts, pa.string())})
    values, failed = compute(bind_operand(call, SCHEMA, semantics), batch)
    assert not failed.any()
    result: list[Any] = values.to_pylist()
    return result


MEMBERS: list[tuple[str, str, tuple[str | int, ...], str | None]] = [
    ("json_get_text", '{"a": 1.50}', ("a",), "1.50"),
    ("json_get_text", '{"a": 123456789012345678901234567890}', ("a",), "1234567890" * 3),
    ("json_get_text", '{"a": "x\\u0041\\n"}', ("a",), "xA\n"),
    ("json_get_text", '{"a": null}', ("a",), None),
    ("json_get", '{"a": null}', ("a",), "null"),
    ("json_get", '{"a": "x"}', ("a",), '"x"'),
    ("json_get", '{"a": [1 , {"b": 2}] }', ("a",), '[1 , {"b": 2}]'),
    ("json_get_text", '{"a": [1 , {"b": 2}]}', ("a", 1, "b"), "2"),
    ("json_get_text", '{"a": true}', ("a",), "true"),
    ("json_get_text", '{"a": 1}', ("A",), None),
    ("json_get_text", '{"0": 1}', (0,), None),
    ("json_get_text", "[1, 2]", ("0",), None),
    ("json_get_text", "[1, 2]", (-1,), "2"),
    ("json_get_text", "[1, 2]", (2,), None),
    ("json_path_text", "[1, 2]", ("1",), "2"),
    ("json_path_text", '{"0": [5]}', ("0", "0"), "5"),
    ("json_path", '{"a": {"b": {}}}', ("a", "b"), "{}"),
    ("json_get_text", '"text"', ("a",), None),
    ("json_get_text", '{"a,}": "]", "b": 2}', ("b",), "2"),
    ("json_get_text", '{"a": 1e999}', ("a",), "1e999"),
]


@pytest.mark.parametrize(("name", "text", "path", "wanted"), MEMBERS)
@pytest.mark.parametrize("semantics", [Semantics.SQL, Semantics.DUCKDB], ids=lambda s: s.name)
def test_members(
    name: str, text: str, path: tuple[str | int, ...], wanted: str | None, semantics: Semantics
) -> None:
    assert found(name, [text], *path, semantics=semantics) == [wanted]


MALFORMED = ["", "{", '{"a": 1', '{"a": 1} x', '{"a": 01}', '{"a": NaN}', "nul", '{"a": "\\ud800"}']


def test_malformed_text_has_no_members_and_raises_no_error() -> None:
    texts = ['{"a": 1}', None, *MALFORMED]
    wanted = ["1", *(None for _ in texts[1:])]
    assert found("json_get_text", texts, "a") == wanted
    assert not any(is_json(text) for text in MALFORMED)


def test_nesting_has_one_limit_wherever_it_is_read() -> None:
    deep = "[" * MAX_NESTING + "]" * MAX_NESTING
    assert is_json(deep)
    assert not is_json(f"[{deep}]")
    assert is_json("[" + ",".join(["{}"] * 500) + "]")
    assert is_json(json.dumps("[" * 500))


def test_t17_invariant_29_the_semantics_name_the_key_that_counts() -> None:
    text = '{"a": 1, "b": 0, "a": {"a": 2, "a": 3}}'
    assert found("json_get_text", [text], "a") == ['{"a": 2, "a": 3}']
    assert found("json_get_text", [text], "a", "a") == ["3"]
    assert found("json_get_text", [text], "a", semantics=Semantics.DUCKDB) == ["1"]
    assert found("json_get_text", [text], "a", "a", semantics=Semantics.DUCKDB) == [None]


def test_keys_are_constant() -> None:
    schema = Schema(0, (Field(1, "j", Json()), Field(2, "k", Json())))
    for keys in ((), (Column("k"),), (Literal(1.5),), (Literal(value=True),)):
        with pytest.raises(InvalidPredicate, match="constant key"):
            bind_operand(Call("json_get", (Column("j"), *keys)), schema)


_KEYS = st.sampled_from(["a", "b", "0", "é", 'q"'])
_SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "x", '{"', "],", "\\"])
)
_DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.lists(st.tuples(_KEYS, inner), max_size=3).map(tuple)
    ),
    max_leaves=8,
)


def written(document: Any, space: str) -> str:
    """JSON text, with equal keys where a tuple of pairs has them."""
    match document:
        case tuple():
            pairs = (
                f"{space}{json.dumps(key)}{space}:{written(value, space)}"
                for key, value in document
            )
            return "{" + ",".join(pairs) + space + "}"
        case list():
            return "[" + f"{space},".join(written(item, space) for item in document) + space + "]"
        case _:
            return json.dumps(document)


@examples(150)
@given(
    st.lists(st.none() | _DOCUMENTS, min_size=1, max_size=4),
    st.lists(_KEYS | st.integers(-2, 2), min_size=1, max_size=3),
    st.sampled_from(["json_get", "json_get_text", "json_path", "json_path_text"]),
    st.sampled_from([Semantics.SQL, Semantics.DUCKDB]),
    st.sampled_from(["", " ", "\n\t"]),
)
def test_paths_agree_with_the_oracle(
    documents: list[Any], path: list[Any], name: str, semantics: Semantics, space: str
) -> None:
    if name.startswith("json_path"):
        path = [str(key) for key in path]
    texts = [space + written(document, space) + space for document in documents]
    values = found(name, texts, *path, semantics=semantics)
    for text, value in zip(texts, values, strict=True):
        wanted = json_function(name, [text, *path], semantics)
        if isinstance(wanted, list | dict):
            assert value[0] in "[{"
        elif name.endswith("_text") or wanted is None:
            assert value == wanted
        else:
            assert json.loads(value) == json.loads(wanted)
