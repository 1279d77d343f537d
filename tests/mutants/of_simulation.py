"""What commits and retention promise each other, broken: schedules of several processes notice.

Found within `make test`: by the seed, or the pair of calls with one preemption, that is named last.
"""

from __future__ import annotations

from tests.mutants.workshop import Mutant

LOG = "storage/log/commit_log.py"
CONFLICTS, MUTATION = "storage/log/conflicts.py", "changes/mutation.py"
ORPHANS, EXPIRING = "retention/orphans.py", "retention/expiring.py"
SEEDS = ("tests/simulation/test_simulation.py",)
REFS = ("tests/simulation/test_ref_runs.py",)
PAIRS = ("tests/simulation/test_interleavings.py",)
_RESOLVED = "    return Resolution.CONFLICT if kind is None else MATRIX[ours, kind]\n"
_PUT_FAILED = "            except (ObjectExists, StoreError) as error:\n"

MUTANTS = (
    Mutant(
        LOG,
        "every entry is ours",
        "if stored.commit_id != entry.commit_id:",
        "if False:",
        SEEDS,
        "1",
    ),
    Mutant(
        LOG,
        "a name that exists is another's",
        _PUT_FAILED,
        "            except ObjectExists:\n                return None\n"
        "            except StoreError as error:\n",
        SEEDS,
        "220",
    ),
    Mutant(
        LOG,
        "a lost answer is a lost number",
        _PUT_FAILED,
        "            except StoreError:\n                return None\n"
        "            except ObjectExists as error:\n",
        SEEDS,
        "29",
    ),
    Mutant(
        CONFLICTS,
        "changes do not see writes",
        _RESOLVED,
        f"    if (ours, kind) == (Kind.READING, Kind.BLIND):\n"
        f"        return Resolution.REBASE\n{_RESOLVED}",
        SEEDS,
        "63",
    ),
    Mutant(
        CONFLICTS,
        "changes do not see each other",
        _RESOLVED,
        f"    if (ours, kind) == (Kind.READING, Kind.READING):\n"
        f"        return Resolution.REBASE\n{_RESOLVED}",
        PAIRS,
        "keyed update delete_where 3",
    ),
    Mutant(
        MUTATION,
        "touched keys do not conflict",
        "if keys.overlaps(key_range) and self._shares(added, i):",
        "if False:",
        PAIRS,
        "keyed update delete_where 3",
    ),
    Mutant(
        "storage/log/floors.py",
        "files below the floor are committed",
        "return lowest is not None and lowest < floor",
        "return False",
        PAIRS,
        "keyed upsert remove_orphans 0",
    ),
    Mutant(
        ORPHANS,
        "files of kept versions go in a schedule",
        " and path not in versions.paths",
        "",
        PAIRS,
        "keyed upsert remove_orphans 0",
    ),
    Mutant(
        EXPIRING,
        "files of kept versions expire",
        " if path not in versions.paths",
        "",
        SEEDS,
        "4",
    ),
    Mutant(
        EXPIRING,
        "retention's commits count as versions",
        "count -= entry.operation not in RETENTION_OPERATIONS",
        "count -= 1",
        PAIRS,
        "keyed expire_versions expire_versions 5",
    ),
    Mutant(
        "changes/column_changes.py",
        "data does not see that columns were changed",
        "    if head.schema.id != schema_id:\n        raise CommitConflict(",
        "    if False:\n        raise CommitConflict(",
        PAIRS,
        "keyed upsert add_column 0",
    ),
    Mutant(
        "compaction/rewrite_passes.py",
        "rewritten rows are as new as the rewrite",
        'return writer.finish().with_commit_ts(pc.max(inputs.column("commit_ts_max")).as_py())',
        "return writer.finish()",
        PAIRS,
        "keyed compact upsert 0",
    ),
    Mutant(
        "retention/other_logs.py",
        "expiry forgets what branches and tags need",
        "return prove(listing, replace(versions, paths=versions.paths | needed, tags=tags))",
        "return prove(listing, replace(versions, tags=tags))",
        REFS,
        "1",
    ),
    Mutant(
        "refs/publishing.py",
        "a publication does not look at the table",
        "        self._check_unmoved(head)\n",
        "",
        REFS,
        "21",
    ),
    Mutant(
        "refs/renumbering.py",
        "new parts of several commits are never merged",
        "    if len(places) < 2:\n",
        "    if len(places):\n",
        REFS,
        "37",
    ),
    Mutant(
        "retention/listing.py",
        "a branch's files are taken for the table's",
        "by_writer.setdefault(writer_of_path(path), {})[path] = detail",
        "by_writer.setdefault(ref_tag(store.uri), {})[path] = detail",
        ("tests/refs/test_branches.py",),
    ),
    Mutant(
        "refs/renumbering.py",
        "vectors are known as far as in the branch",
        "        place = bisect_right(",
        "        return vector\n        place = bisect_right(",
        ("tests/refs/test_branches.py", "tests/refs/test_refs_state_machine.py"),
    ),
)
