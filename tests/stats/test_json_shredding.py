"""Shredded values of a path are those of each document, read one by one."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats import json_shredding
from rowsieve.stats.json_kinds import JsonKind, Path
from rowsieve.stats.json_shredding import FIELDS, MAX_CHARACTERS, shred
from tests.json_documents import LONG, NUMBERS, OTHERS, TEXTS, batches
from tests.profiles import examples

PATHS: list[Path] = [("a", "k"), ("k",), ("a", "k", "k")]
INT64 = range(-(2**63), 2**63)


class Repeated(Exception):
    """A key of a path stands twice in one object."""


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs if name in ("a", "k")]
    if len(set(names)) < len(names):
        raise Repeated
    return dict(pairs)


def refuse(text: str) -> None:
    raise ValueError(text)


def number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(text)
    return value


def modelled(document: str | None, path: Path) -> dict[str, Any]:
    """The row of one document, without the bit for exponents; None where nothing is claimed."""
    row: dict[str, Any] = dict.fromkeys(FIELDS)
    if document is None:
        return {**row, "kinds": JsonKind.MISSING}
    try:
        value = json.loads(
            document, object_pairs_hook=members, parse_constant=refuse, parse_float=number
        )
    except (ValueError, Repeated):
        return {**row, "kinds": JsonKind.OTHER}
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return {**row, "kinds": JsonKind.MISSING}
        value = value[step]
    match value:
        case bool():
            return {**row, "kinds": JsonKind.TRUE if value else JsonKind.FALSE}
        case None:
            return {**row, "kinds": JsonKind.NULL}
        case int() if value in INT64:
            return {**row, "int": value}
        case int() if abs(value) > 2**1023:
            return {**row, "kinds": JsonKind.OTHER}
        case int() | float():
            return {**row, "float": float(value)}
        case str():
            return {**row, "string": value[:MAX_CHARACTERS]}
    return {**row, "kinds": JsonKind.LIST if isinstance(value, list) else JsonKind.OBJECT}


def check(documents: list[str | None]) -> None:
    shredded = shred(pa.array(documents, pa.string()), PATHS)
    for path, values in zip(PATHS, shredded, strict=True):
        assert not values.null_count
        for document, found in zip(documents, values.to_pylist(), strict=True):
            if found["kinds"] == JsonKind.EXPONENT:
                assert found["float"] is not None
                found["kinds"] = None
            elif found["kinds"] == JsonKind.OTHER:  # may also be said of more documents
                assert found == {**dict.fromkeys(FIELDS), "kinds": JsonKind.OTHER}
                wanted = modelled(document, path)
                assert wanted["kinds"] == JsonKind.OTHER or "9" * 300 in str(document), document
                continue
            assert repr(found) == repr(plain(modelled(document, path))), document  # -0.0 is kept


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "kinds": None if row["kinds"] is None else int(row["kinds"])}


@given(batches)
@examples(200)
def test_each_row_has_the_value_of_its_document(documents: list[str | None]) -> None:
    check(documents)


@pytest.mark.parametrize("escaped", [False, True])
def test_named_values(escaped: bool) -> None:
    texts = [json.dumps(text, ensure_ascii=escaped) for text in TEXTS]
    documents = [f'{{"a":{{"k":{value}}},"k":[1]}}' for value in [*NUMBERS, *OTHERS, *texts]]
    check([*documents])
    for document in documents:
        check([document])


@given(st.lists(st.sampled_from(["1e2", "-1.5E-3", "2.5", "7", '"1e2"']), min_size=1, max_size=4))
@examples(30)
def test_a_number_with_an_exponent_is_marked(values: list[str]) -> None:
    rows = shred(pa.array([f'{{"k": {value}}}' for value in values]), [("k",)])[0].to_pylist()
    for value, row in zip(values, rows, strict=True):
        assert (row["kinds"] == JsonKind.EXPONENT) == (value in ("1e2", "-1.5E-3"))


@pytest.mark.parametrize(
    "document",
    [
        '{"k": 1, "k": 2}',
        '{"a": {"k": 1, "\\u006b": 2}}',
        '{"k": 1} {"k": 2}',
        '{"k": ' + "[" * 2_000 + "]" * 2_000 + "}",
        '{"k": ' + "9" * 5_000 + "}",
        '{"k": "\\ud800"}',
        "{",
    ],
)
def test_nothing_is_known_of_these_documents_and_all_of_the_next(document: str) -> None:
    values = shred(pa.array([document, '{"k": 3}', None]), [("a", "k"), ("k",)])[1].to_pylist()
    assert values[0] == {"kinds": JsonKind.OTHER, "int": None, "float": None, "string": None}
    assert values[1]["int"] == 3
    assert values[2]["kinds"] == JsonKind.MISSING


def test_no_documents_give_no_rows() -> None:
    assert [len(each) for each in shred(pa.array([], pa.string()), PATHS)] == [0, 0, 0]
    assert shred(pa.chunked_array([], pa.string()), [("k",)])[0].to_pylist() == []


def test_documents_that_one_array_cannot_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    values = pa.chunked_array([['{"k": 1}', None], ['{"k": "a"}']], pa.string())
    together = shred(values, [("k",), ("a", "k")])
    monkeypatch.setattr(json_shredding, "_MAX_BYTES", 4)
    assert shred(values, [("k",), ("a", "k")]) == together


def test_a_prefix_of_a_long_string_is_stored() -> None:
    rows = shred(pa.array([json.dumps({"k": LONG + "zzz"})]), [("k",)])[0].to_pylist()
    assert rows[0]["string"] == LONG + "z"
