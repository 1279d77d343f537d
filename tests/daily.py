"""Fresh examples of each day: `make test` runs a part of the properties a second time.

The small profile draws the same examples each time. After a property has passed with these, it is
run with others if today is its turn: each is drawn again once in `TURNS` days, with the date as the
seed. The report's header names the date; `ROWSIEVE_DAY=2026-11-28` draws the examples of that day.
The deep profile draws new ones each time and needs none of this.
"""

from __future__ import annotations

import datetime as dt
import os
import zlib
from collections.abc import Generator

import pytest
from hypothesis import is_hypothesis_test, seed

from tests.profiles import IS_DEEP

TURNS = 10


def today() -> dt.date:
    """The day whose examples are drawn: that of the environment, or of the clock."""
    named = os.environ.get("ROWSIEVE_DAY")
    return dt.datetime.now(dt.UTC).date() if named is None else dt.date.fromisoformat(named)


def has_turn(name: str, day: dt.date) -> bool:
    """Whether a property is drawn again on this day; its turn comes each `TURNS` days."""
    return (zlib.crc32(name.encode()) + day.toordinal()) % TURNS == 0


def is_due(place: int, days: int) -> bool:
    """Whether a test that `make test` runs once in so many days has its turn; always in deep runs.

    A test asks when it runs: what is collected must not depend on the clock.
    """
    return IS_DEEP or (place + today().toordinal()) % days == 0


def pytest_report_header() -> str | None:
    """Name the day that replays what its examples find."""
    return None if IS_DEEP else f"examples of the day: ROWSIEVE_DAY={today()}"


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Run a property again with the examples of the day, after the fixed ones have passed."""
    found = yield
    if not IS_DEEP and is_hypothesis_test(pyfuncitem.obj) and has_turn(pyfuncitem.nodeid, today()):
        run_again(pyfuncitem, today())
    return found


def run_again(item: pytest.Function, day: dt.date) -> None:
    """Run a property with a day's examples; a failure names the day.

    A seed goes before the fixed examples that the profile draws.
    """
    test = getattr(item.obj, "__func__", item.obj)
    arguments = {name: item.funcargs[name] for name in item._fixtureinfo.argnames}
    seed(day.toordinal())(test)
    try:
        item.obj(**arguments)
    except Exception as error:
        error.add_note(f"with the examples of ROWSIEVE_DAY={day}")
        raise
    finally:
        seed(None)(test)
