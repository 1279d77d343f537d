"""Each case of a test has its turn, and tests with few cases run each day."""

from __future__ import annotations

from tests.turns import DAYS, MANY, due_on

CASES = [f"tests/a/test_b.py::test_many[{number}]" for number in range(300)]
FEW = [f"tests/a/test_b.py::test_few[{number}]" for number in range(MANY - 1)]
TRAPS = [f"tests/traps/test_t.py::test_t[{number}]" for number in range(50)]
ALL = [*CASES, *FEW, "tests/a/test_b.py::test_one", *TRAPS]


def test_each_case_has_one_turn_in_as_many_days() -> None:
    days = [due_on(day, ALL) for day in range(739_000, 739_000 + DAYS)]
    assert frozenset().union(*days) == frozenset(ALL)
    turns = [sum(case in due for due in days) for case in CASES]
    assert set(turns) == {1}
    assert all(len(due & set(CASES)) > len(CASES) / DAYS / 2 for due in days)


def test_tests_with_few_cases_traps_and_invariants_run_each_day() -> None:
    for day in range(DAYS):
        assert due_on(day, ALL) >= {*FEW, "tests/a/test_b.py::test_one", *TRAPS}


def test_a_new_case_moves_no_other_one() -> None:
    more = [*ALL, "tests/a/test_b.py::test_many[new]"]
    assert due_on(7, more) - {more[-1]} == due_on(7, ALL)
