"""Run all logic test files of another project; as a program it prints what it found.

    python -m tests.logic.runs SOURCE [--only GLOB] [--report FILE] [--timeout SECONDS]

SOURCE is a folder, an archive or the https address of an archive. Each file runs in a process of
its own, one after another, which a crash of the engine ends alone. Last come the sums.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.logic import archives
from tests.logic.script import run_foreign
from tests.processes import PROCESSES, start

TIMEOUT_S = 1800


def run_apart(path: Path, cwd: Path, timeout_s: int = TIMEOUT_S) -> dict[str, Any]:
    """The outcome of one file, as a dictionary; `crashed` says how its process ended otherwise."""
    own, theirs = PROCESSES.Pipe(duplex=False)
    process = start(_run_here, str(path.resolve()), str(cwd), theirs)
    theirs.close()
    try:
        if not own.poll(timeout_s):
            process.terminate()
            return {"crashed": f"not ended after {timeout_s} s"}
        outcome: dict[str, Any] = json.loads(own.recv_bytes())
    except EOFError:
        process.join()
        return {"crashed": f"exit code {process.exitcode}"}
    finally:
        own.close()
        process.join()
    return outcome


def _run_here(path: str, cwd: str, outcome: Connection) -> None:
    os.chdir(cwd)
    outcome.send_bytes(json.dumps(asdict(run_foreign(Path(path)))).encode())


def directory_of(path: Path, top: Path) -> Path:
    """Where a file's own relative names start: beside `test_files`, or the top of the archive."""
    beside = [folder.parent for folder in path.parents if folder.name == "test_files"]
    return beside[0] if beside else top


def run_all(source: str, only: str, timeout_s: int, report: Path | None) -> Counter[str]:
    """Run the files whose names below the top match; one line of JSON each goes to the report.

    A file that the report already has is counted as it stands there, and not run again.
    """
    sums: Counter[str] = Counter()
    known = _reported(report)
    with tempfile.TemporaryDirectory(prefix="logic-") as made:
        top = Path(made)
        if archives.is_archive(source):
            top.joinpath("archive").mkdir()
            archives.unpack(archives.fetched(source, top / "archive"), top)
        files = top if archives.is_archive(source) else Path(source)
        for path in archives.test_files(files):
            name = str(path.relative_to(files))
            if not fnmatch(name, only):
                continue
            cwd = directory_of(path, top) if archives.is_archive(source) else top
            outcome = known.get(name) or run_apart(path, cwd, timeout_s)
            _add(sums, outcome)
            _print(name, outcome)
            if report is not None and name not in known:
                with report.open("a") as written:
                    written.write(json.dumps({"file": name, **outcome}) + "\n")
    return sums


def _reported(report: Path | None) -> dict[str, dict[str, Any]]:
    if report is None or not report.exists():
        return {}
    lines = [json.loads(line) for line in report.read_text().splitlines()]
    return {line.pop("file"): line for line in lines}


def _add(sums: Counter[str], outcome: dict[str, Any]) -> None:
    sums["files"] += 1
    for name, found in outcome.items():
        sums[name] += (
            1 if isinstance(found, str) else found if isinstance(found, int) else len(found)
        )


def _print(name: str, outcome: dict[str, Any]) -> None:
    sums: Counter[str] = Counter()
    _add(sums, outcome)
    _say(f"{name}: {_shown(sums)}")
    for line, message in outcome.get("wrong", []) + outcome.get("raised", []):
        _say(f"  line {line}: {message}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _shown(sums: Counter[str]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sums.items())


def main() -> int:
    """Exit code 1 where an answer was wrong, raised over our tables alone, or a file crashed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("source")
    parser.add_argument("--only", default="*", help="glob of names below the top (default: all)")
    parser.add_argument("--report", type=Path, help="append one line of JSON a file")
    parser.add_argument(
        "--timeout", type=int, default=TIMEOUT_S, help="seconds a file (%(default)s)"
    )
    given = parser.parse_args()
    sums = run_all(given.source, given.only, given.timeout, given.report)
    _say(f"all: {_shown(sums)}")
    return 1 if sums["wrong"] or sums["raised"] or sums["crashed"] else 0


if __name__ == "__main__":
    sys.exit(main())
