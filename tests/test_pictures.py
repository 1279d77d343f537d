"""The pictures of the architecture page are those that the script draws, and its files exist."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.test_house import FLOORS
from tools import pictures

ROOT = Path(__file__).parents[1]
PAGE = pictures.PAGES / "architecture.md"


@pytest.mark.parametrize(("path", "picture"), [*pictures.pictures()], ids=["rooms", "way"])
def test_a_picture_is_drawn_by_the_script(path: Path, picture: str) -> None:
    assert path.read_text("utf-8") == picture, "run `python -m tools.pictures`"
    assert path.name in PAGE.read_text("utf-8")


def test_every_room_has_a_box() -> None:
    labels = {text.text for text in ElementTree.fromstring(pictures.rooms()).iter() if text.text}
    rooms = {room.replace("_", " ") for floor in FLOORS for room in floor} - {"  main  "}
    assert rooms <= labels


def test_the_files_of_the_page_exist() -> None:
    named = re.findall(r"`((?:\w+/)+\w+\.py|\w+\.py)`", PAGE.read_text("utf-8"))
    assert len(named) > 30
    homes = (ROOT / "rowsieve", ROOT)
    lost = [name for name in named if not any((home / name).exists() for home in homes)]
    assert lost == []
