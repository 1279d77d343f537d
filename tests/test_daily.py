"""Properties are drawn again with the date as the seed, each in its turn."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import daily
from tests.daily import TURNS, has_turn, is_due

DAYS = [dt.date(2026, 11, 27) + dt.timedelta(days=n) for n in range(TURNS)]
NODE = "test_one.py::test_drawn"
PROPERTY = """
from hypothesis import given, settings, strategies as st
drawn = []
settings.register_profile("small", derandomize=True, max_examples=3, deadline=None)
settings.load_profile("small")
@given(n=st.integers(0, 2**62))
def test_drawn(n):
    drawn.append(n)
    with open("drawn.txt", "a") as file:
        file.write(f"{n}\\n")
    assert len(drawn) <= LIMIT
"""


def test_each_place_is_due_once_in_its_days(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daily, "IS_DEEP", False)
    due = []
    for day in DAYS[:3]:
        monkeypatch.setenv("ROWSIEVE_DAY", str(day))
        due += [place for place in range(7) if is_due(place, 3)]
    assert sorted(due) == [*range(7)]


def test_each_property_has_its_turn_once_in_the_days_of_a_round() -> None:
    for name in ("tests/test_one.py::test_a", "tests/test_one.py::test_b[1]"):
        assert sum(has_turn(name, day) for day in DAYS) == 1


def drawn_on(day: dt.date, folder: Path, limit: int = 99) -> tuple[str, list[str]]:
    """The report of a run of the property on a day, and the numbers that it drew."""
    drawn = folder / "drawn.txt"
    drawn.unlink(missing_ok=True)
    (folder / "test_one.py").write_text(PROPERTY.replace("LIMIT", str(limit)))
    (folder / "pytest.ini").write_text("[pytest]\n")
    environment = {
        **os.environ,
        "ROWSIEVE_DAY": str(day),
        "ROWSIEVE_TESTS": "small",
        "PYTHONPATH": str(Path(__file__).parent.parent),
    }
    options = ("-p", "tests.daily", "-p", "no:cacheprovider", "test_one.py")
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout, drawn.read_text().split()


def test_a_day_adds_its_own_examples_to_the_fixed_ones(tmp_path: Path) -> None:
    turn = next(day for day in DAYS if has_turn(NODE, day))
    report, first = drawn_on(turn, tmp_path)
    assert f"examples of the day: ROWSIEVE_DAY={turn}" in report
    assert "1 passed" in report
    _, other = drawn_on(turn + dt.timedelta(days=TURNS), tmp_path)
    assert len(first) == len(other) == 6
    assert first[:3] == other[:3]
    assert first[3:] != other[3:]
    report, again = drawn_on(turn, tmp_path, limit=3)
    assert "1 failed" in report
    assert f"with the examples of ROWSIEVE_DAY={turn}" in report
    assert again[3] == first[3]  # the fixed ones depend on the text of the test
