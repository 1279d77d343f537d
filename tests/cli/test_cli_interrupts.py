"""Ctrl-C or SIGTERM at any moment of a command, from its first line to the end of the process."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import rowsieve as rs
from tests import profiles

MOMENTS = 100 if profiles.IS_DEEP else 2

# Counts calls and returns of functions of the main thread, and interrupts at one of them.
RUN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
at, number, steps = int(sys.argv.pop(1)), int(sys.argv.pop(1)), 0
from rowsieve.cli import main
def step(frame, event, argument):
    global steps
    steps += 1
    if steps == at:
        os.kill(os.getpid(), number)
sys.setprofile(step)
try:
    main()
finally:
    if not at:
        sys.setprofile(None)
        print("steps", steps, file=sys.stderr)
"""


def run(at: int, number: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", RUN, str(at), str(int(number)), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_signal_at_any_moment_exits_with_its_code_and_reports_commits(tmp_path: Path) -> None:
    uri = tmp_path / "t"
    rs.create_table(uri, pa.table({"id": [0]}), key=["id"])
    (tmp_path / "a.csv").write_text("id\n1\n")
    whole = run(0, 0, "upsert", uri, tmp_path / "a.csv")
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stderr.split()[-1])
    version = rs.open_table(uri).version
    chance = random.Random(11)
    # Nearly all steps are imports: the last ones have the command, its end and that of the process.
    moments = [chance.randrange(1, steps) for _ in range(MOMENTS // 2)]
    moments += [steps - chance.randrange(-2_000, steps // 20) for _ in range(MOMENTS // 2)]
    ended = []
    for place, at in enumerate(moments):
        number = (signal.SIGINT, signal.SIGTERM)[place % 2]
        done = run(at, number, "upsert", uri, tmp_path / "a.csv")
        now = rs.open_table(uri).version
        ended.append(done.returncode)
        if done.returncode == 0:  # it came after the end
            assert (now, done.stderr) == (version + 1, "")
        else:
            assert done.returncode == 128 + number, (at, done.returncode, done.stderr)
            (line,) = done.stderr.splitlines()
            assert line.startswith("rowsieve: interrupted: "), (at, done.stderr)
            if now == version:
                assert "nothing was" in line, (at, line)
            else:
                assert f"version {now}" in line, (at, line)
                assert "exists" in line, (at, line)
        version = now
    assert {130, 143} & set(ended)


# What becomes of a KeyboardInterrupt in C, in a callback, and amid an import.
LOSES = """
import importlib, os, sys, weakref
from rowsieve.cli import main, bundles
number = int(sys.argv.pop(1))
def interrupt(*_):
    os.kill(os.getpid(), number)
def in_c():
    try:
        interrupt()
    except KeyboardInterrupt:
        raise AttributeError("partially initialized module") from None
class Thing: pass
def in_callback():
    thing = Thing()
    reference = weakref.ref(thing, interrupt)
    del thing
def in_import():
    importlib.import_module("interrupts_itself")
    os.write(1, b"imported\\n")  # at once: the interrupt may come at any moment
lost = globals()[sys.argv.pop(1)]
def act(*arguments, **options):
    lost()
    while True: pass
bundles.open_at = act
main()
"""


@pytest.mark.parametrize(
    ("where", "number"),
    [
        ("interrupt", signal.SIGTERM),
        ("in_c", signal.SIGINT),
        ("in_callback", signal.SIGTERM),
        ("in_import", signal.SIGINT),
    ],
)
def test_a_signal_is_not_lost_where_it_cannot_be_raised(
    where: str, number: signal.Signals, tmp_path: Path
) -> None:
    module = f"import os\ntry:\n    os.kill(os.getpid(), {int(number)})\n"
    module += "except KeyboardInterrupt:\n    pass\n"
    (tmp_path / "interrupts_itself.py").write_text(module)
    done = subprocess.run(
        [sys.executable, "-c", LOSES, str(int(number)), where, "inspect", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH')}"},
        timeout=120,
    )
    said = "rowsieve: interrupted: nothing was changed\n"
    assert (done.returncode, done.stderr) == (128 + number, said)
    assert done.stdout == ("imported\n" if where == "in_import" else "")
