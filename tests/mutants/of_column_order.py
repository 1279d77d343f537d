"""The comparisons of an order of each column, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

RESOLVING, ENTRIES, RANKS, UPDATED = (
    f"changes/column_order/{name}.py"
    for name in ("resolving_columns", "column_entries", "ranked_sequences", "updated_orders")
)
_TESTS = ("tests/changes/column_order/test_column_order.py",)
SUITES = {RESOLVING: _TESTS, ENTRIES: _TESTS, RANKS: _TESTS, UPDATED: _TESTS}

MUTANTS = (
    Mutant(
        RESOLVING,
        "a value is replaced by an older one",
        "wins = (last >= 0) & (winner_ranks >= before)",
        "wins = last >= 0",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "a late delete clears nothing",
        "sets, before = events.deletes | gives, stored.column(field_id)",
        "sets, before = gives, stored.column(field_id)",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "a late delete deletes the row",
        "comes_last = stored.events[newest] >= stored.versions",
        "comes_last = stored.events[newest] >= -1",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "of equal sequences of a value the earlier commit counts",
        "wins = (last >= 0) & (winner_ranks >= before)",
        "wins = (last >= 0) & (winner_ranks > before)",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "of a row and a delete with one sequence the earlier commit counts",
        "comes_last = stored.events[newest] >= stored.versions",
        "comes_last = stored.events[newest] > stored.versions",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "an event with the sequence of a stored value counts as late",
        "takes_effect |= sets & (stored.events >= before[events.owners])",
        "takes_effect |= sets & (stored.events > before[events.owners])",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "the sequence of a row is that of its last batch",
        "ranks = np.maximum(stored.versions, stored.events[newest])",
        "ranks = stored.events[newest]",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "whole rows set no column that comes later",
        "np.logical_and.reduce([~none, *masks.values()])",
        "none",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "a deleted row has no sequence",
        "ranks[deleted] = of_versions[places[deleted]]",
        "pass",
        _TESTS,
    ),
    Mutant(
        RESOLVING,
        "an event counts as late if one of its values is",
        "takes_effect |= sets &",
        "takes_effect &= ~sets |",
        _TESTS,
    ),
    Mutant(
        ENTRIES,
        "values of a partial row have its sequence",
        "for chosen in (later, mask):",
        "for chosen in (later,):",
        _TESTS,
    ),
    Mutant(
        ENTRIES,
        "a column that comes later has the sequence of the row",
        "for chosen in (later, mask):",
        "for chosen in (mask,):",
        _TESTS,
    ),
    Mutant(
        ENTRIES,
        "values with the sequence of the row have entries alone",
        "is_older = matrix < rows[:, None]",
        "is_older = matrix == rows[:, None]",
        _TESTS,
    ),
    Mutant(
        RANKS,
        "equal sequences of two sources have two ranks",
        "is_new = ~columns.repeats(in_order)",
        "is_new = np.ones(len(in_order), dtype=bool)",
        _TESTS,
    ),
    Mutant(
        UPDATED,
        "an assigned value that was unset stays unset",
        "np.where(column_ranks == NEVER, of_rows, column_ranks)",
        "column_ranks",
        _TESTS,
    ),
    Mutant(
        UPDATED,
        "an assigned value gets the sequence of its row",
        "np.where(column_ranks == NEVER, of_rows, column_ranks)",
        "of_rows",
        _TESTS,
    ),
)
