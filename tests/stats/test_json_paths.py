"""Statistics of JSON paths contain the values that a plain parser finds."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.stats.json_kinds import ANY_INDEX, JsonKind, Path, path_subject
from rowsieve.stats.json_paths import MAX_PATHS, JsonCollector
from rowsieve.stats.model import ColumnStatistics, Derived, Subject
from tests.profiles import examples

PATHS: tuple[Path, ...] = (("k",), ("a", "k"), ("odd/[:~",))


def collect(
    *batches: list[str | None], paths: tuple[Path, ...] = PATHS
) -> dict[Subject, ColumnStatistics]:
    collector = JsonCollector(7, paths)
    for batch in batches:
        collector.add(pa.chunked_array([pa.array(batch, pa.string())]))
    return dict(collector.finish())


def kinds(found: dict[Subject, ColumnStatistics], *path: str | int) -> JsonKind | None:
    statistics = found.get(path_subject(7, path))
    return None if statistics is None else JsonKind(statistics.kinds or 0)


def bounds(found: dict[Subject, ColumnStatistics], kind: str, *path: str | int) -> tuple[Any, Any]:
    statistics = found[path_subject(7, path, kind)]
    return tuple(
        None if end is None else end.as_py() for end in (statistics.lower, statistics.upper)
    )  # type: ignore[return-value]


def test_t17_each_kind_is_distinguished() -> None:
    for text, kind in {
        "null": JsonKind.NULL,
        "true": JsonKind.TRUE,
        "false": JsonKind.FALSE,
        "3": JsonKind.INT,
        "-0": JsonKind.INT,
        "3.0": JsonKind.FLOAT,
        str(2**63): JsonKind.FLOAT,
        '"x"': JsonKind.STRING,
        "[1]": JsonKind.LIST,
        '{"x": 1}': JsonKind.OBJECT,
    }.items():
        assert kinds(collect([f'{{"k": {text}}}']), "k") == kind
        assert kinds(collect([f'{{"a": {{"k": {text}}}}}']), "a", "k") == kind
    assert kinds(collect(['{"k": 1e3}']), "k") == JsonKind.FLOAT | JsonKind.EXPONENT
    nowhere: list[str | None] = [
        "{}",
        "null",
        "7",
        "[1]",
        '"k"',
        '{"a": [{"k": 1}]}',
        '{"a": 1}',
        None,
    ]
    for other in nowhere:
        assert kinds(collect([other]), "k") == JsonKind.MISSING
        assert kinds(collect([other]), "a", "k") == JsonKind.MISSING


def test_whole_numbers_beyond_64_bits_are_doubles() -> None:
    found = collect([f'{{"k": {n}}}' for n in (5, 2**63, -(2**70), 2**63 - 1)])
    assert kinds(found, "k") == JsonKind.INT | JsonKind.FLOAT
    assert bounds(found, "int", "k") == (5, 2**63 - 1)
    low, high = bounds(found, "float", "k")
    assert low < -(2**70) < 2**63 < high
    assert kinds(collect([f'{{"k": {10**309}}}']), "k") == JsonKind.OTHER


def test_bounds_are_of_one_kind_and_doubles_step_outward() -> None:
    found = collect(['{"k": 3}', '{"k": "b"}', '{"k": 0.1}'], ['{"k": -4}', '{"k": "a"}', None])
    assert bounds(found, "int", "k") == (-4, 3)
    assert bounds(found, "string", "k") == ("a", "b")
    low, high = bounds(found, "float", "k")
    assert low < 0.1 < high
    assert kinds(found, "k") == JsonKind.INT | JsonKind.STRING | JsonKind.FLOAT | JsonKind.MISSING
    long = collect([json.dumps({"k": "x" * 200})])
    assert bounds(long, "string", "k") == ("x" * 100, "x" * 99 + "y")
    assert not long[path_subject(7, ("k",), "string")].lower_exact


def test_lists_by_index_and_all_together() -> None:
    found = collect(['{"k": [1, "x"]}', '{"k": [5]}'], ['{"k": [null, 2, [3]]}', '{"k": 0}'])
    assert kinds(found, "k", 0) == JsonKind.INT | JsonKind.NULL | JsonKind.MISSING
    assert bounds(found, "int", "k", 0) == (1, 5)
    assert kinds(found, "k", 1) == JsonKind.STRING | JsonKind.MISSING | JsonKind.INT
    assert kinds(found, "k", 2) == JsonKind.LIST | JsonKind.MISSING
    assert kinds(found, "k", ANY_INDEX) == (
        JsonKind.INT | JsonKind.STRING | JsonKind.NULL | JsonKind.LIST | JsonKind.MISSING
    )
    assert bounds(found, "int", "k", ANY_INDEX) == (1, 5)
    ten = collect([json.dumps({"k": list(range(10))})])
    assert kinds(ten, "k", 7) == JsonKind.INT
    assert kinds(ten, "k", 8) is None
    assert bounds(ten, "int", "k", ANY_INDEX) == (0, 9)


@pytest.mark.parametrize(
    "malformed",
    [
        "{",
        '{"k": 1,}',
        '{"k": NaN}',
        '{"k": 1} 2',
        "",
        '{"z": 1e400, "k": 1e400}',
        '{"z": "\\ud800"}',
        '{"z": ' + "[" * 101 + "]" * 101 + "}",
        '{"z": ' + "9" * 5_000 + "}",
        '{"k": ' + "[" * 5_000,
        '{"k": ' + "9" * 400 + "}",
        '{"k": 1, "k": ',
    ],
)
def test_malformed_json_is_other_and_never_an_error(malformed: str) -> None:
    found = collect(['{"k": 1}', malformed])
    assert JsonKind.OTHER in (kinds(found, "k") or JsonKind(0))
    assert path_subject(7, ("k",), "int") not in found


@pytest.mark.parametrize(
    "texts",
    [
        ['{"k": 1}{"k": 2}', '{"k": 3}'],
        ['{"k": 1}\n{"k": 2}', '{"k": 3}'],
        ['{"z": {"y": 1}', ', "k": 2}', '{"k": 5}{"k": 6}'],
        ['{"z": ', '{"y": 1}}', '{"k": 5}{"y": 6}'],
        ['{"k": "}', '{"}', '{"k": "a"}{"z": 1}'],
        ['{"k": 1}', "", '{"k": 5} {"z": 6}'],
    ],
)
def test_neighbours_do_not_make_json_of_each_other(texts: list[str | None]) -> None:
    assert JsonKind.OTHER in (kinds(collect(texts), "k") or JsonKind(0))
    assert kinds(collect(['{"k":\n1}', '{\n"k": 2\n}']), "k") == JsonKind.INT


@pytest.mark.parametrize(
    "text",
    [
        '{"k": 1, "k": "x"}',
        '{"k": 1, "\\u006b": "x"}',
        '{"\\u006B" : 1, "k"\n:"x"}',
        '{"z": {"k": 0}, "k": 1, "k": "x"}',
        '{"a\\"k": 0, "k": 1, "k": "x"}',
    ],
)
def test_invariant_29_all_of_equal_keys_count(text: str) -> None:
    found = collect([text])
    assert kinds(found, "k") == JsonKind.INT | JsonKind.STRING | JsonKind.MISSING
    assert (bounds(found, "int", "k"), bounds(found, "string", "k")) == ((1, 1), ("x", "x"))


def test_invariant_29_equal_keys_on_the_way_count() -> None:
    found = collect(['{"a": {"k": 1}, "a": {"k": 2, "k": 9}, "a": 3}'])
    assert kinds(found, "a", "k") == JsonKind.INT | JsonKind.MISSING
    assert bounds(found, "int", "a", "k") == (1, 9)
    escaped = collect(['{"odd\\/[:~": 1, "odd/[:~": 2}'])
    assert bounds(escaped, "int", "odd/[:~") == (1, 2)


def test_a_key_in_several_objects_is_not_repeated() -> None:
    found = collect(['{"k": 1, "a": {"k": 2}, "z": "\\"k\\": 5"}', '{"k": 3, "z": ["k", "k"]}'])
    assert kinds(found, "k") == JsonKind.INT
    assert kinds(found, "a", "k") == JsonKind.INT | JsonKind.MISSING


def test_a_path_seen_late_was_missing_before() -> None:
    found = collect(['{"k": 1}'], ['{"k": [2]}'])
    assert kinds(found, "k", 0) == JsonKind.INT | JsonKind.MISSING
    assert kinds(found, "k", ANY_INDEX) == JsonKind.INT | JsonKind.MISSING
    back = collect(['{"k": [2]}'], ['{"k": 1}'])
    assert kinds(back, "k", 0) == JsonKind.INT | JsonKind.MISSING


def test_the_empty_path_finds_the_paths_that_occur() -> None:
    found = collect(['{"x": {"y": {"z": {"w": 1}}}, "n": 2}', "oops", None], paths=((),))
    paths = {subject.what for subject in found if isinstance(subject, Derived)}
    assert {"json/x", "json/x/y", "json/x/y/z", "json/n"} <= paths
    assert not any("/w" in path for path in paths)
    wide = collect([json.dumps({f"k{i}": i for i in range(100)})], paths=((),))
    assert sum(":" not in str(subject) for subject in wide) == MAX_PATHS


def test_keys_of_few_documents_are_not_found() -> None:
    found = collect([json.dumps({f"id{i}": i, "n": i}) for i in range(50)], paths=((),))
    assert {subject for subject in found if ":" not in str(subject)} == {path_subject(7, ("n",))}


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([2**63, 0.5, -2.5, 1e300, "", "a", "k", '"k":', "é\u2028", "\U0010ffff"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["k", "a", "z", "odd/[:~"]), inner, max_size=3)
    ),
    max_leaves=8,
)
documents = st.builds(json.dumps, values, ensure_ascii=st.booleans())
spliced = st.builds("".join, st.tuples(documents, st.sampled_from(["", "x", "}", ",1"])))
repeated = st.builds(
    lambda a, b, key: f'{{"k": {a}, "a": {b}, "{key}": {a}}}',
    documents,
    documents,
    st.sampled_from(["k", "a", "\\u006b"]),
)


@given(st.lists(st.lists(st.none() | documents | spliced | repeated, max_size=4), max_size=3))
@examples(400)
def test_statistics_contain_whatever_a_parser_finds(batches: list[list[str | None]]) -> None:
    found = collect(*batches)
    for text in (text for batch in batches for text in batch):
        for path in (*PATHS, ("k", 0), ("a", "k", 1), ("k", ANY_INDEX)):
            statistics = found.get(path_subject(7, path))
            if statistics is None:
                assert any(isinstance(step, int) for step in path)
                continue
            claimed = JsonKind(statistics.kinds or 0)
            for value in at_path(text, path):
                assert JsonKind.OTHER in claimed or kind_of(value) in claimed
                if JsonKind.OTHER not in claimed and isinstance(value, str | int | float):
                    assert_within(found, path, value)


MISSING = object()
MALFORMED = object()


def at_path(text: str | None, path: Path) -> list[Any]:
    """Every value that an engine may find, whichever of equal keys it takes."""
    if text is None:
        return [MISSING]
    try:
        values = [json.loads(text, object_pairs_hook=Pairs, parse_constant=_refuse)]
    except ValueError:
        return [MALFORMED]
    for step in path:
        values = [inner for value in values for inner in follow(value, step)]
    return values


def follow(value: Any, step: str | int) -> list[Any]:
    if isinstance(step, str):
        inner = [item for name, item in value if name == step] if isinstance(value, Pairs) else []
        return inner or [MISSING]
    if type(value) is not list:
        return [MISSING]
    return value if step == ANY_INDEX else value[step : step + 1] or [MISSING]


class Pairs(list[tuple[str, Any]]):
    """An object as pairs."""


def _refuse(text: str) -> Any:
    raise ValueError(text)


def kind_of(value: Any) -> JsonKind:
    if value is MISSING:
        return JsonKind.MISSING
    if value is MALFORMED:
        return JsonKind.OTHER
    if value is None:
        return JsonKind.NULL
    if isinstance(value, bool):
        return JsonKind.TRUE if value else JsonKind.FALSE
    if isinstance(value, int):
        return JsonKind.INT if -(2**63) <= value < 2**63 else JsonKind.FLOAT
    return {
        float: JsonKind.FLOAT,
        str: JsonKind.STRING,
        Pairs: JsonKind.OBJECT,
        list: JsonKind.LIST,
    }[type(value)]


def assert_within(found: dict[Subject, ColumnStatistics], path: Path, value: Any) -> None:
    if isinstance(value, bool):
        return
    kind = {JsonKind.INT: "int", JsonKind.FLOAT: "float", JsonKind.STRING: "string"}[kind_of(value)]
    lower, upper = bounds(found, kind, *path)
    assert lower <= value
    assert upper is None or value <= upper
