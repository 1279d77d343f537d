"""Messages that match a template are read as any others are, byte by byte."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rowsieve as rs
from rowsieve.envelopes.applying import EventOptions, read_batch
from rowsieve.envelopes.messages import read_messages
from rowsieve.envelopes.templates import columnar_messages
from rowsieve.envelopes.templates.message_templates import template_of
from rowsieve.envelopes.templates.template_matching import MessageBytes, match
from rowsieve.errors import RowsieveError
from tests.envelopes.test_alike_messages import shown_rows
from tests.profiles import examples
from tests.small_tables import fresh_uri

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        ("name", pa.string()),
        ("count", pa.int32()),
        ("price", pa.decimal128(9, 2)),
        ("weight", pa.float64()),
        ("day", pa.date32()),
        ("data", pa.binary()),
    ]
)
TABLE = rs.create_table(fresh_uri(), SCHEMA, key=["id"])
INTEGERS = ("0", "-0", "7", "-7", "007", "1.5", "1e3", "-", "true", "null", "+1", "12345678")
LONG = tuple("9" * digits for digits in (8, 9, 16, 17, 18, 19, 20, 25))
TEXTS = (
    *('""', '"x"', '"12345678"', '"123456789012345"', '"1234567890123456"', '"x y"', '"null"'),
    *('"\\""', '"a\\\\"', '"\\u00e9"', '"é"', '"\\x"', '"a\tb"', '"a\x00b"', '"ü' + "y" * 40 + '"'),
    '"__debezium_unavailable_value"',
)
ANY = st.sampled_from([*INTEGERS, *LONG, *TEXTS, "[1]", "{}", '{"a": 1}', "nul", "nulls", "false"])


def message(number: int, values: dict[str, str], ignored: str, op: str) -> str:
    row = {"id": str(number % 4), "name": '"n"', "count": "5", "weight": "1", "day": "3", **values}
    text = "{" + ",".join(f'"{name}":{value}' for name, value in row.items()) + "}"
    before, after = ("null", text) if op != "d" else (text, "null")
    source = f'{{"db":"a","table":"t","lsn":{values.get("lsn", number + 1)},"seq":{ignored}}}'
    row.pop("lsn", None)
    return f'{{"before":{before},"after":{after},"source":{source},"op":"{op}","ts_ms":{number}}}'


@st.composite
def texts(draw: st.DrawFn) -> list[bytes]:
    """Messages with any values, some bytes of which are changed, lost, or twice."""
    result = []
    names = draw(st.lists(st.sampled_from(SCHEMA.names), unique=True, max_size=3))
    for number in range(draw(st.integers(2, 8))):
        values = {name: draw(ANY) for name in names}
        text = message(number, values, draw(ANY), draw(st.sampled_from("uuucd"))).encode()
        if draw(st.integers(0, 4)) == 0:
            place = draw(st.integers(0, len(text) - 1))
            other = draw(st.sampled_from([b"", b'"', b"\\", b" ", b"\xff", b"0", b"{", b"}", b","]))
            text = text[:place] + other + text[place + draw(st.integers(0, 2)) :]
        result.append(text)
    return result


def outcome(messages: list[bytes], least: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columnar_messages, "MATCHED_FROM_MESSAGES", least)
        options = EventOptions(format="debezium", decimals="string", times="us")
        try:
            batch, bad = read_batch(read_messages(messages), TABLE.handle.newest, options)
        except RowsieveError as error:
            return type(error), str(error)
        days = batch.rows.schema.get_field_index("day")  # may be none of Python's dates
        rows = batch.rows.set_column(days, "day", batch.rows.column(days).cast(pa.int32()))
        return shown_rows(rows), batch.skipped, bad.reasons


@examples(100)
@given(messages=texts())
def test_messages_are_read_as_the_general_type_reads_them(messages: list[bytes]) -> None:
    assert outcome(messages, 1) == outcome(messages, 1_000)


@pytest.mark.parametrize("odd", [*INTEGERS, *LONG, *TEXTS, "[]", "{}", "nul"])
@pytest.mark.parametrize("name", ["id", "name", "lsn"])
def test_an_odd_value_among_usual_ones_is_read_alike(name: str, odd: str) -> None:
    values = ['"n"', odd, '"n"'] if name == "name" else ["5", odd, "9"]
    messages = [message(at, {name: value}, "1", "u").encode() for at, value in enumerate(values)]
    assert outcome(messages, 1) == outcome(messages, 1_000)


def test_usual_messages_of_a_stream_become_no_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    ignored = [f'"[\\"{at}\\",\\"{at}\\"]"' for at in range(2_000)]
    messages = [message(at, {}, each, "d" if at % 5 else "u") for at, each in enumerate(ignored)]
    rest: list[int] = []
    read = columnar_messages.ColumnarReader.read

    def noted(*given: Any) -> Any:
        entries, places = read(*given)
        rest.append(len(places))
        return entries, places

    monkeypatch.setattr(columnar_messages.ColumnarReader, "read", noted)
    options = EventOptions(format="debezium", times="us")
    column = pa.table({"value": pa.array(messages)})
    batch, _ = read_batch(read_messages(column), TABLE.handle.newest, options)
    assert (rest, batch.rows.num_rows) == ([0], 2_000)
    assert columnar_messages.TEMPLATES_IN_CACHE < 16


def test_integers_of_every_length_are_exact() -> None:
    numbers = [sign * (10**digits + 7) for digits in range(1, 18) for sign in (1, -1)]
    sample = b'{"a":{"n":5}}'
    template = template_of(sample, rows=[("a",)], numbers=[], fixed=[])
    assert template is not None
    block = pa.array([json.dumps({"a": {"n": each}}).replace(" ", "") for each in numbers])
    matched = match(template, MessageBytes(block), np.arange(len(block)))
    assert matched.values["a", "n"].to_pylist() == numbers


def test_only_whole_messages_match_a_template() -> None:
    whole = '{"a":{"n":5}}'
    template = template_of(whole.encode(), rows=[("a",)], numbers=[], fixed=[])
    assert template is not None
    longer = [whole + rest for rest in ("}", " ", ",", whole)]
    block = pa.array([whole, *longer, whole[:-1], "}", whole])
    matched = match(template, MessageBytes(block), np.arange(len(block)))
    assert matched.rows.tolist() == [0, len(block) - 1]


@pytest.mark.parametrize("rest", ["}", " ", ",", "{}", "null"])
def test_text_after_a_message_is_read_alike(rest: str) -> None:
    usual = [message(at, {}, "1", "u") for at in range(4)]
    messages = [each.encode() for each in (usual[0], usual[1] + rest, *usual[2:])]
    assert outcome(messages, 1) == outcome(messages, 1_000)
