"""Hidden columns of JSON paths, broken: kinds, bounds and doubts forgotten."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

COLUMNS, GROUPS = "parquet/shredded_columns.py", "parquet/statistics/row_groups.py"
SHREDDING, DOCUMENTS = "stats/json_shredding.py", "stats/json_documents.py"
_FACTS = ("tests/parquet/test_shredded_columns.py",)
_VALUES = ("tests/stats/test_json_shredding.py",)
_PRUNING = ("tests/planner/test_prune_json_paths.py",)
SUITES = {COLUMNS: _FACTS, SHREDDING: _VALUES, DOCUMENTS: _VALUES, GROUPS: _PRUNING}

MUTANTS = (
    Mutant(
        COLUMNS,
        "a kind between the bounds does not occur",
        "(2 * upper - 1) & ~(lower - 1)",
        "upper | lower",
    ),
    Mutant(
        COLUMNS,
        "a bound is the double that a long integer was rounded to",
        "np.nextafter(filled(bounds), outward)",
        "filled(bounds)",
    ),
    Mutant(
        COLUMNS,
        "a prefix is the longest string that begins with it",
        "upper = _after_prefixes(upper)",
        "pass",
    ),
    Mutant(
        COLUMNS,
        "a row may be without a value of any kind",
        "known &= (count >= rows) & (",
        "known &= (count >= 0) & (",
    ),
    Mutant(COLUMNS, "unknown counts are none", "known &= there >= 0", "pass"),
    Mutant(
        COLUMNS,
        "bounds hold where nothing is known of the kinds",
        "lower, upper = without(known.lower, ~sound), without(known.upper, ~sound)",
        "lower, upper = known.lower, known.upper",
    ),
    Mutant(
        COLUMNS,
        "a column has values although its documents are unknown",
        "(kinds & int(JsonKind.OTHER) == 0)",
        "(kinds >= 0)",
    ),
    Mutant(
        GROUPS,
        "a path prunes before the merge (trap T1)",
        "if self._known is not None and path.field_id not in self._known:",
        "if False:",
    ),
    Mutant(
        SHREDDING, "nothing is doubtful", "    kinds[unknown] = _OTHER\n", "", _VALUES + _PRUNING
    ),
    Mutant(
        SHREDDING,
        "exponents are not marked",
        "kinds[exponents() & as_mask(floats.is_valid())] = int(JsonKind.EXPONENT)",
        "pass",
    ),
    Mutant(
        SHREDDING,
        "true is false",
        "kinds[np.array(truth, dtype=np.bool_)] = int(JsonKind.TRUE)",
        "pass",
    ),
    Mutant(
        DOCUMENTS,
        "the last of two equal keys is the value (invariant 29)",
        "unknown[row] = _repeats(texts[row].as_py(), keys)",
        "pass",
    ),
    Mutant(
        DOCUMENTS,
        "a malformed document has no values",
        "                unknown[row] = True\n",
        "                pass\n",
    ),
    Mutant(
        DOCUMENTS,
        "values are moved to other rows",
        "[take(value) if type(value) is node.type else MISSING for value in values]",
        "[take(value) for value in values if type(value) is node.type]",
    ),
)
