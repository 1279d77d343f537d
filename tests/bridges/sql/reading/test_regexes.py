"""Regular expressions: each dialect's own match the same rows here, or are refused by name."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from rowsieve.bridges.sql.constructs.regexes import Flavour, from_re2, to_re2
from rowsieve.bridges.sql.language import from_text, to_text
from rowsieve.bridges.where import semantics_of, to_predicate
from rowsieve.errors import InvalidPredicate, UnsupportedOperation
from rowsieve.predicate import ir
from rowsieve.predicate.bind import bind
from rowsieve.predicate.evaluate import matching
from rowsieve.predicate.functions.texts.patterns import literal_prefix
from rowsieve.predicate.interpret import Verdict, interpret
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.engines import JUDGES
from tests.profiles import DEEP_FACTOR, IS_DEEP
from tests.stats.manifests import collected, manifest

CHARACTERS = [
    *"abABckKsiI1.\\-_[% \n\r\t\x0b",
    *("é", "ß", "\u0130", "\u0131", "\u212a", "\u017f", "e\u0301", "\u0663", "\x85", "\xa0"),
    *("\u2028", "😀"),
]
ATOMS = [
    *"abAksKSßéI-%_.\u0131",
    *("\\.", "\\-", "\\n", "\\\\", "\\d", "\\w", "\\s", "\\S", "\\D"),
    *("(ab)", "(?:a|b)", "(a|b|.)", "[a-c]", "[^a]", "[^a-c]", "[aB-]", "[\\n\\-1]", "[\\d_]"),
    *("[Kk]", "[k]", "[^k]", "[^s]", "[sS]"),
]
QUANTIFIERS = ["", "", "", "*", "+", "?", "{2}", "{1,2}", "*?", "+?", "{0,1}"]


def patterns(count: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    for _ in range(count):
        pieces = [rng.choice(ATOMS) + rng.choice(QUANTIFIERS) for _ in range(rng.randint(1, 3))]
        other = f"|{rng.choice(ATOMS)}" if rng.random() < 0.2 else ""
        yield (
            ("^" if rng.random() < 0.4 else "")
            + "".join(pieces)
            + ("$" if rng.random() < 0.4 else "")
            + other
        )


def texts() -> list[str | None]:
    rng = random.Random(7)
    made = {"".join(rng.choice(CHARACTERS) for _ in range(rng.randint(0, 4))) for _ in range(300)}
    return [None, "", "a\n", "a\r\n", "\r\n", "b\r", "ab\n\n", "a.", *sorted(made)]


ROWS = pa.record_batch({"s": pa.array(texts())})
SCHEMA, _ = schema_of(ROWS.schema)


def kept(text: str, dialect: str) -> list[int]:
    predicate = to_predicate(text, dialect, SCHEMA)
    found = matching(bind(predicate, SCHEMA, semantics_of(dialect, text)), ROWS)
    return [row for row, each in enumerate(found) if each]


SPELLINGS = {
    "postgres": ["s ~ '{}'", "s ~* '{}'", "NOT (s ~ '{}')"],
    "duckdb": ["regexp_matches(s, '{}')", "regexp_matches(s, '{}', 'i')", "s ~ '{}'"],
    "datafusion": ["s ~ '{}'", "s ~* '{}'", "regexp_like(s, '{}')", "NOT (s ~ '{}')"],
}


@pytest.mark.parametrize("dialect", SPELLINGS)
def test_random_patterns_match_the_engine_s_rows(dialect: str) -> None:
    read = 0
    for number, pattern in enumerate(patterns(60 * DEEP_FACTOR if IS_DEEP else 60, seed=3)):
        text = SPELLINGS[dialect][number % len(SPELLINGS[dialect])].format(pattern)
        try:
            ours = kept(text, dialect)
        except InvalidPredicate:
            continue
        read += 1
        asked = text.replace("s ~", 's COLLATE "C" ~') if dialect == "postgres" else text
        assert (text, ours) == (text, JUDGES[dialect](asked, ROWS))
    assert read > 20


CASES = [
    ("postgres", "s !~ 'a'"),
    ("postgres", "s !~* 'A|b'"),
    ("postgres", "s ~ '(?i)^ab'"),
    ("postgres", "regexp_like(s, '^a')"),
    ("postgres", "s SIMILAR TO '(a|b)%'"),
    ("postgres", "s SIMILAR TO '_'"),
    ("postgres", "s NOT SIMILAR TO 'a!%' ESCAPE '!'"),
    ("postgres", "s SIMILAR TO 'a.'"),
    ("duckdb", "regexp_full_match(s, '.*a')"),
    ("duckdb", "s !~ '.a'"),
    ("duckdb", "s SIMILAR TO 'a.*'"),
    ("datafusion", "regexp_like(s, 'A', 'i')"),
    ("datafusion", "s !~ '^a'"),
    ("datafusion", "s !~* 'A|b'"),
    ("datafusion", "s SIMILAR TO 'a|b.'"),
    ("datafusion", "s NOT SIMILAR TO '^a%'"),
]


@pytest.mark.parametrize(("dialect", "text"), CASES)
def test_each_spelling_keeps_the_engine_s_rows(dialect: str, text: str) -> None:
    found = kept(text, dialect)
    assert found
    assert found == JUDGES[dialect](text, ROWS)


JAVA = [
    ("a$", ["a", "a\n", "a\r\n", "a\u2028"], ["ab", "a\n\n", "a\nb"]),
    ("^.$", ["a", "😀", "a\n"], ["\n", "\r", "\x85", "\u2028", ""]),
    ("(?i)k", ["k", "K"], ["\u212a"]),
    ("(?i)s|x", ["s", "S", "x", "X"], ["\u017f"]),
    ("\\s", [" ", "\x0b", "\n"], ["\xa0", "\u2028"]),
    ("^\\w+$", ["a1_"], ["é", "\u0663", ""]),
]


@pytest.mark.parametrize(("pattern", "matched", "others"), JAVA)
def test_java_patterns_are_translated_to_re2(
    pattern: str, matched: list[str], others: list[str]
) -> None:
    found = pa.compute.match_substring_regex(
        pa.array([*matched, *others]), to_re2(pattern, Flavour.JAVA)
    )
    assert found.to_pylist() == [True] * len(matched) + [False] * len(others)


@cache
@cache
def every_character() -> pa.RecordBatch:
    return pa.record_batch(
        {"s": [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]}
    )


EACH_CLASS = [
    *(rf"^\{letter}$" for letter in "dwsDWS"),
    *("^[^\\s\\d]$", "(?i)^\\w$", "(?i)^[^\\w]$"),
]


@pytest.mark.parametrize("pattern", EACH_CLASS)
def test_rust_s_classes_hold_every_character_that_datafusion_s_do(pattern: str) -> None:
    found = matching(
        bind(to_predicate(f"s ~ '{pattern}'", "datafusion", SCHEMA), SCHEMA), every_character()
    )
    assert np.flatnonzero(found).tolist() == JUDGES["datafusion"](
        f"s ~ '{pattern}'", every_character()
    )


@pytest.mark.parametrize("pattern", [r"^\d+$", r"a\s\D", r"\W\w*\S\D"])
def test_rust_s_classes_are_written_as_they_were_read(pattern: str) -> None:
    assert from_re2(to_re2(pattern, Flavour.RUST), Flavour.RUST) == pattern


REFUSED = [
    ("postgres", r"s ~ '\y'", r"the escape '\\y'"),
    ("postgres", r"s ~ '(a)\1'", r"the escape '\\1'"),
    ("postgres", "s ~ '(?=a)b'", r"the group '\(\?=a'"),
    ("postgres", "s ~ 'a++'", "a quantifier after the quantifier"),
    ("postgres", "s ~ '*a'", "repeats nothing"),
    ("postgres", "s ~ 'a|'", "an empty pattern or branch"),
    ("postgres", "s ~ ''", "an empty pattern"),
    ("postgres", "s ~ 'a{2,1}'", "the count"),
    ("postgres", "s ~ 'a{300}'", "the count"),
    ("postgres", "s ~ 'a]'", "a bare"),
    ("postgres", "s ~ '(a'", "not closed"),
    ("postgres", "s ~ 'a)'", "no opening"),
    ("postgres", "s ~ '[a'", "not closed"),
    ("postgres", "s ~ '[[:alpha:]]'", "a set within a set"),
    ("postgres", "s ~ 'a^b'", r"'\^' inside"),
    ("postgres", "s ~ 'a$b'", r"'\$' inside"),
    ("postgres", "s ~ s", "must be a quoted constant"),
    ("postgres", "regexp_like(s, 'a', 'x')", "the only flags"),
    ("datafusion", r"s ~ '[\D]'", "in brackets"),
    ("datafusion", r"s ~ '\b'", r"the escape '\\b'"),
    ("datafusion", r"s ~ 'a\\'", "LIKE's escape"),
    ("datafusion", "s ~* 'é'", "beyond ASCII"),
    ("datafusion", "s SIMILAR TO 'a' ESCAPE '!'", "without ESCAPE"),
    ("spark", r"s RLIKE '[^a]$'", "carriage return"),
    ("spark", "s RLIKE '[a&&b]'", "operation of sets"),
    ("spark", r"s RLIKE '\\bfoo'", r"the escape '\\b'"),
    ("spark", "s RLIKE 'a*+'", "a quantifier after"),
]


@pytest.mark.parametrize(("dialect", "text", "reason"), REFUSED)
def test_a_construct_that_flavours_take_otherwise_is_refused_by_name(
    dialect: str, text: str, reason: str
) -> None:
    with pytest.raises(InvalidPredicate, match=reason):
        kept(text, dialect)


def test_patterns_that_depend_on_a_locale_are_evaluated_but_not_translated() -> None:
    for text in (r"s ~ '\w'", "s ~* 'a'"):
        assert kept(text, "postgres")
        assert from_text(text, SCHEMA).expression is None
    assert from_text("s ~ '^a.*b$'", SCHEMA).residual is None


def test_a_pattern_is_written_only_where_it_is_read_back() -> None:
    assert from_re2("^a(?s:.)[0-9]+$", Flavour.POSTGRES) == "^a.[0-9]+$"
    for pattern, flavour in ((r"\d", Flavour.RUST), ("a$", Flavour.JAVA), ("a.", Flavour.POSTGRES)):
        with pytest.raises(ValueError, match=r"."):
            from_re2(pattern, flavour)


PREFIXES = [
    ("^abc", "abc"),
    ("^abc+", "abc"),
    ("^abc*", "ab"),
    ("^abc?d", "ab"),
    ("^ab{0,1}", "a"),
    (r"^a\.b[cd]", "a.b"),
    (r"^a\d", "a"),
    ("^a.b", "a"),
    ("^ab|cd", ""),
    ("abc", ""),
    ("(?i)^abc", ""),
    ("^(?:abc.*)$", "abc"),
    ("^(?:a)*(b)$", ""),
    ("^", ""),
]


@pytest.mark.parametrize(("pattern", "prefix"), PREFIXES)
def test_all_matches_begin_with_the_prefix(pattern: str, prefix: str) -> None:
    assert literal_prefix(pattern) == prefix


def test_an_anchored_pattern_prunes_by_its_prefix_and_never_a_match() -> None:
    ordered = sorted(text for text in texts() if text is not None)
    batches = [pa.record_batch({"s": ordered[i : i + 10]}) for i in range(0, len(ordered), 10)]
    known = manifest(
        [batch.num_rows for batch in batches],
        [collected(batch, SCHEMA) for batch in batches],
        SCHEMA,
    )
    pruned = 0
    for pattern in patterns(120, seed=11):
        try:
            call = ir.Call(
                "regex_matches", (ir.Column("s"), ir.Literal(to_re2(pattern, Flavour.RE2)))
            )
        except ValueError:
            continue
        for condition in (ir.BooleanOperand(call), ir.Not(ir.BooleanOperand(call))):
            bound = bind(condition, SCHEMA)
            for verdict, batch in zip(interpret(bound, known), batches, strict=True):
                found = matching(bound, batch)
                assert verdict != Verdict.NONE or not found.any()
                assert verdict != Verdict.ALL or found.all()
                pruned += verdict == Verdict.NONE
    assert pruned > 50


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("a$", "before a line break"),
        ("a.b", "write \\[\\^"),
        ("\\d+", "write its members"),
        ("(?i)a", "of any case"),
        ("a{2}?", "the quantifier"),
    ],
)
def test_trino_patterns_that_its_libraries_read_differently_are_refused(
    pattern: str, reason: str
) -> None:
    with pytest.raises(UnsupportedOperation, match=reason):
        kept(f"regexp_like(s, '{pattern}')", "trino")


@pytest.mark.parametrize("pattern", ["^a[bc]*", "(a|b)B?", "[^a]", "\\."])
def test_trino_patterns_that_are_shared_are_read_and_written(pattern: str) -> None:
    text = f"regexp_like(s, '{pattern}')"
    assert kept(text, "trino") == JUDGES["duckdb"](text.replace("like", "matches"), ROWS)
    read = from_text(f"regexp_matches(s, '{pattern}')", SCHEMA, dialect="duckdb").exact()
    assert to_text(read, SCHEMA, dialect="trino").exact() == text.replace("s,", '"s",')
