"""Bad events are named, or collected; damaged messages are never lost, and never a raw error."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.envelopes.bad_events import BAD_EVENTS
from rowsieve.envelopes.event_formats import FORMATS
from rowsieve.errors import CommitConflict, InvalidInput, RowsieveError
from tests.envelopes.events import AFTER_STREAM, STREAM, crate, crates, event, rows, texts
from tests.envelopes.test_event_formats import STORIES
from tests.profiles import examples
from tests.small_tables import appended, keyed


def test_bad_events_are_collected_and_the_others_applied() -> None:
    table, letters = crates(), appended(schema=BAD_EVENTS)
    wrong = event("u", None, {"id": "x", "label": "y", "grams": 1}, 9)
    data = pa.table(
        {
            "value": [*texts(*STREAM[:2], wrong, *STREAM[2:]), '{"op":'],
            "partition": [3] * 7,
            "offset": range(40, 47),
        }
    )
    applied = table.apply_events(data, format="debezium", on_bad="collect", bad=letters)
    assert rows(table) == AFTER_STREAM
    stored = letters.scan().to_arrow()
    assert stored.equals(applied.bad.cast(stored.schema))
    assert [(row["event"], row["partition"], row["offset"]) for row in stored.to_pylist()] == [
        (2, 3, 42),
        (6, 3, 46),
    ]
    assert json.loads(stored.column("message")[0].as_py()) == wrong


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize(
    ("connector", "name", "odd"),
    [
        ("postgresql", "lsn", "abc"),
        ("mysql", "file", "binlog"),
        ("mysql", "pos", 1.5),
        ("sqlserver", "commit_lsn", "NULL"),
        ("oracle", "scn", "-1"),
    ],
)
def test_only_the_event_with_an_odd_log_number_is_bad(
    connector: str, name: str, odd: Any, place: int
) -> None:
    events = [
        event("u", None, crate(1, "last"), 9, connector),
        event("c", None, crate(1, "first"), 1, connector),
    ]
    wrong = event("c", None, crate(2), 5, connector)
    wrong["source"][name] = odd
    events.insert(place, wrong)
    table = crates()
    applied = table.apply_events(events, format="debezium", on_bad="collect")
    assert applied.bad["event"].to_pylist() == [place]
    assert f"its {name} has no order" in applied.bad["reason"][0].as_py()
    assert rows(table) == [crate(1, "last")]


def test_an_error_names_partition_and_offset() -> None:
    data = pa.table({"value": ["{"], "partition": [3], "offset": [40]})
    with pytest.raises(InvalidInput, match=r"event 0, counted from 0 \(partition 3, offset 40\)"):
        crates().apply_events(data, format="debezium")


def test_a_deeply_nested_event_is_bad() -> None:
    deep: Any = {"a": 1}
    for _ in range(5_000):
        deep = {"a": deep}
    for row in ({"id": 1, "lid": deep}, {"id": 1, "label": deep}, {"id": 1, "grams": [deep]}):
        events = [event("c", None, row), STREAM[0]]
        with pytest.raises(InvalidInput, match="event 0, counted from 0"):
            crates().apply_events(events, format="debezium")
        applied = crates().apply_events(events, format="debezium", on_bad="collect")
        assert (applied.changes, applied.bad.num_rows) == (1, 1)
        assert b"'op': 'c'" in applied.bad.column("message")[0].as_py()


def test_a_place_that_no_column_of_bad_events_takes_is_null() -> None:
    offset = pa.array([2**64 - 1], pa.uint64())
    data = pa.table({"value": ["{"], "partition": [3], "offset": offset})
    with pytest.raises(InvalidInput, match=f"partition 3, offset {2**64 - 1}"):
        crates().apply_events(data, format="debezium")
    applied = crates().apply_events(data, format="debezium", on_bad="collect")
    assert applied.bad.select(["partition", "offset"]).to_pylist() == [
        {"partition": 3, "offset": None}
    ]


def test_letters_are_stored_before_the_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    table, letters = crates(), appended(schema=BAD_EVENTS)

    def crash(*_: Any, **__: Any) -> None:
        raise CommitConflict("crash")

    monkeypatch.setattr(type(table), "apply_changes", crash)
    for _ in range(2):
        with pytest.raises(CommitConflict):
            table.apply_events(
                [*texts(*STREAM), "{"],
                format="debezium",
                on_bad="collect",
                bad=letters,
                token=("loader", 1),
            )
    assert letters.count() == 1


def test_a_table_for_bad_events_must_take_them() -> None:
    for bad, on_bad in ((appended(), "error"), (keyed(), "collect"), ([], "collect")):
        with pytest.raises(InvalidInput, match="bad="):
            crates().apply_events([], format="debezium", on_bad=on_bad, bad=bad)  # type: ignore[arg-type]
    with pytest.raises(RowsieveError):
        crates().apply_events(["{"], format="debezium", on_bad="collect", bad=appended())


MESSAGES = {name: texts(*story[0]) for name, story in STORIES.items()}
MESSAGES["debezium"] = texts(*STREAM)
MESSAGES["debezium-unwrapped"] = ['{"id": 1, "label": "x", "grams": 2, "__op": "c", "__lsn": 5}']
BROKEN = ("", "{", "}", "[", "]", '"', ",", ":", "\\", "\0", "-", "\udcff", "[" * 3000)
VALUES = ("null", "NaN", "1e999", "0x1", "true", "[]", '{"a":1}', '"c"', '"\\ud800"', "9" * 400)
PIECES = st.sampled_from(BROKEN + VALUES)


@st.composite
def damaged(draw: Any) -> tuple[str, list[str]]:
    """Messages of a format, with pieces put in the place of others."""
    name = draw(st.sampled_from(sorted(FORMATS)))
    messages = [str(each) for each in MESSAGES[name]]
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(messages) - 1))
        text = messages[at]
        start = draw(st.integers(0, len(text)))
        stop = min(len(text), start + draw(st.integers(0, 12)))
        messages[at] = text[:start] + draw(PIECES) + text[stop:]
    return name, messages


@pytest.mark.filterwarnings("ignore:apply_events. the events are ordered by")
@given(damaged())
@examples(1_000)
def test_damaged_messages_are_applied_skipped_or_bad(case: tuple[str, list[str]]) -> None:
    name, messages = case
    table = crates()
    try:
        applied = table.apply_events(messages, format=name, on_bad="collect")  # type: ignore[arg-type]
    except RowsieveError:
        assert table.version == 0
        return
    strict = crates()
    if applied.bad.num_rows:
        with pytest.raises(RowsieveError):
            strict.apply_events(messages, format=name)  # type: ignore[arg-type]
        assert strict.version == 0
    else:
        strict.apply_events(messages, format=name)  # type: ignore[arg-type]
        assert rows(strict) == rows(table)
