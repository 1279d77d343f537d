"""Values at paths in many JSON documents at once are those that `find_member` finds in each."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.predicate.functions.nested import json_members
from rowsieve.predicate.functions.nested.json_access import find_member, find_members
from rowsieve.predicate.functions.nested.json_members import MAX_NESTING, members, unquoted
from tests.json_documents import batches, documents
from tests.profiles import examples

ODD = [
    *("", " ", "{", "}", "{}", "[]", "[1]", "null", '"a"', '{"a":1}{"a":2}', '{"a":1} {"a":2}'),
    *('{\n "a" : {"k" :\t5 } \n}', ' {"a":{"k":1}}', '{"a":{"k":1}} ', '{"a":{"k":1},"a":null}'),
    *('{"a":{"k":1,"k":2}}', '{"a":{"k":1},"a":{}}', '{"a":{"k":"x\\ny\\u0041"}}', '{"é":"é"}'),
    *('{"a":{"k":1e400}}', '{"a":1e400}', '{"b":1e400,"a":{"k":2}}', '{"\\u0061":{"k":1}}'),
    *('{"a":{"k":"\\/"}}', '{"a":{"k":"\\"}"}}', '{"a":{"k":"]"}}', '{"a":{"k":tru}}'),
    *('{"a":{"k":[1,\n2]}}', '{"a":{"k":""}}', '{"a":{"k":null}}', '{"a":{"k":"null"}}'),
    *('{"a":{"k":"\\ud800"}}', '{"x":"\\ud800","a":{"k":1}}', '{"a":{"k":"a\nb"}}'),
    *('{"\\u0061":{"k":1},"a":{"k":2}}', '{"a":{"k":1,"\\u006b":2}}', '{"a/":1,"a\\/":2}'),
    *('{"a":[{"k":1}]}', '{"a":[1e400]}', '{"a":{"k":01}}'),
    '{"a":{"k":' + "[" * (MAX_NESTING - 2) + "]" * (MAX_NESTING - 2) + "}}",
    '{"a":{"k":' + "[" * (MAX_NESTING - 1) + "]" * (MAX_NESTING - 1) + "}}",
    '{"b":' + "[" * MAX_NESTING + "]" * MAX_NESTING + ',"a":{"k":1}}',
    '{"a":{"k":' + "1" * 5_000 + "}}",
    '{"b":' + "1" * 5_000 + ',"a":{"k":1}}',
    '{"a":{"k":' + "1" * 400 + "}}",
]  # fmt: skip
PATHS: list[list[str | int]] = [
    ["a"], ["a", "k"], ["k"], ["é"], ["a", 0], ["a", "0"], [0], ["0"], ["a", "k", -1], ["a", 'q"'],
    ["a", "k", "x"], ["a", 0, "k"], ["\\"], [""], ["a/"], ["a"] * 12,
]  # fmt: skip


def _as_text(found: str | None) -> Any:
    if found is None or found == "null":
        return None
    return msgspec.json.decode(found) if found.startswith('"') else found


def _check(texts: list[str | None], path: list[str | int], *, adaptive: bool, first: bool) -> None:
    found = find_members(
        pa.array(texts, pa.string()).drop_null(), path, adaptive=adaptive, first_wins=first
    )
    wanted = [
        find_member(text, path, adaptive=adaptive, first_wins=first)
        for text in texts
        if text is not None
    ]
    assert found.to_pylist() == wanted
    assert unquoted(found).to_pylist() == [_as_text(each) for each in wanted]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_members, "_MIN_DOCUMENTS", 1)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("adaptive", [False, True])
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_odd_documents_alone_and_among_others(
    path: list[str | int], adaptive: bool, first: bool
) -> None:
    for text in ODD:
        _check([text], path, adaptive=adaptive, first=first)
    fine: list[str | None] = [json.dumps({"a": {"k": i}}) for i in range(5)]
    _check([*fine, *ODD, *fine], path, adaptive=adaptive, first=first)


@given(batches, st.sampled_from(PATHS), st.booleans(), st.booleans(), st.integers(0, 2))
@examples(200)
def test_random_documents(
    texts: list[str | None], path: list[str | int], adaptive: bool, first: bool, start: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_members, "_MIN_DOCUMENTS", 1)
        _check(texts[start:], path, adaptive=adaptive, first=first)


_PIECES = [
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"',
    "\\",
    "u",
    "e",
    "-",
    ".",
    "0",
    "1",
    "t",
    "n",
    "\n",
    "\x01",
]


@given(documents(), st.data())
@examples(400)
def test_damaged_documents_have_what_each_alone_has(document: str, data: st.DataObject) -> None:
    text = document
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        kept = data.draw(st.integers(0, 2))
        text = text[:place] + data.draw(st.sampled_from(["", *_PIECES])) + text[place + kept :]
    text = f"{{{text}}}" if data.draw(st.booleans()) else text
    others: list[str | None] = ['{"a":{"k":1}}', '{"a":2}']
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_members, "_MIN_DOCUMENTS", 1)
        for path in PATHS[:3]:
            _check([*others, text, *others], path, adaptive=False, first=data.draw(st.booleans()))


def test_well_formed_objects_are_decided_at_once() -> None:
    texts = pa.array([f'{{"x": {i}, "a": {{"k": "{i}"}}}}' for i in range(20)]).slice(1)
    for first_wins in (False, True):
        found, undecided = members(texts, ("a", "k"), first_wins=first_wins) or (None, None)
        assert found is not None
        assert undecided is not None
        assert not undecided.any()
        assert found.to_pylist() == [f'"{i}"' for i in range(1, 20)]
    one_odd = pa.concat_arrays([texts, pa.array(["[1]", '{"a": 01}'])])
    decided = members(one_odd, ("a", "k"), first_wins=False)
    assert decided is not None
    assert decided[1].tolist() == [False] * 19 + [True] * 2
