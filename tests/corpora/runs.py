"""Judge all tables below a folder of other projects' test data, and add up what comes out.

    python -m tests.corpora.runs FOLDER [--only GLOB] [--report FILE] [--timeout SECONDS]

Tables are read in a process beside this one, so that a crash costs one table. A report that exists
is continued: tables that it has are counted as they stand there.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from fnmatch import fnmatch
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.corpora.judging import verdict_of
from tests.corpora.tables import Case, cases
from tests.processes import PROCESSES, start

TIMEOUT_S = 300
FAULTS = ("wrong", "raw", "crashed")


def verdicts_apart(todo: Sequence[Case], timeout_s: int = TIMEOUT_S) -> Iterator[dict[str, Any]]:
    """The verdicts as dictionaries, in order, made in another process.

    If it ends, or is silent for so many seconds, the table that it reads is `crashed`, and a new
    process goes on with the next one.
    """
    done = 0
    while done < len(todo):
        own, theirs = PROCESSES.Pipe(duplex=False)
        left = [(case.kind, str(case.path.resolve())) for case in todo[done:]]
        process = start(_judge_here, left, theirs)
        theirs.close()
        try:
            while done < len(todo):
                done += 1
                if not own.poll(timeout_s):
                    process.terminate()
                    yield {"state": "crashed", "said": f"not ended after {timeout_s} s"}
                    break
                yield json.loads(own.recv_bytes())
        except EOFError:
            process.join()
            yield {"state": "crashed", "said": f"exit code {process.exitcode}"}
        finally:
            own.close()
            process.join()


def _judge_here(todo: Sequence[tuple[str, str]], verdicts: Connection) -> None:
    for kind, path in todo:
        verdicts.send_bytes(json.dumps(asdict(verdict_of(Case(kind, Path(path))))).encode())


def run_all(top: Path, only: str, report: Path | None, timeout_s: int) -> Counter[str]:
    """Judge each table whose path below the folder matches; return tables by format and state."""
    known = _reported(report)
    named = {str(case.path.relative_to(top)): case for case in cases(top)}
    chosen = {name: case for name, case in named.items() if fnmatch(name, only)}
    todo = {name: case for name, case in chosen.items() if name not in known}
    sums: Counter[str] = Counter()
    for name in chosen.keys() & known.keys():
        _add(sums, chosen[name], known[name])
    for (name, case), verdict in zip(
        todo.items(), verdicts_apart([*todo.values()], timeout_s), strict=True
    ):
        _add(sums, case, verdict)
        if verdict["state"] in FAULTS:
            _say(name, verdict["state"], verdict.get("said", ""), *verdict.get("wrong", ())[:3])
        if report:
            with report.open("a") as lines:
                lines.write(json.dumps({"name": name, **verdict}) + "\n")
    return sums


def _say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def _add(sums: Counter[str], case: Case, verdict: dict[str, Any]) -> None:
    sums[f"{case.kind} {verdict['state']}"] += 1
    sums["conditions"] += verdict.get("conditions", 0)
    sums["refused conditions"] += verdict.get("refused_conditions", 0)


def _reported(report: Path | None) -> dict[str, dict[str, Any]]:
    if report is None or not report.exists():
        return {}
    return {entry["name"]: entry for entry in map(json.loads, report.read_text().splitlines())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="*", help="names below the folder, as a glob")
    parser.add_argument("--report", type=Path, help="one line of JSON for each table")
    parser.add_argument("--timeout", type=int, default=TIMEOUT_S, help="seconds for a table")
    given = parser.parse_args()
    for name, count in sorted(
        run_all(given.folder, given.only, given.report, given.timeout).items()
    ):
        _say(f"{count:8}  {name}")


if __name__ == "__main__":
    main()
