"""What retention may delete, and which plan belongs to a version, broken."""

from __future__ import annotations

from tests.mutants.workshop import Mutant

ORPHANS, KEPT, CACHE = "retention/orphans.py", "retention/kept_versions.py", "planner/cache.py"
_KEPT = ("tests/retention/test_kept_versions.py",)
SUITES = {
    ORPHANS: (*_KEPT, "tests/retention/test_orphans.py"),
    KEPT: _KEPT,
    CACHE: ("tests/planner/test_cache.py",),
}

MUTANTS = (
    Mutant(
        ORPHANS,
        "a file that is based on the floor goes",
        "base is not None and base < floor",
        "base is not None and base <= floor",
    ),
    Mutant(
        ORPHANS,
        "a list that is based on the floor goes",
        "(base := base_of_id(id_)) is None or base < floor",
        "(base := base_of(id_)) is None or base <= floor",
    ),
    Mutant(ORPHANS, "files of kept versions go", " and path not in versions.paths", ""),
    Mutant(KEPT, "lost entries are not noticed", "if newest > head.version:", "if newest < -1:"),
    Mutant(KEPT, "leases keep nothing", "oldest = lower_version(floor, leased)", "oldest = floor"),
    Mutant(CACHE, "plans of another table", "            snapshot.table.uuid,\n", ""),
    Mutant(CACHE, "plans of another commit", "            snapshot.commit_id,\n", ""),
)
