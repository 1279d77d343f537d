"""Threads that decode into a class for the first time, at once."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import rowsieve
from tests import house

ROOT = Path(rowsieve.__file__).parent
DECODED_BY_ONE_THREAD = {"envelopes/reading_events.py", "envelopes/wal2json.py"}
"""These decode into classes that a call creates for itself."""
BUILT_IN = {"dict", "frozenset", "list", "tuple", "bool", "bytes", "int", "str", "Any", "msgspec"}

_AT_ONCE = """
import os, sys, threading
import rowsieve as rs
from rowsieve.planner.plan import ScanPlan

plan = rs.create_table("memory:///decoding", {"k": [1, 2]}, key=["k"]).scan().plan().to_bytes()
endings = set()
for _ in range(8):
    if not (child := os.fork()):
        sys.setswitchinterval(1e-6)
        start = threading.Barrier(8)
        def decode():
            start.wait()
            ScanPlan.from_bytes(plan)
        threads = [threading.Thread(target=decode) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        os._exit(0)
    endings.add(os.waitpid(child, 0)[1])
sys.exit(endings != {0})
"""


def test_threads_that_decode_their_first_plan_at_once_do_not_crash() -> None:
    """The process ended in a segmentation fault of msgspec, in one of two of these forks."""
    command = [sys.executable, "-c", _AT_ONCE]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2_000:]


def test_every_class_that_is_decoded_into_is_described_before() -> None:
    undescribed = [
        f"{path.relative_to(ROOT)}:{type_.lineno}: {ast.unparse(type_)}"
        for path in ROOT.rglob("*.py")
        if "msgspec" in path.read_text()
        and str(path.relative_to(ROOT)) not in DECODED_BY_ONE_THREAD
        for type_ in _decoded_types(house.tree_of(path))
        if not _is_described(type_)
    ]
    assert undescribed == []


def _decoded_types(tree: ast.AST) -> Iterator[ast.expr]:
    """What msgspec decodes or converts into."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="decode"), keywords=keywords):
                yield from (each.value for each in keywords if each.arg == "type")
            case ast.Call(func=ast.Attribute(ast.Name("msgspec"), "convert"), args=[_, type_]):
                yield type_


def _is_described(type_: ast.expr) -> bool:
    """Whether a type comes from `described`, or has no class of ours."""
    if isinstance(type_, ast.Call):
        return ast.unparse(type_.func) == "described"
    names = {node.id for node in ast.walk(type_) if isinstance(node, ast.Name)}
    return names <= BUILT_IN
