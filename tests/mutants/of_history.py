"""The fold of events into versions of rows, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

VERSIONS, CALLS, COLUMNS = (
    f"changes/history/{name}.py" for name in ("version_folding", "history_calls", "history_columns")
)
_TESTS = ("tests/changes/history/test_history.py",)
SUITES = {VERSIONS: _TESTS, CALLS: _TESTS, COLUMNS: _TESTS}

MUTANTS = (
    Mutant(
        VERSIONS,
        "a stored version counts more than a new event of its time",
        "_DERIVED, _STORED, _NEW = range(3)",
        "_DERIVED, _NEW, _STORED = range(3)",
    ),
    Mutant(
        VERSIONS,
        "the end of a version is a delete where another begins",
        "_DERIVED, _STORED, _NEW = range(3)",
        "_STORED, _DERIVED, _NEW = range(3)",
    ),
    Mutant(
        VERSIONS,
        "versions end with the next event of any key",
        "continues[1:] = timeline.owners[1:] == timeline.owners[:-1]",
        "continues[1:] = True",
    ),
    Mutant(
        VERSIONS,
        "a delete that ends no version is forgotten",
        "is_row = ~timeline.deletes | ~closes",
        "is_row = ~timeline.deletes",
    ),
    Mutant(
        VERSIONS,
        "a version whose end moved is not written",
        "    same[is_twin] &= until[is_twin] == written.ends[timeline.twins[is_twin]]\n",
        "",
    ),
    Mutant(
        VERSIONS,
        "a corrected version is not written",
        "    same &= _same_values(timeline, written.pool, schema, key, columns)\n",
        "",
    ),
    Mutant(
        VERSIONS,
        "a version that a delete takes away stays",
        "gone = timeline.twins[is_twin & ~is_row]",
        "gone = timeline.twins[is_twin & ~is_row & is_row]",
    ),
    Mutant(
        CALLS,
        "versions that end at the first event are not read",
        "Comparison(ComparisonOp.GE, end,",
        "Comparison(ComparisonOp.GT, end,",
    ),
    Mutant(
        CALLS,
        "the current version is not read",
        "Or((IsNull(end), ends_later))",
        "ends_later",
    ),
    Mutant(
        CALLS,
        "a concurrent event of a key is no conflict",
        "touched_by=touches",
        "touched_by=lambda _: False",
    ),
    Mutant(
        COLUMNS,
        "a version does not hold at its beginning",
        "Comparison(ComparisonOp.LE, Column(start.name), at)",
        "Comparison(ComparisonOp.LT, Column(start.name), at)",
    ),
    Mutant(
        COLUMNS,
        "a version holds at its end",
        "Comparison(ComparisonOp.GT, Column(end.name), at)",
        "Comparison(ComparisonOp.GE, Column(end.name), at)",
    ),
)
