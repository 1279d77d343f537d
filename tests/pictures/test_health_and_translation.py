"""Health and translations: states are words beside colours, hostile text stays text."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from rowsieve.errors import InvalidInput, StoreError
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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_leaves_the_page_that_is_there(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture, path = Health("t", 3, (Fact("reads", "1.0", "good", ""),)), tmp_path / "a.html"
    picture.save(path)
    path.chmod(0o640)
    before, write = path.read_bytes(), Path.write_text

    def full(file: Path, text: str, *options: str) -> None:
        write(file, text[: len(text) // 2], *options)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(StoreError, match=r"a\.html': .*; free space .*, then repeat the call"):
            Health("other", 4, ()).save(path)
    assert (path.read_bytes(), os.listdir(tmp_path)) == (before, ["a.html"])  # noqa: PTH208 - names
    Health("other", 4, ()).save(path)
    assert path.read_bytes() != before
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_page_is_written_through_a_link_and_to_a_device(tmp_path: Path) -> None:
    picture, link = Health("t", 3, (Fact("reads", "1.0", "good", ""),)), tmp_path / "link.html"
    (tmp_path / "a.html").write_text("old")
    link.symlink_to(tmp_path / "a.html")
    picture.save(link)
    assert link.is_symlink()
    assert "Nothing to do." in (tmp_path / "a.html").read_text()
    picture.save(os.devnull)
    assert not Path(os.devnull).is_file()
