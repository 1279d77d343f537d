"""Health and translations: states are words beside colours, hostile text stays text."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowsieve.errors import InvalidInput
from rowsieve.pictures.health import Fact, Health, Remedy, Share
from rowsieve.pictures.translated import TranslatedCondition, TranslatedTable
from tests.pictures.parsed import HOSTILE, page_of, texts, with_class


def test_health_says_what_to_do() -> None:
    remedy = Remedy("compact", "small parts", "t.compact()", "rowsieve compact t")
    fact = Fact("reads", "9.0", "bad", "parts for a row")
    shares = (Share("read", "live", 2, 300, ""), Share("key", "log", 1, 100, ""))
    root = page_of(Health("t", 3, (fact,), shares, (remedy,)))
    assert texts(root, "code") == ["t.compact()", "rowsieve compact t"]
    assert texts(root, "b") == ["needs care"]
    (drawing,) = [each for each in root.iter("svg") if each.get("role") == "img"]
    assert [each.attrib["width"] for each in drawing.iter("rect")] == ["75%", "25%"]


def test_a_healthy_table_needs_nothing() -> None:
    root = page_of(Health("t", 3, (Fact("reads", "1.0", "good", ""),)))
    assert texts(root, "b") == ["good", "Nothing to do."]


def test_each_exactness_has_words_and_a_class() -> None:
    conditions = tuple(
        TranslatedCondition("a", "b", kind, kind) for kind in ("exact", "superset", "unsupported")
    )
    picture = TranslatedTable("spark", "iceberg", "superset", conditions, "x", "y", ("note",))
    root = page_of(picture)
    assert texts(root, "b") == ["exact", "weaker: keeps more rows", "refused"]
    assert [len(with_class(root, kind)) for kind in ("good", "weak", "bad")] == [1, 1, 1]
    assert {"x", "y"} <= set(texts(root, "code"))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_stays_text(name: str) -> None:
    shares = (Share("read", name, 2, 300, name),)
    facts = (Fact(name, name, "", name),)
    page_of(Health(name, 3, facts, shares, (Remedy(name, name, name, name),), (name,)))
    condition = TranslatedCondition(name, name, "exact", name)
    page_of(TranslatedTable(name, name, "exact", (condition,), name, name, (name,)))


def test_a_page_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    picture = Health("t", 3, (Fact("reads", "1.0", "good", ""),))
    for path in (tmp_path / "absent" / "a.html", tmp_path, "a\0b"):
        with pytest.raises(InvalidInput, match="the page cannot be written to"):
            picture.save(path)
    picture.save(tmp_path / "a.html")
    assert "Nothing to do." in (tmp_path / "a.html").read_text()
