"""The pictures of the explanations are those that the script draws, and their files exist."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.test_house import FLOORS
from tools import pictures

ROOT = Path(__file__).parents[1]
ARCHITECTURE = pictures.PAGES / "architecture.md"
SESSION = pictures.PAGES / "datafusion-session.md"
HOW_TO = pictures.HOW_TO / "pictures.md"
README = ROOT / "README.md"
PAGES = (ARCHITECTURE, ARCHITECTURE, SESSION, HOW_TO, HOW_TO, README, README)
PICTURES = [
    pytest.param(*drawn, page, id=drawn[0].stem)
    for drawn, page in zip(pictures.pictures(), PAGES, strict=True)
]


@pytest.mark.parametrize(("path", "picture", "page"), PICTURES)
def test_a_picture_is_drawn_by_the_script(path: Path, picture: str, page: Path) -> None:
    assert path.read_text("utf-8") == picture, "run `python -m tools.pictures`"
    assert path.name in page.read_text("utf-8")


def test_every_room_has_a_box() -> None:
    labels = {text.text for text in ElementTree.fromstring(pictures.rooms()).iter() if text.text}
    rooms = {room.replace("_", " ") for floor in FLOORS for room in floor} - {"  main  "}
    assert rooms <= labels


def test_every_folder_is_in_the_table_of_rooms() -> None:
    cells = re.findall(r"^\| (`[^|]*) \|", ARCHITECTURE.read_text("utf-8"), re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}
    folders = {path.parent.name for path in (ROOT / "rowsieve").glob("*/__init__.py")}
    assert folders - named == set()


@pytest.mark.parametrize(
    ("page", "least", "home"),
    [(ARCHITECTURE, 30, ROOT / "rowsieve"), (SESSION, 8, ROOT / "rowsieve/providers/datafusion")],
    ids=["architecture", "session"],
)
def test_the_files_of_the_page_exist(page: Path, least: int, home: Path) -> None:
    named = re.findall(r"`((?:\w+/)+\w+\.py|\w+\.py)`", page.read_text("utf-8"))
    assert len(named) > least
    homes = (home, ROOT)
    lost = [name for name in named if not any((home / name).exists() for home in homes)]
    assert lost == []
