"""Values with holes, broken: what lies in a hole after all."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

ABSTRACT, CALLS, COMPARISONS = (
    f"predicate/interpretation/{name}.py"
    for name in ("abstract", "abstract_calls", "abstract_comparisons")
)
INTERPRET = "predicate/interpret.py"
FACTS, NARROW = "predicate/interpretation/facts.py", "predicate/interpretation/narrow.py"
COLUMNAR = "stats/columnar.py"
_TEXTS = ("tests/stats/test_text_facts.py",)
_TESTS = ("tests/predicate/test_alternatives.py",)
BOXES, ALIKE = "predicate/evaluation/boxes.py", "predicate/alike_terms.py"
SUITES = {
    **dict.fromkeys((ABSTRACT, CALLS, COMPARISONS, INTERPRET, FACTS, NARROW), _TESTS),
    COLUMNAR: ("tests/stats/test_columnar.py",),
    BOXES: ("tests/predicate/test_boxes.py",),
    ALIKE: ("tests/predicate/test_boxes.py",),
}

MUTANTS = (
    Mutant(
        ABSTRACT,
        "alternatives beyond the fourth are forgotten",
        "merged[same] = hull_of_two(merged[same], span)",
        "merged[same] = merged[same]",
    ),
    Mutant(
        ABSTRACT,
        "a function of alternatives forgets NULL",
        "one = replace(span, null=whole.null, fails=whole.fails)",
        "one = replace(span, fails=whole.fails)",
    ),
    Mutant(
        ABSTRACT,
        "a column with one NaN is one of NaN alone",
        "where = known.all_nan & value.nan & null_mask(value.lower)",
        "where = value.nan",
    ),
    Mutant(
        CALLS,
        "NULLIF never gives a value that the other may have, if only sometimes",
        "point = is_point(other) & other.present & ~other.null",
        "point = is_point(other) & other.present",
    ),
    Mutant(
        CALLS,
        "NULLIF gives nothing above its hole",
        "return with_alternatives(value, there)",
        "return with_alternatives(value, there[:1])",
    ),
    Mutant(
        COMPARISONS,
        "only the last alternative is compared",
        "true, false = true | may_hold, false | may_not",
        "true, false = may_hold, may_not",
    ),
    Mutant(
        INTERPRET,
        "one alternative within a list is enough",
        "matched, unmatched = matched | inside, unmatched | (span.present & ~certain)",
        "matched, unmatched = matched | inside, unmatched & (span.present & ~certain)",
    ),
    Mutant(
        COLUMNAR,
        "a column with a NaN is one of NaN alone",
        "all_nan &= nan_count + null_count == cells",
        "all_nan &= nan_count <= cells",
    ),
    Mutant(
        FACTS,
        "two conditions leave the wider of two ranges",
        "_outer(a[0], b[0], ir.ComparisonOp.GT)",
        "_outer(a[0], b[0], ir.ComparisonOp.LT)",
    ),
    Mutant(
        FACTS,
        "only the first branch of OR counts",
        "for said in spans for each in ranges_of(said[column])",
        "for said in spans[:1] for each in ranges_of(said[column])",
    ),
    Mutant(
        NARROW,
        "the neighbour of a value that is excluded is excluded, too",
        "scalar(ir.Literal(value - 1, column.type))",
        "scalar(ir.Literal(max(least, value - 2), column.type))",
    ),
    Mutant(
        "stats/text_facts.py",
        "the sample speaks for all texts",
        "self._facts.add(values)",
        "self._facts.add(values.slice(0, _FEW))",
        _TEXTS,
    ),
    Mutant(
        "stats/expressions.py",
        "the facts of whole numbers and of all numbers are taken for each other's",
        "bounds = value if bounds is None else meet(bounds, value)",
        "bounds = value",
        _TEXTS,
    ),
    Mutant(
        "stats/trim.py",
        "facts that nobody asked for take the place of others",
        "    for subject in sorted(filter(is_sampled, statistics), key=lambda one: -sizes[one]):",
        "    for subject in ():",
        _TEXTS,
    ),
    Mutant(
        BOXES,
        "a constant has the rank of the values below it",
        "ranks += self.limits[np.minimum(places, len(self.limits) - 1)] == numbers",
        "ranks += 0",
    ),
    Mutant(
        BOXES,
        "the wider of two ranges of a column counts",
        "np.minimum.reduce([stops",
        "np.maximum.reduce([stops",
    ),
    Mutant(
        BOXES,
        "NaN under IEEE 754 is above every number",
        "self.end if self.nan is NanOrder.IEEE else self.end - 1",
        "self.end - 1",
    ),
    Mutant(
        ALIKE,
        "lists of floats are several terms of =",
        "if isinstance(type_, Int | Date | Timestamp):",
        "if not isinstance(type_, String | Binary):",
    ),
    Mutant(
        ALIKE,
        "a list with NULL is one without",
        " and not values.array.null_count\n",
        "\n",
    ),
)
