"""`make test-fast`: the tests of the core without engines and processes, changed rooms first.

It takes some 150 s of CPU, and is for every commit; `make test` decides. A file belongs to it if it
names no engine and starts no process, and if it is cheap by `seconds.txt`, unless its room has
changed. The house is always tested, whole stories of tables only when their rooms change.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from tests.spread import known_seconds

ROOT: Final = Path(__file__).parents[1]
ROOMS: Final = (
    "types",
    "predicate",
    "objects",
    "stats",
    "bridges",
    "parquet",
    "storage",
    "planner",
    "executor",
    "changes",
    "columns",
    "traps",
    "invariants",
)
WHEN_CHANGED: Final = ("compaction", "retention", "maintenance", "change_feed", "tables")
HOUSE: Final = "tests/test_house.py"
MOST_EXPENSIVE_S: Final = 3  # of CPU, of a file whose room has not changed
_NAMES_AN_ENGINE: Final = re.compile(
    r"\b(duckdb\w*|datafusion|pyspark|spark|polars|deltalake|pyiceberg|psycopg|pgserver|pyvelox|moto|s3"
    r"|judges|subprocess|multiprocessing|processes|CliRunner)\b"
)


def fast_files(changed: Iterable[str]) -> tuple[list[str], list[str]]:
    """The test files of the changed rooms, and those of the other rooms of the core.

    `changed` are paths of files of the package and of tests, from the root of the project.
    """
    rooms = {room for path in changed if (room := room_of(path)) is not None}
    first, later = [HOUSE], []
    seconds = known_seconds()
    for room in (*ROOMS, *WHEN_CHANGED):
        for path in sorted((ROOT / "tests" / room).rglob("test_*.py")):
            file = path.relative_to(ROOT).as_posix()
            if _NAMES_AN_ENGINE.search(path.read_text("utf-8")):
                continue
            if room in rooms:
                first.append(file)
            elif room in ROOMS and seconds.get(file, 0) <= MOST_EXPENSIVE_S:
                later.append(file)
    return first, later


def room_of(path: str) -> str | None:
    """The room of a file of the package or of its tests; None for other files."""
    match Path(path).parts:
        case ("rowsieve" | "tests", str(room), *_):
            return room.removesuffix(".py").removeprefix("test_")
        case _:
            return None


def changed_files() -> list[str]:
    """The files that differ from where this branch left its upstream, or from the last commit."""
    base = _git("merge-base", "@{upstream}", "HEAD") or ["HEAD"]
    return _git("diff", "--name-only", *base)


def _git(*arguments: str) -> list[str]:
    """The lines that git prints; none if it fails."""
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def main(arguments: Sequence[str]) -> int:
    """Run the tests of the changed rooms, and if they pass, the others."""
    for files in fast_files(changed_files()):
        command = [sys.executable, "-m", "pytest", *arguments, *files]
        if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
