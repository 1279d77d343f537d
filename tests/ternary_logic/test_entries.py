"""Each entry that takes text of a dialect keeps the rows that a scan keeps, or refuses it too."""

from __future__ import annotations

from typing import Any

import pytest

from rowsieve.bridges.where import to_predicate
from rowsieve.predicate import ir
from tests.daily import today
from tests.profiles import IS_DEEP
from tests.ternary_logic.asked_entries import check_entries
from tests.ternary_logic.entries import ENTRIES, STATEMENTS
from tests.ternary_logic.pairs import Report

SHARES, TABLES, CONDITIONS = (10, 200, 12) if IS_DEEP else (1, 2, 3)
EVERY = 1 if IS_DEEP else 3  # entries, of which each condition takes one


@pytest.mark.parametrize("share", range(SHARES))
def test_every_entry_keeps_the_rows_of_a_scan(share: int) -> None:
    fresh = 10_000 * today().toordinal()
    seeds = range(fresh + share, fresh + TABLES, SHARES) if IS_DEEP else (1, fresh)
    report = Report()
    for seed in seeds:
        check_entries(seed, range(CONDITIONS), report, every=EVERY)
    assert not report.findings
    assert report.compared.keys() == {*ENTRIES, *STATEMENTS}


def test_an_entry_that_reads_a_condition_otherwise_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def negated(*arguments: Any) -> ir.Predicate:
        return ir.Not(to_predicate(*arguments))

    monkeypatch.setattr("rowsieve.table_methods.row_methods.to_predicate", negated)
    report = Report()
    check_entries(1, range(2), report)
    found = {finding.name.rpartition("/")[2] for finding in report.findings}
    assert found >= {"delete", "update", "delete in a transaction", "rowsieve delete"}
    assert found.isdisjoint({"whole scan", "column", "SELECT"})
