"""The rules that the traps are named after, broken one at a time."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

EXPRESSIONS = ("tests/traps/test_trap_expressions.py",)
STATISTICS = ("tests/traps/test_trap_statistics.py",)
PLANS = ("tests/traps/test_trap_plans.py",)
MERGE = ("tests/traps/test_trap_merge.py",)
INTERPRET, COLUMNAR = "predicate/interpret.py", "stats/columnar.py"

MUTANTS = (
    Mutant(
        "planner/part_facts.py",
        "the key stage knows every column (trap T1)",
        "PartStatistics(self.parts, self.schema, self.key_ids, decoded=self._decoded)",
        "PartStatistics(self.parts, self.schema, decoded=self._decoded)",
        MERGE,
    ),
    Mutant(
        "planner/part_facts.py",
        "the key stage knows every column of parts that are not in memory (trap T1)",
        "keys = PartStatistics(_rows_at(self.parts, remaining), self.schema, self.key_ids)",
        "keys = PartStatistics(_rows_at(self.parts, remaining), self.schema)",
        ("tests/planner/test_prune_parts.py",),
    ),
    Mutant(
        "planner/part_facts.py",
        "unions of shards know every column before the merge (trap T1)",
        "refuted_by_unions(self.parts, self.schema, predicate, self.key_ids)",
        "refuted_by_unions(self.parts, self.schema, predicate)",
        ("tests/planner/test_shards.py",),
    ),
    Mutant(
        "storage/parts/part_writer.py",
        "the keys of a part are those of its rows (trap T4)",
        "        ends.append((self._end(deletes, 0), self._end(deletes, deletes.num_rows - 1)))\n",
        "        ends = ends or [(self._end(deletes, 0), "
        "self._end(deletes, deletes.num_rows - 1))]\n",
        MERGE,
    ),
    Mutant(
        "storage/parts/part_writer.py",
        "the statistics of the key are those of the rows (trap T4)",
        "            statistics.add_tombstones(deletes.select(self._key_names))\n",
        "",
        MERGE,
    ),
    Mutant(
        "predicate/interpretation/abstract.py",
        "bounds the wrong way round are believed",
        "    return known(ComparisonOp.GT, lower, upper)\n",
        "    return nowhere(len(lower))\n",
        ("tests/stats/test_columnar.py",),
    ),
    Mutant(
        "planner/overlap.py",
        "key bounds the wrong way round are believed",
        "    wrong = lower > upper\n",
        "    wrong = np.zeros(len(lower), dtype=np.bool_)\n",
        ("tests/planner/test_overlap.py",),
    ),
    Mutant(
        INTERPRET,
        "what is not FALSE is not TRUE of NOT (trap T8)",
        "                truth = self.predicate(term)\n                return Truth(truth.false,",
        "                truth = self.predicate(term)\n"
        "                return Truth(truth.false & ~truth.null,",
        EXPRESSIONS,
    ),
    Mutant(
        INTERPRET,
        "errors do not keep a part (trap T9)",
        "refuted |= ~(truth.true | truth.fails)\n        certain",
        "refuted |= ~truth.true\n        certain",
        EXPRESSIONS,
    ),
    Mutant(
        "predicate/functions/numbers/numeric.py",
        "a quotient falls with its divisor everywhere (trap T10)",
        "        bounds=quotient_range(_divide),\n        direction=_directions(_EITHER, _NONE),",
        "        direction=_directions(_EITHER, _EITHER),",
        EXPRESSIONS,
    ),
    Mutant(
        "predicate/functions/times/moved_times.py",
        "a month later keeps the order of times (trap T11)",
        "(last, value.upper, DAY_US - 1)",
        "(last, value.upper, 0)",
        EXPRESSIONS,
    ),
    Mutant(
        "predicate/binding/zoned.py",
        "every zone is UTC (trap T12)",
        "    return zone(semantics.time_zone).is_utc\n",
        "    return True\n",
        EXPRESSIONS,
    ),
    Mutant(
        "types/time_zones.py",
        "a local time grows with the instant (trap T12)",
        "        high = np.where((place > 0) & (change > lower), np.maximum(high, last), high)\n",
        "",
        EXPRESSIONS,
    ),
    Mutant(
        "types/time_zones.py",
        "a local time does not fall within a part (trap T12)",
        "low = np.where(has_next & (change <= upper), np.minimum(low, first), low)",
        "low = np.where(has_next & (change <= upper), low, low)",
        EXPRESSIONS,
    ),
    Mutant(
        "planner/cache.py",
        "a plan serves other options (trap T12)",
        "frozenset(options.items()),",
        "len(options),",
        EXPRESSIONS,
    ),
    Mutant(
        "predicate/binding/inverses.py",
        "a decimal is the float that it is cast to (trap T14)",
        "case (Int(), Int() | Decimal()) | (Decimal(), Decimal()):\n"
        "            if _keeps_numbers(source, node.type):",
        "case (Int(), Int() | Decimal()) | (Decimal(), _):\n            if True:",
        EXPRESSIONS,
    ),
    Mutant(
        "stats/bounds.py",
        "the upper bound of long text is its start (trap T15)",
        "        bound = prefix[:i] + raised\n",
        "        bound = prefix\n",
        EXPRESSIONS,
    ),
    Mutant(
        "predicate/functions/times/temporal.py",
        "before 1970 time is cut towards it (trap T16)",
        "    starts = _unit_starts(unit, micros)\n",
        "    starts = _unit_starts(unit, micros)\n"
        "    starts = np.where(micros < 0, starts + 86_400_000_000, starts)\n",
        EXPRESSIONS,
    ),
    Mutant(
        "stats/json_paths.py",
        "a JSON null is nothing (trap T17)",
        "            self._kinds |= JsonKind.NULL\n",
        "            self._kinds |= JsonKind.MISSING\n",
        STATISTICS,
    ),
    Mutant(
        COLUMNAR,
        "a path without statistics is missing from the documents (trap T18)",
        "kinds = _int64(column, missing=EVERYTHING)",
        "kinds = _int64(column, missing=1)",
        STATISTICS,
    ),
    Mutant(
        COLUMNAR,
        "bounds of another type are taken for those of this one (trap T19)",
        "if index < 0 or not holds_all_of(type_, columns.schema.field(index).type):",
        "if index < 0:",
        STATISTICS,
    ),
    Mutant(
        "executor/audit.py",
        "each process audits other parts (trap T30)",
        'xxhash.xxh3_64_intdigest(f"{self.table_uuid}/{name}".encode())',
        'hash(f"{self.table_uuid}/{name}") % _HASHES',
        STATISTICS,
    ),
    Mutant(
        "scan.py",
        "after a violation the scan is pruned all the same (trap T31)",
        "plan = self._replanned(pruning=False, limit=plan.limit)",
        "plan = self._replanned(pruning=True, limit=plan.limit)",
        STATISTICS,
    ),
    Mutant(
        COLUMNAR,
        "counts that cannot be are believed (trap T32)",
        "sane = null_count <= cells  # an unknown count is -1",
        "sane, null_count = null_count >= -1, np.minimum(np.maximum(null_count, 0), cells)",
        STATISTICS,
    ),
    Mutant(
        "stats/trim.py",
        "what holds a critical column is trimmed (trap T33)",
        "if inside or field.id in named or is_critical_name(field.name):",
        "if field.id in named or is_critical_name(field.name):",
        STATISTICS,
    ),
    Mutant(
        "changes/operations.py",
        "a plan of older files says which rows go (trap T23)",
        "if plan.version != snapshot.version and plan.table_uuid == snapshot.table.uuid:",
        "if False:",
        PLANS,
    ),
    Mutant(
        "predicate/rowset/rowset.py",
        "row sets of other lengths meet (trap T34)",
        "        if self.row_count != other.row_count:\n            raise",
        "        if False:\n            raise",
        PLANS,
    ),
    Mutant(
        INTERPRET,
        "a part that may hold matches holds nothing else (trap T35)",
        "verdicts = np.where(certain, Verdict.ALL, Verdict.SOME).astype(np.int8)",
        "verdicts = np.where(certain | True, Verdict.ALL, Verdict.SOME).astype(np.int8)",
        PLANS,
    ),
    Mutant(
        INTERPRET,
        "what another engine evaluates is FALSE (trap T36)",
        "            case ir.Opaque():\n                return Truth(*[everywhere(count)] * 4)",
        "            case ir.Opaque():\n                no = nowhere(count)\n"
        "                return Truth(no, everywhere(count), no, no)",
        PLANS,
    ),
)
