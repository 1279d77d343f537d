"""What joins keys, row groups, vectors and predicates into the rows of a read, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

LIVE, SOURCES, EXECUTE, PACKAGE, READER, COLUMNS = (
    f"executor/{name}.py"
    for name in (
        *("live_rows", "part_sources", "execute", "output_batches", "two_phase"),
        "read_columns",
    )
)
_READS = (
    "tests/traps/test_trap_merge.py",
    "tests/invariants/test_invariants.py",
    "tests/executor/test_limit.py",
    "tests/executor/test_visibility_model.py",
)
SUITES = dict.fromkeys((LIVE, SOURCES, EXECUTE, PACKAGE, READER, COLUMNS), _READS)

MUTANTS = (
    # live rows
    Mutant(
        LIVE,
        "deletion vectors are forgotten",
        "_intersection([rows, self._visible(read), undeleted])",
        "_intersection([rows, self._visible(read)])",
    ),
    Mutant(
        LIVE,
        "what newer parts hide is shown",
        "_intersection([rows, self._visible(read), undeleted])",
        "_intersection([rows, undeleted])",
    ),
    Mutant(
        LIVE,
        "nothing hides rows of the second part",
        "self._streams is None or read.part == 0",
        "self._streams is None or read.part <= 1",
    ),
    Mutant(
        LIVE,
        "what is visible among a few keys is taken for all that is",
        "few = (self._parts, predicate)",
        "few = self._parts",
        ("tests/executor/test_few_keys.py",),
    ),
    Mutant(
        LIVE,
        "versions are pruned by columns outside the key (trap T1)",
        "candidates_of(self._sources, predicate, key, tombstones=True)",
        "candidates_of(self._sources, predicate, tombstones=True)",
    ),
    Mutant(
        SOURCES,
        "tombstones go with the rows beside them (trap T2)",
        "_NOTHING if deletes is None else source._known[deletes.path, only][1]",
        "_NOTHING",
    ),
    Mutant(
        LIVE,
        "rows that pruning by key leaves of two parts hide none of each other",
        "if sum([not rows.is_empty for both in candidates for rows in both]) < 2:",
        "if sum([not rows.is_empty for both in candidates for rows in both]) < 3:",
    ),
    Mutant(
        LIVE,
        "the row groups of a split are forgotten",
        "rows = _intersection([rows, self._rows_in_range(read)])",
        "rows = _intersection([rows, RowSet.full(source.row_count)])",
    ),
    # sources
    Mutant(
        SOURCES,
        "rows are numbered within their row group",
        "yield group.start + first + start,",
        "yield first + start,",
    ),
    Mutant(
        SOURCES,
        "all columns prune before visibility is resolved (trap T1)",
        "if only is not None and only.issuperset([each.field_id for each in predicate.columns]):",
        "if only is not None:",
    ),
    Mutant(
        SOURCES,
        "the wanted rows of the first row group are those of all",
        "here = None if wanted is None else wanted.slice(start, stop)",
        "here = None if wanted is None else wanted.slice(0, stop - start)",
    ),
    # reading and packaging
    Mutant(
        READER,
        "wanted and matching rows are mistaken for one another",
        "wanted.to_ids()[batch_matches]",
        "np.flatnonzero(batch_matches)",
        ("tests/tables/test_random_scans.py",),
    ),
    Mutant(
        READER,
        "rows that nobody wants are asked",
        "rows = as_stored(read_rows(groups, wanted, first, None)",
        "rows = as_stored(read_rows(groups, [None for _ in wanted], first, None)",
    ),
    Mutant(
        EXECUTE,
        "a limit is no limit for counting",
        "if limit is not None and total >= limit:",
        "if limit is not None and total > 10 * limit:",
    ),
    Mutant(
        COLUMNS,
        "the filter is not asked at all",
        "RowReader.of(columns, plan.filter, tested, views=views)",
        "RowReader.of(columns, None, tested, views=views)",
    ),
    Mutant(
        EXECUTE,
        "parts are put one after another where an order is asked for",
        "        if not needs_merge:\n            yield from self._read",
        "        if True:\n            yield from self._read",
    ),
    Mutant(
        PACKAGE,
        "each batch has a limit of its own",
        "remaining -= batch.num_rows",
        "remaining -= 0",
    ),
    Mutant(
        PACKAGE,
        "a limit takes the batch that reaches it whole",
        "else batch.slice(0, remaining)",
        "else batch",
    ),
)
