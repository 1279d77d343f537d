"""`make test-fast` has the core's cheap files, and those of changed rooms first."""

from __future__ import annotations

from tests import fast
from tests.spread import known_seconds


def test_files_of_a_changed_room_come_first() -> None:
    first, later = fast.fast_files(["rowsieve/planner/overlap.py", "README.md"])
    assert first[0] == fast.HOUSE
    assert "tests/planner/test_overlap.py" in first
    assert all(file.startswith("tests/planner/") for file in first[1:])
    assert not any(file.startswith("tests/planner/") for file in later)
    assert any(file.startswith("tests/types/") for file in later)


def test_a_changed_room_has_its_expensive_files() -> None:
    expensive = {
        file for file, seconds in known_seconds().items() if seconds > fast.MOST_EXPENSIVE_S
    }
    unchanged, rest = fast.fast_files([])
    assert unchanged == [fast.HOUSE]
    assert expensive.isdisjoint(rest)
    first, _ = fast.fast_files(["tests/predicate/test_random_expressions.py"])
    assert expensive.intersection(first)


def test_stories_of_tables_run_when_their_room_changes() -> None:
    assert not any(file.startswith("tests/tables/") for file in fast.fast_files([])[1])
    first, _ = fast.fast_files(["tests/tables/test_restart_story.py"])
    assert "tests/tables/test_restart_story.py" in first


def test_no_file_names_an_engine() -> None:
    chosen = fast.fast_files([])[1]
    text = {file: (fast.ROOT / file).read_text("utf-8") for file in chosen}
    assert [file for file, code in text.items() if "import duckdb" in code] == []
    assert [file for file, code in text.items() if "mark.spark" in code] == []


def test_rooms_of_paths() -> None:
    rooms = map(fast.room_of, ("rowsieve/scan.py", "tests/scan/test_x.py", "docs/a.md"))
    assert list(rooms) == ["scan", "scan", None]
    assert fast.room_of("tests/test_scan.py") == "scan"


def test_every_room_has_tests() -> None:
    rooms = (*fast.ROOMS, *fast.WHEN_CHANGED)
    lacking = [room for room in rooms if not any((fast.ROOT / "tests" / room).rglob("test_*"))]
    assert lacking == []
