"""What leaves pages out, reads single ones, and merges the few rows that a key leaves, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

PRUNING, BOUNDS = "planner/prune_pages.py", "parquet/statistics/page_statistics.py"
READER, DIRECTORY, MINI = (f"parquet/{name}.py" for name in ("page_reader", "pages", "mini_file"))
GROUPS, LIVE, EXECUTE = (
    f"executor/{name}.py" for name in ("decode_row_group", "live_rows", "execute")
)
UNITS, READS = "executor/units.py", "executor/two_phase.py"
PLAIN, NARROW = (
    "predicate/interpretation/plain_comparisons.py",
    "predicate/interpretation/narrow.py",
)
_PLAIN = ("tests/predicate/test_plain_comparisons.py",)
_PRUNING = ("tests/planner/test_prune_pages.py",)
_MEMBERS = ("tests/planner/test_prune_members.py",)
_PAGES = ("tests/parquet/test_pages.py",)
_READS = ("tests/executor/test_visibility_model.py", "tests/tables/test_random_scans.py")
SUITES = {
    PRUNING: _PRUNING,
    BOUNDS: _PRUNING,
    READER: _PAGES,
    DIRECTORY: _PAGES,
    MINI: _PAGES,
    GROUPS: _READS,
}

MUTANTS = (
    Mutant(
        PRUNING,
        "pages of another row group are left out",
        "groups[:, None] * per_group",
        "(groups[:, None] + 1) * per_group",
    ),
    Mutant(
        PRUNING,
        "row groups that are refuted come back",
        "page_mask = np.repeat(groups.chosen, self.pages_per_group)",
        "page_mask = np.repeat(groups.chosen | True, self.pages_per_group)",
    ),
    Mutant(
        PRUNING,
        "row groups of which all rows match are skipped",
        "KeptPages(verdicts != _NONE, group_rows, certain",
        "KeptPages(verdicts == _SOME, group_rows, certain",
    ),
    Mutant(
        PRUNING,
        "pages that may match are left out with those that cannot",
        "pages = verdicts != _NONE",
        "pages = verdicts > _SOME",
    ),
    Mutant(
        BOUNDS,
        "all columns prune whatever may prune",
        "self._statistics.file_column(subject)",
        "self._statistics._footer.columns.get(subject)",
    ),
    Mutant(
        BOUNDS,
        "a page of NULLs has no NULLs",
        "nulls[pages][~there] = rows[pages][~there]",
        "nulls[pages][~there] = 0",
    ),
    Mutant(
        BOUNDS,
        "integers are unsigned",
        'INT64": lambda data: int.from_bytes(data, "little", signed=True)',
        'INT64": lambda data: int.from_bytes(data, "little")',
    ),
    Mutant(
        PLAIN,
        "a page that ends at the constant holds nothing greater or equal",
        "return upper >= value, lower < value",
        "return upper > value, lower < value",
        _PLAIN,
    ),
    Mutant(
        "predicate/interpretation/abstract.py",
        "bounds the wrong way round are believed",
        "if (lower > upper).any():",
        "if len(lower) < 0:",
        _PLAIN,
    ),
    Mutant(
        PLAIN,
        "a part that begins within the interval matches as a whole",
        "all_ = all_ & (bounds.upper <= most)",
        "all_ = all_ & (bounds.lower <= most)",
        _PLAIN,
    ),
    Mutant(
        PLAIN,
        "rows that may be NULL match",
        "here, all_ = bounds.present, bounds.certain",
        "here, all_ = bounds.present, bounds.present",
        _PLAIN,
    ),
    Mutant(
        PLAIN,
        "an interval without numbers holds some",
        "least > most",
        "least < least",
        _PLAIN,
    ),
    Mutant(
        NARROW,
        "values that a column does not have add nothing to its bounds",
        "span.excluded or span.ranges or _is_void(span)",
        "span.ranges or _is_void(span)",
        _PLAIN,
    ),
    Mutant(BOUNDS, "short lists are believed", "len(one) == count", "len(one) <= count"),
    Mutant(
        GROUPS,
        "rows of a second file are counted from the first",
        "(np.arange(count) if rows is None else rows) + end - count",
        "(np.arange(count) if rows is None else rows)",
        ("tests/executor/test_units_of_files.py",),
    ),
    Mutant(
        UNITS,
        "files that store columns otherwise are decoded together",
        "            and waiting[0].joins(unit)\n",
        "",
        ("tests/executor/test_units_of_files.py",),
    ),
    Mutant(
        READER,
        "digests are not compared",
        "len(page) == stop - start and chunk.is_whole(number, page)",
        "len(page) == stop - start",
    ),
    Mutant(
        READER,
        "the last page has as many rows as the others",
        "+ min(page_rows, left)",
        "+ page_rows",
    ),
    Mutant(
        DIRECTORY,
        "pages are counted from the chunk before",
        "self._bases[row_group] + leaf * count",
        "self._bases[row_group] + max(leaf - 1, 0) * count",
    ),
    Mutant(
        UNITS,
        "row groups of which many pages are wanted are joined too",
        "if more and isinstance(unit, Unit):",
        "if isinstance(unit, Unit):",
        ("tests/executor/test_units.py",),
    ),
    Mutant(
        UNITS,
        "the last unit is forgotten",
        "    if waiting:\n        yield",
        "    if len(waiting) > 1:\n        yield",
        ("tests/executor/test_units.py",),
    ),
    Mutant(
        READS,
        "rows of a second row group are those of the first",
        "        start += count\n",
        "",
        ("tests/executor/test_units.py",),
    ),
    Mutant(
        MINI,
        "a repeated column has a value a row",
        "if not column.chunk.repeats:",
        "if column.pages:",
    ),
    Mutant(
        GROUPS,
        "rows are counted as if no page were left out",
        "return numbers - before[np.searchsorted(pages, numbers // page_rows)]",
        "return numbers - before[0]",
    ),
    Mutant(
        GROUPS,
        "the page that a range ends in is not read",
        "np.searchsorted(starts, edges[1:]) >",
        'np.searchsorted(starts, edges[:-1], "right") >',
    ),
    Mutant(
        GROUPS,
        "rows of a run are numbered from its row group",
        "yield int(run[0]) * self.file.page_rows,",
        "yield 0,",
    ),
    Mutant(
        LIVE,
        "rows that are not asked for hide nothing",
        "        if relevant.num_rows:\n            hides",
        "        if relevant.num_rows and (shown is None or start in shown):\n            hides",
        _READS,
    ),
    Mutant(
        LIVE,
        "rows that are not asked for are given",
        "hides = shown is None or start not in shown",
        "hides = shown is None",
        _READS,
    ),
    Mutant(
        LIVE,
        "rows on which the predicate fails leave before the merge",
        "np.flatnonzero(outcome.true | outcome.failed)",
        "np.flatnonzero(outcome.true)",
        ("tests/executor/test_few_keys.py",),
    ),
    Mutant(
        EXECUTE,
        "any predicate is taken for one of the key (trap T1)",
        "if column.name not in keys or isinstance(column.type, Float):",
        "if isinstance(column.type, Float):",
        _READS,
    ),
    Mutant(
        EXECUTE,
        "zeros of both signs are one key for any predicate",
        "if column.name not in keys or isinstance(column.type, Float):",
        "if column.name not in keys:",
        ("tests/executor/test_few_keys.py",),
    ),
    Mutant(
        "parquet/leaf_columns.py",
        "members of structs are taken from the leaves of others",
        "first += leaf_count(member.type)",
        "first += 0",
        _MEMBERS,
    ),
    Mutant(
        "storage/parts/part_writer.py",
        "NaN in a member of a struct does not count (invariant 32)",
        'paths.append(".".join(path))',
        "paths.append(path[0])",
        _MEMBERS,
    ),
)
