"""Commands that a signal ends at any step of their writes leave the table before or after it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rowsieve as rs
from tests import profiles

# Sends itself a signal before one of the calls that change the disk; 0 tells how many there are.
RUN = """
import os, sys
at, number, steps = int(sys.argv.pop(1)), int(sys.argv.pop(1)), 0
from rowsieve.cli import main
def counted(call):
    def step(*arguments, **options):
        global steps
        steps += 1
        if steps == at:
            os.kill(os.getpid(), number)
        return call(*arguments, **options)
    return step
for name in ("mkdir", "write", "fsync", "link", "unlink"):
    setattr(os, name, counted(getattr(os, name)))
try:
    main()
finally:
    if not at:
        print("steps", steps, file=sys.stderr)
"""
COMMANDS = {
    "upsert": ["rows.csv"],
    "delete": ["v = 1"],
    "update": ["TRUE", "--set", "v = v + 10"],
    "overwrite": ["rows.csv", "TRUE"],
    "compact": [],
}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
NAMES = COMMANDS if profiles.IS_DEEP else ("upsert",)


def run(at: int, number: int, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(at), str(int(number)), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def rows_of(uri: Path) -> list[tuple[int, int]]:
    return sorted((row["id"], row["v"]) for row in rs.open_table(uri).scan().to_arrow().to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_a_command_that_is_killed_leaves_the_table_before_or_after_it(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text("id,v\n1,7\n9,7\n")

    def fresh(number: int) -> Path:
        table = rs.create_table(tmp_path / f"t{number}", {"id": [0], "v": [0]}, key=["id"])
        table.upsert({"id": [1, 2], "v": [1, 2]})
        return tmp_path / f"t{number}"

    words = (name, "t0", *COMMANDS[name])
    before = rows_of(fresh(0))
    whole = run(0, 0, *words, cwd=tmp_path)
    assert whole.returncode == 0, whole.stderr
    steps, after = int(whole.stderr.split()[-1]), rows_of(tmp_path / "t0")
    assert steps > 10
    moments = range(1, steps + 1) if profiles.IS_DEEP else (steps // 3, steps - 3, steps - 1)
    versions = set()
    for place, at in enumerate(moments):
        for number in SIGNALS if profiles.IS_DEEP else (SIGNALS[place],):
            uri = fresh(at * 100 + number)
            done = run(at, number, name, uri.name, *COMMANDS[name], cwd=tmp_path)
            version = rs.open_table(uri).version
            versions.add(version)
            assert rows_of(uri) == (before if version == 1 else after), (at, number)
            if number != signal.SIGKILL:
                assert done.returncode == 128 + number, (at, done.stderr)
                said = "nothing was committed" if version == 1 else "version 2 exists"
                assert said in done.stderr, (at, done.stderr)
            else:
                assert (done.returncode, done.stdout, done.stderr) == (-number, "", "")
            assert rs.open_table(uri).upsert({"id": [5], "v": [5]}).version == version + 1
    assert versions == {1, 2}
