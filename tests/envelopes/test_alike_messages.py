"""Blocks of messages that share all but their rows and log numbers are read as any others are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import Enum
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.envelopes import reading_events
from rowsieve.envelopes.alike_messages import Alike, alike
from rowsieve.envelopes.applying import EventOptions, read_batch
from rowsieve.envelopes.debezium import DEBEZIUM
from rowsieve.envelopes.messages import read_messages
from rowsieve.envelopes.templates import columnar_messages
from rowsieve.errors import RowsieveError
from tests.envelopes.events import SOURCES, STREAM, crate, crates, event
from tests.profiles import examples

TABLE = crates()
LOGS = DEBEZIUM.orders[:-1]


class Marker(Enum):
    """Marks a field that a message lacks; it has the same name in each process."""

    ABSENT = "absent"


ABSENT: Any = Marker.ABSENT

SOURCE_CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"db": None},
    {"db": ABSENT},
    {"db": 7},
    {"table": "pallets"},
    {"schema": ABSENT},
    {"snapshot": "false"},
    {"snapshot": "true"},
    {"snapshot": "last"},
    {"snapshot": True},
    {"snapshot": None},
    {"lsn": None},
    {"lsn": ABSENT},
    {"lsn": ""},
    {"lsn": "0/1A"},
    {"lsn": True},
    {"lsn": 2**70},
    {"file": "binlog.000009", "pos": 2},
    {"file": "", "pos": 0},
    {"scn": "812001"},
    {"commit_lsn": "0000002c:00000a30:0003"},
)
MESSAGE_CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"op": "t", "before": None, "after": None},
    {"op": "m"},
    {"op": "U"},
    {"op": None},
    {"op": ABSENT},
    {"op": "x"},
    {"source": None},
    {"source": ABSENT},
    {"payload": None},
    {"after": {"id": 1, "label": "x", "grams": 1, "color": "red"}},
    {"after": {"id": 1, "label": "x"}},
    {"after": {"id": 1, "label": "x", "grams": "many"}},
    {"op": "d", "before": {"id": 2}, "after": None},
    {"before": ABSENT},
    {"status": "BEGIN"},
    {"op": None, "before": None, "after": None, "status": "BEGIN"},
    {"op": ABSENT, "before": ABSENT, "after": ABSENT, "ddl": "ALTER TABLE crates"},
)


def changed(base: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in (base | change).items() if value is not ABSENT}


def message(number: int, connector: str, source: dict[str, Any], rest: dict[str, Any]) -> Any:
    whole = event("u", None, crate(number % 5, f"v{number}"), number, connector)
    whole["source"] = changed(whole["source"], source)
    return changed(whole, rest)


def shown_rows(rows: pa.Table) -> list[str]:
    """Rows in an order of their own; of a row that has all columns, the list of others is NULL."""
    return sorted(
        repr(row | {"unchanged": row.get("unchanged") or None}) for row in rows.to_pylist()
    )


def outcome(
    messages: Sequence[Any], monkeypatch: pytest.MonkeyPatch, least: int, columns: bool = False
) -> Any:
    """Rows, skipped and bad events of messages, of which `least` pay for a type of their own.

    With `columns`, one message pays for a template. Messages are text, or become it.
    """
    with monkeypatch.context() as patch:
        patch.setattr(reading_events, "OWN_TYPE_FROM_MESSAGES", least)
        patch.setattr(columnar_messages, "MATCHED_FROM_MESSAGES", 1 if columns else 1_000)
        texts = [each if isinstance(each, bytes) else json.dumps(each) for each in messages]
        options = EventOptions(format="debezium")
        try:
            batch, bad = read_batch(read_messages(texts), TABLE.handle.newest, options)
        except RowsieveError as error:
            return type(error), str(error)
        order = None if batch.order is None else batch.order.names
        return (
            shown_rows(batch.rows),
            batch.skipped,
            batch.truncated,
            order,
            bad.reasons,
        )


RARE = st.sampled_from(range(8)).map(lambda number: number == 0)


@st.composite
def blocks(draw: st.DrawFn) -> list[Any]:
    """Messages of one source, most of which are as usual; some blocks begin with an odd one."""
    connector = draw(st.sampled_from(sorted(SOURCES)))
    shared = draw(st.sampled_from(SOURCE_CHANGES))
    beside_schema = draw(st.booleans())
    messages = []
    for number in range(draw(st.integers(1, 12))):
        source = draw(st.sampled_from(SOURCE_CHANGES)) if draw(RARE) else {}
        rest = draw(st.sampled_from(MESSAGE_CHANGES)) if draw(RARE) else {}
        each = message(number, connector, shared | source, rest)
        messages.append({"schema": {"type": "struct"}, "payload": each} if beside_schema else each)
    return messages


@examples(200)
@given(messages=blocks())
def test_a_block_of_alike_messages_is_read_as_the_general_type_reads_it(messages: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        general = outcome(messages, patch, least=1_000)
        assert outcome(messages, patch, least=1) == general
        assert outcome(messages, patch, least=1_000, columns=True) == general


@pytest.mark.parametrize("change", SOURCE_CHANGES, ids=str)
def test_a_message_with_another_source_is_read_as_alone(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for connector in SOURCES:
        usual = [message(number, connector, {}, {}) for number in range(3)]
        odd = message(7, connector, change, {})
        for block in ([*usual, odd], [odd, *usual]):
            general = outcome(block, monkeypatch, 1_000)
            assert outcome(block, monkeypatch, 1) == general
            assert outcome(block, monkeypatch, 1_000, columns=True) == general


@pytest.mark.parametrize("change", MESSAGE_CHANGES, ids=str)
def test_a_message_with_another_envelope_is_read_as_alone(
    change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = [message(number, "postgresql", {}, {}) for number in range(3)]
    odd = message(7, "postgresql", {}, change)
    for block in ([*usual, odd], [odd, *usual]):
        general = outcome(block, monkeypatch, 1_000)
        assert outcome(block, monkeypatch, 1) == general
        assert outcome(block, monkeypatch, 1_000, columns=True) == general


def test_the_usual_messages_of_each_log_have_a_type_of_their_own() -> None:
    numbers = {}
    for connector in SOURCES:
        shared = alike(message(1, connector, {}, {}), LOGS)
        numbers[connector] = None if shared is None else shared.numbers
    assert numbers == {
        "postgresql": ("lsn",),
        "mysql": ("file", "pos"),
        "sqlserver": ("commit_lsn",),
        "oracle": ("scn",),
        "db2": ("commit_lsn",),
        "vitess": None,
    }


def test_a_long_stream_is_decoded_by_what_it_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    types: list[Alike] = []
    type_of = Alike.type_of

    def noted(shared: Alike, *given: Any) -> Any:
        types.append(shared)
        return type_of(shared, *given)

    monkeypatch.setattr(Alike, "type_of", noted)
    rows, *_ = outcome(STREAM[:1] * 20, monkeypatch, 10)
    assert len(rows) == 1
    (shared,) = types
    assert dict(shared.constants)["table"] == STREAM[0]["source"]["table"]
