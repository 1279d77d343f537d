"""Constraints: what must be checked, and what must not be concluded."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

OBEYED = ("tests/changes/test_constraints.py",)
FACTS = ("tests/planner/test_by_constraints.py",)
CONSTRAINTS, DECIDE = "storage/constraints.py", "planner/by_constraints.py"
COLUMNS = "predicate/interpretation/constrained_columns.py"
EXPIRED = ("tests/changes/test_expiring_rows.py",)
NET = ("tests/change_feed/test_net_changes.py",)
SUITES = {CONSTRAINTS: OBEYED, DECIDE: FACTS, COLUMNS: FACTS}

MUTANTS = (
    Mutant(
        CONSTRAINTS,
        "parts of an earlier base count as checked",
        'older = np.asarray(parts.numbers("base_version")) < constraint.since',
        'older = np.asarray(parts.numbers("base_version")) < constraint.since - 1',
    ),
    Mutant(
        CONSTRAINTS,
        "bounds that may violate count as a proof",
        "if interpret(violation, RowBounds(rows))[0] == Verdict.NONE:",
        "if interpret(violation, RowBounds(rows))[0] != Verdict.ALL:",
    ),
    Mutant(
        CONSTRAINTS,
        "parts that may violate count as proved",
        "wanted = (refuted != Verdict.NONE) & (parts.data_rows() > 0)",
        "wanted = (refuted == Verdict.ALL) & (parts.data_rows() > 0)",
    ),
    Mutant(
        "changes/constraint_changes.py",
        "rows that a restore shows again are not proved",
        "if known and known <= now:",
        "if known:",
        OBEYED,
    ),
    Mutant(
        "changes/operations.py",
        "a restore is not checked",
        "if head.table.properties.get(CONSTRAINTS) != target.table.properties.get(CONSTRAINTS):",
        "if False:",
        OBEYED,
    ),
    Mutant(
        DECIDE,
        "a conjunct that some rows match is implied",
        "if _verdict(_alone(bound, term), rows) == Verdict.ALL]",
        "if _verdict(_alone(bound, term), rows) != Verdict.NONE]",
    ),
    Mutant(
        DECIDE,
        "a condition that some rows match is refuted",
        "if _verdict(bound, rows) == Verdict.NONE:",
        "if _verdict(bound, rows) != Verdict.ALL:",
    ),
    Mutant(
        COLUMNS,
        "no column has NULL",
        "may_be_null=np.array([column.field_id not in self.not_null]),",
        "may_be_null=np.array([False]),",
    ),
    Mutant(
        COLUMNS,
        "NaN is below every upper bound, and never there",
        "        if op.is_order and op.holds_if_greater:  # NaN obeys\n",
        "        own = _with(own, nan=False)\n"
        "        if op.is_order and op.holds_if_greater:  # NaN obeys\n",
    ),
    Mutant(
        "predicate/interpretation/facts.py",
        "a list with NULL allows only its members",
        "if not listed.values.array.null_count:",
        "if True:",
        FACTS,
    ),
    Mutant(
        "changes/expiring_rows.py",
        "expired parts leave that hide older rows (trap T2)",
        "if len(group) > 1:",
        "if len(group) > 99:",
        EXPIRED,
    ),
    Mutant(
        "changes/expiring_rows.py",
        "expired rows of an event order leave without a tombstone",
        "    if snapshot.table.sequence:\n",
        "    if False:\n",
        EXPIRED,
    ),
    Mutant(
        "changes/expiring_rows.py",
        "every part is read",
        "gone = np.flatnonzero(whole_parts(snapshot, question))",
        "gone = np.flatnonzero(whole_parts(snapshot, question) & False)",
        EXPIRED,
    ),
    Mutant(
        "change_feed/commit_parts.py",
        "net changes have rows that end as they began",
        "return _between(before, target, None, target)",
        'return _between(before, target, "upsert", target)',
        NET,
    ),
    Mutant(
        "change_feed/changed_rows.py",
        "versions before a constraint are planned by it",
        "                now_us=by.now_us,\n            ),",
        "                now_us=by.now_us,\n                constrained=True,\n            ),",
        FACTS,
    ),
)
