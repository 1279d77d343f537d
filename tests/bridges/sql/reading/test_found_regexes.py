"""What regular expressions find: text of a dialect gives its engine's values, or is refused."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from rowsieve import Exactness, translate
from rowsieve.bridges.sql.constructs.found_regexes import from_re2_replacement, to_re2_replacement
from rowsieve.bridges.sql.constructs.regexes import Flavour
from rowsieve.bridges.where import to_operand
from rowsieve.errors import InvalidPredicate
from rowsieve.predicate.bind import bind_operand
from rowsieve.predicate.evaluate import compute
from rowsieve.predicate.semantics import Semantics
from rowsieve.types.encodings import schema_of
from tests.bridges.sql.reading.test_regexes import patterns, texts
from tests.bridges.sql.test_engine_functions import ENGINES
from tests.profiles import DEEP_FACTOR, IS_DEEP

ROWS = pa.table({"s": pa.array(texts())})
SCHEMA, _ = schema_of(ROWS.schema)
SPELLINGS = {
    "duckdb": [
        "regexp_extract(s, '{}')",
        "regexp_extract(s, '{}', 1)",
        "regexp_replace(s, '{}', '<\\0>')",
        "regexp_replace(s, '{}', '<\\1\\\\>', 'g')",
    ],
    "datafusion": [
        "regexp_replace(s, '{}', '-')",
        "regexp_replace(s, '{}', '<${{1}}>', 'g')",
        "regexp_count(s, '{}')",
        "regexp_instr(s, '{}')",
    ],
    "postgres": [
        "regexp_replace(s, '{}', '<\\&>')",
        "regexp_replace(s, '{}', '<\\1\\\\>', 'g')",
        "regexp_count(s, '{}')",
        "regexp_instr(s, '{}')",
        "regexp_substr(s, '{}')",
        "substring(s FROM '{}')",
    ],
}
REPLACING = [each for each in Flavour if each is not Flavour.TRINO]
LEAST_READ = {"duckdb": 0.15, "datafusion": 0.15, "postgres": 0.1}


def ours(text: str, engine: str) -> list[object]:
    semantics = Semantics.named(engine)
    operand = bind_operand(to_operand(text, engine, SCHEMA), SCHEMA, semantics)
    values, failed = compute(operand, ROWS.combine_chunks().to_batches()[0])
    assert not failed.any()
    found: list[object] = values.to_pylist()
    return found


@pytest.mark.parametrize("engine", SPELLINGS)
def test_patterns_find_the_same_text_as_the_engine(engine: str) -> None:
    ask, rng, read = ENGINES[engine](), random.Random(3), 0
    count = 120 * (DEEP_FACTOR if IS_DEEP else 1)
    for pattern in patterns(count, 11):
        spelling = rng.choice(SPELLINGS[engine])
        if engine == "postgres" and any(f"\\{letter}" in pattern for letter in "dwsDWS"):
            continue  # by the locale of the database
        text = spelling.format(pattern.replace("'", "''"))
        try:
            found = ours(text, engine)
        except InvalidPredicate:
            continue
        read += 1
        assert found == ask(text, ROWS), text
    assert read >= LEAST_READ[engine] * count


@pytest.mark.parametrize(
    ("engine", "text", "reason"),
    [
        ("duckdb", "regexp_replace(s, 'a*', 'x')", "empty text"),
        ("spark", "regexp_replace(s, 'a$', 'x')", "before a newline"),
        ("spark", "regexp_extract(s, '(a)+', 1)", "captured and repeated"),
        ("spark", "regexp_extract(s, '(?:a|b?)+c', 0)", "may be empty"),
        ("spark", "regexp_extract(s, 'a', 1)", "no meaning"),
        ("spark", "regexp_replace(s, 'a', '$1')", "a group that the pattern lacks"),
        ("spark", "regexp_replace(s, 'a', s)", "quoted constants"),
        ("postgres", "regexp_substr(s, 'a|ab')", "the longest match"),
        ("postgres", "regexp_substr(s, 'a+b+')", "several repetitions"),
        ("postgres", "regexp_substr(s, 'a+?b')", "as few as possible"),
        ("postgres", "regexp_substr(s, '(?:ab)?a')", "a repeated group"),
        ("datafusion", "regexp_replace(s, 'a', '$1x')", "the replacement"),
        ("trino", "regexp_replace(s, 'a', 'b') = ''", "not supported"),
    ],
)
def test_patterns_that_engines_match_differently_are_rejected(
    engine: str, text: str, reason: str
) -> None:
    from rowsieve.bridges.sql import parse_expression

    with pytest.raises(InvalidPredicate, match=reason):
        bind_operand(parse_expression(text, engine), SCHEMA, Semantics.named(engine))


@pytest.mark.parametrize("flavour", REPLACING)
@pytest.mark.parametrize("text", ["", "x", r"\0", r"<\1>", r"a\\b", r"\2\1", r"\\\1\\", r"\1 1"])
def test_a_replacement_is_written_and_read_back(text: str, flavour: Flavour) -> None:
    try:
        written = from_re2_replacement(text, flavour)
    except ValueError:
        assert flavour is Flavour.RUST
        assert r"\\" in text
        return
    assert to_re2_replacement(written, "(a)(b)", flavour) == text


def test_a_replacement_is_not_written_for_trino() -> None:
    condition = "regexp_replace(s, 'a', 'b') = 'x'"
    found = translate(condition, "duckdb", target="trino", schema=ROWS.schema)
    assert found.exactness is Exactness.UNSUPPORTED


@pytest.mark.parametrize("flavour", [Flavour.JAVA, Flavour.POSTGRES, Flavour.RUST])
def test_a_digit_after_a_group_is_not_part_of_its_number(flavour: Flavour) -> None:
    text = from_re2_replacement(r"\11", flavour) if flavour is not Flavour.JAVA else None
    if text is None:
        with pytest.raises(ValueError, match="replacement"):
            from_re2_replacement(r"\11", flavour)
    else:
        assert to_re2_replacement(text, "(a)", flavour) == r"\11"
