"""Faults that a machine has to find: schedules of requests, calls on a catalog, all readers.

Found within `make test` by the tests named, in the run of the seed or table that is named last.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

SEEDS = ("tests/simulation/test_simulation.py",)
CATALOGS = ("tests/simulation/test_catalogs.py",)
READERS = ("tests/ternary_logic/test_pairs.py",)

MUTANTS = (
    Mutant(
        "retention/expiring.py",
        "the version of a time is the one after it",
        "return log.as_of(timestamp_us).version",
        "return log.as_of(timestamp_us).version + 1",
        SEEDS,
        "256",
    ),
    Mutant(
        "changes/operations.py",
        "a restore keeps newer parts",
        "for part_id in head.parts.part_ids if part_id not in unchanged)",
        "for part_id in head.parts.part_ids[:1] if part_id not in unchanged)",
        SEEDS,
        "11",
    ),
    Mutant(
        "changes/operations.py",
        "a restore keeps later vectors",
        "unchanged = {identity[0] for identity in identities(head.parts) if identity in wanted}",
        "unchanged = set(head.parts.part_ids) & set(target.parts.part_ids)",
        SEEDS,
        "150",
    ),
    Mutant(
        "executor/live_rows.py",
        "visibility is cached by the newest part",
        "        return _VISIBLE.get(self._parts, lambda: resolve(streams))",
        "        return _VISIBLE.get(self._parts[0], lambda: resolve(streams))",
        SEEDS,
        "1",
    ),
    Mutant(
        "executor/stored_vectors.py",
        "a stored vector is complete for ever",
        "return part.commit_ts if part.vector is None else part.vector.complete_through",
        "return part.commit_ts if part.vector is None else _ALWAYS",
        SEEDS,
        "122",
    ),
    Mutant(
        "executor/stored_vectors.py",
        "vectors are those of other parts",
        "hidden_rows = dict(zip(places, read_vectors(store, wanted), strict=True))",
        "hidden_rows = dict(zip(places[::-1], read_vectors(store, wanted), strict=True))",
        SEEDS,
        "1",
    ),
    Mutant(
        "storage/log/replay.py",
        "the token of a commit replaces those of others",
        "tokens = {**tokens, entry.token[0]: _token(entry, entry.token[1])}",
        "tokens = {entry.token[0]: _token(entry, entry.token[1])}",
        SEEDS,
        "274",
    ),
    Mutant(
        "storage/log/commit_log.py",
        "a token that was used is new",
        "        if token[1] > last.sequence:\n",
        "        if token[1] >= last.sequence:\n",
        SEEDS,
        "2",
    ),
    Mutant(
        "change_feed/images.py",
        "the feed has no rows before an update",
        "[PREIMAGE, DELETE, POSTIMAGE]",
        "[POSTIMAGE, DELETE, POSTIMAGE]",
        SEEDS,
        "144",
    ),
    Mutant(
        "changes/computed.py",
        "a merge does not see changes of its keys",
        "touched_by=TouchesKeys(change.store, snapshot.schema, order, keys),\n"
        "        matched_by=reads,",
        "touched_by=never,\n        matched_by=never,",
        SEEDS,
        "63",
    ),
    Mutant(
        "changes/hiding.py",
        "a new vector forgets rows that were hidden before",
        "{part_id: matched.union(before) for part_id, (matched, before) in row_sets.items()}",
        "{part_id: matched for part_id, (matched, before) in row_sets.items()}",
        SEEDS,
        "10",
    ),
    Mutant(
        "providers/spark/writes/stream_sink.py",
        "all batches of a stream have one token",
        'token = (f"{_APPLICATION}{written[0].query_id}", batchId)',
        'token = (f"{_APPLICATION}{written[0].query_id}", 1)',
        SEEDS,
        "streams 0",
    ),
    Mutant(
        "catalog/catalog_log.py",
        "every entry of the catalog is ours",
        "                return stored.change_id == line.id\n",
        "                return True\n",
        CATALOGS,
        "catalog 0",
    ),
    Mutant(
        "catalog/named_tables.py",
        "a table takes the name of another",
        "            self._check_free(now, new)\n            return now.placed({name: None",
        "            return now.placed({name: None",
        CATALOGS,
        "catalog 13",
    ),
    Mutant(
        "catalog/drops.py",
        "a namespace goes without its last table",
        "else now.placed(dict.fromkeys(tables))",
        "else now.placed(dict.fromkeys(tables[1:]))",
        CATALOGS,
        "catalog 25",
    ),
    Mutant(
        "planner/prune_pages.py",
        "bounds are those of other pages",
        "        page_mask[self.places] = pages\n",
        "        page_mask[self.places] = pages[::-1]\n",
        READERS,
        "0",
    ),
    Mutant(
        "planner/prune_row_groups.py",
        "verdicts are those of the row group before",
        "    verdicts, counts = interpret(predicate, together), together.part_counts\n"
        "    undecided",
        "    verdicts, counts = np.roll(interpret(predicate, together), 1), together.part_counts\n"
        "    undecided",
        READERS,
        "4",
    ),
    Mutant(
        "predicate/normalize.py",
        "a negated comparison is the comparison",
        "return ir.Comparison(op.negated, left, right)",
        "return ir.Comparison(op, left, right)",
        READERS,
        "0",
    ),
    Mutant(
        "stats/columnar.py",
        "a part with a NULL has no other value",
        "empty=sane & (null_count == cells),",
        "empty=sane & (null_count > 0),",
        READERS,
        "0",
    ),
    Mutant(
        "planner/prune_parts.py",
        "parts that the key refutes are other parts",
        "        places = (by_key != _NONE).nonzero()[0]\n",
        "        places = (by_key[::-1] != _NONE).nonzero()[0]\n",
        READERS,
        "1",
    ),
    Mutant(
        "planner/prune_row_groups.py",
        "Bloom filters are those of other row groups",
        "filters = blooms.filters(column, [group for group, _ in batch])",
        "filters = blooms.filters(column, [group for group, _ in batch][::-1])",
        READERS,
        "8/6",
    ),
    Mutant(
        "stats/columnar.py",
        "an unknown count of NULLs is none",
        "may_be_null=~(sane & (null_count == 0)),",
        "may_be_null=~(sane & (null_count <= 0)),",
        READERS,
        "3/0",
    ),
)
