"""Virtual environments for peers whose packages conflict with ours, created at first use.

Each is `python -m venv` and pip over a pinned file in `requirements/`, in a folder that git
ignores, named after what is in it: a changed file makes another environment.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers.registry import System

CACHE = Path(__file__).parents[1] / ".environments"
READY = ".ready"


class NotInstalled(Exception):
    """A peer cannot be run here; the message is the reason."""


def python_of(system: System, *, make: bool) -> Path:
    """The interpreter that has the system; makes its environment if it may, else NotInstalled."""
    requirements = system.requirements
    if requirements is None:
        if importlib.util.find_spec(system.package) is None:
            raise NotInstalled(f"{system.package} is not in this environment")
        return Path(sys.executable)
    folder = _folder(requirements)
    if not (folder / READY).exists():
        if not make:
            raise NotInstalled(f"its environment {folder.name} has not been made")
        _make(folder, requirements)
    return folder / "bin" / "python"


def version_of(system: System) -> str:
    """The version that is pinned for it, or installed here."""
    if system.requirements is None:
        return importlib.metadata.version(system.package)
    wanted = system.package.replace("-", "_").lower()
    for line in system.requirements.read_text().splitlines():
        name, _, version = line.partition("==")
        if name.replace("-", "_").lower() == wanted:
            return version
    raise NotInstalled(f"{system.requirements.name} does not pin {system.package}")


def _folder(requirements: Path) -> Path:
    content = requirements.read_bytes() + sys.version.encode()
    return CACHE / f"{requirements.stem}-{hashlib.sha256(content).hexdigest()[:12]}"


def _make(folder: Path, requirements: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python")]
    pip.append("--disable-pip-version-check")
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
    _run([*pip, "install", "--quiet", "--no-deps", "--requirement", str(requirements)])
    (folder / READY).touch()


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
        reason = errors[-1] if errors else f"exit code {done.returncode}"
        raise NotInstalled(f"{' '.join(command[1:4])}: {reason[:200]}")
