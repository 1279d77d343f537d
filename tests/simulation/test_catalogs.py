"""Concurrent calls on the names of a catalog or database have a serial order, and lose no table.

`ROWSIEVE_CATALOG=17` runs seed 17 alone and prints its trace.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from tests.daily import today
from tests.profiles import IS_DEEP
from tests.simulation.catalogs import run_catalog
from tests.simulation.name_history import NameCall, is_serial

KINDS = ("catalog", "database")
SEEDS = 5_000 if IS_DEEP else 60
TOGETHER = 20
ONE = os.environ.get("ROWSIEVE_CATALOG")
START = {"db.a": "a", "db.b": "b"}


def call(what: str, name: str, begun: int, ended: int, told: str = "done", **more: Any) -> NameCall:
    return NameCall(f"{what} {begun}", what, name, begun, ended=ended, told=told, **more)


@pytest.mark.parametrize(
    ("calls", "end", "is_possible"),
    [
        pytest.param([call("drop", "db.a", 0, 1)], {"db.b": "b"}, True, id="dropped"),
        pytest.param([call("drop", "db.a", 0, 1)], START, False, id="a drop is lost"),
        pytest.param(
            [call("drop", "db.a", 0, 5), call("drop", "db.a", 1, 6)],
            {"db.b": "b"}, False, id="dropped twice",
        ),
        pytest.param(
            [call("drop", "db.a", 0, 5), call("drop", "db.a", 1, 6, "absent")],
            {"db.b": "b"}, True, id="one drop wins",
        ),
        pytest.param(
            [call("drop", "db.a", 0, 1), call("open", "db.a", 2, 3, table="a")],
            {"db.b": "b"}, False, id="opened after the drop",
        ),
        pytest.param(
            [call("drop", "db.a", 0, 5), call("open", "db.a", 2, 3, table="a")],
            {"db.b": "b"}, True, id="opened during the drop",
        ),
        pytest.param(
            [call("rename", "db.a", 0, 5, new_name="db.b")], {"db.b": "a"}, False,
            id="renamed onto a table",
        ),
        pytest.param(
            [
                call("rename", "db.a", 0, 5, new_name="db.c"),
                call("rename", "db.a", 1, 6, new_name="db.d"),
            ],
            {"db.b": "b", "db.c": "a", "db.d": "a"}, False, id="two new names",
        ),
        pytest.param(
            [call("create", "db.c", 0, 5, table="c"), call("create", "db.c", 1, 6, table="d")],
            {**START, "db.c": "d"}, False, id="created twice",
        ),
        pytest.param(
            [call("drop_namespace", "db", 0, 5)], {"db.b": "b"}, False, id="half a namespace"
        ),
        pytest.param(
            [NameCall("drop", "drop", "db.a", 0), call("open", "db.a", 8, 9, table="a")],
            {"db.b": "b"}, True, id="a drop without an answer comes late",
        ),
    ],
)  # fmt: skip
def test_the_search_finds_what_has_no_serial_order(
    calls: list[NameCall], end: dict[str, str], is_possible: bool
) -> None:
    assert is_serial(START, calls, end) == is_possible


def test_a_run_is_the_same_each_time() -> None:
    run = run_catalog(3)
    assert run == run_catalog(3)
    assert len(run.trace) > 20


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_names_have_a_serial_order_and_tables_their_rows(first: int, kind: str) -> None:
    check(first, kind)


@pytest.mark.skipif(IS_DEEP, reason="make test runs the seeds of the day")
def test_names_have_a_serial_order_on_this_day() -> None:
    for kind in KINDS:
        check(today().toordinal() * TOGETHER, kind)


def check(first: int, kind: str) -> None:
    """Run seeds, or the one of the environment, and fail with how to repeat what is wrong."""
    for seed in [int(ONE)] if ONE else range(first, first + TOGETHER):
        run = run_catalog(seed, kind)
        if ONE:
            sys.stdout.write("\n".join(run.trace) + "\n")
        assert not run.problems, (f"ROWSIEVE_CATALOG={seed}", run.shape, run.problems)
