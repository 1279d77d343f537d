"""Ctrl-C at any moment of a command, from its first line to the end of the process."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import rowsieve as rs
from tests import profiles

MOMENTS = 100 if profiles.IS_DEEP else 6

# Counts calls and returns of functions of the main thread, and interrupts at one of them.
RUN = """
import os, signal, sys
at, steps = int(sys.argv.pop(1)), 0
from rowsieve.cli import main
def step(frame, event, argument):
    global steps
    steps += 1
    if steps == at:
        os.kill(os.getpid(), signal.SIGINT)
sys.setprofile(step)
try:
    main()
finally:
    if not at:
        sys.setprofile(None)
        print("steps", steps, file=sys.stderr)
"""


def run(at: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(at), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_ctrl_c_at_any_moment_leaves_with_130_and_says_what_was_committed(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    rs.create_table(uri, pa.table({"id": [0]}), key=["id"])
    (tmp_path / "a.csv").write_text("id\n1\n")
    whole = run(0, "upsert", uri, tmp_path / "a.csv")
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stderr.split()[-1])
    version = rs.open_table(uri).version
    chance = random.Random(11)
    # Nearly all steps are imports: the last ones have the command, its end and that of the process.
    moments = [chance.randrange(1, steps) for _ in range(MOMENTS // 2)]
    moments += [steps - chance.randrange(-2_000, steps // 20) for _ in range(MOMENTS // 2)]
    ended = []
    for at in moments:
        done = run(at, "upsert", uri, tmp_path / "a.csv")
        now = rs.open_table(uri).version
        ended.append(done.returncode)
        if done.returncode == 0:  # it came after the end
            assert (now, done.stderr) == (version + 1, "")
        else:
            assert done.returncode == 130, (at, done.returncode, done.stderr)
            (line,) = done.stderr.splitlines()
            assert line.startswith("rowsieve: interrupted: "), (at, done.stderr)
            if now == version:
                assert "nothing was" in line, (at, line)
            else:
                assert f"version {now}" in line, (at, line)
                assert "stands" in line, (at, line)
        version = now
    assert 130 in ended
