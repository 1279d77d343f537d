"""The folds of changes that give some columns, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

RESOLVING, VALUES, SUMS, UNIONS, MERGES, EVENTS, GIVEN = (
    f"changes/partial/{name}.py"
    for name in (
        "resolving",
        "meeting_values",
        "exact_sums",
        "list_unions",
        "json_merges",
        "events",
        "given_values",
    )
)
CURRENT = "changes/current_rows.py"
_ROWS = (
    "tests/changes/partial/test_partial_rows.py",
    "tests/changes/partial/test_bad_changes.py",
    "tests/changes/partial/test_concurrent_partial_rows.py",
)
_LAWS = ("tests/changes/partial/test_meeting_values.py",)
SUITES = {
    RESOLVING: _ROWS,
    EVENTS: _ROWS,
    GIVEN: _ROWS,
    VALUES: _LAWS,
    SUMS: _LAWS,
    UNIONS: _LAWS,
    MERGES: _LAWS,
    CURRENT: ("tests/changes/test_current_rows.py",),
}

MUTANTS = (
    Mutant(
        RESOLVING,
        "a delete does not end what came before it",
        " & (np.arange(len(events)) > ends[events.owners])",
        "",
    ),
    Mutant(
        RESOLVING,
        "a row after a delete keeps values of the deleted one",
        "continues = (ends < 0)[is_written]",
        "continues = (ends < len(events))[is_written]",
    ),
    Mutant(
        RESOLVING,
        "the first value of a new row is combined with the default",
        "initial[(rows.places < 0) & ~first_gives] = 0",
        "initial[rows.places < 0] = 0",
    ),
    Mutant(
        RESOLVING,
        "the row that the table has is not read for a rule",
        'if rules.get(field.name, "last") != "last":',
        "if False:",
    ),
    Mutant(
        RESOLVING,
        "values that are not given count",
        "giving, first_gives = np.flatnonzero(gives[rows.live]), gives[rows.firsts]",
        "giving, first_gives = np.arange(len(rows.live)), gives[rows.firsts]",
    ),
    Mutant(
        EVENTS,
        "changes apply in the order of the data",
        "    if sequence:\n        ordered",
        "    if False:\n        ordered",
    ),
    Mutant(
        EVENTS,
        "NULL may be given to a column that is NOT NULL",
        "        if not field.nullable:\n            _refuse_nulls(",
        "        if False:\n            _refuse_nulls(",
    ),
    Mutant(
        GIVEN,
        "a name that differs in case is another one",
        "if names.column(each) == column]",
        "if each == name]",
    ),
    Mutant(
        VALUES,
        "NULL is a value for every rule",
        "present = np.asarray(is_valid.to_numpy(zero_copy_only=False), dtype=bool)",
        "present = np.ones(len(self.members), dtype=bool)",
    ),
    Mutant(
        VALUES,
        "the first of several values is the last",
        "candidates.chosen(candidates.members[::-1], candidates.owners[::-1])",
        "candidates.chosen(candidates.members, candidates.owners)",
    ),
    Mutant(
        VALUES,
        "0.0 is before -0.0",
        "(~negative).astype(np.int8)",
        "negative.astype(np.int8)",
    ),
    Mutant(
        SUMS,
        "the highest limb has no sign",
        "limb.view(np.int32) if place == _LIMBS - 1 else limb",
        "limb",
    ),
    Mutant(
        SUMS,
        "limbs are not carried",
        "carried[:, place + 1] += carried[:, place] >> _LIMB_BITS",
        "carried[:, place + 1] += 0",
    ),
    Mutant(
        SUMS,
        "a sum of 39 digits counts as one of 38",
        "exact.validate(full=True)",
        "exact.validate(full=False)",
    ),
    Mutant(
        UNIONS,
        "equal items are all kept",
        "is_chosen[np.unique(pairs, axis=0, return_index=True)[1]] = True",
        "is_chosen[:] = True",
    ),
    Mutant(
        UNIONS,
        "items are not compared as keys",
        "sort_form(items, type_).dictionary_encode",
        "items.dictionary_encode",
    ),
    Mutant(MERGES, "null is a value", 'if _text(value) == b"null":', "if False:"),
    Mutant(
        MERGES,
        "the value before is merged as a patch",
        "target = patches.pop(0) if starts[owner] else None",
        "target = None",
    ),
    Mutant(
        CURRENT,
        "rows of the second slice are looked for in the first",
        "np.where(at < 0, -1, at + count)",
        "np.where(at < 0, -1, at)",
    ),
    Mutant(
        CURRENT,
        "a range of floats begins at 0.0",
        'lower, upper = ends["min"] or -0.0, ends["max"] or 0.0',
        'lower, upper = ends["min"], ends["max"] or -0.5',
    ),
)
