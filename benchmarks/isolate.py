"""Runs each case in a process of its own, so that no case inherits memory or caches."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

T = TypeVar("T")


def in_own_process(module: str, arguments: Sequence[str], kind: type[T]) -> T:
    """Run `python -m module arguments --write PATH` and read the result that it writes."""
    with tempfile.TemporaryDirectory(prefix="rowsieve-bench-") as folder:
        path = Path(folder) / "found.json"
        command = [sys.executable, "-m", module, *arguments, "--write", str(path)]
        subprocess.run(command, check=True)
        return msgspec.json.decode(path.read_bytes(), type=kind)


def write_result(found: object, path: Path) -> None:
    """Write a result for the parent process."""
    path.write_bytes(msgspec.json.encode(found))
