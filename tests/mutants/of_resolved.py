"""Plans that hold the rows to read, broken: rows of other splits and questions, hidden rows."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

CANDIDATES, ROWS, RESOLVED, CACHE, PLAN, STATISTICS = (
    f"planner/{name}.py"
    for name in ("candidates", "part_rows", "resolved", "cache", "plan", "statistics")
)
LIVE = "executor/live_rows.py"
_TESTS = ("tests/planner/test_resolved.py",)
SUITES = dict.fromkeys((CANDIDATES, ROWS, RESOLVED, CACHE, PLAN, STATISTICS), _TESTS)

MUTANTS = (
    Mutant(
        LIVE,
        "a split reads the rows of its whole part",
        "return within(self._resolved[source.part.part_id], start, stop)",
        "return self._resolved[source.part.part_id]",
        _TESTS,
    ),
    Mutant(
        LIVE,
        "hidden rows are put into the plan",
        "rows = asked if live is None else live",
        "rows = candidates.rows.intersect(asked)",
        _TESTS,
    ),
    Mutant(
        ROWS,
        "a part has the rows of its first split alone",
        "rows=self.rows.union(other.rows),",
        "rows=self.rows,",
    ),
    Mutant(
        RESOLVED,
        "reads without rows stay in the plan",
        "if not within(rows[part.part_id], *read.row_range(part.data.rows)).is_empty:",
        "if not rows[part.part_id].is_empty:",
    ),
    Mutant(
        RESOLVED,
        "parts that leave the plan are not counted",
        "if part_id not in after",
        "if part_id in after",
    ),
    Mutant(
        CACHE,
        "rows are found again for another filter",
        "(id(plan.splits), id(plan.filter), plan.pruning)",
        "(id(plan.splits), 0, plan.pruning)",
    ),
    Mutant(
        CACHE,
        "all plans without splits are one",
        "if not plan.splits:",
        "if plan.splits is None:",
    ),
    Mutant(
        CACHE,
        "the objects that tell answers apart are let go",
        "identified = (plan.splits, plan.filter)",
        "identified = ()",
    ),
    Mutant(
        PLAN,
        "an engine gets the rows of the whole part for each split",
        "within(part_rows.rows, *read.row_range(part.data.rows)),",
        "part_rows.rows,",
    ),
    Mutant(
        PLAN,
        "row sets of files of another length are believed",
        "if any(resolved_counts.get(part_id) != count",
        "if any(part_id not in resolved_counts and count",
    ),
    Mutant(
        STATISTICS,
        "rows that a resolved plan leaves out are counted",
        "count = len(within(resolved[part.part_id], start, stop))",
        "count = stop - start",
    ),
    Mutant(
        CANDIDATES,
        "pages are pruned by columns outside the key (trap T1)",
        "prune_pages(predicate, undecided, schema, ROW_GROUP_ROWS, only=only)",
        "prune_pages(predicate, undecided, schema, ROW_GROUP_ROWS)",
        ("tests/executor/test_visibility_model.py", "tests/traps/test_trap_merge.py"),
    ),
    Mutant(
        CANDIDATES,
        "rows that blooms refute count as refuted by statistics",
        "refuted - by_bloom,",
        "refuted,",
    ),
    Mutant(
        CANDIDATES,
        "rows left by all columns are found again for the key's alone (trap T1)",
        "store.uri, schema.id, only), {}",
        "store.uri, schema.id), {}",
        ("tests/planner/test_candidates.py",),
    ),
    Mutant(
        CANDIDATES,
        "rows of one file are found again for another",
        "[(ref.path, ref.tail_checksum, ref.reading) for",
        "[(store.uri, store.uri, None) for",
        ("tests/planner/test_candidates.py",),
    ),
)
