"""Text read by a Java format has the time that Spark reads, or is refused."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidPredicate, UnreadText
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.functions.times.java_formats import UnknownFormat, pattern_of
from rowsieve.predicate.functions.times.java_times import read_times
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from rowsieve.types.logical import Timestamp
from tests.oracle_spark_texts import java_reads_one
from tests.oracle_texts import plain, read_apart
from tests.profiles import IS_DEEP

COUNT = 200 if IS_DEEP else 25  # random texts of each format
SCHEMA, _ = schema_of(pa.schema([("s", pa.string())]))
FORMATS = [
    *("yyyy-MM-dd", "yyyyMMdd", "dd/MM/yyyy", "MM/dd/yyyy HH:mm", "dd.MM.yyyy", "ddMMyyyy"),
    *("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd'T'HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "yyyy/MM/dd"),
    *("yyyyMMddHHmmss", "yyyy-MM-dd HH:mm:ss.SSSSSS", "yyyy-MM-dd HH:mm:ss.SSSSSSSSS"),
    *("yyyy", "yyyy-MM", "yyyyMM", "HH:mm:ss", "HH:mm", "HH", "MM-dd", "MMdd"),
    *("M/d/yyyy", "d.M.yyyy H:m:s", "yyyy-M-d H:mm:ss.S", "yyyy-MM-dd HH", "ss:mm:HH"),
    *("HH:mm yyyy_MM_dd", "'day' dd, 'sik' MM yyyy", "yyyyMMdd'T'HHmmss.SS", "MMyyyydd"),
    *('yyyy"MM"dd', "yyyy MM dd", "(yyyy)+MM~dd", "yyyy%MM&dd", "yyyy:MM:dd@HH=mm"),
    *(
        "-yyyy-MM",
        "+yyyy",
        "HHmm yyyy",
        "yy-MM-dd",
        "yyMMdd",
        "d MMM yyyy",
        "ddMMMyy",
        "MMM d, yyyy",
    ),
    *("d MMMM yyyy", "d LLL yyyy", "LLLL yyyy", "MMM dd", "yyyy-MM-dd hh:mm:ss a", "M/d/yy h:mm a"),
    *(
        "ha",
        "K:mm a",
        "KK:mm",
        "hh:mm:ss.SSS",
        "a hh:mm yyyy",
        "yyyy-MM-dd HH:mm:ssXXX",
        "yyyyMMddXX",
    ),
    *(
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        "HHmmssX",
        "HH x",
        "HH:mm xx",
        "yyyy xxx",
        "dd/MMM/yyyy:HH:mm:ss Z",
    ),
    *("XXXyyyy", "yyyyMMdd'T'hhmmssaXX", "yyyyDDD", "yyyy-DDD HH:mm", "yy.DDD", "yyyyDDD'T'HH"),
    *("kk:mm", "yyyy-MM-dd k:mm:ss", "yyyy[-MM[-dd]]", "yyyy-MM-dd[ HH:mm[:ss[.SSS]]]"),
    *("yyyy-MM-dd'T'HH:mm[:ss[.SSSSSS]][XXX]", "yyyy[.MM]", "dd MMMM[, yyyy]", "HH:mm[X]"),
    *("d MMM yyyy[ h:mm[ a]]", "MM/dd[/yyyy]", "HH[:mm[:ss]]", "yyyy-MM-dd HH:mm:ss[' at'XX]"),
    *("yyyyMMdd[' 'HHmmss[.SSS]]", "yyyy-M-d[' 'H:m][XX]", "dd.MM[.yy]", "HH:mm[ 'o' ss]"),
]
REFUSED = [
    *("", "YYYY-MM-dd", "yyyyy", "uuuu", "MMM", "EEE", "HH:mm a", "a", "D", "DDD", "G"),
    *("yyyyMMddHHmmssSSS", "yyyy-MM-dd HH:mm:ssSSS", "yyyyMd", "dMyyyy", "yyyy[-MM", "yyyy#MM"),
    *(
        "yyyy[-MM]-dd",
        "[yyyy]-MM",
        "yyyyMM[dd]",
        "yyyy[]",
        "yyyy[[-MM]-dd]",
        "HH[:mm][:ss]",
        "yyyy]",
    ),
    *(
        "HH:mm[:ss][.SSS]",
        "MM[-yyyy]",
        "HH[:mm[:ss]][:HH]",
        "yyyy[X][ H",
        "DDD",
        "yyyy-MM-DDD",
        "kk a",
    ),
    *("yyyy-DD", "yyyy-D", "EEE yyyy", "yyyy QQ", "yyyy[A]" + "[B]" * 6),
    *("yyyy{MM", "yyyy]MM", "yyyy1MM", "'1'yyyy", "yyyy''MM", "'a''b'yyyy", "yyyy'", "y", "SSS"),
    *(
        "yyyy-dd",
        "dd",
        "mm:ss",
        "HH:ss",
        "HH:mm.SSS",
        "yyyy yyyy",
        "XXX",
        "yyyy XXX Z",
        "h a a",
        "HHXHH",
        "yyyyXMM",
        "hhHH",
        "yyyy-MM MMM",
        "MMMMM yyyy",
        "yyy-MM",
        "yyyy-MM-dd XXXX",
        "yyyy-MM-dd O",
        "VV",
        "\u00e9yyyy",
    ),
    *("yyyy-MM-dd HH:mm:ss z", "yyyy-MM-dd HH:mm:ss.SSSSSSSSSS", "yyyyTMM", "HH:mm:sss"),
]
NUMBERS = {
    "yyyy": (
        "2024",
        "2023",
        "1970",
        "0001",
        "0000",
        "9999",
        "-0044",
        "-0000",
        "+2024",
        "+10000",
        "-12345",
        "+0012345",
        "24",
        "12345",
        "+294247",
        "+294300",
        "-9999999",
        "1583",
        "٢024",
    ),
    "M": ("01", "2", "7", "9", "02", "12", "06", "0", "00", "13", "007", "1\u0661", "-1", "+1"),
    "d": (
        "01",
        "5",
        "05",
        "29",
        "31",
        "30",
        "32",
        "00",
        "0000000000000000001",
        "00000000000000000001",
    ),
    "H": ("00", "0", "2", "02", "23", "12", "24", "-1"),
    "m": ("00", "3", "30", "59", "07", "60"),
    "s": ("00", "7", "30", "59", "07", "60"),
    "yy": ("24", "00", "70", "99", "4", "124", "-24", "+24"),
    **dict.fromkeys(("MMM", "LLL"), ("Jan", "FEB", "jun", "Dec", "June", "01", "Sept", "ju\u017f")),
    **dict.fromkeys(("MMMM", "LLLL"), ("January", "MAY", "june", "August", "Jan", "8")),
    "a": ("AM", "PM", "pm", "Am", "a.m.", "P", ""),
    "h": ("01", "12", "2", "02", "11", "0", "00", "13"),
    "K": ("00", "11", "0", "02", "12", "24"),
    "k": ("01", "24", "7", "13", "00", "0", "25"),
    "D": ("001", "366", "059", "365", "060", "000", "367", "12", "1234"),
    "X": ("Z", "+01", "-0530", "+1800", "+1801", "z", "+01:30", "+0160", "-1"),
    **dict.fromkeys(("XX",), ("Z", "+0100", "-0530", "-1800", "+1801", "+01:00", "z", "+01")),
    "XXX": ("Z", "+01:00", "-05:30", "+18:00", "+18:01", "-00:00", "+0100", "z", "+01:60", "+9:00"),
    "x": ("+01", "-0530", "+00", "-18", "+19", "Z"),
    **dict.fromkeys(("xx", "Z"), ("+0100", "-0530", "+0000", "-1800", "+1801", "Z", "+01:00")),
    "xxx": ("+01:00", "-05:30", "+00:00", "+17:59", "+18:01", "Z", "+0100"),
    "S": ("0", "5", "123", "123456", "1234567", "999999999", "1234567891", ""),
}


def section_end(form: str, place: int) -> int:
    """The place behind the bracket that closes the one at this place."""
    depth = 0
    while True:
        depth += {"[": 1, "]": -1}.get(form[place], 0)
        place += 1
        if not depth:
            return place


def texts(form: str, seed: int) -> list[str]:
    """Texts of about this format."""
    rng = random.Random(f"{form} {seed}")
    made = []
    for _ in range(COUNT):
        text, place = "", 0
        while place < len(form):
            letter = form[place]
            if letter == "[" and rng.random() < 0.3:  # without the section, or with a part of it
                odd = rng.random() < 0.1 and form[place + 1] != "'"
                place = place + 2 if odd else section_end(form, place)
            elif letter in "[]":
                place += 1
            elif letter == "'":
                stop = form.index("'", place + 1)
                text += rng.choice((str.lower, str.upper, str))(form[place + 1 : stop])
                place = stop + 1
            elif letter.isalpha():
                stop = place
                while form[stop : stop + 1] == letter:
                    stop += 1
                field = form[place:stop]
                known = NUMBERS.get(field) or NUMBERS[letter]
                usual = [each for each in known if len(each) == len(field)] or known
                usual = list(known) if field in NUMBERS and field != "yyyy" else usual
                text += rng.choice(known if rng.random() < 0.1 else usual[:4])
                place = stop
            else:
                text += letter if rng.random() < 0.98 else "x"
                place += 1
        made.append(rng.choice([*[""] * 9, " "]) + text + rng.choice([*[""] * 9, "x"]))
    return [*made, "", " ", "2024-07-03", "\u017f\u0131k 07 2024"]


def known(asked: list[str], form: str, zone: str | None = None) -> dict[str, int | None]:
    """Microseconds of those texts that are not refused, None where a text spells none."""
    target = Timestamp(utc=zone is not None)

    def read(some: Sequence[str]) -> list[int | None]:
        return plain(read_times(pa.array(some, pa.string()), form, target, zone or "UTC").values)

    found = read_apart(asked, read, refusal=UnreadText)
    assert len(found) > 0.8 * len(set(asked))
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_a_text_has_the_time_that_the_oracle_reads(form: str) -> None:
    found = known(texts(form, 1), form)
    assert found == {text: java_reads_one(text, form) for text in found}
    assert sum(value is not None for value in found.values()) > 2


FAR_OFFSETS = {  # Java bounds an offset where it makes an instant of a date and an hour
    "HH:mm xx": ["02:30 +1801", "02:30 +2359", "02:30 -1900", "02:30 +2400", "24:30 +1900"],
    "HH x": ["02 +19", "02 -2359", "02 -24", "02 +1960"],
    "yyyy xxx": ["2024 +19:00", "2024 +18:01", "2024 -24:00"],
    "MM-dd HH:mm XXX": ["07-03 02:30 +19:00", "02-29 02:30 +19:00"],
    "yyyy-MM-ddXX[ HH]": ["2024-07-03+1801", "2024-07-03+1801 02", "2024-07-03+1800 02"],
    "yyyy-MM-dd hh:mm X[ a]": ["2024-07-03 02:30 +19", "2024-07-03 02:30 +19 PM"],
    "yy-MM-dd kX": ["24-07-03 24+19", "24-07-03 24+1800"],
    "yyyyDDD'T'HHXX": ["2024185T02+1801", "2024185T02-1800"],
    "d MMM yyyy XX[ KK]": ["3 Jul 2024 -2000", "3 Jul 2024 -2000 02"],
}


def test_an_offset_that_is_dropped_is_bounded_beside_a_whole_date_and_hour() -> None:
    for form, asked in FAR_OFFSETS.items():
        assert known(asked, form) == {text: java_reads_one(text, form) for text in asked}, form


@pytest.mark.spark
@pytest.mark.parametrize("zone", [None, "America/New_York", "Pacific/Apia"])
def test_a_text_has_the_time_that_spark_reads_or_is_refused(
    zoned_session: Any, zone: str | None
) -> None:
    zoned_session.conf.set("spark.sql.session.timeZone", zone or "UTC")
    zoned_session.conf.set("spark.sql.ansi.enabled", "false")
    name = "to_timestamp_ntz" if zone is None else "try_to_timestamp"
    every = sorted({*FORMATS, *FAR_OFFSETS})
    if zone is not None and not IS_DEEP:  # each zone reads half of the formats
        every = every[zone == "Pacific/Apia" :: 2]
    for start in range(0, len(every), 8):
        forms = every[start : start + 8]
        found = [known([*texts(form, 2), *FAR_OFFSETS.get(form, ())], form, zone) for form in forms]
        rows = [(n, text) for n, each in enumerate(found) for text in each]
        frame = zoned_session.createDataFrame(
            pa.table({"k": range(len(rows)), "n": [n for n, _ in rows], "s": [s for _, s in rows]})
        )
        calls = [
            f"WHEN {n} THEN unix_micros(CAST({name}(s, {quoted(form)}) AS TIMESTAMP))"
            for n, form in enumerate(forms)
        ]
        by_spark = frame.selectExpr("k", f"CASE n {' '.join(calls)} END").orderBy("k").collect()
        for (n, text), row in zip(rows, by_spark, strict=True):
            assert found[n][text] == row[1], (text, forms[n])


def quoted(form: str) -> str:
    escaped = form.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@pytest.mark.parametrize("form", REFUSED)
def test_a_format_whose_rules_are_not_known_is_refused(form: str) -> None:
    with pytest.raises(UnknownFormat, match="format"):
        pattern_of(form)


@pytest.mark.parametrize(
    "text", ["+294248-01-01", "-290309-01-01", "+999999999-01-01", "+12345678901-01-01"]
)
def test_years_on_which_spark_fails_even_where_it_tries_are_refused(text: str) -> None:
    with pytest.raises(UnreadText, match=r"\d-01-01. as timestamp"):
        read_times(pa.array(["2024-07-03", text]), "yyyy-MM-dd", Timestamp(), "UTC")


CALLS = {
    "to_date(s, 'dd/MM/yyyy')": ("2011-12-31", "fails"),  # its 30th was skipped
    "try_to_date(s, 'dd/MM/yyyy')": ("2011-12-31", None),
    "to_timestamp(s, 'dd/MM/yyyy')": ("2011-12-30T10:00:00", "fails"),
    "to_timestamp_ltz(s, 'dd/MM/yyyy')": ("2011-12-30T10:00:00", "fails"),
    "try_to_timestamp(s, 'dd/MM/yyyy')": ("2011-12-30T10:00:00", None),
    "to_timestamp_ntz(s, 'dd/MM/yyyy')": ("2011-12-30T00:00:00", "fails"),
    "unix_timestamp(s, 'dd/MM/yyyy')": (1325239200, "fails"),
    "to_unix_timestamp(s, 'dd/MM/yyyy')": (1325239200, "fails"),
    "unix_timestamp(s || ' x', \"dd/MM/yyyy 'x'\")": (1325239200, "fails"),
}


@pytest.mark.spark
@pytest.mark.parametrize("ansi", [True, False])
def test_the_functions_of_spark_agree_with_spark(zoned_session: Any, ansi: bool) -> None:
    zoned_session.conf.set("spark.sql.session.timeZone", "Pacific/Apia")
    zoned_session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    semantics = Semantics.of_spark(ansi=ansi, time_zone="Pacific/Apia")
    for call, expected in CALLS.items():
        bound = bind_operand(to_operand(call, "spark", SCHEMA, semantics), SCHEMA, semantics)
        for text, in_ansi in zip(("30/12/2011", "n/a"), expected, strict=True):
            wanted = None if in_ansi == "fails" and not ansi else in_ansi
            values, failed = compute(bound, pa.record_batch({"s": [text]}))
            assert shown(values[0].as_py()) == (None if wanted == "fails" else wanted), call
            assert failed[0] == (wanted == "fails"), call
            assert in_spark(zoned_session, call, text) == wanted, call


def in_spark(session: Any, call: str, text: str) -> Any:
    from pyspark.errors import PySparkException

    frame = session.createDataFrame(pa.table({"s": [text]}))
    try:
        table = frame.selectExpr(f"{call} AS found").toArrow()
    except PySparkException as error:
        return "fails" if error.getCondition() == "CANNOT_PARSE_TIMESTAMP" else error
    return shown(table["found"][0].as_py())


def shown(value: Any) -> Any:
    if not hasattr(value, "isoformat"):
        return value
    return str(value.isoformat()).removesuffix("+00:00")


@pytest.mark.parametrize(
    "text",
    [
        "to_date(s, 'YYYY-MM-dd')",
        "to_date(s, 'yyyy-' || 'MM')",
        "to_timestamp(s, s)",
        "to_timestamp(s, 'yyyy', 'MM')",
        "to_timestamp(s, 'yyyy\\055MM')",
        "str_to_time(s, 'yyyy')",
        "try_to_timestamp(s, 'QQQ')",
        "unix_timestamp(s, 'EEE')",
    ],
)
def test_calls_that_are_not_known_to_be_read_alike_are_refused(text: str) -> None:
    with pytest.raises(InvalidPredicate):
        to_operand(text, "spark", SCHEMA)
