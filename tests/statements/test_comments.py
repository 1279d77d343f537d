"""Comments end where DataFusion ends them, and literals and names have none."""

from __future__ import annotations

import pytest

from rowsieve.statements.comments import after_comments, blanked


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a -- b\nc", "a  \nc"),
        ("a /* b */ c", "a   c"),
        ("a /* b /* c */ d */ e", "a   e"),
        ("a /* b /* c */ d", "a  "),
        ("'/*' a '*/'", "'/*' a '*/'"),
        ("'--' a\n'it''s /*' b", "'--' a\n'it''s /*' b"),
        ('"/*" a "*/"', '"/*" a "*/"'),
        (r"e'\'/*' a '*/'", r"e'\'/*' a '*/'"),
        ("$$/*$$ a $x$*/$x$", "$$/*$$ a $x$*/$x$"),
        ("'a -- b", "'a -- b"),
        ("/**/", " "),
        ("a / * b", "a / * b"),
    ],
)
def test_comments_become_spaces(text: str, plain: str) -> None:
    assert blanked(text).split() == plain.split()
    assert len(blanked(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "place"),
    [("a", 0), (" a", 1), ("-- b\n a", 6), ("/* /* */ */a", 11), ("/* /* */ a", 10), ("--a", 3)],
)
def test_the_text_begins_after_comments(text: str, place: int) -> None:
    assert after_comments(text, 0) == place


@pytest.mark.parametrize("text", ["/*" * 50_000, "/**/" * 50_000, "'" * 99_999, "$a$" * 20_001])
def test_long_texts_do_not_take_for_ever(text: str) -> None:
    assert len(blanked(text)) == len(text)
    assert after_comments(text, 0) <= len(text)
