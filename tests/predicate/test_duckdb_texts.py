"""Casts from text under DuckDB's semantics give what DuckDB gives, or refuse the text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import UnsupportedOperation
from rowsieve.predicate.functions.casts import cast
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.logical import (
    Bool,
    Date,
    Decimal,
    Float,
    Int,
    LogicalType,
    String,
    Time,
    Timestamp,
    Uuid,
)
from tests import profiles
from tests.oracle_texts import duckdb_reads, plain

TYPES: dict[str, LogicalType] = {
    "BIGINT": Int(64),
    "INTEGER": Int(32),
    "TINYINT": Int(8),
    "UTINYINT": Int(8, signed=False),
    "UBIGINT": Int(64, signed=False),
    "DOUBLE": Float(64),
    "REAL": Float(32),
    "DECIMAL(9,2)": Decimal(9, 2),
    "DECIMAL(18,0)": Decimal(18, 0),
    "DECIMAL(18,9)": Decimal(18, 9),
    "DECIMAL(38,10)": Decimal(38, 10),
    "BOOLEAN": Bool(),
    "DATE": Date(),
    "TIMESTAMP": Timestamp(),
    "TIMESTAMPTZ": Timestamp(utc=True),
    "TIME": Time(),
    "UUID": Uuid(),
}
UUID_TEXT = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"

digits = st.text("0123456789459", max_size=5) | st.text("0123456789", max_size=21)
spaced = st.tuples(st.text("0123456789", min_size=1, max_size=3), st.text("0123456789", max_size=3))
grouped = digits | spaced.map("_".join)
exponents = st.tuples(st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), digits | grouped)
numbers = st.tuples(
    st.sampled_from(["", "", "", "-", "+", "+-", " ", "\t"]),
    grouped,
    st.sampled_from(["", ".", "."]),
    grouped,
    st.just("") | exponents.map("".join),
    st.sampled_from(["", "", "", " ", "\n", "."]),
).map("".join)
based = st.tuples(
    st.sampled_from(["0x", "0X", "0b", "0B", "-0x", "+0b", "0o"]),
    st.text("0123456789abcdefABCDEF_", max_size=20) | st.text("01_", max_size=66),
).map("".join)
words = st.sampled_from(
    ["nan", "NaN", "inf", "Infinity", "infinit", "nan(1)", "nan()", "true", "T", "yes", "on", "off"]
)
named = st.tuples(
    st.sampled_from(["", "-", "+", "+-", "-+", " "]), words, st.sampled_from(" x")
).map(lambda parts: "".join(parts).rstrip())
dates = st.tuples(
    st.sampled_from(["2024", "0001", "0000", "9999", "24", "12024", "-0001"]),
    st.sampled_from(["-", "-", "-", "/", " "]),
    st.sampled_from(["01", "12", "02", "1", "13", "00"]),
    st.sampled_from(["-", "-", "-", "/", " "]),
    st.sampled_from(["05", "30", "31", "5", "00"]),
    st.sampled_from(["", "", " ", "T", "  "]),
    st.sampled_from(["", "", "10:00", "24:00:00", "23:59:59.5", "10:60", "1:2:3", "10:00:60"]),
    st.sampled_from(["", "", "Z", "+05", "-05:30", " +05", "+15:59", "+16", " UTC", "x", "."]),
).map("".join)
others = st.sampled_from(
    [
        *("", " ", "epoch", "-infinity", " Epoch", "abc", "n/a", UUID_TEXT, UUID_TEXT.upper()),
        *(UUID_TEXT.replace("-", ""), "{" + UUID_TEXT + "}", " " + UUID_TEXT, UUID_TEXT[:-1]),
        *(UUID_TEXT[:-1] + "-1", "a0-eebc999c0b-4ef8-bb6d-6bb9bd380a11", "{" + UUID_TEXT),
        *("10:00", "10:00:00.25", "24:00:00", "1:2"),
    ]
)
short = st.text("0123456789_.eE+- xb", max_size=7)
texts = numbers | based | named | dates | others | short


def read(texts: list[str], type_: str) -> list[object]:
    """What is read here, None where a cast fails."""
    return plain(cast(pa.array(texts), String(), TYPES[type_], Semantics.DUCKDB).values)


def agree(found: object, expected: object) -> bool:
    return repr(found) == repr(expected)  # NaN is NaN, and -0.0 is not 0.0


@given(texts=st.lists(texts, min_size=60, max_size=60), type_=st.sampled_from(sorted(TYPES)))
@profiles.judged(60)
def test_a_text_has_the_value_that_duckdb_reads_or_is_refused(texts: list[str], type_: str) -> None:
    known = []
    for text, expected in zip(texts, duckdb_reads(texts, type_), strict=True):
        try:
            found = read([text], type_)
        except UnsupportedOperation:
            continue
        assert agree(found[0], expected), (text, type_)
        known.append((text, expected))
    if known:
        together = read([text for text, _ in known], type_)
        assert list(map(repr, together)) == [repr(expected) for _, expected in known]


@pytest.mark.parametrize("type_", sorted(TYPES))
def test_texts_that_many_files_hold_are_read(type_: str) -> None:
    texts = ["7", " 7 ", "+7", "-7", "1_000", "1.5", "-2.5", "7.", ".5", "1e3", "2.5e1", "15e-1"]
    texts += ["0x1F", "0b101", "inf", "nan", "-Infinity", "true", "f", " true", "on", "n/a", ""]
    if type_ in ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIME"):
        texts = ["2024-07-03", "2024-02-30", "n/a", "", "-"]
        texts += ["2024-07-03 10:20:30.25"] if type_.startswith("TIMESTAMP") else [" 2024-07-03 "]
        texts = [*(["10:20:30", "10:20"] if type_ == "TIME" else texts), "n/a", "", "-"]
    if type_ == "UUID":
        texts = [UUID_TEXT, UUID_TEXT.upper(), "{" + UUID_TEXT + "}", " " + UUID_TEXT, "7", ""]
    found = read(texts, type_)
    assert list(map(repr, found)) == list(map(repr, duckdb_reads(texts, type_)))
    assert any(value is not None for value in found)


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("95204830e-6", "DECIMAL(9,2)"),
        ("12345678901234567890e-4", "BIGINT"),
        ("8.e6.", "INTEGER"),
        ("1.123456789_1", "DOUBLE"),
        ("2024/07/03", "DATE"),
        ("infinity", "TIMESTAMP"),
        ("24:00:00", "TIME"),
        (UUID_TEXT[:8] + UUID_TEXT[9:], "UUID"),
    ],
)
def test_a_text_with_rules_of_its_own_is_refused_by_name(text: str, type_: str) -> None:
    with pytest.raises(UnsupportedOperation, match="duckdb has rules of its own") as raised:
        read([text], type_)
    assert repr(text) in str(raised.value)
