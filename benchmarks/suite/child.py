"""Runs one system in a process of its own, and serves the harness's requests line by line.

`python -m benchmarks.suite.child KIND NAME FOLDER` reads a JSON request per line and writes a JSON
answer per line; rows travel as Arrow IPC files. The answer holds the sample, taken here around the
system's own work alone: reading what was sent and writing what is handed back is not in it.
Nothing outside the standard library, numpy, pyarrow and the system itself is imported.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import data
from benchmarks.measure import sampled
from benchmarks.peers.protocol import Keys
from benchmarks.peers.registry import system


class Service:
    """Does requests on one system's table: `{"do": ..., ...}` -> `{"answer", "sample"}`."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def do(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Prepare and describe the result outside of the measured time; measure the work only."""
        work, describe = self._prepared(request)
        with sampled() as sample:
            result = work()
        return {"answer": describe(result), "sample": asdict(sample)}

    def _prepared(
        self, request: Mapping[str, Any]
    ) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
        table = self._table
        match request["do"]:
            case "load":
                return lambda: table.load(_chunks(request["rows"])), _nothing
            case "upsert":
                rows = read_ipc(request["rows"])
                return lambda: table.upsert(rows), _nothing
            case "select":
                keys = Keys(*request["keys"])
                return lambda: table.select(keys), lambda rows: _described(rows, request)
            case "count":
                keys = Keys(*request["keys"])
                return lambda: table.count(keys), int
            case "build":
                return lambda: table.build(request["parts"]), _nothing
            case "plan":
                return lambda: table.plan(request["key"]), int
            case "look_up":
                return lambda: table.look_up(request["key"]), int
            case "look_up_each":
                keys = request["keys"]
                return lambda: sum(table.look_up(key) for key in keys), int
            case "stream":
                return lambda: table.stream(request["columns"]), int
            case "digest":
                return table.digest, dict
            case "open" | "compact" | "reopen" as name:
                return getattr(table, name), lambda answer: answer
            case other:
                raise ValueError(f"a child does not know how to {other!r}")


def main(arguments: list[str]) -> None:
    """Serve until the input ends; what the system prints goes to the error stream."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, name, folder = arguments
    try:
        service = Service(system(kind, name).new(Path(folder)))
        for line in _hello(answers):
            print(json.dumps(_tried(service, json.loads(line))), file=answers, flush=True)
    except ImportError as error:
        print(json.dumps({"failed": f"{type(error).__name__}: {error}"}), file=answers, flush=True)


def read_ipc(path: str) -> pa.Table:
    """Rows from an Arrow IPC file, in memory."""
    with pa.OSFile(path) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()


def write_ipc(rows: pa.Table, path: Path) -> str:
    """Write rows to a file for another process."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    return str(path)


def _hello(answers: Any) -> Iterator[str]:
    print(json.dumps({"answer": "ready"}), file=answers, flush=True)
    yield from sys.stdin


def _tried(service: Service, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return service.do(request)
    except Exception as error:
        traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {error}"[:300]}


def _chunks(paths: list[str]) -> Iterator[pa.Table]:
    for path in paths:
        yield read_ipc(path)


def _described(rows: Any, request: Mapping[str, Any]) -> dict[str, int]:
    table = data.plain(rows)
    if (path := request.get("out")) is not None:
        write_ipc(table, Path(path))
    return data.digest(table)


def _nothing(_: Any) -> None:
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
