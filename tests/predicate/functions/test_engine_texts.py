"""Casts from text under an engine's semantics give what the engine gives, or refuse the text."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowsieve.errors import UnreadText
from rowsieve.predicate.functions.casting.casts import cast, reads_every_text
from rowsieve.predicate.semantics import Semantics, TextReading
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
from tests.oracle_texts import READS, named, plain

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
named_numbers = st.tuples(
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
far_days = st.tuples(
    st.sampled_from(["", "", "-", "+"]),
    st.sampled_from(["10000", "0044", "0000", "0001", "012345", "294247", "262142", "262143"])
    | st.integers(0, 9_999_999).map(lambda year: f"{year:04}"),
    st.sampled_from(["-01-01", "-12-31", "-02-29", "-07-03", "-02-30", "-1-5", "-13-01"]),
).map("".join)
far_clocks = st.sampled_from(
    [" 10:20", "T10:20:30", " 23:59:59.123456", " 10:60", " 24:00", " 1:2"]
)
eras = st.sampled_from([" (BC)", " BC", " bc", " (bc)", " AD", "(BC)", "  BC"])
far = st.tuples(far_days, st.just("") | far_clocks | eras, st.just("") | eras | far_clocks)
others = st.sampled_from(
    [
        *("", " ", "epoch", "-infinity", " Epoch", "abc", "n/a", UUID_TEXT, UUID_TEXT.upper()),
        *(UUID_TEXT.replace("-", ""), "{" + UUID_TEXT + "}", " " + UUID_TEXT, UUID_TEXT[:-1]),
        *(UUID_TEXT[:-1] + "-1", "a0-eebc999c0b-4ef8-bb6d-6bb9bd380a11", "{" + UUID_TEXT),
        *("10:00", "10:00:00.25", "24:00:00", "1:2"),
    ]
)
others |= st.sampled_from(
    [
        *("20240703", "2024/07/03", "2024/7/3 10:20", "2024-07-03t1:2:3.5 +02:30", "0o17", "tru"),
        *("ye", "of", "\v7", "7\xa0", "1e400", "-1e-400", "0e9999999", "1e-9999999", "1e0000002"),
        *("2024-07-03 102030", "2024-07-03 10:20:30.1234560", "2024-07-03 10:20:30 EST", "1020"),
        *("\u0663", "1.5f", "0x1p3", "-0x_1f", "0o7777777777777777777777", "9e38", "-NaN", "+nan"),
    ]
)
short = st.text("0123456789_.eE+- xb", max_size=7)
texts = far.map("".join) | numbers | based | named_numbers | dates | others | short


SEMANTICS = {
    TextReading.DUCKDB: Semantics.DUCKDB,
    TextReading.POSTGRES: Semantics.POSTGRES,
    TextReading.DATAFUSION: Semantics.DATAFUSION,
    TextReading.TRINO: Semantics.TRINO,
}
CASES = [
    (reading, type_)
    for reading in SEMANTICS
    for type_ in TYPES
    if named(TYPES[type_], reading) is not None
]


def read(texts: list[str], type_: str, reading: TextReading) -> list[object]:
    """What is read here, None where a cast fails."""
    return plain(cast(pa.array(texts), String(), TYPES[type_], SEMANTICS[reading]).values)


def agree(found: object, expected: object) -> bool:
    return repr(found) == repr(expected)  # NaN is NaN, and -0.0 is not 0.0


@given(texts=st.lists(texts, min_size=20, max_size=20), case=st.sampled_from(CASES))
@profiles.judged(60)
def test_a_text_has_the_value_that_the_engine_reads_or_is_refused(
    texts: list[str], case: tuple[TextReading, str]
) -> None:
    reading, type_ = case
    known = []
    for text in texts:
        try:
            known.append((text, read([text], type_, reading)[0]))
        except UnreadText:
            assert not reads_every_text(TYPES[type_], SEMANTICS[reading])
            continue
    kept = [text for text, _ in known]
    for (text, found), expected in zip(known, READS[reading](kept, type_), strict=True):
        assert agree(found, expected), (text, type_, reading)
    assert list(map(repr, read(kept, type_, reading))) == [repr(found) for _, found in known]


COMMON = ["7", "+7", "-7", "007", "7.", ".5", "1.5", "-2.5", "1.005", "inf", "nan", "true", "f"]
COMMON += ["", "n/a", "-", "128", "2147483648", "99999999999999999999", "0"]
SPELLED = {
    TextReading.DUCKDB: ["1_000", "1e3", "2.5e1", "15e-1", "0x1F", "0b101", "-Infinity"],
    TextReading.POSTGRES: ["1_000", "1e3", "15e-1", "-0x1f", "0b101", "0o17", "1e400", "tru"],
    TextReading.DATAFUSION: ["1_000", "1e3", "1e400", "-1e400", "1e-400", "-nan", "tru", "0x1F"],
    TextReading.TRINO: ["1e3", "15e-1", "1e400", "NaN", "-Infinity", "TRUE", "no"],
}
SPELLED[TextReading.DUCKDB] += [" 7 ", " true", " 0x1F", "0x1F ", "0b101\t", "1_000 "]
SPELLED[TextReading.DATAFUSION] += [" 7 ", "\xa01", "\v7"]
SPELLED[TextReading.POSTGRES] += [" 7 ", " on ", "\v7"]
MOMENTS = ["2024-07-03", "2024-02-29", "n/a", "", "-"]
SHORT = ["7", "-12", "12345", "2.5", "123."]
CLOCKS = ["2024-07-03 10:20:30", "2024-07-03 10:20:30.25"]
MORE = {
    TextReading.DUCKDB: ["2024-02-30", " 2024-07-03 "],
    TextReading.POSTGRES: ["2024-02-30", " 2024-07-03 ", "2024-7-3", "20240703", "2024/07/03"],
    TextReading.DATAFUSION: ["2024-02-30", " 2024-07-03", "2024/07/03", "infinity", "2024-07-03 "],
    TextReading.TRINO: [" 2024-07-03 "],
}


def spelled(reading: TextReading, type_: str) -> list[str]:
    """Texts that many files hold."""
    if type_ == "UUID":
        return [UUID_TEXT, UUID_TEXT.upper(), "7", ""]
    if type_ == "TIME":
        return ["10:20:30", "10:20", "23:59:59.5", "n/a", "", "-"]
    if type_ == "DATE" or type_.startswith("TIMESTAMP"):
        lax = reading in (TextReading.POSTGRES, TextReading.DATAFUSION)
        clocks = CLOCKS if lax or type_ != "DATE" else []
        zoned = ["2024-07-03 10:20:30+02", "2024-07-03T10:20:30Z"] if lax else []
        short = SHORT if reading is not TextReading.TRINO else []
        return [*MOMENTS, *short, *(MORE[reading] if type_ == "DATE" else []), *clocks, *zoned]
    return [*COMMON, *SPELLED[reading]]


@pytest.mark.parametrize(("reading", "type_"), CASES)
def test_texts_that_many_files_hold_are_read(reading: TextReading, type_: str) -> None:
    texts = spelled(reading, type_)
    if reading is TextReading.POSTGRES and type_.startswith("DECIMAL"):
        texts = [text for text in texts if text != "nan"]  # a decimal there
    if reading is TextReading.POSTGRES and type_ in ("DOUBLE", "REAL"):
        texts = [text for text in texts if text != "-0x1f"]  # a float of C
    found = read(texts, type_, reading)
    assert list(map(repr, found)) == list(map(repr, READS[reading](texts, type_)))
    assert any(value is not None for value in found)


DUCKDB, POSTGRES, DATAFUSION, TRINO = SEMANTICS
FAR = {
    DUCKDB: ["10000-01-01", "-0044-03-15", "0044-03-15 (BC)", "0045-02-29 (BC)", "0000-12-31"],
    POSTGRES: ["10000-01-01", "0044-03-15 BC", "4714-11-24 BC", "4714-11-23 BC", "10000-02-30"],
    DATAFUSION: ["+10000-01-01", "-0044-03-15", "+0044-03-15", "-0000-12-31", "+10000-02-30"],
}
FAR[DUCKDB] += ["-0044-03-15 (BC)", "0000-01-01 (BC)", "-0044-02-30", "10000-13-01"]
FAR_TIMES = {
    DUCKDB: ["10000-01-01 10:20:30.5", "-0044-03-15T10:20", "0044-03-15 (BC) 10:20:30"],
    POSTGRES: ["10000-01-01 10:20:30.5", "10000-01-01T10:20", "0044-03-15 10:20:30 BC"],
}


@pytest.mark.parametrize(
    ("reading", "type_"),
    [*((reading, "DATE") for reading in FAR), *((reading, "TIMESTAMP") for reading in FAR_TIMES)],
)
def test_texts_of_far_years_are_read(reading: TextReading, type_: str) -> None:
    texts = [*FAR[reading], *(FAR_TIMES[reading] if type_ == "TIMESTAMP" else [])]
    texts = [*texts, "2024-07-03", "n/a"]
    found = read(texts, type_, reading)
    assert found == READS[reading](texts, type_)
    assert sum(isinstance(value, int) and abs(value) > 700_000 for value in found) > 2


@pytest.mark.parametrize(
    ("text", "type_", "reading"),
    [
        ("95204830e-6", "DECIMAL(9,2)", DUCKDB),
        ("12345678901234567890e-4", "BIGINT", DUCKDB),
        ("8.e6.", "INTEGER", DUCKDB),
        ("1.123456789_1", "DOUBLE", DUCKDB),
        ("2024/07/03", "DATE", DUCKDB),
        ("294247-01-10 04:00:54", "TIMESTAMP", DUCKDB),
        ("10000-01-01 10:20:30 BC", "TIMESTAMP", DUCKDB),  # which drops the era
        ("10000-01-01 00:00:00+00", "TIMESTAMPTZ", DUCKDB),
        ("0044-03-15 (BC)", "DATE", POSTGRES),
        ("infinity", "TIMESTAMP", DUCKDB),
        ("24:00:00", "TIME", DUCKDB),
        ("2024-01-5", "TIME", DUCKDB),  # midnight
        (UUID_TEXT[:8] + UUID_TEXT[9:], "UUID", DUCKDB),
        ("NaN", "DECIMAL(9,2)", POSTGRES),
        ("0x1p3", "DOUBLE", POSTGRES),
        ("July 3, 2024", "DATE", POSTGRES),
        ("infinity", "DATE", POSTGRES),
        ("today", "TIMESTAMP", POSTGRES),
        ("2024-07-03 24:00:00", "TIMESTAMP", POSTGRES),
        ("2024-07-03 10:20:30.1234567", "TIMESTAMP", POSTGRES),
        ("2024-07-03 10:20:30 UTC", "TIMESTAMPTZ", POSTGRES),
        ("10:20 PM", "TIME", POSTGRES),
        ("+262143-07-03", "DATE", DATAFUSION),
        ("2024-07-03 10:20:30 Europe/Berlin", "TIMESTAMP", DATAFUSION),
        ("2024-07-03 10:20:60", "TIMESTAMP", DATAFUSION),
        ("2024-07-03 10:20:30.1234567", "TIMESTAMP", DATAFUSION),
        ("1600-01-01", "TIMESTAMP", DATAFUSION),
        ("1020", "TIME", DATAFUSION),
        (" 7", "BIGINT", TRINO),
        ("\u0663", "BIGINT", TRINO),
        ("1.5f", "DOUBLE", TRINO),
        ("2024-7-3", "DATE", TRINO),
        ("2024-02-30", "TIMESTAMP", TRINO),
        ("2024-07-03T10:20:30", "TIMESTAMP", TRINO),
    ],
)
def test_a_text_with_rules_of_its_own_is_refused_by_name(
    text: str, type_: str, reading: TextReading
) -> None:
    with pytest.raises(UnreadText, match=f"{reading.value} has rules of its own") as raised:
        read([text], type_, reading)
    assert repr(text) in str(raised.value)
