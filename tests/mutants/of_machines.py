"""Faults that a machine has to find: schedules of requests, calls on a catalog, all readers.

Found within `make test` by the tests named; comments say by which seed or table.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SEEDS = ("tests/simulation/test_simulation.py",)
CATALOGS = ("tests/simulation/test_catalogs.py",)
READERS = ("tests/ternary_logic/test_pairs.py",)

MUTANTS = (
    Mutant(  # seed 173
        "retention/expiring.py",
        "the version of a time is the one after it",
        "return log.as_of(timestamp_us).version",
        "return log.as_of(timestamp_us).version + 1",
        SEEDS,
    ),
    Mutant(  # seed 6
        "changes/operations.py",
        "a restore keeps newer parts",
        "for part_id in head.parts.part_ids if part_id not in unchanged)",
        "for part_id in head.parts.part_ids[:1] if part_id not in unchanged)",
        SEEDS,
    ),
    Mutant(  # seed 26
        "changes/operations.py",
        "a restore keeps later vectors",
        "unchanged = {identity[0] for identity in identities(head.parts) if identity in wanted}",
        "unchanged = set(head.parts.part_ids) & set(target.parts.part_ids)",
        SEEDS,
    ),
    Mutant(  # seed 1
        "executor/live_rows.py",
        "visibility is cached by the newest part",
        "        return _VISIBLE.get(self._parts, lambda: resolve(streams))",
        "        return _VISIBLE.get(self._parts[0], lambda: resolve(streams))",
        SEEDS,
    ),
    Mutant(  # seed 1
        "executor/stored_vectors.py",
        "a stored vector is complete for ever",
        "return part.commit_ts if part.vector is None else part.vector.complete_through",
        "return part.commit_ts if part.vector is None else _ALWAYS",
        SEEDS,
    ),
    Mutant(  # seed 1
        "executor/stored_vectors.py",
        "vectors are those of other parts",
        "hidden_rows = dict(zip(places, read_vectors(store, wanted), strict=True))",
        "hidden_rows = dict(zip(places[::-1], read_vectors(store, wanted), strict=True))",
        SEEDS,
    ),
    Mutant(  # seed 29
        "storage/log/replay.py",
        "the token of a commit replaces those of others",
        "tokens = {**tokens, entry.token[0]: _token(entry, entry.token[1])}",
        "tokens = {entry.token[0]: _token(entry, entry.token[1])}",
        SEEDS,
    ),
    Mutant(  # seed 6
        "storage/log/commit_log.py",
        "a token that was used is new",
        "        if token[1] > last.sequence:\n",
        "        if token[1] >= last.sequence:\n",
        SEEDS,
    ),
    Mutant(  # seed 0
        "change_feed/images.py",
        "the feed has no rows before an update",
        "[PREIMAGE, DELETE, POSTIMAGE]",
        "[POSTIMAGE, DELETE, POSTIMAGE]",
        SEEDS,
    ),
    Mutant(  # seed 14
        "changes/computed.py",
        "a merge does not see changes of its keys",
        "touched_by=TouchesKeys(change.store, snapshot.schema, order, keys),\n"
        "        matched_by=reads,",
        "touched_by=never,\n        matched_by=never,",
        SEEDS,
    ),
    Mutant(  # seed 10
        "changes/hiding.py",
        "a new vector forgets rows that were hidden before",
        "{part_id: matched.union(before) for part_id, (matched, before) in row_sets.items()}",
        "{part_id: matched for part_id, (matched, before) in row_sets.items()}",
        SEEDS,
    ),
    Mutant(  # seed 29
        "providers/spark/writes/stream_sink.py",
        "all batches of a stream have one token",
        'token = (f"{_APPLICATION}{written[0].query_id}", batchId)',
        'token = (f"{_APPLICATION}{written[0].query_id}", 1)',
        SEEDS,
    ),
    Mutant(  # seed 0
        "catalog/catalog_log.py",
        "every entry of the catalog is ours",
        "                return stored.change_id == line.id\n",
        "                return True\n",
        CATALOGS,
    ),
    Mutant(  # seed 13
        "catalog/named_tables.py",
        "a table takes the name of another",
        "            self._check_free(now, new)\n            return now.placed({name: None",
        "            return now.placed({name: None",
        CATALOGS,
    ),
    Mutant(  # seed 25
        "catalog/drops.py",
        "a namespace goes without its last table",
        "else now.placed(dict.fromkeys(tables))",
        "else now.placed(dict.fromkeys(tables[1:]))",
        CATALOGS,
    ),
    Mutant(  # table 0
        "planner/prune_pages.py",
        "bounds are those of other pages",
        "        kept[self.places] = pages\n",
        "        kept[self.places] = pages[::-1]\n",
        READERS,
    ),
    Mutant(  # table 4
        "planner/prune_row_groups.py",
        "verdicts are those of the row group before",
        "    verdicts, counts = interpret(predicate, together), together.part_counts\n"
        "    undecided",
        "    verdicts, counts = np.roll(interpret(predicate, together), 1), together.part_counts\n"
        "    undecided",
        READERS,
    ),
    Mutant(  # table 0
        "predicate/normalize.py",
        "a negated comparison is the comparison",
        "return ir.Comparison(op.negated, left, right)",
        "return ir.Comparison(op, left, right)",
        READERS,
    ),
    Mutant(  # table 0
        "stats/columnar.py",
        "a part with a NULL has no other value",
        "empty=sane & (null_count == cells),",
        "empty=sane & (null_count > 0),",
        READERS,
    ),
    Mutant(  # table 1
        "planner/prune_parts.py",
        "parts that the key refutes are other parts",
        "        kept = (by_key != _NONE).nonzero()[0]\n",
        "        kept = (by_key[::-1] != _NONE).nonzero()[0]\n",
        READERS,
    ),
    Mutant(  # table 8
        "planner/prune_row_groups.py",
        "Bloom filters are those of other row groups",
        "filters = blooms.filters(column, [group for group, _ in batch])",
        "filters = blooms.filters(column, [group for group, _ in batch][::-1])",
        READERS,
    ),
    Mutant(  # table 3
        "stats/columnar.py",
        "an unknown count of NULLs is none",
        "may_be_null=~(sane & (null_count == 0)),",
        "may_be_null=~(sane & (null_count <= 0)),",
        READERS,
    ),
)
